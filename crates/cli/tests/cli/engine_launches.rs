//! How often agents can be launched at most: said beforehand, recorded, and held.

use serde_json::{Value, json};

use crate::engine::{Project, tool};
use crate::scene::Scene;

/// Three agents in a row, one of them in a loop of up to four rounds, one tried up to twice.
fn bounded() -> Value {
    json!({"nodes": [
        {"type": "agent", "id": "plan", "prompt": "Plan", "retry": {"maxAttempts": 2}},
        {"type": "criteriaLoop", "id": "polish", "completionSignal": "GOOD", "maxIterations": 4,
            "taskNodes": [{"type": "agent", "id": "better", "prompt": "Better"}]},
        {"type": "parallelSubagent", "id": "reviews", "agents": [
            {"agent": "reviewer", "task": "Review"}, {"agent": "worker", "task": "Work"},
        ]},
        tool("test", "true"),
    ]})
}

/// Every agent says `GOOD` and puts its step in the ledger.
const GOOD: &str = "[[turn]]\ndo = [\n  { run = 'echo \"$ATOMIC_STEP\" >> \"$LEDGER\"' },\n  \
                    { say = \"GOOD\" }\n]\n";

/// Nothing was begun, and nothing was noted anywhere.
fn nothing_was_started(project: &Project) {
    assert_eq!(project.env.ledger(), Vec::<String>::new());
    assert!(!project.env.work().join(".atomic").exists(), "there is no session");
    assert!(!project.env.outside("home/.atomic").exists(), "and none in the list");
}

