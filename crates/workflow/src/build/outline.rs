//! From a list of calls to nested sequences, with everything that is wrong in the nesting.

use atomic_graph::NodeId;

use super::builder::{Builder, If, Op};
use super::draft::{Draft, When};
use super::error::codes;
use super::lower::Lowering;

/// One thing of a sequence.
pub(super) enum Item<S> {
    Node(Box<Draft<S>>),
    If { when: When<S>, then: Vec<Self>, otherwise: Option<Vec<Self>> },
    End,
}

/// Where failures are caught.
pub(super) enum Catch<S> {
    Node(Box<Draft<S>>),
    At(NodeId),
}

/// What a builder was told.
pub(super) struct Outline<S> {
    pub(super) items: Vec<Item<S>>,
    pub(super) catch: Option<Catch<S>>,
}

/// An `if` whose end has not come yet.
struct Open<S> {
    /// What is before it, for people.
    place: String,
    when: When<S>,
    then: Vec<Item<S>>,
    otherwise: Option<Vec<Item<S>>>,
}

struct Reader<'l, S> {
    lowering: &'l mut Lowering,
    items: Vec<Item<S>>,
    open: Vec<Open<S>>,
    catch: Option<Catch<S>>,
    started: bool,
    /// The node added last, for people.
    last: Option<NodeId>,
}

/// Reads what a builder was told; problems are noted.
pub(super) fn read<S>(builder: &Builder<S>, lowering: &mut Lowering) -> Outline<S> {
    let mut reader =
        Reader { lowering, items: vec![], open: vec![], catch: None, started: false, last: None };
    reader.calls(&builder.ops);
    Outline { items: reader.items, catch: reader.catch }
}

