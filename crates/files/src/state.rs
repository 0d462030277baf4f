//! The identity and size of a file, to tell later whether it is the same and unchanged.

use std::fs::File;
use std::io;

use rustix::fs::{Stat, fstat};

/// The identity, size and link count of a regular file at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The file system.
    pub device: u64,
    /// The number of the file on it.
    pub inode: u64,
    /// The number of names.
    pub links: u64,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change of the content: seconds and nanoseconds.
    pub modified: (i64, i64),
}

impl FileState {
    /// The state of an open file.
    pub fn of_file(file: &File) -> io::Result<Self> {
        Ok(Self::of(&fstat(file)?))
    }

    /// Whether both are states of one file.
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    pub(crate) fn of(stat: &Stat) -> Self {
        // The types of these fields differ from system to system.
        let number = |value: i128| u64::try_from(value).unwrap_or_default();
        let seconds = |value: i128| i64::try_from(value).unwrap_or_default();
        Self {
            device: number(stat.st_dev.into()),
            inode: number(stat.st_ino.into()),
            links: number(stat.st_nlink.into()),
            size: number(stat.st_size.into()),
            modified: (seconds(stat.st_mtime.into()), seconds(stat.st_mtime_nsec.into())),
        }
    }
}
