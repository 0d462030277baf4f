//! Finding sessions: in the list of all, and in the project one is in.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use atomic_event::{Created, Envelope, Event, Moment};
use atomic_files::shell_quoted;
use atomic_registry::project::{ProjectFiles, Repository};
use atomic_runner::{digest_of, index_entry, restored_text};
use atomic_session::{FindError, IndexEntry, KeepStatus, Listing, Session, keep_status};

use super::copied::{Copied, which_folder};
use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::{home, paint, stage};

/// Where the sessions of a project are, unless a workflow says otherwise.
pub(super) const FOLDERS: [&str; 2] = [".ralph/sessions", ".atomic/sessions"];

/// The sessions that can be found from here.
pub(super) struct Known {
    pub(super) listing: Listing,
    /// The ids in the user's own list.
    listed: BTreeSet<String>,
    /// Why those of other projects cannot be found.
    pub(super) problem: Option<String>,
}

/// Everything in the list of all, and what is in this project without being in that list, because
/// it could not be written or is another one now.
pub(super) fn known_sessions(here: &Path) -> Known {
    let (mut listing, problem) = match home::index(&stage::disk()).map(|index| index.entries()) {
        Some(Ok(listing)) => (listing, None),
        Some(Err(error)) => (Listing::default(), Some(error.to_string())),
        None => {
            let problem = "there is no home folder; set HOME or ATOMIC_HOME";
            (Listing::default(), Some(problem.to_owned()))
        }
    };
    let listed: BTreeSet<String> =
        listing.entries.iter().map(|entry| entry.session.to_string()).collect();
    let files = ProjectFiles::of(here, home::user().as_deref());
    for folder in FOLDERS.map(|folder| here.join(folder)) {
        // A folder behind a link out of the repository holds no sessions of this project.
        let real = files.as_ref().ok().and_then(|files| files.resolve(&folder).ok());
        listing.entries.extend(real.into_iter().flat_map(|folder| unlisted(&folder, &listed)));
    }
    listing.entries.sort_by_key(|entry| Reverse(entry.created_at));
    Known { listing, listed, problem }
}

/// Whether a session was begun by this user on this machine, here or where the project was before.
pub(super) fn is_listed(dir: &Path) -> bool {
    let entries = home::index(&stage::disk()).and_then(|index| index.entries().ok());
    let is_it = |entry: &IndexEntry| {
        entry.dir == dir
            || entry.dir.canonicalize().ok().as_deref() == Some(dir)
            || is_same_session(entry, dir)
    };
    entries.is_some_and(|listing| listing.entries.iter().any(is_it))
}

/// Whether the session in a folder is about the same as one of the list. The id alone proves nothing:
/// somebody who has seen it can write a journal with other commands.
fn is_same_session(entry: &IndexEntry, dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == entry.session.as_str())
        && first_of(dir).is_some_and(|(_, created)| {
            entry.digest.as_ref().is_some_and(|digest| *digest == digest_of(&created))
        })
}

/// The sessions in a folder that are not in the list. Only their journals are read.
fn unlisted(folder: &Path, listed: &BTreeSet<String>) -> Vec<IndexEntry> {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folders
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            // One that is still being made has a name that begins with a dot.
            !name.starts_with('.') && !listed.contains(&name)
        })
        .filter_map(|entry| described(&entry.path()))
        .collect()
}

/// A session as the list has it, by its first fact.
fn described(dir: &Path) -> Option<IndexEntry> {
    first_of(dir).map(|(at, created)| index_entry(&created, dir, at))
}

fn first_of(dir: &Path) -> Option<(Moment, Created)> {
    let first = Session::read_only(stage::disk(), dir).ok()?.next()?.ok()?;
    let Envelope { at, event: Event::SessionCreated(created), .. } = first else { return None };
    Some((at, *created))
}

/// A session that was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundSession {
    /// Its folder.
    pub(crate) dir: PathBuf,
    /// The folder it works in, where that is not the one in its first fact.
    pub(crate) workspace: Option<PathBuf>,
    /// Whether it belongs to a copy of the project, and the user wants to work in the copy. Then it
    /// must not go on under its own id.
    pub(crate) is_copy: bool,
}

/// Finds a session by its folder, its id, the beginning of one, or `last`. In a copy of a project
/// the user is asked which folder is meant; `command` is what was typed, with `{}` for the session.
pub(crate) fn find_session(
    text: &str,
    args: SessionArgs,
    command: &str,
) -> Result<FoundSession, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    Finder { here, args, command: Some(command) }.find(text)
}

/// Finds a session for an editor, in whose folder it is looked for. Nobody can be asked.
pub(crate) fn find_session_in(here: &Path, text: &str) -> Result<FoundSession, Failure> {
    let args = SessionArgs::default();
    Finder { here: here.to_owned(), args, command: None }.find(text)
}

