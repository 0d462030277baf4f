//! Runs whose provider refuses requests, as a user sees them.

use std::fs;

use serde_json::{Value, json};

use crate::engine::Project;
use crate::env::eventually;
use crate::process::{Running, SOON};

/// Every turn is refused as long as the file `down` is there, for ten minutes each time.
const REFUSED: &str = "[[outage]]\nwhile_file = \"down\"\nfail = \"rate_limit\"\nretry_after_s = 600\n\
     [[turn]]\ndo = [{ run = 'echo \"$ATOMIC_STEP\" >> \"$LEDGER\"' }, { say = \"ok\" }]\n";

fn two_agents() -> Value {
    let agent = |id: &str| json!({"type": "agent", "id": id, "prompt": format!("Do {id}")});
    json!({"nodes": [{"type": "parallel", "id": "both", "branches": [agent("a"), agent("b")]}]})
}

fn down() -> Project {
    let project = Project::scripted(REFUSED);
    project.write("down", "");
    project.write("flow.json", &two_agents().to_string());
    project
}

/// Waits until both agents wait for their provider.
fn both_wait(project: &Project) {
    let waits = || {
        let journal = project.sessions().first().map(|dir| dir.join("journal.jsonl"));
        let journal = journal.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        journal.matches("\"type\":\"provider_waiting\"").count() == 2
    };
    eventually("both agents wait", SOON, waits);
}

#[test]
fn a_wait_that_is_killed_is_resumed_now_and_has_cost_no_attempt() {
    let project = down();
    let running = Running::start(project.command("flow.json", &[]));
    both_wait(&project);
    running.kill();
    // Without --now the resume waits for the recorded time.
    let mut resumed = Running::start(project.env.atomic(["resume", "last"]));
    eventually("it is resumed", SOON, || !project.of_type("session_resumed").is_empty());
    assert!(!resumed.has_ended());
    assert!(project.env.ledger().is_empty());
    resumed.signal("INT");
    let resumed = resumed.end();
    assert_eq!(resumed.code, Some(4), "{resumed:?}");
    assert!(resumed.stdout.contains("waiting until "), "{resumed:?}");
    fs::remove_file(project.env.work().join("down")).unwrap();
    let ran = project.resume(&["--now"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("script answers again after"), "{ran:?}");
    let mut ledger = project.env.ledger();
    ledger.sort();
    assert_eq!(ledger.len(), 2, "{ledger:?}");
    assert!(ledger.iter().all(|step| step.ends_with("/1")), "the first attempts: {ledger:?}");
    assert_eq!(project.of_type("step_lost").len() + project.of_type("step_failed").len(), 0);
}

#[test]
fn the_end_of_the_window_pauses_with_the_reason_and_the_way_on() {
    let project = down();
    let ran = project.run_file("flow.json", &["--retry-window", "60s"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stdout.contains("waiting until "), "{ran:?}");
    assert_eq!(ran.stdout.matches("waiting until ").count(), 1, "told once: {ran:?}");
    let paused = ran.stdout.lines().find(|line| line.contains("Paused: ")).unwrap();
    assert!(paused.contains("limits the rate of requests (status 429)"), "{paused}");
    assert!(paused.contains("but --retry-window ends at "), "{paused}");
    assert!((ran.stdout + &ran.stderr).contains("atomic resume"));
}

#[test]
fn a_window_of_zero_fails_at_once() {
    let project = down();
    let ran = project.run_file("flow.json", &["--retry-window", "0"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(project.of_type("provider_waiting").len(), 0);
    assert!(ran.stderr.contains("limits the rate of requests (status 429)"), "{ran:?}");
}

#[test]
fn a_session_that_waits_fails_at_once_when_it_is_resumed_without_a_window() {
    let project = down();
    let running = Running::start(project.command("flow.json", &[]));
    both_wait(&project);
    running.kill();
    let ran = project.resume(&["--retry-window", "0"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("limits the rate of requests (status 429)"), "{ran:?}");
}

/// A question is an answer of the model: the other steps need not wait for the person.
#[test]
fn a_step_that_asks_when_the_provider_is_back_lets_the_others_follow() {
    let asks = "[[outage]]\nwhile_file = \"down\"\nfail = \"rate_limit\"\nretry_after_s = 600\n\
         [[turn]]\nprompt = [\"Do a\"]\n\
         do = [{ ask = { question = \"Which?\", options = [{ label = \"A\" }] } }, { say = \"ok\" }]\n\
         [[turn]]\ndo = [{ say = \"ok\" }]\n";
    let project = Project::scripted(asks);
    project.write("down", "");
    project.write("flow.json", &two_agents().to_string());
    let running = Running::start(project.command("flow.json", &["--on-question", "pause"]));
    both_wait(&project);
    running.kill();
    fs::remove_file(project.env.work().join("down")).unwrap();
    let ran = project.resume(&["--now"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let finished = project.of_type("step_finished");
    assert!(finished.iter().any(|fact| fact["step"] == "both#1[b]/b#1"), "{finished:?}");
}

#[test]
fn one_turn_at_the_prompt_waits_two_minutes_and_no_longer() {
    let project = down();
    let script = project.env.outside("script.toml").display().to_string();
    let ran = project.env.run(["-p", "Do it", "--backend", "script", "--script", &script]);
    assert_eq!(ran.code, Some(4), "the provider would be asked after ten minutes: {ran:?}");
}
