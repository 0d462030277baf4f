//! Several processes at once: one session has one holder, and many sessions do not mind each other.

use std::fs;

use crate::env::{TestEnv, eventually, ran};
use crate::process::{Running, SOON};
use crate::scene::{CUT_OFF, Scene, done, fail, note, wait_for, worker};

/// A session whose worker was cut off, and that waits for the file `go` when it is resumed.
fn interrupted(env: &TestEnv) {
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").and(CUT_OFF).does([note(), wait_for("go"), done("at last")]))
        .turn(worker("Task #1:").does([note(), fail("hang")]))
        .rest();
    let running = Running::start(env.ralph_command(&scene.toml(), &[]));
    eventually("the worker works", SOON, || env.ledger().len() == 1);
    running.kill();
}

#[test]
fn of_two_who_resume_a_session_at_once_one_wins() {
    let env = TestEnv::new();
    interrupted(&env);
    let resume = || Running::start(env.atomic(["resume", "last"]));
    let (mut one, mut other) = (resume(), resume());
    eventually("one gives up", SOON, || one.has_ended() || other.has_ended());
    let (loser, mut winner) = if one.has_ended() { (one, other) } else { (other, one) };
    let lost = loser.end();
    assert_eq!(lost.code, Some(1), "{lost:?}");
    let holder = format!("is held by process {}, atomic", winner.id());
    assert!(lost.stderr.contains(&holder), "{holder}: {}", lost.stderr);

    // And whoever comes later is told the same, as long as the session is held.
    let late = env.run(["resume", "last"]);
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(late.stderr.contains(&holder), "{holder}: {}", late.stderr);

    fs::write(env.work().join("go"), "").unwrap();
    let won = winner.end();
    assert_eq!(won.code, Some(0), "{won:?}");
    assert_eq!(env.ledger().len(), 2, "the losers started nothing");
}

#[test]
fn ten_sessions_at_once_in_one_folder_all_finish() {
    let env = TestEnv::new();
    let script = env.script(&Scene::of(&[("#1", &[]), ("#2", &["#1"])]).rest().toml());
    let folders: Vec<_> = (1..=10).map(|n| env.work().join(n.to_string())).collect();
    let started: Vec<_> = folders
        .iter()
        .map(|folder| {
            fs::create_dir(folder).unwrap();
            let mut command = env.atomic(["run", "ralph", "Build it", "--check", "true"]);
            command.arg("--script").arg(&script).current_dir(folder);
            Running::start(command)
        })
        .collect();
    for running in started {
        let ran = running.end();
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    assert_eq!(env.ledger().len(), 20, "each did its own work");
    let listed = env.run(["sessions"]).stdout;
    assert_eq!(listed.matches(" completed ").count(), 10, "{listed}");
    for folder in &folders {
        let sessions = fs::read_dir(folder.join(".ralph/sessions")).unwrap().flatten();
        assert_eq!(sessions.filter(|entry| entry.path().is_dir()).count(), 1);
    }
}

/// A session is found from anywhere, and works in its own folder all the same.
#[test]
fn a_session_is_resumed_from_another_folder() {
    let env = TestEnv::new();
    interrupted(&env);
    fs::write(env.work().join("go"), "").unwrap();
    let mut command = env.atomic(["resume", "last", "--all"]);
    command.current_dir("/");
    let ran = ran(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
