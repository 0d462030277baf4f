//! A graph, checked once and indexed, so that running it cannot fail on a missing node.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::check::{Code, Known, Place, Problem, Severity, Spans, check, no_uses};
use crate::reduce::Reducer;
use crate::schema::{Schema, Schemas};
use crate::{Condition, Count, Graph, Key, Node, NodeId, State, StepError, code};

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
    /// The graphs inside each node, by the name of the branch.
    bodies: Vec<BTreeMap<String, u32>>,
    pub(crate) edges: Vec<PlannedEdge>,
    pub(crate) leaving: Vec<Vec<u32>>,
    pub(crate) reducers: BTreeMap<Key, Reducer>,
    pub(crate) catch: Option<NodeId>,
    pub(crate) fail_fast: bool,
    pub(crate) max_iterations: Option<Count>,
    pub(crate) model: Option<String>,
    schemas: Vec<Option<Arc<Schemas>>>,
    index: BTreeMap<NodeId, u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct PlannedEdge {
    pub(crate) from: Vec<u32>,
    pub(crate) to: u32,
    pub(crate) when: Option<Condition>,
}

impl Program {
    /// Checks a graph and all graphs inside it; every error is reported at once. What is only
    /// worth a warning, [`check`] says.
    pub fn compile(graph: Graph) -> Result<Arc<Self>, Vec<Problem>> {
        let mut problems = check(&graph, &no_uses, &Known::default(), &Spans::default());
        // A session may have begun before that was an error of `check`; its run fails there.
        let is_wrong = |problem: &Problem| {
            problem.severity == Severity::Error && problem.code != Code::EXCLUSIVE_JOIN
        };
        problems.retain(is_wrong);
        let mut compiler = Compiler { plans: vec![], problems };
        if compiler.problems.is_empty() {
            compiler.add(&graph, &BTreeMap::new(), &[]);
        }
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

    /// The graphs inside its nodes: the node, the name of the branch, the graph's number.
    pub(crate) fn inner(&self) -> impl Iterator<Item = (u32, &str, u32)> {
        (0u32..).zip(&self.bodies).flat_map(|(node, bodies)| {
            bodies.iter().map(move |(name, body)| (node, name.as_str(), *body))
        })
    }

    /// The graph that is run inside `node` under this name.
    pub(crate) fn body(&self, node: u32, name: &str) -> u32 {
        let bodies = &self.bodies[node as usize];
        bodies.get(name).or_else(|| bodies.values().next()).copied().unwrap_or(0)
    }

    /// Whether the state fits what a node expects to see.
    pub(crate) fn check_input(&self, node: u32, state: &State) -> Result<(), StepError> {
        let Some(schemas) = &self.schemas[node as usize] else { return Ok(()) };
        let Some(schema) = &schemas.input else { return Ok(()) };
        schema.check(&state.to_value()).map_err(|problem| {
            let id = &self.node(node).id;
            let message = format!("the state does not fit the input schema of `{id}`: {problem}");
            StepError::new(code::INPUT_SCHEMA, message)
        })
    }

    /// Whether what a node returned fits.
    pub(crate) fn check_output(&self, node: u32, output: &Value) -> Result<(), StepError> {
        let Some(schemas) = &self.schemas[node as usize] else { return Ok(()) };
        let Some(schema) = &schemas.output else { return Ok(()) };
        schema.check(output).map_err(|problem| {
            let id = &self.node(node).id;
            let message = format!("what `{id}` returned does not fit its output schema: {problem}");
            StepError::new(code::OUTPUT_SCHEMA, message)
        })
    }
}

struct Compiler {
    plans: Vec<Plan>,
    problems: Vec<Problem>,
}

impl Compiler {
    /// Adds a sound graph and the ones inside it; returns its number.
    fn add(&mut self, graph: &Graph, around: &BTreeMap<Key, Reducer>, path: &[NodeId]) -> u32 {
        let number = u32::try_from(self.plans.len()).unwrap_or(u32::MAX);
        let mut reducers = around.clone();
        reducers.extend(graph.reducers.clone());
        let index: BTreeMap<NodeId, u32> =
            graph.nodes.iter().map(|node| node.id.clone()).zip(0u32..).collect();
        let mut plan = Plan {
            start: index.get(&graph.start).copied().unwrap_or(0),
            nodes: graph.nodes.clone(),
            bodies: vec![BTreeMap::new(); graph.nodes.len()],
            edges: vec![],
            leaving: vec![vec![]; graph.nodes.len()],
            reducers: reducers.clone(),
            catch: graph.catch.clone(),
            fail_fast: graph.fail_fast,
            max_iterations: graph.max_iterations.clone(),
            model: graph.model.clone(),
            schemas: graph.nodes.iter().map(|node| self.schemas(node, path)).collect(),
            index,
        };
        plan.add_edges(graph);
        self.plans.push(plan);

        for (place, node) in graph.nodes.iter().enumerate() {
            for (branch, inner) in node.inner() {
                let path: Vec<NodeId> =
                    path.iter().chain([&node.id]).chain(branch).cloned().collect();
                let name = branch.map_or("", NodeId::as_str).to_owned();
                let body = self.add(inner, &reducers, &path);
                self.plans[number as usize].bodies[place].insert(name, body);
            }
        }
        number
    }

    fn schemas(&mut self, node: &Node, path: &[NodeId]) -> Option<Arc<Schemas>> {
        if node.input_schema.is_none() && node.output_schema.is_none() {
            return None;
        }
        let mut read = |schema: &Option<Value>, part: &str| {
            let problem = match Schema::read(schema.as_ref()?) {
                Ok(schema) => return Some(schema),
                Err(problem) => problem,
            };
            let path = path.iter().chain([&node.id]).cloned().collect();
            let place = Place { path, part: Some(part.to_owned()), span: None };
            let remedy = "write a JSON Schema, or leave it out";
            self.problems.push(Problem::new(Code::BAD_SCHEMA, place, problem, remedy));
            None
        };
        let input = read(&node.input_schema, "input_schema");
        let output = read(&node.output_schema, "output_schema");
        Some(Arc::new(Schemas { input, output }))
    }
}

impl Plan {
    fn add_edges(&mut self, graph: &Graph) {
        for edge in &graph.edges {
            let from: Vec<u32> = edge.from.iter().filter_map(|from| self.find(from)).collect();
            let Some(to) = self.find(&edge.to) else { continue };
            let number = u32::try_from(self.edges.len()).unwrap_or(u32::MAX);
            for node in &from {
                self.leaving[*node as usize].push(number);
            }
            self.edges.push(PlannedEdge { from, to, when: edge.when.clone() });
        }
    }
}
