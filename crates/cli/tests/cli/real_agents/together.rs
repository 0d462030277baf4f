//! One workflow on two real programs at once.

use std::sync::Arc;

use atomic_testing::agents::CLAUDE;
use atomic_testing::model::{Received, Reply, Script, Turn};
use serde_json::{Value, json};

use super::program::Program;
use super::{Stand, told};
use crate::terminal::typing;

const BOTH: [Program; 2] = [Program::Claude(CLAUDE), Program::OpenCode];

/// Each asks, and goes on with what it is told, then or later.
fn stand() -> Stand {
    let turns = BOTH.map(|program| {
        let name = program.name();
        let asks = Turn::default()
            .user(&format!("Paint for {name}"))
            .reply(program.asks(&[&format!("Which one for {name}?")]))
            .reply(Reply::say(&format!("{name} heard: {{result}}")));
        let knows = Turn::default()
            .user(&format!("You asked: Which one for {name}?"))
            .reply(Reply::say(&format!("{name} was told.")));
        [knows, asks]
    });
    let stand = Stand::of(&BOTH, turns.into_iter().flatten().fold(Script::new(), Script::with));
    let branches = BOTH.map(|program| {
        let name = program.name();
        let prompt = format!("Paint for {name}");
        json!({ "type": "agent", "id": format!("by-{name}"), "backend": name, "prompt": prompt })
    });
    let workflow = json!({ "name": "both", "nodes": [
        { "type": "parallel", "id": "both", "branches": branches },
        { "type": "tool", "id": "end", "command": "echo {outputs.both.by-claude} {outputs.both.by-opencode} > out" },
    ] });
    std::fs::write(stand.env.outside("both.json"), workflow.to_string()).unwrap();
    stand
}

impl Stand {
    fn both(&self) -> String {
        self.env.outside("both.json").display().to_string()
    }

    /// What each program was last asked with.
    fn last_of(&self, program: Program) -> Arc<Value> {
        let is_its = |received: &&Received| {
            received.body.to_string().contains(&format!("Paint for {}", program.name()))
        };
        let requests = self.server.requests();
        requests.iter().rfind(is_its).map(|received| Arc::clone(&received.body)).unwrap()
    }
}

#[test]
fn questions_of_both_are_answered_in_one_place() {
    let stand = stand();
    let waits = stand.run(&["run", &stand.both(), "Go", "--backend", "claude"]);
    assert_eq!(waits.code, Some(3), "{waits:?}");
    for program in BOTH {
        let question = format!("Which one for {}?", program.name());
        assert!(waits.stdout.contains(&question), "{question}: {}", waits.stdout);
    }
    stand.has_no_processes();
    for (question, answer) in [("q1", "Blue"), ("q2", "Red")] {
        let answered = stand.run(&["answer", "last", question, answer]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
    }
    let ended = stand.run(&["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let out = std::fs::read_to_string(stand.env.work().join("out")).unwrap();
    assert_eq!(out, "claude was told. opencode was told.\n");
    for program in BOTH {
        let name = program.name();
        let last = stand.last_of(program);
        let other = BOTH.iter().find(|other| other.name() != name).unwrap().name();
        assert_eq!(told(&last, "The user's answer: "), 1, "{name}: {last:#}");
        assert_eq!(told(&last, &format!("Paint for {name}")), 1, "{name}: {last:#}");
        assert!(!last.to_string().contains(&format!("Which one for {other}?")), "{name}: {last:#}");
    }
    assert!(stand.server.unmatched().is_empty(), "{:?}", stand.server.unmatched());
    stand.has_no_processes();
}

/// At a terminal one question comes after the other, and nobody is ended for it.
#[test]
fn at_a_terminal_both_are_asked_one_after_the_other() {
    let stand = stand();
    let command = stand.atomic(&["run", &stand.both(), "Go", "--backend", "claude"]);
    let nothing: &dyn Fn() = &|| {};
    let typed = [("? q1 ", "2\n", nothing), ("? q2 ", "2\n", nothing)];
    let ended = typing(&command, &typed);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    for program in BOTH {
        let last = stand.last_of(program);
        assert_eq!(told(&last, r#"?\"=\"Blue\""#), 1, "{}: {last:#}", program.name());
    }
    let out = std::fs::read_to_string(stand.env.work().join("out")).unwrap();
    assert!(out.contains("claude heard: ") && out.contains("opencode heard: "), "{out}");
    assert!(stand.server.unmatched().is_empty(), "{:?}", stand.server.unmatched());
    stand.has_no_processes();
}
