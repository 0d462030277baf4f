//! Repositories inside of a working tree. `git status` runs git in those that are submodules, and
//! `git add` makes a submodule of any other.

use std::fs;
use std::path::Path;

use super::place::{self, Found, GitFolders};

/// How many files and folders are looked at.
const MOST_ENTRIES: usize = 20_000;

/// The data of git in a working tree besides the tree's own.
pub(super) struct Nested {
    pub(super) folders: Vec<GitFolders>,
    /// Whether there were more files than are looked at.
    pub(super) has_more: bool,
}

/// Looks through a working tree, and through the data that its repository keeps for submodules.
/// Links are not followed, since git does not follow them either.
pub(super) fn nested(tree: &Path, outer: &GitFolders) -> Nested {
    let mut nested = Nested { folders: vec![], has_more: false };
    let modules = outer.shared.join("modules");
    let mut open = vec![tree.to_owned(), modules.clone()];
    let mut left = MOST_ENTRIES;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Some(rest) = left.checked_sub(1) else {
                nested.has_more = true;
                return nested;
            };
            left = rest;
            let name = entry.file_name();
            if name == ".git" {
                if let (true, Some(folders)) = (folder != tree, at(&folder)) {
                    nested.folders.push(folders);
                }
            } else if name == "config" && folder.starts_with(&modules) {
                nested.folders.push(GitFolders { own: folder.clone(), shared: folder.clone() });
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    nested
}

fn at(folder: &Path) -> Option<GitFolders> {
    match place::at(folder) {
        Found::Nothing => None,
        Found::Invalid(folders) => folders,
        Found::Repository(folders) => Some(folders),
    }
}

/// Whether an index may name a submodule. What cannot be read may.
pub(super) fn has_submodules(index: &Path) -> bool {
    const LIMIT: u64 = 64 << 20;
    if place::is_absent(index) {
        return false;
    }
    let Ok(bytes) = atomic_files::read(index, LIMIT) else { return true };
    // Entries are padded to eight bytes up to version 3, and the mode has a fixed place in them.
    let is_padded = matches!(bytes.get(4..8), Some([0, 0, 0, 2 | 3]));
    let is_mode = |at: usize| !is_padded || at % 8 == 4;
    let mode = 0o160_000_u32.to_be_bytes();
    bytes.windows(4).enumerate().any(|(at, found)| found == mode && is_mode(at))
}
