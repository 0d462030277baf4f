//! Documents that were made of something else: what is said about them is said about that.

use std::sync::Arc;

use serde_json::json;

use super::{any_function, said};
use crate::Source;
use crate::descriptor::{Document, Locate, Location, NoLibrary, read};

/// A document of which everything but the first byte is somewhere in a file of TypeScript.
fn document(text: &str) -> Document {
    let locate = |at: usize| {
        let line = u32::try_from(at).ok().filter(|line| *line > 0)?;
        let frame = Some(format!("{line:>4} | the line"));
        Some(Location { file: "w.ts".into(), line, column: 7, frame })
    };
    let source = Source::new("w.json", text);
    let locate: Option<Arc<Locate>> = Some(Arc::new(locate));
    Document { locate, ..Document::with_functions(source, Arc::new(any_function)) }
}

#[test]
fn faults_are_where_the_document_came_from_and_show_it() {
    let draft = read(&document(r#"{"nodes": [{"type": "agent", "promt": "x"}]}"#), &NoLibrary);
    assert_eq!(
        said(&draft),
        "w.ts:29:7: ATM611 error at nodes[0].promt: an agent node has no \"promt\" (did you mean \
         \"prompt\"?)\n  29 | the line\n  help: write \"prompt\", or remove it"
    );
    let shown = json!(draft.faults);
    assert_eq!(shown[0]["frame"], "  29 | the line");
}

#[test]
fn problems_of_the_graph_are_there_too() {
    let text =
        r#"{"nodes": [{"type": "agent", "id": "a", "$at": ["w.ts", 1, 2]}], "startNode": "b"}"#;
    let said = said(&read(&document(text), &NoLibrary));
    assert!(said.starts_with("w.ts:78:7: ATM"), "{said}");
}

#[test]
fn what_has_no_place_elsewhere_is_in_the_document() {
    let draft = read(&document("[1]"), &NoLibrary);
    assert_eq!((draft.faults[0].file.to_str(), draft.faults[0].line), (Some("w.json"), 1));
    assert_eq!(draft.faults[0].frame, None);
}
