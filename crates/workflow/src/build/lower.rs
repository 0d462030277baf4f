//! From nested sequences to a graph, and from closures to functions with ids.

use std::collections::BTreeSet;
use std::sync::Arc;

use atomic_event::{BackendId, StepResult};
use atomic_graph::check::{Place, nearest};
use atomic_graph::{Condition, Count, Edge, FunctionId, Graph, Kind, Node, NodeId, OnError};

use super::builder::Builder;
use super::draft::{Draft, Hooks, Spoken, Test, When, Words};
use super::error::{BuildError, codes};
use super::outline::{self, Catch, Item, Outline};
use crate::action::{Action, Text};
use crate::backends::{BACKENDS, backend_called};
use crate::function::{Function, Functions};

/// What comes out besides the graph.
#[derive(Default)]
pub(super) struct Lowering {
    pub(super) functions: Functions,
    pub(super) errors: Vec<BuildError>,
    /// Given to every graph, so that every cycle of edges ends.
    pub(super) max_iterations: Option<Count>,
    /// The node that is being made, with those around it.
    path: Vec<String>,
}

impl Lowering {
    pub(super) fn problem(&mut self, code: &'static str, message: impl Into<String>, remedy: &str) {
        let place = Place::new(self.path.iter().map(|name| NodeId::from(name.as_str())).collect());
        let (message, remedy) = (message.into(), remedy.to_owned());
        self.errors.push(BuildError { code, place, message, remedy });
    }

    /// Does something inside a node.
    fn within<T>(&mut self, name: &str, inside: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(name.to_owned());
        let result = inside(self);
        self.path.pop();
        result
    }

    /// Keeps a function; its id is made of the place and what it is for.
    pub(super) fn function(&mut self, role: &str, function: &Function) -> FunctionId {
        let place = self.path.iter().map(String::as_str).chain([role]);
        let wanted = place.collect::<Vec<_>>().join("/");
        let mut id = FunctionId::from(wanted.as_str());
        let mut number = 1;
        while self.functions.find(&id).is_some() {
            number += 1;
            id = FunctionId::from(format!("{wanted}-{number}"));
        }
        self.keep(&id, function);
        id
    }

    /// Keeps a function under an id that is not made up.
    pub(super) fn keep(&mut self, id: &FunctionId, function: &Function) {
        match self.functions.find(id) {
            Some(other) if !same(other, function) => {
                let message = format!("two different functions have the id `{id}`");
                let remedy = "give one of them another id";
                self.problem(codes::FUNCTION_TWICE, message, remedy);
            }
            Some(_) | None => {
                let functions = std::mem::take(&mut self.functions);
                self.functions = functions.with(id.as_str(), function.clone());
            }
        }
    }

    fn condition(&mut self, role: &str, test: &Test) -> Condition {
        match test {
            Test::Data(condition) => condition.clone(),
            Test::Call(function) => Condition::Call(self.function(role, function)),
            Test::Not(other) => Condition::Not(Box::new(self.condition(role, other))),
            Test::Never => Condition::Not(Box::new(Condition::Otherwise)),
        }
    }

    /// Makes a graph of what a builder was told.
    pub(super) fn graph<S>(&mut self, builder: &Builder<S>) -> Graph {
        let Outline { items, catch } = outline::read(builder, self);
        let mut sketch = Sketch {
            given: given_ids(&items, catch.as_ref()),
            graph: Graph::starting_at(""),
            started: false,
            lowering: self,
        };
        sketch.sequence(&items, vec![], false);
        let catch = match &catch {
            Some(Catch::Node(node)) => Some(sketch.node(node).0),
            Some(Catch::At(node)) => Some(node.clone()),
            None => None,
        };
        let mut graph = sketch.graph;
        graph.catch = catch;
        graph.max_iterations = self.max_iterations.clone();
        graph
    }
}

/// All ids an author has given, so that none is made up twice.
fn given_ids<S>(items: &[Item<S>], catch: Option<&Catch<S>>) -> BTreeSet<NodeId> {
    let mut ids = BTreeSet::new();
    let mut open: Vec<&[Item<S>]> = vec![items];
    while let Some(items) = open.pop() {
        for item in items {
            match item {
                Item::Node(node) if node.numbered => {}
                Item::Node(node) => drop(ids.insert(node.node.id.clone())),
                Item::If { then, otherwise, .. } => {
                    open.push(then);
                    open.extend(otherwise.as_deref());
                }
                Item::End => {}
            }
        }
    }
    if let Some(Catch::Node(node)) = catch {
        ids.insert(node.node.id.clone());
    }
    ids
}

