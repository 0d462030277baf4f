//! Sequences, conditions and decisions.

use atomic_graph::{Condition, FunctionId, Kind, NodeId};
use atomic_workflow::build::{
    Agent, Builder, Config, Draft, If, agent, ask_user, clear_context, command, context_monitor,
    custom, decision, equals, graph, not, says, sequential, shell, skill, subagent, text, tool,
    wait, when,
};
use atomic_workflow::{ContextAction, ContextMonitor, Json, Update};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::driver::{compile, run, run_compiled};

/// A node that returns its name.
fn step(id: &'static str) -> Draft<Json> {
    tool(id, move |_| Update::new().output(id))
}

fn yes(key: &'static str) -> atomic_workflow::build::When<Json> {
    when(move |s| s.value(key) == json!(true))
}

/// The steps for every value of these keys, each on a line.
fn ways(keys: &[&str], build: impl Fn() -> Builder<Json>) -> Vec<String> {
    let mut lines = vec![];
    for number in 0..1 << keys.len() {
        let holds = |place: usize| json!(number >> place & 1 == 1);
        let values: serde_json::Map<String, Value> =
            (0..).zip(keys).map(|(place, key)| ((*key).to_owned(), holds(place))).collect();
        let names: Vec<&str> =
            (0..).zip(keys).filter(|(p, _)| holds(*p) == json!(true)).map(|(_, k)| *k).collect();
        let ran = run(build(), Value::Object(values));
        assert_eq!(ran.outcome, Ok(()), "{names:?}");
        lines.push(format!("{}: {}", names.join("+"), ran.trace().replace("#1", "")));
    }
    lines
}

#[test]
fn nodes_follow_each_other_and_see_what_was_before() {
    let ran = run(
        graph()
            .start(agent("ask", Agent::new("worker", "Do: {prompt}")))
            .then([
                skill("look", "research", text(|s| s.value("prompt").to_string())),
                command("note", "changelog", "minor"),
                shell("test", "cargo test {outputs.look}"),
            ])
            .then(clear_context("fresh"))
            .then(context_monitor(
                "room",
                ContextMonitor { threshold: 0.5, action: ContextAction::Warn },
            ))
            .wait("Have a look")
            .then(wait("look-again", "And again"))
            .then(ask_user("really", atomic_event::Question::default()))
            .then(custom("keep", |s| Update::new().put("kept", s.output("test"))))
            .end(),
        json!({}),
    );
    assert_eq!(
        ran.trace(),
        "ask#1 look#1 note#1 test#1 fresh#1 room#1 wait-1#1 look-again#1 really#1 keep#1"
    );
    assert_eq!(ran.output("ask"), "Do: Build it");
    assert_eq!(ran.output("note"), "Command changelog minor");
    assert_eq!(ran.output("wait-1"), "Continue");
    assert_eq!(ran.key("kept"), "$ cargo test Skill research \"Build it\"");
}

#[test]
fn an_if_goes_one_way_or_the_other_and_both_come_together() {
    let fluent = || {
        graph()
            .start(step("a"))
            .if_(yes("p"))
            .then(step("then"))
            .then(step("then-2"))
            .else_()
            .then(step("else"))
            .endif()
            .then(step("z"))
    };
    assert_eq!(ways(&["p"], fluent), [": a else z", "p: a then then-2 z"]);

    let object = || {
        graph()
            .start(step("a"))
            .branch(If {
                when: yes("p"),
                then: vec![step("then"), step("then-2")],
                otherwise: vec![step("else")],
            })
            .then(step("z"))
    };
    assert_eq!(compile(object()).unwrap().graph, compile(fluent()).unwrap().graph);

    let without_else = || {
        let only = If { when: not(yes("p")), then: vec![step("b")], otherwise: vec![] };
        graph().start(step("a")).branch(only).then(step("z"))
    };
    assert_eq!(ways(&["p"], without_else), [": a b z", "p: a z"]);
}

