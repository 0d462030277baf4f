//! Limits of the run that nothing in a workflow can hide, lists that change while they are worked
//! on, and values that are not what a node needs.

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};

/// An agent that spends 10 tokens each time.
const SPENDS: &str = "[[turn]]\ndo = [\n  { run = 'echo \"$ATOMIC_STEP\" >> \"$LEDGER\"' },\n  \
     { usage = { input_tokens = 10, output_tokens = 0, cost_usd = 0.0 } },\n  { say = \"ok\" }\n]\n";

fn skipped(node: Value) -> Value {
    with(node, json!({"onError": "skip"}))
}

fn agent(id: &str) -> Value {
    json!({"type": "subagent", "id": id, "agent": "worker", "task": "Work"})
}

fn endless(id: &str, node: &Value) -> Value {
    json!({"type": "loop", "id": id, "maxIterations": 0, "until": {"key": "never", "equals": true},
        "nodes": [node]})
}

#[test]
fn steps_that_are_used_up_inside_a_skipped_node_end_the_run_and_a_resume_goes_on_there() {
    let inner = json!({"nodes": [tool("p", "echo p >> ran"), tool("q", "echo q >> ran")]});
    let sub = json!({"type": "subgraph", "id": "s", "graph": inner, "onError": "skip"});
    let project = Project::new();
    let workflow = json!({"maxSteps": 3, "nodes": [tool("a", "echo a >> ran"), sub]});
    let ran = project.ends(&workflow, 5);
    assert_eq!(ran.stderr, "error: the run has used all of its 3 steps\n");
    assert_eq!(project.read("ran"), "a\np\n");
    let ran = project.resume(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(project.read("ran"), "a\np\nq\n");
}

#[test]
fn nothing_hides_that_the_run_may_start_nothing_any_more() {
    let met = r#""step_finished".*any#1.l./x#1"#;
    let looped = || skipped(endless("again", &skipped(agent("work"))));
    // Wins, but only when the other branch has met the limit.
    let wait = format!("until grep -q '{met}' .atomic/sessions/*/journal.jsonl; do :; done");
    let any = json!({"type": "parallel", "id": "any", "strategy": "any", "branches": [
        {"id": "l", "nodes": [tool("x", "true"), tool("y", "true")]},
        {"id": "r", "nodes": [tool("z", &wait)]}]});
    let slow = skipped(tool("slow", "exec sleep 1000"));
    let launches = "the run has used all of its 3 launches of an agent; resume with a higher \
                    --max-launches";
    let tokens =
        "stopped at the budget: used 30 of 25 tokens (5 over); resume with a higher --max-tokens";
    let table: [(Value, &[&str], &str); 4] = [
        (json!({"nodes": [looped(), tool("after", "true")]}), &["--max-launches", "3"], launches),
        (
            json!({"nodes": [looped(), tool("after", "true")], "catch": "after"}),
            &["--max-tokens", "25"],
            tokens,
        ),
        (
            json!({"timeoutMs": 1_500, "nodes": [slow, tool("after", "touch after")]}),
            &[],
            "the run has used all of its 1.5 s",
        ),
        (json!({"maxSteps": 3, "nodes": [any]}), &[], "the run has used all of its 3 steps"),
    ];
    for (workflow, flags, message) in table {
        let project = Project::scripted(SPENDS);
        let ran = project.run(&workflow, flags);
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert_eq!(ran.stderr, format!("error: {message}\n"));
        assert!(project.env.ledger().len() <= 3, "{:?}", project.env.ledger());
        assert!(!project.env.work().join("after").exists());
    }
}

#[test]
fn a_loop_in_which_nothing_can_be_started_fails() {
    let fan = json!({"type": "each", "id": "e", "over": "xs", "node": tool("t", "true")});
    let once = with(agent("work"), json!({"maxVisits": 1, "onError": "skip"}));
    for node in [fan, once] {
        let project = Project::scripted(SPENDS);
        let workflow = json!({"state": {"xs": []}, "nodes": [endless("l", &node)]});
        let ran = project.run(&workflow, &[]);
        let message = "it went round without being able to start anything";
        assert!(ran.stderr.contains(message), "{ran:?}");
        assert_eq!(ran.code, Some(5), "{ran:?}");
    }
}

#[test]
fn every_item_runs_once_while_the_list_changes() {
    let left = json!([{"id": "b"}, {"id": "c"}]);
    let item = with(
        tool("t", "echo {item.id} >> ran; test {item.id} != a"),
        json!({"onError": {"action": "skip", "stateUpdate": {"xs": left}}}),
    );
    let project = Project::new();
    let workflow = json!({"state": {"xs": [{"id": "a"}, {"id": "b"}, {"id": "c"}]},
        "nodes": [{"type": "each", "id": "e", "over": "xs", "workers": 1, "node": item}]});
    project.ends(&workflow, 0);
    assert_eq!(project.read("ran"), "a\nb\nc\n");
}

/// What the state begins with is checked before the run; what a step puts there is not.
#[test]
fn what_is_no_list_or_no_number_is_said() {
    let fan = || {
        json!({"type": "each", "id": "e", "over": "xs", "workers": "w",
        "node": tool("t", "touch ran")})
    };
    let table = [
        (json!({"xs": 5}), "node `e`, key `xs`: a list is needed, not 5"),
        (json!({"xs": null}), "node `e`, key `xs`: a list is needed, not null"),
        (json!({"w": "two"}), "node `e`, key `w`: a whole number is needed, not \"two\""),
    ];
    for (update, message) in table {
        let project = Project::new();
        let breaks = with(
            tool("breaks", "false"),
            json!({"onError": {"action": "skip", "stateUpdate": update}}),
        );
        let workflow = json!({"state": {"xs": [1], "w": 1}, "nodes": [breaks, fan()]});
        let ran = project.run(&workflow, &[]);
        assert!(ran.stderr.contains(message), "{ran:?}");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(!project.env.work().join("ran").exists());
    }
}

#[test]
fn a_question_keeps_nothing_else_from_running() {
    let ask = json!({"type": "ask_user", "id": "sure", "question": "Go on?", "options": ["Yes"]});
    let both = json!({"type": "parallel", "id": "both", "branches": [
        {"id": "l", "nodes": [ask]},
        {"id": "r", "nodes": [tool("x", "touch x"), tool("y", "touch y")]}]});
    let project = Project::new();
    project.ends(&json!({"maxConcurrency": 1, "nodes": [both]}), 3);
    project.read("y");
}

#[test]
fn a_number_is_the_same_with_a_point_and_an_item_stays_inside() {
    let decision = json!({"type": "decision", "id": "d", "fallback": "no",
        "routes": [{"condition": {"key": "n", "equals": 1}, "target": "yes"}]});
    let fan = json!({"type": "each", "id": "e", "over": "xs", "nodes": [skipped(with(
        tool("t", "false"),
        json!({"onError": {"action": "skip", "stateUpdate": {"item": "inside"}}}),
    ))]});
    let workflow = json!({"state": {"n": 1.0, "xs": [1], "item": "outside"},
        "nodes": [fan, decision, tool("yes", "echo {item} > yes"), tool("no", "touch no")],
        "edges": [{"from": "e", "to": "d"}]});
    let project = Project::new();
    project.ends(&workflow, 0);
    assert_eq!(project.read("yes"), "outside\n");
}
