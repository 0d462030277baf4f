//! What Ralph's functions decide, without running anything.

use atomic_event::{Patch, StepError, StepId, StepResult};
use atomic_graph::{FunctionId, Goto, Program, State};
use serde_json::{Value, json};

use super::{functions, graph, initial_state, ralph, ralph_with_tasks};
use crate::{Call, Function, Launch, Limits, Paths};

/// Calls a step function of Ralph on a state with these values and outputs.
fn call(function: &str, values: Value, outputs: Value) -> Result<StepResult, StepError> {
    let values: Patch = serde_json::from_value(values).unwrap();
    let state = State::new(values).with_outputs(serde_json::from_value(outputs).unwrap());
    let functions = functions();
    let Some(Function::Step(step)) = functions.find(&FunctionId::from(function)) else {
        panic!("there is no step function {function}");
    };
    let (step_id, paths) = (StepId::new("test#1"), Paths::default());
    step(&Call { state: &state, step: &step_id, paths: &paths })
}

fn task(id: &str, status: &str) -> Value {
    json!({"id": id, "content": format!("do {id}"), "status": status})
}

/// The rows a settled task changes, as `id status`, with what blocks it.
fn settled(item: &Value, tasks: &[&Value], outputs: Value) -> Vec<String> {
    let values = json!({"item": item, "tasks": tasks, "limits": Limits::default()});
    let result = call("ralph/settle", values, outputs).unwrap();
    let rows = result.patch["tasks"].as_array().unwrap().clone();
    rows.iter()
        .map(|row| {
            let text = |key: &str| row.get(key).map(Value::to_string).unwrap_or_default();
            format!("{} {} {}", text("id"), text("status"), text("blockedBy")).replace('"', "")
        })
        .collect()
}

#[test]
fn ralph_is_a_sound_graph_under_any_name() {
    assert!(Program::compile(graph()).is_ok());
    let (one, other) = (ralph("ralph"), ralph("foo"));
    assert_eq!(one.graph, other.graph);
    assert_eq!(one.sessions_dir, other.sessions_dir);
}

#[test]
fn every_node_says_what_it_does() {
    let graph = graph();
    assert!(graph.nodes.iter().all(|node| node.description.is_some()));
}

#[test]
fn a_task_is_completed_only_when_report_and_checks_agree() {
    let item = task("#1", "pending");
    let good = json!({"status": "completed", "summary": "did it"});
    let gave_up = json!({"status": "failed", "error": "no idea"});
    let red = json!({"failures": [{"command": "make test", "tail": "boom"}]});
    let green = json!({"failures": []});
    let exited = json!({"error": {"code": "exited", "message": "gone"}});
    let ceiling = json!({"error": {"code": "ceiling", "message": "enough"}});
    let bug = vec!["#1 pending [#1-bug-1]", "#1-bug-1 pending []"];
    let table = [
        (json!({"worker": good, "check": green}), vec!["#1 completed "]),
        (json!({"worker": good, "check": red}), bug.clone()),
        (json!({"worker": gave_up}), bug),
        (json!({"worker": exited}), vec!["#1 pending "]),
        (json!({"worker": good, "check": ceiling}), vec!["#1 failed "]),
    ];
    for (outputs, expected) in table {
        assert_eq!(settled(&item, &[&item], outputs.clone()), expected, "{outputs}");
    }
}

#[test]
fn a_task_that_keeps_failing_is_given_up() {
    let red = json!({"worker": {"status": "completed"}, "check": {"failures": [{"command": "c"}]}});
    let mut item = task("#1", "pending");
    item["attempts"] = 3.into();
    assert_eq!(settled(&item, &[&item], red.clone()), ["#1 failed "]);
    item["attempts"] = 1.into();
    item["bugFixes"] = 3.into();
    assert_eq!(settled(&item, &[&item], red), ["#1 failed "]);
}

/// A task that was given up and reopened counts from the beginning, but its new bug-fix is not
/// taken for the old one.
#[test]
fn a_reopened_task_gets_a_bug_fix_with_a_number_of_its_own() {
    let red = json!({"worker": {"status": "completed"}, "check": {"failures": [{"command": "c"}]}});
    let (item, old) = (task("#1", "pending"), task("#1-bug-1", "completed"));
    let rows = settled(&item, &[&item, &old], red);
    assert_eq!(rows, ["#1 pending [#1-bug-2]", "#1-bug-2 pending []"]);
}

/// A bug-fix never gets one of its own; its failures count on the task it mends.
#[test]
fn a_failing_bug_fix_counts_on_its_parent() {
    let red = json!({"worker": {"status": "completed"}, "check": {"failures": [{"command": "c"}]}});
    let mut item = task("#1-bug-1", "pending");
    item["mends"] = "#1".into();
    let mut parent = task("#1", "pending");
    parent["attempts"] = 1.into();
    let rows = settled(&item, &[&parent, &item], red.clone());
    assert_eq!(rows, ["#1-bug-1 pending ", "#1  "]);
    parent["attempts"] = 3.into();
    let rows = settled(&item, &[&parent, &item], red);
    assert_eq!(rows, ["#1-bug-1 failed ", "#1 failed "]);
}

