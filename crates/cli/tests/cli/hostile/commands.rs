//! Every command of the program, as a user types it in a project that was just cloned.

use std::collections::BTreeSet;
use std::fs;

use super::Ground;
use crate::env::TestEnv;

/// A command, and how it is used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its name, with the names of the commands it is part of; empty for `atomic -p`.
    name: &'static str,
    arguments: &'static [&'static str],
}

/// Prompts of an editor.
const EDITOR: &str = "acp";

/// Commands, in the order in which they are run: those that write files first, because what Atomic
/// writes itself is trusted, and what was there before is not.
const ROWS: &[Row] = &[
    row("config list", &["config", "list"]),
    row("config get", &["config", "get", "check"]),
    row("config set", &["config", "set", "workers", "2"]),
    row("config unset", &["config", "unset", "workers"]),
    row("init", &["init"]),
    row("new workflow", &["new", "workflow", "fresh"]),
    row("trust", &["trust", "--list"]),
    row("list", &["list", "--verbose"]),
    row("show", &["show", "commit"]),
    row("show", &["show", "worker"]),
    row("show", &["show", "spell"]),
    row("check", &["check"]),
    row("graph", &["graph", "ralph"]),
    row("graph", &["graph", "deploy"]),
    row("graph", &["graph", "ralph", "--output", "picture.mmd"]),
    row("doctor", &["doctor"]),
    row("models", &["models"]),
    row("mcp", &["mcp"]),
    row("test", &["test", ".atomic/workflows/deploy.json"]),
    row("", &["-p", "Hello"]),
    row("", &["-p", "Hello", "--agent", "debugger"]),
    row("run", &["run", "ralph", "Build it"]),
    row("run", &["run", "calls", "Go"]),
    row("run", &["run", "deploy", "Go"]),
    row("sessions list", &["sessions", "list"]),
    row("sessions show", &["sessions", "show", "last"]),
    row("graph", &["graph", "last"]),
    row("resume", &["resume", "last"]),
    row("fork", &["fork", "last", "--run"]),
    row("answer", &["answer", "last", "A", "--resume"]),
    row("sessions rm", &["sessions", "rm", "last"]),
    row("migrate", &["migrate", "../features.json"]),
    row("migrate", &["migrate", "../features.json", "--ralph"]),
    row(EDITOR, &["Hello", "/ralph Build it", "/deploy Go", "/commit", "/model list"]),
    row("demo", &["demo", "--script", "../script.toml"]),
];

/// Commands that start agents, or agent programs for what those know.
const OF_AGENTS: &[&str] =
    &["models", "mcp", "doctor", "", "run", "resume", "fork", "answer", "migrate", EDITOR];

const fn row(name: &'static str, arguments: &'static [&'static str]) -> Row {
    Row { name, arguments }
}

pub(crate) fn all() -> Vec<Row> {
    ROWS.to_vec()
}

pub(crate) fn of_agents() -> Vec<Row> {
    ROWS.iter().filter(|row| OF_AGENTS.contains(&row.name)).copied().collect()
}

impl Row {
    /// Whether it leaves a session that waits for an answer.
    pub(crate) fn makes_session(&self) -> bool {
        self.arguments.starts_with(&["run", "calls"])
    }

    /// Runs the command to its end and returns what it has printed.
    pub(crate) fn run(&self, ground: &Ground) -> String {
        if self.name == EDITOR {
            return ground.in_an_editor(self.arguments);
        }
        let mut arguments = self.arguments.to_vec();
        let (script, features) =
            (ground.env.outside("script.toml"), ground.env.outside("features.json"));
        for argument in &mut arguments {
            match *argument {
                "../script.toml" => *argument = script.to_str().unwrap(),
                "../features.json" => *argument = features.to_str().unwrap(),
                _ => {}
            }
        }
        let demo = ground.env.outside("demo");
        if self.name == "demo" {
            arguments.extend(["--dir", demo.to_str().unwrap()]);
        }
        let ended = ground.run(&arguments);
        // A demo that was made is in the way of the next one.
        let _ = fs::remove_dir_all(demo);
        assert!(matches!(ended.code, Some(0..=5)), "{self:?}: {ended:?}");
        format!("{}\n{}", ended.stdout, ended.stderr)
    }
}

/// The commands in a help text, without `help` itself.
fn commands_in(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_command_is_tried() {
    let env = TestEnv::new();
    let mut known = BTreeSet::from([String::new()]);
    let mut open = vec![String::new()];
    while let Some(name) = open.pop() {
        let words: Vec<&str> = name.split_whitespace().chain(["--help"]).collect();
        let found = commands_in(&env.run(&words).stdout);
        if found.is_empty() {
            known.insert(name);
            continue;
        }
        open.extend(found.iter().map(|one| format!("{name} {one}").trim().to_owned()));
    }
    let tried: BTreeSet<String> = ROWS.iter().map(|row| row.name.to_owned()).collect();
    assert_eq!(tried, known);
    assert!(OF_AGENTS.iter().all(|name| known.contains(*name)));
}
