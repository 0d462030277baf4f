//! Which session is meant, and which folder it works in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::engine::Project;
use crate::env::{Ran, TestEnv, ran};
use crate::scene::{Scene, done, gave_up, run, worker};
use crate::terminal::typing;

/// The first attempt fails; with an instruction the worker says where it is.
fn failing() -> String {
    let here = run("pwd >> \"$LEDGER\"");
    Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").without("think").does([gave_up("no idea")]))
        .turn(worker("Task #1:").does([here, done("as asked")]))
        .rest()
        .toml()
}

fn git(folder: &Path, args: &[&str]) {
    let fixed = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let output = Command::new("git").current_dir(folder).args(fixed).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

/// A project with a session that has failed.
fn failed() -> (TestEnv, String) {
    let env = TestEnv::new();
    git(&env.work(), &["init", "-q"]);
    let ended = env.ralph(&failing(), &["--max-attempts", "1"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let id = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    (env, id)
}

fn in_folder(env: &TestEnv, folder: &Path, args: &[&str]) -> Ran {
    let mut command = env.atomic(args);
    command.current_dir(folder);
    ran(command)
}

fn copy(env: &TestEnv) -> PathBuf {
    let copy = env.outside("copy");
    let copied = Command::new("cp").arg("-r").arg(env.work()).arg(&copy).status().unwrap();
    assert!(copied.success());
    copy
}

#[test]
fn the_last_session_is_one_of_this_repository() {
    let (env, id) = failed();
    let other = env.outside("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    for command in [
        &["resume", "last", "think"][..],
        &["answer", "last", "yes"],
        &["fork", "last"],
        &["sessions", "show", "last"],
    ] {
        let refused = in_folder(&env, &other, command);
        assert_eq!(refused.code, Some(1), "{command:?}: {refused:?}");
        let told = format!("last: no session was started in {}", other.display());
        assert!(refused.stderr.contains(&told), "{command:?}: {refused:?}");
        assert!(refused.stderr.contains("--all"), "{command:?}: {refused:?}");
    }
    let named = |folder: &Path, text: &str, more: &[&str]| {
        let shown = in_folder(&env, folder, &[&["sessions", "show", text][..], more].concat());
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.stdout.contains(&id), "{shown:?}");
    };
    named(&other, "last", &["--all"]);
    named(&other, &id, &[]);
    named(&other, &id[..8], &[]);
    let below = env.work().join("below/that");
    fs::create_dir_all(&below).unwrap();
    named(&below, "last", &[]);
    git(&env.work(), &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(&env.work(), &["worktree", "add", "-q", "../tree"]);
    named(&env.outside("tree"), "last", &[]);
    // Without git it is the folder itself that counts.
    fs::remove_dir_all(env.work().join(".git")).unwrap();
    named(&env.work(), "last", &[]);
    assert_eq!(in_folder(&env, &below, &["sessions", "show", "last"]).code, Some(1));
}

#[test]
fn in_a_copy_it_must_be_said_which_folder_is_meant() {
    let (env, id) = failed();
    let (original, copy) = (env.session(), copy(&env));
    let before = fs::read(original.join("journal.jsonl")).unwrap();
    let local = copy.join(".ralph/sessions").join(&id);
    let path = local.to_str().unwrap();
    for command in [
        &["resume", &id, "think"][..],
        &["resume", "last", "think"],
        &["resume", path, "think"],
        &["answer", &id, "yes"],
        &["fork", &id],
        &["sessions", "show", &id],
        &["sessions", "rm", &id],
        &["graph", &id],
    ] {
        let refused = in_folder(&env, &copy, command);
        assert_eq!(refused.code, Some(2), "{command:?}: {refused:?}");
        assert!(refused.stderr.contains("this project is a copy"), "{command:?}: {refused:?}");
        assert!(refused.stderr.contains(original.to_str().unwrap()), "{command:?}: {refused:?}");
        assert!(refused.stderr.contains(" --here"), "{command:?}: {refused:?}");
    }
    let resumed = in_folder(&env, &copy, &["resume", &id, "think", "--here"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.stderr.contains(&format!("Works in: {}", copy.display())), "{resumed:?}");
    assert_eq!(env.ledger(), [copy.display().to_string()], "the worker was in the copy");
    assert_eq!(fs::read(original.join("journal.jsonl")).unwrap(), before);
    assert_eq!(fs::read(local.join("journal.jsonl")).unwrap(), before, "a new session was made");
    let folders = fs::read_dir(copy.join(".ralph/sessions")).unwrap();
    assert_eq!(folders.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count(), 2);
    // The original goes on by its path, from anywhere.
    let named = original.to_str().unwrap();
    let resumed = in_folder(&env, &copy, &["resume", named, "think"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let work = env.work().display().to_string();
    assert_eq!(env.ledger(), [copy.display().to_string(), work]);
}

/// A session that has finished no step goes on in a copy, too.
#[test]
fn in_a_copy_a_session_without_a_finished_step_goes_on() {
    let project = Project::new();
    let env = &project.env;
    let command = "test -e ready && pwd >> \"$LEDGER\"";
    let flow = json!({"nodes": [{"type": "tool", "id": "build", "command": command}]});
    let failed = project.run(&flow, &[]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let id = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    let refused = ran(env.atomic(["fork", &id]));
    assert!(refused.stderr.contains("no finished step yet"), "{refused:?}");
    let copy = copy(env);
    fs::write(copy.join("ready"), "").unwrap();
    let resumed = in_folder(env, &copy, &["resume", &id, "--here"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(env.ledger(), [copy.display().to_string()], "the command ran in the copy");
}

/// The id of a session proves nothing about its content.
#[test]
fn a_session_with_the_id_of_another_is_a_strangers() {
    let (env, id) = failed();
    let copy = copy(&env);
    let other = TestEnv::new();
    let scene =
        Scene::of(&[("#1", &[])]).turn(worker("Task #1:").does([gave_up("no idea")])).rest().toml();
    assert_eq!(other.ralph(&scene, &["--max-attempts", "1"]).code, Some(1));
    let local = copy.join(".ralph/sessions").join(&id);
    fs::copy(other.session().join("journal.jsonl"), local.join("journal.jsonl")).unwrap();
    let refused = in_folder(&env, &copy, &["resume", &id, "think", "--here"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("not in your list of sessions"), "{refused:?}");
    fs::remove_dir_all(env.work()).unwrap();
    let refused = in_folder(&env, &copy, &["resume", &id, "think"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("not in your list of sessions"), "{refused:?}");
}

#[test]
fn a_moved_project_is_worked_in_where_it_is() {
    let (env, id) = failed();
    let moved = env.outside("moved");
    fs::rename(env.work(), &moved).unwrap();
    let resumed = in_folder(&env, &moved, &["resume", "last", "think"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.stderr.contains(&format!("Works in: {}", moved.display())), "{resumed:?}");
    assert_eq!(env.ledger(), [moved.display().to_string()]);
    // The list knows the new place.
    let shown = in_folder(&env, &env.outside("home"), &["sessions", "show", &id]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let folder = format!("Folder: {}", moved.join(".ralph/sessions").join(&id).display());
    assert!(shown.stdout.contains(&folder), "{shown:?}");
    let forked = in_folder(&env, &env.outside("home"), &["fork", &id]);
    assert_eq!(forked.code, Some(0), "{forked:?}");
    assert!(forked.stdout.contains(&format!("The files in {} are", moved.display())), "{forked:?}");
}

#[test]
fn on_a_terminal_it_is_asked_which_folder_is_meant() {
    let (env, id) = failed();
    let copy = copy(&env);
    let answered = |answer: &str| {
        let mut command = env.atomic(["resume", &id, "think"]);
        command.current_dir(&copy);
        let asked = typing(&command, &[("1 or 2: ", answer, &|| ())]);
        assert_eq!(asked.code, Some(0), "{asked:?}");
        assert!(asked.stdout.contains("This project is a copy"), "{asked:?}");
    };
    answered("2\n");
    answered("1\n");
    let folders = [copy.display().to_string(), env.work().display().to_string()];
    assert_eq!(env.ledger(), folders);
}
