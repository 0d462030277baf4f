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
    /// Where to go instead of following the edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goto: Option<NodeId>,
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
        self.goto = Some(node.into());
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
}

impl StepError {
    /// A failure without further detail.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), detail: None }
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
    /// A limit on visits or on the run was met.
    pub const CEILING: &str = "ceiling";
    /// The step was lost too often without getting anywhere.
    pub const LOST: &str = "lost";
    /// Some branches or items of a fan failed.
    pub const FAN: &str = "fan";
    /// The step went to a node that does not exist.
    pub const NO_SUCH_NODE: &str = "no_such_node";
    /// A change does not fit the value it changes.
    pub const REDUCER: &str = "reducer";
}
