//! Sessions written by every release so far, continued by this one.

use std::collections::BTreeSet;
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
    if golden.join("blobs").is_dir() {
        fs::create_dir(dir.join("blobs")).unwrap();
        for blob in fs::read_dir(golden.join("blobs")).unwrap() {
            let blob = blob.unwrap();
            fs::copy(blob.path(), dir.join("blobs").join(blob.file_name())).unwrap();
        }
    }
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
    }
}

#[test]
fn a_session_paused_under_an_earlier_release_goes_on_with_what_it_was_told() {
    for release in releases() {
        let env = TestEnv::new();
        lay_out(&env, &release, "paused");
        assert_eq!(env.run(["resume", "last"]).code, Some(3));
        let calls = fs::read_to_string(env.session().join("logs/agent-calls.jsonl")).unwrap();
        assert!(calls.contains("Mind the gap"), "{calls}");
        let ran = env.run(["answer", "last", "Blue", "--resume"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert_eq!(env.tasks(), ["#1 failed", "#2 completed"]);
    }
}

/// Every fact is read and written as it was, and every type of fact is among them.
#[test]
fn facts_of_an_earlier_release_are_read_whole() {
    for release in releases() {
        let mut types = BTreeSet::new();
        for session in fs::read_dir(&release).unwrap().map(|entry| entry.unwrap().path()) {
            let Ok(journal) = fs::read_to_string(session.join("journal.jsonl")) else { continue };
            for line in journal.lines() {
                let mut written: Value = serde_json::from_str(line).unwrap();
                written.as_object_mut().unwrap().remove("crc");
                types.insert(written["type"].as_str().unwrap().to_owned());
                // What is kept in a blob is put back by the session; resuming it shows that.
                if line.contains("\"$blob\"") {
                    continue;
                }
                let read = atomic_event::Envelope::parse(line.as_bytes()).unwrap();
                assert_eq!(serde_json::to_value(&read).unwrap(), written);
            }
        }
        let schema = atomic_event::journal_schema().to_string();
        let missing: Vec<_> = KNOWN_AT_0_1_0.iter().filter(|t| !types.contains(**t)).collect();
        assert!(missing.is_empty(), "no golden fact of {missing:?}");
        assert!(types.iter().all(|name| schema.contains(&format!("\"{name}\""))));
    }
}

/// The types of facts the first release wrote.
const KNOWN_AT_0_1_0: [&str; 18] = [
    "session_created",
    "session_resumed",
    "step_started",
    "conversation_opened",
    "step_reported",
    "step_finished",
    "step_failed",
    "step_lost",
    "branch_chosen",
    "question_asked",
    "question_answered",
    "answer_delivered",
    "instructed",
    "state_patched",
    "noted",
    "run_paused",
    "run_waiting",
    "run_finished",
];
