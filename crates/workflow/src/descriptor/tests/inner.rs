//! Workflows inside others, and the loops that are made of simpler nodes.

use atomic_event::BackendId;
use atomic_graph::{Condition, Count, Effect, Input, Kind, Machine, Program, State, StepResult};
use serde_json::{Value, json};

use super::{Shelf, document, read_alone, said};
use crate::descriptor::{Draft, Found, Library, read};
use crate::{Workflow, builtin};

/// Reads `a` with the others on the shelf.
fn read_first(documents: &[(&'static str, Value)]) -> Draft {
    let shelf = Shelf(documents.iter().map(|(name, value)| (*name, value.to_string())).collect());
    let (name, value) = &documents[0];
    read(&document(&format!("{name}.json"), &value.to_string()), &shelf)
}

fn uses(name: &str) -> Value {
    json!({"nodes": [{"type": "subgraph", "id": "inner", "workflow": name}]})
}

/// Everything that launches an agent says on which backend, wherever it is.
#[test]
fn a_node_that_launches_an_agent_names_its_backend() {
    let text = r#"{"nodes": [
        {"type": "agent", "id": "a", "backend": "opencode", "model": "openai/gpt-5"},
        {"type": "subagent", "id": "b", "agent": "worker", "agentType": "Claude"},
        {"type": "skill", "id": "c", "skill": "commit", "backend": "copilot"},
        {"type": "command", "id": "d", "command": "log", "agentType": "script"},
        {"type": "parallelSubagent", "id": "e", "agents": [
            {"agent": "x", "task": "x", "backend": "acp:gemini --acp"}, {"agent": "y", "task": "y"}]},
        {"type": "loop", "id": "f", "maxIterations": 2, "nodes": [
            {"type": "each", "id": "g", "over": "list", "node":
                {"type": "agent", "id": "h", "backend": "open-code"}}]},
        {"type": "tool", "id": "i", "command": "true"}
    ], "state": {"list": []}}"#;
    let draft = read_alone(text);
    assert_eq!(said(&draft), "");
    let workflow = draft.into_workflow().unwrap();
    let told = |launcher: &crate::Launcher| {
        let backend = launcher.backend.as_ref().map_or("", BackendId::as_str);
        format!("{launcher} {backend}")
    };
    let told: Vec<String> = crate::launchers(&workflow.graph).iter().map(told).collect();
    let expected = [
        "a opencode",
        "b claude",
        "c copilot",
        "d script",
        "e/x/x acp:gemini --acp",
        "e/y/y ",
        "f/g/h opencode",
    ];
    assert_eq!(told, expected);
    assert_eq!(workflow.graph.nodes[0].model.as_deref(), Some("openai/gpt-5"));
}

