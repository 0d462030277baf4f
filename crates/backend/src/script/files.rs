//! What a scripted agent does to files, so that doing it twice is the same as doing it once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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

/// Replaces a file as a whole; a kill leaves the old one or the new one.
pub(super) fn write(workspace: &Path, path: &Path, text: &str) -> Result<(), FileError> {
    let io = |source| FileError::Io { verb: "write", path: path.to_owned(), source };
    let target = workspace.join(path);
    let (Some(folder), Some(name)) = (target.parent(), path.file_name()) else {
        return Err(io(io::ErrorKind::InvalidInput.into()));
    };
    let temporary = folder.join(format!(".{}.atomic-tmp", name.display()));
    let _alone = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    fs::create_dir_all(folder).map_err(io)?;
    fs::write(&temporary, text).map_err(io)?;
    let place = || {
        // An edited file stays as executable as it was.
        if let Ok(existing) = fs::metadata(&target) {
            fs::set_permissions(&temporary, existing.permissions())?;
        }
        fs::rename(&temporary, &target)
    };
    place().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        io(error)
    })
}

/// Replaces the one place where a text occurs. `earlier` are the edits of the same file that this
/// turn has made already; they must stay made.
pub(super) fn edit(
    workspace: &Path,
    edit: &EditEntry,
    earlier: &[&EditEntry],
) -> Result<(), FileError> {
    let path = edit.path.as_path();
    let content = fs::read_to_string(workspace.join(path)).map_err(|source| FileError::Io {
        verb: "edit",
        path: path.to_owned(),
        source,
    })?;
    let Some(edited) = replaced(&content, edit)? else { return Ok(()) };
    let is_made = |made: &EditEntry| matches!(replaced(&edited, made), Ok(None));
    if !is_made(edit) || !earlier.iter().copied().all(is_made) {
        return Err(FileError::Unrepeatable { path: path.to_owned(), find: quoted(edit) });
    }
    write(workspace, path, &edited)
}

/// Makes sure that nothing is left at a path.
pub(super) fn delete(workspace: &Path, path: &Path) -> Result<(), FileError> {
    let target = workspace.join(path);
    let removed = match fs::symlink_metadata(&target) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(&target),
        Ok(_) => fs::remove_file(&target),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if !is_absence(&error) => {
            Err(FileError::Io { verb: "delete", path: path.to_owned(), source: error })
        }
        Ok(()) | Err(_) => Ok(()),
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
