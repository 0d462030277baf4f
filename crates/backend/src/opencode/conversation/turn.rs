//! The turn under way, and the summary under way.

use std::collections::BTreeSet;
use std::time::Duration;

use atomic_event::{StepError, Usage};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::BackendError;
use crate::asking::Asking;
use crate::trouble::Trouble;

/// The turn under way.
#[derive(Default)]
pub(super) struct CurrentTurn {
    /// Those that are open.
    pub(super) questions: Vec<Asking>,
    /// Everything that was asked, so that nothing is asked twice.
    pub(super) asked: BTreeSet<String>,
    /// By when it has to end, when it was interrupted.
    pub(super) interrupted: Option<Instant>,
    /// What to report in place of the interruption.
    pub(super) failure: Option<StepError>,
    /// Why the program tries again, when it does.
    pub(super) trouble: Option<Trial>,
    /// The prompt, until anything has been heard since.
    pub(super) unheard: Option<Value>,
    /// When it is over, if nothing more is said.
    pub(super) settling: Option<Instant>,
}

/// The program tries again and again.
pub(super) struct Trial {
    /// For how long it may.
    pub(super) until: Instant,
    pub(super) trouble: Trouble,
}

impl CurrentTurn {
    pub(super) fn deadline(&self) -> Option<Instant> {
        let trial = self.trouble.as_ref().map(|trial| trial.until);
        [self.settling, self.interrupted.or(trial)].into_iter().flatten().min()
    }

    pub(super) fn knows(&self, request: &str) -> bool {
        self.asked.contains(request)
    }

    pub(super) fn ask(&mut self, asking: Asking) {
        self.asked.insert(asking.request.clone());
        self.questions.push(asking);
    }
}

/// All answers in their order, when all are there.
pub(super) fn answered(asking: &Asking) -> Option<Value> {
    Some(asking.answered()?.into_iter().map(|(_, answer)| json!(answer.chosen)).collect())
}

/// What is answered where nobody is.
pub(super) fn nobody_to_ask(asking: Asking) -> (String, Value) {
    let answer = "Nobody can be asked here. Decide yourself and say what you decided.";
    let answers = asking.questions.iter().map(|_| json!([answer])).collect();
    (asking.request, answers)
}

/// A summary under way.
pub(super) struct Summary {
    reply: oneshot::Sender<Result<Option<Usage>, StepError>>,
    spent: Option<Usage>,
    result: Option<Result<(), BackendError>>,
    /// When it is over, though the program may not have said what it has cost.
    pub(super) until: Option<Instant>,
}

impl Summary {
    pub(super) fn new(reply: oneshot::Sender<Result<Option<Usage>, StepError>>) -> Self {
        Self { reply, spent: None, result: None, until: None }
    }

    pub(super) fn add(&mut self, usage: &Usage) {
        let sum = self.spent.get_or_insert_default();
        sum.input_tokens = sum.input_tokens.saturating_add(usage.input_tokens);
        sum.output_tokens = sum.output_tokens.saturating_add(usage.output_tokens);
        let costs = [sum.cost_usd, usage.cost_usd].into_iter().flatten();
        sum.cost_usd = costs.reduce(|one, other| one + other);
    }

    pub(super) fn is_made(&mut self, result: Result<(), BackendError>, settling: Duration) {
        self.result = Some(result);
        self.until = Some(Instant::now() + settling);
    }

    pub(super) fn is_done(&self) -> bool {
        self.result.is_some()
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    pub(super) fn fail(mut self, error: BackendError) {
        self.result = Some(Err(error));
        self.finish();
    }

    pub(super) fn finish(self) {
        let made = self.result.unwrap_or(Ok(()));
        let _ = self.reply.send(made.map(|()| self.spent).map_err(StepError::from));
    }
}

/// A new id of a message, in the program's own form: the time, so that ids grow, and chance.
pub(super) fn message_id() -> String {
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    let time = (now << 12) & 0xffff_ffff_ffff;
    let chance = uuid::Uuid::new_v4().simple().to_string();
    format!("msg_{time:012x}{}", &chance[..14])
}
