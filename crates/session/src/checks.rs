//! What `session.json` says about the checks of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The checks of a run whose workflow runs some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckSummary {
    /// How many tasks are verified.
    pub verified: VerifiedCount,
    /// The checks that were green before and verified tasks.
    pub verified_by: Vec<String>,
    /// Checks that failed before any work was done.
    pub red_from_start: Vec<String>,
    /// Files that define checks and were changed.
    pub changed_checks: Vec<ChangedCheck>,
    /// Files whose tests were removed, shortened or skipped.
    pub removed_tests: Vec<RemovedTest>,
    /// The branch that is checked out, where it is not the one that the run began on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_branch: Option<ChangedBranch>,
    /// Every completed task, by its id.
    pub task_checks: BTreeMap<String, TaskCheck>,
}

/// How many tasks are verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedCount {
    /// Tasks verified by a check that was green before.
    pub checked: usize,
    /// Tasks verified by a check that they brought or changed themselves.
    pub own: usize,
    /// All tasks of the run.
    pub total: usize,
}

/// A file that defines checks and was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedCheck {
    /// Its path from the project's folder.
    pub file: String,
    /// The task during which it was changed.
    pub task: Option<String>,
}

/// A file that has fewer tests than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedTest {
    /// Its path from the project's folder.
    pub file: String,
    /// `removed`, `shortened` or `skipped`.
    pub what: String,
    /// The task during which that happened.
    pub task: Option<String>,
}

/// Another branch than the one that the run began on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedBranch {
    /// The run's branch.
    pub from: String,
    /// The branch that is checked out; empty for none.
    pub to: String,
    /// The task during which it was checked out.
    pub task: Option<String>,
}

/// What checks say about one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCheck {
    /// Whether the task is verified.
    pub verified: TaskVerdict,
    /// The git tree that the checks ran on; null where git was not asked.
    pub tree: Option<String>,
    /// The commit with exactly this tree; null where there is none, or git was not asked.
    pub commit: Option<String>,
}

/// Whether a task is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskVerdict {
    /// By a check that was green before.
    Checked,
    /// By a check that the task brought or changed itself.
    Own,
    /// The task is not verified.
    #[default]
    None,
}
