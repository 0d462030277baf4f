//! Real agents over ACP, driven by the real binary.

use atomic_testing::model::{Ending, Received, Reply, Script, Turn};
use serde_json::json;

use super::program::Program::{self, Copilot, OpenCode};
use super::{Stand, demo_model};
use crate::process::{Nonce, Running};

fn backend(program: Program) -> &'static str {
    if program == OpenCode { "acp:opencode acp" } else { "acp:copilot --acp" }
}

/// The steps of a lane talk in one conversation, and a node names its own agent.
#[test]
fn agents_share_a_conversation_over_acp_and_others_are_named_by_nodes() {
    let turns =
        ["One", "Two", "Three"].map(|user| Turn::default().user(user).reply(Reply::say("Done.")));
    // What is told last is asked first: the other texts are still there.
    let script = turns.into_iter().rev().fold(Script::new(), Script::with);
    let stand = Stand::of(&[OpenCode, Copilot], script);
    let workflow = json!({ "name": "both", "nodes": [
        { "type": "agent", "id": "one", "prompt": "One" },
        { "type": "agent", "id": "two", "prompt": "Two" },
        { "type": "agent", "id": "three", "prompt": "Three", "backend": backend(Copilot) },
    ] });
    std::fs::write(stand.env.outside("both.json"), workflow.to_string()).unwrap();
    let both = stand.env.outside("both.json").display().to_string();
    let ended = stand.run(&["run", &both, "Go", "--backend", backend(OpenCode)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let second = stand.asked("Two").body["messages"].to_string();
    assert!(second.contains("One"), "the second knows the first: {second}");
    let third = stand.asked("Three").body["messages"].to_string();
    assert!(!third.contains("Two"), "another agent is another conversation: {third}");
    stand.has_no_processes();
}

/// A turn that was interrupted goes on in the same conversation.
#[test]
fn a_run_is_resumed_over_acp() {
    for program in [OpenCode, Copilot] {
        let before = Turn::default().user("Look").reply(Reply::say("Seen."));
        let hang = Reply { ending: Ending::Hang, ..Reply::say("Well") };
        let script = Script::new().with(Turn::default().user("Paint").reply(hang)).with(before);
        let stand = Stand::of(&[program], script);
        let workflow = json!({ "name": "both", "nodes": [
            { "type": "agent", "id": "one", "prompt": "Look" },
            { "type": "agent", "id": "two", "prompt": "Paint it" },
        ] });
        std::fs::write(stand.env.outside("both.json"), workflow.to_string()).unwrap();
        let both = stand.env.outside("both.json").display().to_string();
        let run = ["run", &both, "Go", "--backend", backend(program)];
        let mut running = Running::start(stand.atomic(&run));
        stand.asked("Paint it");
        running.signal("INT");
        let paused = running.end();
        assert_eq!(paused.code, Some(4), "{paused:?}");
        stand.has_no_processes();
        stand.server.replace(Script::new().with(Turn::default().reply(Reply::say("Blue."))));
        let before = stand.server.requests().len();
        let resumed = stand.run(&["resume", "last"]);
        assert_eq!(resumed.code, Some(0), "{resumed:?}");
        let after = stand.server.requests().split_off(before);
        let knows = |received: &Received| {
            let said = received.body["messages"].to_string();
            said.contains("Seen.") && said.contains("Paint it")
        };
        assert!(after.iter().any(knows), "{program:?} goes on with what was said");
    }
}

#[test]
fn nothing_outlives_us_over_acp() {
    for program in [OpenCode, Copilot] {
        let nonce = Nonce::new();
        let turn = Turn::default().user("Scatter").reply(program.runs(&nonce.scatter_and_hang()));
        let stand = Stand::of(&[program], Script::new().with(turn));
        let scatter = ["-p", "Scatter", "--backend", backend(program)];
        let running = Running::start(stand.atomic(&scatter));
        nonce.sleeps(4);
        running.kill();
        nonce.is_gone();
        stand.has_no_processes();
        let mut running = Running::start(stand.atomic(&scatter));
        nonce.sleeps(4);
        running.signal("INT");
        nonce.is_gone();
        assert_eq!(running.end().code, Some(4));
        stand.has_no_processes();
    }
}

/// Tests of more than a minute. `cargo xtask test --full` runs all of them, other runs a tenth.
mod long {
    use std::process::Command;

    use super::{OpenCode, Stand, backend, demo_model};

    /// Ralph from its plan to its end.
    #[test]
    fn ralph_builds_the_snake_game_over_acp() {
        let mut script = demo_model::script(OpenCode);
        // What an agent is told to be stands in front of its first prompt.
        for turn in &mut script.turns {
            turn.user.append(&mut turn.system);
        }
        let stand = Stand::of(&[OpenCode], script);
        stand.git(&["init", "--quiet", "--initial-branch=main"]);
        let identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
        let commit = ["commit", "--quiet", "--allow-empty", "--message", "Start"];
        stand.git(&[identity.as_slice(), commit.as_slice()].concat());
        let build = ["run", "ralph", "Build a snake game in Rust", "--backend", backend(OpenCode)];
        let ended = stand.run(&build);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let tasks = stand.env.tasks();
        assert_eq!(tasks.len(), 8, "{tasks:?}");
        assert!(tasks.iter().all(|task| task.ends_with(" completed")), "{tasks:?}");
        let facts = stand.env.facts();
        assert!(facts.iter().any(|fact| fact["backend"] == backend(OpenCode)), "it is recorded");
        for tool in ["write", "edit", "read", "shell"] {
            let used = |fact: &&serde_json::Value| fact["report"]["tool"] == tool;
            assert!(facts.iter().any(|fact| used(&fact)), "{tool} was never used");
        }
        let said = facts.iter().filter(|fact| fact["report"]["kind"] == "remarked").count();
        assert!(said > 0, "what cannot be done is said");
        let mut test = Command::new("cargo");
        test.args(["test", "--offline", "--quiet"]).current_dir(stand.env.work());
        let tested = test.env_remove("CARGO_TARGET_DIR").output().unwrap();
        assert!(tested.status.success(), "the game's own tests: {tested:?}");
        stand.has_no_processes();
    }
}
