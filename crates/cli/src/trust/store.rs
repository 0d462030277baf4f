//! Decisions about repositories, kept in the user's home folder.
//!
//! One line per decision, appended with one write, so that several programs can decide at once and
//! a damaged line takes no other with it. Nothing in a project can decide for itself.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use atomic_registry::project::{DefinitionId, path_text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::remembered::{Remembered, Snapshot, Version};
use crate::failure::Failure;
use crate::home;

/// Every decision the user has made.
#[derive(Debug, Default)]
pub(crate) struct TrustStore {
    /// The oldest first.
    entries: Vec<Entry>,
    /// The reason why the file cannot be read.
    problem: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    at: Timestamp,
    /// The repository's identity.
    #[serde(with = "path_text")]
    root: PathBuf,
    #[serde(flatten)]
    decision: Decision,
}

/// A decision about a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum Decision {
    /// These definitions may be used, from now on.
    Trusted {
        /// The folder in which the user decided, from the repository's root. Definitions of other
        /// folders were not listed.
        #[serde(with = "path_text")]
        folder: PathBuf,
        #[serde(flatten)]
        state: SeenState,
    },
    /// These definitions may be used, and nothing is decided about others: Atomic itself wrote them
    /// for the user, or the user was asked about just these.
    Allowed {
        #[serde(with = "listed")]
        definitions: Snapshot,
    },
    /// These definitions may be used by the run that began then, also when it is resumed.
    Once(SeenState),
    /// Runs go on without these definitions.
    Declined(SeenState),
    /// This workflow code was run: a session that has kept it may be resumed.
    Ran { hash: String },
    /// Nothing before this counts any more.
    Withdrawn,
}

/// The state of a worktree that a decision is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SeenState {
    #[serde(with = "listed")]
    pub(crate) definitions: Snapshot,
    /// The ids of trusted definitions that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) removed: Vec<DefinitionId>,
    /// The root of the worktree from which they are gone; empty for the repository's own root.
    #[serde(default, with = "path_text", skip_serializing_if = "is_empty")]
    pub(crate) worktree: PathBuf,
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

/// Definitions with their hashes as a list: the keys of a JSON object are texts.
mod listed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{DefinitionId, Snapshot, Version};

    #[derive(Serialize, Deserialize)]
    struct Row<I, V> {
        #[serde(flatten)]
        id: I,
        #[serde(flatten)]
        version: V,
    }

    pub(super) fn serialize<S: Serializer>(all: &Snapshot, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(all.iter().map(|(id, version)| Row { id, version }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Snapshot, D::Error> {
        let rows: Vec<Row<DefinitionId, Version>> = Vec::deserialize(from)?;
        Ok(rows.into_iter().map(|row| (row.id, row.version)).collect())
    }
}

/// The largest file of decisions that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// The file with the decisions; without a home folder nothing can be remembered.
fn place() -> Option<PathBuf> {
    Some(home::folder()?.join("trust.jsonl"))
}

impl TrustStore {
    /// Reads the decisions. A line that cannot be parsed gives no trust and takes no other with it.
    pub(crate) fn read() -> Self {
        let Some(path) = place() else { return Self::default() };
        match atomic_files::read(&path, LARGEST) {
            Ok(bytes) => Self { entries: parsed(&bytes), problem: None },
            Err(error) if error.kind() == ErrorKind::NotFound => Self::default(),
            Err(error) => {
                let problem = format!("{}: cannot be read: {error}", path.display());
                Self { entries: vec![], problem: Some(problem) }
            }
        }
    }

    /// The reason why the decisions cannot be read.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns the sum of the decisions about a repository. Where the file cannot be read, trust counts
    /// as withdrawn: a withdrawal may stand in it.
    pub(crate) fn about(&self, root: &Path) -> Remembered {
        let mut known =
            Remembered { is_withdrawn: self.problem.is_some(), ..Remembered::default() };
        for entry in self.entries.iter().filter(|entry| entry.root == root) {
            known.follow(&entry.decision, root);
        }
        known
    }

    /// Whether exactly this workflow code was run before and trust was not taken back since,
    /// wherever that was: what a session says about where its code comes from is no proof.
    pub(crate) fn has_run(&self, code: &str) -> bool {
        let mut roots: Vec<&Path> = vec![];
        for entry in &self.entries {
            match &entry.decision {
                Decision::Ran { hash } if hash == code => roots.push(&entry.root),
                Decision::Withdrawn => roots.retain(|root| *root != entry.root),
                Decision::Ran { .. }
                | Decision::Trusted { .. }
                | Decision::Allowed { .. }
                | Decision::Once(_)
                | Decision::Declined(_) => {}
            }
        }
        !roots.is_empty()
    }

    /// Every repository about which something was decided, in the order of first mention.
    pub(crate) fn roots(&self) -> Vec<&Path> {
        let mut roots: Vec<&Path> = vec![];
        for entry in &self.entries {
            if !roots.contains(&entry.root.as_path()) {
                roots.push(&entry.root);
            }
        }
        roots
    }

    /// Remembers a decision about a repository. A line that would change nothing is not written: a
    /// script may trust the same repository every day.
    pub(crate) fn decide(&mut self, root: &Path, decision: Decision) -> Result<(), Failure> {
        let path = place().ok_or_else(|| {
            Failure::Failed(
                "there is no home folder to remember a decision in\n  hint: set HOME, or pass \
                 --trust each time"
                    .to_owned(),
            )
        })?;
        let before = self.about(root);
        let mut after = before.clone();
        after.follow(&decision, root);
        let is_plain = !matches!(decision, Decision::Ran { .. } | Decision::Withdrawn);
        if is_plain && self.problem.is_none() && before == after {
            return Ok(());
        }
        let entry = Entry { at: Timestamp::now(), root: root.to_owned(), decision };
        append(&path, &entry).map_err(|error| {
            Failure::Failed(format!("{}: cannot be written: {error}", path.display()))
        })?;
        self.entries.push(entry);
        Ok(())
    }
}

fn parsed(bytes: &[u8]) -> Vec<Entry> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

fn append(path: &Path, entry: &Entry) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).mode(0o600).open(path)?;
    // A line that was cut off must not take this one with it.
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last)?;
    }
    let torn = if last == *b"\n" { "" } else { "\n" };
    let line = format!("{torn}{}\n", serde_json::to_string(entry)?);
    file.write_all(line.as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::{Decision, parsed};

    #[test]
    fn a_damaged_line_takes_no_other_with_it_and_older_lines_have_no_text() {
        let trusted = r#"{"at":"2026-01-01T00:00:00Z","root":"/a","decision":"trusted","folder":"","definitions":[{"kind":"hook","path":"f","name":"Stop","digest":"00"}],"removed":[{"kind":"git","name":"x"}]}"#;
        let withdrawn = r#"{"at":"2026-01-01T00:00:00Z","root":"/a","decision":"withdrawn"}"#;
        let mut bytes = format!("{trusted}\n{{\"at\":\"").into_bytes();
        bytes.extend(b"\xff\n");
        bytes.extend(withdrawn.as_bytes());
        let entries = parsed(&bytes);
        let [Decision::Trusted { state, .. }, Decision::Withdrawn] =
            [&entries[0].decision, &entries[1].decision]
        else {
            panic!("{entries:?}");
        };
        assert_eq!((state.definitions.len(), state.removed.len()), (1, 1));
        assert_eq!(parsed(&serde_json::to_vec(&entries[0]).unwrap()), entries[..1]);
    }
}
