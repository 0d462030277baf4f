//! A folder that is open. Nothing in it is reached through a link.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RawMode, fchmod, fstat, fsync, linkat, mkdirat, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;

use crate::open::SAFE;
use crate::read::{bounded, regular};
use crate::refusal::{FileKind, Refusal};
use crate::state::FileState;

/// The end of the name of every temporary file; such a file is of no use after a crash.
const TEMPORARY: &str = ".tmp";

/// How many folders inside each other are removed.
const DEEPEST: usize = 64;

/// An open folder. Names are single names, without a slash.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// The permissions of a file that replaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permissions {
    /// These, less what the umask takes.
    New(u32),
    /// Those of the file that is replaced; these where there is none.
    KeptOr(u32),
}

impl Folder {
    pub(crate) fn new(folder: OwnedFd) -> Self {
        Self(folder)
    }

    /// The type of an entry; nothing where there is none. A link is a link.
    pub fn kind(&self, name: &OsStr) -> io::Result<Option<FileKind>> {
        match statat(&self.0, single(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(FileKind::of(&found))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        regular(self.open(name, OFlags::RDONLY, 0)?)
    }

    /// Reads a regular file of at most `limit` bytes.
    pub fn read(&self, name: &OsStr, limit: u64) -> io::Result<Vec<u8>> {
        bounded(self.open_file(name)?, limit)
    }

    /// Creates a file that is not there yet.
    pub fn create_new(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        // No `fstat`: with `O_EXCL` the file is new, and so it is regular.
        Ok(self.open(name, flags, mode)?.into())
    }

    /// Opens a regular file with one hard link for appending, and creates it when it is missing.
    pub fn open_append(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        self.open_append_linked(name, mode, 1)
    }

    /// Opens a regular file with at most `links` hard links for appending, and creates it when it is
    /// missing.
    pub fn open_append_linked(&self, name: &OsStr, mode: u32, links: u64) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        owned(self.open(name, flags, mode)?, links)
    }

    /// Opens a regular file with one hard link for reading and writing, and creates it when it is
    /// missing.
    pub fn open_writable(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        owned(self.open(name, OFlags::RDWR | OFlags::CREATE, mode)?, 1)
    }

    /// Refuses an entry that is there and is not a regular file with one hard link.
    pub fn require_own_file(&self, name: &OsStr) -> io::Result<()> {
        let found = match statat(&self.0, single(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        FileKind::of(&found).require_regular()?;
        require_links(&found, 1)
    }

    /// The identity, size and link count of a regular file; nothing where there is no entry.
    pub fn state(&self, name: &OsStr) -> io::Result<Option<FileState>> {
        let found = match statat(&self.0, single(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        FileKind::of(&found).require_regular()?;
        Ok(Some(FileState::of(&found)))
    }

    /// Gives a file a second name, in this folder or another one. A link is not followed. Durable
    /// after [`Self::sync`] of that folder.
    pub fn link(&self, name: &OsStr, folder: &Self, to: &OsStr) -> io::Result<()> {
        Ok(linkat(&self.0, single(name)?, &folder.0, single(to)?, AtFlags::empty())?)
    }

    /// Refuses an entry that is there and has more than `limit` bytes.
    pub fn require_size(&self, name: &OsStr, limit: u64) -> io::Result<()> {
        match statat(&self.0, single(name)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if u64::try_from(found.st_size).is_ok_and(|size| size <= limit) => Ok(()),
            Ok(_) => Err(Refusal::TooLarge { limit }.into()),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a temporary file that takes the place of `name` when it is committed.
    pub fn stage(
        &self,
        name: &OsStr,
        bytes: &[u8],
        permissions: Permissions,
    ) -> io::Result<Staged<'_>> {
        let mut temporary = OsString::from(".");
        temporary.push(single(name)?);
        temporary.push(format!(".{}{TEMPORARY}", uuid::Uuid::new_v4().simple()));
        let (mode, kept) = match permissions {
            Permissions::New(mode) => (mode, None),
            Permissions::KeptOr(mode) => (mode, self.mode_of_file(name)),
        };
        // The text of a private file must not be readable in the temporary file either.
        let file = self.create_new(&temporary, if kept.is_some() { 0o600 } else { mode })?;
        let mut staged =
            Staged { folder: self, file, temporary, name: name.to_owned(), is_committed: false };
        if let Some(mode) = kept {
            fchmod(&staged.file, mode)?;
        }
        staged.file.write_all(bytes)?;
        Ok(staged)
    }

    /// Returns the permissions of a regular file.
    fn mode_of_file(&self, name: &OsStr) -> Option<Mode> {
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        (FileKind::of(&found) == FileKind::Regular).then(|| Mode::from_raw_mode(found.st_mode))
    }

    /// Opens a folder in this one, and creates it when it is missing; durable when this returns.
    pub fn create_folder(&self, name: &OsStr, mode: u32) -> io::Result<Self> {
        match self.folder(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        match mkdirat(&self.0, single(name)?, mode_of(mode)) {
            // Another process was quicker, and may not have come to the sync yet.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.sync()?;
        self.folder(name)
    }

    /// Opens a folder in this one.
    pub fn folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.0, single(name)?, flags, Mode::empty()) {
            Ok(folder) => Ok(Self(folder)),
            Err(error @ (Errno::NOTDIR | Errno::LOOP | Errno::MLINK)) => {
                Err(match self.kind(name)? {
                    Some(FileKind::Link) => Refusal::Link.into(),
                    Some(kind) => Refusal::NotFolder(kind).into(),
                    None => error.into(),
                })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The names in the folder with their types, sorted.
    pub fn entries(&self) -> io::Result<Vec<(OsString, FileKind)>> {
        let mut found = vec![];
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = CString::from(entry.file_name()).into_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name = OsString::from_vec(name);
            let known = entry.file_type();
            // Some file systems do not say.
            let is_unknown = known == rustix::fs::FileType::Unknown;
            let kind = if is_unknown { self.kind(&name)? } else { Some(FileKind::of_type(known)) };
            found.extend(kind.map(|kind| (name, kind)));
        }
        found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    /// Removes a file, or a link itself.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.0, single(name)?, AtFlags::empty())?)
    }

    /// Removes a folder and everything in it. Links in it are removed and not followed.
    pub fn remove_folder(&self, name: &OsStr) -> io::Result<()> {
        self.remove_folder_at(name, 0)
    }

    fn remove_folder_at(&self, name: &OsStr, depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(io::Error::other(format!("more than {DEEPEST} folders deep")));
        }
        let folder = self.folder(name)?;
        for (name, kind) in folder.entries()? {
            if kind == FileKind::Folder {
                folder.remove_folder_at(&name, depth + 1)?;
            } else {
                folder.remove(&name)?;
            }
        }
        Ok(unlinkat(&self.0, single(name)?, AtFlags::REMOVEDIR)?)
    }

    /// Gives an entry another name, in this folder or another one.
    pub fn rename(&self, from: &OsStr, folder: &Self, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, single(from)?, &folder.0, single(to)?)?)
    }

    /// Makes the names in the folder durable.
    pub fn sync(&self) -> io::Result<()> {
        Ok(fsync(&self.0)?)
    }

    /// The folder as a file, for a lock.
    pub fn into_file(self) -> File {
        self.0.into()
    }

    fn open(&self, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | SAFE;
        openat(&self.0, single(name)?, flags, mode_of(mode)).map_err(|error| match error {
            Errno::LOOP | Errno::MLINK => Refusal::Link.into(),
            // A FIFO without a reader, or a socket.
            Errno::NXIO | Errno::ISDIR => match self.kind(name) {
                Ok(Some(kind)) if kind != FileKind::Regular => Refusal::NotRegular(kind).into(),
                _ => error.into(),
            },
            other => other.into(),
        })
    }
}

/// A file that was written under another name. Dropping it removes it.
#[derive(Debug)]
pub struct Staged<'f> {
    folder: &'f Folder,
    file: File,
    temporary: OsString,
    name: OsString,
    is_committed: bool,
}

impl Staged<'_> {
    /// Makes the bytes durable. Without this a power cut after [`Self::commit`] may leave an empty
    /// file.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Puts the file in its place. Durable after [`Folder::sync`].
    pub fn commit(mut self) -> io::Result<()> {
        self.folder.rename(&self.temporary, self.folder, &self.name)?;
        self.is_committed = true;
        Ok(())
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.is_committed {
            // The error that led here is the one to report.
            let _ = self.folder.remove(&self.temporary);
        }
    }
}

/// A file that was opened to be written, when it is regular and has at most `links` names.
fn owned(file: OwnedFd, links: u64) -> io::Result<File> {
    let found = fstat(file.as_fd())?;
    FileKind::of(&found).require_regular()?;
    require_links(&found, links).map(|()| file.into())
}

fn require_links(found: &rustix::fs::Stat, most: u64) -> io::Result<()> {
    let is_fine = FileState::of(found).links <= most;
    if is_fine { Ok(()) } else { Err(Refusal::HardLinks.into()) }
}

fn mode_of(mode: u32) -> Mode {
    RawMode::try_from(mode).map_or(Mode::empty(), Mode::from_raw_mode)
}

/// A name that does not lead out of its folder.
fn single(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(name)
}
