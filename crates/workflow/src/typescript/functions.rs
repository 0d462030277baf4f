//! The functions of a file, by what the engine uses them for.

use std::sync::Arc;

use atomic_event::{Patch, StepError, StepId, StepResult};
use atomic_graph::{Goto, NodeId, Signal, State, code};
use atomic_typescript::{Arg, Trouble, TroubleKind, Worker};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::authored::shown;
use super::work;
use crate::descriptor::{FunctionTable, Role, Wanted};
use crate::{Function, Host, WorkCall};

/// Finds the functions of a file.
pub(super) fn table(worker: Worker) -> Arc<FunctionTable> {
    Arc::new(move |wanted: &Wanted<'_>| {
        Some(function(&worker, wanted.id.parse().ok()?, wanted.role))
    })
}

fn function(worker: &Worker, id: u32, role: Role) -> Function {
    let worker = worker.clone();
    match role {
        Role::Execute => {
            Function::work(move |call, host| perform(worker.clone(), id, (call, host), changes))
        }
        Role::Custom => {
            Function::work(move |call, host| perform(worker.clone(), id, (call, host), result))
        }
        Role::Text => Function::Text(Arc::new(move |call| {
            let said = worker.call(id, vec![state(call.state)]).map_err(failure_at(call.step))?;
            Ok(text(said))
        })),
        Role::Condition => Function::Holds(Arc::new(move |call| {
            let said = worker.call(id, vec![state(call.state)]).map_err(failure_at(call.step))?;
            Ok(is_true(&said))
        })),
        Role::Reducer => Function::value(move |call, values| {
            let args = values.iter().cloned().map(Arg::Value).collect();
            worker.call(id, args).map_err(failure_at(call.step))
        }),
        Role::Map
        | Role::Input
        | Role::Output
        | Role::Merge
        | Role::RetryOn
        | Role::OnError
        | Role::Select => Function::value(move |call, values| {
            let args = values.iter().cloned().map(Arg::Value).chain([state(call.state)]);
            let mut returned = worker.call(id, args.collect()).map_err(failure_at(call.step))?;
            // The output that a mapper was given, or the state of an inner graph.
            let is_given = |node: &str, value: &Value| {
                let is_own = node == call.step.node() && role == Role::Map;
                values.iter().any(|given| {
                    let outputs = given.get("outputs").and_then(|outputs| outputs.get(node));
                    outputs == Some(value) || is_own && given.as_ref() == value
                })
            };
            for update in updates(role, &mut returned) {
                refuse_outputs(update, call.state, is_given).map_err(problem_at(call.step))?;
                if role == Role::Input {
                    // The whole of what an inner graph begins with.
                    update.as_object_mut().and_then(|fields| fields.remove("outputs"));
                } else {
                    *update = own_changes(update.take(), call.state);
                }
            }
            Ok(returned)
        }),
    }
}

/// The parts of a returned value that are keys of a state.
fn updates(role: Role, returned: &mut Value) -> Vec<&mut Value> {
    /// What an `onError` may call its changes.
    const UPDATES: [&str; 3] = ["stateUpdate", "fallbackState", "fallbackUpdate"];
    match role {
        Role::Map | Role::Input | Role::Output | Role::Merge => vec![returned],
        Role::OnError => {
            let fields = returned.as_object_mut().into_iter().flatten();
            fields.filter(|(key, _)| UPDATES.contains(&key.as_str())).map(|(_, v)| v).collect()
        }
        Role::RetryOn
        | Role::Select
        | Role::Reducer
        | Role::Execute
        | Role::Custom
        | Role::Text
        | Role::Condition => vec![],
    }
}

/// The state as a function is given it.
pub(super) fn state(state: &State) -> Arg {
    let (keys, outputs) = state.shared();
    let values = keys.into_iter().map(|(key, value)| (key.to_string(), Arg::Value(value)));
    let outputs = outputs.into_iter().map(|(node, value)| (node.to_string(), value)).collect();
    Arg::Object(values.chain([("outputs".to_owned(), Arg::Late(Arc::new(outputs)))]).collect())
}

/// What a step knows of itself.
fn context(call: &WorkCall) -> Arg {
    Arg::Context(Arc::new(json!({
        "nodeId": call.step.node(),
        "step": call.step.as_str(),
        "attempt": call.attempt,
        "workspace": call.workspace,
    })))
}

