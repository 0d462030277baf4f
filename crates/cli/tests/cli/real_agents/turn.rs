//! One turn of each of the real programs, as itself and as an agent.

use std::fs;

use atomic_testing::model::{Reply, Script, Turn};
use serde_json::Value;

use super::Stand;
use super::program::Program::{self, Copilot, OpenCode};

#[test]
fn opencode_is_streamed_or_told_in_facts() {
    let facts = is_streamed_or_told_in_facts(OpenCode, "scripted/claude-beta-1", "claude-beta-1");
    let costs = facts.iter().filter_map(|fact| fact["report"]["cost_usd"].as_f64());
    assert!(costs.sum::<f64>() > 0.0, "{facts:#?}");
}

#[test]
fn copilot_is_streamed_or_told_in_facts() {
    let facts = is_streamed_or_told_in_facts(Copilot, "beta-1", "beta-1");
    let read = facts.iter().filter_map(|fact| fact["report"]["input_tokens"].as_u64());
    assert!(read.sum::<u64>() > 0, "{facts:#?}");
}

/// The words of the agent as they come, or the facts. The model that is chosen is the one that is
/// asked.
fn is_streamed_or_told_in_facts(program: Program, chosen: &str, asked: &str) -> Vec<Value> {
    let turn = Turn::default()
        .user("Greet")
        .reply(Reply::say("First I look.").and(program.shell("true")))
        .reply(Reply { chunk: 3.try_into().ok(), ..Reply::say("Hello, you.") });
    let stand = Stand::of(&[program], Script::new().with(turn));
    let ended = stand.run(&["-p", "Greet", "--backend", program.name()]);
    let said = "First I look.\nHello, you.\n";
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), said), "{ended:?}");
    // Beside the answer stands only who pays.
    let [line] = ended.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{ended:?}") };
    assert!(line.contains(": paid by the API key in "), "{ended:?}");
    assert!(stand.server.unmatched().is_empty(), "{:?}", stand.server.unmatched());

    // It is the only program that is installed, so it need not be named.
    let told = stand.run(&["-p", "Greet", "--json", "--model", chosen]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
    let facts: Vec<Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let opened = facts.iter().find(|fact| fact["type"] == "conversation_opened").unwrap();
    assert_eq!(opened["backend"], program.name());
    assert_eq!(stand.server.requests().last().unwrap().body["model"], asked);
    stand.has_no_processes();
    assert_eq!(super::opencode::dens(&stand), [""; 0]);
    facts
}

#[test]
fn an_agent_keeps_its_limits_on_opencode() {
    let of_claude = ".claude/agents/careful.md";
    let offered = keeps_its_limits(OpenCode, of_claude, "tools: Read, Grep\nmodel: sonnet");
    assert_eq!(offered, ["grep", "question", "read"]);
}

#[test]
fn an_agent_keeps_its_limits_on_copilot() {
    let of_claude = ".claude/agents/careful.md";
    let its_own = ".github/agents/careful.agent.md";
    // Copilot's `search` is more than one tool.
    for (file, head, searching) in [
        (of_claude, "tools: Read, Grep\nmodel: sonnet", &["grep"] as &[&str]),
        (its_own, "tools: ['read', 'search']\nmodel: GPT-5 (copilot)", &["glob", "grep"]),
    ] {
        let offered = keeps_its_limits(Copilot, file, head);
        let expected = [&["ask_questions", "ask_user"], searching, &["view"]].concat();
        assert_eq!(offered, expected, "{file}");
    }
}

/// An agent of this file: what its tools and its model are called, in the program it was written
/// for. What is not allowed is not done, whatever the model wants. Tells what the model is offered.
fn keeps_its_limits(program: Program, file: &str, head: &str) -> Vec<String> {
    let turn = Turn::default()
        .user("Try")
        .reply(program.writes("made.txt", "x"))
        .reply(program.runs("touch made.txt"))
        .reply(program.reads("notes.txt"))
        .reply(Reply::say("{result}"));
    let stand = Stand::of(&[program], Script::new().with(turn));
    fs::write(stand.env.work().join("notes.txt"), "It is noted.\n").unwrap();
    let file = stand.env.work().join(file);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let careful = format!("---\nname: careful\ndescription: Looks\n{head}\n---\nYou only look.\n");
    fs::write(&file, careful).unwrap();
    let ended = stand.run(&["-p", "Try", "--agent", "careful", "--backend", program.name()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for refused in ["answer#1: write ", "answer#1: shell "] {
        let told = |line: &str| line.starts_with(refused) && line.ends_with("failed");
        assert!(ended.stderr.lines().any(told), "{refused}: {ended:?}");
    }
    let told = ended.stderr.lines().filter(|line| line.starts_with("answer#1"));
    assert_eq!(told.count(), 2, "{ended:?}");
    assert!(ended.stdout.contains("It is noted."), "{}", ended.stdout);
    assert!(!stand.env.work().join("made.txt").exists(), "what is not allowed is not done");
    let asked = stand.asked("Try").body;
    assert_eq!(asked["model"], "plain-1", "the model that is set up");
    // The head of what is sent, whatever the API calls it.
    let system = [&asked["system"], &asked["messages"][0]["content"]];
    assert!(system.iter().any(|told| told.to_string().contains("You only look.")), "{system:?}");
    let tools = asked["tools"].as_array().unwrap().iter();
    let name = |tool: &Value| {
        let named = [&tool["name"], &tool["function"]["name"]];
        named.iter().find_map(|name| name.as_str()).unwrap().to_owned()
    };
    let mut offered: Vec<String> = tools.map(name).collect();
    offered.sort_unstable();
    offered
}
