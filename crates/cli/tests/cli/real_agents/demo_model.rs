//! The script of `atomic demo` as the script of a model: what the scripted agent does itself, the
//! model has the real program do.

use std::path::Path;

use atomic_testing::model::{Action, Reply, Script, Turn};
use serde_json::json;
use toml::{Table, Value};

/// What each agent is told to be, in words that no other agent is told.
const PERSONAS: [(&str, &str); 3] = [
    ("planner", "You plan software work"),
    ("worker", "You carry out one task"),
    ("reviewer", "You review"),
];

pub(super) fn script() -> Script {
    let text = include_str!("../../../demo/script.toml");
    let demo: Table = text.parse().unwrap();
    let turns = demo["turn"].as_array().unwrap().iter().map(turn);
    turns.fold(Script::new(), Script::with)
}

fn turn(demo: &Value) -> Turn {
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
    demo["do"].as_array().unwrap().iter().flat_map(replies).fold(turn, Turn::reply)
}

fn replies(action: &Value) -> Vec<Reply> {
    if let Some(write) = action.get("write") {
        return written(write);
    }
    if let Some(command) = action.get("run") {
        return vec![Reply::call("Bash", json!({ "command": command.as_str().unwrap() }))];
    }
    match action.get("say").and_then(Value::as_str) {
        // A text without a call would end the turn, so only the last is one.
        Some(text) if text.contains("```json") => vec![Reply::say(text)],
        Some(text) => vec![Reply::say(text).and(look_around())],
        None => vec![],
    }
}

fn look_around() -> Action {
    Action::Call { tool: "Bash".to_owned(), input: json!({ "command": "git status --short" }) }
}

/// The program overwrites only what it has read. What is changed afterwards, it edits.
fn written(write: &Value) -> Vec<Reply> {
    let path = write["path"].as_str().unwrap();
    let text = match write.get("from").and_then(Value::as_str) {
        Some(from) => {
            let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
            std::fs::read_to_string(demo.join(from)).unwrap()
        }
        None => write["text"].as_str().unwrap().to_owned(),
    };
    let read = Reply::call("Read", json!({ "file_path": path }));
    if path != "README.md" {
        let write = Reply::call("Write", json!({ "file_path": path, "content": text }));
        return vec![read, write];
    }
    let (first, rest) = text.split_once('\n').unwrap();
    let draft = format!("# Draft\n{rest}");
    let write = Reply::call("Write", json!({ "file_path": path, "content": draft }));
    let edit = json!({ "file_path": path, "old_string": "# Draft", "new_string": first });
    vec![read, write, Reply::call("Edit", edit)]
}
