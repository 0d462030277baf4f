//! Stopping a run before its end: paused by a person, or because nothing can go on without answers.

use std::time::Duration;

use atomic_event::{Event, Question, QuestionId, RunStopped};

use crate::perform::{Message, Order};
use crate::run::{Outcome, Run, RunError};

impl Run {
    /// Ends everything that was started and waits until it is gone. Returns what was still said.
    pub(crate) async fn stop_all(&mut self) -> Vec<Message> {
        for live in self.crew.live.values() {
            let _ = live.stop.send(Order::Pause);
        }
        let mut last_words = vec![];
        let patience = tokio::time::sleep(Duration::from_secs(2));
        tokio::pin!(patience);
        loop {
            tokio::select! {
                joined = self.crew.tasks.join_next() => if joined.is_none() { break },
                message = self.crew.messages.1.recv() => last_words.extend(message.map(unconfirmed)),
                () = &mut patience => break,
            }
        }
        self.crew.tasks.shutdown().await;
        while let Ok(message) = self.crew.messages.1.try_recv() {
            last_words.push(unconfirmed(message));
        }
        self.crew.live.clear();
        last_words
    }

    /// Stops in good order: what was finished in the last moment is recorded, but nothing that
    /// follows from it is begun.
    async fn wind_down(&mut self) -> Result<(), RunError> {
        let mut events = vec![];
        for message in self.stop_all().await {
            match message {
                Message::Happened(_) | Message::Ended { .. } | Message::Read { .. } => {
                    self.take(message, &mut events, &mut vec![]);
                }
                Message::Typed(_)
                | Message::Asked { .. }
                | Message::Confirm(..)
                | Message::Refused { .. }
                | Message::ReadFirst { .. } => {}
            }
        }
        self.record_without_consequences(events)
    }

    pub(crate) async fn pause(&mut self, reason: String) -> Result<Outcome, RunError> {
        self.wind_down().await?;
        self.project_tasks_again()?;
        let paused = Event::RunStopped(RunStopped::RunPaused { reason });
        self.record_without_consequences(vec![paused])?;
        Ok(Outcome::Paused)
    }

    pub(crate) async fn wait_for_answers(&mut self) -> Result<Outcome, RunError> {
        self.wind_down().await?;
        self.project_tasks_again()?;
        let open: Vec<_> = self.book.unanswered();
        let open: Vec<(QuestionId, Question)> =
            open.into_iter().map(|(id, asked)| (id.clone(), asked.question.clone())).collect();
        let questions = open.iter().map(|(id, _)| id.clone()).collect();
        let waiting = Event::RunStopped(RunStopped::RunWaiting { questions });
        self.record_without_consequences(vec![waiting])?;
        Ok(Outcome::Waiting(open))
    }
}

/// Whoever wants to be confirmed is told at once that it is not, and so does not go on.
fn unconfirmed(message: Message) -> Message {
    match message {
        Message::Confirm(event, _) => Message::Happened(event),
        Message::Typed(_)
        | Message::Happened(_)
        | Message::Asked { .. }
        | Message::Read { .. }
        | Message::ReadFirst { .. }
        | Message::Refused { .. }
        | Message::Ended { .. } => message,
    }
}
