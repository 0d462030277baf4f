//! The files of a project, below the root of its repository.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use atomic_files::{Folder, Permissions, Refusal, Root, refusal};

use super::Repository;

/// The files of a project. Links are followed as long as they stay in the repository.
///
/// Paths are from the project's folder, or absolute and in the repository.
#[derive(Debug)]
pub struct ProjectFiles {
    root: Root,
    /// The project's folder as it was given.
    given: PathBuf,
    /// The same, without links.
    real: PathBuf,
    /// The same from the root.
    inside: PathBuf,
    /// The path of the root.
    repository: PathBuf,
}

impl ProjectFiles {
    /// The files of the project in a folder. `home` is the user's home folder.
    pub fn of(folder: &Path, home: Option<&Path>) -> io::Result<Self> {
        let given = std::path::absolute(folder)?;
        let real = given.canonicalize()?;
        let repository = Repository::root_of(&real, home);
        let inside = real.strip_prefix(&repository).map(Path::to_owned).unwrap_or_default();
        Ok(Self { root: Root::open(&repository)?, given, real, inside, repository })
    }

    /// The files of a repository with this root, whose path has no links in it.
    pub(super) fn at_root(root: &Path) -> io::Result<Self> {
        let path = root.to_owned();
        let (given, repository, inside) = (path.clone(), path.clone(), PathBuf::new());
        Ok(Self { root: Root::open(root)?, given, real: path, inside, repository })
    }

    /// Reads a regular file of at most `limit` bytes.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        self.root.read(&self.below(path)?, limit)
    }

    /// The same for a text in UTF-8.
    pub fn read_text(&self, path: &Path, limit: u64) -> io::Result<String> {
        self.root.read_text(&self.below(path)?, limit)
    }

    /// Opens a regular file for reading.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        self.root.open_file(&self.below(path)?)
    }

    /// Opens a folder. No component of its path may be a link.
    pub fn folder(&self, path: &Path) -> io::Result<Folder> {
        self.root.folder(&plain(&self.below(path)?).ok_or(Refusal::Outside)?)
    }

    /// The path of a file or folder from the project's folder, without `.` and with `..` at its
    /// beginning only. Nothing where the names lead out of the repository.
    pub fn place(&self, path: &Path) -> Option<PathBuf> {
        let below = plain(&self.below(path).ok()?)?;
        let mut above = PathBuf::new();
        for folder in self.inside.ancestors() {
            if let Ok(rest) = below.strip_prefix(folder) {
                return Some(above.join(rest));
            }
            above.push("..");
        }
        None
    }

    /// How many folders lie between the repository and the project's folder.
    pub fn depth(&self) -> usize {
        self.inside.components().count()
    }

    /// Whether there is a regular file.
    pub fn is_file(&self, path: &Path) -> bool {
        self.below(path).is_ok_and(|path| self.root.is_file(&path))
    }

    /// Refuses a path that leads out of the repository.
    pub fn require_inside(&self, path: &Path) -> io::Result<()> {
        self.root.locate(&self.below(path)?).map(drop)
    }

    /// Where a folder really lies that need not be there yet. A path without links stays as it is.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, Refusal> {
        let Ok(below) = self.below(path) else { return Err(Refusal::Outside) };
        let is_link = |place: &Path| self.repository.join(place).is_symlink();
        for there in below.ancestors() {
            let real = match self.root.locate(there) {
                Ok(real) => real,
                Err(error) => match refusal(&error) {
                    Some(refused) => return Err(refused),
                    // A link to a place that is not there.
                    None if error.kind() == io::ErrorKind::NotFound && is_link(there) => {
                        return Err(Refusal::Link);
                    }
                    None => continue,
                },
            };
            let rest = below.strip_prefix(there).unwrap_or(Path::new(""));
            let is_plain = real == there;
            let real = self.repository.join(real).join(rest);
            return Ok(if is_plain { path.to_owned() } else { real });
        }
        Ok(path.to_owned())
    }

    /// Replaces a file, all or nothing, and keeps its permissions. A link that stays in the
    /// repository is kept, and the file it leads to is replaced.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.root.replace(&self.below(path)?, bytes, Permissions::KeptOr(0o666))
    }

    /// Replaces a file that the user has named. A link in the repository that leads out of it is
    /// refused: the project may have put it there. Any other path is the user's.
    pub fn replace_named(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let named = without_dots(&self.real.join(path));
        match named.strip_prefix(&self.repository) {
            Ok(below) => self.root.replace(below, bytes, Permissions::KeptOr(0o666)),
            Err(_) => std::fs::write(path, bytes),
        }
    }

    /// The folder in which [`Self::replace`] replaces a file, as a file that can be locked.
    pub fn folder_of_target(&self, path: &Path) -> io::Result<File> {
        let target = self.root.target(&self.below(path)?)?;
        Ok(self.root.folder_of(&target)?.0.into_file())
    }

    /// Opens a folder, and creates what is missing of its path. A link that leads out of the
    /// repository is refused.
    pub fn create_folder(&self, path: &Path) -> io::Result<Folder> {
        self.create_below(&self.below(path)?)
    }

    fn create_below(&self, path: &Path) -> io::Result<Folder> {
        match (self.root.locate(path), path.parent(), path.file_name()) {
            // The real path is opened without links, so one that was put there since is not followed.
            (Ok(real), ..) => self.root.folder(&real),
            (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                self.create_below(parent)?.create_folder(name, 0o777)
            }
            (Err(error), ..) => Err(error),
        }
    }

    fn below(&self, path: &Path) -> io::Result<PathBuf> {
        if !path.is_absolute() {
            return Ok(self.inside.join(path));
        }
        let inside = path.strip_prefix(&self.given).or_else(|_| path.strip_prefix(&self.real));
        if let Ok(inside) = inside {
            return Ok(self.inside.join(inside));
        }
        // Settings of OpenCode may lie in a folder above the project's.
        let below = path.strip_prefix(&self.repository);
        below.map(Path::to_owned).map_err(|_| Refusal::Outside.into())
    }
}

/// Resolves `.` and `..` in a path from the root of a repository by the names alone. Nothing where
/// it leads out.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::Normal(name) => plain.push(name),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

/// Resolves `.` and `..` in an absolute path by the names alone.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}
