//! A graph, checked once and indexed, so that running it cannot fail on a missing node.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::reduce::Reducer;
use crate::{Condition, Graph, Key, Kind, Node, NodeId, OnError};

/// A checked graph with all the graphs inside it.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) plans: Vec<Plan>,
    graph: Arc<Graph>,
}

/// One graph of a program; nodes and edges are known by number.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) start: u32,
    pub(crate) nodes: Vec<Node>,
    pub(crate) bodies: Vec<Option<u32>>,
    pub(crate) edges: Vec<PlannedEdge>,
    pub(crate) leaving: Vec<Vec<u32>>,
    pub(crate) reducers: BTreeMap<Key, Reducer>,
    index: BTreeMap<NodeId, u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlannedEdge {
    pub(crate) from: Vec<u32>,
    pub(crate) to: u32,
    pub(crate) when: Option<Condition>,
}

/// Something wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The node it is about.
    pub node: NodeId,
    /// What is wrong and what to do.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "node `{}`: {}", self.node, self.message)
    }
}

impl Program {
    /// Checks a graph and all graphs inside it; every problem is reported at once.
    pub fn compile(graph: Graph) -> Result<Arc<Self>, Vec<Problem>> {
        let mut compiler = Compiler::default();
        compiler.add(&graph, &BTreeMap::new());
        if compiler.problems.is_empty() {
            Ok(Arc::new(Self { plans: compiler.plans, graph: Arc::new(graph) }))
        } else {
            Err(compiler.problems)
        }
    }

    /// The graph it was made from.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(crate) fn plan(&self, plan: u32) -> &Plan {
        &self.plans[plan as usize]
    }
}

impl Plan {
    pub(crate) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(crate) fn find(&self, id: &NodeId) -> Option<u32> {
        self.index.get(id).copied()
    }

    pub(crate) fn leaving(&self, node: u32) -> impl Iterator<Item = (u32, &PlannedEdge)> {
        self.leaving[node as usize].iter().map(|edge| (*edge, &self.edges[*edge as usize]))
    }

    /// The conditions to be tried after `node`, in order.
    pub(crate) fn conditions(&self, node: u32) -> Vec<Condition> {
        self.leaving(node).filter_map(|(_, edge)| edge.when.clone()).collect()
    }
}

#[derive(Default)]
struct Compiler {
    plans: Vec<Plan>,
    problems: Vec<Problem>,
}

impl Compiler {
    fn problem(&mut self, node: &NodeId, message: String) {
        self.problems.push(Problem { node: node.clone(), message });
    }

    /// Adds a graph and the ones inside it; returns its number.
    fn add(&mut self, graph: &Graph, inherited: &BTreeMap<Key, Reducer>) -> u32 {
        let number = u32::try_from(self.plans.len()).unwrap_or(u32::MAX);
        let mut reducers = inherited.clone();
        reducers.extend(graph.reducers.iter().map(|(key, reducer)| (key.clone(), *reducer)));

        let mut index = BTreeMap::new();
        for (place, node) in (0u32..).zip(&graph.nodes) {
            if index.insert(node.id.clone(), place).is_some() {
                self.problem(&node.id, "the id is used twice; rename one of them".to_owned());
            }
        }
        let start = self.known(&index, &graph.start, &graph.start, "the start node").unwrap_or(0);
        let mut plan = Plan {
            start,
            nodes: graph.nodes.clone(),
            bodies: vec![None; graph.nodes.len()],
            edges: vec![],
            leaving: vec![vec![]; graph.nodes.len()],
            reducers: reducers.clone(),
            index,
        };
        self.add_edges(graph, &mut plan);
        self.check_jumps(graph, &plan.index);
        self.plans.push(plan);

        for (place, node) in graph.nodes.iter().enumerate() {
            let body = match &node.kind {
                Kind::Work { .. } => continue,
                Kind::Loop { until: None, max_rounds: 0, graph } => {
                    let message = "a loop without a limit needs an `until`".to_owned();
                    self.problem(&node.id, message);
                    graph
                }
                Kind::Subgraph { graph, .. } | Kind::Loop { graph, .. } => graph,
                Kind::Each(each) => &each.graph,
            };
            let body = self.add(body, &reducers);
            self.plans[number as usize].bodies[place] = Some(body);
        }
        number
    }

    fn add_edges(&mut self, graph: &Graph, plan: &mut Plan) {
        for edge in &graph.edges {
            let from: Vec<u32> = edge
                .from
                .iter()
                .filter_map(|from| self.known(&plan.index, from, from, "the start of an edge"))
                .collect();
            let Some(first) = edge.from.first() else {
                self.problem(&edge.to, "an edge to it comes from nowhere".to_owned());
                continue;
            };
            let to = self.known(&plan.index, &edge.to, first, "the target of an edge");
            let (Some(to), true) = (to, from.len() == edge.from.len()) else { continue };
            let number = u32::try_from(plan.edges.len()).unwrap_or(u32::MAX);
            for node in &from {
                plan.leaving[*node as usize].push(number);
            }
            plan.edges.push(PlannedEdge { from, to, when: edge.when.clone() });
        }
    }

    fn check_jumps(&mut self, graph: &Graph, index: &BTreeMap<NodeId, u32>) {
        for node in &graph.nodes {
            let on_error = match &node.on_error {
                OnError::Goto(target) => Some(target),
                OnError::Abort | OnError::Skip => None,
            };
            for target in node.targets.iter().chain(on_error).chain(&node.on_revive) {
                let _ = self.known(index, target, &node.id, "the target of a jump");
            }
        }
    }

    fn known(
        &mut self,
        index: &BTreeMap<NodeId, u32>,
        wanted: &NodeId,
        at: &NodeId,
        role: &str,
    ) -> Option<u32> {
        let found = index.get(wanted).copied();
        if found.is_none() {
            let known: Vec<_> = index.keys().map(NodeId::as_str).collect();
            let message =
                format!("{role}, `{wanted}`, does not exist; there are: {}", known.join(", "));
            self.problem(at, message);
        }
        found
    }
}