#[test]
fn a_plan_is_printed_and_nothing_is_started() {
    let project = Project::scripted(GOOD);
    let planned = project.run(&bounded(), &["--plan"]);
    insta::assert_snapshot!(project.shown(&planned), @r"
    agent launches: at most 8
    agents at once: at most 2
      plan: at most 2
      polish/better: at most 4
      reviews[reviewer]/reviewer: at most 1
      reviews[worker]/worker: at most 1
    holds until one of these changes: `maxIterations`, --max-launches
    not counted: a step that is cut off and started again, and a failed run that is resumed
    --- exit code 0
    ");
    nothing_was_started(&project);

    let project = Project::scripted(GOOD);
    let planned = project.run(&unbounded(), &["--plan"]);
    insta::assert_snapshot!(project.shown(&planned), @r"
    agent launches: no limit
    agents at once: at most 1
      again/work: no limit
    no limit at `again`: nothing limits how often the loop goes round; set `maxIterations`, or `maxVisits` of `again/work`, or set --max-launches
    holds until one of these changes: `maxIterations`, --max-launches
    not counted: a step that is cut off and started again, and a failed run that is resumed
    --- exit code 0
    ");
    nothing_was_started(&project);
}

/// A prompt is not needed to see what a run would cost.
#[test]
fn a_plan_needs_neither_a_prompt_nor_a_script() {
    let project = Project::new();
    project.write("flow.json", &bounded().to_string());
    let planned = project.env.run(["run", "flow.json", "--plan"]);
    assert_eq!((planned.code, planned.stderr.as_str()), (Some(0), ""), "{planned:?}");
    nothing_was_started(&project);
}

#[test]
fn a_run_that_could_launch_too_many_is_refused_before_anything_is_started() {
    let project = Project::scripted(GOOD);
    let refused = project.run(&bounded(), &["--max-launches", "7"]);
    insta::assert_snapshot!(project.shown(&refused), @r"
    --- stderr
    error: the workflow can launch an agent up to 8 times, and --max-launches allows 7; raise it, or see with --plan which nodes are launched how often
    --- exit code 1
    ");
    nothing_was_started(&project);
    let planned = project.run(&bounded(), &["--max-launches", "7", "--plan"]);
    assert_eq!((planned.code, &planned.stderr), (Some(1), &refused.stderr), "{planned:?}");
    assert!(planned.stdout.contains("agent launches: at most 8"), "{}", planned.stdout);
    nothing_was_started(&project);

    let ran = project.run(&bounded(), &["--max-launches", "8"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let certified = project.of_type("launches_certified");
    assert_eq!(certified.len(), 1);
    assert_eq!((&certified[0]["launches"], &certified[0]["at_once"]), (&json!(8), &json!(2)));
    let launched = project.env.ledger().len();
    assert_eq!(launched, 4, "a plan, a round, two reviews: never more than was certified");
}

/// A loop that ends when the agent says so, and nothing says when that is.
fn unbounded() -> Value {
    json!({"nodes": [
        {"type": "loop", "id": "again", "maxIterations": 0,
            "until": {"says": {"node": "work", "text": "GOOD"}},
            "nodes": [{"type": "agent", "id": "work", "prompt": "Work, so far: {outputs.work?}"}]},
        tool("after", "touch after"),
    ]})
}

#[test]
fn the_launch_one_too_many_is_refused_and_more_can_be_allowed() {
    let mut script = String::new();
    for (before, after) in [("iiii", "GOOD"), ("iii", "iiii"), ("ii", "iii"), ("i", "ii")] {
        let prompt = format!("so far: {before}");
        script += &format!("[[turn]]\nprompt = [{prompt:?}]\nabsent = [\"so far: {before}i\"]\n");
        script += &format!(
            "do = [{{ run = 'echo \"$ATOMIC_STEP\" >> \"$LEDGER\"' }}, {{ say = {after:?} }}]\n"
        );
    }
    script +=
        "[[turn]]\ndo = [{ run = 'echo \"$ATOMIC_STEP\" >> \"$LEDGER\"' }, { say = \"i\" }]\n";
    let project = Project::scripted(&script);
    let stopped = project.run(&unbounded(), &["--max-launches", "2"]);
    insta::assert_snapshot!(project.shown(&stopped), @r"
    [TIME] Started Flow session: SESSION
    [TIME] Failed: the run has used all of its 2 launches of an agent; resume with a higher --max-launches
    Failed Flow session: SESSION
    Resume with: atomic resume SESSION
    --- stderr
    error: the run has used all of its 2 launches of an agent; resume with a higher --max-launches
    --- exit code 5
    ");
    assert_eq!(project.env.ledger().len(), 2);
    let certified = &project.of_type("launches_certified")[0];
    assert_eq!(certified.get("launches"), None, "{certified}");
    assert_eq!(
        certified["unbounded"],
        json!(["again: nothing limits how often the loop goes round"])
    );

    let stopped = project.resume(&[]);
    assert_eq!((stopped.code, project.env.ledger().len()), (Some(5), 2), "{stopped:?}");
    let stopped = project.resume(&["--max-launches", "4"]);
    assert_eq!((stopped.code, project.env.ledger().len()), (Some(5), 4), "{stopped:?}");
    let ended = project.resume(&["--max-launches", "9"]);
    assert_eq!((ended.code, project.env.ledger().len()), (Some(0), 5), "{ended:?}");
    assert!(project.env.work().join("after").exists());
}

#[test]
fn ralph_is_certified_again_when_there_is_a_plan() {
    let project = Project::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])]).rest();
    let ran = project.env.ralph(&scene.toml(), &["--check", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let facts = project.env.facts();
    let certified: Vec<_> =
        facts.iter().filter(|fact| fact["type"] == "launches_certified").collect();
    assert_eq!(certified.len(), 2, "{certified:?}");
    assert_eq!(certified[0].get("launches"), None, "without a plan there is no bound");
    let most = certified[1]["launches"].as_u64().unwrap();
    let said = format!("At most {most} launches of an agent");
    assert!(ran.stdout.contains(&said), "{said}: {}", ran.stdout);
    // In the same breath as the plan, before anything that follows from it.
    let place = |kind: &str, step: &str| {
        let found = facts.iter().position(|f| f["type"] == kind && f["step"] == step);
        found.unwrap_or_else(|| panic!("{kind} {step}"))
    };
    let planned = place("step_finished", "parse-tasks#1");
    let worked = place("step_started", "select-ready-tasks#1[#1]/worker#1");
    let again = facts.iter().rposition(|fact| fact["type"] == "launches_certified").unwrap();
    assert!(planned < again && again < worked, "{planned} {again} {worked}");
    let launched = facts.iter().filter(|f| f["type"] == "step_started" && f.get("agent").is_some());
    assert!(launched.count() as u64 <= most);
}

/// A fan of agents over a list that is empty until something has failed.
fn grows(before: &Value) -> Value {
    json!({"state": {"xs": []}, "nodes": [before, {"type": "each", "id": "all", "over": "xs",
        "node": {"type": "subagent", "id": "work", "agent": "worker", "task": "Work"}}]})
}

#[test]
fn what_a_failure_changes_is_certified_again() {
    let update = json!({"action": "skip", "stateUpdate": {"xs": [1, 2, 3, 4, 5]}});
    let fails = json!({"type": "tool", "id": "list", "command": "exit 3", "onError": update});
    let branches = json!([fails, tool("other", "true")]);
    let inside = json!({"type": "parallel", "id": "both", "branches": branches});
    for before in [fails, inside] {
        let project = Project::scripted(GOOD);
        project.ends(&grows(&before), 0);
        let facts = project.facts();
        let certified: Vec<usize> = (0..facts.len())
            .filter(|number| facts[*number]["type"] == "launches_certified")
            .collect();
        let most: Vec<_> = certified.iter().map(|number| &facts[*number]["launches"]).collect();
        assert_eq!(most, [&json!(0), &json!(5)], "{before}");
        assert_eq!(project.env.ledger().len(), 5, "{before}");
        let first =
            facts.iter().position(|f| f["type"] == "step_started" && f["agent"].is_string());
        assert!(certified[1] < first.unwrap(), "before anybody is launched: {before}");
    }
}

/// What one branch has changed is seen by nobody else before the branches come together.
#[test]
fn what_only_one_branch_sees_is_certified_again() {
    let project = Project::scripted(GOOD);
    let update = json!({"action": "skip", "stateUpdate": {"xs": [1, 2, 3, 4, 5]}});
    let mut grows =
        grows(&json!({"type": "tool", "id": "list", "command": "exit 3", "onError": update}));
    let state = grows.as_object_mut().unwrap().remove("state").unwrap();
    grows["id"] = json!("left");
    let workflow = json!({"state": state, "nodes": [
        {"type": "parallel", "id": "both", "branches": [grows, tool("other", "true")]}]});
    project.ends(&workflow, 0);
    assert_eq!(project.env.ledger().len(), 5);
    let most = project.of_type("launches_certified").pop().unwrap();
    assert_eq!(most["launches"], 5);
}

#[test]
fn the_tasks_a_loop_has_read_are_certified_again() {
    let project = Project::scripted(GOOD);
    let task = |id: &str| json!({"id": id, "name": id, "description": "", "status": "pending"});
    let tasks = json!({"version": "1.0", "tasks": [task("a"), task("b"), task("c")]});
    project.write("research/tasks.json", &tasks.to_string());
    let workflow = json!({"state": {"tasks": []}, "nodes": [
        {"type": "taskLoop", "id": "loop", "taskNodes": [tool("do", "true")]},
        {"type": "each", "id": "all", "over": "tasks",
            "node": {"type": "subagent", "id": "work", "agent": "worker", "task": "Work"}},
    ]});
    project.ends(&workflow, 0);
    let certified = project.of_type("launches_certified");
    let most = certified.last().unwrap()["launches"].as_u64().unwrap();
    let launched = project.env.ledger().len() as u64;
    assert!(launched <= most, "{launched} launched, {most} certified: {certified:?}");
    assert_eq!(launched, 3);
}
