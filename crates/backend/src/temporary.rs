//! Folders for what a program needs only while it runs. They can hold credentials.

use std::io;
use std::path::Path;

use tempfile::TempDir;

/// Makes a folder that only the user can read. Its name begins with `prefix` and the number of this
/// process, so that folders of killed processes can be told apart and are removed first.
pub(crate) fn private_folder(prefix: &str) -> io::Result<TempDir> {
    sweep(prefix);
    let name = format!("{prefix}{}-", std::process::id());
    tempfile::Builder::new().prefix(&name).tempdir()
}

/// Removes folders of processes that are gone: a killed process could not do so itself.
fn sweep(prefix: &str) {
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else { continue };
        let process = rest.split('-').next().and_then(|id| id.parse::<u32>().ok());
        if process.is_some_and(|id| !Path::new("/proc").join(id.to_string()).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
