//! The cache outside the tree into which tools are installed.

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::Log;

/// The cache, which need not exist.
pub(super) fn folder() -> Result<PathBuf, String> {
    let folder =
        |variable: &str| env::var_os(variable).filter(|v| !v.is_empty()).map(PathBuf::from);
    let chosen = folder("ATOMIC_TOOLS")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("atomic-tools")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/atomic-tools")))
        .unwrap_or_else(|| env::temp_dir().join("atomic-tools"));
    std::path::absolute(chosen).map_err(|e| format!("no place for a cache: {e}"))
}

/// Creates `folder` and locks it until the file is dropped, so that two runs do not install over
/// each other.
pub(super) fn lock(folder: &Path, log: &Log) -> Result<File, String> {
    fs::create_dir_all(folder).map_err(|e| format!("cannot create {}: {e}", folder.display()))?;
    let failed = |e| format!("cannot lock {}: {e}", folder.display());
    let file = File::create(folder.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            log.write(&format!("waiting for another run that uses {}", folder.display()));
            file.lock().map_err(failed)?;
        }
        Err(TryLockError::Error(e)) => return Err(failed(e)),
    }
    Ok(file)
}
