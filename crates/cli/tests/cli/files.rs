//! The files of a session, as people and other programs find them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::env::{TestEnv, eventually};
use crate::process::{Running, SOON};
use crate::scene::{Scene, cost, done, note, wait_for, worker};

fn keys(json: &str) -> Vec<String> {
    let lines = json.lines().filter(|line| line.starts_with("  \""));
    lines.map(|line| line.trim_start().split('"').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn the_summary_has_its_fields_in_order() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #2:").does([cost(0.25), done("paid for")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--model", "small"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(env.session().join("session.json")).unwrap();
    let fields = [
        "sessionId",
        "workflow",
        "prompt",
        "originalPrompt",
        "status",
        "createdAt",
        "lastUpdated",
        "iteration",
        "backend",
        "model",
        "tasks",
        "costUsd",
        "tokens",
        "estimated",
        "taskCosts",
        "verified",
        "verifiedBy",
        "redFromStart",
        "changedChecks",
        "removedTests",
        "taskChecks",
    ];
    assert_eq!(keys(&text), fields, "{text}");
    let summary = env.summary();
    let id = env.session().file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(summary["sessionId"], id);
    assert_eq!(summary["workflow"], "ralph");
    assert_eq!(
        (&summary["prompt"], &summary["originalPrompt"]),
        (&"Build it".into(), &"Build it".into())
    );
    assert_eq!((&summary["backend"], &summary["model"]), (&"script".into(), &"small".into()));
    assert_eq!((&summary["iteration"], &summary["costUsd"]), (&2.into(), &0.25.into()));
    assert_eq!(summary["tasks"], serde_json::json!({"done": 2, "total": 2}));
    assert!(summary["createdAt"].as_str() < summary["lastUpdated"].as_str());
}

#[test]
fn what_is_not_known_to_have_cost_nothing_is_not_zero() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&Scene::of(&[("#1", &[])]).rest().toml(), &[]).code, Some(0));
    assert!(env.summary()["costUsd"].is_null());
}

#[test]
fn only_the_owner_can_look() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&Scene::of(&[("#1", &[])]).rest().toml(), &[]).code, Some(0));
    let mut seen = 0;
    for root in [env.work().join(".ralph"), env.outside("home").join(".atomic")] {
        walk(&root, &mut |path, mode| {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(mode & 0o777, expected, "{}", path.display());
            seen += 1;
        });
    }
    assert!(seen > 12, "only {seen} files and folders");
}

fn walk(path: &Path, visit: &mut impl FnMut(&Path, u32)) {
    visit(path, fs::symlink_metadata(path).unwrap().permissions().mode());
    for entry in fs::read_dir(path).into_iter().flatten() {
        walk(&entry.unwrap().path(), visit);
    }
}

#[test]
fn git_does_not_see_sessions() {
    let env = TestEnv::new();
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(env.work()).args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    assert_eq!(env.ralph(&Scene::of(&[("#1", &[])]).rest().toml(), &[]).code, Some(0));
    assert!(env.session().is_dir());
    assert_eq!(git(&["status", "--short", "--untracked-files=all"]), "");
}

#[test]
fn an_edit_of_the_task_list_is_kept_aside_and_said() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").does([note(), wait_for("go"), done("at last")]))
        .rest();
    let running = Running::start(env.ralph_command(&scene.toml(), &[]));
    eventually("the worker works", SOON, || env.ledger().len() == 1);
    let list = env.session().join("tasks.json");
    let edited = fs::read_to_string(&list).unwrap().replace("in_progress", "completed");
    fs::write(&list, &edited).unwrap();
    fs::write(env.work().join("go"), "").unwrap();
    let ran = running.end();
    assert_eq!(ran.code, Some(0), "{ran:?}");

    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
    assert_eq!(env.ledger().len(), 2, "the edit decided nothing");
    let kept = env.session().join("tasks.edited-1.json");
    assert_eq!(fs::read_to_string(&kept).unwrap(), edited);
    let log = fs::read_to_string(env.session().join("logs/errors.log")).unwrap();
    let said = log.lines().filter(|line| line.contains(&kept.display().to_string())).count();
    assert_eq!(said, 1, "{log}");
    let lines = ran.stdout.lines().filter(|line| line.contains(&kept.display().to_string()));
    assert_eq!(lines.count(), 2, "when it is noticed, and at the end: {}", ran.stdout);
    assert_eq!(env.summary()["tasks"]["keptEdits"][0], kept.display().to_string());
}

#[test]
fn progress_tells_what_was_done_in_order() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])]).rest();
    assert_eq!(env.ralph(&scene.toml(), &[]).code, Some(0));
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    let headings: Vec<&str> = progress.lines().filter(|line| line.starts_with('#')).collect();
    let expected = [
        "# Tasks",
        "## Iteration 1 — #1: Make part 1",
        "## Iteration 2 — #2: Make part 2",
        "## Review 1, after iteration 2",
        "## Completed, not verified",
    ];
    assert_eq!(headings, expected, "{progress}");
}
