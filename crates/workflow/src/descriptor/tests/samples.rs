//! The sample workflows, as the documents that a loader makes of them.

use atomic_graph::{Key, Program};
use serde_json::json;

use super::show::show;
use super::{Shelf, document, said};
use crate::descriptor::read;
use crate::{Initial, Launch};

const SAMPLES: [(&str, &str); 8] = [
    ("my-workflow", include_str!("samples/my-workflow.json")),
    ("builder", include_str!("samples/builder.json")),
    ("child-workflow", include_str!("samples/child-workflow.json")),
    ("parent-workflow", include_str!("samples/parent-workflow.json")),
    ("mapped-subgraph", include_str!("samples/mapped-subgraph.json")),
    ("named-nodes", include_str!("samples/named-nodes.json")),
    ("plan-work-review", include_str!("samples/plan-work-review.json")),
    ("chat-only", include_str!("samples/chat-only.json")),
];

#[test]
fn the_samples_become_graphs() {
    let shelf = Shelf(SAMPLES.iter().map(|(name, text)| (*name, (*text).to_owned())).collect());
    for (name, text) in SAMPLES {
        let draft = read(&document(&format!("{name}.json"), text), &shelf);
        assert_eq!(said(&draft), "", "{name}");
        let workflow = draft.into_workflow().unwrap();
        assert_eq!(workflow.name.as_str(), name);
        let functions: Vec<_> = workflow.functions.ids().map(ToString::to_string).collect();
        let Initial::Given(state) = &workflow.initial_state else { panic!("{name} has no values") };
        let capabilities = workflow.capabilities();
        let text = format!(
            "{}\nstate {}\nfunctions {}\n{capabilities:?}",
            show(&workflow.graph),
            json!(state),
            functions.join(" "),
        );
        insta::assert_snapshot!(name, text);
        assert!(Program::compile(workflow.graph).is_ok(), "{name}");
    }
}

#[test]
fn a_run_begins_with_the_defaults_and_the_limit_of_the_file() {
    let (_, text) = SAMPLES[6];
    let draft = read(&document("x.json", text), &Shelf(vec![]));
    let workflow = draft.into_workflow().unwrap();
    let mut launch = Launch {
        prompt: "p".to_owned(),
        session: "s".to_owned(),
        workers: Some(3),
        ..Launch::default()
    };
    let state = workflow.initial_state.state(&launch).unwrap();
    assert_eq!(
        json!(state),
        json!({"executionId": "s", "findings": [], "maxIterations": 30, "prompt": "p",
            "rounds": 0, "tasks": [], "workers": 3})
    );
    launch.limits.iterations = Some(7);
    let state = workflow.initial_state.state(&launch).unwrap();
    assert_eq!(state[&Key::from("maxIterations")], json!(7), "the flag beats the file");
}

#[test]
fn what_only_people_read_is_kept() {
    let (_, text) = SAMPLES[0];
    let draft = read(&document("x.json", text), &Shelf(vec![]));
    assert_eq!(draft.version.as_deref(), Some("1.0.0"));
    assert_eq!(draft.argument_hint.as_deref(), Some("<what to do>"));
    let workflow = draft.into_workflow().unwrap();
    assert_eq!(workflow.aliases, ["mw"]);
    assert_eq!(workflow.description, "A graph-backed workflow of two nodes");
    assert_eq!(workflow.sessions_dir, ".atomic/sessions");
    assert_eq!(workflow.source.map(|source| source.text), Some(text.to_owned()));
}
