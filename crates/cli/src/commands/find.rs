//! Finding sessions: in the list of all, and in the project one is in.

mod origin;
mod place;
mod standing;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use atomic_files::shell_quoted;
use atomic_registry::project::{ProjectFiles, Repository};
use atomic_runner::{index_entry, restored_text};
use atomic_session::{FindError, FolderIdentity, IndexEntry, Listing, Session};

use self::origin::{first_of, is_at, is_ours};
use self::place::{FOLDERS, usual_workspace, workspace_around, workspace_in_list};
use self::standing::{Away, Standing};
use super::copied::{Copied, which_folder};
use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::{home, paint, stage};

pub(super) use self::origin::is_listed;
pub(super) use self::place::Place;
pub(super) use self::standing::{
    has_journal, is_in_another_folder, is_startable, kept, require_folder,
};

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

/// The sessions in a folder that are not in the list. Only their journals are read.
fn unlisted(folder: &Path, listed: &BTreeSet<String>) -> Vec<IndexEntry> {
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    folders
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            // One that is still being made has a name that begins with a dot.
            !name.starts_with('.') && !listed.contains(&name)
        })
        .filter_map(|entry| {
            let (at, created) = first_of(&entry.path())?;
            // A backup under another name would be a second session with the same id.
            let is_named = entry.file_name() == created.session.as_str();
            is_named.then(|| index_entry(&created, &entry.path(), at))
        })
        .collect()
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
    Finder { here, args, command: Some(command), is_removal: false }.find(text)
}

/// Finds a session that is to be deleted, also where its project is gone. Nothing is written again.
pub(super) fn find_session_to_remove(
    text: &str,
    args: SessionArgs,
) -> Result<FoundSession, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    Finder { here, args, command: Some("atomic sessions rm {}"), is_removal: true }.find(text)
}

/// Finds a session for an editor, in whose folder it is looked for. Nobody can be asked.
pub(crate) fn find_session_in(here: &Path, text: &str) -> Result<FoundSession, Failure> {
    let args = SessionArgs::default();
    Finder { here: here.to_owned(), args, command: None, is_removal: false }.find(text)
}

