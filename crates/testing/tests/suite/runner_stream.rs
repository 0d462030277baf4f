//! A run as streams: what was asked for, in the order it was asked for, and nothing else.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use atomic_event::{Patch, StepResult};
use atomic_graph::{Branch, Condition, FunctionId, Graph, Kind, Node, Parallel, Reducer, Strategy};
use atomic_runner::{Outcome, Run, Shown, StreamMode};
use atomic_workflow::{Action, Function, Functions, Initial, Launch, Workflow};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

/// What each node changes.
fn changes(node: &str) -> Value {
    match node {
        "begin" => json!({"total": 1, "log": ["begin"], "best": 5, "info": {"a": 1}}),
        "left" => json!({"total": 2, "log": ["left"], "best": 4}),
        "right" => json!({"total": 3, "log": ["right"], "info": {"b": 2}}),
        "one" => json!({"total": 10}),
        "two" => json!({"log": ["two"], "last": "two"}),
        "inner" => json!({"total": 100}),
        "end" => json!({"last": "end", "best": 9}),
        _ => json!({}),
    }
}

fn patch(value: Value) -> Patch {
    serde_json::from_value(value).unwrap()
}

fn initial(_: &Launch) -> Patch {
    patch(json!({"total": 0, "log": [], "given": true}))
}

fn node(id: &str) -> Node {
    let call = FunctionId::from("work");
    Node::work(id, serde_json::to_value(Action::Function { call }).unwrap())
}

/// Two nodes side by side, two branches that are merged, and, by choice, a graph in the graph.
fn workflow() -> Workflow {
    let branch = |id: &str| Branch { id: id.into(), graph: Graph::starting_at(id).node(node(id)) };
    let both = Kind::Parallel(Parallel {
        branches: vec![branch("one"), branch("two")],
        strategy: Strategy::All,
        fail_fast: false,
        merge: Some("merge".into()),
    });
    let again = Kind::Subgraph {
        graph: Graph::starting_at("inner").node(node("inner")),
        isolated: false,
        input: None,
        output: None,
    };
    let graph = Graph::starting_at("begin")
        .node(node("begin"))
        .node(node("left"))
        .node(node("right"))
        .node(Node::new("both", both))
        .node(Node::new("again", again))
        .node(node("end"))
        .edge("begin", "left")
        .edge("begin", "right")
        .join(["left", "right"], "both")
        .edge_when("both", "again", Condition::Otherwise)
        .edge("again", "end")
        .reducer("total", Reducer::Sum)
        .reducer("log", Reducer::Concat)
        .reducer("best", Reducer::Max)
        .reducer("info", Reducer::Merge);
    let work = Function::step(|call| {
        let node = call.step.node();
        Ok(StepResult { patch: patch(changes(node)), ..StepResult::output(node) })
    });
    let merge = Function::value(|_, args| Ok(json!({"merged": args[0].as_ref()})));
    Workflow {
        name: "sums".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph,
        functions: Functions::default().with("work", work).with("merge", merge),
        initial_state: Initial::made(initial),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    }
}

fn final_state() -> Value {
    json!({
        "total": 116, "log": ["begin", "left", "right", "two"], "best": 9, "given": true,
        "info": {"a": 1, "b": 2}, "last": "end", "merged": {"one": "one", "two": "two"},
    })
}

/// Everything that is shown of a run in these modes.
fn shown(modes: &[StreamMode]) -> Vec<Shown> {
    let mut stand = Stand::new();
    stand.workflow = workflow();
    on_one_thread(async {
        let (run, mut show) = Run::start_streaming(stand.stage(), stand.request(), modes).unwrap();
        let (_wishes, intents) = mpsc::channel(1);
        assert_eq!(run.drive(intents).await.unwrap().outcome, Outcome::Completed);
        let mut all = vec![];
        while let Some(shown) = show.next().await {
            all.push(shown);
        }
        all
    })
}

fn streamed(modes: &[StreamMode]) -> Vec<(StreamMode, Value)> {
    let streamed = |shown| match shown {
        Shown::Streamed { mode, value } => Some((mode, value)),
        Shown::Fact(_) | Shown::Delta(_) => None,
    };
    shown(modes).into_iter().filter_map(streamed).collect()
}

fn of(lines: &[(StreamMode, Value)], wanted: StreamMode) -> Vec<Value> {
    lines.iter().filter(|(mode, _)| *mode == wanted).map(|(_, value)| value.clone()).collect()
}

/// A state without the outputs of nodes.
fn keys(values: &Value) -> Value {
    let mut values = values.clone();
    values.as_object_mut().unwrap().remove("outputs");
    values
}

