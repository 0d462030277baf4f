//! Where git keeps the data of a working tree, found as git itself finds it.
//!
//! Paths are bytes, and nothing but the line's end is cut off: a folder called `data ` is not `data`.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// The largest `.git` file that git reads.
const LIMIT: u64 = 1 << 20;

/// The folders with git's data, without links in their paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitFolders {
    /// That of the working tree.
    pub(super) own: PathBuf,
    /// That of all working trees.
    pub(super) shared: PathBuf,
}

/// What a folder has under the name `.git`.
pub(super) enum Found {
    Nothing,
    /// Something that git takes for no repository, and the folders it leads to, if any.
    Invalid(Option<GitFolders>),
    Repository(GitFolders),
}

pub(super) fn at(folder: &Path) -> Found {
    let git = folder.join(".git");
    if is_absent(&git) {
        return Found::Nothing;
    }
    match folders(&git) {
        Some(folders) if is_repository(&folders) => Found::Repository(folders),
        folders => Found::Invalid(folders),
    }
}

/// Whether nothing is there. What cannot be looked at may be there.
pub(super) fn is_absent(path: &Path) -> bool {
    let absent = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    fs::symlink_metadata(path).is_err_and(|error| absent.contains(&error.kind()))
}

fn folders(git: &Path) -> Option<GitFolders> {
    let named = if fs::metadata(git).ok()?.is_file() {
        git.parent()?.join(path_in(git, b"gitdir: ")?)
    } else {
        git.to_owned()
    };
    let own = named.canonicalize().ok()?;
    let link = own.join("commondir");
    let shared = if is_absent(&link) {
        own.clone()
    } else {
        own.join(path_in(&link, b"")?).canonicalize().ok()?
    };
    Some(GitFolders { own, shared })
}

/// The test by which git knows its own folders.
fn is_repository(folders: &GitFolders) -> bool {
    let can_enter = |name| rustix::fs::access(folders.shared.join(name), Access::EXEC_OK).is_ok();
    has_head(&folders.own) && can_enter("objects") && can_enter("refs")
}

/// The path that a file of git's consists of, behind this prefix.
fn path_in(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let bytes = atomic_files::read(file, LIMIT).ok()?;
    let mut path = bytes.strip_prefix(prefix)?;
    while let Some(rest) = path.strip_suffix(b"\n").or_else(|| path.strip_suffix(b"\r")) {
        path = rest;
    }
    let is_path = !path.is_empty() && !path.contains(&0);
    is_path.then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// Whether a folder has a `HEAD` that git takes for one.
fn has_head(folder: &Path) -> bool {
    let head = folder.join("HEAD");
    if let Ok(target) = fs::read_link(&head) {
        return target.as_os_str().as_bytes().starts_with(b"refs/");
    }
    let Ok(bytes) = atomic_files::read(&head, LIMIT) else { return false };
    match bytes.strip_prefix(b"ref:") {
        Some(name) => name.trim_ascii_start().starts_with(b"refs/"),
        None => bytes.get(..40).is_some_and(|hash| hash.iter().all(u8::is_ascii_hexdigit)),
    }
}

/// Returns the main worktree of a linked one, or the bare repository it belongs to. A `.git` file can
/// name any folder, and that can name any repository, so the data has to lie in the repository and to
/// name the worktree.
pub(super) fn main_worktree(git: &Path, folders: &GitFolders) -> Option<PathBuf> {
    if folders.own.parent()? != folders.shared.join("worktrees") {
        return None;
    }
    let named = folders.own.join(path_in(&folders.own.join("gitdir"), b"")?).canonicalize().ok()?;
    if named != git.canonicalize().ok()? {
        return None;
    }
    match folders.shared.file_name()? == ".git" {
        true => folders.shared.parent().map(Path::to_owned),
        false => is_bare(&folders.shared).then(|| folders.shared.clone()),
    }
}

/// Whether a folder holds the bare repository that its own `.git` file names.
pub(super) fn is_around_bare(tree: &Path, folders: &GitFolders) -> bool {
    let GitFolders { own, shared } = folders;
    let is_beside = own == shared && shared.parent() == Some(tree);
    is_beside && shared.file_name().is_some_and(|name| name != ".git") && is_bare(shared)
}

/// Whether a repository has no working tree of its own. With `extensions.worktreeConfig` git keeps
/// `core.bare` in the second file.
fn is_bare(shared: &Path) -> bool {
    let is_set = |name: &str| {
        let config = atomic_files::read(&shared.join(name), LIMIT).unwrap_or_default();
        let bare = super::value_of(&config, "core", "bare");
        bare.is_some_and(|value| {
            matches!(value.to_lowercase().as_str(), "true" | "yes" | "on" | "1")
        })
    };
    is_set("config") || is_set("config.worktree")
}
