//! Rows of a task list in the state, whichever of the known words they use: Atomic's own (`content`,
//! `blockedBy`, `completed`), `title` and `blocked` of workflow files, and those of version 1.0 of
//! the task file (`name`, `dependencies`, `passing`).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun, or to be done again.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done and checked.
    Completed,
    /// Given up.
    Failed,
}

/// Every word for a status. A task that is `blocked` is pending and says what it waits for; one that
/// was `skipped` satisfies those that wait for it.
pub const STATUS_WORDS: [(&str, TaskStatus); 8] = [
    ("pending", TaskStatus::Pending),
    ("in_progress", TaskStatus::InProgress),
    ("completed", TaskStatus::Completed),
    ("failed", TaskStatus::Failed),
    ("blocked", TaskStatus::Pending),
    ("passing", TaskStatus::Completed),
    ("failing", TaskStatus::Failed),
    ("skipped", TaskStatus::Completed),
];

impl TaskStatus {
    /// The status that a word means.
    pub fn parse(word: &str) -> Option<Self> {
        STATUS_WORDS.iter().find(|(known, _)| *known == word).map(|(_, status)| *status)
    }

    /// Atomic's own word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The status in the words of task files of version 1.0.
    pub fn version_1_word(self) -> &'static str {
        match self {
            Self::Completed => "passing",
            Self::Failed => "failing",
            Self::Pending | Self::InProgress => self.word(),
        }
    }
}

/// The keys of what is to be done, in order of precedence.
pub const CONTENT_KEYS: [&str; 3] = ["content", "title", "name"];

/// The keys of what a task waits for. A row that has both waits for the tasks under either of them.
pub const BLOCKER_KEYS: [&str; 2] = ["blockedBy", "dependencies"];

/// A row of a task list.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a>(pub &'a Value);

impl<'a> Task<'a> {
    fn text(self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str().filter(|text| !text.is_empty())
    }

    /// The id.
    pub fn id(self) -> Option<&'a str> {
        self.text("id")
    }

    /// What is to be done.
    pub fn content(self) -> Option<&'a str> {
        CONTENT_KEYS.iter().find_map(|key| self.text(key))
    }

    /// The status; the error is a value that does not mean one. A row without a status is pending.
    pub fn status(self) -> Result<TaskStatus, &'a Value> {
        match self.0.get("status") {
            None | Some(Value::Null) => Ok(TaskStatus::Pending),
            Some(word) => word.as_str().and_then(TaskStatus::parse).ok_or(word),
        }
    }

    /// Whether nothing is left to do.
    pub fn is_done(self) -> bool {
        self.status() == Ok(TaskStatus::Completed)
    }

    /// The ids of the tasks it waits for.
    pub fn blockers(self) -> impl Iterator<Item = &'a str> {
        let listed = move |key: &str| {
            let list = self.0.get(key).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str)
        };
        let [first, second] = BLOCKER_KEYS;
        let is_new = move |id: &&str| !listed(first).any(|other| other == *id);
        listed(first).chain(listed(second).filter(is_new))
    }

    /// The priority: lower ones come first.
    pub fn priority(self) -> f64 {
        self.0.get("priority").and_then(Value::as_f64).unwrap_or(0.0)
    }
}

/// The tasks that are pending and wait for nothing, in the order in which they are to be started.
pub fn ready(list: &[Value]) -> Vec<Task<'_>> {
    let done: BTreeSet<&str> =
        list.iter().map(Task).filter(|task| task.is_done()).filter_map(Task::id).collect();
    let is_ready = |task: &Task<'_>| {
        task.status() == Ok(TaskStatus::Pending)
            && task.id().is_some()
            && task.blockers().all(|blocker| done.contains(blocker))
    };
    let mut ready: Vec<Task<'_>> = list.iter().map(Task).filter(is_ready).collect();
    // Stable: tasks of the same priority keep the order of the list.
    ready.sort_by(|one, other| one.priority().total_cmp(&other.priority()));
    ready
}

/// Something about a row that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddRow {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl OddRow {
    fn new(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: hint.into() }
    }
}

/// The first row that cannot be worked on as it is written: without it a task would be left out,
/// started before what it waits for, or done again and again.
pub fn odd_row(list: &[Value]) -> Option<OddRow> {
    let mut ids = BTreeSet::new();
    (1..).zip(list).find_map(|(number, row)| odd(number, Task(row), &mut ids))
}

