//! Ceilings: what is met, what is said, and that a resume with a higher one finishes the work.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::process::Nonce;
use crate::scene::{Scene, cost, done, fail, note, review, reviewer, run, say, tokens, worker};

fn worker_starts(env: &TestEnv) -> usize {
    let is_start = |fact: &&Value| fact["type"] == "step_started" && fact["agent"] == "worker";
    env.facts().iter().filter(is_start).count()
}

/// Resumes with a script that now succeeds, and sees that no finished task was done again.
fn finish(env: &TestEnv, scene: &Scene, more: &[&str]) -> Ran {
    env.script(&scene.clone().rest().toml());
    let ran = env.run(["resume", "last"].iter().chain(more));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.summary()["status"], "completed");
    let steps: Vec<String> = env.ledger();
    let once: BTreeSet<&String> = steps.iter().collect();
    assert_eq!(once.len(), steps.len(), "no step twice: {steps:?}");
    ran
}

fn failed(env: &TestEnv, ran: &Ran, code: i32, says: &str) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    assert!(ran.stdout.contains("Resume with: atomic resume "), "{}", ran.stdout);
    assert_eq!(env.summary()["status"], "failed");
}

#[test]
fn attempts_at_a_task() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[]), ("#2", &[]), ("#3", &["#1"])]);
    let scene = plan.clone().turn(worker("Task #1:").does([fail("exit")])).rest();
    let ran = env.ralph(&scene.toml(), &["--max-attempts", "3"]);
    failed(&env, &ran, 1, "#1 failed");
    assert_eq!(env.tasks(), ["#1 failed", "#2 completed", "#3 pending"]);
    assert_eq!(worker_starts(&env), 3 + 1);
    finish(&env, &plan, &["--max-attempts", "9"]);
    assert_eq!(env.ledger().len(), 3);
}

#[test]
fn starts_of_a_worker() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"])]);
    let ran = env.ralph(&plan.clone().rest().toml(), &["--max-iterations", "2"]);
    failed(&env, &ran, 5, "#3 failed");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed", "#3 failed"]);
    assert_eq!(worker_starts(&env), 2);
    finish(&env, &plan, &["--max-iterations", "20"]);
    assert_eq!(env.ledger().len(), 3);
}

#[test]
fn review_rounds() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[])]);
    let scene = plan.clone().turn(reviewer().does([review(&["It leaks"])])).workers();
    let ran = env.ralph(&scene.toml(), &["--max-review-rounds", "1"]);
    failed(&env, &ran, 1, "after 1 review rounds blocking findings are left: It leaks");
    assert_eq!(env.tasks(), ["#1 completed"]);
    // The finding is still there, is mended now, and the next review is content.
    let mended = plan.turn(reviewer().and("Review round 1").does([review(&["It leaks"])]));
    finish(&env, &mended, &["--max-review-rounds", "3"]);
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
}

#[test]
fn a_review_that_only_repeats_itself_ends_the_loop() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])])
        .turn(reviewer().and("Review round 1").does([review(&["It leaks"])]))
        .turn(reviewer().does([review(&["it LEAKS."])]))
        .workers();
    let ran = env.ralph(&scene.toml(), &["--max-review-rounds", "9"]);
    failed(&env, &ran, 1, "the review only repeats what it found before, and it is still there");
    assert!(ran.stderr.contains("it LEAKS."), "{}", ran.stderr);
    let reviews = env.facts();
    let reviews =
        reviews.iter().filter(|f| f["type"] == "step_started" && f["agent"] == "reviewer");
    assert_eq!(reviews.count(), 2);
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
}

#[test]
fn tokens_spent() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[]), ("#2", &["#1"])]);
    let dear = worker("Task #1:").does([note(), tokens(600), done("it was dear")]);
    let scene = plan.clone().turn(dear).rest();
    let ran = env.ralph(&scene.toml(), &["--max-tokens", "500"]);
    failed(
        &env,
        &ran,
        5,
        "stopped at the budget: used 600 of 500 tokens (100 over); resume with a higher --max-tokens",
    );

    // The ceiling stays: resumed without a higher one, nobody is prompted.
    let calls = || fs::read_to_string(env.session().join("logs/agent-calls.jsonl")).unwrap();
    let prompted = calls();
    let again = env.run(["resume", "last"]);
    failed(
        &env,
        &again,
        5,
        "stopped at the budget: used 600 of 500 tokens (100 over); resume with a higher --max-tokens",
    );
    assert_eq!(calls(), prompted, "nobody works past a ceiling");

    env.script(&plan.rest().toml());
    let ran = env.run(["resume", "last", "--max-tokens", "100000"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
}

#[test]
fn money_spent() {
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[]), ("#2", &["#1"])]);
    let dear = worker("Task #1:").does([note(), cost(2.5), say("and now I think"), fail("hang")]);
    let ran = env.ralph(&plan.clone().turn(dear).rest().toml(), &["--max-cost", "2"]);
    failed(
        &env,
        &ran,
        5,
        "stopped at the budget: spent $2.50 of $2.00 ($0.50 over); resume with a higher --max-cost",
    );
    assert_eq!(env.summary()["costUsd"], 2.5);
    env.script(&plan.rest().toml());
    let ran = env.run(["resume", "last", "--max-cost", "10"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_ceiling_in_money_is_refused_where_costs_are_not_reported() {
    let refused = |ran: &Ran| {
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("script does not report what its turns cost"), "{ran:?}");
        assert!(ran.stderr.contains("or use --max-tokens or --timeout"), "{ran:?}");
    };
    let env = TestEnv::new();
    let plan = Scene::of(&[("#1", &[])]).without_costs();
    let scene = plan.turn(worker("Task #1:").does([fail("login")])).rest();
    refused(&env.ralph(&scene.toml(), &["--max-cost", "2"]));
    assert!(!env.work().join(".ralph").exists(), "nothing was started");

    assert_eq!(env.ralph(&scene.toml(), &[]).code, Some(1));
    let before = env.facts();
    refused(&env.run(["resume", "last", "--max-cost", "2"]));
    assert_eq!(env.facts(), before, "nothing was started");
}

#[test]
fn time_for_the_whole_run() {
    let env = TestEnv::new();
    let nonce = Nonce::new();
    let plan = Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"])]);
    let slow = worker("Task #2:").does([run(&nonce.scatter_and_hang())]);
    let ran = env.ralph(&plan.clone().turn(slow).rest().toml(), &["--timeout", "6s"]);
    nonce.is_gone();
    failed(&env, &ran, 5, "the run has used all of its 6 s");
    assert_eq!(env.tasks(), ["#1 completed", "#2 failed", "#3 pending"]);
    finish(&env, &plan, &["--timeout", "1h"]);
}
