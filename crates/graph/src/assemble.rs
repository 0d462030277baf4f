//! Graphs put together in code, piece by piece.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::reduce::Reducer;
use crate::{Condition, Count, Edge, Graph, Key, Kind, Node, NodeId, OnError, OnLost, Retry};

impl Graph {
    /// An empty graph that begins at `start`.
    pub fn starting_at(start: impl Into<NodeId>) -> Self {
        Self {
            start: start.into(),
            nodes: vec![],
            edges: vec![],
            reducers: BTreeMap::new(),
            defaults: crate::Patch::new(),
            max_steps: None,
            max_concurrency: None,
            max_iterations: None,
            timeout_ms: None,
            catch: None,
            fail_fast: false,
            model: None,
        }
    }

    /// Adds a node.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.nodes.push(node);
        self
    }

    /// Adds an edge that is always taken.
    #[must_use]
    pub fn edge(mut self, from: impl Into<NodeId>, to: impl Into<NodeId>) -> Self {
        self.edges.push(Edge { from: vec![from.into()], to: to.into(), when: None });
        self
    }

    /// Adds an edge that is taken when `when` holds and no condition before it did.
    #[must_use]
    pub fn edge_when(
        mut self,
        from: impl Into<NodeId>,
        to: impl Into<NodeId>,
        when: Condition,
    ) -> Self {
        self.edges.push(Edge { from: vec![from.into()], to: to.into(), when: Some(when) });
        self
    }

    /// Adds an edge that waits for several nodes.
    #[must_use]
    pub fn join<const N: usize>(mut self, from: [&str; N], to: impl Into<NodeId>) -> Self {
        let from = from.into_iter().map(NodeId::from).collect();
        self.edges.push(Edge { from, to: to.into(), when: None });
        self
    }

    /// Sets how changes to `key` are combined.
    #[must_use]
    pub fn reducer(mut self, key: impl Into<Key>, reducer: Reducer) -> Self {
        self.reducers.insert(key.into(), reducer);
        self
    }
}

impl Node {
    /// A node of this kind, with the usual rules.
    pub fn new(id: impl Into<NodeId>, kind: Kind) -> Self {
        Self {
            id: id.into(),
            description: None,
            kind,
            retry: Retry::default(),
            on_error: OnError::default(),
            on_lost: OnLost::default(),
            on_revive: None,
            max_visits: None,
            targets: vec![],
            timeout_ms: None,
            input_schema: None,
            output_schema: None,
            model: None,
        }
    }

    /// A node the caller carries out.
    pub fn work(id: impl Into<NodeId>, action: Value) -> Self {
        Self::new(id, Kind::Work { action, launch: false, asks: false })
    }

    /// A node the caller carries out by launching an agent.
    pub fn launch(id: impl Into<NodeId>, action: Value) -> Self {
        Self::new(id, Kind::Work { action, launch: true, asks: false })
    }

    /// A node at which a person is asked.
    pub fn question(id: impl Into<NodeId>, action: Value) -> Self {
        Self::new(id, Kind::Work { action, launch: false, asks: true })
    }

    /// The graphs inside the node, with the names of branches.
    pub fn inner(&self) -> Vec<(Option<&NodeId>, &Graph)> {
        match &self.kind {
            Kind::Work { .. } | Kind::Decision => vec![],
            Kind::Subgraph { graph, .. } | Kind::Loop { graph, .. } => vec![(None, graph)],
            Kind::Each(each) => vec![(None, &each.graph)],
            Kind::Parallel(parallel) => {
                parallel.branches.iter().map(|b| (Some(&b.id), &b.graph)).collect()
            }
            Kind::Script(script) => script.bodies.iter().map(|b| (Some(&b.id), &b.graph)).collect(),
        }
    }

    /// The graphs inside the node, to be changed.
    pub fn inner_mut(&mut self) -> Vec<&mut Graph> {
        match &mut self.kind {
            Kind::Work { .. } | Kind::Decision => vec![],
            Kind::Subgraph { graph, .. } | Kind::Loop { graph, .. } => vec![graph],
            Kind::Each(each) => vec![&mut each.graph],
            Kind::Parallel(parallel) => {
                parallel.branches.iter_mut().map(|branch| &mut branch.graph).collect()
            }
            Kind::Script(script) => script.bodies.iter_mut().map(|body| &mut body.graph).collect(),
        }
    }

    /// Says what the node does.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.description = Some(description.to_owned());
        self
    }

    /// Sets what to do when it failed for good.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Sets what to do when an attempt was cut off.
    #[must_use]
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Sets where a run that failed here goes when it is resumed.
    #[must_use]
    pub fn on_revive(mut self, node: impl Into<NodeId>) -> Self {
        self.on_revive = Some(node.into());
        self
    }

    /// Limits the number of visits.
    #[must_use]
    pub fn max_visits(mut self, count: Count) -> Self {
        self.max_visits = Some(count);
        self
    }

    /// Declares where a `goto` may lead.
    #[must_use]
    pub fn may_go_to<const N: usize>(mut self, targets: [&str; N]) -> Self {
        self.targets = targets.into_iter().map(NodeId::from).collect();
        self
    }

    /// Sets how often and when to try again.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Limits the time of one attempt.
    #[must_use]
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }
}
