//! Decisions about repositories, kept in the user's home folder.
//!
//! One line per decision, appended with one write, so that several programs can decide at once and
//! a damaged line takes no other with it. Nothing in a project can decide for itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use atomic_registry::project::{Definition, DefinitionId, path_text};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::home;

/// Definitions by id, each with its hash.
pub(crate) type Digests = BTreeMap<DefinitionId, String>;

/// The ids and hashes of definitions.
pub(crate) fn digests<'d>(definitions: impl IntoIterator<Item = &'d Definition>) -> Digests {
    let entry = |definition: &Definition| (definition.id(), definition.digest.clone());
    definitions.into_iter().map(entry).collect()
}

/// Every decision the user has made.
#[derive(Debug, Default)]
pub(crate) struct TrustStore {
    /// The oldest first.
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    at: Timestamp,
    /// The repository's root.
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
        #[serde(with = "listed")]
        definitions: Digests,
        /// The ids of definitions that were trusted before and are gone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<DefinitionId>,
    },
    /// These definitions may be used, and nothing is decided about others: Atomic itself wrote them
    /// for the user, or the user was asked about just these.
    Allowed {
        #[serde(with = "listed")]
        definitions: Digests,
    },
    /// These definitions may be used by the run that began then, also when it is resumed.
    Once {
        #[serde(with = "listed")]
        definitions: Digests,
    },
    /// Runs go on without these definitions.
    Declined {
        #[serde(with = "listed")]
        definitions: Digests,
    },
    /// This workflow code was run: a session that has kept it may be resumed.
    Ran { hash: String },
    /// Nothing before this counts any more.
    Withdrawn,
}

/// Definitions with their hashes as a list: the keys of a JSON object are texts.
mod listed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{DefinitionId, Digests};

    #[derive(Serialize, Deserialize)]
    struct Row<I> {
        #[serde(flatten)]
        id: I,
        digest: String,
    }

    pub(super) fn serialize<S: Serializer>(all: &Digests, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(all.iter().map(|(id, digest)| Row { id, digest: digest.clone() }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Digests, D::Error> {
        let rows: Vec<Row<DefinitionId>> = Vec::deserialize(from)?;
        Ok(rows.into_iter().map(|row| (row.id, row.digest)).collect())
    }
}

/// What the decisions about one repository come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Remembered {
    /// Whether the repository was trusted.
    pub(crate) is_trusted: bool,
    /// Whether trust was taken back, and nothing was decided since.
    pub(crate) is_withdrawn: bool,
    /// The definitions that may be used.
    pub(crate) trusted: Digests,
    /// The definitions that a run may use when it is resumed, besides those.
    pub(crate) once: Vec<Digests>,
    /// The definitions without which runs go on, for each folder.
    pub(crate) declined: Vec<Digests>,
    /// The folders in which the user has decided to trust, from the repository's root.
    pub(crate) folders: BTreeSet<PathBuf>,
}

/// The largest file of decisions that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// The file with the decisions; without a home folder nothing can be remembered.
fn place() -> Option<PathBuf> {
    Some(home::folder()?.join("trust.jsonl"))
}

impl TrustStore {
    /// Reads the decisions. A line that cannot be read gives no trust.
    pub(crate) fn read() -> Self {
        let read = |path: PathBuf| atomic_files::read_text(&path, LARGEST).ok();
        let text = place().and_then(read).unwrap_or_default();
        let entries = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        Self { entries: entries.collect() }
    }

    /// What was decided about a repository.
    pub(crate) fn about(&self, root: &Path) -> Remembered {
        let mut known = Remembered::default();
        for entry in self.entries.iter().filter(|entry| entry.root == root) {
            match &entry.decision {
                Decision::Trusted { folder, definitions, removed } => {
                    known.is_trusted = true;
                    known.folders.insert(folder.clone());
                    known.trusted.retain(|id, _| !removed.contains(id));
                    known.trusted.extend(definitions.clone());
                    known.declined.clear();
                }
                Decision::Allowed { definitions } => known.trusted.extend(definitions.clone()),
                Decision::Once { definitions } => known.once.push(definitions.clone()),
                Decision::Declined { definitions } => known.declined.push(definitions.clone()),
                Decision::Ran { .. } => {}
                Decision::Withdrawn => known = Remembered::default(),
            }
            known.is_withdrawn = match entry.decision {
                Decision::Withdrawn => true,
                Decision::Ran { .. } => known.is_withdrawn,
                Decision::Trusted { .. }
                | Decision::Allowed { .. }
                | Decision::Once { .. }
                | Decision::Declined { .. } => false,
            };
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
                | Decision::Once { .. }
                | Decision::Declined { .. } => {}
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

    /// Remembers a decision about a repository.
    pub(crate) fn decide(&mut self, root: &Path, decision: Decision) -> Result<(), Failure> {
        let path = place().ok_or_else(|| {
            Failure::Failed(
                "there is no home folder to remember a decision in\n  hint: set HOME, or pass \
                 --trust each time"
                    .to_owned(),
            )
        })?;
        let entry = Entry { at: Timestamp::now(), root: root.to_owned(), decision };
        append(&path, &entry).map_err(|error| {
            Failure::Failed(format!("{}: cannot be written: {error}", path.display()))
        })?;
        self.entries.push(entry);
        Ok(())
    }
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