#[test]
fn ifs_stand_inside_each_other_and_side_by_side() {
    let nested = || {
        graph()
            .start(step("a"))
            .if_(yes("p"))
            .if_(yes("q"))
            .then(step("pq"))
            .endif()
            .then(step("p-only"))
            .else_()
            .then(step("b"))
            .if_(yes("q"))
            .then(step("q-only"))
            .else_()
            .then(step("none"))
            .endif()
            .endif()
            .if_(yes("q"))
            .then(step("late"))
            .endif()
    };
    assert_eq!(
        ways(&["p", "q"], nested),
        [": a b none", "p: a p-only", "q: a b q-only late", "p+q: a pq p-only late"]
    );

    // The last condition may fail with nothing behind it, whatever is before it.
    let deep = || {
        graph()
            .start(step("a"))
            .if_(yes("p"))
            .if_(yes("q"))
            .if_(yes("r"))
            .then(step("pqr"))
            .endif()
            .endif()
            .endif()
    };
    assert_eq!(
        ways(&["p", "q", "r"], deep).join("\n").replace(" end-1", "").replace(" end-2", ""),
        ": a\np: a\nq: a\np+q: a\nr: a\np+r: a\nq+r: a\np+q+r: a pqr"
    );
}

#[test]
fn an_if_can_be_the_first_thing() {
    let first = || graph().if_(yes("p")).then(step("b")).endif().then(step("z"));
    assert_eq!(ways(&["p"], first), [": z", "p: b z"]);
    let only = || graph().if_(yes("p")).then(step("b")).endif();
    assert_eq!(ways(&["p"], only), [": end-1", "p: b"]);
}

#[test]
fn a_branch_may_end_the_run() {
    let ends = || {
        graph()
            .start(step("a"))
            .if_(yes("p"))
            .then(step("stop"))
            .end()
            .else_()
            .if_(yes("q"))
            .then(step("b"))
            .endif()
            .endif()
            .then(step("z"))
            .end()
    };
    assert_eq!(ways(&["p", "q"], ends), [": a z", "p: a stop", "q: a b z", "p+q: a stop"]);
}

#[test]
fn a_branch_may_do_nothing_but_end() {
    let stop = |p, q| {
        graph()
            .start(step("a"))
            .if_(p)
            .end()
            .endif()
            .if_(q)
            .then(step("b"))
            .else_()
            .end()
            .endif()
            .then(step("z"))
    };
    assert_eq!(
        ways(&["p", "q"], || stop(yes("p"), yes("q"))),
        [": a end-2", "p: a end-1", "q: a b z", "p+q: a end-1"]
    );
    let otherwise = || {
        graph().start(step("a")).if_(yes("p")).then(step("b")).else_().end().endif().then(step("z"))
    };
    assert_eq!(ways(&["p"], otherwise), [": a", "p: a b z"]);
}

#[test]
fn a_simple_if_needs_no_node_of_its_own() {
    let built = graph::<Json>()
        .start(step("a"))
        .if_(says("a", "yes"))
        .then(step("b"))
        .else_()
        .then(step("c"))
        .endif()
        .then(step("z"));
    let compiled = compile(built).unwrap();
    let edges: Vec<String> = compiled
        .graph
        .edges
        .iter()
        .map(|edge| {
            let when = match &edge.when {
                None => "",
                Some(Condition::Says { .. }) => " when it says so",
                Some(Condition::Otherwise) => " otherwise",
                Some(other) => panic!("{other:?}"),
            };
            format!("{} → {}{when}", edge.from[0], edge.to)
        })
        .collect();
    assert_eq!(edges, ["a → b when it says so", "a → c otherwise", "b → z", "c → z"]);
    assert_eq!(compiled.graph.nodes.len(), 4);
}

#[test]
fn a_decision_takes_the_first_route_that_holds() {
    let routes = || {
        graph()
            .start(step("a"))
            .then(decision("more", [(yes("p"), "work"), (equals("q", json!(true)), "a-z")], "z"))
            .then(step("work"))
            .then(step("a-z"))
            .then(step("z"))
    };
    assert_eq!(
        ways(&["p", "q"], routes),
        [": a z", "p: a work a-z z", "q: a a-z z", "p+q: a work a-z z"]
    );
}

#[test]
fn pieces_are_put_together() {
    let review = || sequential([step("look"), step("judge")]);
    let built = || {
        graph()
            .start(step("a"))
            .then(graph().if_(yes("p")).then(review()).endif())
            .then(sequential([step("y"), step("z")]))
    };
    assert_eq!(ways(&["p"], built), [": a y z", "p: a look judge y z"]);
}

