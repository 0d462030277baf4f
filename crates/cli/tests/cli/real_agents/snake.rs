//! The demo, played by the real programs.

use std::process::Command;

use atomic_testing::agents::CLAUDE;
use serde_json::Value;

use super::program::Program;
use super::{Stand, asking, demo_model};
use crate::process::Running;

/// An agent that asks, and then Ralph.
const GAME: &str = r#"{
  "name": "game",
  "sessionsDir": ".ralph/sessions",
  "nodes": [
    {"type": "agent", "id": "designer", "systemPrompt": "You choose looks.", "prompt": "Paint it: {prompt}"},
    {"type": "subgraph", "id": "build", "workflow": "ralph"}
  ]
}"#;

#[test]
fn claude_builds_the_snake_game() {
    ralph_builds_the_snake_game(Program::Claude(CLAUDE));
}

#[test]
fn opencode_builds_the_snake_game() {
    ralph_builds_the_snake_game(Program::OpenCode);
}

#[test]
fn copilot_builds_the_snake_game() {
    ralph_builds_the_snake_game(Program::Copilot);
}

/// A question, then Ralph plans, works, finds a bug by its own checks, fixes it, reviews, fixes what
/// the review found, is interrupted in the middle and goes on. Every file is written by the real
/// program.
fn ralph_builds_the_snake_game(program: Program) {
    let mut script = demo_model::script(program);
    script.turns.extend(asking(program).turns);
    let stand = Stand::of(&[program], script);
    stand.git(&["init", "--quiet", "--initial-branch=main"]);
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "Start"];
    stand.git(&[identity.as_slice(), commit.as_slice()].concat());

    std::fs::write(stand.env.outside("game.json"), GAME).unwrap();
    let game = stand.env.outside("game.json").display().to_string();
    let build = ["run", &game, "Build a snake game in Rust", "--backend", program.name()];
    let waiting = stand.run(&build);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    assert_eq!(stand.run(&["answer", "last", "Blue"]).code, Some(0));

    let mut running = Running::start(stand.atomic(&["resume", "last"]));
    stand.asked("Task #5:");
    running.signal("INT");
    let paused = running.end();
    assert_eq!(paused.code, Some(4), "{paused:?}");
    assert!(paused.stdout.contains("Resume with: atomic resume "), "{}", paused.stdout);

    let ended = stand.run(&["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let tasks = stand.env.tasks();
    assert_eq!(tasks.len(), 8, "{tasks:?}");
    assert!(tasks.iter().all(|task| task.ends_with(" completed")), "{tasks:?}");
    assert!(tasks.iter().any(|task| task.starts_with("#4-bug-1 ")), "a bug-fix task: {tasks:?}");
    assert!(tasks.iter().any(|task| task.starts_with("#7 ")), "a finding: {tasks:?}");
    assert!(stand.server.unmatched().is_empty(), "{:?}", stand.server.unmatched());
    used_the_tools_of_the_program(&stand);

    let mut test = Command::new("cargo");
    test.args(["test", "--offline", "--quiet"]).current_dir(stand.env.work());
    let tested = test.env_remove("CARGO_TARGET_DIR").output().unwrap();
    assert!(tested.status.success(), "the game's own tests: {tested:?}");
    assert_eq!(stand.git(&["status", "--porcelain"]), "", "everything is committed");
}

/// Nothing was asked before a tool was used, and all kinds of them were.
fn used_the_tools_of_the_program(stand: &Stand) {
    let facts = stand.env.facts();
    let used = |tool: &str| {
        let of_tool =
            |fact: &&Value| fact["report"]["tool"] == tool && fact["report"]["ok"] == true;
        facts.iter().filter(of_tool).count()
    };
    for tool in ["write", "edit", "read", "shell"] {
        assert!(used(tool) > 0, "{tool} was never used");
    }
    let asked = facts.iter().filter(|fact| fact["type"] == "question_asked").count();
    assert_eq!(asked, 1, "only the question of the designer");
    let spent = facts.iter().filter(|fact| fact["report"]["kind"] == "spent");
    let costs: Vec<Option<f64>> = spent.map(|fact| fact["report"]["cost_usd"].as_f64()).collect();
    let told = stand.env.summary()["costUsd"].as_f64();
    if stand.programs[0] == Program::Copilot {
        // It counts requests, not money.
        assert!(!costs.is_empty() && costs.iter().all(Option::is_none), "{costs:?}");
        assert_eq!(told, None);
        return;
    }
    let (cost, told) = (costs.iter().flatten().sum::<f64>(), told.unwrap());
    assert!(cost > 0.0 && (told - cost).abs() < 1e-6, "{told} is not {cost}");
}
