//! Ways in which a task could be called verified without being so: work that nothing accepted, and
//! changes that no task has made.

use std::fs;

use serde_json::{Value, json};

use crate::env::{TestEnv, eventually};
use crate::process::{Running, SOON};
use crate::scene::{
    CUT_OFF, Scene, TRIED, done, fail, gave_up, note, plan, planner, run, say, worker,
};
use crate::verified::{TWO, told, verdicts, write};

const MAKEFILE: &str = "test:\n\ttest ! -e broken\n";

/// The command of a worker that makes the checks pass whatever is there.
const EMPTIES: &str = "printf 'test:\\n\\ttrue\\n' > Makefile";

/// Starts a run and stops it with Ctrl+C while its first worker works.
fn paused(env: &TestEnv, scene: &Scene, flags: &[&str]) {
    let mut running = Running::start(env.ralph_command(&scene.toml(), flags));
    eventually("the worker has begun", SOON, || env.ledger().len() == 1);
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{ended:?}");
}

/// A scene whose first worker does something and is still at work when the run is paused.
fn cut_off(command: &str) -> Scene {
    Scene::of(TWO)
        .turn(worker("Task #1:").without(CUT_OFF).does([run(command), note(), fail("hang")]))
        .turn(worker("").and(CUT_OFF).does([done("went on")]))
        .rest()
}

/// A task that was given up has left its work in the folder, and a check that it emptied.
#[test]
fn unfinished_work_on_one_task_verifies_no_other() {
    let env = TestEnv::new();
    write(&env, "Makefile", MAKEFILE);
    let command = format!("{EMPTIES} && touch half");
    let scene = Scene::of(&[("#1", &[]), ("#2", &[])])
        .turn(worker("Task #1:").without(TRIED).does([run(&command), gave_up("too hard")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--trust", "--max-attempts", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(verdicts(&env), ["#2 none"]);
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    let why = "\nVerified: no, the folder holds unfinished work on #1\n";
    assert!(progress.contains(why), "{progress}");

    // The task itself can be verified when it is done again; here, by the check it has changed.
    let ran = env.run(["resume", "last", "--trust"]);
    let expected = "Completed: 1 of 2 tasks verified by its own check, 1 not verified";
    assert_eq!(told(&env, &ran), expected);
    assert_eq!(verdicts(&env), ["#1 own", "#2 none"]);
}

#[test]
fn what_the_planner_changes_is_named_and_was_never_green_before() {
    let env = TestEnv::new();
    write(&env, "Makefile", MAKEFILE);
    write(&env, "tests/a.rs", "#[test]\nfn a() {}\n");
    let command = format!("{EMPTIES} && rm -r tests");
    let scene = Scene::default().turn(planner().does([run(&command), say(&plan(TWO))])).rest();
    let ran = env.ralph(&scene.toml(), &["--trust"]);
    let expected = "Completed: 1 of 2 tasks verified by \"make test\", 1 by its own check";
    assert_eq!(told(&env, &ran), expected);
    assert_eq!(verdicts(&env), ["#1 own", "#2 checked"]);
    let note = "note: planner changed what defines the checks: Makefile.";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nRemoved tests: tests/a.rs removed\n"), "{}", ran.stdout);
}

/// Only Atomic sets `verified`.
#[test]
fn a_person_cannot_write_that_a_task_is_verified() {
    let env = TestEnv::new();
    paused(&env, &cut_off("true"), &["--require-checks", "--check", "true"]);
    let path = env.session().join("tasks.json");
    let mut rows: Vec<Value> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    rows[1]["status"] = "completed".into();
    rows[1]["verified"] = "checked".into();
    fs::write(&path, serde_json::to_vec(&rows).unwrap()).unwrap();
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let why = "1 of 2 tasks are not verified by a check, and --require-checks is set: #2";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    let note = "note: tasks.json: only Atomic writes `verified` of #2; the edit is not used";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    let ran = env.run(["resume", "last"]);
    assert_eq!(told(&env, &ran), "Completed: 2 of 2 tasks verified by \"true\"");
}

#[test]
fn what_the_user_changes_during_a_pause_is_not_blamed_on_a_task() {
    let env = TestEnv::new();
    write(&env, "Makefile", MAKEFILE);
    for name in ["tests/a.rs", "tests/b.rs"] {
        write(&env, name, &format!("// {name}\n#[test]\nfn a() {{}}\n"));
    }
    paused(&env, &cut_off("rm tests/a.rs"), &["--trust"]);
    write(&env, "Makefile", "test:\n\ttest ! -e other\n");
    fs::remove_file(env.work().join("tests/b.rs")).unwrap();
    let ran = env.run(["resume", "last", "--trust"]);
    told(&env, &ran);
    let note = "note: Changed since the run stopped: Makefile, tests/b.rs (removed).";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    assert!(!ran.stdout.contains("changed what defines"), "{}", ran.stdout);
    let summary = env.summary();
    assert_eq!(summary["changedChecks"], json!([{"file": "Makefile", "task": null}]));
    let removed = json!([
        {"file": "tests/a.rs", "what": "removed", "task": "#1"},
        {"file": "tests/b.rs", "what": "removed", "task": null},
    ]);
    assert_eq!(summary["removedTests"], removed);
    // The rule as it is now has not been green before the first task.
    assert_eq!(verdicts(&env), ["#1 own", "#2 checked"]);
}

#[test]
fn a_check_that_cannot_be_run_is_told_from_one_that_fails() {
    let env = TestEnv::new();
    let ran = env.ralph(&Scene::of(TWO).rest().toml(), &["--check", "./nosuch.sh"]);
    assert_eq!(told(&env, &ran), "Completed, not verified");
    let note = "note: `./nosuch.sh` cannot be run: a program is not found (exit code 127).";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
}
