//! Tables that read aloud: this input, those effects.

use std::sync::Arc;

use atomic_graph::{
    Count, Each, Effect, Graph, Input, Key, Kind, Machine, Node, Patch, Program, Ready, StepError,
    StepId, StepResult,
};
use serde_json::Value;

pub(crate) fn work(id: &str) -> Node {
    Node::work(id, Value::Null)
}

/// A graph of one node.
pub(crate) fn only(node: Node) -> Graph {
    Graph::starting_at(node.id.clone()).node(node)
}

/// A fan over `list`.
pub(crate) fn fan(id: &str, workers: u64, graph: Graph) -> Node {
    let (over, item, workers) = (Key::from("list"), Key::from("item"), Count::Fixed(workers));
    let ready = Ready::Once;
    Node::new(
        id,
        Kind::Each(Each {
            over,
            item,
            graph,
            workers,
            ready,
            fail_fast: false,
            order: ready.order(),
        }),
    )
}

pub(crate) fn sub(id: &str, graph: Graph) -> Node {
    Node::new(id, Kind::Subgraph { graph, isolated: false, input: None, output: None })
}

pub(crate) fn patch(value: Value) -> Patch {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn patched(value: Value) -> Input {
    Input::Patched { patch: patch(value) }
}

pub(crate) fn done(step: &str) -> Input {
    returned(step, 1, StepResult::default())
}

pub(crate) fn returned(step: &str, attempt: u32, result: StepResult) -> Input {
    Input::Finished { step: StepId::new(step), attempt, result }
}

pub(crate) fn wrote(step: &str, key: &str, value: Value) -> Input {
    returned(step, 1, StepResult::default().set(key, value))
}

pub(crate) fn failed(step: &str, attempt: u32) -> Input {
    let error = StepError::new("broken", format!("{step} broke"));
    Input::Failed { step: StepId::new(step), attempt, error }
}

/// An attempt was cut off after it had got somewhere.
pub(crate) fn lost(step: &str, attempt: u32) -> Input {
    Input::Lost { step: StepId::new(step), attempt, progressed: true }
}

pub(crate) fn gone(step: &str) -> Input {
    Input::Cancelled { step: StepId::new(step), attempt: 1 }
}

pub(crate) fn chosen(step: &str, chosen: Option<u32>) -> Input {
    Input::Chosen { step: StepId::new(step), chosen }
}

pub(crate) fn evaluated(step: &str, value: Value) -> Input {
    Input::Evaluated { step: StepId::new(step), result: Ok(value) }
}

/// A function could not be evaluated.
pub(crate) fn unevaluated(step: &str) -> Input {
    let result = Err(StepError::new("function", "the function broke"));
    Input::Evaluated { step: StepId::new(step), result }
}

pub(crate) fn start(graph: Graph, state: Value) -> (Machine, String) {
    let program = Program::compile(graph).unwrap();
    let (machine, effects) = Machine::start(program, patch(state));
    let shown = show(&effects);
    (machine, shown)
}

/// Feeds a table of inputs; every line must give exactly its effects, also when the machine was
/// saved and restored before.
pub(crate) fn play(graph: Graph, state: Value, first: &str, table: Vec<(Input, &str)>) -> Machine {
    let (mut machine, shown) = start(graph, state);
    assert_eq!(shown, first);
    for (input, expected) in table {
        let program = Arc::clone(machine.program());
        let mut copy = Machine::restore(program, machine.snapshot().unwrap()).unwrap();
        let effects = machine.apply(input.clone()).unwrap();
        assert_eq!(show(&effects), expected, "after {input:?}");
        assert_eq!(copy.apply(input.clone()).unwrap(), effects, "restored, after {input:?}");
    }
    machine
}

/// Effects on one line, as a person would say them.
pub(crate) fn show(effects: &[Effect]) -> String {
    let one = |effect: &Effect| match effect {
        Effect::Start(s) if s.attempt == 1 => format!("start {}", s.step),
        Effect::Start(s) => {
            let wait =
                if s.delay_ms > 0 { format!(" in {} ms", s.delay_ms) } else { String::new() };
            format!("start {} again ({:?}, {}){wait}", s.step, s.how, s.attempt)
        }
        Effect::Choose { step, options, .. } => format!("choose after {step} of {}", options.len()),
        Effect::Cancel { step, .. } => format!("cancel {step}"),
        Effect::Evaluate { step, call, args } => {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            format!("evaluate {call}({}) for {step}", args.join(", "))
        }
        Effect::Limit { step, timeout_ms } => format!("limit {step} to {timeout_ms} ms"),
        Effect::Rest { step, delay_ms } => format!("rest {step} for {delay_ms} ms"),
        Effect::Ask { step, .. } => format!("ask for {step}"),
        Effect::AskLost { step, .. } => format!("ask about {step}"),
        Effect::Finish(Ok(())) => "finish".to_owned(),
        Effect::Finish(Err(error)) => format!("fail: {}", error.message),
    };
    effects.iter().map(one).collect::<Vec<_>>().join("; ")
}
