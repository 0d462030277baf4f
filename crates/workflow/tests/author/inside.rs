//! Branches, fans and sub-graphs.

use atomic_event::BackendId;
use atomic_graph::{Count, Kind, NodeId, Reducer, Strategy};
use atomic_workflow::build::{
    Agent, Branches, Config, Draft, Fan, Inner, agent, each, graph, parallel, parallel_subagent,
    skill, subgraph, tool,
};
use atomic_workflow::{Json, Reduce, Update, launchers};
use serde_json::json;

use crate::driver::{run, run_compiled};

fn add(id: &'static str) -> Draft<Json> {
    tool(id, move |_| Update::new().put("log", vec![id]).output(id))
}

fn logged() -> Config {
    Config::new("test").reducer("log", Reducer::Concat)
}

#[test]
fn branches_come_together_and_are_merged() {
    let branches = || {
        Branches::new().branch("left", [add("a"), add("b")]).branch("right", add("c")).merge(
            |outputs, s| {
                assert_eq!(s.value("log"), json!(["first", "a", "b", "c"]));
                Update::new().put("merged", outputs)
            },
        )
    };
    let compiled =
        graph().start(add("first")).parallel(branches()).then(add("z")).compile(logged()).unwrap();
    let Kind::Parallel(node) = &compiled.graph.nodes[1].kind else { panic!("no branches") };
    assert_eq!((node.strategy, node.fail_fast), (Strategy::All, false));
    let ran = run_compiled(compiled, json!({"log": []}));
    assert_eq!(ran.outcome, Ok(()));
    assert_eq!(ran.key("log"), &json!(["first", "a", "b", "c", "z"]));
    assert_eq!(ran.key("merged"), &json!({"left": "b", "right": "c"}));
}

#[test]
fn the_fastest_branch_can_be_enough() {
    let branches = Branches::new()
        .branch(
            "fails",
            tool("x", |_| Err::<Update<Json>, _>(atomic_event::StepError::new("no", "no"))),
        )
        .branch("works", add("y"))
        .strategy(Strategy::Any);
    let ran = run(graph().start(parallel("either", branches)), json!({}));
    assert_eq!(ran.outcome, Ok(()));
    assert_eq!(ran.output("either"), &json!({"works": "y"}));
}

#[test]
fn several_agents_at_once_are_told_apart() {
    let agents = [
        Agent::new("reviewer", "Review {prompt}"),
        Agent::new("reviewer", "Review it again"),
        Agent::new("analyst", "Look at it"),
    ];
    let review =
        parallel_subagent("review", agents).map(|outputs, _| Update::new().put("reviews", outputs));
    let ran = run(graph().start(review), json!({}));
    assert_eq!(
        ran.key("reviews"),
        &json!({
            "reviewer": "Review Build it",
            "reviewer-2": "Review it again",
            "analyst": "Look at it",
        })
    );
}

#[test]
fn agents_skills_and_commands_name_their_backends() {
    let agents = [
        Agent::new("reviewer", "Review").backend("opencode").model("openai/gpt-5"),
        Agent::new("analyst", "Look at it"),
    ];
    let workflow = graph::<Json>()
        .start(parallel_subagent("review", agents))
        .then(skill("commit", "commit", "").backend("copilot").model("gpt-5"))
        .then(agent("end", Agent::new("worker", "Go on").backend("acp:gemini --acp")))
        .then(agent("last", Agent::new("worker", "Stop")).backend("claude"))
        .compile(Config::new("backends"))
        .unwrap();
    let launchers = launchers(&workflow.graph);
    let told: Vec<_> = launchers
        .iter()
        .map(|launcher| (launcher.to_string(), launcher.backend.as_ref().map(BackendId::as_str)))
        .collect();
    let expected = [
        ("review/reviewer/reviewer", Some("opencode")),
        ("review/analyst/analyst", None),
        ("commit", Some("copilot")),
        ("end", Some("acp:gemini --acp")),
        ("last", Some("claude")),
    ];
    assert_eq!(told, expected.map(|(path, backend)| (path.to_owned(), backend)));
    let inner = workflow.graph.nodes[0].inner();
    assert_eq!(inner[0].1.nodes[0].model.as_deref(), Some("openai/gpt-5"));
    assert_eq!(workflow.graph.nodes[1].model.as_deref(), Some("gpt-5"));
}

#[test]
fn a_fan_does_the_same_for_every_item() {
    let body = || {
        graph::<Json>()
            .start(tool("double", |s| Ok(Update::new().output(s.local::<u64>("n")? * 2))))
            .then(tool("note", |s| {
                Update::new().put("log", vec![s.output("double")]).output(s.output("double"))
            }))
    };
    let fan = || Fan::over("numbers", body()).item("n").workers(Count::Fixed(1));
    let compiled = graph().start(each("all", fan())).compile(logged()).unwrap();
    let ran = run_compiled(compiled, json!({"numbers": [1, 2, 3]}));
    assert_eq!(ran.outcome, Ok(()));
    assert_eq!(ran.key("log"), &json!([2, 4, 6]));

    let fan = Fan::over("numbers", body()).tasks().fail_fast();
    let compiled = graph().each("all", fan);
    assert!(compiled.compile(logged()).is_err(), "nothing was started");
}

