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
    let golden = release.join(name);
    let own = golden.join("script.toml");
    let script = if own.exists() { own } else { release.join("script.toml") };
    fs::copy(script, env.outside("script.toml")).unwrap();
    let journal = fs::read_to_string(golden.join("journal.jsonl")).unwrap();
    let lines: Vec<String> = journal.lines().map(|line| sealed(line, &root)).collect();
    let first: Value = serde_json::from_str(&lines[0]).unwrap();
    let id = first["session"].as_str().unwrap().to_owned();
    let folder = if first["workflow"] == "ralph" { ".ralph/sessions" } else { ".atomic/sessions" };
    let dir = env.work().join(folder).join(&id);
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
    let entry = json!({"session": id, "dir": dir, "workflow": first["workflow"],
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
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(&format!("Completed Ralph session: {id}")), "{ran:?}");
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

/// What has been chosen stays chosen, although decisions wait for the steps beside them since; the
/// next decision of the same session does.
#[test]
fn a_decision_made_beside_a_slow_step_under_an_earlier_release_stays_made() {
    for release in releases() {
        let env = TestEnv::new();
        lay_out(&env, &release, "beside");
        fs::write(env.work().join("go.txt"), "").unwrap();
        let ran = env.run(["resume", "last"]);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", release.display());
        let steps = text(&env, "steps.log");
        let mut steps: Vec<&str> = steps.lines().collect();
        steps.sort_unstable();
        assert_eq!(steps, ["early", "new-late", "seen"], "{}", release.display());
    }
}

#[test]
fn a_ralph_run_cut_off_in_mid_fan_under_an_earlier_release_is_continued() {
    for release in releases() {
        let env = TestEnv::new();
        lay_out(&env, &release, "fan");
        let finished = |env: &TestEnv| {
            let facts = env.facts().into_iter().filter(|fact| fact["type"] == "step_finished");
            facts.map(|fact| fact["step"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let before = finished(&env);
        fs::write(env.outside("go"), "").unwrap();
        let ran = env.run(["resume", "last"]);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", release.display());
        let expected = ["#1", "#2", "#2-bug-1", "#3", "#4"].map(|id| format!("{id} completed"));
        let mut tasks = env.tasks();
        tasks.sort();
        assert_eq!(tasks, expected);
        let written = ["one", "two", "mended", "three", "four"];
        for name in written {
            assert_eq!(text(&env, &format!("{name}.txt")), format!("{name}\n"));
        }
        let after = finished(&env);
        let all: BTreeSet<&String> = after.iter().collect();
        assert_eq!((&after[..before.len()], all.len()), (&before[..], after.len()));
    }
}

/// The items of a fan that was begun by an earlier release change the state in the order in which
/// they finish, as they did there.
#[test]
fn a_fan_cut_off_under_an_earlier_release_keeps_the_order_of_its_changes() {
    for release in releases() {
        let env = TestEnv::new();
        lay_out(&env, &release, "votes");
        fs::write(env.work().join("go.txt"), "").unwrap();
        let ran = env.run(["resume", "last", "--trust"]);
        assert_eq!(ran.code, Some(0), "{}: {ran:?}", release.display());
        let said = text(&env, "said.log");
        assert!(["b,a,c b,a,c", "b,c,a b,c,a"].contains(&said.as_str()), "{said}");
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
