//! The examples of `docs/descriptor.md`: one for every type of node, and all of them work.

use std::collections::BTreeSet;

use atomic_graph::Program;
use serde_json::{Value, json};

use super::show::show;
use super::{Shelf, document, said};
use crate::descriptor::node::Type;
use crate::descriptor::read;

const DOCS: &str = include_str!("../../../../../docs/descriptor.md");

/// The examples; a node on its own is put into a workflow.
fn examples() -> Vec<String> {
    let blocks = DOCS.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole = blocks.map(|block| {
        let value: Value = serde_json::from_str(block).unwrap();
        if value.get("type").is_some() {
            format!("{{\"name\": \"example\", \"nodes\": [\n{block}]}}")
        } else {
            block.to_owned()
        }
    });
    whole.collect()
}

fn child() -> Shelf {
    let nodes = json!([{"type": "tool", "id": "count", "execute": {"$fn": 0}}]);
    let child =
        json!({"nodes": nodes, "state": {"words": 0}, "timeoutMs": 5000, "maxIterations": 9});
    Shelf(vec![("child-workflow", child.to_string())])
}

#[test]
fn every_example_works() {
    let mut shown = vec![];
    for text in examples() {
        let draft = read(&document("example.json", &text), &child());
        let problems = said(&draft);
        assert!(!problems.contains(" error at "), "{text}\n{problems}");
        let workflow = draft.into_workflow().unwrap();
        shown.push(show(&workflow.graph));
        assert!(Program::compile(workflow.graph).is_ok(), "{text}");
    }
    insta::assert_snapshot!("examples", shown.join("\n"));
}

#[test]
fn every_type_has_an_example() {
    let types: Vec<String> = examples()
        .iter()
        .flat_map(|text| {
            let value: Value = serde_json::from_str(text).unwrap();
            let nodes = value["nodes"].as_array().unwrap().clone();
            nodes.into_iter().map(|node| node["type"].as_str().unwrap().to_owned())
        })
        .collect();
    let shown: BTreeSet<&str> = types.iter().map(String::as_str).collect();
    let known: BTreeSet<&str> = Type::ALL.iter().map(|(word, _)| *word).collect();
    assert_eq!(shown, known);
}

#[test]
fn every_code_is_documented() {
    let source = include_str!("../fault.rs");
    let codes = source.split("\"ATM").skip(1).map(|rest| format!("ATM{}", &rest[..3]));
    let missing: Vec<_> = codes.filter(|code| !DOCS.contains(&format!("| `{code}` |"))).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn words_may_be_written_in_any_of_the_usual_ways() {
    for word in ["askUser", "ask_user", "ask-user", "AskUser", "ask_User"] {
        let text = json!({"nodes": [{"type": word, "question": "Why?"}]}).to_string();
        let draft = read(&document("x.json", &text), &Shelf(vec![]));
        assert_eq!(said(&draft), "", "{word}");
        assert_eq!(draft.graph().unwrap().nodes[0].id.as_str(), "ask-user");
    }
}
