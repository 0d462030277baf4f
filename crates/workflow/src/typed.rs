//! Typed state: keys that know their type, over the same machine as everything else.
//!
//! The state of a run is JSON. A struct that derives [`StateKeys`](crate::StateKeys) names its
//! keys and their types once; functions then read a [`View`] and return an [`Update`], and a
//! wrong key or a value of the wrong type does not compile:
//!
//! ```
//! use atomic_workflow::{StateKeys, Update, build::tool};
//!
//! #[derive(StateKeys)]
//! struct Plan {
//!     prompt: String,
//!     #[state(reducer = "concat")]
//!     findings: Vec<String>,
//!     rounds: u32,
//! }
//!
//! let node = tool("count", |s| Ok(Update::new().set(Plan::ROUNDS, s.get(Plan::ROUNDS)? + 1)));
//! # let _: atomic_workflow::build::Draft<Plan> = node;
//! ```
//!
//! A key that does not exist:
//!
//! ```compile_fail
//! use atomic_workflow::{StateKeys, Update, build::tool};
//!
//! #[derive(StateKeys)]
//! struct Plan {
//!     prompt: String,
//!     #[state(reducer = "concat")]
//!     findings: Vec<String>,
//!     rounds: u32,
//! }
//!
//! let node = tool("count", |s| Ok(Update::new().set(Plan::ROUNDS, s.get(Plan::ROUND)? + 1)));
//! # let _: atomic_workflow::build::Draft<Plan> = node;
//! ```
//!
//! A value of the wrong type:
//!
//! ```compile_fail
//! use atomic_workflow::{StateKeys, Update, build::tool};
//!
//! #[derive(StateKeys)]
//! struct Plan {
//!     prompt: String,
//!     #[state(reducer = "concat")]
//!     findings: Vec<String>,
//!     rounds: u32,
//! }
//!
//! let node = tool("count", |s| Ok(Update::new().set(Plan::FINDINGS, s.get(Plan::ROUNDS)? + 1)));
//! # let _: atomic_workflow::build::Draft<Plan> = node;
//! ```
//!
//! A key of another state:
//!
//! ```
//! # use atomic_workflow::{StateKeys, Update, build::{Draft, tool}};
//! #[derive(StateKeys)]
//! struct Plan { rounds: u32 }
//! #[derive(StateKeys)]
//! struct Other { rounds: u32 }
//!
//! let node: Draft<Plan> = tool("count", |_| Update::new().set(Plan::ROUNDS, 1));
//! ```
//!
//! ```compile_fail
//! # use atomic_workflow::{StateKeys, Update, build::{Draft, tool}};
//! #[derive(StateKeys)]
//! struct Plan { rounds: u32 }
//! #[derive(StateKeys)]
//! struct Other { rounds: u32 }
//!
//! let node: Draft<Plan> = tool("count", |_| Update::new().set(Other::ROUNDS, 1));
//! ```

use std::marker::PhantomData;

use atomic_event::{Patch, StepError, StepId, StepResult};
pub use atomic_graph::Reducer;
use atomic_graph::{Goto, Key, NodeId, Signal, code};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::function::{Call, Function, Paths};

/// The keys of a state. Derive it.
pub trait StateKeys: 'static {
    /// The keys, in order of definition.
    fn fields() -> Vec<Field>;
}

/// A state whose keys are not known beforehand: they are texts, and their values JSON.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl StateKeys for Json {
    fn fields() -> Vec<Field> {
        vec![]
    }
}

/// One key of a state.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub key: &'static str,
    /// How changes meet what is there.
    pub reduce: Reduce,
    /// What a run begins with; null means that the key is not there yet. The error says why the
    /// value is not JSON.
    pub default: Result<Value, String>,
}

impl Field {
    /// A key with the value a run begins with.
    pub fn new<T: Serialize>(key: &'static str, default: &T) -> Self {
        let default = serde_json::to_value(default).map_err(|problem| problem.to_string());
        Self { key, reduce: Reduce::By(Reducer::Replace), default }
    }

    /// Sets how changes meet what is there.
    #[must_use]
    pub fn reduced(mut self, reduce: impl Into<Reduce>) -> Self {
        self.reduce = reduce.into();
        self
    }
}