/// The reducers of this graph, once more and in other words.
fn apply(state: &mut Value, patch: &Value) {
    for (key, change) in patch.as_object().unwrap() {
        let old = state[key].take();
        state[key] = match (key.as_str(), old) {
            ("total", old) => json!(old.as_i64().unwrap_or(0) + change.as_i64().unwrap()),
            ("best", old) => json!(old.as_i64().unwrap_or(i64::MIN).max(change.as_i64().unwrap())),
            ("log", Value::Array(mut list)) => {
                list.extend(change.as_array().unwrap().clone());
                list.into()
            }
            ("info", Value::Object(mut fields)) => {
                fields.extend(change.as_object().unwrap().clone());
                fields.into()
            }
            _ => change.clone(),
        };
    }
}

#[test]
fn the_last_values_are_the_final_state_and_the_updates_lead_there() {
    let lines = streamed(&[StreamMode::Updates, StreamMode::Values]);
    let values = of(&lines, StreamMode::Values);
    let initial = json!({"total": 0, "log": [], "given": true});
    assert_eq!(values[0]["values"], json!({"total": 0, "log": [], "given": true, "outputs": {}}));
    let last = &values.last().unwrap()["values"];
    assert_eq!(keys(last), final_state());
    assert_eq!(last["outputs"]["end"], "end");
    for pair in values.windows(2) {
        assert_ne!(pair[0]["values"], pair[1]["values"], "only when it has changed");
    }

    let updates = of(&lines, StreamMode::Updates);
    let mut state = initial;
    updates.iter().for_each(|update| apply(&mut state, &update["patch"]));
    assert_eq!(state, final_state());
    let told: Vec<_> = updates.iter().map(|update| update["node"].as_str().unwrap()).collect();
    assert_eq!(told, ["begin", "left", "right", "one", "two", "both", "inner", "end"]);
    assert_eq!(updates[3]["step"], "both#1[one]/one#1");
    assert_eq!(updates[3]["patch"], changes("one"));
    assert_eq!(updates[3]["output"], "one");
}

#[test]
fn modes_come_in_the_order_they_were_asked_for() {
    use StreamMode::{Debug, Events, Updates, Values};
    let orders: [&[StreamMode]; 5] = [
        &[Updates, Values],
        &[Values, Updates],
        &[Events, Debug, Values, Updates],
        &[Debug, Updates, Events, Values],
        // A mode that is named twice is shown once.
        &[Values, Events, Values],
    ];
    for order in orders {
        let lines = streamed(order);
        let place = |mode: &StreamMode| order.iter().position(|wanted| wanted == mode).unwrap();
        let seq = |value: &Value| value["seq"].as_u64().or_else(|| value["fact"]["seq"].as_u64());
        let told: Vec<_> =
            lines.iter().filter_map(|(mode, value)| Some((seq(value)?, place(mode)))).collect();
        let mut sorted = told.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(told, sorted, "asked for {order:?}");
        for mode in order {
            assert!(lines.iter().any(|(shown, _)| shown == mode), "{mode:?} of {order:?}");
        }
        for (mode, _) in lines {
            assert!(order.contains(&mode), "{mode:?} was not asked for: {order:?}");
        }
    }
    assert!(streamed(&[]).is_empty());
}

#[test]
fn what_a_stream_says_comes_right_before_its_fact() {
    let all = shown(&[StreamMode::Events, StreamMode::Debug]);
    let mut before = vec![];
    let mut facts = 0;
    for shown in all {
        match shown {
            Shown::Streamed { mode, value } => before.push((mode, value)),
            Shown::Delta(_) => {}
            Shown::Fact(fact) => {
                let fact = serde_json::to_value(&*fact).unwrap();
                let told = std::mem::take(&mut before);
                let about: Vec<_> =
                    told.iter().filter(|(_, value)| value.get("fact").is_some()).collect();
                assert_eq!(about.len(), 2, "{told:?}");
                assert!(about.iter().all(|(_, value)| value["fact"] == fact), "{told:?}");
                facts += 1;
            }
        }
    }
    assert!(facts > 15 && before.is_empty());
}

#[test]
fn debugging_shows_what_is_to_be_done_and_how_long_it_took() {
    let lines = of(&streamed(&[StreamMode::Debug]), StreamMode::Debug);
    let effects = |line: &Value| line["effects"].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = lines.iter().flat_map(effects).collect();
    let of = |kind: &str| all.iter().filter(|effect| effect["effect"] == kind).count();
    assert_eq!((of("start"), of("evaluate"), of("finish")), (7, 1, 1), "{all:?}");
    let finished = |line: &&Value| line["fact"]["type"] == "step_finished";
    let finished: Vec<_> = lines.iter().filter(finished).collect();
    assert_eq!(finished.len(), 7);
    assert!(finished.iter().all(|line| line["took_ms"].is_u64() && line["applied_us"].is_u64()));
}