/// The place and the flags with which a session is looked for.
struct Finder<'c> {
    here: PathBuf,
    args: SessionArgs,
    command: Option<&'c str>,
    /// Whether the session is to be deleted.
    is_removal: bool,
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
            // A session killed before its first event has an empty folder. One whose project folder
            // was made again is refused by name: an older one would be resumed in its place.
            let has_begun = |entry: &IndexEntry| {
                matches!(Standing::of(entry), Standing::Away(Away::OtherFolder))
                    || Standing::is_there(entry)
                    || entry.dir.join("session.json").exists()
            };
            let is_it = |entry: &IndexEntry| {
                has_begun(entry) && (all || here.has(entry)) || here.twin_of(entry).is_some()
            };
            listing.entries = entries.filter(is_it).take(1).collect();
            if listing.entries.is_empty() && problem.is_none() {
                return Err(self.nothing_here());
            }
        }
        match (listing.find(text), problem) {
            (Ok(entry), _) if !listed.contains(entry.session.as_str()) => self.plain(entry.dir),
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
        // A backup is a folder with another name.
        let named = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let id = first_of(&dir).map_or(named, |(_, created)| created.session.to_string());
        let is_it = |entry: &IndexEntry| entry.session.as_str() == id;
        let listed = entries.and_then(|listing| listing.entries.into_iter().find(is_it));
        let Some(entry) = listed else { return self.plain(dir) };
        if is_at(&entry, &dir) {
            return self.original(entry);
        }
        let workspace = workspace_around(&entry, &dir);
        self.twin(entry, dir, workspace)
    }

    /// A session that is not in the list. It works in the project it lies in: the folder that its
    /// first event names may be any folder of this machine.
    fn plain(&self, dir: PathBuf) -> Result<FoundSession, Failure> {
        let workspace = usual_workspace(&dir);
        let named = || first_of(&dir).map(|(_, created)| created.workspace);
        self.require_here(&dir, workspace.clone().or_else(named).as_deref())?;
        Ok(FoundSession { dir, workspace, is_copy: false })
    }

    /// Refuses `--here` for a session that works elsewhere.
    fn require_here(&self, dir: &Path, workspace: Option<&Path>) -> Result<(), Failure> {
        let Some(workspace) = workspace.filter(|_| self.args.here) else { return Ok(()) };
        if Place::of(&self.here).contains(workspace) {
            return Ok(());
        }
        let id = dir.file_name().unwrap_or_default();
        let command = pasteable(self.command.unwrap_or("atomic resume {}"), Path::new(id));
        Err(Failure::Usage(format!(
            "{}: `--here` was given, but the session is not in this project; it works in {}\n  \
             hint: without the flag it works there: {command}",
            id.to_string_lossy(),
            workspace.display()
        )))
    }

    /// Where a session of the list really is.
    fn located(&self, entry: IndexEntry) -> Result<FoundSession, Failure> {
        if let Some((dir, workspace)) = Place::of(&self.here).twin_of(&entry) {
            return self.twin(entry, dir, Some(workspace));
        }
        self.original(entry)
    }

    /// A session of the list in another folder. `project` is the project that this folder is in.
    fn twin(
        &self,
        entry: IndexEntry,
        dir: PathBuf,
        project: Option<PathBuf>,
    ) -> Result<FoundSession, Failure> {
        let workspace = project.clone().or_else(|| workspace_in_list(&entry));
        if Standing::is_there(&entry) {
            let copied = Copied { original: &entry.dir, copy: &dir, command: self.command };
            let is_copy = which_folder(&copied, self.args.here)?;
            return match is_copy {
                true => Ok(FoundSession { dir, workspace, is_copy }),
                false => self.original(entry),
            };
        }
        self.require_here(&dir, workspace.as_deref())?;
        if let Some(project) = project.filter(|_| !self.is_removal) {
            adopt(entry, &dir, &project)?;
        }
        Ok(FoundSession { dir, workspace, is_copy: false })
    }

    /// A session where the list has it.
    fn original(&self, entry: IndexEntry) -> Result<FoundSession, Failure> {
        let workspace = workspace_in_list(&entry);
        self.require_here(&entry.dir, workspace.as_deref())?;
        if !self.is_removal {
            match Standing::of(&entry) {
                // The user has said that the folder at the old path is meant.
                Standing::Away(Away::OtherFolder) if self.args.here => {}
                Standing::Away(away) => return Err(away.failure(&entry, &self.here_line(&entry))),
                Standing::Settled | Standing::Deleted => {}
            }
            restore(&entry)?;
        }
        Ok(FoundSession { dir: entry.dir, workspace: entry.workspace, is_copy: false })
    }

    /// The command line with `--here`.
    fn here_line(&self, entry: &IndexEntry) -> String {
        let command = self.command.unwrap_or("atomic resume {}");
        format!("{} --here", pasteable(command, Path::new(entry.session.as_str())))
    }
}

/// Writes the folder of a session again when it was deleted.
fn restore(entry: &IndexEntry) -> Result<(), Failure> {
    let Some(index) = home::index(&stage::disk()) else { return Ok(()) };
    let folders = index.folders(entry.dir.clone());
    if let Some(restored) = Session::restore(stage::disk().as_ref(), &folders)? {
        paint::warn(&format!("{}: {}", entry.dir.display(), restored_text(&restored)));
    }
    Ok(())
}

/// Has the list say where a session is whose project was moved. A stranger's session and a backup stay
/// what they are.
fn adopt(entry: IndexEntry, dir: &Path, workspace: &Path) -> Result<(), Failure> {
    let is_named = dir.file_name() == Some(entry.session.as_str().as_ref());
    let Some(index) = home::index(&stage::disk()).filter(|_| is_named && is_ours(&entry, dir))
    else {
        return Ok(());
    };
    // Snapshots are read instead of events, and nothing tells whether a stranger has written them.
    let snapshots = dir.join("checkpoints");
    if std::fs::symlink_metadata(&snapshots).is_ok() {
        let removed = stage::disk().remove_dir(&snapshots);
        removed.map_err(|error| Failure::Failed(format!("{}: {error}", snapshots.display())))?;
    }
    let root = Repository::of(workspace, home::user().as_deref()).root;
    let moved = IndexEntry {
        dir: dir.to_owned(),
        workspace: Some(workspace.to_owned()),
        root: Some(root),
        folder: FolderIdentity::of(workspace),
        ..entry
    };
    Ok(index.add(moved)?)
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
