//! From what was built to what can be run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atomic_event::Patch;
use atomic_graph::check::{Code, Known, Spans, check};
use atomic_graph::{Count, Graph, Key, Problem, Reducer};
use serde_json::Value;

use super::builder::Builder;
use super::draft::milliseconds;
use super::error::{BuildErrors, codes};
use super::lower::Lowering;
use crate::function::Functions;
use crate::typed::{Field, Reduce, StateKeys};
use crate::{Initial, Workflow, names_used};

/// What holds for a graph as a whole.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name it is started by.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// What it is for, in one line.
    pub description: String,
    /// Where its sessions live, inside the project.
    pub sessions_dir: String,
    /// The model for nodes that name none.
    pub model: Option<String>,
    /// The largest number of steps at once.
    pub max_concurrency: Option<u32>,
    /// The largest number of steps of the whole run.
    pub max_steps: Option<u64>,
    /// How often any one node may be visited while its graph is run once.
    pub max_iterations: Option<Count>,
    /// The longest time for the whole run.
    pub timeout: Option<Duration>,
    /// Whether the first node that fails stops those that run beside it.
    pub fail_fast: bool,
    /// How changes meet what is there, for keys of which the state itself does not say it.
    pub reducers: BTreeMap<Key, Reduce>,
    /// What a run begins with, besides what the state itself says.
    pub initial: Patch,
}

impl Config {
    /// The usual, under this name.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            aliases: vec![],
            description: String::new(),
            sessions_dir: ".atomic/sessions".to_owned(),
            model: None,
            max_concurrency: None,
            max_steps: None,
            max_iterations: Some(Count::Key(Key::from("maxIterations"))),
            timeout: None,
            fail_fast: false,
            reducers: BTreeMap::new(),
            initial: Patch::new(),
        }
    }

    /// Says what it is for.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        description.clone_into(&mut self.description);
        self
    }

    /// Sets how changes to a key meet what is there.
    #[must_use]
    pub fn reducer(mut self, key: impl Into<Key>, reduce: impl Into<Reduce>) -> Self {
        self.reducers.insert(key.into(), reduce.into());
        self
    }
}

/// A graph that can be run, with its functions.
pub struct Compiled<S> {
    /// The graph.
    pub graph: Graph,
    /// Its functions, by id.
    pub functions: Functions,
    /// What a run begins with.
    pub initial: Patch,
    /// What is probably not what was meant.
    pub warnings: Vec<Problem>,
    /// What it was made from, so that it can be made again inside another graph.
    source: Arc<Source<S>>,
}

struct Source<S> {
    builder: Builder<S>,
    config: Config,
    fields: Vec<Field>,
}

impl<S> std::fmt::Debug for Compiled<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Compiled").field(&self.graph).finish()
    }
}

impl<S> Clone for Compiled<S> {
    fn clone(&self) -> Self {
        Self {
            graph: self.graph.clone(),
            functions: self.functions.clone(),
            initial: self.initial.clone(),
            warnings: self.warnings.clone(),
            source: Arc::clone(&self.source),
        }
    }
}

impl<S: StateKeys> Builder<S> {
    /// Makes a graph out of what was built. The error has everything that is wrong with it.
    pub fn compile(self, config: Config) -> Result<Compiled<S>, BuildErrors> {
        let mut lowering = Lowering::default();
        let source = Source { builder: self, config, fields: S::fields() };
        let mut initial = defaults(&source.fields, &mut lowering);
        initial.extend(source.config.initial.clone());
        let graph = source.lower(&mut lowering);
        let functions = Some(lowering.functions.ids().cloned().collect());
        let is_default = !initial.contains_key("maxIterations");
        let default_limits = is_default.then(Vec::new).into_iter().collect();
        let known = Known { functions, default_limits, ..Known::default() };
        let found = check(&graph, &names_used, &known, &Spans::default());
        let (errors, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(Problem::is_error);
        // A graph without nodes was reported already, in the builder's own words.
        let errors = errors.into_iter().filter(|problem| problem.code != Code::EMPTY_GRAPH);
        lowering.errors.extend(errors.map(Into::into));
        let Lowering { functions, errors, .. } = lowering;
        if errors.is_empty() {
            return Ok(Compiled { graph, functions, initial, warnings, source: Arc::new(source) });
        }
        Err(BuildErrors(errors))
    }
}

fn defaults(fields: &[Field], lowering: &mut Lowering) -> Patch {
    let mut initial = Patch::new();
    for field in fields {
        match &field.default {
            Ok(Value::Null) => {}
            Ok(value) => drop(initial.insert(Key::from(field.key), value.clone())),
            Err(problem) => {
                let message = format!("the default of key `{}` is not JSON: {problem}", field.key);
                let remedy = "use a type that serialises to JSON";
                lowering.problem(codes::NOT_JSON, message, remedy);
            }
        }
    }
    initial
}

impl<S> Source<S> {
    fn lower(&self, lowering: &mut Lowering) -> Graph {
        let Self { builder, config, fields } = self;
        let around = std::mem::replace(&mut lowering.max_iterations, config.max_iterations.clone());
        let mut graph = lowering.graph(builder);
        lowering.max_iterations = around;
        if graph.nodes.is_empty() {
            let remedy = "begin with `.start(…)`";
            lowering.problem(codes::EMPTY, "the graph has no nodes", remedy);
        }
        let of_state = fields.iter().map(|field| (Key::from(field.key), &field.reduce));
        let of_config = config.reducers.iter().map(|(key, reduce)| (key.clone(), reduce));
        let reduce: BTreeMap<Key, &Reduce> = of_state.chain(of_config).collect();
        for (key, reduce) in reduce {
            let reducer = match reduce {
                Reduce::By(Reducer::Replace) => continue,
                Reduce::By(reducer) => reducer.clone(),
                Reduce::With(function) => {
                    Reducer::Call(lowering.function(&format!("reduce-{key}"), function))
                }
            };
            graph.reducers.insert(key, reducer);
        }
        graph.model.clone_from(&config.model);
        graph.max_concurrency = config.max_concurrency;
        graph.max_steps = config.max_steps;
        graph.timeout_ms = config.timeout.map(milliseconds);
        graph.fail_fast = config.fail_fast;
        graph
    }
}

impl<S> Compiled<S> {
    /// Makes it again inside another graph.
    pub(super) fn lower(&self, lowering: &mut Lowering) -> Graph {
        self.source.lower(lowering)
    }

    /// A workflow that a person can start.
    pub fn into_workflow(self) -> Workflow {
        let config = &self.source.config;
        Workflow {
            name: config.name.as_str().into(),
            aliases: config.aliases.clone(),
            description: config.description.clone(),
            sessions_dir: config.sessions_dir.clone(),
            graph: self.graph,
            functions: self.functions,
            initial_state: Initial::Given(self.initial),
            source: None,
            state_shape: crate::StateShape::default(),
        }
    }
}
