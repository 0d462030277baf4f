//! The turn under way.

use atomic_event::StepError;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::Trouble;
use crate::asking::Asking;

/// The turn under way.
#[derive(Default)]
pub(super) struct CurrentTurn {
    /// What was sent, until the program has said anything since.
    pub(super) unheard: Option<String>,
    /// What is asked, and the input of the call.
    pub(super) question: Option<(Asking, Value)>,
    /// By when it has to end, when it was interrupted.
    pub(super) interrupted: Option<Instant>,
    /// What to report in place of the interruption.
    pub(super) failure: Option<StepError>,
    /// Why the program tries again, when it does.
    pub(super) trouble: Option<Trial>,
}

/// The program tries again and again.
pub(super) struct Trial {
    /// For how long it may.
    pub(super) until: Instant,
    pub(super) trouble: Trouble,
    /// Whether an answer has begun to come since.
    pub(super) is_streaming: bool,
}

impl CurrentTurn {
    pub(super) fn deadline(&self) -> Option<Instant> {
        // An answer that comes is not cut short; if it breaks off, the next try is one too many.
        let trial = self.trouble.as_ref().filter(|trial| !trial.is_streaming);
        self.interrupted.or(trial.map(|trial| trial.until))
    }
}

/// The call's input with the answers in it, when all are there.
pub(super) fn answered(asking: &Asking, input: &Value) -> Option<Value> {
    let answers = asking.answered()?.into_iter();
    let answers = answers.map(|(asked, answer)| (asked.question.clone(), json!(answer.text())));
    let mut input = input.clone();
    input["answers"] = Value::Object(answers.collect::<Map<_, _>>());
    Some(json!({ "behavior": "allow", "updatedInput": input }))
}
