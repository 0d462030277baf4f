//! Other workflows, which become graphs inside this one.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use atomic_graph::check::nearest;
use atomic_graph::{Count, FunctionId, Graph, Kind, Node};
use serde_json::Value;

use super::fault::{Fault, code};
use super::graph::{MAX_ITERATIONS, MOST_NESTED, unreadable};
use super::json::Item;
use super::reader::Reader;
use super::{Found, Library};
use crate::{DEFAULT_ITERATIONS, Function, Initial, Launch, MakeFn, Source, WORKERS, Workflow};

/// Workflows that use others twice, which use others twice, would grow without an end.
const MOST_NODES: usize = 100_000;

/// The workflows read on the way.
pub(super) struct Shelf<'l> {
    pub(super) library: &'l dyn Library,
    /// The names of those that are being read, the outermost first.
    pub(super) chain: Vec<String>,
    /// Those that were read, by the name they were asked for.
    read: BTreeMap<String, Option<Rc<Workflow>>>,
    /// How many nodes they brought in so far.
    nodes: usize,
}

/// Why a workflow cannot be used inside another.
pub(super) enum Refused {
    /// It leads back to itself.
    Circle(Vec<String>),
    NotFound,
    /// There is something wrong with it.
    Faulty(Vec<Fault>),
}

/// Another workflow as a graph inside this one.
pub(super) struct Taken {
    pub(super) graph: Graph,
    /// Makes the state it begins with.
    pub(super) make: Option<Arc<MakeFn>>,
}

impl<'l> Shelf<'l> {
    pub(super) fn new(library: &'l dyn Library) -> Self {
        Self { library, chain: vec![], read: BTreeMap::new(), nodes: 0 }
    }

    /// Finds a workflow by its name or another name for it. What is wrong with it is told only
    /// the first time.
    fn find(&mut self, name: &str) -> Result<Option<Rc<Workflow>>, Refused> {
        if let Some(known) = self.read.get(name) {
            return Ok(known.clone());
        }
        let document = match self.library.find(name).ok_or(Refused::NotFound)? {
            Found::Ready(workflow) => return Ok(self.keep(name, Some(Rc::new(*workflow)))),
            Found::Document(document) => document,
            Found::Broken(faults) => {
                self.keep(name, None);
                return Err(Refused::Faulty(faults));
            }
        };
        let draft = super::workflow::read(&document, self).map_err(Refused::Circle)?;
        match draft.into_workflow() {
            Ok(workflow) => Ok(self.keep(name, Some(Rc::new(workflow)))),
            Err(faults) => {
                self.keep(name, None);
                Err(Refused::Faulty(faults))
            }
        }
    }

    /// The files that were read on the way, by the names they were asked for.
    pub(super) fn sources(&self) -> BTreeMap<String, Source> {
        let read = self.read.iter();
        read.filter_map(|(name, workflow)| Some((name.clone(), workflow.as_ref()?.source.clone()?)))
            .collect()
    }

    fn keep(&mut self, name: &str, workflow: Option<Rc<Workflow>>) -> Option<Rc<Workflow>> {
        self.read.insert(name.to_owned(), workflow.clone());
        workflow
    }
}

impl<'d> Reader<'d, '_, '_> {
    /// The graph of another workflow.
    pub(super) fn other_workflow(&mut self, item: &'d Item, node: &mut Node) -> Taken {
        let taken = self.name(item).and_then(|name| self.taken_in(name, item.at));
        let Some(mut taken) = taken else { return Taken { graph: unreadable(), make: None } };
        // Inside another graph only the node's own limit counts.
        node.timeout_ms = taken.graph.timeout_ms.take();
        taken
    }

    /// The graph of the workflow of this name, with its functions; what is wrong is told at a byte.
    pub(super) fn taken_in(&mut self, name: &str, at: usize) -> Option<Taken> {
        let workflow = self.look_up(name, at)?;
        let (nodes, nested) = size(&workflow.graph);
        self.shelf.nodes += nodes;
        if self.shelf.nodes > MOST_NODES {
            let message = format!("with this workflow there are more than {MOST_NODES} nodes");
            let remedy = "use fewer workflows inside each other";
            self.faults.add(code::TOO_LARGE, at, message, remedy);
            return None;
        }
        if self.depth + nested > MOST_NESTED {
            let message =
                format!("with this workflow more than {MOST_NESTED} graphs are inside each other");
            self.faults.add(code::TOO_DEEP, at, message, "make it flatter");
            return None;
        }
        let mut graph = workflow.graph.clone();
        if graph.max_iterations == Some(Count::Key(MAX_ITERATIONS.into())) {
            let given = match &workflow.initial_state {
                Initial::Given(values) => values.get(MAX_ITERATIONS).and_then(Value::as_u64),
                Initial::Made(_) | Initial::Created(_) => None,
            };
            if given.is_none() {
                self.default_limits.insert(self.path.clone());
            }
            graph.max_iterations = Some(Count::Fixed(given.unwrap_or(DEFAULT_ITERATIONS.into())));
        }
        let functions = std::mem::take(&mut self.functions);
        self.functions = functions.and(workflow.functions.clone());
        if let Initial::Created(make) = &workflow.initial_state {
            return Some(Taken { graph, make: Some(Arc::clone(make)) });
        }
        begin_with(&workflow.initial_state, &mut graph);
        Some(Taken { graph, make: None })
    }

