//! The SDK in the engine: what its functions make of what authors write.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod context;
mod graphs;
mod misuse;
mod scripts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use atomic_typescript::{Bundle, Options, Trouble, Worker};
use serde_json::Value;

/// A worker for one file.
fn worker(text: &str) -> Worker {
    let entry = PathBuf::from("/flows/main.ts");
    let files: BTreeMap<PathBuf, String> = [(entry.clone(), text.to_owned())].into();
    let bundle = Bundle::from_files(&entry, &files).unwrap_or_else(|faults| panic!("{faults:?}"));
    Worker::start(&bundle, &Options::default())
}

/// What a file is described as.
fn described(text: &str) -> Result<Value, Trouble> {
    Ok(worker(text).load(&Value::Null)?.descriptor)
}

/// The nodes of a builder's graph, and its edges: `a>b`, `a>b?` with a condition, `a>b!` otherwise.
fn drawn(builder: &str) -> String {
    let text = format!(
        "import * as sdk from \"@atomic/workflows\";\nconst {{ agentNode: a, graph }} = sdk;\nexport default () => {builder};"
    );
    let document = described(&text).unwrap_or_else(|trouble| panic!("{trouble}"));
    let nodes = document["nodes"].as_array().unwrap().iter().map(|node| text_of(&node["id"]));
    let edges = document["edges"].as_array().unwrap().iter().map(|edge| {
        let condition = &edge["condition"];
        let mark = if condition.is_string() { "!" } else { "?" };
        let mark = if condition.is_null() { "" } else { mark };
        format!("{}>{}{mark}", text_of(&edge["from"]), text_of(&edge["to"]))
    });
    nodes.chain(std::iter::once("|".to_owned())).chain(edges).collect::<Vec<_>>().join(" ")
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A folder of the tree.
fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
