//! The graphs of a workflow laid out as one list, with nodes and edges known by number. Nothing
//! here recurses, so a long chain or a deep nest cannot exhaust the stack.

use std::collections::BTreeMap;

use super::problem::Place;
use crate::{Condition, Graph, Kind, Node, NodeId, OnError, Reducer, Strategy};

/// One graph of a workflow.
pub(super) struct Scope<'g> {
    pub(super) graph: &'g Graph,
    pub(super) owner: Option<Owner<'g>>,
    pub(super) layout: Layout<'g>,
    /// Whether steps or time run out however its nodes go round.
    pub(super) bounded: bool,
    /// Whether something around or beside it may end it: a rule for failures, a race.
    pub(super) can_be_left: bool,
}

/// The node a graph is inside of.
#[derive(Clone, Copy)]
pub(super) struct Owner<'g> {
    pub(super) scope: usize,
    pub(super) node: u32,
    pub(super) branch: Option<&'g NodeId>,
}

/// All graphs of a workflow, each before the ones inside it.
pub(super) struct Scopes<'g>(Vec<Scope<'g>>);

impl<'g> Scopes<'g> {
    pub(super) fn of(graph: &'g Graph) -> Self {
        let mut scopes: Vec<Scope<'g>> = vec![];
        let mut waiting = vec![(graph, None)];
        while let Some((graph, owner)) = waiting.pop() {
            let number = scopes.len();
            let (bounded, can_be_left) = around(&scopes, owner);
            scopes.push(Scope {
                graph,
                owner,
                layout: Layout::of(graph),
                bounded: bounded
                    || owner.is_none() && (graph.max_steps.is_some() || graph.timeout_ms.is_some()),
                can_be_left: can_be_left || graph.catch.is_some(),
            });
            let first = waiting.len();
            for (node, inside) in (0u32..).zip(&graph.nodes) {
                for (branch, inner) in inside.inner() {
                    waiting.push((inner, Some(Owner { scope: number, node, branch })));
                }
            }
            waiting[first..].reverse();
        }
        Self(scopes)
    }

    pub(super) fn sites(&self) -> impl DoubleEndedIterator<Item = Site<'_, 'g>> {
        (0..self.0.len()).map(|number| Site { scopes: &self.0, number })
    }
}

/// What the node around a graph means for it.
fn around(scopes: &[Scope<'_>], owner: Option<Owner<'_>>) -> (bool, bool) {
    let Some(owner) = owner else { return (false, false) };
    let outer = &scopes[owner.scope];
    let node = &outer.graph.nodes[owner.node as usize];
    let races = matches!(&node.kind, Kind::Parallel(p) if p.strategy != Strategy::All && p.branches.len() > 1);
    // A script may stop what it has called.
    let races = races || matches!(node.kind, Kind::Script(_));
    let bounded = outer.bounded || node.timeout_ms.is_some();
    (bounded, outer.can_be_left || races || node.on_error != OnError::Abort)
}

/// One graph together with those around it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a, 'g> {
    scopes: &'a [Scope<'g>],
    pub(super) number: usize,
}

impl<'a, 'g> Site<'a, 'g> {
    pub(super) fn scope(self) -> &'a Scope<'g> {
        &self.scopes[self.number]
    }

