//! The files people read, made from facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atomic_event::{Created, Ending, Event, Moment, Patch, Spending, Verified};
use atomic_graph::task::Task;
use atomic_graph::{Machine, State};
use atomic_session::{
    CheckSummary, Cost, Product, Session, SessionError, SessionStatus, SessionSummary,
    SpentSummary, TaskCount, TaskRow, TaskStatus,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::book::{Book, LoopTask, Scopes};
use crate::lane::scope;
use crate::resume::Past;
use crate::run::{Run, RunError};
use crate::spent::item_of;
use crate::task_file::{self, TaskPath};
use crate::verify::{EndedChecks, TaskDone, verified_line};

/// The summary is written at most this often, because writing it costs more than a step does.
const SUMMARY_EVERY: Duration = Duration::from_millis(250);

/// What the files say already.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    /// The list the task file was last made from, and what was known of its items then.
    tasks: Option<(Arc<Value>, Items)>,
    count: TaskCount,
    /// The tasks of loops as their files were last made to say.
    loop_tasks: BTreeMap<String, (LoopTask, TaskStatus)>,
    /// When the summary is to be written.
    due: Option<Instant>,
}

/// What becomes of tasks before the workflow has said so.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Items {
    pub(crate) running: BTreeSet<String>,
    /// Those that could not go on, and why.
    pub(crate) failed: BTreeMap<String, String>,
}

