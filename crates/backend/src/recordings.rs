//! What the pinned programs have said (`cargo xtask record`), as it was and damaged, for the tests
//! of the decoders.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// A recording: its version and scenario, and its lines.
pub(crate) struct Recording {
    pub(crate) version: String,
    pub(crate) scenario: String,
    pub(crate) lines: Vec<String>,
}

/// All recordings of a program, in the order of their versions and names.
pub(crate) fn of(program: &str) -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(program).join("fixtures");
    let files = entries(&folder).into_iter().flat_map(|version| entries(&version));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let (head, lines) = text.split_once('\n').unwrap();
        let about: Value = serde_json::from_str(head).unwrap();
        let of = |key: &str| about["recorded"][key].as_str().unwrap().to_owned();
        let lines = lines.lines().map(str::to_owned).collect();
        Recording { version: of("version"), scenario: of("scenario"), lines }
    };
    files.map(read).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// One of the recordings, by its place, and its lines with other values in them, some of them
/// elsewhere, twice, or missing.
pub(crate) fn disturbed(
    recordings: &'static [Recording],
) -> impl Strategy<Value = (usize, Vec<String>)> {
    let place = any::<Index>;
    let damages = prop::collection::vec((place(), any::<usize>(), any_value()), 0..6);
    let moves = prop::collection::vec((place(), place()), 0..6);
    let missing = prop::collection::vec(place(), 0..4);
    let all = (0..recordings.len(), damages, moves, missing);
    all.prop_map(move |(recording, damages, moves, missing)| {
        let mut lines = recordings[recording].lines.clone();
        for (line, place, other) in damages {
            let line = line.index(lines.len());
            lines[line] = damaged(&lines[line], place, other);
        }
        for (from, to) in moves {
            let (from, to) = (from.index(lines.len()), to.index(lines.len()));
            let copy = lines[from].clone();
            lines.insert(to, copy);
            lines.swap(from, to);
        }
        for line in missing {
            lines.remove(line.index(lines.len()));
        }
        (recording, lines)
    })
}

/// A line with one value somewhere in it replaced by another.
fn damaged(line: &str, place: usize, other: Value) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    let mut pointers = vec![String::new()];
    collect(&value, "", &mut pointers);
    let pointer = pointers[place % pointers.len()].clone();
    *value.pointer_mut(&pointer).unwrap() = other;
    value.to_string()
}

fn collect(value: &Value, at: &str, pointers: &mut Vec<String>) {
    let fields = value.as_object().into_iter().flatten();
    let fields = fields.map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value));
    let items = value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(index, value)| (index.to_string(), value));
    for (key, inner) in fields.chain(items) {
        let pointer = format!("{at}/{key}");
        collect(inner, &pointer, pointers);
        pointers.push(pointer);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{ "type": "tool_use", "id": "t", "name": "TodoWrite", "input": 7 }])),
        Just(json!({ "id": "msg_0", "role": "assistant" })),
        Just(json!(u64::MAX)),
        Just(json!(1e300)),
    ]
}
