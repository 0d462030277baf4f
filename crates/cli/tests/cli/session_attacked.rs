//! What a worker, or anybody else, does to the session of a run under way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::env::{TestEnv, eventually, ran};
use crate::process::{Running, SOON};
use crate::scene::{Scene, done, note, run, wait_for, worker};

/// The first task returns a value that is kept in a file of its own, the second does this.
fn scene(command: &str) -> Scene {
    Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").does([note(), done(&"x".repeat(100_000))]))
        .turn(worker("Task #2:").does([run(command), note(), done("as asked")]))
        .rest()
}

fn id_of(env: &TestEnv) -> String {
    env.session().file_name().unwrap().to_str().unwrap().to_owned()
}

fn keep_of(env: &TestEnv) -> PathBuf {
    env.outside("home/.atomic/keep").join(id_of(env))
}

fn git(folder: &Path, args: &[&str]) {
    let output = Command::new("git").current_dir(folder).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// Everything is as if nobody had done anything.
fn is_whole(env: &TestEnv) {
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
    assert_eq!(env.summary()["status"], "completed");
    let firsts = env.ledger().into_iter().filter(|line| line.contains("[#1]")).count();
    assert_eq!(firsts, 1, "the first task was done once: {:?}", env.ledger());
    assert!(fs::read_dir(env.session().join("blobs")).unwrap().count() > 0);
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    assert!(progress.contains("#1") && progress.contains("#2"), "{progress}");
    let shown = env.run(["sessions", "show", &id_of(env)]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(!keep_of(env).exists(), "the second links are removed");
}

#[test]
fn a_worker_that_cleans_the_repository_does_not_end_the_run() {
    for command in ["git clean -fdxq", "rm -rf .ralph", "rm .ralph/sessions/*/journal.jsonl"] {
        let env = TestEnv::new();
        git(&env.work(), &["init", "-q"]);
        let command = format!("{command} && test ! -e .ralph/sessions/*/journal.jsonl");
        let ended = env.ralph(&scene(&command).toml(), &["--workers", "1"]);
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
        assert!(ended.stdout.contains("the session's folder was deleted"), "{ended:?}");
        is_whole(&env);
    }
}

#[test]
fn a_session_that_was_killed_and_deleted_is_restored() {
    let env = TestEnv::new();
    let command = "if [ ! -e \"$LEDGER.go\" ]; then touch \"$LEDGER.there\"; \
                   while [ ! -e \"$LEDGER.go\" ]; do sleep 0.02; done; fi";
    let running = Running::start(env.ralph_command(&scene(command).toml(), &["--workers", "1"]));
    eventually("the second task is under way", SOON, || env.outside("ledger.there").exists());
    let id = id_of(&env);
    assert!(keep_of(&env).join("journal.jsonl").exists());
    running.kill();
    fs::remove_dir_all(env.work().join(".ralph")).unwrap();
    fs::write(env.outside("ledger.go"), "").unwrap();
    let listed = env.run(["sessions"]);
    assert!(listed.stdout.starts_with(&format!("{id}  interrupted ")), "{listed:?}");
    let resumed = env.run(["resume", &id]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.stderr.contains("the session's folder was deleted"), "{resumed:?}");
    is_whole(&env);
}

/// Each command changes the journal once, in mid-run.
#[test]
fn a_journal_that_is_changed_stops_the_run() {
    let cases = [
        ("sed -i s/completed/kompleted/ $J", true),
        ("echo '{}' >> $J", false),
        ("head -n 5 $J > t && cat t > $J", false),
        ("truncate -s 100 $J", false),
    ];
    for (command, goes_on) in cases {
        let env = TestEnv::new();
        let once = format!(
            "J=$(echo .ralph/sessions/*/journal.jsonl); \
             if [ ! -e \"$LEDGER.once\" ]; then touch \"$LEDGER.once\"; {command}; fi"
        );
        let stopped = env.ralph(&scene(&once).toml(), &["--workers", "1"]);
        assert_eq!(stopped.code, Some(1), "{command}: {stopped:?}");
        let told = "the journal was changed by another program";
        assert!(stopped.stderr.contains(told), "{command}: {stopped:?}");
        let id = id_of(&env);
        let before = env.ledger();
        let resumed = env.run(["resume", &id]);
        if goes_on {
            assert_eq!(resumed.code, Some(0), "{command}: {resumed:?}");
            assert!(resumed.stderr.contains("was replaced by another file"), "{resumed:?}");
            is_whole(&env);
        } else {
            assert_eq!(resumed.code, Some(1), "{command}: {resumed:?}");
            assert_eq!(env.ledger(), before, "{command}: nothing paid is done again");
        }
    }
}

/// Without the file of the lock a second process would get one of its own.
#[test]
fn a_session_without_its_lock_file_is_still_held() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").does([note(), wait_for("go"), done("as asked")]))
        .rest();
    let running = Running::start(env.ralph_command(&scene.toml(), &[]));
    eventually("the worker is there", SOON, || env.ledger().len() == 1);
    let id = id_of(&env);
    for round in 0..2 {
        fs::remove_file(env.session().join("lock")).unwrap();
        let second = env.run(["resume", &id]);
        assert_eq!(second.code, Some(1), "{round}: {second:?}");
        assert!(second.stderr.contains("is held by"), "{round}: {second:?}");
        assert!(env.run(["sessions"]).stdout.contains("running"), "{round}");
    }
    fs::write(env.work().join("go"), "").unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(env.ledger().len(), 1);
}

#[test]
fn a_session_is_listed_before_its_first_event() {
    let start = |env: &TestEnv, point: &str| {
        let mut command = env.ralph_command(&scene("true").toml(), &[]);
        command.env("ATOMIC_FAILPOINT", point);
        assert_eq!(ran(command).code, None, "{point}");
    };
    // Killed with the first event on disk: nobody needs to say that the session can be trusted.
    let env = TestEnv::new();
    start(&env, "append.synced:1");
    let resumed = env.run(["resume", &id_of(&env)]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");

    // Killed before: there is nothing to show, and after a day nothing to remember.
    let env = TestEnv::new();
    start(&env, "append.before:1");
    let index = || fs::read_to_string(env.outside("home/.atomic/sessions-index.jsonl")).unwrap();
    let listed = |ahead: &str| {
        let mut command = env.atomic(["sessions"]);
        command.env("ATOMIC_TEST_CLOCK_AHEAD", ahead);
        let listed = ran(command);
        assert!(listed.stdout.starts_with("There are no sessions yet"), "{listed:?}");
    };
    listed("0");
    assert_eq!(index().lines().count(), 1);
    listed("90000");
    assert!(index().contains("\"dropped\""), "{}", index());
    assert!(!keep_of(&env).exists());
    listed("90000");
    assert_eq!(index().lines().count(), 2);
}

/// A program that was killed after the end of its run has left the second links.
#[test]
fn leftover_links_are_removed() {
    for command in [&["sessions"][..], &["resume", "last"]] {
        let env = TestEnv::new();
        assert_eq!(env.ralph(&scene("true").toml(), &[]).code, Some(0));
        fs::create_dir_all(keep_of(&env)).unwrap();
        let journal = env.session().join("journal.jsonl");
        fs::hard_link(&journal, keep_of(&env).join("journal.jsonl")).unwrap();
        let ended = env.run(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!keep_of(&env).exists(), "{command:?}");
        is_whole(&env);
    }
}

#[test]
fn a_deleted_session_leaves_nothing() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&scene("true").toml(), &[]).code, Some(0));
    let (dir, id) = (env.session(), id_of(&env));
    fs::create_dir_all(keep_of(&env)).unwrap();
    let keep = keep_of(&env);
    let removed = env.run(["sessions", "rm", &id]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(!dir.exists() && !keep.exists());
    assert!(env.run(["sessions"]).stdout.starts_with("There are no sessions yet"));
    assert_eq!(env.run(["sessions", "rm", &id]).code, Some(1));
}

/// `sed -i` gives the name of a big value to another file, and Atomic still has the one it wrote.
#[test]
fn a_value_that_a_worker_edits_is_put_back() {
    let env = TestEnv::new();
    let command = "sed -i s/xxx/yyy/ .ralph/sessions/*/blobs/*";
    let ended = env.ralph(&scene(command).toml(), &["--workers", "1"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    is_whole(&env);
}
