//! The sum of the decisions about one repository.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use atomic_registry::project::{Definition, DefinitionId};
use serde::{Deserialize, Serialize};

use super::Change;
use super::store::{Decision, SeenState};

/// A definition as it was when the user decided about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) digest: String,
    /// The beginning of its text; empty where none was kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) text: String,
}

/// Definitions by id, as they are at one time.
pub(crate) type Snapshot = BTreeMap<DefinitionId, Version>;

/// The largest number of bytes of texts that one decision keeps.
const MOST_TEXT: usize = 256 << 10;

/// Returns the ids and hashes of definitions, and their texts as far as there is room.
pub(crate) fn snapshot<'d>(definitions: impl IntoIterator<Item = &'d Definition>) -> Snapshot {
    let mut room = MOST_TEXT;
    let version = |definition: &Definition| {
        let rest = room.checked_sub(definition.text.len());
        room = rest.unwrap_or(room);
        let text = rest.map_or_else(String::new, |_| definition.text.clone());
        (definition.id(), Version { digest: definition.digest.clone(), text })
    };
    definitions.into_iter().map(version).collect()
}

/// The sum of the decisions about one repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// Whether the repository was trusted.
    pub(crate) is_trusted: bool,
    /// Whether trust was taken back. Only a decision to trust the repository ends this.
    pub(crate) is_withdrawn: bool,
    /// The states that may be used.
    pub(crate) trusted: Agreed,
    /// The states without which runs go on.
    pub(crate) declined: Agreed,
    /// Each state that a run may use when it is resumed.
    pub(crate) once: Vec<Agreed>,
    /// The folders in which the user has decided to trust, from the repository's root.
    pub(crate) folders: BTreeSet<PathBuf>,
}

impl Remembered {
    /// Takes the next decision about the repository `root` into account.
    pub(super) fn follow(&mut self, decision: &Decision, root: &Path) {
        match decision {
            Decision::Trusted { folder, state } => {
                self.is_trusted = true;
                self.is_withdrawn = false;
                self.folders.insert(folder.clone());
                self.declined.forget(state, root);
                self.trusted.add(state, root);
            }
            Decision::Allowed { definitions } => {
                let state = SeenState { definitions: definitions.clone(), ..SeenState::default() };
                self.declined.forget(&state, root);
                self.trusted.add(&state, root);
            }
            Decision::Once(state) => {
                let mut once = Agreed::default();
                once.add(state, root);
                if !self.once.contains(&once) {
                    self.once.push(once);
                }
            }
            Decision::Declined(state) => self.declined.add(state, root),
            Decision::Ran { .. } => {}
            Decision::Withdrawn => *self = Self { is_withdrawn: true, ..Self::default() },
        }
    }
}

/// States of definitions on which the user has given the same answer. Worktrees and branches of a
/// repository differ, so a definition has several versions, and it may be absent in one worktree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// The versions of each definition, the newest last.
    versions: BTreeMap<DefinitionId, Vec<Version>>,
    /// Definitions that are gone, each with the worktree.
    absent: BTreeSet<(PathBuf, DefinitionId)>,
}

impl Agreed {
    fn add(&mut self, state: &SeenState, root: &Path) {
        for (id, version) in &state.definitions {
            let versions = self.versions.entry(id.clone()).or_default();
            versions.retain(|known| known.digest != version.digest);
            versions.push(version.clone());
        }
        let absent = state.removed.iter().map(|id| (worktree(state, root), id.clone()));
        self.absent.extend(absent);
    }

    fn forget(&mut self, state: &SeenState, root: &Path) {
        for (id, version) in &state.definitions {
            if let Some(versions) = self.versions.get_mut(id) {
                versions.retain(|known| known.digest != version.digest);
            }
        }
        self.versions.retain(|_, versions| !versions.is_empty());
        for id in &state.removed {
            self.absent.remove(&(worktree(state, root), id.clone()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.absent.is_empty()
    }

    /// The ids of all definitions.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &DefinitionId> {
        self.versions.keys()
    }

    /// The newest version of a definition.
    pub(crate) fn newest(&self, id: &DefinitionId) -> Option<&Version> {
        self.versions.get(id)?.last()
    }

    /// Whether the user has seen this definition with this hash.
    pub(crate) fn has(&self, id: &DefinitionId, digest: &str) -> bool {
        let versions = self.versions.get(id).into_iter().flatten();
        versions.into_iter().any(|version| version.digest == digest)
    }

    /// Whether the user has seen that a definition is gone from a worktree.
    pub(crate) fn lacks(&self, worktree: &Path, id: &DefinitionId) -> bool {
        self.absent.contains(&(worktree.to_owned(), id.clone()))
    }

    /// Whether the user has seen the state of a worktree that follows from a change.
    pub(crate) fn covers(&self, change: &Change, worktree: &Path) -> bool {
        match change {
            Change::Added(definition) | Change::Unseen(definition) => {
                self.has(&definition.id(), &definition.digest)
            }
            Change::Changed { definition, .. } => self.has(&definition.id(), &definition.digest),
            Change::Removed { id, .. } => self.lacks(worktree, id),
        }
    }
}

fn worktree(state: &SeenState, root: &Path) -> PathBuf {
    let is_given = !state.worktree.as_os_str().is_empty();
    if is_given { state.worktree.clone() } else { root.to_owned() }
}