#[test]
fn closures_get_ids_from_where_they_are() {
    let compiled = graph::<Json>()
        .start(
            subagent(
                "plan",
                Agent::new("planner", text(|_| "x".to_owned())).parse(|text| Ok(json!(text))),
            )
            .map(|_, _| Update::new())
            .retry_if(|_, _| true),
        )
        .if_(yes("p"))
        .then(step("a"))
        .endif()
        .then(decision("more", [(yes("p"), "a"), (yes("q"), "a")], "keep"))
        .then(step("keep").function_id("test/keep"))
        .loop_([step("a"), agent("b", Agent::new("b", text(|_| "x".to_owned())))], yes("q"), 0)
        .compile(Config::new("ids"))
        .unwrap();
    let ids: Vec<&str> = compiled.functions.ids().map(FunctionId::as_str).collect();
    assert_eq!(
        ids,
        [
            "a/execute",
            "if-1/when",
            "loop-1/a/execute",
            "loop-1/b/prompt",
            "loop-1/until",
            "more/route-1",
            "more/route-2",
            "plan/map",
            "plan/parse",
            "plan/retry",
            "plan/task",
            "test/keep"
        ]
    );
    let launches = |id: &str| {
        let node = compiled.graph.nodes.iter().find(|node| node.id == NodeId::from(id)).unwrap();
        matches!(node.kind, Kind::Work { launch: true, .. })
    };
    assert!(launches("plan") && !launches("keep"));
}

/// What an author may write, as data.
#[derive(Clone, Debug)]
enum Written {
    Step,
    End,
    If { key: usize, then: Vec<Self>, otherwise: Option<Vec<Self>> },
}

fn sequences() -> impl Strategy<Value = Vec<Written>> {
    let leaf = prop_oneof![9 => Just(Written::Step), 1 => Just(Written::End)];
    let item = leaf.prop_recursive(3, 24, 3, |inner| {
        let list = || proptest::collection::vec(inner.clone(), 1..4);
        (0..KEYS.len(), list(), proptest::option::of(list()))
            .prop_map(|(key, then, otherwise)| Written::If { key, then, otherwise })
    });
    proptest::collection::vec(item, 1..5)
}

const KEYS: [&str; 3] = ["p", "q", "r"];

/// What comes after an end is left out, as a builder refuses it.
fn build(built: Builder<Json>, items: &[Written], n: &mut usize, started: bool) -> Builder<Json> {
    let mut built = built;
    for (place, item) in items.iter().enumerate() {
        built = match item {
            Written::Step => {
                *n += 1;
                let id = format!("s{n}");
                let node = tool(id.as_str(), |_| Update::new());
                if started || place > 0 { built.then(node) } else { built.start(node) }
            }
            Written::End => return built.end(),
            Written::If { key, then, otherwise } => {
                let mut built = build(built.if_(yes(KEYS[*key])), then, n, true);
                if let Some(otherwise) = otherwise {
                    built = build(built.else_(), otherwise, n, true);
                }
                built.endif()
            }
        };
    }
    built
}

/// The steps that must be done; says whether the run goes on behind them.
fn interpret(
    items: &[Written],
    n: &mut usize,
    holds: &dyn Fn(usize) -> bool,
    done: &mut Vec<String>,
) -> bool {
    let mut goes_on = true;
    for item in items {
        match item {
            Written::Step => {
                *n += 1;
                if goes_on {
                    done.push(format!("s{n}#1"));
                }
            }
            Written::End => return false,
            Written::If { key, then, otherwise } => {
                let mut unused = vec![];
                let taken = goes_on && holds(*key);
                let first = interpret(then, n, holds, if taken { done } else { &mut unused });
                let not_taken = goes_on && !holds(*key);
                let second = otherwise.as_ref().is_none_or(|otherwise| {
                    interpret(otherwise, n, holds, if not_taken { done } else { &mut unused })
                });
                goes_on &= if holds(*key) { first } else { second };
            }
        }
    }
    goes_on
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_ifs_are_nested_the_right_nodes_run(items in sequences(), bits in 0..8usize) {
        let holds = |key: usize| bits >> key & 1 == 1;
        let values: serde_json::Map<String, Value> =
            (0..).zip(KEYS).map(|(place, key)| (key.to_owned(), json!(holds(place)))).collect();
        let mut expected = vec![];
        interpret(&items, &mut 0, &holds, &mut expected);
        // What no way leads to is refused; then there is nothing to run.
        let compiled = match compile(build(graph(), &items, &mut 0, false)) {
            Ok(compiled) => compiled,
            Err(problems) => {
                let all = problems.0.iter().all(|problem| ["ATM108", "ATM703"].contains(&problem.code));
                prop_assert!(all, "{}", problems);
                return Ok(());
            }
        };
        let mut ran = run_compiled(compiled, Value::Object(values));
        prop_assert_eq!(ran.outcome, Ok(()));
        ran.steps.retain(|step| step.starts_with('s'));
        prop_assert_eq!(ran.steps, expected);
    }
}