impl Items {
    /// The items of a run in which nothing is under way.
    fn at_rest(machine: &Machine, scopes: &Scopes) -> Self {
        let items = machine.failed_items().into_iter().map(|(id, error)| (id, error.message));
        let is_over = |round: &str| !machine.is_under_way(round);
        let rounds = scopes.loop_tasks.iter().filter(|(round, task)| task.begun && is_over(round));
        let tasks = rounds.filter_map(|(_, task)| Some((task.id.clone(), task.error.clone()?)));
        Self { running: BTreeSet::new(), failed: items.chain(tasks).collect() }
    }
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
        self.tend_session()?;
        self.project_tasks()?;
        self.projection.due = None;
        let kept_edits = self.session.kept_tasks();
        let tasks = TaskCount { kept_edits, ..self.projection.count.clone() };
        let checks = self.book.verification.summary(&self.tasks_done());
        let Some(mut summary) = summary(&self.created, &self.book, tasks, checks) else {
            return Ok(());
        };
        summary.product.result = self.machine.result().cloned();
        Ok(self.session.write_summary(&summary)?)
    }

    /// Writes the task list when it has changed, before anybody who reads it is started.
    pub(crate) fn project_tasks(&mut self) -> Result<(), RunError> {
        self.project_loop_tasks();
        let state = self.machine.newest();
        let Some(list) = state.get("tasks") else { return Ok(()) };
        let items = self.items();
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
        let Some(kept) = self.session.write_tasks(&rows)? else { return Ok(()) };
        let path = kept.path.display();
        let text = format!(
            "tasks.json was edited during the run; the edit was not used and is kept as {path}"
        );
        self.complain(&text);
        if self.machine.outcome().is_some() {
            // The journal has its last fact; the summary names the copy.
            return Ok(());
        }
        self.record_without_consequences(vec![Event::Noted { text }])
    }

    /// Compares the task list with what was written, also where nothing has changed since: an edit
    /// that was made during the run must not be taken for one that was made afterwards.
    pub(crate) fn project_tasks_again(&mut self) -> Result<(), RunError> {
        if self.projection.tasks.take().is_some() {
            self.project_tasks()?;
        }
        Ok(())
    }

    /// What becomes of tasks before the workflow has said so.
    pub(crate) fn items(&self) -> Items {
        let running = self.machine.running().into_iter().filter_map(|(step, _)| step.item());
        let begun = self
            .book
            .scopes
            .loop_tasks
            .iter()
            .filter(|(round, task)| task.begun && self.machine.is_under_way(round));
        let begun = begun.map(|(_, task)| task.id.clone());
        let at_rest = Items::at_rest(&self.machine, &self.book.scopes);
        Items { running: running.chain(begun).collect(), ..at_rest }
    }

    /// Writes into the files of task loops which task is being worked on, and which has failed.
    fn project_loop_tasks(&mut self) {
        let mut stand = BTreeMap::new();
        for (round, task) in &self.book.scopes.loop_tasks {
            if !task.begun {
                continue;
            }
            let status = match &task.error {
                _ if self.machine.is_under_way(round) => TaskStatus::InProgress,
                Some(_) => TaskStatus::Failed,
                // What it was for has been settled elsewhere.
                None => TaskStatus::Pending,
            };
            stand.insert(round.clone(), (task.clone(), status));
        }
        if stand == self.projection.loop_tasks {
            return;
        }
        let at = self.stage.clock.now().to_string();
        let before = &self.projection.loop_tasks;
        for (_, (task, status)) in
            stand.iter().filter(|(round, now)| before.get(*round) != Some(*now))
        {
            let path = TaskPath::new(&self.created.workspace, &task.file);
            let error = task.error.as_deref().filter(|_| *status == TaskStatus::Failed);
            if let Err(problem) = task_file::mark(&path, &task.id, (*status, error), &at) {
                // The loop's own steps fail when the file cannot be used.
                self.complain(&problem);
            }
        }
        self.projection.loop_tasks = stand;
    }

    /// Adds entries to `progress.txt`, unless they are there already.
    pub(crate) fn project_progress(&mut self, entries: &[Entry]) -> Result<(), RunError> {
        for Entry { heading, text } in entries {
            self.session.append_progress(heading, &format!("\n{heading}\n\n{text}\n"))?;
        }
        Ok(())
    }

    /// How many tasks are verified, where the workflow runs checks.
    pub(crate) fn verified(&self) -> Option<Verified> {
        let verification = &self.book.verification;
        verification.is_on.then(|| verification.counted(&self.tasks_done()))
    }

    /// What the checks say, where the workflow runs some.
    pub(crate) fn ended_checks(&self) -> Option<EndedChecks> {
        self.book.verification.ended(&self.tasks_done())
    }

    /// The tasks of the list as it is now.
    pub(crate) fn tasks_done(&self) -> Vec<TaskDone> {
        tasks_done(&self.created.state, &self.machine.newest())
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
pub(crate) fn summary(
    created: &Created,
    book: &Book,
    tasks: TaskCount,
    checks: Option<CheckSummary>,
) -> Option<SessionSummary> {
    Some(SessionSummary {
        session_id: created.session.clone(),
        workflow: created.workflow.clone(),
        prompt: created.prompt.clone(),
        original_prompt: created.original_prompt.clone(),
        status: book.status,
        created_at: book.times.created?,
        last_updated: book.times.last?,
        iteration: book.scopes.newest,
        backend: created.backend.clone(),
        model: created.model.clone(),
        tasks,
        spent: spent(book),
        product: Product {
            paid_by: book.providers.payers.iter().cloned().map(Into::into).collect(),
            ..Product::default()
        },
        checks,
    })
}

/// What was spent, in the run and by task.
fn spent(book: &Book) -> SpentSummary {
    let cost = |spent: &Spending| Cost {
        // Sums of prices are not exact; a billionth of a dollar is.
        cost_usd: spent.usd().map(|usd| (usd * 1e9).round() / 1e9),
        tokens: spent.tokens,
        estimated: spent.is_estimated(),
    };
    let mut tasks: BTreeMap<String, Spending> = BTreeMap::new();
    for (task, spent) in book.spent.by_task() {
        *tasks.entry(item_of(task).unwrap_or_else(|| task.to_owned())).or_default() += spent;
    }
    let task_costs = tasks.iter().map(|(task, spent)| (task.clone(), cost(spent))).collect();
    SpentSummary { total: cost(&book.spent.total()), task_costs }
}

impl Past {
    /// Writes the files of a session in which nobody works.
    pub(crate) fn write_files(&self, session: &mut Session) -> Result<(), SessionError> {
        for Entry { heading, text } in &self.progress {
            session.append_progress(heading, &format!("\n{heading}\n\n{text}\n"))?;
        }
        let items = Items::at_rest(&self.machine, &self.book.scopes);
        let rows = self.machine.newest().get("tasks").map(|list| task_rows(list, &items));
        let rows = rows.unwrap_or_default();
        if !rows.is_empty() {
            session.write_tasks(&rows)?;
        }
        let state = self.machine.newest();
        let checks = self.book.verification.summary(&tasks_done(&self.created.state, &state));
        let tasks = TaskCount { kept_edits: session.kept_tasks(), ..count(&rows) };
        let Some(mut summary) = summary(&self.created, &self.book, tasks, checks) else {
            return Ok(());
        };
        summary.product.result = self.machine.result().cloned();
        session.write_summary(&summary)
    }
}

/// How many tasks there are in a state in which nobody works.
pub(crate) fn tasks_at_rest(state: &State) -> TaskCount {
    let rows = state.get("tasks").map(|list| task_rows(list, &Items::default()));
    rows.map_or_else(TaskCount::default, |rows| count(&rows))
}

/// The tasks of a state, and which of them were completed in the state that the run began with.
pub(crate) fn tasks_done(first: &Patch, state: &State) -> Vec<TaskDone> {
    let done = |list: Option<&Value>| -> Vec<(String, bool)> {
        let rows = list.map(|list| task_rows(list, &Items::default())).unwrap_or_default();
        rows.into_iter().map(|row| (row.id, row.status == TaskStatus::Completed)).collect()
    };
    let before: BTreeMap<String, bool> = done(first.get("tasks")).into_iter().collect();
    let now = done(state.get("tasks").map(AsRef::as_ref));
    now.into_iter()
        .map(|(id, is_done)| {
            let was_done_before = before.get(&id) == Some(&true);
            TaskDone { id, is_done, was_done_before }
        })
        .collect()
}

fn count(rows: &[TaskRow]) -> TaskCount {
    let done = rows.iter().filter(|row| row.status == TaskStatus::Completed).count();
    TaskCount { done, total: rows.len(), kept_edits: vec![] }
}

/// What a fact has to say in `progress.txt`, once `book` has learned it and nothing later: the
/// number of the iteration is the one of that time.
pub(crate) fn progress_entry(book: &Book, event: &Event, at: Moment) -> Option<Entry> {
    if let Event::StepFinished { step, result, .. } = event {
        let entry = result.output.get("progress")?;
        let field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let Scopes { newest, iterations, .. } = &book.scopes;
        let iteration = iterations.get(scope(step)).unwrap_or(newest).to_string();
        // Only the first: what follows may be somebody's own words.
        let heading = field("heading").replacen("{n}", &iteration, 1);
        let mut text = field("text").to_owned();
        if !field("status").is_empty() {
            text = format!("{text}\nStatus: {} ({at})", field("status"));
        }
        if !field("error").is_empty() {
            text = format!("{text}\nError: {}", field("error"));
        }
        let item = step.item().filter(|_| field("status") == "completed");
        if let Some(line) = item.and_then(|item| book.verification.task_line(&item)) {
            text = format!("{text}\n{line}");
        }
        Some(Entry { heading, text: text.trim().to_owned() })
    } else if let Event::Instructed { text } = event {
        Some(Entry { heading: format!("## User instruction ({at})"), text: text.clone() })
    } else if let Event::RunFinished {
        ending: Ending::Completed, verified: Some(verified), ..
    } = event
    {
        let mut lines = book.verification.remarks();
        lines.push(format!("Ended: {at}"));
        Some(Entry { heading: format!("## {}", verified_line(verified)), text: lines.join("\n") })
    } else {
        None
    }
}

/// The task list as people see it.
pub(crate) fn task_rows(list: &Value, items: &Items) -> Vec<TaskRow> {
    let Some(list) = list.as_array() else { return vec![] };
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
    // A word that is not known is an error of the node that starts tasks.
    let status = |task: Task<'_>| task.status().unwrap_or(TaskStatus::Pending);
    let done: BTreeSet<&str> =
        list.iter().map(Task).filter(|task| task.is_done()).filter_map(Task::id).collect();
    let as_seen = |row: &Value| {
        let task = Task(row);
        let id = task.id()?.to_owned();
        let open = task.blockers().filter(|blocker| !done.contains(blocker));
        let failure = items.failed.get(&id).filter(|_| status(task) == TaskStatus::Pending);
        let status = match failure {
            _ if items.running.contains(&id) => TaskStatus::InProgress,
            Some(_) => TaskStatus::Failed,
            None => status(task),
        };
        let content = task.content().unwrap_or_default().to_owned();
        Some(TaskRow {
            active_form: text(row, "activeForm").unwrap_or_else(|| content.clone()),
            content,
            error: failure
                .cloned()
                .or_else(|| text(row, "error"))
                .filter(|_| status != TaskStatus::Completed),
            blocked_by: open.map(str::to_owned).collect(),
            id,
            status,
        })
    };
    list.iter().filter_map(as_seen).collect()
}
