//! Playing one turn.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use atomic_event::{Answer, BackendId, Outage, Question, Report, StepError, Stop};
use atomic_event::{ToolUse, TurnEvent, Usage};
use tokio::sync::{Notify, mpsc, oneshot};

use super::files::{self, FileError};
use super::load::{Action, CannedTurn, shorten};
use super::program::Played;
use super::wire::{EditEntry, FailEntry};
use super::{ID, Shared};
use crate::BackendError;
use crate::guard::Job;

/// One turn under way.
pub(super) struct Player {
    shared: Arc<Shared>,
    turn: Arc<CannedTurn>,
    messages: mpsc::Sender<Played>,
    interrupt: Arc<Notify>,
    /// Typed, but not yet taken by the receiver.
    untaken: String,
}

impl Player {
    pub(super) fn new(
        shared: Arc<Shared>,
        turn: Arc<CannedTurn>,
        messages: mpsc::Sender<Played>,
        interrupt: Arc<Notify>,
    ) -> Self {
        Self { shared, turn, messages, interrupt, untaken: String::new() }
    }

    /// Plays the turn until it ends, is interrupted, or nobody listens any more.
    pub(super) async fn play(mut self) -> Stop {
        self.act().await.unwrap_or_else(|stop| stop)
    }

    /// `Err` is an end before the end.
    async fn act(&mut self) -> Result<Stop, Stop> {
        let turn = Arc::clone(&self.turn);
        let mut text = String::new();
        let mut answer = None;
        for (index, action) in turn.actions.iter().enumerate() {
            match action {
                Action::Say(words) => {
                    text = filled(words, answer.as_ref());
                    self.say(&text).await?;
                }
                Action::Pause(time) => self.wait_for(tokio::time::sleep(*time)).await?,
                Action::Write { path, text } => {
                    let written = files::write(self.workspace(), path.as_path(), text);
                    self.used_on_file("write", path.as_path(), written).await?;
                }
                Action::Edit(edit) => {
                    let (before, _) = turn.actions.split_at(index);
                    let edited = files::edit(self.workspace(), edit, &standing(before, edit));
                    self.used_on_file("edit", edit.path.as_path(), edited).await?;
                }
                Action::Delete(path) => {
                    let deleted = files::delete(self.workspace(), path.as_path());
                    self.used_on_file("delete", path.as_path(), deleted).await?;
                }
                Action::Run { command, limit } => self.run(command, *limit).await?,
                Action::Ask(question) => answer = Some(self.ask(question).await?),
                Action::Spend(usage) => self.spend(*usage).await?,
                Action::Fail(how) => return self.fail(*how).await,
            }
        }
        Ok(Stop::Done { text })
    }

    fn workspace(&self) -> &Path {
        &self.shared.request.workspace
    }

    async fn say(&mut self, text: &str) -> Result<(), Stop> {
        for piece in text.split_inclusive(char::is_whitespace) {
            self.type_out(piece);
            // Between two pieces others have their turn, as with a program that really types.
            self.wait_for(tokio::task::yield_now()).await?;
        }
        if !self.untaken.is_empty() {
            let text = std::mem::take(&mut self.untaken);
            self.emit(TurnEvent::Typed { text }).await?;
        }
        self.report(Report::Said { text: text.to_owned() }).await
    }

    /// Never waits: what a slow receiver does not take comes with the next piece.
    fn type_out(&mut self, piece: &str) {
        self.untaken.push_str(piece);
        if let Ok(room) = self.messages.try_reserve() {
            let text = std::mem::take(&mut self.untaken);
            room.send(Played::Event(TurnEvent::Typed { text }));
        }
    }

    async fn used_on_file(
        &self,
        tool: &str,
        path: &Path,
        result: Result<(), FileError>,
    ) -> Result<(), Stop> {
        self.used(tool, path.display().to_string(), result.is_ok()).await?;
        result
            .map_err(|error| Stop::Failed(StepError::new("tool_failed", format!("{ID}: {error}"))))
    }

    async fn run(&self, command: &str, limit: Option<Duration>) -> Result<(), Stop> {
        let job = Job {
            argv: ["sh", "-c", command].map(str::to_owned).to_vec(),
            cwd: self.workspace().to_owned(),
            marker: self.shared.request.marker.clone(),
            ..Job::default()
        };
        let mut interrupted = false;
        let interruption = async {
            self.interruption().await;
            interrupted = true;
        };
        let finished =
            self.shared.guard.run(&job, limit, 0, interruption).await.map_err(|error| {
                let message = format!("{ID}: cannot run {:?}: {error}", shorten(command, 80));
                Stop::Failed(StepError::new("tool_failed", message))
            })?;
        if interrupted {
            return Err(Stop::Interrupted);
        }
        let ok = finished.status.is_some_and(|status| status.success());
        self.used("shell", shorten(command, 80), ok).await
    }

