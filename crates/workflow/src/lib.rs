//! What can be run: workflow definitions.
//!
//! A [`Workflow`] is a graph and the functions its nodes call. Everything in it is pure: what a
//! node is to do is data ([`Action`]), and the runner does it.

// What the derive makes refers to this crate by its name, also in here.
extern crate self as atomic_workflow;

mod action;
mod backends;
pub mod build;
pub mod builtin;
mod called;
mod capabilities;
pub mod descriptor;
mod function;
mod host;
mod json;
mod loops;
mod shell;
mod template;
mod typed;
pub mod typescript;
mod uses;
mod version;

use std::path::PathBuf;
use std::sync::Arc;

use atomic_event::{Patch, StepError, WorkflowName};
use atomic_graph::Graph;
use serde_json::Value;

pub use atomic_derive::StateKeys;

pub use action::{
    Action, AgentAction, Asking, ContextAction, ContextMonitor, Entry, EntryKind, Gates, Shell,
    TaskFile, TaskFileOp, Text, Tree,
};
pub use atomic_event::Source;
pub use backends::{BACKENDS, Launcher, backend_called, launchers, roles};
pub use called::{CALL, Callable, REQUESTS, called, script_node};
pub use capabilities::Capabilities;
pub use function::{
    Advance, Call, Function, Functions, HoldsFn, ParseFn, Paths, ScriptCall, StepFn, TextFn,
    ValueFn, WorkCall, WorkFn, WorkFuture,
};
pub use host::{Host, HostFuture, LogLevel};
pub use json::find_json;
pub use loops::ENOUGH_TASKS;
pub use shell::{Refusal, ShellCommand, ShellTemplateError, render_shell};
pub use template::{TemplateError, render};
pub use typed::{
    Field, Json, KeyOf, ListKeyOf, Outcome, Reduce, Reducer, StateKeys, TypedKey, Update, View,
};
pub use uses::names_used;

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
    pub initial_state: Initial,
    /// The file it was read from, if it was.
    pub source: Option<Source>,
    /// The version of the shape of its state, and how an older one is brought up to it.
    pub state_shape: StateShape,
}

/// The version of the shape of a workflow's state.
#[derive(Clone, Default)]
pub struct StateShape {
    /// The version; without one it is 0.
    pub version: u64,
    /// Makes a state of this version out of one of an older version, which it is told.
    pub migrate: Option<Arc<MigrateFn>>,
}

/// Makes a state of the current version out of one of an older version.
pub type MigrateFn = dyn Fn(Value, u64) -> Result<Value, StepError> + Send + Sync;

impl std::fmt::Debug for StateShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateShape").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The state a run begins with.
#[derive(Clone)]
pub enum Initial {
    /// A function makes it; a run for which it cannot is not started.
    Made(Arc<MakeFn>),
    /// A function of the workflow's author makes it: when a run begins, and each time the workflow
    /// begins inside another one.
    Created(Arc<MakeFn>),
    /// These values, besides `prompt`, `executionId`, `maxIterations` and `workers`.
    Given(Patch),
}

/// Makes the state a run begins with.
pub type MakeFn = dyn Fn(&Launch) -> Result<Patch, StepError> + Send + Sync;

impl std::fmt::Debug for Initial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Made(_) => f.write_str("Made"),
            Self::Created(_) => f.write_str("Created"),
            Self::Given(values) => f.debug_tuple("Given").field(values).finish(),
        }
    }
}

impl Initial {
    /// A function makes it, and always can.
    pub fn made(make: impl Fn(&Launch) -> Patch + Send + Sync + 'static) -> Self {
        Self::Made(Arc::new(move |launch| Ok(make(launch))))
    }

    /// The state for this run.
    pub fn state(&self, launch: &Launch) -> Result<Patch, StepError> {
        Ok(match self {
            Self::Made(make) | Self::Created(make) => return make(launch),
            Self::Given(values) => {
                let mut state = values.clone();
                state.insert("prompt".into(), launch.prompt.clone().into());
                state.insert("executionId".into(), launch.session.clone().into());
                let given = values.get("maxIterations").cloned();
                let limit = launch.limits.iterations.map(Into::into).or(given);
                state.insert("maxIterations".into(), limit.unwrap_or(DEFAULT_ITERATIONS.into()));
                state.entry(WORKERS.into()).or_insert_with(|| launch.workers().into());
                state
            }
        })
    }
}

/// The key of the state with the number of workers of the run, for fans that do not say how many
/// items are worked on at once.
pub const WORKERS: &str = "workers";

/// How often a node may be visited when nobody says otherwise.
pub const DEFAULT_ITERATIONS: u32 = 100;

/// What a run is started with.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// What it is asked to do.
    pub prompt: String,
    /// The id of the session.
    pub session: String,
    /// The session's folder.
    pub session_dir: PathBuf,
    /// How many agents at once, where the user says so.
    pub workers: Option<u32>,
    /// Its ceilings.
    pub limits: Limits,
}

impl Launch {
    /// How many agents at once.
    pub fn workers(&self) -> u32 {
        self.workers.unwrap_or(DEFAULT_WORKERS).max(1)
    }
}

/// How many agents at once when neither the user nor the workflow says so.
pub const DEFAULT_WORKERS: u32 = 4;

/// The ceilings of a run that its workflow counts, and what it requires. Money, tokens and time are
/// the runner's.
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
    /// Whether a task that no check verifies makes the run fail.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub require_checks: bool,
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
            require_checks: false,
        }
    }
}
