//! How often agents can be launched.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number of launches there can be, and what it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certified {
    /// Launches of an agent in the whole run; absent when there is no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<u64>,
    /// Agents at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u64>,
    /// What is unbounded, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbounded: Vec<String>,
}
