//! Sessions written by every release so far, continued by this one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::TestEnv;

fn releases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    assert!(!found.is_empty(), "there is at least one release");
    found
}

/// A line of a journal with other paths, and the checksum that belongs to it.
fn sealed(line: &str, root: &str) -> String {
    let line = line.replace("/golden", root);
    let (content, _) = line.rsplit_once(",\"crc\":").unwrap();
    format!("{content},\"crc\":\"{:08x}\"}}", crc32fast::hash(content.as_bytes()))
}

/// Lays a golden session out as if it had been run here.
fn lay_out(env: &TestEnv, release: &Path, name: &str) -> String {
    let root = env.work().parent().unwrap().display().to_string();
    fs::copy(release.join("script.toml"), env.outside("script.toml")).unwrap();
    let golden = release.join(name);
    let journal = fs::read_to_string(golden.join("journal.jsonl")).unwrap();
    let lines: Vec<String> = journal.lines().map(|line| sealed(line, &root)).collect();
    let first: Value = serde_json::from_str(&lines[0]).unwrap();
    let id = first["session"].as_str().unwrap().to_owned();
    let dir = env.work().join(".ralph/sessions").join(&id);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("journal.jsonl"), lines.join("\n") + "\n").unwrap();
    for entry in fs::read_dir(&golden).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "txt") {
            fs::copy(&path, env.work().join(path.file_name().unwrap())).unwrap();
        }
    }
    let entry = json!({"session": id, "dir": dir, "workflow": "ralph",
        "created_at": first["at"], "prompt": first["prompt"]});
    fs::create_dir_all(env.outside("home/.atomic")).unwrap();
    fs::write(env.outside("home/.atomic/sessions-index.jsonl"), format!("{entry}\n")).unwrap();
    id
}

fn text(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.work().join(name)).unwrap()
}

fn is_complete(env: &TestEnv) {
    let expected = ["#1", "#1-bug-1", "#2", "#3", "#4"].map(|id| format!("{id} completed"));
    assert_eq!(env.tasks(), expected);
    assert_eq!((text(env, "one.txt"), text(env, "two.txt")), ("good\n".into(), "blue\n".into()));
    assert_eq!(env.summary()["status"], "completed");
}

#[test]
fn a_session_that_waits_since_an_earlier_release_takes_its_answer() {
    for release in releases() {
        let env = TestEnv::new();
        lay_out(&env, &release, "waiting");
        let ran = env.run(["answer", "last", "Blue", "--resume"]);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", release.display());
        is_complete(&env);
    }
}

#[test]
fn a_session_cut_off_under_an_earlier_release_is_continued() {
    for release in releases() {
        let env = TestEnv::new();
        lay_out(&env, &release, "interrupted");
        let ran = env.run(["resume", "last"]);
        assert_eq!(ran.code, Some(3), "{}: {ran:?}", release.display());
        let lost = env.facts().iter().filter(|fact| fact["type"] == "step_lost").count();
        assert!(lost > 0, "what was under way is found lost");
        let ran = env.run(["answer", "last", "Blue", "--resume"]);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", release.display());
        is_complete(&env);
    }
}

#[test]
fn a_session_completed_by_an_earlier_release_can_be_read_and_is_left_alone() {
    for release in releases() {
        let env = TestEnv::new();
        let id = lay_out(&env, &release, "completed");
        let before = env.facts();
        let ran = env.run(["sessions", "show", &id]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains("#4 completed: wrote four.txt"), "{}", ran.stdout);
        let ran = env.run(["resume", &id]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("is completed; there is nothing left to do"), "{ran:?}");
        assert_eq!(env.facts(), before);
        for fact in before {
            let line = fact.to_string();
            let known = atomic_event::Envelope::parse(line.as_bytes()).unwrap();
            assert!(!matches!(known.event, atomic_event::Event::Unknown(_)), "{line}");
        }
    }
}
