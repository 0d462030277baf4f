//! Steps that are neither an agent's turn nor a check: commands, files of tasks, compaction.

use std::io;
use std::time::Duration;

use atomic_backend::guard::{Finished, Job};
use atomic_backend::{BackendError, OpenRequest};
use atomic_event::{ConversationId, Event, Report, StepError, StepResult, ToolUse};
use atomic_graph::code;
use atomic_workflow::{ShellCommand, TaskFileOp};
use serde_json::json;

use super::{Order, Outcome, Performer, told_to_stop};
use crate::task_file::{self, TaskPath, TaskRequest};
use crate::timer::told;

/// How much of a command's output is kept.
const OUTPUT: usize = 64 * 1024;

impl Performer {
    /// Runs a command in the project's folder until it ends, takes too long, or the step is told
    /// to stop; keeps the last `keep` bytes of what it prints.
    pub(super) async fn run_in_shell(
        &self,
        command: &ShellCommand,
        limit: Option<Duration>,
        keep: usize,
    ) -> io::Result<Finished> {
        let job = Job {
            argv: vec!["sh".to_owned(), "-c".to_owned(), command.text.clone()],
            cwd: self.reach.workspace.clone(),
            env: self.reach.variables(command).map_err(io::Error::other)?,
            marker: self.reach.marker.clone(),
            ..Job::default()
        };
        let mut orders = self.orders.clone();
        let stopped = async {
            told_to_stop(&mut orders).await;
        };
        self.reach.guard.run(&job, limit, keep, stopped).await
    }

    /// Runs a command; what it prints is the step's output.
    pub(super) async fn shell(&mut self, command: ShellCommand) -> Outcome {
        if let Err(outcome) = self.share_the_tree().await {
            return outcome;
        }
        // A command is no turn: only its own limit stops it.
        let run = self.run_in_shell(&command, self.times.own, OUTPUT).await;
        self.share = None;
        // Values stay out of messages and records: the command is shown as it was written.
        let command = short(&command.written);
        let finished = match run {
            Ok(finished) => finished,
            Err(error) => {
                let why = if error.kind() == io::ErrorKind::ArgumentListTooLong {
                    "the command and its environment are too long for the system; write \
                     {file:key} for long values"
                        .to_owned()
                } else {
                    error.to_string()
                };
                let message = format!("the command `{command}` could not be run: {why}");
                return Outcome::Failed(StepError::new("shell", message));
            }
        };
        let text = text(&finished);
        let Some(status) = finished.status else {
            let order = self.orders.borrow().clone();
            if order != Order::Work {
                return self.outcome_of(&order);
            }
            let limit = told(self.times.own.unwrap_or_default());
            let message = format!("`{command}` took longer than {limit} and was stopped");
            let error = StepError::new(code::TIMEOUT, message).with_detail(text);
            return Outcome::Failed(error);
        };
        let (step, attempt, ok) = (self.step.clone(), self.attempt, status.success());
        let tool = ToolUse::new("shell", command.clone(), ok);
        self.say(Event::StepReported { step, attempt, report: Report::ToolUsed(tool) }).await;
        if ok {
            return Outcome::Finished(StepResult::output(text.trim_end_matches('\n')));
        }
        let message = format!("`{command}` ended with {status}");
        Outcome::Failed(StepError::new("shell", message).with_detail(text))
    }

    /// Lets the backend summarise a conversation.
    pub(super) async fn compact(&mut self, conversation: ConversationId) -> Outcome {
        let (workspace, marker) = (self.reach.workspace.clone(), self.reach.marker.clone());
        let request = OpenRequest {
            model: self.model.clone(),
            resume: Some(conversation),
            ..OpenRequest::new("compaction", workspace, marker)
        };
        let conversation = match self.backend.open(request).await {
            Ok(conversation) => conversation,
            // There is nothing left to summarise: the next agent begins anew.
            Err(BackendError::ConversationGone { .. }) => {
                return Outcome::Finished(StepResult::output(json!({ "compacted": false })));
            }
            Err(error) => return self.or_refused(Outcome::Failed(error.into())).await,
        };
        let mut orders = self.orders.clone();
        let outcome = tokio::select! {
            done = conversation.compact() => match done {
                Ok(spent) => {
                    if let Some(usage) = spent {
                        self.pass_on(Report::Spent(usage)).await;
                    }
                    Outcome::Finished(StepResult::output(json!({ "compacted": true })))
                }
                Err(error) => Outcome::Failed(error),
            },
            order = told_to_stop(&mut orders) => self.outcome_of(&order),
            () = tokio::time::sleep(self.times.turn) => {
                let message = "summarising the conversation took too long";
                Outcome::Failed(StepError::new(code::TIMEOUT, message))
            }
        };
        let outcome = self.or_refused(outcome).await;
        conversation.close().await;
        outcome
    }

    /// Picks the next task out of a file, or marks one as done.
    pub(super) fn task_file(&self, op: TaskFileOp, request: &TaskRequest) -> Outcome {
        let path = TaskPath::new(&self.reach.workspace, &request.file);
        let done = match op {
            TaskFileOp::Next => task_file::next(&path, request),
            TaskFileOp::Complete => task_file::complete(&path, request),
        };
        match done {
            Ok(result) => Outcome::Finished(result),
            Err(message) => Outcome::Failed(StepError::new("tasks", message)),
        }
    }
}

/// What a command printed; what had to be left out is said.
fn text(finished: &Finished) -> String {
    match finished.left_out {
        0 => finished.tail.clone(),
        bytes => format!("[the first {bytes} bytes were left out]\n{}", finished.tail),
    }
}

/// A command in one line, however long its script is.
pub(super) fn short(command: &str) -> String {
    const LONGEST: usize = 100;
    let command = command.trim();
    let line: String = command.lines().next().unwrap_or_default().chars().take(LONGEST).collect();
    if line == command { line } else { format!("{} …", line.trim_end()) }
}