fn same(one: &Function, other: &Function) -> bool {
    match (one, other) {
        (Function::Step(a), Function::Step(b)) => Arc::ptr_eq(a, b),
        (Function::Text(a), Function::Text(b)) => Arc::ptr_eq(a, b),
        (Function::Parse(a), Function::Parse(b)) => Arc::ptr_eq(a, b),
        (Function::Holds(a), Function::Holds(b)) => Arc::ptr_eq(a, b),
        (Function::Value(a), Function::Value(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// A way out of what was added so far: from this node, when this holds.
#[derive(Clone)]
struct Tail {
    node: NodeId,
    when: Option<Condition>,
    /// Whether the node is a decision, of which one way must be taken.
    decides: bool,
}

impl Tail {
    /// Whether it may lead nowhere: nothing has been asked yet, or nothing that was asked held.
    fn may_end(&self) -> bool {
        !self.decides && matches!(self.when, None | Some(Condition::Otherwise))
    }
}

/// One graph that is being made.
struct Sketch<'l> {
    lowering: &'l mut Lowering,
    graph: Graph,
    given: BTreeSet<NodeId>,
    started: bool,
}

impl Sketch<'_> {
    /// Adds a sequence behind `tails`. `more` says whether something comes after it.
    fn sequence<S>(&mut self, items: &[Item<S>], mut tails: Vec<Tail>, more: bool) -> Vec<Tail> {
        for (place, item) in items.iter().enumerate() {
            let follows = match items.get(place + 1) {
                Some(Item::End) => false,
                Some(Item::Node(_) | Item::If { .. }) => true,
                None => more,
            };
            tails = match item {
                Item::Node(node) => {
                    let (id, leads_on) = self.node(node);
                    self.connect(&tails, &id);
                    if leads_on {
                        vec![Tail { node: id, when: None, decides: false }]
                    } else {
                        vec![]
                    }
                }
                Item::If { when, then, otherwise } => {
                    self.branches(when, (then, otherwise.as_deref()), &tails, follows)
                }
                Item::End => {
                    if place == 0 {
                        self.end_at_once(&tails);
                    }
                    vec![]
                }
            };
        }
        tails
    }

    fn connect(&mut self, tails: &[Tail], to: &NodeId) {
        if !self.started {
            self.graph.start = to.clone();
            self.started = true;
        }
        for Tail { node, when, .. } in tails {
            let edge = Edge { from: vec![node.clone()], to: to.clone(), when: when.clone() };
            self.graph.edges.push(edge);
        }
    }

    /// Adds a node; says whether what is added next follows it.
    fn node<S>(&mut self, draft: &Draft<S>) -> (NodeId, bool) {
        let mut node = draft.node.clone();
        if draft.numbered {
            node.id = self.free_id(draft.node.id.as_str());
        }
        let id = node.id.clone();
        let edges = &mut self.graph.edges;
        let leads_on = self.lowering.within(id.as_str(), |lowering| {
            let routes = edges.len();
            let hooks = draft.hooks.clone();
            if let Some(function) = &hooks.retry {
                node.retry.when = Some(lowering.function("retry", function));
            }
            if let Some(function) = &hooks.on_error {
                node.on_error = OnError::Call(lowering.function("on-error", function));
            }
            let mut site = Site { lowering, id: id.clone(), edges, hooks };
            node.kind = (draft.kind)(&mut site);
            site.complain_of_what_is_left();
            site.edges.len() == routes
        });
        self.graph.nodes.push(node);
        (id, leads_on)
    }

    fn free_id(&mut self, stem: &str) -> NodeId {
        let free = (1..).map(|number| NodeId::from(format!("{stem}-{number}")));
        let id =
            free.into_iter().find(|id| !self.given.contains(id)).unwrap_or_else(|| stem.into());
        self.given.insert(id.clone());
        id
    }

    /// Adds an `if` behind `tails`.
    fn branches<S>(
        &mut self,
        when: &When<S>,
        (then, otherwise): (&[Item<S>], Option<&[Item<S>]>),
        tails: &[Tail],
        follows: bool,
    ) -> Vec<Tail> {
        let name = self.free_id("if");
        let condition = self.lowering.within(name.as_str(), |l| l.condition("when", &when.test));
        let leads_somewhere = otherwise.is_some() || follows;
        let is_simple = match tails {
            [] => false,
            [only] if only.when.is_none() => true,
            // With nowhere else to go, a way that is not taken simply ends.
            several => !leads_somewhere && several.iter().all(Tail::may_end),
        };
        let heads: Vec<NodeId> = if is_simple {
            tails.iter().map(|tail| tail.node.clone()).collect()
        } else {
            self.graph.nodes.push(Node::new(name.clone(), Kind::Decision));
            self.connect(tails, &name);
            vec![name]
        };
        let from_heads = |when: &Condition| -> Vec<Tail> {
            let tail = |node: &NodeId| Tail {
                node: node.clone(),
                when: Some(when.clone()),
                decides: !is_simple,
            };
            heads.iter().map(tail).collect()
        };
        let mut ends = self.sequence(then, from_heads(&condition), follows);
        let rest = from_heads(&Condition::Otherwise);
        ends.extend(match otherwise {
            Some(otherwise) => self.sequence(otherwise, rest, follows),
            None if is_simple || follows => rest,
            // A decision must lead somewhere, even where there is nothing left to do.
            None => self.nothing(&rest),
        });
        ends
    }

    /// A branch that does nothing but end. Where its condition would otherwise be passed over, or
    /// a decision be left without a way, it needs a node.
    fn end_at_once(&mut self, tails: &[Tail]) {
        if !tails.iter().all(Tail::may_end) {
            self.nothing(tails);
        }
    }

    /// A node that does nothing.
    fn nothing(&mut self, tails: &[Tail]) -> Vec<Tail> {
        let id = self.free_id("end");
        let nothing = Function::step(|_| Ok(StepResult::default()));
        let call = self.lowering.within(id.as_str(), |l| l.function("nothing", &nothing));
        self.graph.nodes.push(Action::Function { call }.node(id.as_str()));
        self.connect(tails, &id);
        vec![Tail { node: id, when: None, decides: false }]
    }
}

/// The place where one node is being made.
pub(super) struct Site<'a> {
    pub(super) lowering: &'a mut Lowering,
    pub(super) id: NodeId,
    edges: &'a mut Vec<Edge>,
    /// What nobody has asked for yet.
    hooks: Hooks,
}

impl Site<'_> {
    /// Keeps a function of the node.
    pub(super) fn function(&mut self, role: &str, function: &Function) -> FunctionId {
        match self.hooks.name.take() {
            Some(name) => {
                let id = FunctionId::from(name);
                self.lowering.keep(&id, function);
                id
            }
            None => self.lowering.function(role, function),
        }
    }

    /// Keeps the function that makes changes out of the node's output, if it has one.
    pub(super) fn map(&mut self, role: &str) -> Option<FunctionId> {
        let map = self.hooks.map.take()?;
        Some(self.lowering.function(role, &map))
    }

    /// The backend the node names, if it names one.
    pub(super) fn backend(&mut self) -> Option<BackendId> {
        let name = self.hooks.backend.take()?;
        let known = backend_called(&name);
        if known.is_none() {
            let meant = nearest(&name, BACKENDS.into_iter());
            let meant = meant.map_or_else(String::new, |m| format!(" (did you mean `{m}`?)"));
            let message = format!("there is no backend `{name}`{meant}");
            let remedy = format!("name one of {}", BACKENDS.join(", "));
            self.problem(codes::UNKNOWN_BACKEND, message, &remedy);
        }
        known
    }

    /// What the author gave the node and nothing is done with.
    fn complain_of_what_is_left(&mut self) {
        if self.hooks.map.is_some() {
            let message = "its `map` is never called: only agents, skills, commands, shells, \
                           branches and sub-graphs have one";
            let remedy = "leave it out, and make the changes in a function of its own";
            self.problem(codes::NO_MAP, message, remedy);
        }
        if self.hooks.backend.is_some() {
            let message = "its backend is never used: only agents, skills and commands have one";
            let remedy = "leave it out, or name it at the nodes inside that launch an agent";
            self.problem(codes::NO_BACKEND, message, remedy);
        }
    }

    pub(super) fn text<S>(&mut self, role: &str, words: &Words<S>) -> Text {
        match &words.words {
            Spoken::Verbatim(text) => Text::Verbatim(text.clone()),
            Spoken::Template(template) => Text::Template(template.clone()),
            Spoken::Call(function) => Text::Call(self.function(role, function)),
        }
    }

    pub(super) fn condition<S>(&mut self, role: &str, when: &When<S>) -> Condition {
        self.lowering.condition(role, &when.test)
    }

    /// A way out that is written down by the node itself; then nothing else follows it.
    pub(super) fn route(&mut self, to: &NodeId, when: Condition) {
        let from = vec![self.id.clone()];
        self.edges.push(Edge { from, to: to.clone(), when: Some(when) });
    }

    /// A graph inside the node; `branch` is its name where there are several.
    pub(super) fn graph<S>(&mut self, body: &Builder<S>, branch: Option<&str>) -> Graph {
        let make = |lowering: &mut Lowering| {
            let graph = lowering.graph(body);
            if graph.nodes.is_empty() {
                let remedy = "put at least one node into it";
                lowering.problem(codes::EMPTY, "there are no nodes inside", remedy);
            }
            graph
        };
        match branch {
            Some(name) => self.lowering.within(name, make),
            None => make(self.lowering),
        }
    }

    pub(super) fn problem(&mut self, code: &'static str, message: impl Into<String>, remedy: &str) {
        self.lowering.problem(code, message, remedy);
    }
}