/// How changes to a key meet what is there.
#[derive(Clone, Debug)]
pub enum Reduce {
    /// By a rule of the engine.
    By(Reducer),
    /// By a function.
    With(Function),
}

impl Reduce {
    /// A function combines the two; the old value is absent when there is none yet.
    pub fn with<T: Serialize + DeserializeOwned>(
        combine: impl Fn(Option<T>, T) -> T + Send + Sync + 'static,
    ) -> Self {
        Self::With(Function::value(move |call, args| {
            let read = |place: usize| args.get(place).map_or(Value::Null, |arg| Value::clone(arg));
            let misfit = |problem: serde_json::Error| {
                let node = call.step.node();
                let message = format!("node `{node}`: a reducer cannot read a value: {problem}");
                StepError::new(code::REDUCER, message)
            };
            let old = match read(0) {
                Value::Null => None,
                old @ (Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_)) => Some(serde_json::from_value(old).map_err(misfit)?),
            };
            let change = serde_json::from_value(read(1)).map_err(misfit)?;
            serde_json::to_value(combine(old, change)).map_err(misfit)
        }))
    }
}

impl From<Reducer> for Reduce {
    fn from(reducer: Reducer) -> Self {
        Self::By(reducer)
    }
}

/// A key of the state `S` under which there is a `T`.
pub struct TypedKey<S, T> {
    name: &'static str,
    of: PhantomData<fn() -> (S, T)>,
}

impl<S, T> TypedKey<S, T> {
    /// The key of this name. The derive makes them.
    pub const fn new(name: &'static str) -> Self {
        Self { name, of: PhantomData }
    }

    /// Its name in the JSON.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl<S, T> Clone for TypedKey<S, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, T> Copy for TypedKey<S, T> {}

impl<S, T> std::fmt::Debug for TypedKey<S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Something that names a key of the state `S`: a [`TypedKey`] of it, or, where keys are not known
/// beforehand, a text.
pub trait KeyOf<S> {
    /// What is under it.
    type Value;
    /// The key.
    fn key(self) -> Key;
}

impl<S, T> KeyOf<S> for TypedKey<S, T> {
    type Value = T;
    fn key(self) -> Key {
        Key::from(self.name)
    }
}

impl KeyOf<Json> for &str {
    type Value = Value;
    fn key(self) -> Key {
        Key::from(self)
    }
}

/// Something that names a key under which there is a list.
pub trait ListKeyOf<S>: KeyOf<S> {}

impl<S, T> ListKeyOf<S> for TypedKey<S, Vec<T>> {}
impl ListKeyOf<Json> for &str {}

/// The state as a function sees it.
pub struct View<'a, S> {
    call: Call<'a>,
    of: PhantomData<fn() -> S>,
}

impl<'a, S> View<'a, S> {
    /// What a call sees.
    pub fn new(call: &Call<'a>) -> Self {
        Self { call: *call, of: PhantomData }
    }

    /// The value under a key; the error names node and key.
    pub fn get<T: DeserializeOwned>(&self, key: TypedKey<S, T>) -> Result<T, StepError> {
        self.local(key.name)
    }

    /// A value that the engine put beside those of `S`: the `item` of a fan, the `currentTask` of
    /// a task loop.
    pub fn local<T: DeserializeOwned>(&self, key: &str) -> Result<T, StepError> {
        let value = self.call.state.get(key).map_or(&Value::Null, AsRef::as_ref);
        T::deserialize(value)
            .map_err(|problem| self.misfit(&format!("key `{key}`"), value, &problem))
    }

    /// What a node returned last, or null.
    pub fn output(&self, node: &str) -> Value {
        self.call.output(node)
    }

    /// What a node returned last, in the shape of `T`.
    pub fn output_as<T: DeserializeOwned>(&self, node: &str) -> Result<T, StepError> {
        let value = self.call.state.output(node).map_or(&Value::Null, AsRef::as_ref);
        let what = format!("the output of `{node}`");
        T::deserialize(value).map_err(|problem| self.misfit(&what, value, &problem))
    }

