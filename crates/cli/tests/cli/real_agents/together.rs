//! One workflow on all the real programs at once.

use std::sync::Arc;

use atomic_testing::agents::CLAUDE;
use atomic_testing::model::{Ending, Received, Reply, Script, Turn};
use serde_json::{Value, json};

use super::program::Program;
use super::{ASKED, Stand, heard, told};
use crate::env::eventually;
use crate::process::Running;
use crate::terminal::typing;

const ALL: [Program; 3] = [Program::Claude(CLAUDE), Program::OpenCode, Program::Copilot];

/// Each asks, and goes on with what it is told, then or later. One may be held up before it asks,
/// until it is cut off.
fn stand(held: Option<Program>) -> Stand {
    let turns = ALL.map(|program| {
        let name = program.name();
        let paints = || Turn::default().user(&format!("Paint for {name}"));
        let asks = |turn: Turn| {
            turn.reply(program.asks(&[&format!("Which one for {name}?")]))
                .reply(Reply::say(&format!("{name} heard: {{result}}")))
        };
        let knows = Turn::default()
            .user(&format!("You asked: Which one for {name}?"))
            .reply(Reply::say(&format!("{name} was told.")));
        let begins = match held {
            // A command that takes long may be left running, and the model asked again.
            Some(held) if held == program => paints()
                .reply(program.runs("touch held; sleep 300"))
                .reply(Reply { ending: Ending::Hang, ..Reply::default() }),
            _ => asks(paints()),
        };
        [knows, asks(paints().user("cut off")), begins]
    });
    let stand = Stand::of(&ALL, turns.into_iter().flatten().fold(Script::new(), Script::with));
    let branches = ALL.map(|program| {
        let name = program.name();
        let prompt = format!("Paint for {name}");
        json!({ "type": "agent", "id": format!("by-{name}"), "backend": name, "prompt": prompt })
    });
    let outputs = ALL.map(|program| format!("{{outputs.all.by-{}}}", program.name())).join(" ");
    let workflow = json!({ "name": "all", "nodes": [
        { "type": "parallel", "id": "all", "branches": branches },
        { "type": "tool", "id": "end", "command": format!("echo {outputs} > out") },
    ] });
    std::fs::write(stand.env.outside("all.json"), workflow.to_string()).unwrap();
    stand
}

impl Stand {
    fn all(&self) -> String {
        self.env.outside("all.json").display().to_string()
    }

    /// What each program was last asked with.
    fn last_of(&self, program: Program) -> Arc<Value> {
        let is_its = |received: &&Received| {
            received.body.to_string().contains(&format!("Paint for {}", program.name()))
        };
        let requests = self.server.requests();
        requests.iter().rfind(is_its).map(|received| Arc::clone(&received.body)).unwrap()
    }

    /// Answers the question of a program with what nobody else is told.
    fn answer(&self, program: Program) {
        let name = program.name();
        let facts = self.env.facts();
        let text = format!("Which one for {name}?");
        let asked = facts.iter().rfind(|fact| fact["question"]["question"] == text.as_str());
        let id = asked.unwrap()["id"].as_str().unwrap();
        let answered = self.run(&["answer", "last", id, &format!("Blue for {name}")]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
    }

    /// The run waits for the answers of these and of nobody else.
    fn waits_for(&self, args: &[&str], asking: &[Program]) {
        let waits = self.run(args);
        assert_eq!(waits.code, Some(3), "{waits:?}");
        for program in ALL {
            let question = format!("Which one for {}?", program.name());
            let is_asked = waits.stdout.contains(&question);
            assert_eq!(is_asked, asking.contains(&program), "{question}: {}", waits.stdout);
        }
        self.has_no_processes();
    }

    /// Everybody was told its own answer, once, and nothing of the others.
    fn ends_well(&self) {
        let ended = self.run(&["resume", "last"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let out = std::fs::read_to_string(self.env.work().join("out")).unwrap();
        assert_eq!(out, "claude was told. opencode was told. copilot was told.\n");
        for program in ALL {
            let name = program.name();
            let last = self.last_of(program);
            assert_eq!(told(&last, "The user's answer: "), 1, "{name}: {last:#}");
            let answer = format!("The user's answer: Blue for {name}");
            assert_eq!(told(&last, &answer), 1, "{name}: {last:#}");
            for other in ALL.iter().filter(|other| other.name() != name) {
                let question = format!("Which one for {}?", other.name());
                assert!(!last.to_string().contains(&question), "{name}: {last:#}");
            }
        }
        assert!(self.server.unmatched().is_empty(), "{:?}", self.server.unmatched());
        self.has_no_processes();
    }
}

#[test]
fn questions_of_all_are_answered_in_one_place() {
    let stand = stand(None);
    stand.waits_for(&["run", &stand.all(), "Go", "--backend", "claude"], &ALL);
    for program in ALL {
        stand.answer(program);
    }
    stand.ends_well();
    for program in ALL {
        let (name, last) = (program.name(), stand.last_of(program));
        assert_eq!(told(&last, &format!("Paint for {name}")), 1, "{name}: {last:#}");
    }
}

#[test]
fn killed_while_claude_works_and_the_others_ask() {
    killed_while_one_works(Program::Claude(CLAUDE));
}

#[test]
fn killed_while_opencode_works_and_the_others_ask() {
    killed_while_one_works(Program::OpenCode);
}

#[test]
fn killed_while_copilot_works_and_the_others_ask() {
    killed_while_one_works(Program::Copilot);
}

/// What was asked before is answered after; who was at work begins again, and asks.
fn killed_while_one_works(held: Program) {
    let stand = stand(Some(held));
    let running = Running::start(stand.atomic(&["run", &stand.all(), "Go", "--backend", "claude"]));
    let sessions = stand.env.work().join(".atomic/sessions");
    eventually("two ask", ASKED, || crate::question::questions(&sessions) == ALL.len() - 1);
    eventually("one works", ASKED, || stand.env.work().join("held").exists());
    running.kill();
    stand.has_no_processes();
    for program in ALL.into_iter().filter(|program| *program != held) {
        stand.answer(program);
    }
    stand.waits_for(&["resume", "last"], &[held]);
    stand.answer(held);
    stand.ends_well();
}

/// At a terminal one question comes after the other, and nobody is ended for it.
#[test]
fn at_a_terminal_all_are_asked_one_after_the_other() {
    let stand = stand(None);
    let command = stand.atomic(&["run", &stand.all(), "Go", "--backend", "claude"]);
    let nothing: &dyn Fn() = &|| {};
    let typed = ["? q1 ", "? q2 ", "? q3 "].map(|sign| (sign, "2\n", nothing));
    let ended = typing(&command, &typed);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    let out = std::fs::read_to_string(stand.env.work().join("out")).unwrap();
    for program in ALL {
        let (name, last) = (program.name(), stand.last_of(program));
        assert_eq!(heard(&last, "Blue"), 1, "{name}: {last:#}");
        assert!(out.contains(&format!("{name} heard: ")), "{out}");
    }
    assert!(stand.server.unmatched().is_empty(), "{:?}", stand.server.unmatched());
    stand.has_no_processes();
}