/// Does the work of a node; `read` makes the result of what it returns.
async fn perform(
    worker: Worker,
    id: u32,
    (call, host): (WorkCall, Arc<dyn Host>),
    read: fn(Value) -> Result<StepResult, String>,
) -> Result<StepResult, StepError> {
    let args = vec![state(&call.state), context(&call)];
    let returned = work::begin(&worker, id, args, host).await.map_err(failure_at(&call.step))?;
    let update = returned.get("stateUpdate").unwrap_or(&returned);
    let output = own_output(update, &call.state, call.step.node());
    let output = output.map_err(problem_at(&call.step))?;
    let returned = match returned {
        Value::Object(mut fields) => {
            if let Some(update) = fields.remove("stateUpdate") {
                fields.insert("stateUpdate".to_owned(), own_changes(update, &call.state));
            }
            own_changes(Value::Object(fields), &call.state)
        }
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => other,
    };
    let result = read(returned).map_err(problem_at(&call.step))?;
    Ok(match output {
        Some(output) => StepResult { output, ..result },
        None => result,
    })
}

/// The output that a node gives itself, as `outputs: { ...state.outputs, [id]: output }`. Outputs of
/// other nodes cannot be changed.
fn own_output(update: &Value, state: &State, node: &str) -> Result<Option<Value>, String> {
    let Some(given) = update.get("outputs").and_then(|outputs| outputs.get(node)) else {
        return refuse_outputs(update, state, |_, _| false).map(|()| None);
    };
    refuse_outputs(update, state, |other, _| other == node)?;
    // `{...state, x}` hands back what the node returned the last time.
    let is_whole = state.shared().0.keys().all(|key| update.get(key.as_str()).is_some());
    let is_handed_back = is_whole && state.output(node).is_some_and(|last| last.as_ref() == given);
    Ok((!is_handed_back).then(|| given.clone()))
}

/// Refuses outputs that differ from those in the state, except where they are known otherwise.
fn refuse_outputs(
    update: &Value,
    state: &State,
    is_given: impl Fn(&str, &Value) -> bool,
) -> Result<(), String> {
    let outputs = match update.get("outputs") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(outputs)) => outputs,
        Some(other) => {
            return Err(format!("`outputs` belongs to the engine, but it is set to {other}"));
        }
    };
    let is_known = |node: &str, value: &Value| {
        is_given(node, value) || state.output(node).is_some_and(|there| there.as_ref() == value)
    };
    match outputs.iter().find(|(node, value)| !is_known(node, value)) {
        None => Ok(()),
        Some((node, _)) => Err(format!(
            "`outputs.{node}` cannot be changed here: `outputs` has what each node returned; return \
             the value under another key"
        )),
    }
}

/// What a function has changed. `{...state, x}` hands back everything else, the outputs of all
/// nodes among it, and an output of which would double with every node.
fn own_changes(returned: Value, state: &State) -> Value {
    let Value::Object(mut fields) = returned else { return returned };
    let had_outputs = fields.remove("outputs").is_some();
    if had_outputs && state.is_covered(|key| fields.contains_key(key)) {
        fields.retain(|key, value| !state.is_handed_back(key, value));
    }
    Value::Object(fields)
}

/// What a tool has returned: changes to the state, which are its output, too.
#[expect(clippy::unnecessary_wraps, reason = "one of two readers")]
fn changes(returned: Value) -> Result<StepResult, String> {
    let fields = returned.as_object().into_iter().flatten();
    let patch = fields.map(|(key, value)| (key.as_str().into(), value.clone())).collect();
    Ok(StepResult { patch, output: returned, ..StepResult::default() })
}

