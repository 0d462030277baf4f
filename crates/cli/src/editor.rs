//! What an editor needs to help with workflows: types, and how to read the files.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use atomic_files::{FileKind, Folder, PROJECT_LIMIT, Permissions, Refusal, Root};
use atomic_registry::project::ProjectFiles;

use crate::failure::Failure;

/// Where files are written for the user.
pub(crate) enum Base {
    /// In the project in the current folder: never through a link out of its repository.
    Project(ProjectFiles),
    /// In the user's own folder, whose links are the user's.
    User,
}

impl Base {
    /// The project in the current folder.
    pub(crate) fn here() -> Result<Self, Failure> {
        let files = ProjectFiles::of(Path::new("."), crate::home::user().as_deref());
        let failed = |error| Failure::Failed(format!("the project cannot be opened: {error}"));
        files.map(Self::Project).map_err(failed)
    }

    /// Opens a folder, and creates it when it is missing.
    pub(crate) fn create_folder(&self, path: &Path) -> std::io::Result<Folder> {
        match self {
            Self::Project(files) => files.create_folder(path),
            Self::User => {
                std::fs::create_dir_all(path)?;
                Root::open(path)?.folder(Path::new(""))
            }
        }
    }

    /// Opens the folder of a file, which is created when it is missing.
    fn folder_of<'p>(&self, path: &'p Path) -> std::io::Result<(Folder, &'p OsStr)> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        Ok((self.create_folder(path.parent().unwrap_or(Path::new("")))?, name))
    }
}

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
pub(crate) fn equip(base: &Base, folder: &Path) -> Result<Vec<(PathBuf, Done)>, Failure> {
    let types_at = folder.join(TYPES);
    let settings_at = folder.join(SETTINGS);
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Failed(match atomic_files::refusal(&error) {
            Some(refused) => format!(
                "{}: {refused}\n  hint: move it away, then run the command again",
                path.display()
            ),
            None => format!("{}: it cannot be written: {error}", path.display()),
        })
    };
    let renewed = renew(base, &types_at, &types()).map_err(|error| failed(&types_at, error))?;
    let made = write_new(base, &settings_at, atomic_typescript::TSCONFIG)
        .map_err(|error| failed(&settings_at, error))?;
    Ok(vec![(types_at, renewed), (settings_at, made)])
}

/// Writes a file that is ours, unless it says the same already.
fn renew(base: &Base, path: &Path, text: &str) -> std::io::Result<Done> {
    let (folder, name) = base.folder_of(path)?;
    match folder.kind(name)? {
        None => return write_new(base, path, text),
        Some(FileKind::Regular) => {}
        Some(other) => return Err(Refusal::NotRegular(other).into()),
    }
    if folder.read(name, PROJECT_LIMIT).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(Done::Kept);
    }
    folder.stage(name, text.as_bytes(), Permissions::KeptOr(0o666))?.commit()?;
    Ok(Done::Renewed)
}

/// Writes a file unless it is there.
pub(crate) fn write_new(base: &Base, path: &Path, text: &str) -> std::io::Result<Done> {
    let (folder, name) = base.folder_of(path)?;
    match folder.create_new(name, 0o666).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(Done::Made),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Done::Kept),
        Err(error) => Err(error),
    }
}
