//! Where a path lies: in a project, whose links are not followed, or in the user's own folder.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use atomic_files::Root;

/// Folders of ours in a project that has no git.
const MARKS: [&str; 2] = [".ralph", ".atomic"];

/// A path, taken apart: below `root` no link is followed.
pub(super) struct Place {
    pub(super) root: Root,
    pub(super) inside: PathBuf,
    /// Whether the path lies in a project. Otherwise it may be a link.
    pub(super) is_guarded: bool,
}

/// Takes a path apart. `project` is the root of the project that is worked in.
pub(super) fn place_of(path: &Path, project: Option<&Path>) -> io::Result<Place> {
    let path = std::path::absolute(path)?;
    let users = own_folder().is_some_and(|own| path.starts_with(own));
    // The user may keep a folder of ours somewhere else and link to it.
    let guarded = if users { None } else { guarded_root(&path, project) };
    if let Some(root) = guarded {
        let inside = path.strip_prefix(&root).map(Path::to_owned).unwrap_or_default();
        return Ok(Place { root: Root::open(&root)?, inside, is_guarded: true });
    }
    let path = if users { path.canonicalize().unwrap_or(path) } else { path };
    // The last folder that is there, apart from the path itself: that may be a link.
    let above = path.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(&path);
    let inside = path.strip_prefix(above).map(Path::to_owned).unwrap_or_default();
    Ok(Place { root: Root::open(above)?, inside, is_guarded: false })
}

/// The user's folder for everything of ours.
fn own_folder() -> Option<PathBuf> {
    let given = std::env::var_os("ATOMIC_HOME").filter(|value| !value.is_empty());
    let given = given.and_then(|value| std::path::absolute(value).ok());
    given.or_else(|| Some(home()?.join(".atomic")))
}

fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The root of the project that a path is in.
///
/// Of several repositories around it the outermost counts: a repository further in may lie behind a
/// link, and then its `.git` says nothing about what is above. A repository that holds the home
/// folder is not a project.
fn guarded_root(path: &Path, project: Option<&Path>) -> Option<PathBuf> {
    if let Some(root) = project.filter(|root| path.starts_with(root) && path != *root) {
        return Some(root.to_owned());
    }
    let home = home();
    let holds_home = |folder: &Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let folders: Vec<&Path> = path.ancestors().skip(1).filter(|above| !holds_home(above)).collect();
    let is_repository = |folder: &&&Path| folder.join(".git").symlink_metadata().is_ok();
    if let Some(root) = folders.iter().rev().find(is_repository) {
        return Some((*root).to_owned());
    }
    let is_mark = |name: &OsStr| MARKS.iter().any(|mark| name == *mark);
    let marked = path.ancestors().filter(|above| above.file_name().is_some_and(is_mark)).last();
    marked.and_then(Path::parent).map(Path::to_owned)
}
