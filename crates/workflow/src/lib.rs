//! What can be run: workflow definitions.
//!
//! A [`Workflow`] is a graph and the functions its nodes call. Everything in it is pure: what a
//! node is to do is data ([`Action`]), and the runner does it.

mod action;
pub mod agents;
pub mod builtin;
mod function;
mod json;
mod template;

use atomic_event::{Patch, WorkflowName};
use atomic_graph::Graph;

pub use action::{Action, AgentAction, Asking, Gates, Text, Tree};
pub use function::{Call, Function, Functions, Paths};
pub use json::find_json;
pub use template::render;

/// A named graph that a person can start.
#[derive(Clone, Debug)]
pub struct Workflow {
    /// The name it is started by.
    pub name: WorkflowName,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// What it is for, in one line.
    pub description: String,
    /// Where its sessions live, inside the project.
    pub sessions_dir: String,
    /// What it does.
    pub graph: Graph,
    /// What the graph's functions are.
    pub functions: Functions,
    /// The state a run begins with.
    pub initial_state: fn(&Launch) -> Patch,
}

/// What a run is started with.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// What it is asked to do.
    pub prompt: String,
    /// How many agents at once.
    pub workers: u32,
    /// Its ceilings.
    pub limits: Limits,
}

/// The ceilings of a run that its workflow counts. Money, tokens and time are the runner's.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Attempts per task.
    pub attempts: u32,
    /// Bug-fix tasks per task.
    pub bug_fixes: u32,
    /// Tasks in all.
    pub tasks: u32,
    /// Findings taken from one review.
    pub findings: u32,
    /// Starts of a worker; by default as many as the plan needs, with room to spare.
    pub iterations: Option<u32>,
    /// Reviews.
    pub review_rounds: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            attempts: 4,
            bug_fixes: 3,
            tasks: 200,
            findings: 50,
            iterations: None,
            review_rounds: 3,
        }
    }
}