    /// The step the function is called for.
    pub fn step(&self) -> &'a StepId {
        self.call.step
    }

    /// Where the session's files are.
    pub fn paths(&self) -> &'a Paths {
        self.call.paths
    }

    fn misfit(&self, what: &str, value: &Value, problem: &serde_json::Error) -> StepError {
        let node = self.call.step.node();
        let message = if value.is_null() {
            format!("node `{node}`: {what} has no value ({problem})")
        } else {
            format!("node `{node}`: {what} has another shape than expected: {problem}")
        };
        StepError::new(code::FUNCTION, message)
    }
}

impl View<'_, Json> {
    /// The value under a key, or null.
    pub fn value(&self, key: &str) -> Value {
        self.call.state.get(key).map_or(Value::Null, |value| Value::clone(value))
    }
}

impl<S> std::fmt::Debug for View<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("View").field(&self.call.step).finish()
    }
}

/// What a function changes in the state, and what else it returns.
pub struct Update<S> {
    result: StepResult,
    problem: Option<Box<StepError>>,
    of: PhantomData<fn() -> S>,
}

impl<S> Update<S> {
    /// No changes.
    pub fn new() -> Self {
        Self { result: StepResult::default(), problem: None, of: PhantomData }
    }

    /// Sets a key, or hands a change to its reducer.
    #[must_use]
    pub fn set<T: Serialize>(self, key: TypedKey<S, T>, value: T) -> Self {
        self.write(key.name, &value)
    }

    /// Sets the node's output.
    #[must_use]
    pub fn output(mut self, output: impl Into<Value>) -> Self {
        self.result.output = output.into();
        self
    }

    /// Goes to this node next, whatever the edges say; the node must be among the declared ones.
    #[must_use]
    pub fn goto(mut self, node: impl Into<NodeId>) -> Self {
        self.result.goto = Some(Goto::One(node.into()));
        self
    }

    /// Goes to several nodes at once.
    #[must_use]
    pub fn goto_all<N: Into<NodeId>>(mut self, nodes: impl IntoIterator<Item = N>) -> Self {
        self.result.goto = Some(Goto::Many(nodes.into_iter().map(Into::into).collect()));
        self
    }

    /// Tells something to whoever looks on.
    #[must_use]
    pub fn signal(mut self, signal: Signal) -> Self {
        self.result.signals.push(signal);
        self
    }

    fn write(mut self, key: &str, value: &impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => drop(self.result.patch.insert(key.into(), value)),
            Err(problem) => {
                let message = format!("the value for key `{key}` is not JSON: {problem}");
                self.problem = Some(Box::new(StepError::new(code::FUNCTION, message)));
            }
        }
        self
    }

    /// The same as data.
    pub fn into_result(self) -> Result<StepResult, StepError> {
        self.problem.map_or(Ok(self.result), |problem| Err(*problem))
    }

    /// Only the changes, where nothing else can be returned.
    pub(crate) fn into_changes(self, step: &StepId) -> Result<Patch, StepError> {
        let result = self.into_result()?;
        if result.goto.is_some() || !result.signals.is_empty() || !result.output.is_null() {
            let node = step.node();
            let message = format!(
                "node `{node}`: this function can only change the state; return an output, a \
                 goto or a signal from a node of its own"
            );
            return Err(StepError::new(code::FUNCTION, message));
        }
        Ok(result.patch)
    }
}

impl Update<Json> {
    /// Sets a key, or hands a change to its reducer.
    #[must_use]
    pub fn put(self, key: &str, value: impl Serialize) -> Self {
        self.write(key, &value)
    }
}

impl<S> Default for Update<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> std::fmt::Debug for Update<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Update").field(&self.result).finish()
    }
}

/// What an author's function returns: a `T`, or a `T` or an error.
pub trait Outcome<T> {
    /// The same as a result.
    fn outcome(self) -> Result<T, StepError>;
}

impl<T> Outcome<T> for T {
    fn outcome(self) -> Result<T, StepError> {
        Ok(self)
    }
}

impl<T> Outcome<T> for Result<T, StepError> {
    fn outcome(self) -> Self {
        self
    }
}
