//! What the engine itself found out about the work: results of checks, and files that define them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of the checks that the engine ran in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// Whether the checks ran before any work was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baseline: bool,
    /// The checks, in the order in which they ran.
    pub checks: Vec<CheckResult>,
    /// Why a green check verifies nothing here, such as that workers shared the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hindrance: Option<String>,
    /// The git tree that the checks ran on, where git may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    /// The commit that was checked out and holds exactly that tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The task that this one mends, while that task is not completed: its unfinished work is in the
    /// tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mends: Option<String>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    /// The command.
    pub command: String,
    /// Whether it succeeded.
    pub green: bool,
    /// Its last result on accepted work.
    pub before: CheckedBefore,
}

/// The last result of a check on accepted work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckedBefore {
    /// The check was green.
    Green,
    /// The check was red from the start.
    Red,
    /// The check has never been green, and did not exist at the start.
    New,
}

/// The files of a project that decide what its checks mean, as far as they differ from the reading
/// before. Paths are from the project's folder; null means that a file is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectRead {
    /// Whether there was no reading before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first: bool,
    /// The git branch that is checked out; absent when it is the one of the reading before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Hashes of what defines the checks, by file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub definitions: BTreeMap<String, Option<String>>,
    /// Files with tests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tests: BTreeMap<String, Option<TestFile>>,
    /// Whether the project has more files than are read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Files that the checks themselves write, such as reports. Such a file defines no check.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub written: BTreeSet<String>,
}

/// The size of a file with tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFile {
    /// Hash of its text, by which a file that was only moved is recognised.
    pub hash: String,
    /// Lines that are neither empty nor comments; 0 for a source file that has tests in it.
    #[serde(default)]
    pub lines: u64,
    /// Tests, as far as they can be told by their first lines.
    #[serde(default)]
    pub tests: u64,
    /// Tests that are marked as skipped.
    #[serde(default)]
    pub skipped: u64,
}

/// The number of tasks that checks have verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Tasks verified by a check that was green before.
    pub checked: usize,
    /// Tasks verified by a check that they brought or changed themselves.
    pub own: usize,
    /// All tasks of the run.
    pub total: usize,
    /// The checks that were green before and verified tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}
