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
    /// What a sub-graph begins with under keys that have no value around it. Only that of a
    /// sub-graph counts; a whole run is given its state.
    #[serde(default, skip_serializing_if = "crate::Patch::is_empty")]
    pub defaults: crate::Patch,
    /// The largest number of steps of the whole run. Only the outermost graph's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u64>,
    /// The largest number of steps at once. Only the outermost graph's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// How often any one node may be visited while this graph is run once, so that a cycle of
    /// edges ends; one more fails with the code `ceiling`. Absent means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<Count>,
    /// The longest time for the whole run. Only the outermost graph's counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Where the graph goes on when a node of it fails and has no rule of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch: Option<NodeId>,
    /// Whether the first node that fails stops those that run beside it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    /// The model for nodes that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Graph {
    /// Whether the graph is nothing but a script, as that of a plain async workflow.
    pub fn is_script(&self) -> bool {
        matches!(self.nodes.as_slice(), [Node { kind: Kind::Script(_), .. }])
    }
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
    /// The longest time for one attempt; then what is done here is stopped, and it has failed
    /// with the code `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// JSON Schema of the state as this node sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of what this node returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The model, for this node and everything inside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
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
        /// Whether every attempt launches an agent, which costs money and is counted.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        launch: bool,
        /// Whether it only waits for a person: that takes no place of `max_concurrency`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        asks: bool,
    },
    /// Nothing is done here; the conditions of the edges that leave it say where to go, and one
    /// of them must hold.
    Decision,
    /// A graph inside the graph.
    Subgraph {
        /// The inner graph.
        graph: Graph,
        /// Whether its changes stay inside; then they are its output instead.
        #[serde(default)]
        isolated: bool,
        /// Makes the state it begins with; otherwise it sees the state around it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<FunctionId>,
        /// Makes the changes to the state around it from the state it ended with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<FunctionId>,
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
    /// Several graphs at once.
    Parallel(Parallel),
    /// A function that says, each time something it called has ended, what to call next.
    Script(Script),
}

/// The model that means the one of the node or graph around.
pub(crate) const INHERIT: &str = "inherit";

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
    /// Whether the first item that fails stops the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    /// In which order the changes of the items reach the state around the fan.
    #[serde(default, skip_serializing_if = "ItemOrder::is_finished")]
    pub order: ItemOrder,
}

/// Which changes of its siblings an item sees, and in which order the changes of all items reach the
/// state around the fan. Graphs of sessions from before there was a choice do not say.
///
/// Changes to the list itself are always seen and kept as the items finish, because items without an
/// id are called by their place in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemOrder {
    /// As the items finish. An item sees the changes of all that finished before it began.
    #[default]
    Finished,
    /// As the items stand in the list, whichever finished first and however many ran at once. An
    /// item sees none of the others' changes.
    List,
    /// As the tasks stand in the list, each after those it waits for. A task sees the changes of
    /// those it waits for, and its own when it runs again.
    Blockers,
}

impl ItemOrder {
    /// Whether a graph need not say so.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    fn is_finished(&self) -> bool {
        *self == Self::Finished
    }
}

/// Several graphs at once, and how they come together again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parallel {
    /// The graphs, in order of definition.
    pub branches: Vec<Branch>,
    /// Which of them are waited for.
    #[serde(default)]
    pub strategy: Strategy,
    /// Whether, where all are waited for, the first that fails stops the others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fail_fast: bool,
    /// Makes further changes to the state from the outputs of the branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<FunctionId>,
}

/// One of several graphs that run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// Its name, unique among the branches.
    pub id: NodeId,
    /// What it does.
    pub graph: Graph,
}

/// A function that calls graphs by name, one or several at a time, and goes on with what they
/// return. It is asked again each time one of them has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Says what to call next, and when it is done.
    pub advance: FunctionId,
    /// What it can call.
    pub bodies: Vec<Branch>,
    /// How many calls it may make in all; one more fails with the code `ceiling`. Without one it
    /// is [`Script::CALLS`], which only keeps it from running away: nobody has promised that so
    /// many are meant, and so what it can cost counts as not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<Count>,
}

impl Script {
    /// How many calls a script may make when nobody says otherwise.
    pub const CALLS: u64 = 1000;
}

/// Which branches are waited for. The others are stopped, and what they changed is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Every one of them.
    #[default]
    All,
    /// The first that comes to an end, whatever end.
    Race,
    /// The first that succeeds.
    Any,
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

impl Ready {
    /// The order of the changes of such items.
    pub fn order(self) -> ItemOrder {
        match self {
            Self::Once => ItemOrder::List,
            Self::Tasks => ItemOrder::Blockers,
        }
    }
}

/// A number that is written down, or found in the state when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// The number.
    Fixed(u64),
    /// The key under which it is; absent means no limit, and anything but a whole number is a
    /// failure of the node.
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
    /// The output of `node`, as text, contains `text`.
    Says {
        /// Whose output.
        node: NodeId,
        /// What it must contain.
        text: String,
    },
    /// The other does not hold.
    Not(Box<Self>),
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
    /// Says whether a failure is worth another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<FunctionId>,
}

fn default_factor() -> f64 {
    2.0
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 1, delay_ms: 0, factor: default_factor(), codes: vec![], when: None }
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
    /// The same, with these changes to the state.
    SkipWith(crate::Patch),
    /// The graph goes on at another node.
    Goto(NodeId),
    /// A function says which of these it is, or that the node is tried again, at most
    /// [`OnError::ATTEMPTS`] times.
    Call(FunctionId),
}

impl OnError {
    /// How often a node is tried in all when a function keeps asking for it, unless the node
    /// allows more.
    pub const ATTEMPTS: u32 = 3;
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