/// A vote for what is there already counts, whether the others have voted before it or run with it.
#[test]
fn a_fan_loses_no_value_however_many_work_at_once() {
    let vote = || tool("vote", |_| Update::<Json>::new().put("log", vec!["yes"]));
    for workers in [1, 2, 4] {
        let fan = Fan::over("numbers", [vote()]).workers(Count::Fixed(workers));
        let compiled = graph().start(each("all", fan)).compile(logged()).unwrap();
        let ran = run_compiled(compiled, json!({"numbers": [1, 2, 3]}));
        assert_eq!(ran.outcome, Ok(()));
        assert_eq!(ran.key("log"), &json!(["yes", "yes", "yes"]), "{workers}");
    }
}

#[test]
fn a_fan_that_does_not_say_how_many_at_once_takes_as_many_as_the_run_has_workers() {
    let fan = Fan::over("numbers", [tool("x", |_| Update::new())]);
    let workflow = graph().start(each("all", fan)).compile(logged()).unwrap().into_workflow();
    let launch = atomic_workflow::Launch { workers: Some(3), ..Default::default() };
    let mut state = workflow.initial_state.state(&launch).unwrap();
    state.insert("numbers".into(), json!([1, 2, 3, 4, 5]));
    let program = atomic_graph::Program::compile(workflow.graph).unwrap();
    let (_, effects) = atomic_graph::Machine::start(program, state);
    assert_eq!(effects.len(), 3, "{effects:?}");
}

#[test]
fn a_sub_graph_sees_the_state_around_it_and_returns_what_it_changed() {
    let inner = || graph().start(tool("in", |s| Update::new().put("seen", s.value("prompt"))));
    let ran = run(graph().start(subgraph("sub", Inner::of(inner()))), json!({}));
    assert_eq!(ran.output("sub"), &json!({"seen": "Build it", "outputs": {"in": null}}));
    assert!(ran.state.get("seen").is_none());

    let ran = run(graph().start(subgraph("sub", Inner::of(inner()).sharing())), json!({}));
    assert_eq!(ran.key("seen"), "Build it");

    let mapped = subgraph("sub", Inner::of(inner()))
        .map(|ended, s| Update::new().put("got", json!([ended["seen"], s.value("prompt")])));
    let ran = run(graph().start(mapped), json!({}));
    assert_eq!(ran.key("got"), &json!(["Build it", "Build it"]));
}

#[test]
fn a_compiled_graph_can_be_used_twice_in_another() {
    let counter = |by: u64| {
        graph::<Json>()
            .start(tool("count", move |s| {
                Update::new().put("sum", s.value("start").as_u64().unwrap_or(0) + by)
            }))
            .loop_(
                tool("more", |_| Update::new().put("sum", 1)),
                atomic_workflow::build::When::never(),
                2,
            )
            .compile(Config::new("counter").reducer(
                "sum",
                Reduce::with(|old: Option<u64>, change: u64| old.unwrap_or(0) + change),
            ))
            .unwrap()
    };
    let mapped = |by| {
        Inner::mapped(counter(by), |s| Update::<Json>::new().put("start", s.value("n"))).output(
            |inner, s| {
                assert!(inner.output("count").is_null(), "a tool without an output");
                let n = s.value("n").as_u64().unwrap_or(0);
                Update::new().put("n", n + inner.value("sum").as_u64().unwrap_or(0))
            },
        )
    };
    let ran = run(
        graph()
            .start(tool("a", |_| Update::new().put("n", 1)))
            .subgraph("one", mapped(10))
            .subgraph("two", mapped(100)),
        json!({}),
    );
    assert_eq!(ran.outcome, Ok(()));
    // 1, then 1 + (1 + 10 + 2), then 14 + (14 + 100 + 2).
    assert_eq!(ran.key("n"), 130);
}

#[test]
fn a_workflow_can_be_inside_another() {
    let opinion = atomic_workflow::builtin::find("second-opinion").unwrap();
    let twice = graph()
        .start(subgraph("one", Inner::<Json>::of(&opinion)))
        .then(subgraph("two", Inner::<Json>::of(&opinion)))
        .compile(Config::new("twice"))
        .unwrap();
    let inside = |id: &str| {
        let node = twice.graph.nodes.iter().find(|node| node.id == NodeId::from(id)).unwrap();
        node.inner()[0].1.clone()
    };
    assert_eq!(inside("one"), opinion.graph);
    assert_eq!(inside("two"), opinion.graph);
    let ids: Vec<_> = twice.functions.ids().collect();
    assert_eq!(ids, opinion.functions.ids().collect::<Vec<_>>());
}
