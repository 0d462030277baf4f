//! Reading the files of a project that decide what its checks mean: files that define checks, and
//! files with tests. No process is started, and no link out of the repository is followed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use atomic_event::{ProjectRead, TestFile};
use atomic_files::{FileKind, FileState, Folder, PROJECT_LIMIT};
use atomic_registry::project::ProjectFiles;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::command::words;
use super::definition::{Part, defines_checks, has_units};
use super::test_file::{may_hold_tests, measured};

/// The largest number of names that are looked at. Folders near the root come first.
const MOST_NAMES: usize = 50_000;

/// The largest number of files that are read.
const MOST_FILES: usize = 5_000;

/// The largest number of files whose rules and scripts are followed.
pub(super) const MOST_SOURCES: usize = 200;

/// Folders that hold what tools have made or downloaded.
const MADE: [&str; 7] =
    ["node_modules", "vendor", "venv", "__pycache__", "bower_components", "Pods", "site-packages"];

/// Folders that tools make beside the file that they are set up by. Elsewhere, as in `src/build`,
/// such a folder has files that people wrote.
const BUILT: [&str; 5] = ["target", "dist", "build", "out", "coverage"];

/// Files beside which tools build.
const BUILT_BESIDE: [&str; 14] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "go.mod",
    "Makefile",
    "CMakeLists.txt",
    "meson.build",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "pubspec.yaml",
];

/// Hidden folders that define checks.
const HIDDEN: [&str; 9] = [
    ".cargo",
    ".config",
    ".github",
    ".gitea",
    ".forgejo",
    ".circleci",
    ".buildkite",
    ".woodpecker",
    ".semaphore",
];

/// Stands for the hash of a definition that is too large to be read.
const TOO_LARGE: &str = "too large";

/// The identity and time of last change of each file that defines a check.
pub(crate) type FileStates = BTreeMap<String, FileState>;

/// What was in the files at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(crate) branch: Option<String>,
    pub(crate) definitions: BTreeMap<String, String>,
    pub(crate) tests: BTreeMap<String, TestFile>,
    pub(crate) partial: bool,
    /// Files that the checks themselves write.
    #[serde(default)]
    pub(crate) written: BTreeSet<String>,
    /// Details that only this reading of the files knows.
    #[serde(skip)]
    pub(super) scan: Scan,
}

/// How the files were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Every file that was looked for.
    looked_at: BTreeSet<String>,
    /// Files that are too large to be read.
    unread: BTreeSet<String>,
    /// Files that define a check only because its command names them.
    named: BTreeSet<String>,
    states: FileStates,
    /// Files with rules and scripts.
    pub(super) sources: Vec<Source>,
    /// The words of the checks.
    pub(super) words: Vec<String>,
}

/// A file with rules or scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The folder in which its commands run.
    pub(super) folder: PathBuf,
    pub(super) place: PathBuf,
    pub(super) text: String,
}

impl Reading {
    /// Reads a project. `commands` are its checks, and `known` the files that were read before:
    /// these are read also where the project has more files than are read otherwise.
    pub(crate) fn of(folder: &Path, commands: &[String], known: &[String]) -> Option<Self> {
        let files = ProjectFiles::of(folder, std::env::home_dir().as_deref()).ok()?;
        let branch = crate::commit::head(folder).map(|head| head.branch);
        let mut reading = Self { branch, ..Self::default() };
        let text = commands.join(" ");
        reading.scan.words = words(&text).into_iter().map(str::to_owned).collect();
        reading.walk(&files, Path::new(""), false);
        let mut above = PathBuf::new();
        for _ in 0..files.depth() {
            above.push("..");
            reading.walk(&files, &above, true);
        }
        reading.take_named(&files, commands);
        if reading.partial {
            for name in known {
                if !reading.scan.looked_at.contains(name) {
                    reading.take(&files, Path::new(name));
                }
            }
        }
        Some(reading)
    }

