//! What Ralph says to its agents.

use std::fmt::Write as _;

use serde_json::Value;

use super::task::{Status, Task};
use crate::Call;

// Whoever brings agents of their own need not know what we can read: the prompts say it, too.

/// What a plan looks like.
const PLAN: &str = "\
Return the plan as one JSON array of tasks, and nothing after it: [{\"id\": \"#1\", \
\"content\": \"<what to do>\", \"activeForm\": \"<the same, as in: Doing it>\", \
\"blockedBy\": [\"<ids of tasks that come first>\"], \"description\": \"…\", \
\"acceptanceCriteria\": [\"…\"]}]";

/// What a worker's report looks like.
pub(super) const REPORT: &str = "\
End with one JSON object: {\"status\": \"completed\" | \"failed\", \"summary\": \"…\", \
\"error\": \"…\"}";

/// What a review looks like.
pub(super) const REVIEW: &str = "\
Return one JSON object: {\"findings\": [{\"title\", \"body\", \"path\", \"line\", \
\"priority\": 0-3}], \"verdict\": \"correct\" | \"incorrect\"}; 0 and 1 must be mended";

/// The planner's prompt; when a plan was refused, what was wrong with it.
pub(super) fn planner(call: &Call<'_>) -> String {
    let problem: String = call.get("planError");
    let prompt: String = call.get("prompt");
    if problem.is_empty() {
        return format!("Plan the following work.\n\n{prompt}{}\n\n{PLAN}", instructions(call));
    }
    format!(
        "Your plan cannot be used: {problem}.\n\
         Correct it. {PLAN}\n\n\
         The work to plan is:\n\n{prompt}{}",
        instructions(call)
    )
}

/// The worker's prompt.
pub(super) fn worker(call: &Call<'_>) -> String {
    let task: Task = call.get("item");
    let prompt: String = call.get("prompt");
    let mut text = format!(
        "{}\n\n{}\n\nIt is one task of this work:\n\n{prompt}\n",
        heading(&task),
        task.description.trim(),
    );
    if !task.acceptance_criteria.is_empty() {
        let criteria = task.acceptance_criteria.join("\n- ");
        let _ = write!(text, "\nIt is done when:\n- {criteria}\n");
    }
    if let Some(error) = &task.error {
        let detail = task.error_detail.as_deref().unwrap_or_default();
        let _ = write!(text, "\nAn earlier attempt at this task failed: {error}\n{detail}\n");
    }
    let done: Vec<Task> = call.get("tasks");
    let done: Vec<String> = done
        .iter()
        .filter(|task| task.status == Status::Completed)
        .map(|task| format!("- {} {}", task.id, task.content))
        .collect();
    if !done.is_empty() {
        let _ = write!(text, "\nDone already:\n{}\n", done.join("\n"));
    }
    let _ = write!(
        text,
        "\nThe task list is in {} (read it, do not edit it), what was done so far in {}. \
         Read `git log` too, where there is one.\n{}\n{REPORT}\n",
        call.paths.tasks.display(),
        call.paths.progress.display(),
        instructions(call),
    );
    text
}

/// The line that names a task.
fn heading(task: &Task) -> String {
    format!("Task {}: {}", task.id, task.content)
}

/// The reviewer's prompt.
pub(super) fn reviewer(call: &Call<'_>) -> String {
    let round = call.get::<u32>("reviewRound") + 1;
    let prompt: String = call.get("prompt");
    let tasks: Vec<Task> = call.get("tasks");
    let tasks: Vec<String> = tasks.iter().map(|t| format!("- {} {}", t.id, t.content)).collect();
    let mut text = format!(
        "Review round {round}. All tasks of this work are said to be done:\n\n{prompt}\n\n\
         The tasks were:\n{}\n\nWhat was done is in {}.\n",
        tasks.join("\n"),
        call.paths.progress.display(),
    );
    let earlier: Vec<Value> = call.get("findings");
    let earlier: Vec<String> = earlier
        .iter()
        .filter_map(|finding| Some(format!("- {}", finding.get("title")?.as_str()?)))
        .collect();
    if !earlier.is_empty() {
        let _ = write!(
            text,
            "\nFound in earlier rounds and worked on since:\n{}\n",
            earlier.join("\n")
        );
    }
    format!("{text}{}\n{REVIEW}\n", instructions(call))
}

/// What the user said on resume.
fn instructions(call: &Call<'_>) -> String {
    let given: Vec<String> = call.get("instructions");
    if given.is_empty() {
        return String::new();
    }
    format!("\nThe user adds:\n- {}\n", given.join("\n- "))
}
