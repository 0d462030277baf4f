//! A workflow as data: nodes, edges, and the rules between them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reduce::Reducer;
use crate::{FunctionId, Key, NodeId};

/// A graph of nodes. The order of `nodes` is the order in which parallel changes are applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Where a run begins.
    pub start: NodeId,
    /// The nodes, in order of definition.
    pub nodes: Vec<Node>,
    /// What follows what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edge>,
    /// How changes meet what is there; [`Reducer::Replace`] for keys not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reducers: BTreeMap<Key, Reducer>,
    /// The largest number of steps of the whole run. Only the outermost graph's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// The largest number of steps at once. Only the outermost graph's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
}

/// One place in a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Its name, unique in its graph.
    pub id: NodeId,
    /// What it does, for people; a node without one is not shown in the progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What happens here.
    pub kind: Kind,
    /// How often and when to try again.
    #[serde(default)]
    pub retry: Retry,
    /// What to do when it failed for good.
    #[serde(default)]
    pub on_error: OnError,
    /// What to do when an attempt was cut off.
    #[serde(default)]
    pub on_lost: OnLost,
    /// Where a run that failed here goes when it is resumed; otherwise the node is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_revive: Option<NodeId>,
    /// The largest number of visits in a run; one more fails with the code `ceiling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_visits: Option<Count>,
    /// Where a `goto` of this node may lead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<NodeId>,
}

/// What happens at a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// Something the caller carries out: an agent's turn, a tool, a function, a question. The
    /// machine does not look inside.
    Work {
        /// What, in the caller's words.
        action: Value,
    },
    /// A graph inside the graph.
    Subgraph {
        /// The inner graph.
        graph: Graph,
        /// Whether its changes stay inside; then they are its output instead.
        #[serde(default)]
        isolated: bool,
    },
    /// A graph that is run again and again.
    Loop {
        /// The inner graph.
        graph: Graph,
        /// When to stop, asked after each round.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Condition>,
        /// The largest number of rounds; 0 means no limit, and then there must be an `until`.
        #[serde(default = "default_rounds")]
        max_rounds: u32,
    },
    /// A graph that is run for every item of a list in the state.
    Each(Each),
}

fn default_rounds() -> u32 {
    100
}

/// A fan over a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Each {
    /// The key of the list. It is read again after every item, so items may come and go.
    pub over: Key,
    /// The key under which the inner graph finds its item.
    #[serde(default = "default_item")]
    pub item: Key,
    /// What to do with each item.
    pub graph: Graph,
    /// How many items at once.
    pub workers: Count,
    /// Which items may start.
    #[serde(default)]
    pub ready: Ready,
}

fn default_item() -> Key {
    Key::from("item")
}

/// Which items of a fan may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// Every item, once.
    #[default]
    Once,
    /// Items are tasks: those that are `pending` and whose `blockedBy` are all `completed` or
    /// `skipped`. A task may run again when its row has changed and is pending once more.
    Tasks,
}

/// A number that is written down, or found in the state when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// The number.
    Fixed(u64),
    /// The key under which it is; absent means no limit.
    Key(Key),
}

/// What follows what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// One node, or several that are all waited for.
    pub from: Vec<NodeId>,
    /// What follows.
    pub to: NodeId,
    /// When; of a node's conditional edges the first that holds is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
}

/// Something that is true of a state or not. The caller evaluates it and the choice is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The value at `key` equals `value`.
    Equals {
        /// Which value.
        key: Key,
        /// What it must be.
        value: Value,
    },
    /// A function says so.
    Call(FunctionId),
    /// Whatever no condition before it has taken.
    Otherwise,
}

/// How often and when to try again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// How often in all.
    pub attempts: u32,
    /// How long to wait before the second attempt.
    #[serde(default)]
    pub delay_ms: u64,
    /// By what the wait grows each time.
    #[serde(default = "default_factor")]
    pub factor: f64,
    /// The codes worth another attempt; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
}

fn default_factor() -> f64 {
    2.0
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, delay_ms: 0, factor: default_factor(), codes: vec![] }
    }
}

/// What to do when a node failed for good.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The graph fails.
    #[default]
    Abort,
    /// The graph goes on as if the node had returned nothing but its error.
    Skip,
    /// The graph goes on at another node.
    Goto(NodeId),
}

/// What to do when an attempt was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// Continue it where it was, or run it again where that cannot be done.
    #[default]
    Continue,
    /// Run it again from the start.
    RunAgain,
    /// Ask the user.
    Ask,
}

impl Graph {
    /// An empty graph that begins at `start`.
    pub fn starting_at(start: impl Into<NodeId>) -> Self {
        Self {
            start: start.into(),
            nodes: vec![],
            edges: vec![],
            reducers: BTreeMap::new(),
            max_steps: None,
            max_concurrency: None,
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
        }
    }

    /// A node the caller carries out.
    pub fn work(id: impl Into<NodeId>, action: Value) -> Self {
        Self::new(id, Kind::Work { action })
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
}
