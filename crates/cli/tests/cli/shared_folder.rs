//! One folder, several workers or several runs.

use serde_json::json;

use crate::env::{Ran, TestEnv, eventually};
use crate::process::{Running, SOON};
use crate::scene::{Scene, done, note, run, wait_for, worker};
use crate::verified::git;

const THREE: &[(&str, &[&str])] = &[("#1", &[]), ("#2", &[]), ("#3", &[])];

/// A worker that fails when another one is at work.
fn alone() -> Scene {
    let works = run("mkdir at-work && sleep 0.1 && rmdir at-work");
    Scene::of(THREE).turn(worker("Task ").does([works, done("was alone")])).rest()
}

/// The place of the first line that contains a text.
fn line_of(text: &str, part: &str) -> usize {
    let found = text.lines().position(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("no {part:?} in {text}"))
}

#[test]
fn ralph_has_one_worker_unless_somebody_says_otherwise() {
    let env = TestEnv::new();
    let ran = env.ralph(&alone().toml(), &["--check", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("launches of an agent, 1 at once"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("workers share"), "{}", ran.stdout);
}

#[test]
fn several_workers_are_warned_of_and_none_of_their_tasks_is_verified() {
    let scene = Scene::of(THREE).rest().toml();
    let shared = |command: std::process::Command, env: &TestEnv| {
        let ran = crate::env::ran(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let note = line_of(&ran.stdout, "note: 2 workers share ");
        assert!(note < line_of(&ran.stdout, "Planning the tasks"), "{}", ran.stdout);
        assert_eq!(ran.stdout.lines().next_back(), Some("Completed, not verified"));
        assert_eq!(env.summary()["verified"], json!({"checked": 0, "own": 0, "total": 3}));
        let progress = std::fs::read_to_string(env.session().join("progress.txt")).unwrap();
        assert!(progress.contains("Verified: no, 2 workers share the folder"), "{progress}");
    };
    let flags = ["--check", "true", "--workers", "2"];
    let env = TestEnv::new();
    shared(env.ralph_command(&scene, &flags), &env);
    let env = TestEnv::new();
    let mut command = env.ralph_command(&scene, &flags[..2]);
    command.env("ATOMIC_WORKERS", "2");
    shared(command, &env);
}

#[test]
fn a_folder_without_git_is_said_before_the_first_worker() {
    let env = TestEnv::new();
    let ran = env.ralph(&Scene::of(THREE).rest().toml(), &[]);
    let note = line_of(&ran.stdout, "is not in a git repository");
    assert!(note < line_of(&ran.stdout, "Implementing a task"), "{}", ran.stdout);

    let env = TestEnv::new();
    let mut init = std::process::Command::new("git");
    assert!(init.args(["init", "-q"]).current_dir(env.work()).status().unwrap().success());
    let ran = env.ralph(&Scene::of(THREE).rest().toml(), &[]);
    assert!(!ran.stdout.contains("is not in a git repository"), "{}", ran.stdout);
}

#[test]
fn a_second_run_in_the_same_folder_names_the_first() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task ").does([note(), wait_for("go"), done("waited")]))
        .rest();
    let check = ["--check", "true"];
    let first = Running::start(env.ralph_command(&scene.toml(), &check));
    eventually("the first works", SOON, || env.ledger().len() == 1);
    let session = env.session();
    let id = session.file_name().unwrap().to_str().unwrap();
    let second = Running::start(env.ralph_command(&scene.toml(), &check));
    eventually("the second works", SOON, || env.ledger().len() == 2);
    std::fs::write(env.work().join("go"), "").unwrap();
    let (first, second) = (first.end(), second.end());
    let note = format!("note: Session {id} is running in ");
    assert!(second.stdout.contains(&note), "{}", second.stdout);
    assert!(!first.stdout.contains("is running in "), "{}", first.stdout);
    let last_line = |ran: &Ran| ran.stdout.lines().next_back().unwrap().to_owned();
    // The one that ended last may have been checked when the other was completed.
    let unverified = [&first, &second].map(last_line);
    assert!(unverified.contains(&"Completed, not verified".to_owned()), "{unverified:?}");
    let third = env.ralph(&scene.toml(), &check);
    assert!(!third.stdout.contains("is running in "), "{}", third.stdout);
    assert_eq!(last_line(&third), "Completed: 1 of 1 task verified by \"true\"");
}

/// Folders of one working tree have the same files, and a run that was killed leaves its work there.
#[test]
fn what_another_run_left_in_the_repository_verifies_no_task() {
    let env = TestEnv::new();
    git(&env, "init -q -b main");
    let sub = env.work().join("sub");
    std::fs::create_dir(&sub).unwrap();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task ").does([note(), wait_for("go"), done("waited")]))
        .rest();
    let first = Running::start(env.ralph_command(&scene.toml(), &["--check", "true"]));
    eventually("the first works", SOON, || env.ledger().len() == 1);
    let mut second = env.ralph_command(&scene.toml(), &["--check", "true"]);
    second.current_dir(&sub);
    let second = Running::start(second);
    eventually("the second works", SOON, || env.ledger().len() == 2);
    second.kill();
    std::fs::write(sub.join("go"), "").unwrap();
    std::fs::write(env.work().join("go"), "").unwrap();
    let first = first.end();
    assert_eq!(first.stdout.lines().next_back(), Some("Completed, not verified"));
    let progress = std::fs::read_to_string(env.session().join("progress.txt")).unwrap();
    assert!(progress.contains(" left unfinished work in the folder"), "{progress}");
}
