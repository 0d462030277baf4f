//! What can follow what in one graph, whatever its nodes return.

use std::collections::BTreeMap;

use super::Bound;
use crate::{Condition, Graph, Kind, Node, NodeId, OnError};

/// One graph as control flow; nodes and joins are known by number.
pub(super) struct Flow {
    /// Absent where the graph names a start that it does not have.
    pub(super) start: Option<u32>,
    pub(super) ways: Vec<Ways>,
    pub(super) joins: Vec<Join>,
}

/// An edge that waits for several nodes.
pub(super) struct Join {
    pub(super) from: Vec<u32>,
    pub(super) to: u32,
}

/// The ways on from one node.
#[derive(Default)]
pub(super) struct Ways {
    /// The targets of edges without a condition.
    plain: Vec<u32>,
    /// The joins it arrives at without a condition.
    pub(super) joins: Vec<u32>,
    /// The targets of edges with a condition, of which one at most is taken. Such an edge waits
    /// for nobody.
    choices: Vec<u32>,
    /// Whether it is asked about conditions, and so goes on after those that are not.
    pub(super) late: bool,
    /// Whether it takes a condition's target and nothing besides.
    decides: bool,
    /// Whether it may take none of them.
    none: bool,
    /// Where a result may lead instead; several at once are possible.
    goto: Vec<u32>,
    /// Whether a failure goes on along the edges.
    skips: bool,
    /// Where a failure may lead instead.
    jumps: Vec<u32>,
}

/// One way on from one node: the nodes it leads to and the joins it arrives at.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Move {
    pub(super) to: Vec<u32>,
    pub(super) at: Vec<u32>,
}

/// With more targets than these, a `goto` has too many combinations to look at each.
const MAX_GOTO: usize = 8;

impl Flow {
    pub(super) fn of(graph: &Graph) -> Self {
        let index: BTreeMap<&NodeId, u32> =
            graph.nodes.iter().map(|node| &node.id).zip(0u32..).collect();
        let catch = graph.catch.as_ref().and_then(|node| index.get(node).copied());
        let ways = graph.nodes.iter().zip(0u32..);
        let ways = ways.map(|(node, number)| ways_without_edges(node, number, catch, &index));
        let mut flow =
            Self { start: index.get(&graph.start).copied(), ways: ways.collect(), joins: vec![] };
        // What comes after an `Otherwise` is never taken.
        let mut closed = vec![false; graph.nodes.len()];
        for edge in &graph.edges {
            let mut from: Vec<u32> =
                edge.from.iter().filter_map(|node| index.get(node).copied()).collect();
            from.sort_unstable();
            from.dedup();
            if let Some(to) = index.get(&edge.to) {
                flow.add_edge(from, *to, edge.when.as_ref(), &mut closed);
            }
        }
        for ((ways, node), closed) in flow.ways.iter_mut().zip(&graph.nodes).zip(closed) {
            ways.none = ways.choices.is_empty() || !closed;
            ways.decides = matches!(node.kind, Kind::Decision);
            if ways.decides && !ways.skips {
                ways.plain.clear();
                ways.joins.clear();
            }
            ways.plain.sort_unstable();
            ways.plain.dedup();
        }
        flow
    }

    fn add_edge(&mut self, from: Vec<u32>, to: u32, when: Option<&Condition>, closed: &mut [bool]) {
        let join = u32::try_from(self.joins.len()).unwrap_or(u32::MAX);
        let waits = from.len() > 1;
        for node in &from {
            let ways = &mut self.ways[*node as usize];
            let closed = &mut closed[*node as usize];
            match when {
                None if waits => ways.joins.push(join),
                None => ways.plain.push(to),
                Some(_) if *closed => {}
                Some(when) => {
                    ways.choices.push(to);
                    ways.late = true;
                    *closed = *when == Condition::Otherwise;
                }
            }
        }
        if waits && when.is_none() {
            self.joins.push(Join { from, to });
        }
    }

    /// Every node that can come right after each node.
    pub(super) fn follows(&self) -> Vec<Vec<u32>> {
        let all = self.ways.iter().map(|ways| {
            let joins = ways.joins.iter().map(|join| self.joins[*join as usize].to);
            let mut all = ways.straight();
            all.extend(joins);
            all.sort_unstable();
            all.dedup();
            all
        });
        all.collect()
    }

    /// The joins that lead to each node.
    pub(super) fn joins_to(&self) -> Vec<Vec<&Join>> {
        let mut all: Vec<Vec<&Join>> = self.ways.iter().map(|_| vec![]).collect();
        for join in &self.joins {
            all[join.to as usize].push(join);
        }
        all
    }

