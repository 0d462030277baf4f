//! The repository that the user is in, and the folders of sessions in it.

use std::path::{Path, PathBuf};

use atomic_registry::project::Repository;
use atomic_session::IndexEntry;

use super::origin::is_ours;
use super::standing::has_journal;
use crate::home;

/// Folders of the sessions of a project, unless a workflow names another one.
pub(super) const FOLDERS: [&str; 2] = [".ralph/sessions", ".atomic/sessions"];

/// The repository that the user is in.
pub(in crate::commands) struct Place {
    here: PathBuf,
    repository: Repository,
}

impl Place {
    pub(in crate::commands) fn of(here: &Path) -> Self {
        let here = here.canonicalize().unwrap_or_else(|_| here.to_owned());
        Self { repository: Repository::of(&here, home::user().as_deref()), here }
    }

    /// Whether a session belongs to this repository.
    pub(super) fn has(&self, entry: &IndexEntry) -> bool {
        let own =
            workspace_in_list(entry).map(|folder| Repository::of(&folder, home::user().as_deref()));
        own.is_some_and(|own| own.identity == self.repository.identity)
    }

    /// Whether a folder lies in this working tree.
    pub(super) fn contains(&self, folder: &Path) -> bool {
        real(folder).starts_with(real(&self.repository.root))
    }

    /// The folder of a session in this repository that the list has in another one, and the folder it
    /// would work in.
    pub(super) fn twin_of(&self, entry: &IndexEntry) -> Option<(PathBuf, PathBuf)> {
        let workspace = workspace_in_list(entry)?;
        let root = entry.root.clone().unwrap_or_else(|| workspace.clone());
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

    /// Shows a session of a project that was moved where it is in this repository.
    pub(in crate::commands) fn show_here(&self, entry: &mut IndexEntry) {
        if has_journal(&entry.dir) {
            return;
        }
        if let Some((dir, workspace)) = self.twin_of(entry).filter(|(dir, _)| is_ours(entry, dir)) {
            (entry.dir, entry.workspace) = (dir, Some(workspace));
        }
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The folder that a session of the list works in.
pub(super) fn workspace_in_list(entry: &IndexEntry) -> Option<PathBuf> {
    entry.workspace.clone().or_else(|| usual_workspace(&entry.dir))
}

/// The folder that a session works in, when its own folder has one of the usual names.
pub(super) fn usual_workspace(dir: &Path) -> Option<PathBuf> {
    let sessions = dir.parent()?;
    let usual = FOLDERS.iter().any(|name| sessions.ends_with(name));
    usual.then(|| sessions.ancestors().nth(2).map(Path::to_owned)).flatten()
}

/// The project that a session works in when it lies in another folder than the list says; `None` where
/// that folder is not at the same place in a project.
pub(super) fn workspace_around(entry: &IndexEntry, dir: &Path) -> Option<PathBuf> {
    let own = workspace_in_list(entry)?;
    let inside = entry.dir.strip_prefix(&own).ok()?;
    let (sessions, sessions_inside) = (dir.parent()?, inside.parent()?);
    let depth = sessions_inside.components().count();
    let workspace = sessions.ancestors().nth(depth).filter(|_| depth > 0)?;
    sessions.ends_with(sessions_inside).then(|| workspace.to_owned())
}
