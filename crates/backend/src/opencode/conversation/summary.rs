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
        self.decoder.begin_turn(message_id());
        self.summary = Some(Summary::new(reply));
        let model = &self.model;
        let body = json!({ "providerID": model.provider, "modelID": model.name });
        self.errand(Errand::Summarise { body });
    }
}
