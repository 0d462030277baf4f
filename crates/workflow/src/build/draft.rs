//! A node before it has its place in a graph, and the small parts it is made of.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use atomic_event::StepError;
use atomic_graph::{
    Condition, Count, Kind, Node, NodeId, OnError, OnLost, Patch, Retry, StepId, code,
};
use serde_json::{Value, json};

use super::lower::Site;
use crate::function::Function;
use crate::typed::{KeyOf, Outcome, Update, View};

/// What a node does, once it is known where it is.
pub(super) type Lower = dyn Fn(&mut Site<'_>) -> Kind + Send + Sync;

/// A node before it has its place in a graph.
pub struct Draft<S> {
    /// All but its kind, which is made by `kind`.
    pub(super) node: Node,
    /// Whether the id is only the beginning of one: `loop` becomes `loop-1`.
    pub(super) numbered: bool,
    pub(super) kind: Arc<Lower>,
    pub(super) hooks: Hooks,
    of: PhantomData<fn() -> S>,
}

/// The functions any node may have, and what only some may.
#[derive(Clone, Debug, Default)]
pub(super) struct Hooks {
    pub(super) retry: Option<Function>,
    pub(super) on_error: Option<Function>,
    /// Makes the changes to the state out of the output.
    pub(super) map: Option<Function>,
    /// The backend, of a node that launches an agent.
    pub(super) backend: Option<String>,
    /// The id of the function that does the node's work, where it is not to be made up.
    pub(super) name: Option<String>,
}

impl<S> Clone for Draft<S> {
    fn clone(&self) -> Self {
        Self {
            node: self.node.clone(),
            numbered: self.numbered,
            kind: Arc::clone(&self.kind),
            hooks: self.hooks.clone(),
            of: PhantomData,
        }
    }
}

impl<S> std::fmt::Debug for Draft<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Draft").field(&self.node.id).finish()
    }
}

impl<S: 'static> Draft<S> {
    pub(super) fn new(
        id: impl Into<NodeId>,
        kind: impl Fn(&mut Site<'_>) -> Kind + Send + Sync + 'static,
    ) -> Self {
        Self {
            node: Node::new(id, Kind::Decision),
            numbered: false,
            kind: Arc::new(kind),
            hooks: Hooks::default(),
            of: PhantomData,
        }
    }

    /// The id becomes unique by a number behind it.
    pub(super) fn numbered(mut self) -> Self {
        self.numbered = true;
        self
    }

    /// Gives it another id.
    #[must_use]
    pub fn id(mut self, id: impl Into<NodeId>) -> Self {
        self.node.id = id.into();
        self.numbered = false;
        self
    }

    /// Says what the node does; one that says nothing is not shown in the progress.
    #[must_use]
    pub fn described(mut self, description: &str) -> Self {
        self.node.description = Some(description.to_owned());
        self
    }

    /// Makes changes to the state out of the node's output: an agent's answer, the output of a
    /// command, the outputs of branches by their names, or the state a sub-graph ended with.
    #[must_use]
    pub fn map<R: Outcome<Update<S>>>(
        mut self,
        map: impl Fn(&Value, &View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.hooks.map = Some(Function::value(move |call, args| {
            let output = args.first().map_or(&Value::Null, AsRef::as_ref);
            let update = map(output, &View::new(call)).outcome()?;
            Ok(to_value(update.into_changes(call.step)?))
        }));
        self
    }

    /// Sets how often and when to try again.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> Self {
        self.node.retry = retry;
        self
    }

    /// Says whether a failure is worth another attempt.
    #[must_use]
    pub fn retry_if<R: Outcome<bool>>(
        mut self,
        worth_it: impl Fn(&StepError, &View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.hooks.retry = Some(Function::value(move |call, args| {
            let error = failure(args.first().map_or(&Value::Null, AsRef::as_ref));
            Ok(worth_it(&error, &View::new(call)).outcome()?.into())
        }));
        self
    }

    /// Sets what to do when it failed for good.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.node.on_error = on_error;
        self
    }

    /// Lets a function say what to do when it failed for good.
    #[must_use]
    pub fn recover<R: Outcome<Remedy<S>>>(
        mut self,
        remedy: impl Fn(&StepError, &View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_error = Some(Function::value(move |call, args| {
            let error = failure(args.first().map_or(&Value::Null, AsRef::as_ref));
            remedy(&error, &View::new(call)).outcome()?.into_value(call.step)
        }));
        self
    }

    /// Sets what to do when an attempt was cut off.
    #[must_use]
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.node.on_lost = on_lost;
        self
    }

    /// Sets where a run that failed here goes when it is resumed.
    #[must_use]
    pub fn on_revive(mut self, node: impl Into<NodeId>) -> Self {
        self.node.on_revive = Some(node.into());
        self
    }

    /// Limits the number of visits in a run.
    #[must_use]
    pub fn max_visits(mut self, visits: u64) -> Self {
        self.node.max_visits = Some(Count::Fixed(visits));
        self
    }

    /// Declares where a `goto` may lead.
    #[must_use]
    pub fn may_go_to<N: Into<NodeId>>(mut self, targets: impl IntoIterator<Item = N>) -> Self {
        self.node.targets.extend(targets.into_iter().map(Into::into));
        self
    }

    /// Limits the time of one attempt.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.node.timeout_ms = Some(milliseconds(timeout));
        self
    }

    /// Sets the JSON Schema of the state as this node sees it.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.node.input_schema = Some(schema);
        self
    }

    /// Sets the JSON Schema of what this node returns.
    #[must_use]
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.node.output_schema = Some(schema);
        self
    }

    /// Sets the model, for this node and everything inside it.
    #[must_use]
    pub fn model(mut self, model: &str) -> Self {
        self.node.model = Some(model.to_owned());
        self
    }

    /// Sets the backend that an agent, a skill or a command runs on, in place of the run's.
    #[must_use]
    pub fn backend(mut self, backend: &str) -> Self {
        self.hooks.backend = Some(backend.to_owned());
        self
    }

    /// Gives the function that does the node's work this id, in place of one made from the node's
    /// place. Sessions keep the ids of functions, so a node that moves may have to keep its own.
    #[must_use]
    pub fn function_id(mut self, id: &str) -> Self {
        self.hooks.name = Some(id.to_owned());
        self
    }
}

