//! Times of a workflow: limits and back-offs, also of a run that is stopped and taken up again, and
//! what is stopped before its time.

use std::fs;

use serde_json::{Value, json};

use crate::engine::{Project, millis, place, tool, with};
use crate::env::{Ran, eventually};
use crate::process::{Nonce, Running, SOON};

/// Milliseconds of a limit of eight seconds that is set again by a resume: it begins shortly before the
/// event is on disk. Of the time before, less than six seconds were left.
const ALL: i64 = 7_000;

fn start(project: &Project, workflow: &Value) -> Running {
    project.write("flow.json", &workflow.to_string());
    Running::start(project.command("flow.json", &[]))
}

/// Takes the session up again and sees it through, which must not take long.
fn resume(project: &Project) -> Ran {
    Running::start(project.env.atomic(["resume", "last"])).end()
}

/// Waits until there is a fact of this type.
fn told(project: &Project, kind: &str) {
    let kind = format!("\"type\":\"{kind}\"");
    let journal = |session: &std::path::PathBuf| {
        fs::read_to_string(session.join("journal.jsonl")).unwrap_or_default()
    };
    let is_told = || project.sessions().iter().any(|session| journal(session).contains(&kind));
    eventually(&kind, SOON, is_told);
}

fn first(project: &Project, kind: &str, step: &str) -> Value {
    let mut facts = project.of_type(kind);
    facts.retain(|fact| fact["step"] == step);
    assert!(!facts.is_empty(), "no {kind} of {step}");
    facts.remove(0)
}

/// A graph that fails once and is tried again.
fn tried_twice(backoff_ms: u64) -> Value {
    let flaky = tool("x", "test -e tried || { touch tried; exit 1; }");
    let retry = json!({"maxAttempts": 2, "backoffMs": backoff_ms, "backoffMultiplier": 1});
    json!({"type": "subgraph", "id": "sub", "retry": retry, "graph": {"nodes": [flaky]}})
}

#[test]
fn an_agent_that_takes_longer_than_its_node_allows_is_stopped() {
    let nonce = Nonce::new();
    let hang = json!(nonce.scatter_and_hang());
    let project = Project::scripted(&format!("[[turn]]\ndo = [{{ run = {hang} }}]\n"));
    let agent = json!({"type": "agent", "id": "hangs", "prompt": "Hang", "timeoutMs": 700,
        "onError": "skip"});
    let look = tool("look", &nonce.absent());
    let ran = start(&project, &json!({"nodes": [agent, look]})).end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let error = &first(&project, "step_failed", "hangs#1")["error"];
    assert_eq!(error["code"], "timeout");
    let message = "the agent's turn took longer than 700 ms and was stopped";
    assert_eq!(error["message"], message);
    nonce.is_gone();
}

#[test]
fn a_graph_that_failed_rests_before_it_is_tried_again() {
    let project = Project::new();
    let workflow = json!({"nodes": [tried_twice(300)]});
    project.ends(&workflow, 0);
    let failed = first(&project, "step_failed", "sub#1/x#1");
    let again = first(&project, "step_started", "sub#1!2/x#1");
    let rested = millis(&again) - millis(&failed);
    assert!(rested >= 300, "it rested for {rested} ms");
}

#[test]
fn a_graph_has_its_time_again_when_the_run_is_taken_up() {
    let project = Project::new();
    // Some of the time is over when the run pauses.
    let limited = json!({"type": "subgraph", "id": "limited", "timeoutMs": 8_000,
        "graph": {"nodes": [tool("hangs", "sleep 2; touch hangs; exec sleep 1000")]}});
    let before = tool("before", "true");
    let mut running = start(&project, &json!({"nodes": [before, limited]}));
    eventually("it hangs", SOON, || project.env.work().join("hangs").exists());
    running.signal("INT");
    let paused = running.end();
    assert_eq!(paused.code, Some(4), "{paused:?}");
    let ended = resume(&project);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("it took longer than 8000 ms"), "{}", ended.stderr);
    let fired = first(&project, "timer_fired", "limited#1");
    let resumed = &project.of_type("session_resumed")[0];
    assert!(millis(&fired) - millis(resumed) >= ALL, "it had all of its time");
}

