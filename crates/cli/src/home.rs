//! Where things are that belong to the user and not to a project.

use std::path::PathBuf;
use std::sync::Arc;

use atomic_session::{Disk, Index};

/// The folder for everything of ours: `ATOMIC_HOME`, else `.atomic` in the home folder.
pub(crate) fn folder() -> Option<PathBuf> {
    let given = std::env::var_os("ATOMIC_HOME").filter(|v| !v.is_empty()).map(PathBuf::from);
    given.or_else(|| Some(user()?.join(".atomic")))
}

/// The user's home folder.
pub(crate) fn user() -> Option<PathBuf> {
    std::env::var_os("HOME").filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The list of all sessions; without a home folder there is none.
pub(crate) fn index(disk: &Arc<dyn Disk>) -> Option<Arc<Index>> {
    let path = folder()?.join("sessions-index.jsonl");
    Some(Arc::new(Index::new(Arc::clone(disk), path)))
}
