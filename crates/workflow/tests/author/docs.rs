//! The drawings in docs/engine.md are what the program draws.

use std::path::PathBuf;

use atomic_graph::draw::{Overlay, tree};
use atomic_workflow::Source;
use atomic_workflow::descriptor::{Document, NoLibrary, read};

const BEGIN: &str = "```json\n";
const MIDDLE: &str = "```\n\n```text\n";

/// The page with every drawing made anew, and how many there are.
fn drawn_anew(page: &str) -> (String, usize) {
    let mut parts = page.split(BEGIN);
    let mut anew = parts.next().unwrap_or_default().to_owned();
    let mut count = 0;
    for part in parts {
        let (json, rest) =
            part.split_once(MIDDLE).unwrap_or_else(|| panic!("no drawing follows {part}"));
        let (_, rest) = rest.split_once("```\n").unwrap_or_else(|| panic!("no end: {rest}"));
        let source = Source::new("engine.json", json);
        let draft = read(&Document::plain(source), &NoLibrary);
        let faults: Vec<String> = draft.faults.iter().map(ToString::to_string).collect();
        assert!(faults.is_empty(), "{json}\n{}", faults.join("\n"));
        let mut graph = draft.into_workflow().unwrap().graph;
        // The same limit in every picture would only be in the way.
        graph.max_iterations = None;
        let lines: Vec<String> =
            tree(&graph, &Overlay::default()).iter().map(ToString::to_string).collect();
        let lines = lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n");
        anew.push_str(&format!("{BEGIN}{json}{MIDDLE}{lines}\n```\n{rest}"));
        count += 1;
    }
    (anew, count)
}

#[test]
fn the_engines_page_shows_what_the_program_draws() {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/engine.md"));
    let page = std::fs::read_to_string(&path).unwrap();
    let (anew, count) = drawn_anew(&page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &anew).unwrap();
    }
    assert_eq!(count, 7, "one drawing for every kind of node");
    assert_eq!(page, anew, "draw them anew with UPDATE_DOCS=1");
}
