//! Everything that can be wrong with what was built.

use atomic_event::Question;
use atomic_workflow::build::{
    Branches, Builder, Config, Draft, Fan, If, Inner, When, ask_user, decision, each, graph,
    parallel, repeat, sequential, skill, subgraph, tool, when,
};
use atomic_workflow::{Field, Json, StateKeys, Update};

fn step(id: &str) -> Draft<Json> {
    tool(id, |_| Update::new())
}

fn yes() -> When<Json> {
    when(|_| true)
}

fn none() -> Vec<Draft<Json>> {
    vec![]
}

type Cases = Vec<(&'static str, Builder<Json>)>;

/// What can be wrong with the calls.
fn calls() -> Cases {
    vec![
        ("start twice", graph().start(step("a")).start(step("b"))),
        ("nothing started", graph().then(step("a"))),
        ("nothing at all", graph()),
        ("nothing at all, then an end", graph().end()),
        ("an empty piece", graph().start(step("a")).then(none())),
        ("an empty sequence", sequential(none())),
        ("a backend nobody knows", graph().start(skill("a", "commit", "").backend("opncode"))),
        ("a backend of a tool", graph().start(step("a").backend("claude"))),
        ("the same id twice", graph().start(step("a")).then(step("b")).then(step("a"))),
        ("else without if", graph().start(step("a")).else_().then(step("b"))),
        ("endif without if", graph().start(step("a")).endif()),
        (
            "two elses",
            graph()
                .start(step("a"))
                .if_(yes())
                .then(step("b"))
                .else_()
                .then(step("c"))
                .else_()
                .then(step("d"))
                .endif(),
        ),
        ("an if that is not closed", graph().start(step("a")).if_(yes()).then(step("b"))),
        (
            "an if that a piece leaves open",
            graph()
                .start(step("a"))
                .then(graph().if_(yes()).then(step("b")))
                .then(step("c"))
                .endif(),
        ),
        ("an empty branch", graph().start(step("a")).if_(yes()).endif()),
        ("an empty else", graph().start(step("a")).if_(yes()).then(step("b")).else_().endif()),
        (
            "an empty object form",
            graph().start(step("a")).branch(If { when: yes(), then: none(), otherwise: none() }),
        ),
    ]
}

/// What can be wrong with the nodes.
fn nodes() -> Cases {
    let in_parallel = |branches| graph().start(parallel("both", branches));
    let left = || Branches::new().branch("left", step("a"));
    let same = |id| step(id).function_id("same");
    vec![
        ("an empty loop", graph().start(step("a")).loop_(none(), yes(), 3)),
        ("a loop without an end", graph().start(repeat("r", step("a"), When::never(), 0))),
        ("no branches", in_parallel(Branches::new())),
        ("an empty branch of a parallel node", in_parallel(left().branch("right", none()))),
        ("two branches of one name", in_parallel(left().branch("left", step("a")))),
        ("catch twice", graph().start(step("a")).catch(step("b")).catch_at("a")),
        ("catch of an unknown node", graph().start(step("a")).catch_at("rescue")),
        ("then after end", graph().start(step("a")).end().then(step("b"))),
        ("if after end", graph().start(step("a")).end().if_(yes()).then(step("b")).endif()),
        ("end twice", graph().start(step("a")).end().end()),
        (
            "a node behind branches that both end",
            graph()
                .start(step("a"))
                .if_(yes())
                .then(step("b"))
                .end()
                .else_()
                .then(step("c"))
                .end()
                .endif()
                .then(step("d")),
        ),
        (
            "an unknown route",
            graph().start(decision("d", [(yes(), "a"), (yes(), "nowhere")], "a")).then(step("a")),
        ),
        (
            "a decision without routes",
            graph().start(decision("d", Vec::<(When<Json>, &str)>::new(), "a")).then(step("a")),
        ),
        ("an unknown goto", graph().start(step("a").may_go_to(["b"]))),
        ("a map that is not called", graph().start(step("a").map(|_, _| Update::new()))),
        (
            "a map that a question cannot have",
            graph().start(ask_user("a", Question::default()).map(|_, _| Update::new())),
        ),
        ("two functions of one id", graph().start(same("b")).then(same("c"))),
        (
            "a mistake deep inside",
            graph().start(each(
                "fan",
                Fan::over("x", [subgraph("sub", Inner::of(graph().start(step("a")).else_()))]),
            )),
        ),
        (
            "several at once",
            graph()
                .start(step("a"))
                .start(step("a"))
                .else_()
                .loop_(none(), When::never(), 0)
                .if_(yes())
                .catch_at("nowhere"),
        ),
    ]
}

#[test]
fn every_mistake_has_a_code_a_place_and_a_remedy() {
    let mut shown = String::new();
    for (what, builder) in calls().into_iter().chain(nodes()) {
        let Err(problems) = builder.compile(Config::new("test")) else {
            panic!("nothing is wrong with {what}")
        };
        // What the checks of a graph find is worded, and tested, there.
        let (own, other): (Vec<_>, Vec<_>) =
            problems.0.iter().partition(|problem| problem.code.starts_with("ATM7"));
        let mut other: Vec<String> =
            other.iter().map(|problem| format!("{} at {}", problem.code, problem.place)).collect();
        other.sort();
        let own = own.iter().map(ToString::to_string);
        let lines: Vec<String> = own.chain(other).collect();
        shown.push_str(&format!("# {what}\n{}\n\n", lines.join("\n")));
    }
    insta::assert_snapshot!("mistakes", shown.trim_end());
}

#[test]
fn the_same_function_may_be_used_twice() {
    let node = tool("a", |_| Update::<Json>::new()).function_id("same");
    let built = graph().start(node.clone()).then(node.id("b"));
    assert!(built.compile(Config::new("fine")).is_ok());
}

#[test]
fn a_default_that_is_not_json_is_a_mistake() {
    struct Odd;
    impl StateKeys for Odd {
        fn fields() -> Vec<Field> {
            vec![Field::new("odd", &std::collections::BTreeMap::from([((1, 2), 3)]))]
        }
    }
    let built = graph::<Odd>().start(tool("a", |_| Update::new()));
    let problems = built.compile(Config::new("test")).unwrap_err().to_string();
    assert_eq!(
        problems,
        "ATM741 error at the graph: the default of key `odd` is not JSON: key must be a string\n  \
         help: use a type that serialises to JSON"
    );
}
