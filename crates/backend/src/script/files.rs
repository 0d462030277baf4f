//! What a scripted agent does to files, so that doing it twice is the same as doing it once.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use atomic_files::{FileKind, Folder, PROMPT_LIMIT, Root};

use super::load::shorten;
use super::wire::EditEntry;

/// Why a file could not be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("cannot {verb} `{path}`: {source}")]
    Io { verb: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot edit `{path}`: neither {find:?} nor what replaces it is in the file")]
    Absent { path: PathBuf, find: String },
    #[error("cannot edit `{path}`: {find:?} is in the file {count} times; give more of the text")]
    Ambiguous { path: PathBuf, find: String, count: usize },
    #[error(
        "cannot edit `{path}`: replacing {find:?} would make this turn do something else when it \
         is played again; make one edit of those that touch the same text"
    )]
    Unrepeatable { path: PathBuf, find: String },
}

/// One writer at a time, so that the temporary file can have a fixed name: what a kill leaves
/// behind is then used up by the next attempt instead of lying around in the workspace for ever.
static WRITING: Mutex<()> = Mutex::new(());

/// Replaces a file as a whole; a kill leaves the old one or the new one. Links are followed as long
/// as they stay in the workspace.
pub(super) fn write(workspace: &Path, path: &Path, text: &str) -> Result<(), FileError> {
    let io = |source| FileError::Io { verb: "write", path: path.to_owned(), source };
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, name) = folder_of(workspace, path).map_err(io)?;
    let mut temporary = OsString::from(".");
    temporary.push(&name);
    temporary.push(".atomic-tmp");
    let place = || {
        let before = folder.open_file(&name).and_then(|file| file.metadata());
        // Remove a temporary file that a killed run left, or a link in its place. Never follow it.
        if folder.kind(&temporary)?.is_some() {
            folder.remove(&temporary)?;
        }
        // An edited file stays as executable and as private as it was, also while it is written.
        let mode = if before.is_ok() { 0o600 } else { 0o666 };
        let mut file = folder.create_new(&temporary, mode)?;
        if let Ok(before) = before {
            file.set_permissions(before.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        folder.rename(&temporary, &folder, &name)
    };
    place().map_err(|error| {
        let _ = folder.remove(&temporary);
        io(error)
    })
}

/// The folder of a file in the workspace, created where it is missing, and the file's name in it.
fn folder_of(workspace: &Path, path: &Path) -> io::Result<(Folder, OsString)> {
    let root = Root::open(workspace)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().unwrap_or(Path::new(""));
    let found = match root.target(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((root.create_folder(parent, 0o777)?, name.to_owned()));
        }
        Err(error) => return Err(error),
    };
    let (folder, name) = root.folder_of(&found)?;
    Ok((folder, name.to_owned()))
}

/// Replaces the one place where a text occurs. `earlier` are the edits of the same file that this
/// turn has made already; they must stay made.
pub(super) fn edit(
    workspace: &Path,
    edit: &EditEntry,
    earlier: &[&EditEntry],
) -> Result<(), FileError> {
    let path = edit.path.as_path();
    let content = Root::open(workspace).and_then(|root| root.read_text(path, PROMPT_LIMIT));
    let content =
        content.map_err(|source| FileError::Io { verb: "edit", path: path.to_owned(), source })?;
    let Some(edited) = replaced(&content, edit)? else { return Ok(()) };
    let is_made = |made: &EditEntry| matches!(replaced(&edited, made), Ok(None));
    if !is_made(edit) || !earlier.iter().copied().all(is_made) {
        return Err(FileError::Unrepeatable { path: path.to_owned(), find: quoted(edit) });
    }
    write(workspace, path, &edited)
}

/// Makes sure that nothing is left at a path.
pub(super) fn delete(workspace: &Path, path: &Path) -> Result<(), FileError> {
    match removed(workspace, path) {
        Err(error) if !is_absence(&error) => {
            Err(FileError::Io { verb: "delete", path: path.to_owned(), source: error })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn removed(workspace: &Path, path: &Path) -> io::Result<()> {
    let root = Root::open(workspace)?;
    let name = path.file_name().unwrap_or(OsStr::new(""));
    let folder = root.locate(path.parent().unwrap_or(Path::new("")))?;
    let folder = root.folder(&folder)?;
    match folder.kind(name)? {
        Some(FileKind::Folder) => folder.remove_folder(name),
        Some(_) => folder.remove(name),
        None => Ok(()),
    }
}

/// The text after the edit; `None` when the edit has been made already.
fn replaced(content: &str, edit: &EditEntry) -> Result<Option<String>, FileError> {
    let (find, replace) = (edit.find.as_str(), edit.replace.as_str());
    // An edit that adds something around the text still finds it afterwards.
    if replace.contains(find) && content.contains(replace) {
        return Ok(None);
    }
    let path = edit.path.as_path().to_owned();
    match content.matches(find).count() {
        1 => Ok(Some(content.replacen(find, replace, 1))),
        // Every text contains the empty one.
        0 if content.contains(replace) => Ok(None),
        0 => Err(FileError::Absent { path, find: quoted(edit) }),
        count => Err(FileError::Ambiguous { path, find: quoted(edit), count }),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn quoted(edit: &EditEntry) -> String {
    shorten(&edit.find, 80)
}