impl<S> Reader<'_, S> {
    fn calls(&mut self, ops: &[Op<S>]) {
        for op in ops {
            self.call(op);
        }
        while let Some(Open { place, .. }) = self.open.last() {
            let message = format!("the `if_` {place} is never closed");
            self.problem(codes::IF_NOT_CLOSED, message, "close it with `.endif()`");
            self.endif();
        }
    }

    fn call(&mut self, op: &Op<S>) {
        match op {
            Op::Start(node) => self.start(node.clone()),
            Op::Then(piece) => self.then(piece),
            Op::If(when) => {
                self.started = true;
                self.refuse_after_end("`if_`");
                let (place, when) = (self.place(), when.clone());
                self.open.push(Open { place, when, then: vec![], otherwise: None });
            }
            Op::Else => self.otherwise(),
            Op::EndIf => self.endif(),
            Op::Branch(branch) => self.branch(branch),
            Op::Catch(node) => {
                let id = node.node.id.clone();
                self.set_catch(&id, Catch::Node(Box::new(node.clone())));
            }
            Op::CatchAt(node) => self.set_catch(node, Catch::At(node.clone())),
            Op::End => self.add(Item::End, "`end`"),
        }
    }

    /// Where the calls have come to, for people.
    fn place(&self) -> String {
        self.last.as_ref().map_or("at the beginning".to_owned(), |last| format!("after `{last}`"))
    }

    fn problem(&mut self, code: &'static str, message: impl Into<String>, remedy: &str) {
        self.lowering.problem(code, message, remedy);
    }

    /// The sequence that grows at present.
    fn current(&mut self) -> &mut Vec<Item<S>> {
        match self.open.last_mut() {
            Some(open) => open.otherwise.as_mut().unwrap_or(&mut open.then),
            None => &mut self.items,
        }
    }

    fn refuse_after_end(&mut self, what: &str) {
        if matches!(self.current().last(), Some(Item::End)) {
            let message = format!("{what} comes after `.end()`, so it is never reached");
            let remedy = "move `.end()` behind it, or leave it out";
            self.problem(codes::AFTER_END, message, remedy);
            // What comes after it is then not reported once more as unreachable.
            self.current().pop();
        }
    }

    fn add(&mut self, item: Item<S>, what: &str) {
        self.refuse_after_end(what);
        self.current().push(item);
    }

    fn start(&mut self, node: Draft<S>) {
        let id = node.node.id.clone();
        if self.started {
            let message = format!("`.start({id})` comes when the graph has already begun");
            let remedy = "begin once, and add what comes later with `.then(…)`";
            self.problem(codes::STARTED_TWICE, message, remedy);
        }
        self.started = true;
        self.add(Item::Node(Box::new(node)), &format!("node `{id}`"));
        self.last = Some(id);
    }

    fn then(&mut self, piece: &Builder<S>) {
        let place = piece.ops.iter().find_map(|op| match op {
            Op::Start(node) => Some(format!("node `{}`", node.node.id)),
            Op::Then(_)
            | Op::If(_)
            | Op::Else
            | Op::EndIf
            | Op::Branch(_)
            | Op::Catch(_)
            | Op::CatchAt(_)
            | Op::End => None,
        });
        let what = place.unwrap_or_else(|| "a piece".to_owned());
        if !self.started {
            let message = format!("{what} is added before anything was started");
            let remedy = "begin with `.start(…)`";
            self.problem(codes::NOT_STARTED, message, remedy);
            self.started = true;
        }
        // A piece has a nesting of its own: what it opens it must close.
        let Outline { items, catch } = read(piece, self.lowering);
        let node = |item: &Item<S>| match item {
            Item::Node(node) => Some(node.node.id.clone()),
            Item::If { .. } | Item::End => None,
        };
        self.last = items.iter().rev().find_map(node).or(self.last.take());
        if items.is_empty() {
            let remedy = "add nodes to it, or leave it out";
            self.problem(codes::EMPTY, "a piece without nodes is added", remedy);
        }
        self.refuse_after_end(&what);
        self.current().extend(items);
        match catch {
            Some(Catch::Node(node)) => {
                let id = node.node.id.clone();
                self.set_catch(&id, Catch::Node(node));
            }
            Some(Catch::At(node)) => self.set_catch(&node.clone(), Catch::At(node)),
            None => {}
        }
    }

    fn otherwise(&mut self) {
        match self.open.last_mut() {
            None => {
                let message = format!("the `else_` {} has no `if_`", self.place());
                let remedy = "put an `.if_(…)` before it, or leave it out";
                self.problem(codes::ELSE_WITHOUT_IF, message, remedy);
            }
            Some(Open { otherwise: Some(_), place, .. }) => {
                let message = format!("the `if_` {place} has a second `else_`");
                let remedy = "keep one of them, or put another `.if_(…)` inside the first";
                self.problem(codes::TWO_ELSES, message, remedy);
            }
            Some(open) => open.otherwise = Some(vec![]),
        }
    }

    fn endif(&mut self) {
        let Some(Open { place, when, then, otherwise }) = self.open.pop() else {
            let message = format!("the `endif` {} has no `if_`", self.place());
            let remedy = "put an `.if_(…)` before it, or leave it out";
            return self.problem(codes::ENDIF_WITHOUT_IF, message, remedy);
        };
        for (what, branch) in [("", Some(&then)), ("the `else_` of ", otherwise.as_ref())] {
            if branch.is_some_and(Vec::is_empty) {
                let message = format!("{what}the `if_` {place} does nothing");
                let remedy = "add a node, or leave it out (`not(…)` turns a condition round)";
                self.problem(codes::EMPTY_BRANCH, message, remedy);
            }
        }
        self.current().push(Item::If { when, then, otherwise });
    }

    fn branch(&mut self, If { when, then, otherwise }: &If<S>) {
        self.call(&Op::If(when.clone()));
        let nodes = |nodes: &[Draft<S>]| {
            nodes.iter().cloned().map(|node| Item::Node(Box::new(node))).collect::<Vec<_>>()
        };
        if let Some(open) = self.open.last_mut() {
            open.then = nodes(then);
            open.otherwise = Some(nodes(otherwise)).filter(|nodes| !nodes.is_empty());
        }
        self.endif();
    }

    fn set_catch(&mut self, id: &NodeId, catch: Catch<S>) {
        if self.catch.is_some() {
            let message = format!("`catch` names `{id}`, but failures are caught already");
            let remedy = "keep one of them; a node can have a rule of its own with `.on_error(…)`";
            return self.problem(codes::CAUGHT_TWICE, message, remedy);
        }
        self.catch = Some(catch);
    }
}
