//! What an editor needs to help with workflows: types, and how to read the files.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The types, in the folder `.atomic`. The file is ours: it is written again when they change.
const TYPES: &str = "types/atomic.d.ts";

/// How files are read, in the folder `.atomic`. The user's from then on.
const SETTINGS: &str = "tsconfig.json";

/// What was done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Made,
    Renewed,
    Kept,
}

impl Done {
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Renewed => "renewed",
            Self::Kept => "kept",
        }
    }
}

/// The text of the types.
fn types() -> String {
    format!(
        "// Written by atomic {}; it is written again by `atomic init` and `atomic new`, so do not \
         change it.\n{}",
        env!("CARGO_PKG_VERSION"),
        atomic_typescript::TYPES
    )
}

/// Writes what an editor needs into a folder `.atomic`, which is there.
pub(crate) fn equip(folder: &Path) -> Result<Vec<(PathBuf, Done)>, Failure> {
    let types_at = folder.join(TYPES);
    let settings_at = folder.join(SETTINGS);
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Failed(format!("{}: it cannot be written: {error}", path.display()))
    };
    let renewed = renew(&types_at, &types()).map_err(|error| failed(&types_at, error))?;
    let made = write_new(&settings_at, atomic_typescript::TSCONFIG)
        .map_err(|error| failed(&settings_at, error))?;
    Ok(vec![(types_at, renewed), (settings_at, made)])
}

/// Writes a file that is ours, unless it says the same already.
fn renew(path: &Path, text: &str) -> std::io::Result<Done> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
        if fs::symlink_metadata(folder)?.is_symlink() {
            return Err(std::io::Error::other("the folder it belongs into is a link"));
        }
    }
    // A link in a project that was cloned can lead anywhere.
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(std::io::Error::other("something else than a file is in its place"));
        }
        Ok(_) if fs::read_to_string(path)? == text => return Ok(Done::Kept),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return write_new(path, text),
        Err(error) => return Err(error),
    }
    // Beside it first: between the two looks a link may have been put there.
    let beside = path.with_extension("ts.new");
    if let Err(error) = fs::remove_file(&beside)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    fs::File::create_new(&beside)?.write_all(text.as_bytes())?;
    fs::rename(&beside, path)?;
    Ok(Done::Renewed)
}

/// Writes a file unless it is there.
pub(crate) fn write_new(path: &Path, text: &str) -> std::io::Result<Done> {
    match fs::File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(Done::Made),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Done::Kept),
        Err(error) => Err(error),
    }
}
