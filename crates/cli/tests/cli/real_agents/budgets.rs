//! Budgets that are met inside a turn of each of the real programs.

use std::time::Duration;

use atomic_testing::model::{Chosen, Reply, Script, Turn, Usage};
use serde_json::Value;

use super::Stand;
use super::program::Program::{self, Claude, Copilot, OpenCode};

/// What the server bills for a call.
const READ: u64 = 1_000;
const WRITTEN: u64 = 100;

/// The third call is never answered, so that exactly two are billed.
const NEVER: Duration = Duration::from_secs(600);

fn stand(program: Program) -> Stand {
    let usage = Usage {
        input: Some(READ),
        output: Some(WRITTEN),
        cache_read: Some(0),
        cache_write: Some(0),
    };
    let call = || Reply { usage, ..program.runs("true") };
    let never = Reply { delay: NEVER, ..Reply::say("Nobody waits for this.") };
    let turn = Turn::default().user("Greet").reply(call()).reply(call()).reply(never);
    Stand::of(&[program], Script::new().with(turn))
}

/// Runs one turn to its budget. Returns the words of its end and the facts.
fn stopped(stand: &Stand, program: Program, more: &[&str]) -> (String, Vec<Value>) {
    let mut args = vec!["-p", "Greet", "--json", "--backend", program.name()];
    args.extend(more);
    let ended = stand.run(&args);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let facts: Vec<Value> =
        ended.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let requests = stand.server.requests();
    let calls = requests.iter().filter(|it| matches!(it.chosen, Chosen::Turn { .. })).count();
    assert!((2..=3).contains(&calls), "at most one call after the limit: {calls}");
    stand.has_no_processes();
    let end = facts.iter().find(|fact| fact["type"] == "run_finished").unwrap();
    let said = end.to_string();
    let from = said.find("stopped at the budget").unwrap_or(0);
    (said[from..].to_owned(), facts)
}

fn tokens_hold(program: Program) {
    let stand = stand(program);
    let (said, facts) = stopped(&stand, program, &["--max-tokens", "1650"]);
    let billed = 2 * (READ + WRITTEN);
    let over = billed - 1_650;
    let told = format!("stopped at the budget: used {billed} of 1650 tokens ({over} over)");
    assert!(said.starts_with(&told), "{said}\n{facts:#?}");
}

/// A budget of one call and a half; a call costs this many dollars.
fn money_holds(program: Program, model: &[&str], price: f64, mark: &str) {
    let stand = stand(program);
    let limit = format!("{:.6}", price * 1.5);
    let mut args = vec!["--max-cost", &limit];
    args.extend(model);
    let (said, facts) = stopped(&stand, program, &args);
    let told = format!(
        "stopped at the budget: spent ${:.6}{mark} of ${limit} (${:.6} over)",
        price * 2.0,
        price * 0.5
    );
    assert!(said.starts_with(&told), "{said}\nnot {told}\n{facts:#?}");
}

#[test]
fn claude_keeps_to_a_budget_of_tokens() {
    tokens_hold(Claude("2.1.325"));
    tokens_hold(Claude("2.1.197"));
}

#[test]
fn opencode_keeps_to_a_budget_of_tokens() {
    tokens_hold(OpenCode);
}

#[test]
fn copilot_keeps_to_a_budget_of_tokens() {
    tokens_hold(Copilot);
}

#[test]
fn claude_keeps_to_a_budget_of_money() {
    // $1 and $5 for a million tokens. The program states the sum itself, so nothing is estimated.
    let model = ["--model", "claude-haiku-4-5"];
    money_holds(Claude("2.1.325"), &model, 0.0015, "");
    money_holds(Claude("2.1.197"), &model, 0.0015, "");
}

#[test]
fn opencode_keeps_to_a_budget_of_money() {
    let facts = stopped(&stand(OpenCode), OpenCode, &["--max-tokens", "1650"]).1;
    let costs: Vec<f64> =
        facts.iter().filter_map(|fact| fact["report"]["cost_usd"].as_f64()).collect();
    money_holds(OpenCode, &[], costs[0], "");
}

#[test]
fn copilot_keeps_to_a_budget_of_money() {
    money_holds(Copilot, &["--model", "claude-haiku-4.5"], 0.0015, " (estimated)");
}

#[test]
fn copilot_refuses_a_budget_of_money_where_no_price_is_known() {
    let stand = stand(Copilot);
    let args = ["-p", "Greet", "--backend", "copilot", "--model", "plain-1", "--max-cost", "1"];
    let refused = stand.run(&args);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told = "no price is known for the model `plain-1` on copilot";
    assert!(refused.stderr.contains(told), "{refused:?}");
    assert!(stand.server.requests().is_empty());
}
