//! Functions of a workflow: pure, so that they can be evaluated before anything is on disk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use atomic_event::{StepError, StepId, StepResult};
use atomic_graph::{FunctionId, State};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What a function is given.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The state as the step sees it.
    pub state: &'a State,
    /// The step.
    pub step: &'a StepId,
    /// Where the session's files are.
    pub paths: &'a Paths,
}

/// Where the files of a session are.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// The task list.
    pub tasks: PathBuf,
    /// What was done so far.
    pub progress: PathBuf,
}

impl Call<'_> {
    /// A value of the state in the shape of `T`; absent or of another shape gives the default.
    pub fn get<T: DeserializeOwned + Default>(&self, key: &str) -> T {
        let value = self.state.get(key);
        value.and_then(|value| T::deserialize(value.as_ref()).ok()).unwrap_or_default()
    }

    /// What a node returned, or null.
    pub fn output(&self, node: &str) -> Value {
        self.state.output(node).map_or(Value::Null, |value| Value::clone(value))
    }
}

/// A function by what it is used for.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// The work of a node.
    Step(fn(&Call<'_>) -> Result<StepResult, StepError>),
    /// A text.
    Text(fn(&Call<'_>) -> String),
    /// Reads an agent's final text; the error is told to the agent.
    Parse(fn(&str) -> Result<Value, String>),
    /// A condition.
    Holds(fn(&Call<'_>) -> bool),
}

/// The functions of a workflow, by id.
#[derive(Clone, Debug, Default)]
pub struct Functions(BTreeMap<FunctionId, Function>);

impl Functions {
    /// Adds a function.
    #[must_use]
    pub fn with(mut self, id: &str, function: Function) -> Self {
        self.0.insert(FunctionId::from(id), function);
        self
    }

    /// Finds a function.
    pub fn find(&self, id: &FunctionId) -> Option<Function> {
        self.0.get(id).copied()
    }
}
