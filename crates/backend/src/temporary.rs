//! Folders for files that a program needs only while it runs. They can hold credentials.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// A folder that only the user can read, removed when it is dropped.
///
/// The owner holds a lock on it. The kernel releases the lock of a killed process, so the next
/// process knows which folders are left over. A process id would not tell: ids are used again, and
/// a container that shares the folder for temporary files has ids of its own.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    _lock: File,
}

impl PrivateFolder {
    /// Creates a folder whose name begins with `prefix`, and removes those that killed processes
    /// left.
    pub fn create(prefix: &str) -> io::Result<Self> {
        remove_leftovers(&std::env::temp_dir(), prefix);
        // The process id is there for people who look at the folder.
        let name = format!("{prefix}{}-", std::process::id());
        loop {
            let folder = tempfile::Builder::new().prefix(&name).tempdir()?;
            let lock = File::open(folder.path())?;
            lock.lock()?;
            // Another process can have taken the folder for a leftover before it was locked.
            if folder.path().exists() {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn remove_leftovers(parent: &Path, prefix: &str) {
    let is_ours = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.as_encoded_bytes().starts_with(prefix.as_bytes())
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten().filter(is_ours) {
        let Ok(lock) = File::open(entry.path()) else { continue };
        if lock.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PrivateFolder, remove_leftovers};

    #[test]
    fn folders_without_an_owner_are_removed_and_others_stay() {
        let prefix = format!("atomic-private-test-{}-", std::process::id());
        let left = tempfile::Builder::new().prefix(&prefix).tempdir().unwrap();
        std::fs::write(left.path().join("key"), "secret").unwrap();
        let first = PrivateFolder::create(&prefix).unwrap();
        assert!(!left.path().exists(), "nobody holds its lock");
        let second = PrivateFolder::create(&prefix).unwrap();
        remove_leftovers(&std::env::temp_dir(), &prefix);
        assert!(first.path().exists() && second.path().exists(), "both are in use");
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists());
    }
}
