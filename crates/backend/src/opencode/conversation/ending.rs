//! How a turn ends: by itself, because it is interrupted, or because the server is gone.

use std::sync::Arc;
use std::time::Duration;

use atomic_event::{StepError, Stop};
use tokio::time::Instant;

use super::errands::Errand;
use super::{ID, Talk};
use crate::BackendError;
use crate::opencode::misused;
use crate::outlet::told_end;

/// How long an interrupted turn may take to end by itself.
const INTERRUPTED: Duration = Duration::from_secs(2);

impl Talk {
    /// Interrupts the turn; it has a moment to end by itself.
    pub(super) fn interrupt(&mut self) {
        if let Some(summary) = self.summary.take() {
            summary.fail(misused("the summary was interrupted").into());
            self.standing.may_be_busy = true;
            self.stop_it();
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.interrupted.is_some() {
            return;
        }
        turn.interrupted = Some(Instant::now() + INTERRUPTED);
        turn.questions.clear();
        self.talker.presence.stops();
        self.stop_it();
    }

    /// Stops what is under way, because it has failed.
    pub(super) fn stop_because(&mut self, failure: StepError) {
        self.standing.trial = None;
        if let Some(turn) = &mut self.turn {
            turn.failure = Some(failure);
            self.interrupt();
        } else if let Some(summary) = self.summary.take() {
            summary.fail(failure);
            self.standing.may_be_busy = true;
            self.stop_it();
        }
    }

    /// Tells the program to stop, and ends what its shells are running.
    pub(super) fn stop_it(&self) {
        self.errand(Errand::Abort);
        self.talker.presence.begin_to_end_shells();
    }

    pub(super) fn time_up(&mut self) {
        let now = Instant::now();
        if let Some(summary) = self.summary.take_if(|summary| summary.is_due(now)) {
            self.summarised(summary);
        }
        if let Some(trial) = self.standing.trial.take_if(|trial| trial.until <= now) {
            self.stop_because(trial.trouble.into_error(ID));
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.settling.take_if(|until| *until <= now).is_some() {
            // It may have been the word about the turn before, which comes twice.
            self.errand(Errand::Look { prompt: self.decoder.prompt().to_owned() });
        } else if turn.interrupted.is_some_and(|until| until <= now) {
            self.give_up();
        }
    }

    /// The program does not stop.
    fn give_up(&mut self) {
        self.finish(Stop::Interrupted);
        if let Some((server, _)) = &self.server {
            let server = Arc::clone(server);
            tokio::spawn(async move { server.end_if_silent().await });
        }
    }

    /// A prompt was not taken. A server that cannot even be asked how it is, is none: it may have
    /// ended without our having noticed yet.
    pub(super) async fn not_sent(&mut self, error: BackendError) {
        if let (BackendError::Exited { .. }, Some((server, _))) = (&error, &self.server)
            && server.is_dead().await
        {
            server.end().await;
            return self.lost(error).await;
        }
        self.finish(Stop::Failed(error.into()));
    }

    /// Nothing of what the server may still say is for us.
    pub(super) fn leave_server(&mut self) {
        if let Some((server, _)) = self.server.take() {
            server.leave(&self.session);
        }
        (self.talker, self.news) = self.talker.renewed();
    }

    /// The server is gone. A prompt that it has done nothing for is sent again, once, to another.
    pub(super) async fn lost(&mut self, error: BackendError) {
        self.leave_server();
        // Whoever watches over its processes may be gone as well.
        self.talker.presence.end_shells().await;
        if let Some(summary) = self.summary.take() {
            summary.fail(error.clone().into());
        }
        let unheard = self.turn.as_mut().filter(|turn| turn.interrupted.is_none());
        let error = match unheard.and_then(|turn| turn.unheard.take()) {
            Some(body) => match self.awake().await {
                Ok(()) => return self.errand(Errand::Prompt { body, is_busy: true }),
                Err(error) => error,
            },
            None => error,
        };
        self.finish(Stop::Failed(error.into()));
    }

    /// The turn is over. Its end is the last event.
    pub(super) fn finish(&mut self, stop: Stop) {
        let Some(mut turn) = self.turn.take() else { return };
        self.standing.trial = None;
        // What was stopped may not have ended yet, and must not be answered with what comes next.
        self.standing.may_be_busy |= turn.interrupted.is_some();
        let stop = told_end(stop, turn.failure.take(), turn.interrupted.is_some());
        if let Some(outlet) = &mut self.outlet {
            outlet.end(stop);
        }
    }

    /// Leaves the session. When it returns, nothing is left of the turn that was under way.
    pub(super) async fn end(mut self, rests: bool) {
        self.talker.presence.leaves();
        let was_busy =
            self.turn.take().is_some() || self.summary.is_some() || self.standing.may_be_busy;
        if let Some((server, errands)) = self.server.take() {
            if was_busy {
                self.talker.presence.stops();
                // What runs is ended at once, also where the program takes its time to stop.
                tokio::join!(
                    errands.abort_and_wait(INTERRUPTED),
                    self.talker.presence.end_shells()
                );
            }
            if !rests {
                self.talker.presence.end_shells().await;
            }
            server.leave(&self.session);
        }
        if let Some(outlet) = self.outlet.take() {
            outlet.close(Stop::Interrupted);
        }
    }
}