/// The place and the flags with which a session is looked for.
struct Finder<'c> {
    here: PathBuf,
    args: SessionArgs,
    command: Option<&'c str>,
}

impl Finder<'_> {
    fn find(&self, text: &str) -> Result<FoundSession, Failure> {
        // A bare word is a name, also where the project has a folder called `last`.
        if text.contains('/') || text == "." {
            return self.at_path(text);
        }
        let Known { mut listing, listed, problem } = known_sessions(&self.here);
        // A session that came with a project can claim any time: `last` is one of the user's own.
        listing.entries.sort_by_key(|entry| !listed.contains(entry.session.as_str()));
        if text.trim().eq_ignore_ascii_case("last") {
            let here = Place::of(&self.here);
            let all = self.args.all;
            let entries = std::mem::take(&mut listing.entries).into_iter();
            // A session killed before its first event has an empty folder.
            let has_begun =
                |entry: &IndexEntry| is_startable(entry) || entry.dir.join("session.json").exists();
            let is_it = |entry: &IndexEntry| {
                has_begun(entry) && (all || here.has(entry)) || here.twin_of(entry).is_some()
            };
            listing.entries = entries.filter(is_it).take(1).collect();
            if listing.entries.is_empty() && problem.is_none() {
                return Err(self.nothing_here());
            }
        }
        match (listing.find(text), problem) {
            (Ok(entry), _) => self.located(entry),
            (Err(FindError::NotFound { text }), Some(problem)) => Err(Failure::Failed(format!(
                "there is no session `{text}` in this folder, and those of other folders cannot \
                 be looked for: {problem}"
            ))),
            (Err(error), _) => Err(error.into()),
        }
    }

    fn nothing_here(&self) -> Failure {
        let place = Repository::of(&self.here, home::user().as_deref()).root;
        let hint = match self.args.all {
            true => "start one: atomic run ralph \"<prompt>\"",
            false => {
                "`atomic sessions` lists those of other folders; --all means the newest of all"
            }
        };
        let place =
            if self.args.all { "any folder".to_owned() } else { place.display().to_string() };
        Failure::Failed(format!("last: no session was started in {place}\n  hint: {hint}"))
    }

    /// The session in a folder that was named.
    fn at_path(&self, text: &str) -> Result<FoundSession, Failure> {
        let folder = self.here.join(text);
        if !folder.join("journal.jsonl").is_file() {
            let remedy = "`atomic sessions` lists those there are";
            return Err(Failure::Failed(format!("there is no session in {text}; {remedy}")));
        }
        let dir = folder.canonicalize();
        let dir = dir.map_err(|error| Failure::Failed(format!("{text}: {error}")))?;
        let entries = home::index(&stage::disk()).and_then(|index| index.entries().ok());
        let is_it = |entry: &IndexEntry| dir.file_name() == Some(entry.session.as_str().as_ref());
        let listed = entries.and_then(|listing| listing.entries.into_iter().find(is_it));
        let Some(entry) = listed else { return Ok(self.plain(dir)) };
        if entry.dir == dir || entry.dir.canonicalize().is_ok_and(|own| own == dir) {
            return self.original(entry);
        }
        let workspace = workspace_of(&entry, &dir);
        self.twin(entry, dir, workspace)
    }

    fn plain(&self, dir: PathBuf) -> FoundSession {
        FoundSession { dir, workspace: None, is_copy: false }
    }

    /// Where a session of the list really is.
    fn located(&self, entry: IndexEntry) -> Result<FoundSession, Failure> {
        if let Some((dir, workspace)) = Place::of(&self.here).twin_of(&entry) {
            return self.twin(entry, dir, workspace);
        }
        self.original(entry)
    }

    /// A session that is also, or only, in this project.
    fn twin(
        &self,
        entry: IndexEntry,
        dir: PathBuf,
        workspace: PathBuf,
    ) -> Result<FoundSession, Failure> {
        if is_there(&entry) {
            let copied = Copied { original: &entry.dir, copy: &dir, command: self.command };
            let is_copy = which_folder(&copied, self.args.here)?;
            return match is_copy {
                true => Ok(FoundSession { dir, workspace: Some(workspace), is_copy }),
                false => self.original(entry),
            };
        }
        // The project was moved. A session that only has the same id is a stranger's.
        if is_same_session(&entry, &dir)
            && let Some(index) = home::index(&stage::disk())
        {
            let root = Repository::of(&workspace, home::user().as_deref()).root;
            let moved = IndexEntry {
                dir: dir.clone(),
                workspace: Some(workspace.clone()),
                root: Some(root),
                ..entry
            };
            index.add(moved)?;
        }
        Ok(FoundSession { dir, workspace: Some(workspace), is_copy: false })
    }

    fn original(&self, entry: IndexEntry) -> Result<FoundSession, Failure> {
        if let Some(index) = home::index(&stage::disk()) {
            let folders = index.folders(entry.dir.clone());
            if let Some(restored) = Session::restore(stage::disk().as_ref(), &folders)? {
                paint::warn(&format!("{}: {}", entry.dir.display(), restored_text(&restored)));
            }
        }
        Ok(FoundSession { dir: entry.dir, workspace: entry.workspace, is_copy: false })
    }
}

