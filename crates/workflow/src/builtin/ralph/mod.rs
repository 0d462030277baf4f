//! `ralph`: plan, work through the list, check every task, review, fix, until the list is done.
//!
//! Nothing outside this folder knows it. It is a graph and a handful of pure functions; under
//! another name it behaves the same.

mod plan;
mod prompts;
mod review;
mod settle;
mod task;

use atomic_event::{Patch, StepError, StepResult};
use atomic_graph::{
    Condition, Count, Each, Graph, ItemOrder, Key, Kind, Node, OnError, OnLost, Ready, Reducer,
    Retry, code,
};
use serde_json::{Value, json};

use crate::{
    Action, AgentAction, Call, Function, Functions, Gates, Initial, Launch, Limits, Text, Workflow,
};
use task::{Status, Task};

/// How many workers there are when the user does not say so: they share the project's folder, and a
/// check that sees the unfinished work of others verifies nothing.
const WORKERS: u32 = 1;

/// The field of a task that says whether a check verifies it: `checked`, `own` or `none`, as the
/// engine says, or `before` for a task that was completed before the run began.
const VERIFIED: &str = "verified";

/// Builds the workflow under this name.
pub fn ralph(name: &str) -> Workflow {
    Workflow {
        name: name.into(),
        aliases: if name == "ralph" { vec!["loop".to_owned()] } else { vec![] },
        description: "Plan, implement, check, review and fix until the task list is done"
            .to_owned(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph: graph(),
        functions: functions(),
        initial_state: Initial::made(initial_state),
        source: None,
        state_shape: crate::StateShape::default(),
    }
}

/// Builds the workflow for a list of tasks that somebody has made already: it is the same but for
/// the planning. A row is what a planner returns; one whose `status` is `completed` is not done
/// again, and whatever waits for it does not wait. An `error` is what went wrong when it was tried
/// before; its worker is told.
///
/// # Errors
///
/// What is wrong with the list, in the words a planner is told.
pub fn ralph_with_tasks(name: &str, rows: &[Value], limits: &Limits) -> Result<Workflow, String> {
    let mut tasks = plan::checked(Value::from(rows), limits.tasks)?;
    for (task, row) in tasks.iter_mut().zip(rows) {
        if row.get("status").and_then(Value::as_str) == Some("completed") {
            task.status = Status::Completed;
        }
        let error = row.get("error").and_then(Value::as_str).map(str::trim);
        task.error = error.filter(|error| !error.is_empty()).map(str::to_owned);
    }
    let mut rows = json!(tasks);
    for row in rows.as_array_mut().into_iter().flatten() {
        // Nothing of it is left to be verified.
        if row["status"] == json!(Status::Completed) {
            row[VERIFIED] = "before".into();
        }
    }
    let limits = limits.clone();
    let begin = move |launch: &Launch| {
        let room = launch.limits.iterations.unwrap_or_else(|| room_for(&tasks, &limits));
        let mut state = initial_state(launch);
        state.insert("limits".into(), json!(limits));
        state.insert("maxReviews".into(), limits.review_rounds.into());
        state.insert("maxIterations".into(), room.into());
        state.insert("tasks".into(), rows.clone());
        state
    };
    Ok(Workflow {
        graph: work(
            Graph::starting_at("take-tasks")
                .node(function("take-tasks", "ralph/take-tasks", "Taking over the tasks"))
                .edge("take-tasks", "baseline"),
        ),
        initial_state: Initial::made(begin),
        ..ralph(name)
    })
}

fn functions() -> Functions {
    Functions::default()
        .with("ralph/planner-prompt", Function::text(prompts::planner))
        .with("ralph/parse-tasks", Function::step(parse_tasks))
        .with("ralph/take-tasks", Function::step(take_tasks))
        .with("ralph/worker-prompt", Function::text(prompts::worker))
        .with("ralph/read-report", Function::parse(settle::read_report))
        .with("ralph/gave-up", Function::holds(settle::gave_up))
        .with("ralph/settle", Function::step(settle::settle))
        .with("ralph/judge-tasks", Function::step(judge_tasks))
        .with("ralph/reopen-tasks", Function::step(reopen_tasks))
        .with("ralph/reviewer-prompt", Function::text(prompts::reviewer))
        .with("ralph/read-review", Function::parse(review::read_review))
        .with("ralph/fixer", Function::step(review::fixer))
}

fn initial_state(launch: &Launch) -> Patch {
    let values = json!({
        "prompt": launch.prompt,
        "workers": launch.workers.unwrap_or(WORKERS).max(1),
        "limits": launch.limits,
        "maxReviews": launch.limits.review_rounds,
        "tasks": [],
    });
    serde_json::from_value(values).unwrap_or_default()
}

fn graph() -> Graph {
    let planner = agent("planner", "ralph/planner-prompt");
    let planning = Graph::starting_at("planner")
        .node(
            Action::Agent(planner)
                .node("planner")
                .described("Planning the tasks")
                .retry(patience())
                .max_visits(Count::Fixed(2)),
        )
        .node(
            function("parse-tasks", "ralph/parse-tasks", "Reading the plan")
                .may_go_to(["planner"])
                .on_revive("planner"),
        )
        .edge("planner", "parse-tasks")
        .edge("parse-tasks", "baseline");
    work(planning)
}

/// What follows once there are tasks.
fn work(beginning: Graph) -> Graph {
    let reviewer = AgentAction {
        fresh: true,
        parse: Some("ralph/read-review".into()),
        ..agent("reviewer", "ralph/reviewer-prompt")
    };
    let fan = Kind::Each(Each {
        over: Key::from("tasks"),
        item: Key::from("item"),
        graph: task_graph(),
        workers: Count::Key(Key::from("workers")),
        ready: Ready::Tasks,
        fail_fast: false,
        // `redGates` is a fact about the tree: what was learned last holds, whichever task it was.
        order: ItemOrder::Finished,
    });
    beginning
        .node(
            Action::Gates(Gates { baseline: true })
                .node("baseline")
                .described("Running the checks before any work is done")
                .on_lost(OnLost::RunAgain),
        )
        .node(Node::new("select-ready-tasks", fan).described("Working through the tasks"))
        .node(
            function("judge-tasks", "ralph/judge-tasks", "Looking at what is left")
                .on_revive("reopen-tasks"),
        )
        .node(function("reopen-tasks", "ralph/reopen-tasks", "Giving failed tasks another chance"))
        .node(
            Action::Agent(reviewer)
                .node("reviewer")
                .described("Reviewing the result")
                .retry(patience())
                .max_visits(Count::Key(Key::from("maxReviews"))),
        )
        .node(
            function("fixer", "ralph/fixer", "Turning findings into tasks")
                .may_go_to(["select-ready-tasks"])
                .on_revive("reviewer"),
        )
        .edge("baseline", "select-ready-tasks")
        .edge("select-ready-tasks", "judge-tasks")
        .edge("judge-tasks", "reviewer")
        // A check that was fixed while the run was stopped was green before the tasks that follow.
        .edge("reopen-tasks", "baseline")
        .edge("reviewer", "fixer")
        .reducer("tasks", Reducer::MergeById)
        .reducer("findings", Reducer::Concat)
        .reducer("instructions", Reducer::Concat)
        .reducer("redGates", Reducer::Merge)
}

/// What happens to one task.
fn task_graph() -> Graph {
    let worker = AgentAction {
        fresh: true,
        iteration: true,
        parse: Some("ralph/read-report".into()),
        ..agent("worker", "ralph/worker-prompt")
    };
    let to_settle = || OnError::Goto("settle".into());
    Graph::starting_at("worker")
        .node(
            Action::Agent(worker)
                .node("worker")
                .described("Implementing a task")
                .retry(patience())
                .on_error(to_settle())
                .max_visits(Count::Key(Key::from("maxIterations"))),
        )
        .node(
            Action::Gates(Gates { baseline: false })
                .node("check")
                .described("Checking the result")
                .on_error(to_settle())
                .on_lost(OnLost::RunAgain),
        )
        .node(function("settle", "ralph/settle", "Settling the task"))
        .edge_when("worker", "settle", Condition::Call("ralph/gave-up".into()))
        .edge_when("worker", "check", Condition::Otherwise)
        .edge("check", "settle")
}

fn agent(name: &str, prompt: &str) -> AgentAction {
    AgentAction { role: true, ..AgentAction::new(name, Text::Call(prompt.into())) }
}

fn function(id: &str, call: &str, description: &str) -> Node {
    Action::Function { call: call.into() }.node(id).described(description)
}

/// Only what passes by itself is worth waiting for.
fn patience() -> Retry {
    let codes = ["rate_limited", "overloaded", "unavailable"].map(str::to_owned).into();
    Retry { attempts: 3, delay_ms: 1_000, factor: 4.0, codes, when: None }
}

/// Takes the plan, sends it back once, or fails.
fn parse_tasks(call: &Call<'_>) -> Result<StepResult, StepError> {
    let limits: Limits = call.get("limits");
    let answer = call.output("planner");
    let answer = answer.as_str().unwrap_or_default();
    match plan::read_plan(answer, limits.tasks) {
        Ok(tasks) => {
            let room = room_for(&tasks, &limits);
            Ok(announced(&tasks)
                .set("tasks", json!(tasks))
                .set("maxIterations", room)
                .set("planError", ""))
        }
        Err(problem) if call.get::<String>("planError").is_empty() => {
            Ok(StepResult::output(json!({"refused": problem}))
                .set("planError", problem)
                .goto("planner"))
        }
        Err(problem) => {
            let quoted = task::one_line(answer, 200);
            let message = format!(
                "the planner's second plan cannot be used either: {problem}. It begins: {quoted:?}"
            );
            Err(StepError::new("plan", message))
        }
    }
}

/// The tasks are in the state already; what is left is to tell of them.
fn take_tasks(call: &Call<'_>) -> Result<StepResult, StepError> {
    Ok(announced(&call.get::<Vec<Task>>("tasks")))
}

/// The output of the step that has found the tasks: how many, and how `progress.txt` begins.
fn announced(tasks: &[Task]) -> StepResult {
    let rows: Vec<_> = tasks.iter().map(header_line).collect();
    let entry = json!({"heading": "# Tasks", "text": rows.join("\n")});
    StepResult::output(json!({"tasks": tasks.len(), "progress": entry}))
}

/// How often a worker may be started for these tasks.
fn room_for(tasks: &[Task], limits: &Limits) -> u32 {
    let count = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
    limits.iterations.unwrap_or_else(|| count.saturating_mul(4).max(100))
}

fn header_line(task: &Task) -> String {
    let blocked = if task.blocked_by.is_empty() {
        String::new()
    } else {
        format!(" (after {})", task.blocked_by.join(", "))
    };
    let done = if task.status == Status::Completed { " (done before)" } else { "" };
    let mut line = format!("- {} {}{blocked}{done}", task.id, task.content);
    if !task.description.is_empty() {
        line = format!("{line}\n  {}", task.description.trim().replace('\n', "\n  "));
    }
    for criterion in &task.acceptance_criteria {
        line = format!("{line}\n  - {criterion}");
    }
    if let Some(error) = &task.error {
        line = format!("{line}\n  It failed before: {}", error.replace('\n', "\n  "));
    }
    line
}

/// All done, or not a success: then what is left, and what blocks what.
fn judge_tasks(call: &Call<'_>) -> Result<StepResult, StepError> {
    let tasks: Vec<Task> = call.get("tasks");
    let left: Vec<&Task> = tasks.iter().filter(|t| t.status != Status::Completed).collect();
    if tasks.is_empty() {
        return Err(StepError::new("tasks", "there are no tasks, so nothing can be done"));
    }
    if left.is_empty() {
        let unverified = unverified(call);
        if unverified.is_empty() {
            return Ok(StepResult::output(json!({"done": tasks.len()})));
        }
        let (count, ids) = (unverified.len(), unverified.join(", "));
        let message = format!(
            "{count} of {} tasks are not verified by a check, and --require-checks is set: {ids}",
            tasks.len()
        );
        return Err(StepError::new("unverified", message));
    }
    let describe = |task: &&Task| match task.status {
        Status::Failed => {
            format!("{} failed: {}", task.id, task.error.as_deref().unwrap_or("unknown"))
        }
        Status::Pending | Status::InProgress | Status::Completed => {
            let open = |id: &&String| left.iter().any(|other| other.id == **id);
            let by: Vec<_> = task.blocked_by.iter().filter(open).cloned().collect();
            format!("{} is blocked by {}", task.id, by.join(", "))
        }
    };
    let lines: Vec<_> = left.iter().map(describe).collect();
    let message =
        format!("{} of {} tasks are not done: {}", left.len(), tasks.len(), lines.join("; "));
    let at_ceiling = left.iter().any(|task| task.error_code.as_deref() == Some(code::CEILING));
    Err(StepError::new(if at_ceiling { code::CEILING } else { "tasks" }, message))
}

/// The completed tasks that no check verifies, where that is required.
fn unverified(call: &Call<'_>) -> Vec<String> {
    if !call.get::<Limits>("limits").require_checks {
        return vec![];
    }
    let is_open = |row: &Value| {
        let is_verified = matches!(row[VERIFIED].as_str(), Some("checked" | "own" | "before"));
        row["status"] == json!(Status::Completed) && !is_verified
    };
    let rows: Vec<Value> = call.get("tasks");
    let open = rows.iter().filter(|row| is_open(row));
    open.filter_map(|row| row["id"].as_str()).map(str::to_owned).collect()
}

/// A failed run was resumed: its failed tasks, and those that had to be verified and are not, count
/// from the beginning again.
fn reopen_tasks(call: &Call<'_>) -> Result<StepResult, StepError> {
    let tasks: Vec<Task> = call.get("tasks");
    let unverified = unverified(call);
    let is_open = |task: &&Task| task.status == Status::Failed || unverified.contains(&task.id);
    let rows: Vec<_> = tasks
        .iter()
        .filter(is_open)
        .map(|task| {
            json!({"id": task.id, "status": Status::Pending, "attempts": 0, "bugFixes": 0,
                "errorCode": null})
        })
        .collect();
    Ok(StepResult::output(json!({"reopened": rows.len()})).set("tasks", rows))
}

#[cfg(test)]
mod tests;