#[test]
fn a_circle_is_told_as_a_chain() {
    let table: [(&[(&'static str, Value)], &str); 3] = [
        (&[("a", uses("a"))], "a.json:1:54: a -> a"),
        (&[("a", uses("b")), ("b", uses("a"))], "b.json:1:54: a -> b -> a"),
        (
            // The outermost is no part of this one, and an alias is no way around it.
            &[
                ("a", uses("b")),
                ("b", uses("c")),
                (
                    "c",
                    json!({"aliases": ["x"], "nodes": [{"type": "subgraph", "id": "d", "graph": {
                    "nodes": [{"type": "subgraph", "id": "inner", "workflow": "x"}]}}]}),
                ),
            ],
            "c.json:1:116: c -> c",
        ),
    ];
    for (documents, expected) in table {
        let draft = read_first(documents);
        let said: Vec<String> = draft
            .faults
            .iter()
            .map(|fault| {
                assert_eq!(fault.code, "ATM407");
                let begin = "Circular workflow dependency detected: ";
                let chain = fault.message.strip_prefix(begin).unwrap();
                format!("{}:{}:{}: {chain}", fault.file.display(), fault.line, fault.column)
            })
            .collect();
        assert_eq!(said, [expected]);
    }
}

#[test]
fn an_unknown_workflow_is_told_by_its_exact_name() {
    let alone = read_first(&[("a", uses("nowhere"))]);
    assert_eq!(alone.faults[0].message, "Workflow not found: nowhere");
    let draft = read_first(&[("a", uses("chidl")), ("child", json!({}))]);
    assert_eq!(draft.faults[0].message, "Workflow not found: \"chidl\" (did you mean \"child\"?)");
}

#[test]
fn what_is_wrong_with_an_inner_workflow_is_told_once_and_in_its_file() {
    let twice = json!({"nodes": [
        {"type": "subgraph", "id": "one", "workflow": "child"},
        {"type": "subgraph", "id": "two", "workflow": "child"},
    ]});
    let child = json!({"nodes": [{"type": "agnt"}]});
    let draft = read_first(&[("a", twice), ("child", child)]);
    let said: Vec<_> =
        draft.faults.iter().map(|f| format!("{} {}", f.file.display(), f.code)).collect();
    assert_eq!(said, ["child.json ATM614"]);
    assert!(draft.into_workflow().is_err());
}

#[test]
fn workflows_that_grow_without_end_are_refused() {
    // Each uses the next one ten times.
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let documents: Vec<(&'static str, Value)> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let next = names.get(number + 1);
            let nodes: Vec<Value> = (0..10)
                .map(|copy| match next {
                    Some(next) => {
                        json!({"type": "subgraph", "id": format!("n{copy}"), "workflow": next})
                    }
                    None => json!({"type": "clearContext"}),
                })
                .collect();
            (*name, json!({"nodes": nodes}))
        })
        .collect();
    let draft = read_first(&documents);
    assert!(draft.faults.iter().any(|fault| fault.code == "ATM605"), "{:?}", draft.faults);
}

#[test]
fn graphs_too_deep_inside_each_other_are_refused() {
    let nested = |depth: usize| {
        let innermost = json!({"type": "clearContext"});
        let node = (0..depth).fold(innermost, |node, _| json!({"type": "loop", "nodes": [node]}));
        json!({"nodes": [node]})
    };
    assert_eq!(said(&read_alone(&nested(12).to_string())), "");
    let codes = |draft: &Draft| draft.faults.iter().map(|f| f.code).collect::<Vec<_>>();
    assert_eq!(codes(&read_alone(&nested(13).to_string())), ["ATM604"]);

    let around = json!({"nodes": [{"type": "subgraph", "workflow": "b"}]});
    let fits = read_first(&[("a", around.clone()), ("b", nested(11))]);
    assert_eq!(said(&fits), "");
    // It can be written down and read back as a part of something larger.
    let graph = json!([[[[fits.graph()]]]]).to_string();
    assert!(serde_json::from_str::<Value>(&graph).is_ok());
    let draft = read_first(&[("a", around), ("b", nested(12))]);
    assert_eq!(codes(&draft), ["ATM604"]);

    let value = (0..33).fold(json!(1), |value, _| json!([value]));
    let text = json!({"nodes": [], "state": {"deep": value}}).to_string();
    assert_eq!(codes(&read_alone(&text)), ["ATM604"]);
}

#[test]
fn a_library_without_an_end_is_not_read_to_the_end() {
    struct Endless;
    impl Library for Endless {
        fn find(&self, name: &str) -> Option<Found> {
            let next = uses(&format!("{name}x")).to_string();
            Some(Found::Document(Box::new(document(&format!("{name}.json"), &next))))
        }
        fn names(&self) -> Vec<String> {
            vec![]
        }
    }
    let draft = read(&document("a.json", &uses("b").to_string()), &Endless);
    let codes: Vec<_> = draft.faults.iter().map(|fault| fault.code).collect();
    assert_eq!(codes, ["ATM604"]);
}

#[test]
fn an_inner_workflow_keeps_its_limits() {
    let child = json!({"maxIterations": 7, "timeoutMs": 9000, "nodes": [
        {"type": "clearContext"}], "state": {}});
    let draft = read_first(&[("a", uses("b")), ("b", child)]);
    assert_eq!(said(&draft), "");
    let graph = draft.graph().unwrap();
    assert_eq!(graph.nodes[0].timeout_ms, Some(9000));
    let Kind::Subgraph { graph: inner, isolated: true, input: None, output: None } =
        &graph.nodes[0].kind
    else {
        panic!("{graph:?}");
    };
    assert_eq!(inner.max_iterations, Some(Count::Fixed(7)));
    assert_eq!((inner.timeout_ms, inner.nodes.len()), (None, 1));
    assert_eq!(graph.max_iterations, Some(Count::Key("maxIterations".into())));
}

/// The limit that holds when nothing is written is no limit that was meant, and the same number
/// written down is.
#[test]
fn nodes_go_round_as_often_as_is_written() {
    let ring = |more: Value| {
        let mut ring = json!({
            "nodes": [{"type": "clearContext", "id": "a"}, {"type": "clearContext", "id": "b"}],
            "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}],
        });
        let more = more.as_object().unwrap().clone();
        ring.as_object_mut().unwrap().extend(more);
        ring
    };
    let inside = |graph: Value, key: &str| {
        let mut node = json!({"type": "subgraph", "id": "n", "graph": graph});
        node[key] = json!({"$fn": 1});
        json!({"nodes": [node]})
    };
    let written = || json!({"maxIterations": 100});
    let default = json!({"stateAnnotations": {"maxIterations": {"default": 100}}});
    let table = [
        (vec![ring(json!({}))], true),
        (vec![ring(written())], false),
        (vec![ring(json!({"state": {"maxIterations": 100}}))], false),
        (vec![ring(default)], false),
        (vec![inside(ring(json!({})), "inputMapper")], true),
        (vec![inside(ring(written()), "inputMapper")], false),
        (vec![inside(ring(json!({})), "outputMapper")], true),
        (vec![inside(ring(written()), "outputMapper")], false),
        (vec![uses("b"), ring(json!({}))], true),
        (vec![uses("b"), ring(written())], false),
    ];
    for (documents, endless) in table {
        let shown = format!("{documents:?}");
        let documents: Vec<_> = ["a", "b"].into_iter().zip(documents).collect();
        let said = said(&read_first(&documents));
        assert_eq!(said.contains("ATM302"), endless, "{shown}: {said}");
    }
}

#[test]
fn a_nodes_own_time_limit_beats_that_of_the_workflow_it_runs() {
    let outer = json!({"nodes": [{"type": "subgraph", "workflow": "b", "timeoutMs": 5}]});
    let child = json!({"timeoutMs": 9000, "nodes": [{"type": "clearContext"}]});
    let draft = read_first(&[("a", outer), ("b", child)]);
    assert_eq!(draft.graph().unwrap().nodes[0].timeout_ms, Some(5));
}

/// What the graph inside `inner` sees besides this state when it begins.
fn begun(workflow: &Workflow, state: &Value) -> Value {
    let program = Program::compile(workflow.graph.clone()).unwrap();
    let (machine, effects) =
        Machine::start(program, serde_json::from_value(state.clone()).unwrap());
    let [Effect::Start(start)] = effects.as_slice() else { panic!("{effects:?}") };
    let Value::Object(mut seen) = machine.view(&start.step).unwrap().to_value() else { panic!() };
    seen.remove("outputs");
    seen.retain(|key, value| state.get(key) != Some(value));
    Value::Object(seen)
}

#[test]
fn an_inner_workflow_begins_with_its_defaults_for_what_is_not_there() {
    let child = json!({
        "stateAnnotations": {"findings": {"default": [], "reducer": "concat"}},
        "state": {"tone": "short", "prompt": "never"},
        "nodes": [{"type": "clearContext"}],
    });
    let workflow = read_first(&[("a", uses("b")), ("b", child)]).into_workflow().unwrap();
    assert_eq!(begun(&workflow, &json!({"tone": "long"})), json!({"findings": []}));
    assert_eq!(begun(&workflow, &json!({})), json!({"findings": [], "tone": "short"}));
}

#[test]
fn a_built_in_workflow_runs_inside_another() {
    struct BuiltIn;
    impl Library for BuiltIn {
        fn find(&self, name: &str) -> Option<Found> {
            builtin::find(name).ok().map(|workflow| Found::Ready(Box::new(workflow)))
        }
        fn names(&self) -> Vec<String> {
            vec![]
        }
    }
    let draft = read(&document("a.json", &uses("loop").to_string()), &BuiltIn);
    assert_eq!(said(&draft), "");
    let workflow = draft.into_workflow().unwrap();
    let state = begun(&workflow, &json!({"prompt": "x", "workers": 3}));
    assert_eq!(state["tasks"], json!([]));
    assert_eq!(state["limits"]["attempts"], 4);
    assert!(state.get("workers").is_none() && state.get("prompt").is_none(), "{state}");
    assert!(workflow.capabilities().tasks);
}

#[test]
fn functions_of_different_workflows_do_not_meet() {
    let child = json!({"nodes": [{"type": "tool", "id": "t", "execute": {"$fn": 1}}]});
    let outer = json!({"nodes": [
        {"type": "tool", "id": "t", "execute": {"$fn": 1}},
        {"type": "agent", "prompt": {"$fn": 1}},
        {"type": "subgraph", "workflow": "b"},
    ]});
    let workflow = read_first(&[("a", outer), ("b", child)]).into_workflow().unwrap();
    let ids: Vec<_> = workflow.functions.ids().map(ToString::to_string).collect();
    assert_eq!(ids, ["a/1:execute", "a/1:text", "b/1:execute"]);
}

/// Runs a graph: `perform` says what a node returns, conditions are read from the state.
fn run(draft: &Draft, perform: impl Fn(&str, u32) -> StepResult) -> Vec<String> {
    let program = Program::compile(draft.graph().unwrap().clone()).unwrap();
    let (mut machine, mut effects) = Machine::start(program, Default::default());
    let mut visited = vec![];
    let mut finds = 0;
    while let Some(effect) = effects.pop() {
        let input = match effect.clone() {
            Effect::Start(start) => {
                let node = start.step.node().to_owned();
                finds += u32::from(node == "next-task");
                let result = perform(&node, finds);
                visited.push(node);
                Input::Finished { step: start.step, attempt: start.attempt, result }
            }
            Effect::Choose { step, options, .. } => {
                let state = machine.view(&step).unwrap();
                let chosen = (0..).zip(&options).find(|(_, option)| holds(option, &state));
                let chosen = chosen.map(|(number, _)| number);
                Input::Chosen { step, chosen }
            }
            Effect::Finish(outcome) => {
                assert_eq!(outcome, Ok(()));
                continue;
            }
            Effect::Cancel { .. }
            | Effect::Evaluate { .. }
            | Effect::Limit { .. }
            | Effect::Rest { .. }
            | Effect::Ask { .. }
            | Effect::AskLost { .. } => panic!("{effect:?}"),
        };
        effects.extend(machine.apply(input).unwrap());
    }
    assert!(machine.outcome().is_some());
    visited
}

fn holds(condition: &Condition, state: &State) -> bool {
    match condition {
        Condition::Equals { key, value } => {
            state.get(key.as_str()).map(AsRef::as_ref) == Some(value)
        }
        Condition::Not(other) => !holds(other, state),
        Condition::Says { node, text } => {
            state.output(node.as_str()).is_some_and(|said| said.to_string().contains(text))
        }
        Condition::Otherwise => true,
        Condition::Call(function) => panic!("{function}"),
    }
}

#[test]
fn a_task_loop_goes_through_the_tasks_and_stops() {
    let text = |until: Value, limit: u32| {
        json!({"nodes": [{
            "type": "taskLoop", "until": until, "maxIterations": limit,
            "preIterationNode": {"type": "clearContext", "id": "fresh"},
            "taskNodes": [{"type": "agent", "id": "do"}, {"type": "agent", "id": "look"}],
        }]})
        .to_string()
    };
    // There are two tasks; `enough` is set when the second is found.
    let perform = |node: &str, finds: u32| match node {
        "next-task" => StepResult::default().set("tasksDone", finds > 2).set("enough", finds == 2),
        "enough-tasks" => StepResult::default().set("tasksDone", true),
        _ => StepResult::default(),
    };
    let one = "next-task fresh do look complete-task";
    let table = [
        (Value::Null, 0, format!("{one} {one} next-task")),
        (json!({"key": "enough", "equals": true}), 0, format!("{one} next-task enough-tasks")),
        (Value::Null, 1, one.to_owned()),
    ];
    for (until, limit, expected) in table {
        let draft = read_alone(&text(until, limit));
        assert_eq!(said(&draft), "");
        assert_eq!(run(&draft, perform).join(" "), expected);
    }
}

#[test]
fn the_nodes_of_a_task_loop_may_be_called_like_its_own() {
    let text = json!({"nodes": [{"type": "taskLoop", "taskNodes": [
        {"type": "agent", "id": "next-task"}, {"type": "agent", "id": "complete-task"}]}]});
    let draft = read_alone(&text.to_string());
    assert_eq!(said(&draft), "");
    let Kind::Loop { graph, .. } = &draft.graph().unwrap().nodes[0].kind else { panic!() };
    let ids: Vec<_> = graph.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["next-task-2", "next-task", "complete-task", "complete-task-2"]);
}

#[test]
fn a_criteria_loop_ends_when_its_last_node_says_the_word() {
    let text = json!({"nodes": [{"type": "criteriaLoop", "completionSignal": "GOOD", "taskNodes": [
        {"type": "agent", "id": "work"}, {"type": "agent", "id": "say"}]}]});
    let draft = read_alone(&text.to_string());
    assert_eq!(said(&draft), "");
    let Kind::Loop { graph, until: Some(until), max_rounds: 100 } =
        &draft.graph().unwrap().nodes[0].kind
    else {
        panic!("{:?}", draft.graph());
    };
    let outputs = |work: &str, say: &str| {
        let outputs = [("work".into(), json!(work)), ("say".into(), json!(say))];
        State::new(Default::default()).with_outputs(outputs.into())
    };
    assert!(holds(until, &outputs("no", "all GOOD now")));
    assert!(!holds(until, &outputs("all GOOD now", "no")));
    let ids: Vec<&str> = graph.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!((ids, graph.edges.len()), (vec!["work", "say", "judge-criteria"], 2));
}

#[test]
fn nodes_without_edges_run_in_a_row() {
    let text = json!({"catch": "rescue", "state": {"again": false}, "nodes": [
        {"type": "agent"},
        {"type": "decision", "routes": [
            {"condition": {"key": "again", "equals": true}, "target": "agent"}], "fallback": "agent-2"},
        {"type": "agent", "id": "rescue"},
        {"type": "agent"},
        {"type": "agent"},
    ]});
    let draft = read_alone(&text.to_string());
    assert_eq!(said(&draft), "");
    let edges: Vec<_> = draft
        .graph()
        .unwrap()
        .edges
        .iter()
        .map(|edge| {
            format!("{}>{}{}", edge.from[0], edge.to, if edge.when.is_some() { "?" } else { "" })
        })
        .collect();
    assert_eq!(edges.join(" "), "decision>agent? decision>agent-2? agent>decision agent-2>agent-3");
}
