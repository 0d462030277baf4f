//! The nodes that hold graphs, but for loops: fans, branches, sub-graphs.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use atomic_graph::{
    Branch, Count, Each, Graph, Key, Kind, NodeId, Parallel, Ready, State, Strategy,
};
use serde_json::Value;

use super::builder::Builder;
use super::compile::Compiled;
use super::draft::{Draft, to_value};
use super::lower::Site;
use super::nodes::{Agent, subagent};
use crate::Workflow;
use crate::function::{Call, Function, Functions};
use crate::typed::{ListKeyOf, Outcome, Update, View};

/// Several graphs at once, and how they come together again.
pub struct Branches<S> {
    branches: Vec<(NodeId, Builder<S>)>,
    strategy: Strategy,
    fail_fast: bool,
    merge: Option<Function>,
}

impl<S: 'static> Branches<S> {
    /// No branches yet; all of them are waited for.
    pub fn new() -> Self {
        Self { branches: vec![], strategy: Strategy::All, fail_fast: false, merge: None }
    }

    /// Adds a branch.
    #[must_use]
    pub fn branch(mut self, name: impl Into<NodeId>, body: impl Into<Builder<S>>) -> Self {
        self.branches.push((name.into(), body.into()));
        self
    }

    /// Sets which of them are waited for.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The first that fails stops the others.
    #[must_use]
    pub fn fail_fast(mut self) -> Self {
        self.fail_fast = true;
        self
    }

    /// Makes further changes to the state from the outputs of the branches, by their names.
    #[must_use]
    pub fn merge<R: Outcome<Update<S>>>(
        mut self,
        merge: impl Fn(&Value, &View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.merge = Some(Function::value(move |call, args| {
            let outputs = args.first().map_or(&Value::Null, AsRef::as_ref);
            let update = merge(outputs, &View::new(call)).outcome()?;
            Ok(to_value(update.into_changes(call.step)?))
        }));
        self
    }

    fn kind(&self, site: &mut Site<'_>) -> Kind {
        let branch = |site: &mut Site<'_>, id: &NodeId, body: &Builder<S>| Branch {
            id: id.clone(),
            graph: site.graph(body, Some(id.as_str())),
        };
        let branches = self.branches.iter().map(|(id, body)| branch(site, id, body)).collect();
        let merge = match &self.merge {
            Some(merge) => Some(site.function("merge", merge)),
            None => site.map("merge"),
        };
        let (strategy, fail_fast) = (self.strategy, self.fail_fast);
        Kind::Parallel(Parallel { branches, strategy, fail_fast, merge })
    }
}

impl<S: 'static> Default for Branches<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> std::fmt::Debug for Branches<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.branches.iter().map(|(name, _)| name)).finish()
    }
}

/// Several graphs at once.
pub fn parallel<S: 'static>(id: impl Into<NodeId>, branches: Branches<S>) -> Draft<S> {
    Draft::new(id, move |site| branches.kind(site))
}

/// Several agents at once, each in a conversation of its own. The branches have the names of the
/// agents; a name that comes again gets a number.
pub fn parallel_subagent<S: 'static>(
    id: impl Into<NodeId>,
    agents: impl IntoIterator<Item = Agent<S>>,
) -> Draft<S> {
    let mut branches = Branches::new();
    let mut names = BTreeSet::new();
    for agent in agents {
        let name = agent.name.to_string();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut free = std::iter::once(name.clone()).chain(numbered);
        let free = free.find(|name| names.insert(name.clone())).unwrap_or_default();
        branches = branches.branch(free.as_str(), subagent(free.as_str(), agent));
    }
    parallel(id, branches)
}

/// A fan over a list.
pub struct Fan<S> {
    over: Key,
    item: Key,
    body: Builder<S>,
    workers: Count,
    ready: Ready,
    fail_fast: bool,
}

impl<S: 'static> Fan<S> {
    /// Does the same for every item of a list, which is found under `item`. As many items are
    /// worked on at once as the run has workers.
    pub fn over(list: impl ListKeyOf<S>, body: impl Into<Builder<S>>) -> Self {
        Self {
            over: list.key(),
            item: Key::from("item"),
            body: body.into(),
            workers: Count::Key(Key::from(crate::WORKERS)),
            ready: Ready::Once,
            fail_fast: false,
        }
    }

    /// Sets the key under which an item is found.
    #[must_use]
    pub fn item(mut self, key: &str) -> Self {
        self.item = Key::from(key);
        self
    }

    /// Sets how many items are worked on at once.
    #[must_use]
    pub fn workers(mut self, workers: Count) -> Self {
        self.workers = workers;
        self
    }

    /// Items are tasks: each starts when those it is blocked by are done.
    #[must_use]
    pub fn tasks(mut self) -> Self {
        self.ready = Ready::Tasks;
        self
    }

    /// The first item that fails stops the others.
    #[must_use]
    pub fn fail_fast(mut self) -> Self {
        self.fail_fast = true;
        self
    }
}

