//! Any graph can be drawn.

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy as _, any, prop_oneof, proptest};
use proptest::test_runner::Config;

use super::{check, check_labels, fixtures};
use crate::draw::{Overlay, Status, svg, tree};
use crate::{Condition, Count, Edge, Graph, Kind, Node, OnError, StepId, Strategy};

/// A node: its kind, what it may be told about, and what may be inside.
type Plan = (u8, u8, Vec<Sketch>);

/// Something that will be a graph.
#[derive(Clone, Debug)]
struct Sketch {
    nodes: Vec<Plan>,
    ways: Vec<(usize, usize, u8)>,
    catch: Option<usize>,
}

fn sketch(depth: u32, most: usize) -> BoxedStrategy<Sketch> {
    let inner = if depth == 0 {
        Just(vec![]).boxed()
    } else {
        prop_oneof![3 => Just(vec![]), 1 => vec(sketch(depth - 1, 4), 1..3)].boxed()
    };
    let node = (any::<u8>(), any::<u8>(), inner);
    let way = (0..most + 1, 0..most + 1, any::<u8>());
    (vec(node, 1..=most), vec(way, 0..most * 2), any::<Option<u8>>())
        .prop_map(|(nodes, ways, catch)| {
            let catch = catch.filter(|c| c % 8 == 0).map(|catch| usize::from(catch) % nodes.len());
            Sketch { nodes, ways, catch }
        })
        .boxed()
}

fn name(index: usize, count: usize) -> String {
    if index < count { format!("n{index}") } else { "nowhere".to_owned() }
}

fn graph(sketch: &Sketch) -> Graph {
    let count = sketch.nodes.len();
    let mut graph = Graph::starting_at("n0");
    for (index, plan) in sketch.nodes.iter().enumerate() {
        graph = graph.node(node(&name(index, count), plan));
    }
    for (from, to, how) in &sketch.ways {
        let (from, to) = (from % count, name(*to, count));
        let id = name(from, count);
        match how % 10 {
            0 => graph.nodes[from].on_error = OnError::Goto(to.as_str().into()),
            1 => graph.nodes[from].on_revive = Some(to.as_str().into()),
            2 => graph.nodes[from].targets.push(to.as_str().into()),
            3 => graph = graph.edge_when(id, to, fixtures::equals("a key", "a value")),
            4 => graph = graph.edge_when(id, to, Condition::Otherwise),
            5 => {
                let others =
                    (0..count).filter(|other| (usize::from(*how) + other).is_multiple_of(3));
                let from = others.map(|other| name(other, count).as_str().into()).collect();
                graph.edges.push(Edge { from, to: to.as_str().into(), when: None });
            }
            _ => graph = graph.edge(id, to),
        }
    }
    graph.catch = sketch.catch.map(|catch| name(catch, count).as_str().into());
    graph
}

fn node(id: &str, (kind, told, inner): &Plan) -> Node {
    let mut graphs = inner.iter().map(graph);
    let node = match (kind % 4, graphs.next()) {
        (0, Some(graph)) => fixtures::subgraph(id, graph),
        (1, Some(graph)) => fixtures::looped(id, graph),
        (2, Some(graph)) => fixtures::each(id, graph, Count::Fixed(2)),
        (_, Some(graph)) => {
            let second = graphs.next().map(|graph| ("right", graph));
            let branches = [("left", graph)].into_iter().chain(second).collect();
            fixtures::parallel(id, Strategy::All, branches)
        }
        (0, None) => Node::new(id, Kind::Decision),
        (1, None) => fixtures::agent(id),
        (_, None) => fixtures::work(id),
    };
    match told % 4 {
        0 => node.described("Some words about what this one does, and then some more of them"),
        1 => node.described("Short").timeout_ms(u64::from(*told) * 1_000),
        _ => node,
    }
}

/// Every node of every graph gets a mark.
fn mark_all(graph: &Graph, scope: &str, run: &mut Overlay) {
    for (index, node) in graph.nodes.iter().enumerate() {
        let step = format!("{scope}{}#1", node.id);
        run.add(&StepId::new(&step), Status::ALL[index % 8], Some(index as u64 * 700));
        for (branch, inner) in node.inner() {
            let branch = branch.map(|branch| format!("[{branch}]")).unwrap_or_default();
            mark_all(inner, &format!("{step}{branch}/"), run);
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 96, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_graph_is_drawn_whole_and_without_collisions(sketch in sketch(3, 14)) {
        let graph = graph(&sketch);
        check(&graph, &Overlay::default());
        check_labels(&graph);
        let mut run = Overlay::default();
        mark_all(&graph, "", &mut run);
        check(&graph, &run);
    }
}

fn chain(length: usize) -> Graph {
    let ids: Vec<String> = (0..length).map(|index| format!("n{index}")).collect();
    fixtures::chain(&ids.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_long_chain_is_drawn_in_a_moment() {
    let graph = chain(10_000);
    let text = svg(&graph, &Overlay::default());
    assert_eq!(text.matches("data-node=").count(), 10_000);
    assert_eq!(text.matches("data-from=").count(), 10_001);
    assert_eq!(tree(&graph, &Overlay::default()).len(), 10_000);
}

#[test]
fn many_long_ways_do_not_bend_at_everything_they_pass() {
    let failing = |length: usize| {
        let mut graph = chain(length);
        let targets = [graph.nodes[length - 1].id.clone(), graph.nodes[length - 2].id.clone()];
        for (index, node) in graph.nodes.iter_mut().enumerate() {
            node.on_error = OnError::Goto(targets[index % 2].clone());
        }
        graph
    };
    let text = svg(&failing(1_000), &Overlay::default());
    assert!(text.len() < 4_000_000, "{}", text.len());
    // The longest run beside everything, and even so are in nobody's way.
    check(&failing(100), &Overlay::default());
}