/// What to do about a failure.
#[derive(Debug)]
pub enum Remedy<S> {
    /// Try again, after this long or after the usual wait.
    Retry(Option<Duration>),
    /// Go on with these changes as if nothing had failed.
    Skip(Update<S>),
    /// The graph fails.
    Abort,
    /// Go on at this node, which must be among the declared ones.
    Goto(NodeId),
}

impl<S> Remedy<S> {
    fn into_value(self, step: &StepId) -> Result<Value, StepError> {
        Ok(match self {
            Self::Retry(None) => json!({ "action": "retry" }),
            Self::Retry(Some(after)) => {
                json!({ "action": "retry", "delayMs": milliseconds(after) })
            }
            Self::Skip(update) => {
                json!({ "action": "skip", "stateUpdate": update.into_changes(step)? })
            }
            Self::Abort => json!({ "action": "abort" }),
            Self::Goto(node) => json!({ "action": "goto", "node": node }),
        })
    }
}

/// A text: a template in which `{key}`, `{item.id}` and `{outputs.node}` are filled from the
/// state, one that is taken as it is, or what a function writes.
pub struct Words<S> {
    pub(super) words: Spoken,
    of: PhantomData<fn() -> S>,
}

/// A text, whatever the state.
#[derive(Clone, Debug)]
pub(super) enum Spoken {
    Verbatim(String),
    Template(String),
    Call(Function),
}

impl<S> std::fmt::Debug for Words<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.words.fmt(f)
    }
}

impl<S> From<&str> for Words<S> {
    fn from(template: &str) -> Self {
        Self::from(template.to_owned())
    }
}

impl<S> From<String> for Words<S> {
    fn from(template: String) -> Self {
        Self { words: Spoken::Template(template), of: PhantomData }
    }
}

/// A text in which braces mean nothing.
pub fn verbatim<S>(text: &str) -> Words<S> {
    Words { words: Spoken::Verbatim(text.to_owned()), of: PhantomData }
}

/// A text that a function writes.
pub fn text<S: 'static, R: Outcome<String>>(
    write: impl Fn(&View<'_, S>) -> R + Send + Sync + 'static,
) -> Words<S> {
    let write = Function::Text(Arc::new(move |call| write(&View::new(call)).outcome()));
    Words { words: Spoken::Call(write), of: PhantomData }
}

/// Something that is true of the state or not.
pub struct When<S> {
    pub(super) test: Test,
    of: PhantomData<fn() -> S>,
}

/// A condition, whatever the state.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Data(Condition),
    Call(Function),
    Not(Box<Self>),
    Never,
}

impl<S> Clone for When<S> {
    fn clone(&self) -> Self {
        Self::of(self.test.clone())
    }
}

impl<S> std::fmt::Debug for When<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.test.fmt(f)
    }
}

impl<S> When<S> {
    pub(super) fn of(test: Test) -> Self {
        Self { test, of: PhantomData }
    }

    /// Never true: a loop with it runs until its limit.
    pub fn never() -> Self {
        Self::of(Test::Never)
    }
}

/// True when a function says so.
pub fn when<S: 'static, R: Outcome<bool>>(
    holds: impl Fn(&View<'_, S>) -> R + Send + Sync + 'static,
) -> When<S> {
    let holds = Function::Holds(Arc::new(move |call| holds(&View::new(call)).outcome()));
    When::of(Test::Call(holds))
}

/// True when the value under a key equals this one.
pub fn equals<S, K: KeyOf<S>>(key: K, value: K::Value) -> When<S>
where
    K::Value: Into<Value>,
{
    When::of(Test::Data(Condition::Equals { key: key.key(), value: value.into() }))
}

/// True when the output of a node contains this text.
pub fn says<S>(node: impl Into<NodeId>, text: &str) -> When<S> {
    When::of(Test::Data(Condition::Says { node: node.into(), text: text.to_owned() }))
}

/// True when the other is not.
pub fn not<S>(other: When<S>) -> When<S> {
    When::of(Test::Not(Box::new(other.test)))
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Changes as a function of the machine returns them.
pub(super) fn to_value(changes: Patch) -> Value {
    Value::Object(changes.into_iter().map(|(key, value)| (key.to_string(), value)).collect())
}

fn failure(value: &Value) -> StepError {
    serde_json::from_value(value.clone())
        .unwrap_or_else(|_| StepError::new(code::FUNCTION, value.to_string()))
}
