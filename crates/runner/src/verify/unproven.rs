//! Changes that no green check has proved yet.

use std::collections::BTreeMap;

use atomic_event::{CheckResult, Checked, CheckedBefore, ProjectRead};
use serde::{Deserialize, Serialize};

/// What has changed since the checks last passed on accepted work. A check that passes now was not
/// green before with these changes, whoever made them: a failed attempt, a planner, or the user.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Unproven {
    /// Files that define checks and are different now, with their hashes at that time.
    definitions: BTreeMap<String, Option<String>>,
    /// Checks that were red or new at that time.
    checks: BTreeMap<String, CheckedBefore>,
    /// Whether an agent began to work on a task before the files were read.
    is_unread: bool,
}

impl Unproven {
    /// An agent works on a task, and nothing is known of the files before.
    pub(super) fn learn_unread(&mut self) {
        self.is_unread = true;
    }

    /// Takes in the definitions of these files, which were changed. `known` are those before.
    pub(super) fn learn_definitions(
        &mut self,
        known: &BTreeMap<String, String>,
        read: &ProjectRead,
        files: &[String],
    ) {
        let changed = files.iter().filter_map(|file| Some((file, read.definitions.get(file)?)));
        for (file, now) in changed {
            let proven = self.definitions.entry(file.clone());
            if proven.or_insert_with(|| known.get(file).cloned()) == now {
                // The file is again what it was when the checks passed.
                self.definitions.remove(file);
            }
        }
    }

    /// Takes in results, after the verdict on them.
    pub(super) fn learn_checks(&mut self, checked: &Checked, is_accepted: bool) {
        if is_accepted {
            *self = Self::default();
            return;
        }
        for check in checked.checks.iter().filter(|check| check.before != CheckedBefore::Green) {
            self.checks.entry(check.command.clone()).or_insert(check.before);
        }
    }

    /// Whether something that defines a check is not what it was.
    pub(super) fn has_definitions(&self) -> bool {
        self.is_unread || !self.definitions.is_empty()
    }

    /// The last result of a check on accepted work. A failed attempt may have turned the check
    /// green since.
    pub(super) fn before(&self, check: &CheckResult) -> CheckedBefore {
        match check.before {
            CheckedBefore::Green => {
                self.checks.get(&check.command).copied().unwrap_or(CheckedBefore::Green)
            }
            before @ (CheckedBefore::Red | CheckedBefore::New) => before,
        }
    }
}
