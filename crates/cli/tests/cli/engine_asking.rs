//! Workflows in JSON that ask, and that are told something: questions that are taken back, and
//! texts given on resume.

use std::fs;

use serde_json::{Value, json};

use crate::engine::{Project, tool};
use crate::env::eventually;
use crate::process::{Running, SOON};

/// An agent that asks before it has done anything.
const ASKS: &str = "[[turn]]\nprompt = [\"qq\"]\ndo = [{ ask = { question = \"Which?\", \
                    options = [{ label = \"A\" }] } }, { say = \"done\" }]\n";

/// Waits until somebody has asked something.
const UNTIL_ASKED: &str =
    "until grep -q question_asked .atomic/sessions/*/journal.jsonl; do sleep 0.02; done";

/// A race that an agent loses while it waits for an answer, and what follows it.
fn lost_race(after: &Value) -> Value {
    json!({"nodes": [
        {"type": "parallel", "id": "race", "strategy": "race", "branches": [
            {"type": "agent", "id": "asking", "prompt": "qq"}, tool("quick", UNTIL_ASKED),
        ]},
        after,
    ]})
}

#[test]
fn a_question_that_is_taken_back_is_not_waited_for() {
    let project = Project::scripted(ASKS);
    let next = json!({"type": "askUser", "id": "next", "question": "Next?", "options": ["Y"]});
    project.ends(&lost_race(&next), 3);
    let waiting = project.of_type("run_waiting");
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(waiting[0]["questions"], json!(["q2"]));

    let shown = project.env.run(["sessions", "show", "last"]);
    let (_, open) = shown.stdout.split_once("Waiting for an answer").unwrap();
    assert!(open.contains("q2 Next?") && !open.contains("Which?"), "{}", shown.stdout);
    let answered = project.env.run(["answer", "last", "Y", "--resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
}

#[test]
fn a_completed_session_takes_no_answer() {
    let project = Project::scripted(ASKS);
    project.ends(&lost_race(&tool("after", "true")), 0);
    let refused = project.env.run(["answer", "last", "A"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("it is completed"), "{}", refused.stderr);
    let inbox = fs::read_dir(project.session().join("inbox")).map_or(0, Iterator::count);
    assert_eq!(inbox, 0, "nothing was left for it");
}

/// What the agents were sent, in order.
fn prompts(project: &Project) -> Vec<String> {
    let path = project.session().join("logs/agent-calls.jsonl");
    let prompt = |line: &str| {
        let call: Value = serde_json::from_str(line).unwrap();
        call["prompt"].as_str().unwrap().to_owned()
    };
    fs::read_to_string(path).unwrap().lines().map(prompt).collect()
}

#[test]
fn every_agent_is_told_what_was_said_on_resume_all_of_it_in_order() {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"done\" }]\n");
    let workflow = json!({"nodes": [
        {"type": "agent", "id": "first", "prompt": "Begin"},
        tool("gate", "test -e ok"),
        {"type": "agent", "id": "work", "prompt": "Work"},
        {"type": "subgraph", "id": "sub", "graph": {
            "nodes": [{"type": "subagent", "id": "inner", "agent": "worker", "task": "Inside"}]}},
    ]});
    project.ends(&workflow, 1);
    assert_eq!(project.resume(&["Use tabs"]).code, Some(1));
    project.write("ok", "");
    let ended = project.resume(&["No, {spaces}"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = "\n\nUser instruction: Use tabs\n\nUser instruction: No, {spaces}";
    let expected = ["Begin".to_owned(), format!("Work{told}"), format!("Inside{told}")];
    assert_eq!(prompts(&project), expected);
}

/// A workflow with a list of its own for them says itself what it does with them.
#[test]
fn a_workflow_with_instructions_of_its_own_is_not_told_twice() {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"done\" }]\n");
    let workflow = json!({
        "stateAnnotations": {"instructions": {"default": [], "reducer": "concat"}},
        "nodes": [tool("gate", "test -e ok"),
            {"type": "agent", "id": "work", "prompt": "Work {instructions}"}],
    });
    project.ends(&workflow, 1);
    project.write("ok", "");
    let ended = project.resume(&["Use tabs"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(prompts(&project), ["Work [\"Use tabs\"]"]);
}

#[test]
fn only_a_file_is_read_as_a_workflow() {
    let project = Project::new();
    let work = project.env.work();
    fs::create_dir_all(work.join(".atomic/workflows")).unwrap();
    for path in ["pipe.json", ".atomic/workflows/named.json"] {
        let made = std::process::Command::new("mkfifo").arg(work.join(path)).status().unwrap();
        assert!(made.success());
    }
    for what in ["pipe.json", "named"] {
        let mut running = Running::start(project.env.atomic(["check", what]));
        eventually("it does not wait for a writer", SOON, || running.has_ended());
        let ran = running.end();
        assert_ne!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("is a FIFO, not a regular file"), "{}", ran.stderr);
    }
}
