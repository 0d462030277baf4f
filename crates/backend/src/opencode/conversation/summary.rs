//! The summary under way.

use std::time::Duration;

use atomic_event::{StepError, Usage};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Talk;
use super::errands::Errand;
use super::turn::message_id;
use crate::BackendError;
use crate::opencode::misused;

/// A summary under way.
pub(super) struct Summary {
    reply: oneshot::Sender<Result<Option<Usage>, StepError>>,
    spent: Option<Usage>,
    result: Option<Result<(), StepError>>,
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
        let estimates = [sum.estimated_usd, usage.estimated_usd].into_iter().flatten();
        sum.estimated_usd = estimates.reduce(|one, other| one + other);
    }

    pub(super) fn is_made(&mut self, result: Result<(), BackendError>, settling: Duration) {
        self.result = Some(result.map_err(StepError::from));
        self.until = Some(Instant::now() + settling);
    }

    pub(super) fn is_done(&self) -> bool {
        self.result.is_some()
    }

    fn is_in_order(&self) -> bool {
        self.result.as_ref().is_none_or(Result::is_ok)
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    pub(super) fn fail(self, error: StepError) {
        let _ = self.reply.send(Err(error));
    }

    /// It is over. The program says that a summary is made even where it is not.
    fn finish(self, failure: Option<StepError>) {
        let made = self.result.unwrap_or(Ok(()));
        let made = made.and_then(|()| failure.map_or(Ok(self.spent), Err));
        let _ = self.reply.send(made);
    }
}

impl Talk {
    /// Lets the program summarise the conversation.
    pub(super) async fn compact(
        &mut self,
        reply: oneshot::Sender<Result<Option<Usage>, StepError>>,
    ) {
        if self.is_busy() {
            let _ = reply.send(Err(misused("a turn is under way; wait for its end").into()));
            return;
        }
        if let Err(error) = self.awake().await {
            let _ = reply.send(Err(error.into()));
            return;
        }
        self.forget_summary();
        let since = message_id();
        self.standing.unmade = Some(since.clone());
        self.decoder.begin_turn(since.clone());
        self.summary = Some(Summary::new(reply));
        let model = &self.model;
        let body = json!({ "providerID": model.provider, "modelID": model.name });
        self.errand(Errand::Summarise { since, body });
    }
    /// The summary is over.
    pub(super) fn summarised(&mut self, summary: Summary) {
        let failure = self.decoder.failure();
        if failure.is_none() && summary.is_in_order() {
            self.standing.unmade = None;
        }
        summary.finish(failure);
    }

    /// What was not made the program would make before it looks at the next prompt, and then not look
    /// at that.
    pub(super) fn forget_summary(&mut self) {
        if let Some(since) = self.standing.unmade.take() {
            self.errand(Errand::Forget { since });
        }
    }
}
