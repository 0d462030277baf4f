//! The files people read, made from facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atomic_event::{Created, Event, Moment, StepError};
use atomic_graph::State;
use atomic_session::{PullRequest, SessionStatus, SessionSummary, TaskCount, TaskRow, TaskStatus};
use serde_json::Value;
use tokio::time::Instant;

use crate::book::Book;
use crate::lane::scope;
use crate::run::{Run, RunError};

/// The summary is written at most this often, because writing it costs more than a step does.
const SUMMARY_EVERY: Duration = Duration::from_millis(250);

/// What the files say already.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// The list the task file was last made from, and what was known of its items then.
    tasks: Option<(Arc<Value>, Items)>,
    count: TaskCount,
    /// When the summary is to be written.
    due: Option<Instant>,
}

/// What becomes of tasks before the workflow has said so.
#[derive(Debug, Default, PartialEq)]
struct Items {
    running: BTreeSet<String>,
    /// Those that could not go on, and why.
    failed: BTreeMap<String, StepError>,
}

/// An entry of `progress.txt`.
#[derive(Debug)]
pub(crate) struct Entry {
    heading: String,
    text: String,
}

impl Projection {
    /// Something has changed.
    pub(crate) fn touch(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + SUMMARY_EVERY);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.due.is_some()
    }

    /// Waits until the summary is to be written.
    pub(crate) fn due(&self) -> impl Future<Output = ()> + use<> {
        let due = self.due.unwrap_or_else(Instant::now);
        async move { tokio::time::sleep_until(due).await }
    }
}

impl Run {
    /// Brings every file up to date.
    pub(crate) fn project_all(&mut self) -> Result<(), RunError> {
        self.project_tasks()?;
        self.projection.due = None;
        let Some(mut summary) = summary(&self.created, &self.book, self.projection.count) else {
            return Ok(());
        };
        summary.result = self.machine.result().cloned();
        Ok(self.session.write_summary(&summary)?)
    }

    /// Writes the task list when it has changed, before anybody who reads it is started.
    pub(crate) fn project_tasks(&mut self) -> Result<(), RunError> {
        let state = self.machine.newest();
        let Some(list) = state.get("tasks") else { return Ok(()) };
        let running = self.machine.running().into_iter().filter_map(|(step, _)| step.item());
        let items = Items { running: running.collect(), failed: self.machine.failed_items() };
        if let Some((known, before)) = &self.projection.tasks
            && Arc::ptr_eq(known, list)
            && *before == items
        {
            return Ok(());
        }
        let rows = task_rows(list, &items);
        if rows.is_empty() && self.projection.tasks.is_none() {
            return Ok(());
        }
        self.projection.count = count(&rows);
        self.projection.tasks = Some((Arc::clone(list), items));
        if let Some(kept) = self.session.write_tasks(&rows)? {
            let path = kept.path.display();
            self.complain(&format!("tasks.json was changed by somebody else; kept as {path}"));
        }
        Ok(())
    }

    /// Adds entries to `progress.txt`, unless they are there already.
    pub(crate) fn project_progress(&mut self, entries: &[Entry]) -> Result<(), RunError> {
        for Entry { heading, text } in entries {
            self.session.append_progress(heading, &format!("\n{heading}\n\n{text}\n"))?;
        }
        Ok(())
    }

    /// Whether the session can be taken up again, and whether that is another chance.
    pub(crate) fn resumable(status: SessionStatus) -> Result<bool, &'static str> {
        match status {
            SessionStatus::Completed => Err("is completed; there is nothing left to do"),
            SessionStatus::Failed => Ok(true),
            SessionStatus::Running | SessionStatus::Paused | SessionStatus::Waiting => Ok(false),
        }
    }
}

/// What `session.json` says, once something has happened.
pub(crate) fn summary(created: &Created, book: &Book, tasks: TaskCount) -> Option<SessionSummary> {
    Some(SessionSummary {
        session_id: created.session.clone(),
        workflow: created.workflow.clone(),
        prompt: created.prompt.clone(),
        original_prompt: created.original_prompt.clone(),
        status: book.status,
        created_at: book.times.created?,
        last_updated: book.times.last?,
        iteration: book.iteration,
        backend: created.backend.clone(),
        model: created.model.clone(),
        tasks,
        cost_usd: book.spent.cost_usd.filter(|_| !book.spent.cost_unknown),
        result: None,
        pull_request: PullRequest::default(),
    })
}

/// How many tasks there are in a state in which nobody works.
pub(crate) fn tasks_at_rest(state: &State) -> TaskCount {
    let rows = state.get("tasks").map(|list| task_rows(list, &Items::default()));
    rows.map_or_else(TaskCount::default, |rows| count(&rows))
}

fn count(rows: &[TaskRow]) -> TaskCount {
    let done = rows.iter().filter(|row| row.status == TaskStatus::Completed).count();
    TaskCount { done, total: rows.len() }
}

/// What a fact has to say in `progress.txt`, once `book` has learned it and nothing later: the
/// number of the iteration is the one of that time.
pub(crate) fn progress_entry(book: &Book, event: &Event, at: Moment) -> Option<Entry> {
    if let Event::StepFinished { step, result, .. } = event {
        let entry = result.output.get("progress")?;
        let field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let iteration = book.iterations.get(scope(step)).unwrap_or(&book.iteration).to_string();
        // Only the first: what follows may be somebody's own words.
        let heading = field("heading").replacen("{n}", &iteration, 1);
        let mut text = field("text").to_owned();
        if !field("status").is_empty() {
            text = format!("{text}\nStatus: {} ({at})", field("status"));
        }
        if !field("error").is_empty() {
            text = format!("{text}\nError: {}", field("error"));
        }
        Some(Entry { heading, text: text.trim().to_owned() })
    } else if let Event::Instructed { text } = event {
        Some(Entry { heading: format!("## User instruction ({at})"), text: text.clone() })
    } else {
        None
    }
}

/// The task list as people see it.
fn task_rows(list: &Value, items: &Items) -> Vec<TaskRow> {
    let Some(list) = list.as_array() else { return vec![] };
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    let status = |row: &Value| match row.get("status").and_then(Value::as_str) {
        Some("completed" | "skipped") => TaskStatus::Completed,
        Some("failed") => TaskStatus::Failed,
        Some("in_progress") => TaskStatus::InProgress,
        _ => TaskStatus::Pending,
    };
    let done: BTreeSet<String> = list
        .iter()
        .filter(|row| status(row) == TaskStatus::Completed)
        .filter_map(|row| text(row, "id"))
        .collect();
    list.iter()
        .filter_map(|row| {
            let id = text(row, "id")?;
            let blockers = row.get("blockedBy").and_then(Value::as_array).into_iter().flatten();
            let blocked_by = blockers
                .filter_map(|blocker| blocker.as_str())
                .filter(|blocker| !done.contains(*blocker))
                .map(str::to_owned)
                .collect();
            let failure = items.failed.get(&id).filter(|_| status(row) == TaskStatus::Pending);
            let status = match failure {
                _ if items.running.contains(&id) => TaskStatus::InProgress,
                Some(_) => TaskStatus::Failed,
                None => status(row),
            };
            let failure = failure.map(|error| error.message.clone());
            Some(TaskRow {
                content: text(row, "content").unwrap_or_default(),
                active_form: text(row, "activeForm").unwrap_or_default(),
                error: failure
                    .or_else(|| text(row, "error"))
                    .filter(|_| status != TaskStatus::Completed),
                id,
                status,
                blocked_by,
            })
        })
        .collect()
}