#[test]
fn a_graph_that_rested_when_the_program_was_killed_is_tried_again() {
    for rule in [json!({}), json!({"timeoutMs": 60_000})] {
        let project = Project::new();
        let sub = with(tried_twice(600_000), rule);
        let running = start(&project, &json!({"nodes": [sub, tool("after", "touch after")]}));
        told(&project, "step_failed");
        running.kill();
        let ended = resume(&project);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        place(&project.story(), "finished sub#1!2/x#1");
        assert!(project.env.work().join("after").exists());
    }
}

#[test]
fn a_question_has_its_time_again_when_the_run_is_taken_up() {
    let project = Project::new();
    let ask = json!({"type": "askUser", "id": "ask", "question": "Well?", "timeoutMs": 8_000,
        "onError": "skip"});
    // Beside the question, so that some of its time is over when the run pauses.
    let waits = tool("waits", "sleep 2; touch waited");
    let nodes = json!([tool("begin", "true"), ask, waits, tool("late", "touch late")]);
    let edges = json!([{"from": "begin", "to": "ask"}, {"from": "begin", "to": "waits"},
        {"from": "ask", "to": "late"}]);
    let mut running = start(&project, &json!({"nodes": nodes, "edges": edges}));
    told(&project, "question_asked");
    eventually("the time goes on", SOON, || project.env.work().join("waited").exists());
    running.signal("INT");
    let paused = running.end();
    assert_eq!(paused.code, Some(4), "{paused:?}");
    let ended = resume(&project);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(project.env.work().join("late").exists());
    let failed = first(&project, "step_failed", "ask#1");
    assert_eq!(failed["error"]["code"], "timeout");
    let resumed = &project.of_type("session_resumed")[0];
    assert!(millis(&failed) - millis(resumed) >= ALL, "it had all of its time");
}

/// The run waits for an answer only when nothing else can go on, and what rests will.
#[test]
fn a_question_does_not_hold_up_what_rests_beside_it() {
    let project = Project::new();
    let sub = tried_twice(500);
    let fan = json!({"type": "parallel", "id": "fan", "branches": [
        {"type": "askUser", "id": "ask", "question": "Well?"},
        {"id": "rests", "nodes": [sub, tool("then", "touch went-on")]},
    ]});
    project.ends(&json!({"nodes": [fan]}), 3);
    assert!(project.env.work().join("went-on").exists(), "{:#?}", project.story());
}

/// A node that fails, and rests for longer than anybody waits.
fn rests() -> Value {
    let retry = json!({"maxAttempts": 2, "backoffMs": 600_000});
    with(tool("rests", "exit 1"), json!({"retry": retry}))
}

#[test]
fn a_step_that_rests_is_stopped_at_once() {
    let project = Project::new();
    let mut running = start(&project, &json!({"nodes": [rests()]}));
    told(&project, "step_failed");
    running.signal("INT");
    // The rest takes longer than this waits.
    let paused = running.end();
    assert_eq!(paused.code, Some(4), "{paused:?}");

    let project = Project::new();
    let quick = "until grep -q '\"type\":\"step_failed\"' .atomic/sessions/*/journal.jsonl; \
                 do sleep 0.02; done";
    let race = json!({"type": "parallel", "id": "race", "strategy": "race",
        "branches": [tool("quick", quick), rests()]});
    let ran = start(&project, &json!({"nodes": [race, tool("after", "true")]})).end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let story = project.story();
    let stopped = place(&story, "cancelled race#1[rests]/rests#1");
    assert!(stopped < place(&story, "started after#1"), "{story:#?}");
}

#[test]
fn the_first_item_that_fails_may_stop_the_others() {
    let project = Project::new();
    let command = "case {n} in 1) touch hangs; exec sleep 1000;; esac; \
                   until [ -e hangs ]; do sleep 0.02; done; exit 1";
    let each = json!({"type": "each", "id": "all", "over": "items", "item": "n", "workers": 2,
        "failFast": true, "nodes": [tool("do", command)]});
    let ran = start(&project, &json!({"state": {"items": [1, 2, 3]}, "nodes": [each]})).end();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let story = project.story();
    assert_eq!(story.last().unwrap(), "cancelled all#1[0]/do#1", "{story:#?}");
    assert!(!story.contains(&"started all#1[2]/do#1".to_owned()), "{story:#?}");
}
