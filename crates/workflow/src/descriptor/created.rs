//! Workflows inside others whose state is made by a function of their author: it is called when
//! they begin, with what they begin with.

use std::collections::BTreeMap;
use std::sync::Arc;

use atomic_event::StepError;
use atomic_graph::{FunctionId, NodeId, State};
use serde_json::{Map, Value};

use super::reader::Reader;
use super::shelf::is_of_the_run;
use crate::{Advance, Function, Launch, MakeFn, Paths, ScriptCall};

impl Reader<'_, '_, '_> {
    /// Lets a function make the rest of what a sub-graph begins with: it is given what `input`
    /// makes, or the state around it.
    pub(super) fn creating(
        &mut self,
        node: &NodeId,
        make: Arc<MakeFn>,
        input: Option<&FunctionId>,
    ) -> FunctionId {
        let mapper = input.and_then(|id| self.functions.find(id).cloned());
        let way = self.path.iter().chain([node]).map(NodeId::as_str);
        let word = format!("create-state {}", way.collect::<Vec<_>>().join("/"));
        let function = Function::value(move |call, values| {
            let given = match &mapper {
                Some(Function::Value(mapper)) => mapper(call, values)?,
                _ => Value::Object(around(call.state)),
            };
            let Value::Object(mut given) = given else { return Ok(given) };
            fill(&mut given, make.as_ref(), call.paths, call.state)?;
            Ok(Value::Object(given))
        });
        self.own_function(&word, function)
    }
}

/// The keys of a state, without what its nodes have returned.
fn around(state: &State) -> Map<String, Value> {
    let (keys, _) = state.shared();
    keys.into_iter().map(|(key, value)| (key.to_string(), Value::clone(&value))).collect()
}

/// Adds what the function makes under keys that have no value yet.
fn fill(
    given: &mut Map<String, Value>,
    make: &MakeFn,
    paths: &Paths,
    state: &State,
) -> Result<(), StepError> {
    let session_dir = paths.progress.parent().map(ToOwned::to_owned).unwrap_or_default();
    let session = session_dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let prompt = given.get("prompt").cloned();
    let prompt = prompt.or_else(|| state.get("prompt").map(|prompt| Value::clone(prompt)));
    let launch = Launch {
        prompt: prompt.and_then(|prompt| prompt.as_str().map(str::to_owned)).unwrap_or_default(),
        session: session.unwrap_or_default(),
        session_dir,
        ..Launch::default()
    };
    let made = make(&launch)?.into_iter().filter(|(key, _)| !is_of_the_run(key.as_str()));
    for (key, value) in made {
        given.entry(key.to_string()).or_insert(value);
    }
    Ok(())
}

/// A script that calls such workflows.
pub(super) struct Creating {
    pub(super) script: Arc<dyn Advance>,
    pub(super) makers: BTreeMap<String, Arc<MakeFn>>,
}

impl Advance for Creating {
    fn check(&self, call: &ScriptCall<'_>) -> Result<(), StepError> {
        self.script.check(call)
    }

    fn advance(&self, call: &ScriptCall<'_>) -> Result<Value, StepError> {
        let mut said = self.script.advance(call)?;
        let calls = said.get_mut("calls").and_then(Value::as_array_mut);
        for made in calls.into_iter().flatten() {
            let body = made.get("body").and_then(Value::as_str).unwrap_or_default();
            if let Some(make) = self.makers.get(body)
                && let Some(Value::Object(input)) = made.get_mut("input")
            {
                fill(input, make.as_ref(), call.paths, call.state)?;
            }
        }
        Ok(said)
    }
}
