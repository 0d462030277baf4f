use std::path::Path;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Bound, Certificate, certify};
use crate::{
    Branch, Condition, Count, Each, Graph, Kind, Node, OnError, Parallel, Patch, Ready, Retry,
    State, Strategy,
};

/// A graph with the numbers worked out by hand.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Golden {
    pub(super) graph: Graph,
    pub(super) state: Patch,
    pub(super) launches: Bound,
    pub(super) at_once: Bound,
}

pub(super) fn golden() -> Vec<(String, Golden)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-graphs");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &Path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        (name.clone(), serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}")))
    };
    files.iter().map(|path| read(path)).collect()
}

pub(super) fn launch(id: &str, attempts: u32) -> Node {
    Node::launch(id, json!({})).retry(Retry { attempts, ..Retry::default() })
}

fn only(node: Node) -> Graph {
    Graph::starting_at(node.id.clone()).node(node)
}

fn state(values: Value) -> State {
    State::new(serde_json::from_value(values).unwrap())
}

fn call() -> Condition {
    Condition::Call("f".into())
}

fn repeat(graph: Graph, max_rounds: u32) -> Node {
    Node::new("loop", Kind::Loop { graph, until: Some(call()), max_rounds })
}

fn each(graph: Graph, workers: Count, ready: Ready) -> Node {
    let (over, item) = ("list".into(), "item".into());
    Node::new(
        "fan",
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

fn numbers(certificate: &Certificate) -> (Option<u64>, Option<u64>) {
    (certificate.launches.into(), certificate.at_once.into())
}

#[test]
fn the_golden_graphs_have_the_numbers_worked_out_by_hand() {
    let all = golden();
    assert_eq!(all.len(), 10);
    for (name, golden) in all {
        let got = certify(&golden.graph, &State::new(golden.state));
        assert_eq!((got.launches, got.at_once), (golden.launches, golden.at_once), "{name}\n{got}");
        assert_eq!(got.unbounded, [], "{name}");
    }
}

type Row = (&'static str, Graph, (Option<u64>, Option<u64>));

/// A row says: this graph has so many launches, so many of them at once.
fn check(values: &Value, table: Vec<Row>) {
    for (name, graph, expected) in table {
        let got = certify(&graph, &state(values.clone()));
        assert_eq!(numbers(&got), expected, "{name}\n{got}");
        let known = got.launches < Bound::Unbounded;
        assert_eq!(got.unbounded.is_empty(), known, "{name}\n{got}");
    }
}

fn with(mut graph: Graph, change: impl Fn(&mut Graph)) -> Graph {
    change(&mut graph);
    graph
}

fn a_and_b() -> Graph {
    Graph::starting_at("a").node(launch("a", 1)).node(launch("b", 1))
}

fn round() -> Graph {
    a_and_b().edge("a", "b").edge_when("b", "a", call())
}

#[test]
fn edges_and_jumps_count_as_they_should() {
    let meeting = || {
        let spread = a_and_b().node(launch("c", 5)).edge("a", "b").edge("a", "c");
        spread.node(launch("d", 1)).edge("b", "d").edge("c", "d")
    };
    let or_b = only(launch("a", 2).on_error(OnError::Goto("b".into()))).node(launch("b", 1));
    let asks = only(launch("a", 1).on_error(OnError::Call("f".into())));
    let fork = only(launch("go", 1).may_go_to(["a", "b"]));
    let table = vec![
        ("no launch", only(Node::work("a", json!(1))), (Some(0), Some(0))),
        ("a node apart", a_and_b(), (Some(1), Some(1))),
        ("ways that meet again", meeting(), (Some(8), Some(2))),
        ("one at a time", with(meeting(), |g| g.max_concurrency = Some(1)), (Some(8), Some(1))),
        ("catch", with(a_and_b(), |g| g.catch = Some("b".into())), (Some(2), Some(1))),
        ("on error", or_b, (Some(3), Some(1))),
        ("a function asks again", asks, (Some(3), Some(1))),
        ("no attempts is one", only(launch("a", 0)), (Some(1), Some(1))),
        ("goto", fork.node(launch("a", 1)).node(launch("b", 1)), (Some(3), Some(2))),
    ];
    check(&json!({}), table);
}

#[test]
fn cycles_count_as_they_should() {
    let limited = |on_error| {
        let a = launch("a", 2).max_visits(Count::Fixed(3)).on_error(on_error);
        Graph::starting_at("a").node(a).edge("a", "b").edge("b", "a")
    };
    let seven = Some(Count::Fixed(7));
    let table = vec![
        ("without end", round(), (None, Some(1))),
        ("so often", with(round(), |g| g.max_iterations = seven.clone()), (Some(14), Some(1))),
        ("so many steps", with(round(), |g| g.max_steps = Some(7)), (Some(7), Some(1))),
        ("a limit", limited(OnError::Abort).node(launch("b", 1)), (Some(9), Some(1))),
        (
            "a limit that is skipped",
            limited(OnError::Skip).node(Node::work("b", json!(1))),
            (Some(6), Some(1)),
        ),
        (
            "a limit that is skipped, and the rest goes on",
            limited(OnError::Skip).node(launch("b", 1)),
            (None, Some(1)),
        ),
    ];
    check(&json!({}), table);
    check(&json!({"maxLaunches": 5}), vec![("a ceiling", round(), (Some(5), Some(1)))]);
}

#[test]
fn loops_and_branches_count_as_they_should() {
    let both = |strategy| {
        let branch = |id: &str, n| Branch { id: id.into(), graph: only(launch("x", n)) };
        let branches = vec![branch("left", 1), branch("right", 2)];
        let (fail_fast, merge) = (true, None);
        let kind = Kind::Parallel(Parallel { branches, strategy, fail_fast, merge });
        only(Node::new("both", kind))
    };
    let quiet = only(Node::work("a", json!(1)));
    let limited = only(launch("a", 2).max_visits(Count::Fixed(3)));
    let table = vec![
        ("rounds", only(repeat(a_and_b().edge("a", "b"), 4)), (Some(8), Some(1))),
        ("without end", only(repeat(only(launch("a", 1)), 0)), (None, Some(1))),
        ("without launches", only(repeat(quiet, 0)), (Some(0), Some(0))),
        ("rounds share a limit", only(repeat(limited, 9)), (Some(6), Some(1))),
        ("all", both(Strategy::All), (Some(3), Some(2))),
        ("race", both(Strategy::Race), (Some(3), Some(2))),
        ("any", both(Strategy::Any), (Some(3), Some(2))),
    ];
    check(&json!({}), table);
}

#[test]
fn fans_count_as_they_should() {
    let fixed = Count::Fixed;
    let key = |key: &str| Count::Key(key.into());
    let twice = || only(launch("a", 2));
    let limited = || only(launch("a", 2).max_visits(key("most")));
    let by_item = || with(round(), |g| g.max_iterations = Some(key("item")));
    let table = vec![
        ("a list", only(each(twice(), key("w"), Ready::Once)), (Some(6), Some(3))),
        ("tasks", only(each(twice(), fixed(2), Ready::Tasks)), (None, Some(2))),
        ("tasks, workers not known", only(each(twice(), key("w"), Ready::Tasks)), (None, None)),
        ("limited tasks", only(each(limited(), key("w"), Ready::Tasks)), (Some(10), Some(5))),
        ("the item is a limit", only(each(by_item(), fixed(1), Ready::Once)), (Some(12), Some(1))),
    ];
    check(&json!({"list": [1, 2, 3], "most": 5}), table);
    let unknown = vec![
        ("no list yet", only(each(twice(), fixed(2), Ready::Once)), (None, Some(2))),
        ("no list and no workers yet", only(each(twice(), key("w"), Ready::Once)), (None, None)),
    ];
    check(&json!({}), unknown);
}

#[test]
fn a_limit_of_the_whole_run_is_shared_by_everything_that_runs() {
    // Three items of different length share four visits.
    let inner = only(launch("a", 1).max_visits(Count::Fixed(4)));
    let outer = Graph::starting_at("loop")
        .node(Node::new("loop", Kind::Loop { graph: inner, until: None, max_rounds: 3 }));
    let got = certify(
        &only(each(outer, Count::Fixed(9), Ready::Once)),
        &state(json!({
            "list": [1, 2, 3],
        })),
    );
    assert_eq!(numbers(&got), (Some(4), Some(3)), "{got}");
}

#[test]
fn what_has_no_limit_is_named_with_the_reason_and_what_to_do() {
    let worker = launch("worker", 1).max_visits(Count::Key("maxIterations".into()));
    let fan = each(only(worker), Count::Key("workers".into()), Ready::Tasks);
    let sub = Kind::Subgraph {
        graph: only(each(only(launch("x", 1)), Count::Fixed(1), Ready::Once)),
        isolated: false,
        input: Some("make".into()),
        output: None,
    };
    let graph = Graph::starting_at("a")
        .node(launch("a", 1))
        .node(launch("b", 1))
        .node(fan)
        .node(Node::new("sub", sub))
        .node(repeat(only(launch("y", 1)), 0))
        .edge("a", "b")
        .edge_when("b", "a", call())
        .edge("b", "fan")
        .edge("b", "sub")
        .edge("b", "loop");
    let certificate = certify(&graph, &state(json!({"workers": 2})));
    let text = certificate.to_string();
    for line in [
        "agent launches: no limit",
        "agents at once: at most 5",
        "  fan/worker: no limit",
        "no limit at `a`: a cycle without a limit leads again and again to `a`, `b`, `fan`, `sub`, `loop`; \
         set `max_iterations` of its graph or `max_visits` of a node, or set `maxLaunches`",
        "no limit at `fan`: its tasks may run again and new ones may come; this is known when \
         `maxIterations` is, or set `maxLaunches`",
        "no limit at `sub/fan`: its list, `list`, is made by the function `make`; set `max_visits` \
         of `sub/fan/x`, or set `maxLaunches`",
        "no limit at `loop`: nothing limits how often the loop goes round; set `max_rounds`, or \
         `max_visits` of `loop/y`, or set `maxLaunches`",
        "holds until one of these changes: `list`, `maxIterations`, `maxLaunches`, `workers`",
        "not counted: a step that is cut off and started again, and a failed run that is resumed",
    ] {
        assert!(text.contains(line), "{line:?} is not in:\n{text}");
    }
}

#[test]
fn it_reads_back_as_it_was_written() {
    let graph = only(repeat(only(launch("a", 2)), 0)).node(launch("b", 1));
    let certificate = certify(&graph, &state(json!({})));
    let written = serde_json::to_value(&certificate).unwrap();
    assert_eq!(written["launches"], Value::Null);
    assert_eq!(written["atOnce"], json!(1));
    assert_eq!(written["nodes"][1], json!({"path": "b", "launches": 0}));
    assert_eq!(written["restsOn"], json!(["maxLaunches"]));
    assert_eq!(serde_json::from_value::<Certificate>(written).unwrap(), certificate);
}

#[test]
fn large_graphs_are_certified_in_no_time() {
    let chain = |n: usize, attempts| {
        let mut graph = Graph::starting_at("0");
        for i in 0..n {
            graph = graph.node(launch(&i.to_string(), attempts));
            graph.edges.extend((i > 0).then(|| crate::Edge {
                from: vec![(i - 1).to_string().into()],
                to: i.to_string().into(),
                when: None,
            }));
        }
        graph
    };
    let wide = |n: usize| {
        let mut graph = Graph::starting_at("start").node(launch("start", 1));
        for i in 0..n {
            graph = graph.node(launch(&i.to_string(), 2)).edge("start", i.to_string());
        }
        let from = (0..n).map(|i| i.to_string().into()).collect();
        graph.edges.push(crate::Edge { from, to: "end".into(), when: None });
        graph.node(launch("end", 1))
    };
    let mut forks = chain(1_000, 1);
    for i in 0..998 {
        forks = forks.edge_when(i.to_string(), (i + 2).to_string(), call());
    }
    let mut caught = wide(1_000);
    caught.catch = Some("help".into());
    let caught = caught.node(launch("help", 1));
    let mut rounds = chain(1_000, 2);
    rounds.max_iterations = Some(Count::Fixed(100));
    let rounds = rounds.edge_when("999", "0", call());
    let table = [
        ("chain", chain(10_000, 3), (Some(30_000), Some(1))),
        ("wide", wide(10_000), (Some(20_002), Some(10_000))),
        ("caught", caught, (Some(2_005), Some(1_001))),
        ("rounds", rounds, (Some(200_000), Some(1))),
    ];
    for (name, graph, expected) in table {
        let begun = Instant::now();
        let got = certify(&graph, &State::default());
        assert_eq!(numbers(&got), expected, "{name}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{name}: {:?}", begun.elapsed());
    }
    let begun = Instant::now();
    let got = certify(&forks, &State::default());
    assert!(got.launches < Bound::Unbounded && got.launches >= Bound::AtMost(1_000));
    assert!(begun.elapsed() < Duration::from_secs(20), "forks: {:?}", begun.elapsed());
}
