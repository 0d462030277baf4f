//! What becomes of a task once its worker has reported and the checks have run.

use atomic_event::{StepError, StepResult};
use atomic_graph::code;
use serde_json::{Value, json};

use super::prompts::REPORT;
use super::task::{Status, Task, one_line};
use crate::{Call, Limits};

/// How an attempt at a task went.
enum Verdict {
    /// Reported as done, and every check agrees.
    Good { summary: String },
    /// The work is not right.
    Wrong { error: String, detail: Option<String> },
    /// The agent program let us down; the work may be fine.
    Trouble { error: StepError },
    /// It must not be tried again.
    Hopeless { error: StepError },
}

/// Failures of the program or its set-up that another attempt cannot mend.
const HOPELESS: &[&str] = &[
    code::BUDGET,
    code::CEILING,
    code::LOST,
    "not_installed",
    "too_old",
    "login_needed",
    "quota",
    "model_unknown",
    "misconfigured",
];

/// Whether a worker reported that it could not do the task.
pub(super) fn gave_up(call: &Call<'_>) -> bool {
    call.output("worker").get("status").and_then(Value::as_str) == Some("failed")
}

/// Reads a worker's report; the error is told to the worker.
pub(super) fn read_report(text: &str) -> Result<Value, String> {
    let is_report = |value: &Value| {
        matches!(value.get("status").and_then(Value::as_str), Some("completed" | "failed"))
    };
    crate::find_json(text, is_report)
        .ok_or_else(|| format!("there is no report in your answer. {REPORT}"))
}

/// Settles a task.
pub(super) fn settle(call: &Call<'_>) -> Result<StepResult, StepError> {
    let task: Task = call.get("item");
    let limits: Limits = call.get("limits");
    let verdict = judge(call);
    let mut rows = vec![];
    let (status, summary) = match &verdict {
        Verdict::Good { summary } => {
            let verified = call.output("check").get("verified").cloned();
            rows.push(json!({"id": task.id, "status": Status::Completed, "error": null,
                "verified": verified}));
            ("completed".to_owned(), summary.clone())
        }
        Verdict::Wrong { error, detail } => {
            rows = failed(call, &task, &limits, error, detail.as_deref());
            (status_of(&rows, &task.id), error.clone())
        }
        // A bug-fix counts on the task it mends, whatever went wrong.
        Verdict::Trouble { error } if task.mends.is_some() => {
            rows = failed(call, &task, &limits, &error.message, error.detail.as_deref());
            (status_of(&rows, &task.id), error.message.clone())
        }
        Verdict::Trouble { error } => {
            let attempts = task.attempts + 1;
            let given_up = attempts >= limits.attempts;
            let status = if given_up { Status::Failed } else { Status::Pending };
            rows.push(json!({"id": task.id, "status": status, "attempts": attempts,
                "error": error.message, "errorCode": error.code, "errorDetail": error.detail}));
            (status_of(&rows, &task.id), error.message.clone())
        }
        Verdict::Hopeless { error } => {
            rows.push(json!({"id": task.id, "status": Status::Failed,
                "error": error.message, "errorCode": error.code}));
            if let Some(parent) = &task.mends {
                rows.push(json!({"id": parent, "status": Status::Failed,
                    "error": format!("{} could not be mended: {}", task.id, error.message),
                    "errorCode": error.code}));
            }
            ("failed".to_owned(), error.message.clone())
        }
    };
    let good = matches!(verdict, Verdict::Good { .. });
    let entry = progress_entry(&task, &status, &summary, good);
    let output = json!({"status": status, "summary": summary, "progress": entry});
    Ok(StepResult::output(output).set("tasks", rows))
}

fn judge(call: &Call<'_>) -> Verdict {
    let worker = call.output("worker");
    if let Some(error) = error_in(&worker) {
        return trouble(in_ralphs_words(call, error));
    }
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().trim().to_owned()
    };
    if gave_up(call) {
        let error = [text(&worker, "error"), text(&worker, "summary")];
        let error = error.into_iter().find(|e| !e.is_empty());
        let error = error.unwrap_or_else(|| "the worker could not do it".to_owned());
        return Verdict::Wrong { error, detail: None };
    }
    let check = call.output("check");
    if let Some(error) = error_in(&check) {
        return trouble(error);
    }
    match check.get("failures").and_then(Value::as_array).and_then(|list| list.first()) {
        None => Verdict::Good { summary: text(&worker, "summary") },
        Some(failure) => {
            let (command, tail) = (text(failure, "command"), text(failure, "tail"));
            let error = format!("`{command}` fails: {}", telling_line(&tail));
            Verdict::Wrong { error, detail: Some(tail) }
        }
    }
}

fn error_in(output: &Value) -> Option<StepError> {
    serde_json::from_value(output.get("error")?.clone()).ok()
}

/// The ceiling on visits to the worker is known to people as that on iterations.
fn in_ralphs_words(call: &Call<'_>, error: StepError) -> StepError {
    if error.code != code::CEILING || !error.message.contains("visits") {
        return error;
    }
    let all = call.get::<u64>("maxIterations");
    let message = format!("all {all} iterations are used; resume with a higher --max-iterations");
    StepError { message, ..error }
}

