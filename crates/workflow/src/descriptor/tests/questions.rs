//! Questions that are more than data: what is asked, and what becomes of the answer.

use std::sync::Arc;

use atomic_event::{StepId, StepResult};
use atomic_graph::{Graph, Kind, State};
use serde_json::{Value, json};

use super::Wanted;
use crate::descriptor::{Document, NoLibrary, Role, read};
use crate::{Action, Call, Function, Paths, Source, Workflow};

/// `Write` writes what is under `topic`, `Map` puts the answer under `answer`.
fn functions(wanted: &Wanted<'_>) -> Option<Function> {
    if wanted.role == Role::Text {
        return Some(Function::text(|call| format!("About {}?", call.get::<String>("topic"))));
    }
    let map = Function::value(|_, args| Ok(json!({"answer": args[0].as_ref()})));
    (wanted.role == Role::Map).then_some(map)
}

fn workflow(node: &Value) -> Workflow {
    let text = json!({"nodes": [node]}).to_string();
    let source = Source::new("x.json", text);
    let document = Document::with_functions(source, Arc::new(functions));
    read(&document, &NoLibrary).into_workflow().unwrap()
}

fn inner(workflow: &Workflow) -> (&Graph, Vec<&str>) {
    let Kind::Subgraph { graph, isolated: false, .. } = &workflow.graph.nodes[0].kind else {
        panic!("{:?} is no graph", workflow.graph.nodes[0])
    };
    (graph, graph.nodes.iter().map(|node| node.id.as_str()).collect())
}

/// Evaluates the function of a node.
fn evaluate(workflow: &Workflow, kind: &Kind, state: &State) -> StepResult {
    let Kind::Work { action, .. } = kind else { panic!("{kind:?} is no work") };
    let Ok(Action::Function { call }) = serde_json::from_value(action.clone()) else {
        panic!("{action} is no function")
    };
    let Some(Function::Step(step)) = workflow.functions.find(&call) else { panic!("no {call}") };
    let paths = Paths::default();
    step(&Call { state, step: &StepId::new("x#1"), paths: &paths }).unwrap()
}

#[test]
fn a_question_can_be_written_by_a_function_and_its_answer_be_mapped() {
    let node = json!({"type": "ask_user", "question": {"$fn": 1}, "outputMapper": {"$fn": 2}});
    let workflow = workflow(&node);
    let (graph, names) = inner(&workflow);
    assert_eq!(names, ["question-words", "question-ask", "question-answer"]);
    let state = State::new([("topic".into(), "trees".into())].into());
    let written = evaluate(&workflow, &graph.nodes[0].kind, &state);
    assert_eq!(written.output, "About trees?");
    let Kind::Work { action, asks: true, .. } = &graph.nodes[1].kind else { panic!("asks") };
    assert_eq!(action["question"]["question"], "{outputs.question-words}");
    let state = state.with_outputs([("question-ask".into(), "yes".into())].into());
    let answered = evaluate(&workflow, &graph.nodes[2].kind, &state);
    assert_eq!((answered.output, json!(answered.patch)), ("yes".into(), json!({"answer": "yes"})));
}

#[test]
fn a_plain_question_stays_one_node() {
    let workflow = workflow(&json!({"type": "wait", "prompt": "Ready?"}));
    assert!(matches!(workflow.graph.nodes[0].kind, Kind::Work { asks: true, .. }));
}

#[test]
fn a_wait_that_is_approved_asks_nobody() {
    let node =
        json!({"type": "wait", "prompt": "x", "autoApprove": true, "inputMapper": {"$fn": 1}});
    let mapped = workflow(&node);
    let result = evaluate(&mapped, &mapped.graph.nodes[0].kind, &State::default());
    assert_eq!(json!(result.patch), json!({"answer": "Continue"}));
    let plain = workflow(&json!({"type": "wait", "prompt": {"$fn": 1}, "autoApprove": true}));
    let result = evaluate(&plain, &plain.graph.nodes[0].kind, &State::default());
    assert_eq!((result.output, result.patch.len()), ("Continue".into(), 0));
}