    /// Whether the graph ends when `node` may not be visited any more.
    pub(super) fn refusal_ends(&self, node: u32) -> bool {
        let ways = &self.ways[node as usize];
        !ways.skips && ways.jumps.is_empty()
    }

    /// Whether never more than one node is active.
    pub(super) fn is_sequential(&self) -> bool {
        self.joins.is_empty()
            && self.ways.iter().all(|ways| {
                let choice = usize::from(!ways.choices.is_empty());
                ways.plain.len() + choice <= 1 && ways.goto.len() <= 1
            })
    }

    /// The ways on from a node that was visited, besides failing the graph, or from one that
    /// was refused a visit. Absent when there are too many.
    pub(super) fn moves(&self, node: u32, refused: bool) -> Option<Vec<Move>> {
        let ways = &self.ways[node as usize];
        let mut moves = vec![];
        if !refused && ways.decides {
            moves.extend(ways.choices.iter().map(|to| Move { to: vec![*to], at: vec![] }));
        }
        if ways.skips || !(refused || ways.decides) {
            if ways.none {
                moves.push(Move { to: ways.plain.clone(), at: ways.joins.clone() });
            }
            moves.extend(ways.choices.iter().map(|to| ways.taking(*to)));
        }
        if !refused && !ways.goto.is_empty() {
            if ways.goto.len() > MAX_GOTO {
                return None;
            }
            moves.extend((0..1u32 << ways.goto.len()).map(|chosen| {
                let to = (0..).zip(&ways.goto).filter(|(bit, _)| chosen >> bit & 1 == 1);
                Move { to: to.map(|(_, to)| *to).collect(), at: vec![] }
            }));
        }
        moves.extend(ways.jumps.iter().map(|to| Move { to: vec![*to], at: vec![] }));
        moves.sort_unstable();
        moves.dedup();
        Some(moves)
    }

    /// The most that can come of one visit to `node`, where `worth` says what comes of one to
    /// each node after it. A join counts for the first of the nodes it waits for: it is passed
    /// no more often than any of them is.
    pub(super) fn best(&self, node: u32, worth: &dyn Fn(u32) -> Bound) -> Bound {
        let ways = &self.ways[node as usize];
        let joins = ways.joins.iter().map(|join| &self.joins[*join as usize]);
        let joins: Bound =
            joins.filter(|join| join.from.first() == Some(&node)).map(|join| worth(join.to)).sum();
        let plain: Bound = ways.plain.iter().map(|to| worth(*to)).sum();
        let besides = ways.choices.iter().copied();
        let besides = besides.filter(|to| !ways.plain.contains(to)).map(worth).max();
        let along = plain.plus(joins).plus(besides.unwrap_or(Bound::ZERO));
        let goto: Bound = ways.goto.iter().map(|to| worth(*to)).sum();
        let jump = ways.jumps.iter().map(|to| worth(*to)).max();
        along.max(goto).max(jump.unwrap_or(Bound::ZERO))
    }
}

impl Ways {
    /// Every node it can lead to without a join.
    pub(super) fn straight(&self) -> Vec<u32> {
        let lists = [&self.plain, &self.choices, &self.goto, &self.jumps];
        let mut all: Vec<u32> = lists.into_iter().flatten().copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn taking(&self, choice: u32) -> Move {
        let mut to = self.plain.clone();
        to.push(choice);
        to.sort_unstable();
        to.dedup();
        Move { to, at: self.joins.clone() }
    }
}

fn ways_without_edges(
    node: &Node,
    number: u32,
    catch: Option<u32>,
    index: &BTreeMap<&NodeId, u32>,
) -> Ways {
    let mut targets: Vec<u32> =
        node.targets.iter().filter_map(|to| index.get(to).copied()).collect();
    targets.sort_unstable();
    targets.dedup();
    // What is to be done about a failure cannot fail back into itself.
    let catch = catch.filter(|catch| *catch != number);
    let (skips, jumps) = match &node.on_error {
        OnError::Abort => (false, catch.into_iter().collect()),
        OnError::Skip | OnError::SkipWith(_) => (true, vec![]),
        OnError::Goto(to) => (false, index.get(to).copied().into_iter().collect()),
        OnError::Call(_) => (true, targets.iter().copied().chain(catch).collect()),
    };
    // Only what is carried out returns a result that can lead elsewhere.
    let goto = if matches!(node.kind, Kind::Work { .. }) { targets } else { vec![] };
    Ways { goto, skips, jumps, ..Ways::default() }
}
