//! What a session and its project are known by when they are found again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::keep::{self, JournalLocks, SessionFolders};
use crate::reader::{JOURNAL, continued};
use crate::{Disk, Session, SessionError, blob};

const BUFFER: usize = 64 * 1024;

/// The identity of a folder. It stays when the folder is moved on its file system, and a new folder
/// at the same path has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderIdentity {
    /// The number of the folder on its file system, which may use it again for a new folder.
    inode: u64,
    /// When the folder was created, in nanoseconds since 1970, where the file system knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created: Option<u64>,
}

impl FolderIdentity {
    /// The identity of the folder at this path; `None` where there is no folder.
    pub fn of(folder: &Path) -> Option<Self> {
        let found = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
        let created = found.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let created = created.and_then(|at| u64::try_from(at.as_nanos()).ok());
        Some(Self { inode: found.ino(), created })
    }

    /// Whether both belong to one folder.
    pub fn is_same_folder(&self, other: &Self) -> bool {
        match (self.created, other.created) {
            (Some(one), Some(other)) => one == other,
            _ => self.inode == other.inode,
        }
    }
}

/// The length and the hash of a journal, as it was when its process let it go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalSeal {
    end: u64,
    sha256: String,
}

impl JournalSeal {
    /// Whether the session in this folder has exactly that journal.
    pub fn fits(&self, disk: &dyn Disk, dir: &Path) -> bool {
        let path = dir.join(JOURNAL);
        let is_as_long = matches!(disk.state(&path), Ok(Some(found)) if found.size == self.end);
        is_as_long && hashed(disk, &path).is_ok_and(|(sha256, _)| sha256 == self.sha256)
    }
}

/// The SHA-256 and the CRC-32 of a file.
fn hashed(disk: &dyn Disk, path: &Path) -> io::Result<(String, u32)> {
    let (mut source, mut buffer) = (disk.reader(path)?, vec![0; BUFFER]);
    let (mut sha256, mut crc) = (Sha256::new(), 0);
    loop {
        let read = source.read(&mut buffer)?;
        if read == 0 {
            let text = sha256.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            return Ok((text, crc));
        }
        sha256.update(&buffer[..read]);
        crc = continued(crc, &buffer[..read]);
    }
}

impl Session {
    /// The seal of the journal; `None` where its content is not what this process has written or
    /// read.
    pub fn seal(&self) -> Option<JournalSeal> {
        let position = self.journal.position();
        let (sha256, crc) = hashed(self.disk.as_ref(), &self.dir.join(JOURNAL)).ok()?;
        (crc == position.crc).then_some(JournalSeal { end: position.end, sha256 })
    }

    /// Names the folder that the session works in. Without that folder nothing of the session is
    /// written again: agents would work in a new folder at its path.
    pub fn belong_to(&mut self, workspace: &Path) {
        self.workspace = FolderIdentity::of(workspace).map(|own| (workspace.to_owned(), own));
    }
}

/// Whether the journal in the folder `whole` begins with everything that the one in `part` has.
pub fn contains_journal(disk: &dyn Disk, whole: &Path, part: &Path) -> bool {
    let [whole, part] = [whole, part].map(|folder| folder.join(JOURNAL));
    let (Ok(Some(found)), Ok(Some(other))) = (disk.state(&whole), disk.state(&part)) else {
        return false;
    };
    let begins = || keep::begins_with(disk.reader(&whole)?, disk.reader(&part)?);
    found.is_same_file(&other) || found.size >= other.size && begins().unwrap_or(false)
}

/// Whether the journal in the second links has a further name somewhere, so that the session was not
/// deleted but moved.
pub fn is_moved(disk: &dyn Disk, keep: &Path) -> bool {
    keep::kept_state(disk, keep).is_some_and(|kept| kept.links > 1)
}

/// Removes second links that a process left, when they hold nothing that the session's own folder
/// lacks. Returns whether they are gone.
pub fn remove_leftover(disk: &Arc<dyn Disk>, folders: &SessionFolders) -> bool {
    let SessionFolders { dir, keep: Some(keep) } = folders else { return false };
    let mut locks = JournalLocks::default();
    // A process that takes the session up now needs them.
    if locks.take(disk.as_ref(), keep, dir).is_err() {
        return false;
    }
    is_leftover(disk.as_ref(), folders, keep).unwrap_or(false) && disk.remove_dir(keep).is_ok()
}

fn is_leftover(
    disk: &dyn Disk,
    folders: &SessionFolders,
    keep: &Path,
) -> Result<bool, SessionError> {
    let path = folders.dir.join(JOURNAL);
    let (Some(own), Some(kept)) = (keep::state(disk, &path)?, keep::kept_state(disk, keep)) else {
        return Ok(false);
    };
    let has_journal = own.is_same_file(&kept) || keep::is_continued(disk, folders, (own, kept))?;
    if !has_journal || !keep::may_be_whole(disk, keep, own.size) {
        return Ok(false);
    }
    let [own, kept] = [&folders.dir, keep].map(|folder| folder.join(blob::BLOBS));
    let names = match disk.list(&kept) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
        listed => listed.map_err(SessionError::while_doing("read", &kept))?,
    };
    let is_there = |name: &String| {
        let same = match (disk.state(&own.join(name)), disk.state(&kept.join(name))) {
            (Ok(Some(own)), Ok(Some(kept))) => own.is_same_file(&kept),
            _ => false,
        };
        same || hashed(disk, &own.join(name)).is_ok_and(|(sha256, _)| sha256 == *name)
    };
    Ok(names.iter().filter(|name| !name.starts_with('.')).all(is_there))
}
