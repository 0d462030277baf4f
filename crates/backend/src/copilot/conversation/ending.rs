//! How a turn ends: by itself, because it is interrupted, or because the program is gone.

use std::time::Duration;

use atomic_event::Stop;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{Summary, Talk};
use crate::BackendError;
use crate::copilot::server::Server;
use crate::copilot::{ID, misused, rpc};
use crate::outlet::told_end;

/// How long an interrupted turn may take to end by itself.
pub(super) const INTERRUPTED: Duration = Duration::from_secs(2);

impl Talk {
    /// Interrupts the turn; it has a moment to end by itself.
    pub(super) fn interrupt(&mut self) {
        self.give_up_summary(misused("the summary was interrupted").into());
        let Some(turn) = &mut self.turn else { return };
        if turn.interrupted.is_some() {
            return;
        }
        turn.interrupted = Some(Instant::now() + INTERRUPTED);
        turn.questions.clear();
        self.talker.presence.stops();
        self.stop_it();
    }

    /// Tells the program to stop, and then ends what its shells are running. A shell that ends before
    /// the program has stopped is a result of a tool, with which the program asks the model again.
    pub(super) fn stop_it(&self) {
        let params = json!({ "sessionId": self.session });
        let stopping =
            self.server.clone().map(|server| (server.rpc.begin("session.abort", &params), server));
        self.talker.presence.end_shells_after(async move {
            if let Some((call, lease)) = stopping {
                let _ = timeout(INTERRUPTED, call.answer()).await;
                drop(lease);
            }
        });
    }

    pub(super) async fn time_up(&mut self) {
        let now = Instant::now();
        if self.summary.as_ref().and_then(Summary::deadline).is_some_and(|until| until <= now) {
            return self.summary_time_up().await;
        }
        let Some(turn) = &mut self.turn else { return };
        if turn.interrupted.is_some_and(|until| until <= now) {
            self.give_up().await;
        } else if turn.deadline().is_some_and(|until| until <= now)
            && let Some((_, trouble)) = turn.trouble.take()
        {
            turn.failure = Some(trouble.into_error(ID));
            self.interrupt();
        }
    }

    /// The program does not stop. The session is left, and continued when it is needed; if the
    /// program does not answer at all, it is ended, and others on it are no worse off than they were.
    pub(super) async fn give_up(&mut self) {
        self.finish(Stop::Interrupted);
        let Some(server) = self.server.take() else { return };
        self.part(&server, true).await;
    }

    /// Leaves the session. A program that neither stops a turn nor answers this is ended.
    async fn part(&self, server: &Server, has_not_stopped: bool) {
        let left = json!({ "sessionId": self.session });
        let left = server.rpc.call("session.destroy", &left, Some(INTERRUPTED)).await;
        server.leave(&self.session);
        if has_not_stopped && left.is_err() {
            server.is_lost(rpc::exited("it did not listen any more"));
            server.end().await;
        }
    }

    /// Nothing of what the program may still say is for us.
    pub(super) fn leave_server(&mut self) {
        if let Some(server) = self.server.take() {
            server.leave(&self.session);
        }
        (self.talker, self.news) = self.talker.renewed();
    }

    /// The program is gone. A prompt that it has done nothing for is sent again, once, to another.
    pub(super) async fn lost(&mut self, error: BackendError) {
        self.leave_server();
        // Whoever watches over its processes may be gone as well.
        self.talker.presence.end_shells().await;
        if let Some(summary) = self.summary.take() {
            let _ = summary.reply.send(Err(error.clone().into()));
        }
        let is_exit = matches!(error, BackendError::Exited { .. });
        let unheard = self.turn.as_mut().filter(|turn| turn.interrupted.is_none() && is_exit);
        let error = match unheard.and_then(|turn| turn.unheard.take()) {
            Some(prompt) => match self.awake().await {
                Ok(()) => return self.prompt(&prompt),
                Err(error) => error,
            },
            None => error,
        };
        self.finish(Stop::Failed(error.into()));
    }

    /// The turn is over. Its end is the last event.
    pub(super) fn finish(&mut self, stop: Stop) {
        let Some(mut turn) = self.turn.take() else { return };
        // What it has left running may wake the agent when nobody listens.
        self.talker.presence.stops();
        let stop = told_end(stop, turn.failure.take(), turn.interrupted.is_some());
        if let Some(outlet) = &mut self.outlet {
            outlet.end(stop);
        }
    }

    /// Leaves the session. When it returns, nothing is left of the turn that was under way.
    pub(super) async fn end(mut self, rests: bool) {
        let presence = &self.talker.presence;
        presence.leaves();
        presence.stops();
        let was_busy = self.turn.take().is_some() || self.summary.is_some();
        if let Some(server) = self.server.take() {
            let params = json!({ "sessionId": self.session });
            let mut has_not_stopped = false;
            if was_busy {
                let abort = server.rpc.call("session.abort", &params, Some(INTERRUPTED));
                has_not_stopped = abort.await.is_err();
                if !has_not_stopped {
                    presence.end_shells().await;
                }
            }
            // First the session: the end of something that runs would wake the agent.
            self.part(&server, has_not_stopped).await;
            if !rests || has_not_stopped {
                presence.end_shells().await;
            }
        }
        if let Some(outlet) = self.outlet.take() {
            outlet.close(Stop::Interrupted);
        }
    }
}
