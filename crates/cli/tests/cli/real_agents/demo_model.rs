//! The script of `atomic demo` as the script of a model: what the scripted agent does itself, the
//! model has the real program do.

use std::path::Path;

use atomic_testing::model::{Reply, Script, Turn};
use toml::{Table, Value};

use super::program::Program;

/// What each agent is told to be, in words that no other agent is told.
const PERSONAS: [(&str, &str); 3] = [
    ("planner", "You plan software work"),
    ("worker", "You carry out one task"),
    ("reviewer", "You review"),
];

pub(super) fn script(program: Program) -> Script {
    let text = include_str!("../../../demo/script.toml");
    let demo: Table = text.parse().unwrap();
    let turns = demo["turn"].as_array().unwrap().iter().map(|demo| turn(program, demo));
    turns.fold(Script::new(), Script::with)
}

fn turn(program: Program, demo: &Value) -> Turn {
    let list = |key: &str| -> Vec<String> {
        let found = demo.get(key).and_then(Value::as_array).into_iter().flatten();
        found.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let agent = demo["agent"].as_str().unwrap();
    let (_, persona) = PERSONAS.iter().find(|(name, _)| *name == agent).unwrap();
    let turn = Turn {
        system: vec![(*persona).to_owned()],
        user: list("prompt"),
        absent: list("absent"),
        ..Turn::default()
    };
    let actions = demo["do"].as_array().unwrap().iter();
    actions.flat_map(|action| replies(program, action)).fold(turn, Turn::reply)
}

fn replies(program: Program, action: &Value) -> Vec<Reply> {
    if let Some(write) = action.get("write") {
        return written(program, write);
    }
    if let Some(command) = action.get("run") {
        return vec![program.runs(command.as_str().unwrap())];
    }
    match action.get("say").and_then(Value::as_str) {
        // A text without a call would end the turn, so only the last is one.
        Some(text) if text.contains("```json") => vec![Reply::say(text)],
        Some(text) => vec![Reply::say(text).and(program.shell("git status --short"))],
        None => vec![],
    }
}

/// The program overwrites only what it has read. What is changed afterwards, it edits.
fn written(program: Program, write: &Value) -> Vec<Reply> {
    let path = write["path"].as_str().unwrap();
    let text = match write.get("from").and_then(Value::as_str) {
        Some(from) => {
            let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
            std::fs::read_to_string(demo.join(from)).unwrap()
        }
        None => write["text"].as_str().unwrap().to_owned(),
    };
    let before = std::iter::once(program.reads(path)).chain(program.makes_room(path));
    let after = if path == "README.md" {
        let (first, rest) = text.split_once('\n').unwrap();
        let write = program.writes(path, &format!("# Draft\n{rest}"));
        vec![write, program.edits(path, "# Draft", first)]
    } else {
        vec![program.writes(path, &text)]
    };
    before.chain(after).collect()
}
