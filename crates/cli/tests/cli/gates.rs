//! Checks that somebody could slip past.

use std::fs;

use crate::env::TestEnv;
use crate::scene::{Scene, ask, done, review, reviewer, run, worker};

/// While one worker waited for an answer, another turned a check green that had been red from the
/// start. From then on it must stay green for everybody.
#[test]
fn a_check_that_was_turned_green_must_stay_green_for_a_task_begun_before() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &[])])
        .turn(worker("Task #1:").does([run("echo good > a.txt"), done("made the check pass")]))
        .turn(worker("Task #2:").without("The user's answer").does([ask("Which?", &["A", "B"])]))
        .turn(worker("Task #2").does([run("echo broken > a.txt"), done("claims to be done")]))
        .turn(reviewer().does([review(&[])]));
    let flags = ["--check", "grep -q good a.txt", "--workers", "2"];
    let ran = env.ralph(&scene.toml(), &flags);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let ran = env.run(["answer", "last", "A", "--resume"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(env.tasks().contains(&"#2 failed".to_owned()), "{:?}", env.tasks());
}

/// A check does not go away because a worker removed what it is found by.
#[test]
fn removing_what_a_check_is_found_by_does_not_remove_the_check() {
    let env = TestEnv::new();
    fs::write(env.work().join("Makefile"), "test:\n\ttrue\n").unwrap();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task ").does([run("rm -f Makefile"), done("all green")]))
        .turn(reviewer().does([review(&[])]));
    let ran = env.ralph(&scene.toml(), &["--trust"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(env.tasks().contains(&"#1 failed".to_owned()), "{:?}", env.tasks());
}

/// A check that is found is the project's word, and needs trust like one that is written down.
#[test]
fn a_check_of_an_untrusted_project_is_not_run() {
    let env = TestEnv::new();
    fs::write(env.work().join("Makefile"), "test:\n\ttouch ran.txt\n").unwrap();
    let scene = Scene::of(&[("#1", &[])]).rest();
    let untrusted = env.ralph(&scene.toml(), &[]);
    assert_eq!(untrusted.code, Some(0), "{untrusted:?}");
    assert!(untrusted.stderr.contains("checks (make test)"), "{untrusted:?}");
    assert!(untrusted.stdout.contains("Checks found in the project are not run"), "{untrusted:?}");
    assert!(!env.work().join("ran.txt").exists());
    let trusted = env.ralph(&scene.toml(), &["--trust"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(env.work().join("ran.txt").exists());
}