    /// Reads the files below a folder; of one above the project only those that define checks for
    /// everything below it.
    fn walk(&mut self, files: &ProjectFiles, top: &Path, is_above: bool) {
        let Ok(folder) = files.folder(top) else { return };
        let mut folders: VecDeque<(PathBuf, Folder)> = [(top.to_owned(), folder)].into();
        let (mut names, mut read) = (0, 0);
        while let Some((path, folder)) = folders.pop_front() {
            let Ok(entries) = folder.entries() else { continue };
            let has = |wanted: &[&str]| {
                entries.iter().any(|(name, _)| wanted.iter().any(|it| name == *it))
            };
            // A Python environment can have any name.
            if path != top && has(&["pyvenv.cfg"]) {
                continue;
            }
            let is_built_here = path == top || has(&BUILT_BESIDE);
            for (name, kind) in entries {
                names += 1;
                if names > MOST_NAMES {
                    self.partial = true;
                    return;
                }
                let (Some(text), place) = (name.to_str(), path.join(&name)) else { continue };
                match kind {
                    FileKind::Folder if is_walked(text, is_built_here, is_above && path == top) => {
                        folders.extend(folder.folder(&name).ok().map(|inner| (place, inner)));
                    }
                    FileKind::Regular | FileKind::Link if is_read(&place, is_above) => {
                        read += 1;
                        if read > MOST_FILES {
                            self.partial = true;
                            return;
                        }
                        self.take(files, &place);
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

    /// Takes in one file. What is not a regular file in the repository counts as not there.
    fn take(&mut self, files: &ProjectFiles, place: &Path) {
        let name = place.to_string_lossy().into_owned();
        self.scan.looked_at.insert(name.clone());
        let Ok((state, bytes)) = opened(files, place) else { return };
        let Some(bytes) = bytes else {
            self.scan.unread.insert(name.clone());
            if defines_checks(place).is_some() {
                self.definitions.insert(name, TOO_LARGE.to_owned());
            }
            return;
        };
        if let Some(part) = defines_checks(place) {
            let definition = part.of(&bytes, &self.scan.words);
            if !definition.is_empty() {
                self.scan.states.insert(name.clone(), state);
                self.definitions.insert(name.clone(), hash(&definition));
            }
        }
        if has_units(place) && self.scan.sources.len() < MOST_SOURCES {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let folder = place.parent().unwrap_or(Path::new("")).to_owned();
            self.scan.sources.push(Source { folder, place: place.to_owned(), text });
        }
        // Most tests are text; of the others the hash tells whether they are the same.
        if let Some(measures) = measured(place, &String::from_utf8_lossy(&bytes)) {
            self.tests.insert(name, TestFile { hash: hash(&bytes), ..measures });
        }
    }

    /// Takes in a file that the command of a check names, and returns its text. A program that was
    /// built changes with every task, and defines nothing.
    pub(super) fn take_as_named(&mut self, files: &ProjectFiles, place: &Path) -> Option<String> {
        let (state, bytes) = opened(files, place).ok()?;
        let name = place.to_string_lossy().into_owned();
        self.scan.looked_at.insert(name.clone());
        let digest = bytes.as_ref().map_or_else(|| TOO_LARGE.to_owned(), |bytes| hash(bytes));
        let bytes = bytes.unwrap_or_default();
        let is_other = matches!(defines_checks(place), None | Some(Part::WholeFor(_)));
        if is_other && !bytes.iter().take(8_000).any(|byte| *byte == 0) {
            self.scan.states.insert(name.clone(), state);
            self.scan.named.insert(name.clone());
            self.definitions.insert(name, digest);
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// When the files that define checks were changed last.
    pub(crate) fn states(&self) -> FileStates {
        self.scan.states.clone()
    }

    /// Finds the files that checks have written which ran since `before`. Before any work is done
    /// everything that they write or remove is the result of a check, and later what was not there,
    /// or what they build anew.
    pub(crate) fn find_written(&mut self, before: &FileStates, is_baseline: bool) {
        let is_written = |name: &String, state: &FileState| match before.get(name) {
            Some(old) => {
                let is_rebuilt = || self.scan.named.contains(name) && is_built(name);
                old != state && (is_baseline || is_rebuilt())
            }
            None => is_baseline || self.scan.named.contains(name),
        };
        let found = self.scan.states.iter().filter(|(name, state)| is_written(name, state));
        let found = found.map(|(name, _)| name);
        let removed = before.keys().filter(|name| {
            is_baseline
                && !self.definitions.contains_key(*name)
                && !self.scan.unread.contains(*name)
        });
        self.written = found.chain(removed).cloned().collect();
    }

    /// The names of all files in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let tests = self.tests.keys().filter(|name| !self.definitions.contains_key(*name));
        self.definitions.keys().chain(tests).cloned().collect()
    }

    /// What differs from the reading before; nothing when nothing does.
    pub(crate) fn since(&self, before: Option<&Self>) -> Option<ProjectRead> {
        let nothing = Self::default();
        let known = before.unwrap_or(&nothing);
        let branch = Some(self.branch.clone().unwrap_or_default())
            .filter(|_| before.is_none() || self.branch != known.branch);
        let written: BTreeSet<String> = self.written.difference(&known.written).cloned().collect();
        let mut definitions = self.differing(&known.definitions, &self.definitions);
        definitions.retain(|name, _| !known.written.contains(name) && !written.contains(name));
        let read = ProjectRead {
            first: before.is_none(),
            branch,
            definitions,
            tests: self.differing(&known.tests, &self.tests),
            partial: self.partial,
            written,
        };
        let is_new = read.first
            || read.branch.is_some()
            || !read.definitions.is_empty()
            || !read.tests.is_empty()
            || !read.written.is_empty()
            || read.partial != known.partial;
        is_new.then_some(read)
    }

    /// The entries that are another one now, or gone.
    fn differing<V: Clone + PartialEq>(
        &self,
        before: &BTreeMap<String, V>,
        now: &BTreeMap<String, V>,
    ) -> BTreeMap<String, Option<V>> {
        let changed = now.iter().filter(|(name, value)| before.get(*name) != Some(value));
        let is_gone = |name: &&String| {
            !now.contains_key(*name)
                && !self.scan.unread.contains(*name)
                && (!self.partial || self.scan.looked_at.contains(*name))
        };
        let gone = before.keys().filter(is_gone);
        let changed = changed.map(|(name, value)| (name.clone(), Some(value.clone())));
        changed.chain(gone.map(|name| (name.clone(), None))).collect()
    }

    /// Brings the reading up to date.
    pub(crate) fn apply(&mut self, read: &ProjectRead) {
        if let Some(branch) = &read.branch {
            self.branch = Some(branch.clone()).filter(|branch| !branch.is_empty());
        }
        update(&mut self.definitions, &read.definitions);
        update(&mut self.tests, &read.tests);
        self.partial = read.partial;
        self.written.extend(read.written.iter().cloned());
        self.definitions.retain(|name, _| !read.written.contains(name));
    }
}

/// Whether a file lies in a folder that tools build.
fn is_built(name: &str) -> bool {
    let folders = Path::new(name).parent().into_iter().flat_map(Path::components);
    folders.filter_map(|part| part.as_os_str().to_str()).any(|folder| BUILT.contains(&folder))
}

fn is_walked(name: &str, is_built_here: bool, is_above: bool) -> bool {
    if name.starts_with('.') {
        return HIDDEN.contains(&name);
    }
    let is_made = MADE.contains(&name) || (is_built_here && BUILT.contains(&name));
    !is_above && !is_made
}

fn is_read(place: &Path, is_above: bool) -> bool {
    defines_checks(place).is_some() || (!is_above && may_hold_tests(place))
}

/// Opens and reads a file; no bytes when it is too large.
fn opened(files: &ProjectFiles, place: &Path) -> io::Result<(FileState, Option<Vec<u8>>)> {
    let file: File = files.open(place)?;
    let state = FileState::of_file(&file)?;
    if state.size > PROJECT_LIMIT {
        return Ok((state, None));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(state.size).unwrap_or_default());
    // A file that grows meanwhile is read to the limit.
    file.take(PROJECT_LIMIT).read_to_end(&mut bytes)?;
    Ok((state, Some(bytes)))
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