fn odd<'a>(number: usize, task: Task<'a>, ids: &mut BTreeSet<&'a str>) -> Option<OddRow> {
    let Some(id) = task.id() else {
        let problem = match task.0.get("id") {
            Some(id @ (Value::Number(_) | Value::Bool(_))) => {
                let hint = format!("write \"{id}\", with quotes; the same in `blockedBy`");
                return Some(OddRow::new(format!("task {number} has the id {id}"), hint));
            }
            _ => format!("task {number} has no `id`"),
        };
        return Some(OddRow::new(problem, "give it an `id` that is a text"));
    };
    if !ids.insert(id) {
        let problem = format!("the id `{id}` is used twice");
        return Some(OddRow::new(problem, "give one of the tasks another id"));
    }
    if let Err(word) = task.status() {
        let known: Vec<&str> = STATUS_WORDS.iter().map(|(word, _)| *word).collect();
        let problem = format!("task `{id}` has the status {word}");
        return Some(OddRow::new(problem, format!("write one of {}", known.join(", "))));
    }
    BLOCKER_KEYS.iter().find_map(|key| {
        let found = task.0.get(key).filter(|found| !found.is_null())?;
        let is_list = found.as_array().is_some_and(|ids| ids.iter().all(Value::is_string));
        let problem = || format!("task `{id}`: `{key}` is {found}, not a list of ids");
        (!is_list).then(|| OddRow::new(problem(), "write a list of texts such as [\"a\"]"))
    })
}

/// The tasks that were never started although nothing is under way any more, each with the reason.
/// A task that waits for one that was given up, or for one that has run without being completed, is
/// not among them: the workflow decides what becomes of these.
pub fn stranded(list: &[Value], has_run: impl Fn(&str) -> bool) -> Vec<String> {
    let tasks = || list.iter().filter_map(|row| Some((Task(row).id()?, Task(row))));
    let mut waiting: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut left: Vec<&str> = vec![];
    for (id, task) in tasks().filter(|(_, task)| !task.is_done()) {
        task.blockers().for_each(|blocker| waiting.entry(blocker).or_default().push(id));
        if task.status() == Ok(TaskStatus::Failed) || has_run(id) {
            left.push(id);
        }
    }
    let mut excused = BTreeSet::new();
    while let Some(id) = left.pop() {
        if excused.insert(id) {
            left.extend(waiting.get(id).into_iter().flatten());
        }
    }
    let stranded = tasks().filter(|(id, task)| !task.is_done() && !excused.contains(id));
    stranded.map(|(id, task)| format!("{id} ({})", obstacle(list, task))).collect()
}

/// Why a task that is not done cannot be started.
pub fn obstacle(list: &[Value], task: Task<'_>) -> String {
    match task.status() {
        Ok(TaskStatus::Failed) => return "failed".to_owned(),
        Ok(TaskStatus::InProgress) => return "in progress, but not under way".to_owned(),
        Ok(TaskStatus::Pending | TaskStatus::Completed) | Err(_) => {}
    }
    let known: BTreeMap<&str, Task<'_>> =
        list.iter().filter_map(|row| Some((Task(row).id()?, Task(row)))).collect();
    let open = task.blockers().filter_map(|id| match known.get(id) {
        Some(blocker) if blocker.is_done() => None,
        Some(_) => Some(id.to_owned()),
        None => Some(format!("{id}, which is not in the list")),
    });
    format!("blocked by {}", open.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{odd_row, stranded};

    #[test]
    fn a_row_that_cannot_be_understood_is_named() {
        let table = [
            (json!([{"id": "a", "blockedBy": null, "dependencies": ["b"]}]), None),
            (json!([{"id": "a"}, {"title": "x"}]), Some("task 2 has no `id`")),
            (json!(["a"]), Some("task 1 has no `id`")),
            (json!([{"id": 1}]), Some("task 1 has the id 1")),
            (json!([{"id": "a"}, {"id": "a"}]), Some("the id `a` is used twice")),
            (json!([{"id": "a", "status": "todo"}]), Some("task `a` has the status \"todo\"")),
            (
                json!([{"id": "a", "blockedBy": "b"}]),
                Some("task `a`: `blockedBy` is \"b\", not a list of ids"),
            ),
            (
                json!([{"id": "a", "blockedBy": [], "dependencies": [1]}]),
                Some("task `a`: `dependencies` is [1], not a list of ids"),
            ),
        ];
        for (list, problem) in table {
            let found = odd_row(list.as_array().unwrap()).map(|odd| odd.problem);
            assert_eq!(found.as_deref(), problem, "{list}");
        }
    }

    #[test]
    fn tasks_that_nothing_can_start_are_named_with_the_reason() {
        let list = json!([
            {"id": "ran"},
            {"id": "after-ran", "blockedBy": ["ran"]},
            {"id": "failed", "status": "failed"},
            {"id": "after-failed", "dependencies": ["failed", "done"]},
            {"id": "later", "blockedBy": ["after-failed"]},
            {"id": "done", "status": "completed", "blockedBy": ["gone"]},
            {"id": "round", "blockedBy": [], "dependencies": ["and-round", "done"]},
            {"id": "and-round", "blockedBy": ["round"]},
            {"id": "begun", "status": "in_progress"},
            {"id": "lost", "blockedBy": ["gone"]},
        ]);
        let found = stranded(list.as_array().unwrap(), |id| id == "ran");
        let expected = [
            "round (blocked by and-round)",
            "and-round (blocked by round)",
            "begun (in progress, but not under way)",
            "lost (blocked by gone, which is not in the list)",
        ];
        assert_eq!(found, expected);
    }
}
