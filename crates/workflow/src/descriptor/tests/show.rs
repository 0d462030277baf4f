//! A graph as a few lines of text.

use std::fmt::Write as _;

use atomic_graph::{Graph, Kind, Node, NodeId};
use serde_json::{Value, json};

/// Every node with what it does and what is unusual about it, and every edge.
pub(super) fn show(graph: &Graph) -> String {
    let mut text = String::new();
    write(graph, 0, &mut text);
    text
}

fn write(graph: &Graph, indent: usize, text: &mut String) {
    let pad = "  ".repeat(indent);
    let mut rules = serde_json::to_value(graph).unwrap();
    for key in ["start", "nodes", "edges"] {
        rules.as_object_mut().unwrap().remove(key);
    }
    let _ = writeln!(text, "{pad}start {} {rules}", graph.start);
    for node in &graph.nodes {
        let _ = writeln!(text, "{pad}{}: {}{}", node.id, kind(node), options(node));
        for (branch, inner) in node.inner() {
            if let Some(branch) = branch {
                let _ = writeln!(text, "{pad}  branch {branch}");
            }
            write(inner, indent + 1 + usize::from(branch.is_some()), text);
        }
    }
    for edge in &graph.edges {
        let from: Vec<_> = edge.from.iter().map(NodeId::as_str).collect();
        let when = edge.when.as_ref().map(|when| format!(" when {}", json!(when)));
        let when = when.unwrap_or_default();
        let _ = writeln!(text, "{pad}{} -> {}{when}", from.join(" + "), edge.to);
    }
}

fn kind(node: &Node) -> String {
    let mut value = serde_json::to_value(&node.kind).unwrap();
    let fields = value.as_object_mut().unwrap();
    for inner in ["graph", "branches", "kind"] {
        fields.remove(inner);
    }
    let name = match &node.kind {
        Kind::Work { action, launch, .. } => {
            return format!("{}{action}", if *launch { "launch " } else { "" });
        }
        Kind::Decision => "decision",
        Kind::Subgraph { .. } => "subgraph",
        Kind::Loop { .. } => "loop",
        Kind::Each(_) => "each",
        Kind::Parallel(_) => "parallel",
        Kind::Script(_) => "script",
    };
    format!("{name} {value}")
}

/// What is not as usual.
fn options(node: &Node) -> String {
    let usual = serde_json::to_value(Node::new("", Kind::Decision)).unwrap();
    let mut value = serde_json::to_value(node).unwrap();
    let fields = value.as_object_mut().unwrap();
    fields.retain(|key, value| key != "id" && key != "kind" && usual.get(key) != Some(value));
    if fields.is_empty() { String::new() } else { format!(" {}", Value::Object(fields.clone())) }
}
