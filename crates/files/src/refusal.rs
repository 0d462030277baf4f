//! Why a file is not used.

use std::fmt;
use std::io;

use rustix::fs::{FileType, Stat};

/// Types of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, also called a named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A device.
    Device,
}

impl FileKind {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self::of_type(FileType::from_raw_mode(stat.st_mode))
    }

    /// Refuses everything but a regular file.
    pub fn require_regular(self) -> Result<(), Refusal> {
        if self == Self::Regular { Ok(()) } else { Err(Refusal::NotRegular(self)) }
    }

    pub(crate) fn of_type(found: FileType) -> Self {
        match found {
            FileType::RegularFile => Self::Regular,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Self::Device,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regular => "a regular file",
            Self::Folder => "a folder",
            Self::Link => "a symbolic link",
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

/// Why a file is not used although the system would let us. Carried inside an [`io::Error`];
/// [`refusal`] finds it there. The texts continue a sentence that begins with the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A FIFO, a device or a folder where a file belongs: reading it may block or never end.
    #[error("is {0}, not a regular file")]
    NotRegular(FileKind),
    /// Something else where a folder belongs.
    #[error("is {0}, not a folder")]
    NotFolder(FileKind),
    /// A link, or a file behind a linked folder, where links are not followed.
    #[error("is a symbolic link or lies behind one, and Atomic follows no links here")]
    Link,
    /// A link whose target is outside.
    #[error("is a link that leads out of the repository")]
    Outside,
    /// More bytes than are read.
    #[error("is larger than {} MB", .limit >> 20)]
    TooLarge {
        /// The largest size that is read, in bytes.
        limit: u64,
    },
    /// Another name for a file that may belong to somebody else.
    #[error("has more than one hard link, and Atomic writes only to files that have one")]
    HardLinks,
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Refusal::NotRegular(_)
            | Refusal::NotFolder(_)
            | Refusal::Link
            | Refusal::Outside
            | Refusal::HardLinks => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, refusal)
    }
}

/// The refusal inside an error.
pub fn refusal(error: &io::Error) -> Option<Refusal> {
    error.get_ref()?.downcast_ref::<Refusal>().copied()
}
