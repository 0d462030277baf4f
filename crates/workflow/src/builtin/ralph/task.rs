//! A row of the task list, as Ralph keeps it in the state.

use serde::{Deserialize, Serialize};

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) content: String,
    pub(super) active_form: String,
    pub(super) status: Status,
    pub(super) blocked_by: Vec<String>,
    pub(super) description: String,
    pub(super) acceptance_criteria: Vec<String>,
    /// What went wrong last.
    pub(super) error: Option<String>,
    /// The code of what went wrong last.
    pub(super) error_code: Option<String>,
    /// More of it, for the one who has to mend it.
    pub(super) error_detail: Option<String>,
    /// How often it was tried and failed.
    pub(super) attempts: u32,
    /// How many bug-fix tasks it was given.
    pub(super) bug_fixes: u32,
    /// The task this one mends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mends: Option<String>,
    /// The task this one is put after when it enters the list.
    #[serde(rename = "$after", skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<String>,
}

/// How a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// The first line of `text`, no longer than `width` characters.
pub(super) fn one_line(text: &str, width: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let cut: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}
