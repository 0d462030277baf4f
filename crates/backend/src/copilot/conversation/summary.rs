//! A summary of the conversation, made by the program.

use atomic_event::{BackendId, StepError, Usage};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Talk;
use super::ending::INTERRUPTED;
use crate::BackendError;
use crate::copilot::talker::News;
use crate::copilot::{ID, misused};
use crate::trouble::Trouble;

/// A summary that is wanted.
pub(super) struct Summary {
    pub(super) reply: oneshot::Sender<Result<Option<Usage>, StepError>>,
    pub(super) spent: Option<Usage>,
    /// One that was given up may come to its end later.
    pub(super) number: u64,
    /// Why the model did not answer last, and for how long the program may try again.
    pub(super) trouble: Option<(Instant, Trouble)>,
    /// By when it has to end, and what to report, when it is not wanted any more.
    pub(super) given_up: Option<(Instant, StepError)>,
}

impl Summary {
    /// By when something has to be done about it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let given_up = self.given_up.as_ref().map(|(until, _)| *until);
        given_up.or(self.trouble.as_ref().map(|(until, _)| *until))
    }

    /// The program has made it, or has not.
    pub(super) fn end(self, made: Result<(), BackendError>) {
        let made = made.map_err(|error| match (error, self.given_up, self.trouble) {
            (_, Some((_, why)), _) => why,
            // What the program says does not tell one trouble from another.
            (BackendError::Rejected { .. }, None, Some((_, why))) => why.into_error(ID),
            (error, None, _) => error.into(),
        });
        let _ = self.reply.send(made.map(|()| self.spent));
    }
}

impl Talk {
    /// Lets the program summarise the conversation.
    pub(super) async fn compact(
        &mut self,
        reply: oneshot::Sender<Result<Option<Usage>, StepError>>,
    ) {
        let ready = if self.is_busy() {
            Err(misused("a turn is under way; wait for its end"))
        } else {
            self.awake().await
        };
        if let Err(error) = ready {
            let _ = reply.send(Err(error.into()));
            return;
        }
        self.decoder.begin_turn();
        self.summaries += 1;
        let number = self.summaries;
        self.summary = Some(Summary { reply, spent: None, number, trouble: None, given_up: None });
        let params = json!({ "sessionId": self.session });
        self.call("session.history.compact", &params, move |talker, made| {
            let made = made.and_then(|made| match made.get("success").and_then(Value::as_bool) {
                Some(false) => Err(BackendError::Rejected {
                    backend: BackendId::from(ID),
                    message: "the conversation could not be summarised".to_owned(),
                }),
                _ => Ok(()),
            });
            talker.tell(News::Summarised { number, made });
        });
    }

    /// Lets the program make no summary; it has a moment to say that it does not.
    pub(super) fn give_up_summary(&mut self, why: StepError) {
        let Some(summary) = self.summary.as_mut().filter(|it| it.given_up.is_none()) else {
            return;
        };
        summary.given_up = Some((Instant::now() + INTERRUPTED, why));
        let params = json!({ "sessionId": self.session });
        self.call("session.history.abortManualCompaction", &params, |_, _| {});
    }

    pub(super) async fn summary_time_up(&mut self) {
        let Some(mut summary) = self.summary.take() else { return };
        match (summary.given_up.take(), summary.trouble.take()) {
            (Some((_, why)), _) => {
                let _ = summary.reply.send(Err(why));
                self.give_up().await;
            }
            (None, trouble) => {
                self.summary = Some(summary);
                if let Some((_, trouble)) = trouble {
                    self.give_up_summary(trouble.into_error(ID));
                }
            }
        }
    }
}