fn trouble(error: StepError) -> Verdict {
    if HOPELESS.contains(&error.code.as_str()) {
        Verdict::Hopeless { error }
    } else {
        Verdict::Trouble { error }
    }
}

/// The line of a check's output that tells most: the first that speaks of a failure, else the last.
fn telling_line(tail: &str) -> String {
    let lines = || tail.lines().map(str::trim).filter(|line| !line.is_empty());
    let signs =
        ["assertion", "panicked at", "error[", "error:", "FAILED", "FAIL", "Error", "failed"];
    let sign = signs.iter().find_map(|sign| lines().find(|line| line.contains(sign)));
    one_line(sign.or_else(|| lines().next_back()).unwrap_or("no output"), 120)
}

/// The rows that change when a task's work is not right.
fn failed(
    call: &Call<'_>,
    task: &Task,
    limits: &Limits,
    error: &str,
    detail: Option<&str>,
) -> Vec<Value> {
    let blame = |id: &str, status: Status, error: &str| {
        json!({"id": id, "status": status, "error": error, "errorCode": "work",
            "errorDetail": detail})
    };
    let all: Vec<Task> = call.get("tasks");
    let Some(parent) = &task.mends else {
        let attempts = task.attempts + 1;
        let full = all.len() >= limits.tasks as usize;
        if attempts >= limits.attempts || task.bug_fixes >= limits.bug_fixes || full {
            let mut row = blame(&task.id, Status::Failed, error);
            row["attempts"] = attempts.into();
            return vec![row];
        }
        let bug = bug_fix(task, next_bug(&all, task), error, detail);
        let mut blocked_by = task.blocked_by.clone();
        blocked_by.push(bug.id.clone());
        let mut row = blame(&task.id, Status::Pending, error);
        row["attempts"] = attempts.into();
        row["bugFixes"] = (task.bug_fixes + 1).into();
        row["blockedBy"] = json!(blocked_by);
        return vec![row, json!(bug)];
    };
    // A bug-fix is tried again in place, and its failures count on the task it mends.
    let so_far = all.iter().find(|row| row.id == *parent).map_or(0, |row| row.attempts);
    let attempts = so_far + 1;
    let given_up = attempts >= limits.attempts;
    let mut own = blame(&task.id, if given_up { Status::Failed } else { Status::Pending }, error);
    own["attempts"] = (task.attempts + 1).into();
    let mut rows = vec![own, json!({"id": parent, "attempts": attempts})];
    if given_up {
        rows[1] =
            blame(parent, Status::Failed, &format!("{} could not be mended: {error}", task.id));
        rows[1]["attempts"] = attempts.into();
    }
    rows
}

/// The number of a task's next bug-fix. Those of an earlier chance are still in the list.
fn next_bug(all: &[Task], task: &Task) -> u32 {
    let prefix = format!("{}-bug-", task.id);
    let numbers =
        all.iter().filter_map(|other| other.id.strip_prefix(&prefix)?.parse::<u32>().ok());
    numbers.max().unwrap_or(0).saturating_add(1)
}

fn bug_fix(task: &Task, number: u32, error: &str, detail: Option<&str>) -> Task {
    let description = format!(
        "Task {} ({}) was attempted and is not right yet. Find the cause and mend it, in the code \
         rather than in the tests, unless a test contradicts the task.\n\n{}\n\n{}",
        task.id,
        task.content,
        error,
        detail.unwrap_or_default(),
    );
    Task {
        id: format!("{}-bug-{number}", task.id),
        content: one_line(&format!("Fix: {error}"), 80),
        active_form: one_line(&format!("Fixing: {error}"), 80),
        description,
        acceptance_criteria: task.acceptance_criteria.clone(),
        mends: Some(task.id.clone()),
        after: Some(task.id.clone()),
        ..Task::default()
    }
}

fn status_of(rows: &[Value], id: &str) -> String {
    let row = rows.iter().find(|row| row.get("id").and_then(Value::as_str) == Some(id));
    let status = row.and_then(|row| row.get("status")).and_then(Value::as_str);
    status.map_or_else(String::new, |s| {
        if s == "pending" { "to be tried again".into() } else { s.into() }
    })
}

/// What goes to `progress.txt`. The number of the iteration and the time are filled in when it is
/// written.
fn progress_entry(task: &Task, status: &str, summary: &str, good: bool) -> Value {
    let mut lines = vec![];
    if !task.description.is_empty() && task.mends.is_none() {
        lines.push(format!("Description: {}", task.description.trim()));
    }
    if !task.acceptance_criteria.is_empty() {
        lines.push(format!("Criteria: {}", task.acceptance_criteria.join("; ")));
    }
    if good {
        lines.push(format!("Progress: {summary}"));
    }
    json!({
        "heading": format!("## Iteration {{n}} — {}: {}", task.id, task.content),
        "text": lines.join("\n"),
        "status": status,
        "error": if good { "" } else { summary },
    })
}
