//! Functions of a workflow: pure, so that they can be evaluated before anything is on disk.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use atomic_event::{StepError, StepId, StepResult};
use atomic_graph::{Evaluation, FunctionId, State};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Host;

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
#[derive(Clone)]
pub enum Function {
    /// The work of a node.
    Step(Arc<StepFn>),
    /// A text.
    Text(Arc<TextFn>),
    /// Reads an agent's final text; the error is told to the agent.
    Parse(Arc<ParseFn>),
    /// A condition.
    Holds(Arc<HoldsFn>),
    /// Anything else the machine wants to know: combined values, mapped states, what to do about
    /// a failure.
    Value(Arc<ValueFn>),
    /// The work of a node that takes time. It is carried out after its start is on disk, and may
    /// ask things of the world outside.
    Work(Arc<WorkFn>),
    /// Says what a script calls next.
    Advance(Arc<dyn Advance>),
}

/// What work that takes time is given.
#[derive(Clone, Debug)]
pub struct WorkCall {
    /// The state as the step sees it.
    pub state: Arc<State>,
    /// The step.
    pub step: StepId,
    /// Which attempt at it.
    pub attempt: u32,
    /// Where the session's files are.
    pub paths: Paths,
    /// The folder of the project.
    pub workspace: PathBuf,
}

/// Work under way. Dropping it ends the work.
pub type WorkFuture = Pin<Box<dyn Future<Output = Result<StepResult, StepError>> + Send>>;

/// Says what a script calls next.
pub trait Advance: Send + Sync {
    /// What follows from what the script is told. Evaluated before anything that rests on it is on
    /// disk, so it must not act; what it returns is recorded, and it is not asked the same twice,
    /// unless the run was cut off before that.
    ///
    /// The value is `{calls: [{key, body, kind, hash, call, at?, input?}], cancel: [key], logs:
    /// [{level, text}], done: {output, patch?}, failed: {code, message, detail?}, cause:
    /// [key]}`, all of them optional; `cause` are the calls whose failures it failed of.
    fn advance(&self, call: &ScriptCall<'_>) -> Result<Value, StepError>;

    /// Whether a script that was begun with another version of the function can go on with this
    /// one. Nothing is delivered.
    fn check(&self, _call: &ScriptCall<'_>) -> Result<(), StepError> {
        Ok(())
    }
}

impl<F> Advance for F
where
    F: Fn(&ScriptCall<'_>) -> Result<Value, StepError> + Send + Sync,
{
    fn advance(&self, call: &ScriptCall<'_>) -> Result<Value, StepError> {
        self(call)
    }
}

/// What a script is told.
#[derive(Clone, Copy, Debug)]
pub struct ScriptCall<'a> {
    /// The visit to its node.
    pub step: &'a StepId,
    /// The state as its node sees it.
    pub state: &'a Arc<State>,
    /// The session's id.
    pub session: &'a str,
    /// The id that chance starts from: the session's, or that of the one it was first forked from.
    pub root: &'a str,
    /// Where the session's files are.
    pub paths: &'a Paths,
    /// Everything it was told before, and what it called then.
    pub history: &'a [Evaluation],
    /// The call that has ended: `{key, value}`, `{key, error}` or `{key, cancelled: true}`. Nothing
    /// when the script begins.
    pub delivery: Option<&'a Arc<Value>>,
    /// What time it is, in milliseconds since 1970.
    pub now: i64,
}

/// The work of a node.
pub type StepFn = dyn Fn(&Call<'_>) -> Result<StepResult, StepError> + Send + Sync;
/// A text.
pub type TextFn = dyn Fn(&Call<'_>) -> Result<String, StepError> + Send + Sync;
/// Reads an agent's final text.
pub type ParseFn = dyn Fn(&str) -> Result<Value, String> + Send + Sync;
/// A condition.
pub type HoldsFn = dyn Fn(&Call<'_>) -> Result<bool, StepError> + Send + Sync;
/// The work of a node that takes time.
pub type WorkFn = dyn Fn(WorkCall, Arc<dyn Host>) -> WorkFuture + Send + Sync;
/// A value made from values and the state.
pub type ValueFn = dyn Fn(&Call<'_>, &[Arc<Value>]) -> Result<Value, StepError> + Send + Sync;

impl Function {
    /// The work of a node.
    pub fn step(
        function: impl Fn(&Call<'_>) -> Result<StepResult, StepError> + Send + Sync + 'static,
    ) -> Self {
        Self::Step(Arc::new(function))
    }

    /// A text.
    pub fn text(function: impl Fn(&Call<'_>) -> String + Send + Sync + 'static) -> Self {
        Self::Text(Arc::new(move |call| Ok(function(call))))
    }

    /// Reads an agent's final text.
    pub fn parse(function: impl Fn(&str) -> Result<Value, String> + Send + Sync + 'static) -> Self {
        Self::Parse(Arc::new(function))
    }

    /// A condition.
    pub fn holds(function: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self::Holds(Arc::new(move |call| Ok(function(call))))
    }

    /// A value made from values and the state.
    pub fn value(
        function: impl Fn(&Call<'_>, &[Arc<Value>]) -> Result<Value, StepError> + Send + Sync + 'static,
    ) -> Self {
        Self::Value(Arc::new(function))
    }

    /// The work of a node that takes time.
    pub fn work<W>(function: impl Fn(WorkCall, Arc<dyn Host>) -> W + Send + Sync + 'static) -> Self
    where
        W: Future<Output = Result<StepResult, StepError>> + Send + 'static,
    {
        Self::Work(Arc::new(move |call, host| Box::pin(function(call, host))))
    }

    /// Says what a script calls next.
    pub fn advance(advance: impl Advance + 'static) -> Self {
        Self::Advance(Arc::new(advance))
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Step(_) => "Step",
            Self::Text(_) => "Text",
            Self::Parse(_) => "Parse",
            Self::Holds(_) => "Holds",
            Self::Value(_) => "Value",
            Self::Work(_) => "Work",
            Self::Advance(_) => "Advance",
        })
    }
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
    pub fn find(&self, id: &FunctionId) -> Option<&Function> {
        self.0.get(id)
    }

    /// The names of all of them.
    pub fn ids(&self) -> impl Iterator<Item = &FunctionId> {
        self.0.keys()
    }

    /// Adds all functions of another set.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}