    async fn ask(&self, question: &Question) -> Result<Answer, Stop> {
        let request = uuid::Uuid::new_v4().to_string();
        let (reply, answer) = oneshot::channel();
        self.send(Played::Asked { request, question: question.clone(), reply }).await?;
        self.wait_for(answer).await?.map_err(|_gone| Stop::Interrupted)
    }

    async fn spend(&self, usage: Usage) -> Result<(), Stop> {
        let cost_usd = usage.cost_usd.filter(|_| self.shared.script.reports_cost());
        self.report(Report::Spent(Usage { cost_usd, ..usage })).await
    }

    async fn used(&self, tool: &str, summary: String, ok: bool) -> Result<(), Stop> {
        self.report(Report::ToolUsed(ToolUse::new(tool, summary, ok))).await
    }

    async fn report(&self, report: Report) -> Result<(), Stop> {
        self.emit(TurnEvent::Reported(report)).await
    }

    async fn fail(&self, how: FailEntry) -> Result<Stop, Stop> {
        match error(how, Outage::default()) {
            Some(error) => Ok(failed(error)),
            None if how == FailEntry::Silence => Ok(Stop::Done { text: String::new() }),
            None => self.wait_for(std::future::pending()).await,
        }
    }

    async fn emit(&self, event: TurnEvent) -> Result<(), Stop> {
        self.send(Played::Event(event)).await
    }

    /// Waits for a slow receiver.
    async fn send(&self, message: Played) -> Result<(), Stop> {
        self.wait_for(self.messages.send(message)).await?.map_err(|_gone| Stop::Interrupted)
    }

    /// Every wait of a turn can be interrupted.
    async fn wait_for<T>(&self, awaited: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.interruption() => Err(Stop::Interrupted),
            value = awaited => Ok(value),
        }
    }

    /// Ready when somebody interrupts, or when nobody listens any more.
    async fn interruption(&self) {
        tokio::select! {
            () = self.interrupt.notified() => {}
            () = self.messages.closed() => {}
        }
    }
}

/// The edits of the same file made so far, unless the turn wrote the whole file itself: then it
/// will do so again before it edits again.
fn standing<'a>(before: &'a [Action], edit: &EditEntry) -> Vec<&'a EditEntry> {
    let mut edits = Vec::new();
    for action in before {
        match action {
            Action::Write { path, .. } if *path == edit.path => return Vec::new(),
            Action::Edit(earlier) if earlier.path == edit.path => edits.push(earlier),
            Action::Say(_) | Action::Pause(_) | Action::Write { .. } | Action::Edit(_) => {}
            Action::Delete(_) | Action::Run { .. } | Action::Ask(_) => {}
            Action::Spend(_) | Action::Fail(_) => {}
        }
    }
    edits
}

fn filled(words: &str, answer: Option<&Answer>) -> String {
    answer.map_or_else(|| words.to_owned(), |answer| words.replace("{answer}", &answer.text()))
}

pub(super) fn failed(error: BackendError) -> Stop {
    Stop::Failed(error.into())
}

/// The error of a failure; none for those that are no errors.
pub(super) fn error(how: FailEntry, outage: Outage) -> Option<BackendError> {
    let backend = BackendId::from(ID);
    let message = "as the script says".to_owned();
    Some(match how {
        FailEntry::Hang | FailEntry::Silence => return None,
        FailEntry::Exit => BackendError::Exited { backend, status: "exit status: 1".to_owned() },
        FailEntry::Garbage => BackendError::Garbled { backend, line: "%&$ no protocol".to_owned() },
        FailEntry::RateLimit => BackendError::RateLimited { backend, outage },
        FailEntry::Overloaded => BackendError::Overloaded { backend, outage },
        FailEntry::ContextOverflow => BackendError::ContextOverflow { backend },
        FailEntry::Login => BackendError::LoginNeeded { backend },
        FailEntry::Quota => BackendError::QuotaUsedUp { backend, message, outage },
        FailEntry::Unavailable => BackendError::Unavailable { backend, message, outage },
        FailEntry::Refused => BackendError::Refused { backend, message },
        FailEntry::ModelUnknown => BackendError::ModelUnknown { backend, message },
        FailEntry::Rejected => BackendError::Rejected { backend, message },
    })
}