    fn look_up(&mut self, name: &str, at: usize) -> Option<Rc<Workflow>> {
        // Also where there is another one behind every one.
        if self.shelf.chain.len() > MOST_NESTED {
            let message = format!("more than {MOST_NESTED} workflows are inside each other");
            self.faults.add(code::TOO_DEEP, at, message, "make it flatter");
            return None;
        }
        match self.shelf.find(name) {
            Ok(workflow) => return workflow,
            Err(Refused::Faulty(faults)) => self.inner_faults.extend(faults),
            Err(Refused::Circle(chain)) => {
                let message =
                    format!("Circular workflow dependency detected: {}", chain.join(" -> "));
                let remedy = "take one of these workflows out of the next one, or move what both \
                              need into a third";
                self.faults.add(code::CIRCULAR_WORKFLOWS, at, message, remedy);
            }
            Err(Refused::NotFound) => {
                let names = self.shelf.library.names();
                let (message, remedy) = match nearest(name, names.iter().map(String::as_str)) {
                    Some(meant) => (
                        format!("Workflow not found: \"{name}\" (did you mean \"{meant}\"?)"),
                        format!("write \"{meant}\", or add a workflow \"{name}\""),
                    ),
                    None => (
                        format!("Workflow not found: {name}"),
                        format!("add a workflow \"{name}\""),
                    ),
                };
                self.faults.add(code::UNKNOWN_WORKFLOW, at, message, remedy);
            }
        }
        None
    }

    /// A function that is not the author's.
    pub(super) fn own_function(&mut self, word: &str, function: Function) -> FunctionId {
        let id = FunctionId::from(format!("{}/:{word}", self.name));
        let functions = std::mem::take(&mut self.functions);
        self.functions = functions.with(id.as_str(), function);
        id
    }
}

/// Lets an inner graph begin with its own values for what it does not find in its state.
pub(super) fn begin_with(initial: &Initial, graph: &mut Graph) {
    // What depends on the run is as it is for none.
    graph.defaults = initial.state(&Launch::default()).unwrap_or_default();
    graph.defaults.retain(|key, _| !is_of_the_run(key.as_str()));
    if let Initial::Given(values) = initial
        && let Some(workers) = values.get(WORKERS).and_then(Value::as_u64)
    {
        with_workers(graph, workers);
    }
}

/// Whether a key is set by the run itself, for every graph in it.
pub(super) fn is_of_the_run(key: &str) -> bool {
    matches!(key, "prompt" | "executionId" | "outputs" | MAX_ITERATIONS | WORKERS)
}

/// A graph that says itself how many items are worked on at once does not take as many as the run.
fn with_workers(graph: &mut Graph, workers: u64) {
    for node in &mut graph.nodes {
        match &mut node.kind {
            Kind::Work { .. } | Kind::Decision => {}
            Kind::Subgraph { graph, .. } | Kind::Loop { graph, .. } => with_workers(graph, workers),
            Kind::Each(each) => {
                if each.workers == Count::Key(WORKERS.into()) {
                    each.workers = Count::Fixed(workers);
                }
                with_workers(&mut each.graph, workers);
            }
            Kind::Parallel(parallel) => {
                let graphs = parallel.branches.iter_mut().map(|branch| &mut branch.graph);
                graphs.for_each(|graph| with_workers(graph, workers));
            }
            Kind::Script(script) => {
                let graphs = script.bodies.iter_mut().map(|body| &mut body.graph);
                graphs.for_each(|graph| with_workers(graph, workers));
            }
        }
    }
}

/// How many nodes a graph has in all, and how many graphs are inside each other.
fn size(graph: &Graph) -> (usize, usize) {
    let inner = graph.nodes.iter().flat_map(Node::inner).map(|(_, inner)| size(inner));
    inner.fold((graph.nodes.len(), 1), |(nodes, nested), (more, deeper)| {
        (nodes + more, nested.max(deeper + 1))
    })
}