    pub(super) fn graph(self) -> &'g Graph {
        self.scope().graph
    }

    pub(super) fn layout(self) -> &'a Layout<'g> {
        &self.scope().layout
    }

    pub(super) fn node(self, node: u32) -> &'g Node {
        &self.graph().nodes[node as usize]
    }

    /// The nodes with their numbers.
    pub(super) fn nodes(self) -> impl Iterator<Item = (u32, &'g Node)> {
        (0u32..).zip(&self.graph().nodes)
    }

    /// This graph, then the ones around it.
    pub(super) fn outwards(self) -> impl Iterator<Item = Self> {
        let outer = |site: &Self| {
            let number = site.scope().owner?.scope;
            Some(Self { number, ..*site })
        };
        std::iter::successors(Some(self), outer)
    }

    /// Another graph of the same workflow.
    pub(super) fn other(self, number: usize) -> Self {
        Self { number, ..self }
    }

    /// How changes to `key` are combined here.
    pub(super) fn replaces(self, key: &str) -> bool {
        let reducer = self.outwards().find_map(|site| site.graph().reducers.get(key));
        reducer.is_none_or(|reducer| *reducer == Reducer::Replace)
    }

    /// Where the graph is.
    pub(super) fn place(self) -> Place {
        let mut path = vec![];
        for owner in self.outwards().filter_map(|site| site.scope().owner) {
            path.extend(owner.branch.cloned());
            path.push(self.scopes[owner.scope].graph.nodes[owner.node as usize].id.clone());
        }
        path.reverse();
        Place::new(path)
    }

    /// Where one of its nodes is.
    pub(super) fn at(self, node: &NodeId) -> Place {
        let mut place = self.place();
        place.path.push(node.clone());
        place
    }

    /// A part of the graph that a node has too; inside a node the two must be told apart.
    pub(super) fn own_part(self, part: &str) -> Place {
        match self.scope().owner {
            Some(Owner { branch: None, .. }) => self.place().part(format!("graph.{part}")),
            Some(Owner { branch: Some(_), .. }) | None => self.place().part(part),
        }
    }
}

/// What leads where in a graph, by number. Edges from nodes that do not exist are left out.
pub(super) struct Layout<'g> {
    index: BTreeMap<&'g str, u32>,
    pub(super) wires: Vec<Wire<'g>>,
    /// The edges with something wrong at one of their ends.
    pub(super) broken: Vec<usize>,
    leaving: Vec<Vec<u32>>,
}

/// An edge.
pub(super) struct Wire<'g> {
    /// Its place among the edges of the graph.
    pub(super) number: usize,
    pub(super) from: Vec<u32>,
    /// `None` when it does not exist.
    pub(super) to: Option<u32>,
    pub(super) when: Option<&'g Condition>,
}

impl Wire<'_> {
    pub(super) fn is_join(&self) -> bool {
        self.from.len() > 1
    }
}

impl<'g> Layout<'g> {
    fn of(graph: &'g Graph) -> Self {
        let mut index = BTreeMap::new();
        for (number, node) in (0u32..).zip(&graph.nodes) {
            index.entry(node.id.as_str()).or_insert(number);
        }
        let leaving = vec![vec![]; graph.nodes.len()];
        let mut layout = Self { index, wires: vec![], broken: vec![], leaving };
        for (number, edge) in graph.edges.iter().enumerate() {
            let from: Option<Vec<u32>> = edge.from.iter().map(|from| layout.find(from)).collect();
            let Some(mut from) = from.filter(|from| !from.is_empty()) else {
                layout.broken.push(number);
                continue;
            };
            from.sort_unstable();
            from.dedup();
            let wire = u32::try_from(layout.wires.len()).unwrap_or(u32::MAX);
            for node in &from {
                layout.leaving[*node as usize].push(wire);
            }
            let to = layout.find(&edge.to);
            if to.is_none() || from.len() < edge.from.len() {
                layout.broken.push(number);
            }
            layout.wires.push(Wire { number, from, to, when: edge.when.as_ref() });
        }
        layout
    }

    /// Whether two nodes have the same id.
    pub(super) fn has_twins(&self) -> bool {
        self.index.len() < self.leaving.len()
    }

    /// The number of a node; that of the first when there are several of the name.
    pub(super) fn find(&self, id: &NodeId) -> Option<u32> {
        self.index.get(id.as_str()).copied()
    }

    /// The edges that leave a node, with their numbers.
    pub(super) fn leaving(&self, node: u32) -> impl Iterator<Item = (u32, &Wire<'g>)> {
        self.leaving[node as usize].iter().map(|wire| (*wire, &self.wires[*wire as usize]))
    }

    /// The edges without a condition that leave a node and wait for no other.
    pub(super) fn plain(&self, node: u32) -> impl Iterator<Item = &Wire<'g>> {
        self.leaving(node).map(|(_, wire)| wire).filter(|w| w.when.is_none() && !w.is_join())
    }

    /// The edges of which one is chosen after a node, in order.
    pub(super) fn choices(&self, node: u32) -> impl Iterator<Item = &Wire<'g>> {
        self.leaving(node).map(|(_, wire)| wire).filter(|w| w.when.is_some() && !w.is_join())
    }
}
