//! What a session asks of a disk.

mod memory;
mod place;
mod real;

use std::fmt::Debug;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use atomic_files::FileState;

pub use memory::MemoryDisk;
pub use real::RealDisk;

/// The few things a session asks of a disk, each with what it promises about a power cut.
pub trait Disk: Send + Sync + Debug {
    /// Makes a folder, its parents too, for the owner only; durable when it returns.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Whether there is a file or a folder.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Reads a whole file of at most `limit` bytes.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;

    /// A file from its beginning, bit by bit.
    fn reader(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// The names in a folder, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Removes a file. It may come back after a power cut.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Gives a folder another name beside the one it has, which must not be taken. After a power
    /// cut it has one of the two; the new one is durable when this returns.
    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a folder and everything in it; durable when it returns. Before that, any part of
    /// it may be left.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Opens a file for appending, making it when it is missing; its name is durable then.
    fn append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;

    /// The same for a file that may have one other name, given by [`Self::link`].
    fn append_linked(&self, path: &Path) -> io::Result<Box<dyn AppendFile>>;

    /// Gives a file a second name, which must not be taken. Durable after [`Self::sync_dir`] of the
    /// folder. An error of the kind `CrossesDevices` says that the two are on different disks.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// The identity, size and number of names of a regular file; nothing where there is none.
    fn state(&self, path: &Path) -> io::Result<Option<FileState>>;

    /// Replaces a file, or makes it, all or nothing; durable when it returns.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Adds to a file in one write, making it when it is missing. May be lost in a power cut.
    fn log(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Refuses a session's folder with something in it that Atomic cannot have made: a link, a FIFO,
    /// a second hard link of a file that is appended to, a file that is too large. Changes nothing.
    fn inspect(&self, dir: &Path, layout: &Layout) -> Result<(), (PathBuf, io::Error)> {
        let (_, _) = (dir, layout);
        Ok(())
    }

    /// Takes a lock that is released when it is dropped or its process ends. The text names the
    /// holder.
    fn lock(&self, path: &Path, text: &str) -> Result<Box<dyn Lock>, LockError>;

    /// Returns the text of the process that holds a lock; `None` where the lock is free.
    fn lock_holder(&self, path: &Path) -> io::Result<Option<String>>;

    /// Takes a lock on a file that is there, and leaves its content alone. It holds for every name
    /// of the file.
    fn lock_content(&self, path: &Path) -> Result<Box<dyn Lock>, LockError>;

    /// Whether a process holds the lock of [`Self::lock_content`].
    fn is_content_locked(&self, path: &Path) -> io::Result<bool>;
}

/// The files and folders of a session, by name.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Files that are appended to or locked, and have one name.
    pub appended: &'static [&'static str],
    /// Files that are replaced as a whole.
    pub replaced: &'static [&'static str],
    /// Files that are read as a whole, with the largest size of each in bytes.
    pub limits: &'static [(&'static str, u64)],
    /// Folders.
    pub folders: &'static [&'static str],
    /// The one of the folders whose files are appended to.
    pub logs: &'static str,
    /// Those of the folders whose content belongs to agents.
    pub not_ours: &'static [&'static str],
}

/// A file that only grows.
pub trait AppendFile: Send + Sync + Debug {
    /// Adds to the end. After an error a part of it may be there.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written so far durable. After an error nobody knows what is; a second
    /// try may claim success without having written anything, so there must not be one.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file off after `len` bytes.
    fn cut(&mut self, len: u64) -> io::Result<()>;

    /// The identity, size and number of names of the file.
    fn state(&self) -> io::Result<FileState>;
}

/// A lock that is held. Dropping it gives it up.
pub trait Lock: Send + Sync + Debug {}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("held by {holder}")]
    Held {
        /// Who, by its own words.
        holder: String,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The end of every temporary file's name; such a file is of no use after a crash.
pub(crate) const TEMPORARY: &str = ".tmp";

/// The name of the holder as shown, when its text says nothing.
pub(crate) const UNNAMED: &str = "another process";

/// The first line of a lock's text.
fn holder_named_in(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() { UNNAMED.to_owned() } else { line.chars().take(200).collect() }
}

/// A name beside `path` that nobody else uses.
fn temporary_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}.{}{TEMPORARY}", uuid::Uuid::new_v4().simple())
}

/// The folder a path is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
