//! `atomic demo`, as the README promises it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::env::{Ran, TestEnv};

fn demo(env: &TestEnv, more: &[&str]) -> (Ran, PathBuf) {
    let dir = env.outside("demo");
    let mut args = vec!["demo".to_owned(), "--dir".to_owned(), dir.display().to_string()];
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    (env.run(args), dir)
}

fn tasks(dir: &std::path::Path) -> Vec<String> {
    let session = fs::read_dir(dir.join(".ralph/sessions")).unwrap();
    let session = session.map(|e| e.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let rows: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(session.join("tasks.json")).unwrap()).unwrap();
    rows.iter().map(|r| format!("{} {}", r["id"], r["status"]).replace('"', "")).collect()
}

#[test]
fn the_demo_builds_a_game_whose_tests_pass() {
    let env = TestEnv::new();
    let (ran, dir) = demo(&env, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("The agent in this demo is a script: no model is involved"));
    let expected = ["#1", "#2", "#3", "#4", "#4-bug-1", "#5", "#6", "#7"];
    let expected: Vec<_> = expected.iter().map(|id| format!("{id} completed")).collect();
    assert_eq!(tasks(&dir), expected);

    let tests = Command::new("cargo").args(["test", "--offline"]).current_dir(&dir).output();
    assert!(tests.unwrap().status.success());
    let status = Command::new("git").args(["status", "--short"]).current_dir(&dir).output();
    assert_eq!(String::from_utf8_lossy(&status.unwrap().stdout), "", "everything is committed");
}

/// With the turn that mends the bug taken out the demo fails, and says which task it is.
#[test]
fn without_the_turn_that_mends_the_bug_the_demo_fails() {
    let env = TestEnv::new();
    let demo_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("demo");
    let script = fs::read_to_string(demo_folder.join("script.toml")).unwrap();
    let turns: Vec<&str> = script.split("[[turn]]").collect();
    let kept: Vec<&str> = turns
        .iter()
        .copied()
        .filter(|turn| !turn.contains("prompt = [\"Task #4-bug-1:\"]"))
        .collect();
    assert_eq!(kept.len() + 1, turns.len(), "one turn mends the bug");
    let path = env.script(&kept.join("[[turn]]"));
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(demo_folder.join("files")).arg(env.outside("files"));
    assert!(copy.status().unwrap().success());

    let (ran, dir) = demo(&env, &["--script", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let tasks = tasks(&dir);
    assert!(tasks.contains(&"#4-bug-1 failed".to_owned()), "{tasks:?}");
    assert!(tasks.contains(&"#4 failed".to_owned()), "{tasks:?}");
    assert!(tasks.contains(&"#5 pending".to_owned()), "{tasks:?}");
    assert!(ran.stderr.contains("#4-bug-1"), "{}", ran.stderr);
}

#[test]
fn without_cargo_the_demo_says_so_and_makes_nothing() {
    let env = TestEnv::new();
    let dir = env.outside("demo");
    let mut command = env.atomic(["demo", "--dir"]);
    command.arg(&dir).env("PATH", "/nonexistent");
    let ran = crate::env::ran(command);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("`cargo` cannot be run"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Install Rust and try again"), "{}", ran.stderr);
    assert!(!dir.exists());
}