#[test]
fn nothing_is_done_while_tasks_are_left() {
    let judge = |tasks: Value| call("ralph/judge-tasks", json!({"tasks": tasks}), json!({}));
    assert!(judge(json!([task("#1", "completed")])).is_ok());
    let none = judge(json!([])).unwrap_err();
    assert_eq!(none.message, "there are no tasks, so nothing can be done");
    let mut failed = task("#1", "failed");
    failed["error"] = "boom".into();
    let mut blocked = task("#2", "pending");
    blocked["blockedBy"] = json!(["#1"]);
    let left = judge(json!([failed, blocked, task("#3", "completed")])).unwrap_err();
    assert_eq!(
        (left.code.as_str(), left.message.as_str()),
        ("tasks", "2 of 3 tasks are not done: #1 failed: boom; #2 is blocked by #1")
    );
    failed["errorCode"] = "ceiling".into();
    assert_eq!(judge(json!([failed])).unwrap_err().code, "ceiling");
}

fn finding(title: &str, priority: u8) -> Value {
    json!({"title": title, "path": "src/lib.rs", "line": 3, "body": "…", "priority": priority})
}

fn fixed(state: &Value, findings: &Value, verdict: &str) -> Result<StepResult, StepError> {
    let mut values = json!({"limits": Limits::default(), "tasks": [task("#1", "completed")]});
    values.as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
    let review = json!({"findings": findings, "verdict": verdict});
    call("ralph/fixer", values, json!({"reviewer": review}))
}

#[test]
fn blocking_findings_become_tasks_until_the_review_is_clean_or_repeats_itself() {
    let tasks =
        fixed(&json!({}), &json!([finding("Wrong sum", 1), finding("Nit", 3)]), "incorrect");
    let tasks = tasks.unwrap();
    assert_eq!(tasks.goto, Some(Goto::One("select-ready-tasks".into())));
    assert_eq!(tasks.patch["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(tasks.patch["tasks"][0]["id"], "#2");

    let clean = fixed(&json!({}), &json!([finding("Nit", 3)]), "correct").unwrap();
    assert_eq!(clean.goto, None);

    let seen = json!({"findings": [finding("wrong SUM!", 0)], "reviewRound": 1});
    let again = fixed(&seen, &json!([finding("Wrong sum", 1)]), "incorrect").unwrap_err();
    assert!(again.message.starts_with("the review only repeats what it found before"));

    let late = fixed(&json!({"reviewRound": 2}), &json!([finding("New", 0)]), "incorrect");
    assert!(late.unwrap_err().message.starts_with("after 3 review rounds blocking findings"));

    let odd = fixed(&json!({}), &json!([]), "incorrect").unwrap_err();
    assert!(odd.message.contains("no finding of priority 0 or 1 says why"));
}

#[test]
fn the_examples_in_the_prompts_are_what_the_parsers_read() {
    let plan = super::plan::read_plan(include_str!("../../../../../assets/agents/planner.md"), 200)
        .unwrap();
    assert_eq!(plan.len(), 2);
    let report =
        super::settle::read_report(include_str!("../../../../../assets/agents/worker.md")).unwrap();
    assert_eq!(report["status"], "completed");
    let review =
        super::review::read_review(include_str!("../../../../../assets/agents/reviewer.md"))
            .unwrap();
    assert_eq!(review["verdict"], "incorrect");
}

#[test]
fn a_run_begins_with_its_prompt_and_its_ceilings() {
    let launch = Launch { prompt: "Build".into(), workers: Some(2), ..Launch::default() };
    let state = initial_state(&launch);
    assert_eq!(state["prompt"], "Build");
    assert_eq!(state["limits"]["reviewRounds"], 3);
}

#[test]
fn a_list_that_is_there_already_needs_no_planner() {
    let rows = [
        json!({"id": 1, "content": "a", "status": "completed"}),
        json!({"id": 2, "content": "b", "status": "failed", "blockedBy": [1]}),
    ];
    let limits = Limits { review_rounds: 7, ..Limits::default() };
    let workflow = ralph_with_tasks("ralph", &rows, &limits).unwrap();
    assert!(Program::compile(workflow.graph.clone()).is_ok());
    let kept = |id: &str| workflow.graph.nodes.iter().any(|node| node.id.as_str() == id);
    let planning = ["planner", "parse-tasks"];
    for node in &graph().nodes {
        assert_eq!(kept(node.id.as_str()), !planning.contains(&node.id.as_str()), "{}", node.id);
    }
    assert!(workflow.graph.nodes.iter().all(|node| node.description.is_some()));

    let state = workflow.initial_state.state(&Launch {
        prompt: "Build".into(),
        workers: Some(2),
        ..Launch::default()
    });
    let state = state.unwrap();
    assert_eq!((&state["prompt"], &state["workers"]), (&json!("Build"), &json!(2)));
    assert_eq!((&state["maxReviews"], &state["maxIterations"]), (&json!(7), &json!(100)));
    let shown: Vec<_> =
        state["tasks"].as_array().unwrap().iter().map(|t| (&t["id"], &t["status"])).collect();
    assert_eq!(shown, [(&json!("#1"), &json!("completed")), (&json!("#2"), &json!("pending"))]);
    // Whatever an ordinary run begins with is there as well.
    for key in initial_state(&Launch::default()).keys() {
        assert!(state.contains_key(key), "{key}");
    }

    let result = call("ralph/take-tasks", json!({"tasks": state["tasks"]}), json!({})).unwrap();
    let text = &result.output["progress"]["text"];
    assert_eq!(text, "- #1 a (done before)\n- #2 b (after #1)");

    let wrong =
        ralph_with_tasks("ralph", &[json!({"id": 1, "content": "a", "blockedBy": [3]})], &limits);
    assert_eq!(wrong.unwrap_err(), "task #1 is blocked by #3, which does not exist");
}
