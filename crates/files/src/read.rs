//! Reading a file to its end, when it has one.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fstat};
use rustix::io::Errno;

use crate::open::SAFE;
use crate::refusal::{FileKind, Refusal};

/// Reads a file that the user has named or owns: links lead wherever they lead. Only regular files
/// are read, and at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    bounded(opened(path)?, limit)
}

/// The same for a text in UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text(read(path, limit)?)
}

/// Bytes as a text in UTF-8; anything else is an error of the kind `InvalidData`.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    let not_text = || io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8");
    String::from_utf8(bytes).map_err(|_| not_text())
}

fn opened(path: &Path) -> io::Result<File> {
    match rustix::fs::open(path, OFlags::RDONLY | SAFE, Mode::empty()) {
        Ok(file) => regular(file),
        // Linux does not open sockets, nor devices without a driver.
        Err(Errno::NXIO) => {
            let found = rustix::fs::stat(path)?;
            Err(Refusal::NotRegular(FileKind::of(&found)).into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A file that was opened, when it is a regular one.
pub(crate) fn regular(file: OwnedFd) -> io::Result<File> {
    FileKind::of(&fstat(&file)?).require_regular()?;
    Ok(file.into())
}

/// Everything in a regular file.
pub(crate) fn bounded(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    if size > limit {
        return Err(Refusal::TooLarge { limit }.into());
    }
    // A read that only finds the end costs as much as one that finds something, for each of
    // thousands of files. A file that claims to be empty, as those of the kernel do, is read until
    // it ends.
    let most = if size == 0 { limit.saturating_add(1) } else { size };
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(Refusal::TooLarge { limit }.into());
    }
    Ok(bytes)
}
