//! Budgets that are met inside a turn, and what each task has cost.

use std::fs;

use crate::env::{TestEnv, eventually};
use crate::process::{Running, SOON};
use crate::scene::{Scene, done, fail, note, say, wait_for, worker};

/// A call of a model, as a program reports it that states the cost at the end of the turn.
fn call(usd: f64) -> String {
    format!("{{ usage = {{ input_tokens = 10, output_tokens = 1, estimated_usd = {usd:?} }} }}")
}

/// The program's own figures at the end of a turn.
fn total(usd: f64) -> String {
    format!(
        "{{ usage = {{ input_tokens = 30, output_tokens = 3, cost_usd = {usd:?}, is_total = true }} }}"
    )
}

#[test]
fn a_turn_is_stopped_by_the_call_that_crosses_the_limit() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[])]);
    let dear = worker("Task #1:").does([note(), call(1.0), call(0.62), say("more"), fail("hang")]);
    let ran = env.ralph(&plan.turn(dear).rest().toml(), &["--max-cost", "1.5"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let told = "stopped at the budget: spent $1.62 (estimated) of $1.50 ($0.12 over); resume with \
                a higher --max-cost";
    assert!(ran.stderr.contains(told), "{ran:?}");
    let summary = env.summary();
    assert_eq!((&summary["costUsd"], &summary["estimated"]), (&1.62.into(), &true.into()));
    assert_eq!(summary["tokens"], 22);
}

#[test]
fn the_total_of_a_turn_replaces_what_was_reported_of_its_calls() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[]), ("#2", &["#1"])]);
    let one = worker("Task #1:").does([note(), call(1.0), call(2.0), total(2.5), done("ok")]);
    let two = worker("Task #2:").does([note(), call(0.25), done("ok")]);
    let ran = env.ralph(&plan.turn(one).turn(two).rest().toml(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let summary = env.summary();
    assert_eq!(summary["costUsd"], 2.75);
    let tasks = serde_json::json!({
        "#1": {"costUsd": 2.5, "tokens": 33, "estimated": false},
        "#2": {"costUsd": 0.25, "tokens": 11, "estimated": true},
    });
    assert_eq!(summary["taskCosts"], tasks);
}

#[test]
fn a_task_that_costs_too_much_fails_and_the_others_go_on() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[]), ("#2", &[])]);
    let dear = worker("Task #1:").does([note(), call(1.0), call(2.0), fail("hang")]);
    let cheap = worker("Task #2:").does([note(), call(0.5), done("ok")]);
    let scene = plan.turn(dear).turn(cheap).rest().toml();
    let ran = env.ralph(&scene, &["--max-task-cost", "2.5"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    let tasks = env.tasks();
    assert_eq!(tasks, ["#1 failed", "#2 completed"], "{ran:?}");
    let list = fs::read_to_string(env.session().join("tasks.json")).unwrap();
    let told = "task #1 was stopped at its budget: spent $3.00 (estimated) of $2.50 ($0.50 over)";
    assert!(list.contains(told), "{list}");
    let starts = env.facts().into_iter().filter(|fact| fact["type"] == "step_started");
    let steps: Vec<String> = starts.map(|fact| fact["step"].to_string()).collect();
    let of_dear = steps.iter().filter(|step| step.contains("[#1]/worker")).count();
    assert_eq!(of_dear, 1, "the task is not tried again: {steps:?}");
    assert_eq!(env.summary()["taskCosts"]["#1"]["costUsd"], 3.0);
}

/// A check costs nothing, and the work is paid for.
#[test]
fn work_whose_last_call_crosses_the_budget_of_its_task_is_still_checked() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[])]);
    let work = worker("Task #1:").does([note(), call(1.0), total(2.0), done("ok")]);
    let scene = plan.turn(work).rest().toml();
    let ran = env.ralph(&scene, &["--max-task-cost", "1.5", "--check", "sleep 0.5"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed"]);
    assert!(ran.stdout.contains("Cost: $2.00, 33 tokens"), "{ran:?}");
}

/// The program that goes on after a wait does not know what the one before has spent.
#[test]
fn what_was_spent_before_a_refusal_is_not_replaced_by_a_later_total() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[])]);
    let first = worker("Task #1:").does([call(1.0), fail("rate_limit")]);
    let second = worker("cut off").does([note(), total(0.25), done("ok")]);
    let command = env.ralph_command(&plan.turn(second).turn(first).rest().toml(), &[]);
    let running = Running::start(command);
    let waits = || {
        let journal = fs::read_dir(env.work().join(".ralph/sessions"));
        journal.is_ok_and(|mut all| all.next().is_some())
            && env.session().join("journal.jsonl").exists()
            && env.facts().iter().any(|fact| fact["type"] == "provider_waiting")
    };
    eventually("the run waits", SOON, waits);
    running.kill();
    let ran = env.run(["resume", "last", "--now"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let summary = env.summary();
    assert_eq!((&summary["costUsd"], &summary["estimated"]), (&1.25.into(), &true.into()));
    assert_eq!(summary["tokens"], 44);
}

/// What a call has cost is on disk as soon as it is over.
#[test]
fn what_calls_have_cost_outlives_a_kill_between_them() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[])]);
    let work = worker("Task #1:").does([note(), call(1.0), wait_for("go"), call(0.5), done("ok")]);
    let command = env.ralph_command(&plan.turn(work).rest().toml(), &[]);
    let mut running = Running::start(command);
    let is_told = || {
        let sessions = fs::read_dir(env.work().join(".ralph/sessions"));
        sessions.is_ok_and(|mut all| all.next().is_some())
            && env.session().join("journal.jsonl").exists()
            && env.facts().iter().any(|fact| fact["report"]["estimated_usd"] == 1.0)
    };
    eventually("the call is on disk", SOON, is_told);
    running.child().kill().unwrap();
    running.end();
    fs::write(env.work().join("go"), "").unwrap();
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The turn is played from its start: the first call is made, and paid, once more.
    let summary = env.summary();
    assert_eq!((&summary["costUsd"], &summary["estimated"]), (&2.5.into(), &true.into()));
    assert_eq!(
        (&summary["tokens"], &summary["taskCosts"]["#1"]["costUsd"]),
        (&33.into(), &2.5.into())
    );
}
