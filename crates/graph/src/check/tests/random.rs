//! Random graphs: good ones have no errors, broken ones do, and what never ends is found.

use proptest::prelude::*;
use serde_json::json;

use super::cases::uses;
use super::{errors, problems, short};
use crate::check::{Code, Known, Spans, check};
use crate::{
    Branch, Condition, Count, Each, Graph, Kind, Node, NodeId, OnError, Parallel, Ready, Reducer,
    Strategy as Wait,
};

/// Turns bytes into choices, so that a failing graph shrinks.
struct Picks<'p> {
    bytes: &'p [u8],
    next: usize,
}

impl Picks<'_> {
    /// A number below `limit`; 0 once the bytes have run out.
    fn pick(&mut self, limit: usize) -> usize {
        let byte = self.bytes.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(byte) % limit
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.pick(count) == count - 1
    }
}

fn name(n: usize) -> NodeId {
    NodeId::from(format!("node-{n}"))
}

/// A well-formed graph: every node is led to by one before it, and what goes back is limited.
fn graph(picks: &mut Picks<'_>, depth: usize) -> Graph {
    let count = 1 + picks.pick(6);
    let mut graph = Graph::starting_at(name(0)).reducer("log", Reducer::Concat);
    for n in 0..count {
        let kind = kind(picks, depth);
        let mut node = Node::new(name(n), kind);
        if picks.one_in(5) {
            node.on_error = OnError::Goto(name(picks.pick(count)));
        }
        if picks.one_in(5) {
            node.targets = vec![name(picks.pick(count))];
        }
        if picks.one_in(5) {
            node.on_revive = Some(name(picks.pick(count)));
        }
        graph = graph.node(node);
    }
    for n in 1..count {
        graph = graph.edge(name(picks.pick(n)), name(n));
    }
    if picks.one_in(2) && count > 2 {
        let from = (0..count - 1).map(name).collect();
        graph.edges.push(crate::Edge { from, to: name(count - 1), when: None });
    }
    if picks.one_in(2) {
        graph.max_iterations = Some(Count::Fixed(5));
        graph = graph.edge(name(count - 1), name(0));
    } else if picks.one_in(2) {
        graph = graph.edge_when(name(count - 1), name(0), Condition::Call("again".into()));
        if matches!(graph.nodes[count - 1].kind, Kind::Decision) {
            // This edge is going to be its `otherwise`.
            graph.max_iterations = Some(Count::Fixed(5));
        }
    }
    if picks.one_in(4) {
        graph.catch = Some(name(picks.pick(count)));
    }
    decided(graph)
}

/// Gives the edges of decisions their conditions; a decision that leads nowhere becomes work.
fn decided(mut graph: Graph) -> Graph {
    for node in &mut graph.nodes {
        if !matches!(node.kind, Kind::Decision) {
            continue;
        }
        let is_joined = graph.edges.iter().any(|e| e.from.len() > 1 && e.from.contains(&node.id));
        let edges = graph.edges.iter_mut().filter(|e| e.from.contains(&node.id));
        let mut edges: Vec<_> = edges.collect();
        match edges.pop() {
            Some(last) if !is_joined => {
                last.when = Some(Condition::Otherwise);
                for edge in edges {
                    edge.when = Some(Condition::Call("this-way".into()));
                }
            }
            Some(_) | None => node.kind = action(),
        }
    }
    graph
}

fn action() -> Kind {
    Kind::Work { action: json!({"writes": "log"}), launch: false, asks: false }
}

fn kind(picks: &mut Picks<'_>, depth: usize) -> Kind {
    if depth == 0 {
        return if picks.one_in(3) { Kind::Decision } else { action() };
    }
    match picks.pick(7) {
        3 => super::cases::subgraph(graph(picks, depth - 1)),
        4 => Kind::Loop { graph: graph(picks, depth - 1), until: None, max_rounds: 2 },
        5 => Kind::Each(Each {
            over: "items".into(),
            item: "item".into(),
            graph: graph(picks, depth - 1),
            workers: Count::Fixed(1 + picks.pick(3) as u64),
            ready: Ready::Once,
            fail_fast: picks.one_in(2),
            order: Ready::Once.order(),
        }),
        6 => {
            let strategy = [Wait::All, Wait::Race, Wait::Any][picks.pick(3)];
            let count = 1 + picks.pick(3);
            let branch = |n| Branch { id: name(n), graph: graph(picks, depth - 1) };
            let branches = (0..count).map(branch).collect();
            Kind::Parallel(Parallel { branches, strategy, fail_fast: false, merge: None })
        }
        2 => Kind::Decision,
        _ => action(),
    }
}

/// The nodes from which, however choices fall, the run never comes to an end; by going over the
/// rules again and again until nothing changes. `plain` are always taken, of `choices` one is,
/// or none where there is no `otherwise`.
fn endless(plain: &[(usize, usize)], choices: &[Vec<usize>], otherwise: &[bool]) -> Vec<bool> {
    let mut ends = vec![false; choices.len()];
    for _ in 0..=choices.len() {
        for n in 0..choices.len() {
            let all_end = plain.iter().all(|(from, to)| *from != n || ends[*to]);
            let may_choose = choices[n].iter().any(|to| ends[*to]);
            let chosen_ends = choices[n].is_empty() || !otherwise[n] || may_choose;
            ends[n] |= all_end && chosen_ends;
        }
    }
    ends.iter().map(|ends| !ends).collect()
}

proptest! {
    /// What is well-formed is let through; what refers to a node that is gone is not.
    #[test]
    fn a_good_graph_has_no_errors_and_one_that_lacks_a_node_has(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        gone in any::<prop::sample::Index>(),
    ) {
        let mut graph = graph(&mut Picks { bytes: &bytes, next: 0 }, 2);
        let found = check(&graph, &uses, &Known::default(), &Spans::default());
        prop_assert_eq!(errors(&found), Vec::<&crate::check::Problem>::new());

        // Something refers to every node: the start, or the edge that leads to it.
        graph.nodes.remove(gone.index(graph.nodes.len()));
        let found = problems(&graph);
        prop_assert!(!errors(&found).is_empty(), "{:?}", short(&found));
    }

    /// An error where nodes can never come to an end, and only there.
    #[test]
    fn what_never_ends_is_found(
        plain in prop::collection::vec((0usize..6, 0usize..6), 0..8),
        chosen in prop::collection::vec((0usize..6, 0usize..6), 0..8),
        otherwise in prop::collection::vec(any::<bool>(), 6),
    ) {
        let mut graph = Graph::starting_at("node-0");
        for n in 0..6 {
            graph = graph.node(super::work(name(n).as_str()));
            // So that every node is reached, though not by an edge.
            if n > 0 {
                graph.nodes[n - 1].on_revive = Some(name(n));
            }
        }
        for (from, to) in &plain {
            graph = graph.edge(name(*from), name(*to));
        }
        let mut choices = vec![vec![]; 6];
        for (from, to) in chosen {
            choices[from].push(to);
        }
        for (from, targets) in choices.iter().enumerate() {
            for (n, to) in targets.iter().enumerate() {
                let is_last = otherwise[from] && n + 1 == targets.len();
                let call = Condition::Call("this-way".into());
                let when = if is_last { Condition::Otherwise } else { call };
                graph = graph.edge_when(name(from), name(*to), when);
            }
        }
        let found = problems(&graph);
        let never_ends = endless(&plain, &choices, &otherwise).contains(&true);
        let is_found = found.iter().any(|problem| problem.code == Code::CYCLE_WITHOUT_END);
        prop_assert_eq!(is_found, never_ends, "{:?}", short(&found));
    }
}
