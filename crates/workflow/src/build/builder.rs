//! The fluent builder. It only writes down what it is told; [`compile`](Builder::compile) finds
//! out what that means, and everything that is wrong with it, at once.

use atomic_graph::NodeId;

use super::draft::{Draft, When};
use super::loops;
use super::nodes::{self, Agent};
use super::regions::{self, Branches, Fan, Inner};
use crate::typed::{Outcome, Update, View};

/// Begins a graph over the state `S`.
pub fn graph<S>() -> Builder<S> {
    Builder { ops: vec![] }
}

/// A graph that is being built, or a piece of one.
pub struct Builder<S> {
    pub(super) ops: Vec<Op<S>>,
}

/// One call of the builder.
pub(super) enum Op<S> {
    Start(Draft<S>),
    Then(Builder<S>),
    If(When<S>),
    Else,
    EndIf,
    Branch(If<S>),
    Catch(Draft<S>),
    CatchAt(NodeId),
    End,
}

impl<S> Clone for Op<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Start(node) => Self::Start(node.clone()),
            Self::Then(piece) => Self::Then(piece.clone()),
            Self::If(when) => Self::If(when.clone()),
            Self::Else => Self::Else,
            Self::EndIf => Self::EndIf,
            Self::Branch(branch) => Self::Branch(branch.clone()),
            Self::Catch(node) => Self::Catch(node.clone()),
            Self::CatchAt(node) => Self::CatchAt(node.clone()),
            Self::End => Self::End,
        }
    }
}

/// The object form of an `if`.
#[derive(Debug)]
pub struct If<S> {
    /// The condition.
    pub when: When<S>,
    /// What is done when it holds, one after the other.
    pub then: Vec<Draft<S>>,
    /// What is done when it does not; nothing when empty.
    pub otherwise: Vec<Draft<S>>,
}

impl<S> Clone for If<S> {
    fn clone(&self) -> Self {
        let Self { when, then, otherwise } = self;
        Self { when: when.clone(), then: then.clone(), otherwise: otherwise.clone() }
    }
}

impl<S> Clone for Builder<S> {
    fn clone(&self) -> Self {
        Self { ops: self.ops.clone() }
    }
}

impl<S> std::fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Builder({} calls)", self.ops.len())
    }
}

impl<S: 'static> From<Draft<S>> for Builder<S> {
    fn from(node: Draft<S>) -> Self {
        graph().start(node)
    }
}

impl<S: 'static> From<Vec<Draft<S>>> for Builder<S> {
    fn from(nodes: Vec<Draft<S>>) -> Self {
        let add = |built: Self, node: Draft<S>| {
            if built.ops.is_empty() { built.start(node) } else { built.then(node) }
        };
        nodes.into_iter().fold(graph(), add)
    }
}

impl<S: 'static, const N: usize> From<[Draft<S>; N]> for Builder<S> {
    fn from(nodes: [Draft<S>; N]) -> Self {
        Self::from(Vec::from(nodes))
    }
}

impl<S: 'static> Builder<S> {
    fn and(mut self, op: Op<S>) -> Self {
        self.ops.push(op);
        self
    }

    /// The node a run begins with.
    #[must_use]
    pub fn start(self, node: Draft<S>) -> Self {
        self.and(Op::Start(node))
    }

    /// What comes next: a node, several one after the other, or a piece built elsewhere.
    #[must_use]
    pub fn then(self, next: impl Into<Self>) -> Self {
        self.and(Op::Then(next.into()))
    }

    /// What follows is done only when the condition holds, up to [`else_`](Self::else_) or
    /// [`endif`](Self::endif).
    #[must_use]
    pub fn if_(self, when: When<S>) -> Self {
        self.and(Op::If(when))
    }

    /// What follows is done only when the condition does not hold.
    #[must_use]
    pub fn else_(self) -> Self {
        self.and(Op::Else)
    }

    /// Both ways come together again.
    #[must_use]
    pub fn endif(self) -> Self {
        self.and(Op::EndIf)
    }

    /// The object form of `if`, `else` and `endif`.
    #[must_use]
    pub fn branch(self, branch: If<S>) -> Self {
        self.and(Op::Branch(branch))
    }

    /// Repeats until the condition holds after a round, at most so often; 0 means no limit.
    #[must_use]
    pub fn loop_(self, body: impl Into<Self>, until: When<S>, max_rounds: u32) -> Self {
        self.then(loops::repeat("loop", body, until, max_rounds).numbered())
    }

    /// Several graphs at once.
    #[must_use]
    pub fn parallel(self, branches: Branches<S>) -> Self {
        self.then(regions::parallel("parallel", branches).numbered())
    }

    /// Waits for the user.
    #[must_use]
    pub fn wait(self, prompt: &str) -> Self {
        self.then(nodes::wait("wait", prompt).numbered())
    }

    /// Prompts an agent in a conversation of its own.
    #[must_use]
    pub fn subagent(self, id: impl Into<NodeId>, agent: Agent<S>) -> Self {
        self.then(nodes::subagent(id, agent))
    }

    /// Evaluates a function.
    #[must_use]
    pub fn tool<R: Outcome<Update<S>>>(
        self,
        id: impl Into<NodeId>,
        execute: impl Fn(&View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.then(nodes::tool(id, execute))
    }

    /// Does something for every item of a list.
    #[must_use]
    pub fn each(self, id: impl Into<NodeId>, fan: Fan<S>) -> Self {
        self.then(regions::each(id, fan))
    }

    /// Runs a graph of its own.
    #[must_use]
    pub fn subgraph<I: 'static>(self, id: impl Into<NodeId>, inner: Inner<S, I>) -> Self {
        self.then(regions::subgraph(id, inner))
    }

    /// Goes to the node of the first route that holds, else to the fallback. What is added next is
    /// reached only through a route.
    #[must_use]
    pub fn decision<N: Into<NodeId>>(
        self,
        id: impl Into<NodeId>,
        routes: impl IntoIterator<Item = (When<S>, N)>,
        fallback: impl Into<NodeId>,
    ) -> Self {
        self.then(nodes::decision(id, routes, fallback))
    }

    /// Where the graph goes on when a node fails and has no rule of its own. The failure is the
    /// output of the node that failed, under `error`.
    #[must_use]
    pub fn catch(self, node: Draft<S>) -> Self {
        self.and(Op::Catch(node))
    }

    /// The same, for a node that is part of the graph already.
    #[must_use]
    pub fn catch_at(self, node: impl Into<NodeId>) -> Self {
        self.and(Op::CatchAt(node.into()))
    }

    /// The run, or this branch of an `if`, ends here.
    #[must_use]
    pub fn end(self) -> Self {
        self.and(Op::End)
    }
}
