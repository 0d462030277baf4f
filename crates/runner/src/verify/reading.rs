//! Reading the files of a project that decide what its checks mean: files that define checks, and
//! files with tests. No process is started, and no link out of the repository is followed.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use atomic_event::{ProjectRead, TestFile};
use atomic_files::{FileKind, Folder, PROJECT_LIMIT, Root};
use atomic_registry::project::ProjectFiles;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::definition::{defines_checks, named_in_commands};
use super::test_file::{may_hold_tests, measured};

/// The largest number of names that are looked at. Folders near the root come first.
const MOST_NAMES: usize = 50_000;

/// The largest number of files that are read.
const MOST_FILES: usize = 5_000;

/// Folders that hold what tools have made or downloaded.
const MADE: [&str; 12] = [
    "target",
    "node_modules",
    "vendor",
    "dist",
    "build",
    "out",
    "venv",
    "__pycache__",
    "bower_components",
    "coverage",
    "Pods",
    "site-packages",
];

/// Hidden folders that define checks.
const HIDDEN: [&str; 5] = [".cargo", ".config", ".github", ".circleci", ".buildkite"];

/// What was in the files at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) branch: Option<String>,
    pub(crate) definitions: BTreeMap<String, String>,
    pub(crate) tests: BTreeMap<String, TestFile>,
    pub(crate) partial: bool,
}

impl Reading {
    /// Reads a project. `commands` are the checks that the user has given.
    pub(crate) fn of(folder: &Path, commands: &[String]) -> Option<Self> {
        let root = Root::open(folder).ok()?;
        let branch = crate::commit::head(folder).map(|head| head.branch);
        let mut reading = Self { branch, ..Self::default() };
        reading.walk(&root, root.folder(Path::new("")).ok()?);
        // A command can name a file that is not found by its own name, also one behind a link.
        if let Ok(files) = ProjectFiles::of(folder, std::env::home_dir().as_deref()) {
            for name in named_in_commands(commands) {
                if let Ok(bytes) = files.read(Path::new(&name), PROJECT_LIMIT) {
                    reading.definitions.insert(name, hash(&bytes));
                }
            }
        }
        Some(reading)
    }

    fn walk(&mut self, root: &Root, top: Folder) {
        let mut folders: VecDeque<(PathBuf, Folder)> = [(PathBuf::new(), top)].into();
        let (mut names, mut files) = (0, 0);
        while let Some((path, folder)) = folders.pop_front() {
            let Ok(entries) = folder.entries() else { continue };
            // A Python environment can have any name.
            if entries.iter().any(|(name, _)| name == "pyvenv.cfg") {
                continue;
            }
            for (name, kind) in entries {
                names += 1;
                if names > MOST_NAMES {
                    self.partial = true;
                    return;
                }
                let (Some(text), place) = (name.to_str(), path.join(&name)) else { continue };
                match kind {
                    FileKind::Folder if is_walked(text) => {
                        folders.extend(folder.folder(&name).ok().map(|inner| (place, inner)));
                    }
                    FileKind::Regular | FileKind::Link if is_read(&place) => {
                        files += 1;
                        if files > MOST_FILES {
                            self.partial = true;
                            return;
                        }
                        self.take(root, &place);
                    }
                    FileKind::Folder
                    | FileKind::Regular
                    | FileKind::Link
                    | FileKind::Fifo
                    | FileKind::Socket
                    | FileKind::Device => {}
                }
            }
        }
    }

    /// Takes in one file. A file that cannot be read as text counts as not there.
    fn take(&mut self, root: &Root, place: &Path) {
        let Ok(text) = root.read_text(place, PROJECT_LIMIT) else { return };
        let name = place.to_string_lossy().into_owned();
        if let Some(definition) = defines_checks(place).map(|part| part.of(&text))
            && !definition.is_empty()
        {
            self.definitions.insert(name.clone(), hash(definition.as_bytes()));
        }
        if let Some(measures) = measured(place, &text) {
            self.tests.insert(name, TestFile { hash: hash(text.as_bytes()), ..measures });
        }
    }

    /// What differs from the reading before; nothing when nothing does.
    pub(crate) fn since(&self, before: Option<&Self>) -> Option<ProjectRead> {
        let nothing = Self::default();
        let known = before.unwrap_or(&nothing);
        let branch = Some(self.branch.clone().unwrap_or_default())
            .filter(|_| before.is_none() || self.branch != known.branch);
        let read = ProjectRead {
            first: before.is_none(),
            branch,
            definitions: differing(&known.definitions, &self.definitions),
            tests: differing(&known.tests, &self.tests),
            partial: self.partial,
        };
        let is_new = read.first
            || read.branch.is_some()
            || !read.definitions.is_empty()
            || !read.tests.is_empty();
        is_new.then_some(read)
    }

    /// Brings the reading up to date.
    pub(crate) fn apply(&mut self, read: &ProjectRead) {
        if let Some(branch) = &read.branch {
            self.branch = Some(branch.clone()).filter(|branch| !branch.is_empty());
        }
        update(&mut self.definitions, &read.definitions);
        update(&mut self.tests, &read.tests);
        self.partial = read.partial;
    }
}

fn is_walked(name: &str) -> bool {
    !MADE.contains(&name) && (!name.starts_with('.') || HIDDEN.contains(&name))
}

fn is_read(place: &Path) -> bool {
    defines_checks(place).is_some() || may_hold_tests(place)
}

/// The entries that are another one now, or gone.
fn differing<V: Clone + PartialEq>(
    before: &BTreeMap<String, V>,
    now: &BTreeMap<String, V>,
) -> BTreeMap<String, Option<V>> {
    let changed = now.iter().filter(|(name, value)| before.get(*name) != Some(value));
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let changed = changed.map(|(name, value)| (name.clone(), Some(value.clone())));
    changed.chain(gone.map(|name| (name.clone(), None))).collect()
}

fn update<V: Clone>(all: &mut BTreeMap<String, V>, changes: &BTreeMap<String, Option<V>>) {
    for (name, value) in changes {
        match value {
            Some(value) => drop(all.insert(name.clone(), value.clone())),
            None => drop(all.remove(name)),
        }
    }
}

/// The beginning of a hash: enough to tell two texts apart.
fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
