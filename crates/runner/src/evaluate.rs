//! Functions of the workflow, evaluated before anything that rests on them is on disk.

use std::sync::Arc;

use atomic_event::{Event, Moment, NodeId, StepError, StepId, StepResult};
use atomic_graph::{Condition, FunctionId, State, code};
use atomic_workflow::{Action, Call, Function, LogLevel, ScriptCall, Text, render};
use serde_json::Value;

use crate::run::Run;

impl Run {
    fn call<'a>(&'a self, state: &'a State, step: &'a StepId) -> Call<'a> {
        Call { state, step, paths: &self.paths }
    }

    /// The result of a node that is a function.
    pub(crate) fn evaluate(
        &self,
        step: &StepId,
        call: &FunctionId,
    ) -> Result<StepResult, StepError> {
        let state = self.machine.view(step).unwrap_or_default();
        match self.workflow.functions.find(call) {
            Some(Function::Step(function)) => function(&self.call(&state, step)),
            _ => Err(missing("step", call)),
        }
    }

    /// A value the machine asked for.
    pub(crate) fn value(
        &self,
        step: &StepId,
        call: &FunctionId,
        args: &[Arc<Value>],
    ) -> Result<Value, StepError> {
        let state = self.machine.view(step).unwrap_or_default();
        match self.workflow.functions.find(call) {
            Some(Function::Value(function)) => function(&self.call(&state, step), args),
            _ => Err(missing("value", call)),
        }
    }

    /// What a script calls next, if the function is one's, and what it has to say besides.
    pub(crate) fn advance(
        &self,
        step: &StepId,
        call: &FunctionId,
        args: &[Arc<Value>],
        at: Moment,
    ) -> Option<Result<(Value, Vec<Event>), StepError>> {
        let Some(Function::Advance(advance)) = self.workflow.functions.find(call) else {
            return None;
        };
        let state = self.machine.view(step).unwrap_or_default();
        let now = at.0.as_millisecond();
        let advanced = advance.advance(&ScriptCall {
            step,
            state: &state,
            session: self.created.session.as_str(),
            root: self.created.root().as_str(),
            paths: &self.paths,
            history: self.machine.script_history(step).unwrap_or_default(),
            delivery: args.first(),
            now,
        });
        Some(advanced.map(|mut value| {
            let mut said = vec![];
            if let Some(fields) = value.as_object_mut() {
                fields.insert("at".to_owned(), now.into());
                if let Some(logs) = fields.shift_remove("logs") {
                    said =
                        logs.as_array().into_iter().flatten().map(|log| noted(step, log)).collect();
                }
            }
            (value, said)
        }))
    }

    /// Which of these conditions is the first that holds; one that cannot be evaluated settles it.
    pub(crate) fn choose(&self, step: StepId, options: &[Condition], to: &[NodeId]) -> Event {
        let state = self.machine.view(&step).unwrap_or_default();
        for (number, condition) in (0u32..).zip(options) {
            match self.holds(&step, &state, condition) {
                Ok(false) => {}
                Ok(true) => {
                    let to = to.get(number as usize).cloned();
                    return Event::BranchChosen { step, chosen: Some(number), to };
                }
                Err(error) => {
                    let (call, value, error) = (String::new(), Value::Null, Some(error));
                    return Event::FunctionEvaluated { step, call, value, error };
                }
            }
        }
        Event::BranchChosen { step, chosen: None, to: None }
    }

    fn holds(
        &self,
        step: &StepId,
        state: &State,
        condition: &Condition,
    ) -> Result<bool, StepError> {
        Ok(match condition {
            Condition::Otherwise => true,
            Condition::Equals { key, value } => state.equals(key.as_str(), value),
            Condition::Says { node, text } => {
                match state.output(node.as_str()).map(AsRef::as_ref) {
                    Some(Value::String(said)) => said.contains(text.as_str()),
                    Some(other) => other.to_string().contains(text.as_str()),
                    None => false,
                }
            }
            Condition::Not(other) => !self.holds(step, state, other)?,
            Condition::Call(call) => match self.workflow.functions.find(call) {
                Some(Function::Holds(function)) => function(&self.call(state, step))?,
                _ => return Err(missing("condition", call)),
            },
        })
    }

    pub(crate) fn text(
        &self,
        step: &StepId,
        state: &State,
        text: &Text,
    ) -> Result<String, StepError> {
        match text {
            Text::Template(template) => render(template, state)
                .map_err(|error| StepError::new("template", error.to_string())),
            Text::Verbatim(text) => Ok(text.clone()),
            Text::Call(call) => match self.workflow.functions.find(call) {
                Some(Function::Text(function)) => function(&self.call(state, step)),
                _ => Err(missing("text", call)),
            },
        }
    }

    /// What a step returned, with the changes that its mapper makes of it.
    pub(crate) fn mapped(
        &self,
        step: StepId,
        attempt: u32,
        mut result: StepResult,
        commit: Option<String>,
    ) -> Event {
        let map = match self.action(&step) {
            Ok(Action::Agent(agent)) => agent.map,
            Ok(Action::Shell(shell)) => shell.map,
            Ok(Action::Entry(entry)) => entry.map,
            _ => None,
        };
        if let Some(call) = map {
            let args = [Arc::new(result.output.clone())];
            let changes = self.value(&step, &call, &args).and_then(|value| match value {
                Value::Object(fields) => Ok(fields),
                Value::Null => Ok(serde_json::Map::new()),
                other
                @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                    let message = format!(
                        "node `{}`: `outputMapper` returned {other}, not an object of changes",
                        step.node()
                    );
                    Err(StepError::new(code::FUNCTION, message))
                }
            });
            match changes {
                Ok(fields) => {
                    result.patch.extend(fields.into_iter().map(|(k, v)| (k.into(), v)));
                }
                Err(error) => return Event::StepFailed { step, attempt, error },
            }
        }
        Event::StepFinished { step, attempt, result, commit }
    }
}

/// What a script has said, as a fact.
fn noted(step: &StepId, log: &Value) -> Event {
    let text = log.as_str().or_else(|| log.get("text")?.as_str()).unwrap_or_default();
    let level = LogLevel::called(log.get("level").and_then(Value::as_str).unwrap_or_default());
    let level = if level >= LogLevel::Warn { format!("{}: ", level.name()) } else { String::new() };
    Event::Noted { text: format!("{step}: {level}{text}") }
}

fn missing(kind: &str, call: &FunctionId) -> StepError {
    StepError::new(code::FUNCTION, format!("there is no {kind} function `{call}`"))
}
