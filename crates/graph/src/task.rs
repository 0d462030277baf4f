//! Rows of a task list in the state, whichever of the known words they use: Atomic's own (`content`,
//! `blockedBy`, `completed`), `title` and `blocked` of workflow files, and those of version 1.0 of
//! the task file (`name`, `dependencies`, `passing`).

use std::collections::BTreeSet;

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

/// The keys of what a task waits for, in order of precedence.
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
        let listed = BLOCKER_KEYS.iter().find_map(|key| self.0.get(key)?.as_array());
        listed.into_iter().flatten().filter_map(Value::as_str)
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