/// What a plain node has returned: `{stateUpdate?, goto?, signals?}`.
fn result(returned: Value) -> Result<StepResult, String> {
    let Value::Object(mut fields) = returned else { return Ok(StepResult::default()) };
    let update = match fields.remove("stateUpdate") {
        None | Some(Value::Null) => serde_json::Map::new(),
        Some(Value::Object(update)) => update,
        Some(other) => return Err(format!("`stateUpdate` must be an object, but it is {other}")),
    };
    let goto = match fields.remove("goto") {
        None | Some(Value::Null) => None,
        Some(Value::String(node)) => Some(Goto::One(NodeId::from(node))),
        Some(several) => Some(Goto::Many(
            Vec::<NodeId>::deserialize(&several)
                .map_err(|_| format!("`goto` must be the id of a node, but it is {several}"))?,
        )),
    };
    let signals = match fields.remove("signals") {
        None | Some(Value::Null) => vec![],
        Some(signals) => Vec::<Signal>::deserialize(&signals)
            .map_err(|_| format!("`signals` must be a list of {{ type }}, but it is {signals}"))?,
    };
    let output = Value::Object(update.clone());
    let patch = update.into_iter().map(|(key, value)| (key.into(), value)).collect();
    Ok(StepResult { patch, output, goto, signals })
}

/// What is wrong with a value that a function returned, as a failure of the step.
fn problem_at(step: &StepId) -> impl Fn(String) -> StepError {
    move |problem| StepError::new(code::FUNCTION, format!("node `{}`: {problem}", step.node()))
}

/// What went wrong in a file, as a failure of the step.
fn failure_at(step: &StepId) -> impl Fn(Trouble) -> StepError {
    move |trouble| {
        let mut error = failure(trouble);
        error.message = format!("node `{}`: {}", step.node(), error.message);
        error
    }
}

/// The same where no node is to be named.
#[expect(clippy::needless_pass_by_value, reason = "it is mapped over errors")]
pub(super) fn failure(trouble: Trouble) -> StepError {
    let place = trouble.at().map(|place| {
        format!(" ({}:{}:{})", shown(&place.file).display(), place.line, place.column)
    });
    let message = format!("{}{}", trouble.headline(), place.unwrap_or_default());
    // Some codes say what the run has come to, and a file cannot know that.
    let own = |code: &str| !code.is_empty() && !code::is_known(code);
    let code = trouble.code.clone().filter(|code| own(code));
    let mut error = StepError::new(code.as_deref().unwrap_or(code::FUNCTION), message);
    if trouble.kind == TroubleKind::Thrown {
        error.thrown = Some(trouble.message.as_str().into());
    }
    let detail = trouble.to_string();
    if trouble.frames.is_empty() && trouble.cause.is_none() {
        error
    } else {
        error.with_detail(detail)
    }
}

/// A text, whatever a function made of it.
fn text(said: Value) -> String {
    match said {
        Value::String(text) => text,
        Value::Null => String::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}

/// Whether a value counts as true where the file was written.
fn is_true(said: &Value) -> bool {
    match said {
        Value::Null => false,
        Value::Bool(said) => *said,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Makes the state of a run out of what `createState` returns.
pub(super) fn created(
    worker: &Worker,
    id: u32,
    launch: &crate::Launch,
    defaults: &Patch,
) -> Result<Patch, StepError> {
    let given = defaults.get("maxIterations").cloned();
    let limit = launch.limits.iterations.map(Value::from).or(given);
    let limit = limit.unwrap_or(crate::DEFAULT_ITERATIONS.into());
    let params = json!({
        "prompt": launch.prompt,
        "sessionId": launch.session,
        "sessionDir": launch.session_dir,
        "maxIterations": limit,
    });
    let made = worker.call(id, vec![Arg::Value(Arc::new(params))]).map_err(failure)?;
    let Value::Object(made) = made else {
        let message = format!("createState must return an object, but it returned {made}");
        return Err(StepError::new(code::FUNCTION, message));
    };
    if made.get("outputs").is_some_and(|outputs| *outputs != json!({}) && !outputs.is_null()) {
        let message = "createState must leave `outputs` empty: it has what each node returned; use another key";
        return Err(StepError::new(code::FUNCTION, message));
    }
    let mut state = defaults.clone();
    // The outputs of nodes are the engine's.
    let made = made.into_iter().filter(|(key, _)| key != "outputs");
    state.extend(made.map(|(key, value)| (key.into(), value)));
    for (key, value) in [
        ("prompt", Value::from(launch.prompt.clone())),
        ("executionId", Value::from(launch.session.clone())),
        ("maxIterations", limit),
        (crate::WORKERS, launch.workers().into()),
    ] {
        state.entry(key.into()).or_insert(value);
    }
    Ok(state)
}
