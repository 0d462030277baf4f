//! Workflows whose nodes run on several backends.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};
use crate::env::{Ran, eventually, ran};
use crate::process::{Running, SOON};
use crate::scene::{CUT_OFF, agent, ask, fail, run, say};

/// A project with two backends: `script`, and a `copilot` that is a script, too.
struct Two {
    project: Project,
}

/// Two agents at once, each on a backend of its own.
fn both() -> Value {
    let node = |id: &str| json!({"type": "agent", "id": id, "prompt": format!("Do {id}")});
    let other = json!({"backend": "copilot", "description": "Looking…"});
    let branches =
        [with(node("mine"), json!({"description": "Writing…"})), with(node("other"), other)];
    json!({"nodes": [{"type": "parallel", "id": "both", "branches": branches},
        tool("end", "echo {outputs.both.mine} {outputs.both.other} > out")]})
}

impl Two {
    fn new(script: &str, copilot: &str) -> Self {
        let two = Self { project: Project::scripted(script) };
        fs::write(two.copilot(), copilot).unwrap();
        two
    }

    fn copilot(&self) -> PathBuf {
        self.project.env.outside("copilot.toml")
    }

    fn with_copilot(&self, mut command: Command) -> Command {
        command.env("ATOMIC_TEST_STAND_IN", format!("copilot={}", self.copilot().display()));
        command
    }

    /// `atomic run` of the workflow.
    fn command(&self, workflow: &Value, more: &[&str]) -> Command {
        self.project.write("flow.json", &workflow.to_string());
        self.with_copilot(self.project.command("flow.json", more))
    }

    fn atomic<const N: usize>(&self, args: [&str; N]) -> Ran {
        ran(self.with_copilot(self.project.env.atomic(args)))
    }

    /// How often each backend has opened a conversation, and how many there are.
    fn opened(&self, backend: &str) -> (usize, usize) {
        let opened = self.project.of_type("conversation_opened");
        let of_it: Vec<_> = opened.iter().filter(|fact| fact["backend"] == backend).collect();
        let mut ids: Vec<String> = of_it.iter().map(|f| f["conversation"].to_string()).collect();
        ids.sort();
        ids.dedup();
        (of_it.len(), ids.len())
    }
}

/// A script of one agent that asks, and does not ask again when it is told.
fn asking(id: &str, question: &str) -> String {
    let turns = [
        agent(id).and("The user's answer: ").does([say(&format!("{id} was told"))]),
        agent(id).does([ask(question, &["Red", "Blue"]), say(&format!("{id} knows {{answer}}"))]),
    ];
    turns.into_iter().fold(crate::scene::Scene::default(), crate::scene::Scene::turn).toml()
}

#[test]
fn questions_of_two_backends_are_answered_in_one_place() {
    let two = Two::new(&asking("mine", "Which one?"), &asking("other", "Which other?"));
    let waits = ran(two.command(&both(), &[]));
    assert_eq!(waits.code, Some(3), "{waits:?}");
    for question in ["Which one?", "Which other?"] {
        assert!(waits.stdout.contains(question), "{question}: {}", waits.stdout);
    }
    assert!(waits.stdout.contains("other#1: Looking… (on copilot)\n"), "{}", waits.stdout);
    assert!(waits.stdout.contains("mine#1: Writing…\n"), "{}", waits.stdout);
    for question in ["q1", "q2"] {
        let answered = two.atomic(["answer", "last", question, "Blue"]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
    }
    let ended = two.atomic(["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(two.project.read("out"), "mine was told other was told\n");
    assert_eq!([two.opened("script"), two.opened("copilot")], [(2, 1), (2, 1)]);
    assert_eq!(two.project.env.summary()["backend"], "script", "the run's own");
}

#[test]
fn after_a_kill_each_goes_on_with_its_own_backend() {
    let hangs = |id: &str| {
        let mark = run(&format!("touch {id}.began"));
        let turns = [
            agent(id).and(CUT_OFF).does([say(&format!("{id} went on"))]),
            agent(id).does([mark, fail("hang")]),
        ];
        turns.into_iter().fold(crate::scene::Scene::default(), crate::scene::Scene::turn).toml()
    };
    let two = Two::new(&hangs("mine"), &hangs("other"));
    let running = Running::start(two.command(&both(), &[]));
    let work = two.project.env.work();
    let began = |id: &str| work.join(format!("{id}.began")).exists();
    eventually("both are at work", SOON, || began("mine") && began("other"));
    running.kill();
    let ended = two.atomic(["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(two.project.read("out"), "mine went on other went on\n");
    assert_eq!([two.opened("script"), two.opened("copilot")], [(2, 1), (2, 1)]);
}

#[test]
fn a_ceiling_in_money_needs_the_costs_of_every_backend() {
    let done = "[[turn]]\ndo = [{ say = \"done\" }]\n";
    let two = Two::new(done, &format!("reports_cost = false\n{done}"));
    let refused = ran(two.command(&both(), &["--max-cost", "3"]));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let expected = "the node `both/other/other` runs on copilot, but copilot does not report";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(two.project.sessions().is_empty(), "nothing has begun");
}

#[test]
fn a_program_that_is_not_installed_is_told_with_the_node_that_names_it() {
    let project = Project::scripted("[[turn]]\ndo = [{ say = \"done\" }]\n");
    let node = json!({"type": "agent", "id": "second", "agentType": "claude"});
    let nodes = json!([{"type": "agent", "id": "first"}, node]);
    project.write("flow.json", &json!({"nodes": nodes}).to_string());
    let mut command = project.command("flow.json", &[]);
    command.env("PATH", project.env.outside("nothing"));
    let refused = ran(command);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let expected = "the node `second` runs on claude, but claude is not installed, or not in PATH; \
                    install it: ";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(project.sessions().is_empty(), "nothing has begun");
}

#[test]
fn a_backend_nobody_knows_is_found_by_check() {
    let project = Project::new();
    project
        .write("flow.json", "{\"nodes\": [\n  {\"type\": \"agent\", \"backend\": \"cluade\"}\n]}");
    let checked = project.env.run(["check", "flow.json"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let expected = "flow.json:2:32: ATM614 error at nodes[0].backend: \"cluade\" is not known here \
                    (did you mean \"claude\"?)";
    assert!(checked.stdout.contains(expected), "{}", checked.stdout);
}

#[test]
fn plans_and_pictures_say_who_runs_elsewhere() {
    let two = Two::new("turn = []\n", "turn = []\n");
    let planned = ran(two.command(&both(), &["--plan"]));
    assert_eq!(planned.code, Some(0), "{planned:?}");
    assert!(planned.stdout.ends_with("\nOn copilot: both/other/other\n"), "{}", planned.stdout);
    for format in ["tree", "mermaid", "dot", "svg"] {
        let drawn = two.atomic(["graph", "flow.json", "--format", format]);
        assert_eq!(drawn.code, Some(0), "{drawn:?}");
        assert!(drawn.stdout.contains("on copilot"), "{format}: {}", drawn.stdout);
        assert!(!drawn.stdout.contains("on script"), "{format}: {}", drawn.stdout);
    }
}