/// Whether a session has a journal, in its own folder or in its second links.
pub(super) fn is_startable(entry: &IndexEntry) -> bool {
    has_journal(&entry.dir) || kept(entry) != KeepStatus::Absent
}

/// Whether the session of the list is where the list says. While its project is there, a session
/// without a folder can be written again.
fn is_there(entry: &IndexEntry) -> bool {
    let has_project = entry.workspace.as_ref().is_none_or(|workspace| workspace.is_dir());
    has_journal(&entry.dir) || has_project && kept(entry) != KeepStatus::Absent
}

/// Whether a folder has a journal with something in it.
pub(super) fn has_journal(dir: &Path) -> bool {
    let found = stage::disk().state(&dir.join("journal.jsonl"));
    // An unreadable journal counts as present; opening the session reports the error.
    found.map_or(true, |found| found.is_some_and(|found| found.size > 0))
}

/// How the second links of a session stand.
pub(super) fn kept(entry: &IndexEntry) -> KeepStatus {
    let disk = stage::disk();
    home::index(&disk)
        .map_or(KeepStatus::Absent, |index| keep_status(disk.as_ref(), &index.keep(&entry.dir)))
}

/// The repository one is in.
struct Place {
    here: PathBuf,
    repository: Repository,
}

impl Place {
    fn of(here: &Path) -> Self {
        let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
        Self { repository: Repository::of(&here, home::user().as_deref()), here }
    }

    /// Whether a session belongs to this repository.
    fn has(&self, entry: &IndexEntry) -> bool {
        let workspace = entry.workspace.clone().or_else(|| old_workspace(&entry.dir));
        let own = workspace.map(|folder| Repository::of(&folder, home::user().as_deref()));
        own.is_some_and(|own| own.identity == self.repository.identity)
    }

    /// The folder of a session in this repository that the list has in another one, and the folder it
    /// would work in.
    fn twin_of(&self, entry: &IndexEntry) -> Option<(PathBuf, PathBuf)> {
        let workspace = entry.workspace.clone().or_else(|| old_workspace(&entry.dir))?;
        let root = entry.root.clone().unwrap_or_else(|| workspace.clone());
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (dir, real_workspace) = (real(&entry.dir), real(&workspace));
        let root_here = &self.repository.root;
        let below = |path: &Path, base: &Path| path.strip_prefix(base).ok().map(Path::to_owned);
        let from_root = below(&dir, &root).map(|inside| {
            let workspace = below(&real_workspace, &root).unwrap_or_default();
            // Without the slash that an empty path would add.
            (root_here.join(inside), root_here.join(workspace).components().collect())
        });
        let from_here = below(&dir, &real_workspace).or_else(|| below(&entry.dir, &workspace));
        let from_here = from_here.map(|inside| (self.here.join(inside), self.here.clone()));
        let mut places = from_root.into_iter().chain(from_here);
        places.find(|(place, _)| *place != dir && *place != entry.dir && has_journal(place))
    }
}

/// The folder that a session of an older version works in, by the usual names.
fn old_workspace(dir: &Path) -> Option<PathBuf> {
    let sessions = dir.parent()?;
    let usual = FOLDERS.iter().any(|name| sessions.ends_with(name));
    usual.then(|| sessions.ancestors().nth(2).map(Path::to_owned)).flatten()
}

/// The folder that a session works in when it lies in another folder than the list says.
fn workspace_of(entry: &IndexEntry, dir: &Path) -> PathBuf {
    let inside = entry.workspace.as_ref().and_then(|own| entry.dir.strip_prefix(own).ok());
    let depth = inside.map_or(3, |inside| inside.components().count());
    let workspace = dir.ancestors().nth(depth);
    workspace.unwrap_or(dir).to_owned()
}

/// The folder that the session in this folder works in, as the list has it.
pub(crate) fn working_folder(dir: &Path) -> Option<PathBuf> {
    let listing = home::index(&stage::disk())?.entries().ok()?;
    listing.entries.into_iter().find(|entry| entry.dir == dir)?.workspace
}

/// Prints the folder that a session works in.
pub(crate) fn tell_folder(workspace: &Path) {
    paint::aside(&format!("Works in: {}", workspace.display()));
}

/// A command as it can be pasted, with this session in the place of `{}`.
pub(super) fn pasteable(command: &str, session: &Path) -> String {
    command.replacen("{}", &shell_quoted(session), 1)
}
