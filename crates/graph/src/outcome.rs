//! What a step leaves behind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Key, NodeId};

/// What a step changes in the state: only the keys it names.
pub type Patch = BTreeMap<Key, Value>;

/// What a finished step returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepResult {
    /// Changes to the state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patch: Patch,
    /// Kept as `outputs[node]`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub output: Value,
    /// Where to go instead of following the edges: one node, or several at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goto: Option<Goto>,
    /// What the step tells whoever looks on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Signal>,
}

/// Where a step goes instead of following the edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Goto {
    /// One node.
    One(NodeId),
    /// Several, in the next superstep.
    Many(Vec<NodeId>),
}

impl Goto {
    /// The nodes.
    pub fn nodes(&self) -> &[NodeId] {
        match self {
            Self::One(node) => std::slice::from_ref(node),
            Self::Many(nodes) => nodes,
        }
    }
}

/// Something a step tells whoever looks on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Signal {
    /// What kind; [`Signal::HUMAN`] waits for an answer, all others are only shown.
    #[serde(rename = "type")]
    pub kind: String,
    /// One line for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// More of it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl Signal {
    /// The kind of signal that asks the user and waits for the answer, which becomes the field
    /// `answer` of the node's output.
    pub const HUMAN: &str = "human_input_required";
}

impl StepResult {
    /// A result that is only an output.
    pub fn output(output: impl Into<Value>) -> Self {
        Self { output: output.into(), ..Self::default() }
    }

    /// Adds a change to the state.
    #[must_use]
    pub fn set(mut self, key: impl Into<Key>, value: impl Into<Value>) -> Self {
        self.patch.insert(key.into(), value.into());
        self
    }

    /// Goes to `node` next, whatever the edges say.
    #[must_use]
    pub fn goto(mut self, node: impl Into<NodeId>) -> Self {
        self.goto = Some(Goto::One(node.into()));
        self
    }
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepError {
    /// A short, stable word for the kind of failure, such as `timeout` or `rate_limited`.
    pub code: String,
    /// One line for a person.
    pub message: String,
    /// More of it, such as the end of a program's output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What a function of a workflow file threw, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thrown: Option<Box<str>>,
    /// The provider's trouble, where waiting for the provider can help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
}

/// A provider that does not serve requests for now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outage {
    /// The HTTP status. A connection that was refused or broke off has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// When the provider accepts requests again, in milliseconds since 1970, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at_ms: Option<i64>,
}

impl StepError {
    /// A failure without further detail.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        let (code, message) = (code.to_owned(), message.into());
        Self { code, message, detail: None, thrown: None, outage: None }
    }

    /// Adds detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

/// Why a step is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// For the first time.
    #[default]
    First,
    /// The attempt before failed.
    Retried,
    /// The attempt before was lost and is continued in its own conversation.
    Continued,
    /// The attempt before was lost and is done again from the start.
    RunAgain,
    /// The run had failed here and was given another chance.
    Revived,
}

/// The codes of failures that the machine itself knows.
pub mod code {
    /// A limit on visits or on the run was met. A caller that fails a step with it says that the
    /// run may start nothing any more.
    pub const CEILING: &str = "ceiling";
    /// The task of the step has spent its own budget. The step is not tried again.
    pub const BUDGET: &str = "budget";
    /// The step was lost too often without getting anywhere.
    pub const LOST: &str = "lost";
    /// Some branches or items of a fan failed.
    pub const FAN: &str = "fan";
    /// The step went to a node that does not exist.
    pub const NO_SUCH_NODE: &str = "no_such_node";
    /// A change does not fit the value it changes.
    pub const REDUCER: &str = "reducer";
    /// It took longer than it may.
    pub const TIMEOUT: &str = "timeout";
    /// It was stopped because something beside it failed.
    pub const CANCELLED: &str = "cancelled";
    /// None of a decision's conditions holds.
    pub const NO_ROUTE: &str = "no_route";
    /// An edge waits for a node that never ran.
    pub const JOIN: &str = "join";
    /// The state does not fit the schema of the node that is to see it.
    pub const INPUT_SCHEMA: &str = "input_schema";
    /// What a node returned does not fit its schema.
    pub const OUTPUT_SCHEMA: &str = "output_schema";
    /// A key of the state does not hold what a node reads there.
    pub const WRONG_VALUE: &str = "wrong_value";
    /// A function of the workflow failed, or returned something of the wrong shape.
    pub const FUNCTION: &str = "function";
    /// A script waits for something that never comes.
    pub const STUCK: &str = "stuck";
    /// A script that is run again does not do what it did before.
    pub const DIVERGED: &str = "diverged";

    /// Whether a code has a meaning here: then nobody else may give it to a failure of theirs.
    pub fn is_known(code: &str) -> bool {
        let known = [
            CEILING,
            BUDGET,
            LOST,
            FAN,
            NO_SUCH_NODE,
            REDUCER,
            TIMEOUT,
            CANCELLED,
            NO_ROUTE,
            JOIN,
            INPUT_SCHEMA,
            OUTPUT_SCHEMA,
            WRONG_VALUE,
            FUNCTION,
            STUCK,
            DIVERGED,
        ];
        known.contains(&code)
    }
}
