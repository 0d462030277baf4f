//! Whether a session of the list is where the list says.

use std::io;
use std::path::Path;

use atomic_files::shell_quoted;
use atomic_registry::project::Repository;
use atomic_session::{FolderIdentity, IndexEntry, KeepStatus, is_moved, keep_status};

use super::place::workspace_in_list;
use crate::failure::Failure;
use crate::{home, stage};

/// How a session of the list stands.
pub(super) enum Standing {
    /// Its journal is where the list says, or there is none anywhere.
    Settled,
    /// Its folder was deleted from its project, and can be written again.
    Deleted,
    /// Its project is not where the list says.
    Away(Away),
}

/// Why a session is not where the list says.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Away {
    /// The project folder does not exist.
    NoFolder,
    /// The journal is in another folder.
    Moved,
    /// The folder at the path of the project is another one.
    OtherFolder,
}

impl Standing {
    pub(super) fn of(entry: &IndexEntry) -> Self {
        if has_journal(&entry.dir) {
            return Self::Settled;
        }
        if workspace_in_list(entry).is_some_and(|workspace| !workspace.is_dir()) {
            return Self::Away(Away::NoFolder);
        }
        if kept(entry) == KeepStatus::Absent {
            return Self::Settled;
        }
        let disk = stage::disk();
        if home::index(&disk).is_some_and(|index| is_moved(disk.as_ref(), &index.keep(&entry.dir)))
        {
            return Self::Away(Away::Moved);
        }
        if is_in_another_folder(entry) { Self::Away(Away::OtherFolder) } else { Self::Deleted }
    }

    /// Whether the session is where the list says, or can be written again there.
    pub(super) fn is_there(entry: &IndexEntry) -> bool {
        match Self::of(entry) {
            Self::Settled => has_journal(&entry.dir),
            Self::Deleted => true,
            Self::Away(_) => false,
        }
    }
}

/// Whether the folder at the path of the project is another one than the session began in.
pub(in crate::commands) fn is_in_another_folder(entry: &IndexEntry) -> bool {
    let Some(workspace) = workspace_in_list(entry) else { return false };
    match (&entry.folder, &entry.root) {
        (Some(own), _) => {
            FolderIdentity::of(&workspace).is_none_or(|found| !found.is_same_folder(own))
        }
        // Entries of older versions do not have the identity of the folder.
        (None, Some(root)) => Repository::of(&workspace, home::user().as_deref()).root != *root,
        (None, None) => false,
    }
}

impl Away {
    /// The error of a command that would work in the session. `here` is the command line with which
    /// the session works in the folder at the path of the project.
    pub(super) fn failure(self, entry: &IndexEntry, here: &str) -> Failure {
        let id = &entry.session;
        let workspace = workspace_in_list(entry).unwrap_or_default();
        let go_there = "where the project was moved, run the command in its folder there";
        match self {
            Self::NoFolder => Failure::Failed(format!(
                "{id}: the project folder {} does not exist\n  hint: {go_there}\n  hint: to delete \
                 the session, run: atomic sessions rm {id}",
                workspace.display()
            )),
            Self::Moved => Failure::Failed(format!(
                "{id}: the session's folder {} was moved\n  hint: {go_there}",
                entry.dir.display()
            )),
            Self::OtherFolder => Failure::Usage(format!(
                "{id}: {} is not the folder in which the session began, but a new one\n  hint: \
                 {go_there}\n  hint: to work in the new one, run: cd {} && {here}\n  hint: to delete the \
                 session, run: atomic sessions rm {id}",
                workspace.display(),
                shell_quoted(&workspace)
            )),
        }
    }
}

/// Refuses to work in a folder that does not exist.
pub(in crate::commands) fn require_folder(workspace: &Path) -> Result<(), Failure> {
    if workspace.is_dir() {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "the project folder {} does not exist\n  hint: where the project was moved, run the command \
         in its folder there",
        workspace.display()
    )))
}

/// Whether a session has a journal, in its own folder or in its second links.
pub(in crate::commands) fn is_startable(entry: &IndexEntry) -> bool {
    has_journal(&entry.dir) || kept(entry) != KeepStatus::Absent
}

/// Whether a folder has a journal with something in it.
pub(in crate::commands) fn has_journal(dir: &Path) -> bool {
    match stage::disk().state(&dir.join("journal.jsonl")) {
        Ok(found) => found.is_some_and(|found| found.size > 0),
        // A file stands where a folder on the way was.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => false,
        // An unreadable journal counts as present; opening the session reports the error.
        Err(_) => true,
    }
}

/// How the second links of a session stand.
pub(in crate::commands) fn kept(entry: &IndexEntry) -> KeepStatus {
    let disk = stage::disk();
    home::index(&disk)
        .map_or(KeepStatus::Absent, |index| keep_status(disk.as_ref(), &index.keep(&entry.dir)))
}