impl<S> std::fmt::Debug for Fan<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Fan").field(&self.over).finish()
    }
}

/// Does something for every item of a list.
pub fn each<S: 'static>(id: impl Into<NodeId>, fan: Fan<S>) -> Draft<S> {
    Draft::new(id, move |site| {
        Kind::Each(Each {
            over: fan.over.clone(),
            item: fan.item.clone(),
            graph: site.graph(&fan.body, None),
            workers: fan.workers.clone(),
            ready: fan.ready,
            fail_fast: fan.fail_fast,
            order: fan.ready.order(),
        })
    })
}

/// A graph inside a graph over the state `S`; its own state is an `I`.
pub struct Inner<S, I = S> {
    body: Body<I>,
    isolated: bool,
    input: Option<Function>,
    output: Option<Function>,
    of: PhantomData<fn() -> S>,
}

/// Where an inner graph comes from.
pub enum Body<I> {
    /// It was built for this.
    Built(Builder<I>),
    /// It was compiled; it is made again in its new place, so that its functions do not meet
    /// others of the same name.
    Compiled(Compiled<I>),
    /// It is the graph of a workflow.
    Workflow(Graph, Functions),
}

impl<I> From<Builder<I>> for Body<I> {
    fn from(body: Builder<I>) -> Self {
        Self::Built(body)
    }
}

impl<I> From<Compiled<I>> for Body<I> {
    fn from(body: Compiled<I>) -> Self {
        Self::Compiled(body)
    }
}

impl<I> From<&Workflow> for Body<I> {
    fn from(workflow: &Workflow) -> Self {
        Self::Workflow(workflow.graph.clone(), workflow.functions.clone())
    }
}

impl<S: 'static> Inner<S> {
    /// A graph that sees the state around it. What it changes is the output of its node, unless
    /// it [shares](Self::sharing) the state.
    pub fn of(body: impl Into<Body<S>>) -> Self {
        let body = body.into();
        Self { body, isolated: true, input: None, output: None, of: PhantomData }
    }

    /// What it changes is changed in the state around it.
    #[must_use]
    pub fn sharing(mut self) -> Self {
        self.isolated = false;
        self
    }
}

impl<S: 'static, I: 'static> Inner<S, I> {
    /// A graph that begins with a state of its own.
    pub fn mapped<R: Outcome<Update<I>>>(
        body: impl Into<Body<I>>,
        input: impl Fn(&View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        let input = Function::value(move |call, _| {
            Ok(to_value(input(&View::new(call)).outcome()?.into_changes(call.step)?))
        });
        let input = Some(input);
        Self { body: body.into(), isolated: true, input, output: None, of: PhantomData }
    }

    /// Makes the changes to the state around it from the state it ended with.
    #[must_use]
    pub fn output<R: Outcome<Update<S>>>(
        mut self,
        output: impl Fn(&View<'_, I>, &View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.output = Some(Function::value(move |call, args| {
            let ended = ended(args.first().map_or(&Value::Null, AsRef::as_ref));
            let inside = Call { state: &ended, ..*call };
            let update = output(&View::new(&inside), &View::new(call)).outcome()?;
            Ok(to_value(update.into_changes(call.step)?))
        }));
        self
    }
}

impl<S, I> std::fmt::Debug for Inner<S, I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("isolated", &self.isolated).finish_non_exhaustive()
    }
}

/// The state an inner graph ended with.
fn ended(value: &Value) -> State {
    let fields = value.as_object().cloned().unwrap_or_default();
    let (outputs, keys): (Vec<_>, Vec<_>) =
        fields.into_iter().partition(|(key, _)| key == "outputs");
    let outputs = outputs.into_iter().next().map(|(_, outputs)| outputs).unwrap_or_default();
    let outputs = serde_json::from_value(outputs).unwrap_or_default();
    let keys = keys.into_iter().map(|(key, value)| (Key::from(key), value));
    State::new(keys.collect()).with_outputs(outputs)
}

/// Runs a graph of its own.
pub fn subgraph<S: 'static, I: 'static>(id: impl Into<NodeId>, inner: Inner<S, I>) -> Draft<S> {
    Draft::new(id, move |site| {
        let graph = match &inner.body {
            Body::Built(body) => site.graph(body, None),
            Body::Compiled(compiled) => compiled.lower(site.lowering),
            Body::Workflow(graph, functions) => {
                for id in functions.ids() {
                    if let Some(function) = functions.find(id) {
                        site.lowering.keep(id, function);
                    }
                }
                graph.clone()
            }
        };
        let input = inner.input.as_ref().map(|input| site.lowering.function("input", input));
        let output = match &inner.output {
            Some(output) => Some(site.lowering.function("output", output)),
            None => site.map("output"),
        };
        Kind::Subgraph { graph, isolated: inner.isolated, input, output }
    })
}
