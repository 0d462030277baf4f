//! The second link of a session's journal and big values, outside the project.
//!
//! A session lies in the project, where a worker's `git clean -fdx` deletes it. While a process holds
//! a session, `keep/<session>/` in the user's folder has a hard link to the journal and to each big
//! value, and copies where the project is on another file system. A session whose folder was deleted
//! is written again from there.
//!
//! The folder is laid out like a session's own, so what reads one reads the other. It is removed when
//! the process lets the session go in good order; after a crash the next process finds it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_files::FileState;
use serde::{Deserialize, Serialize};

use crate::blob::{BLOBS, sha256};
use crate::files::LOGS;
use crate::journal::{Position, checksum};
use crate::reader::JOURNAL;
use crate::session::{make_folder, make_folders, unused};
use crate::{AppendFile, Disk, Lock, LockError, SessionError, limits};

/// The position of a journal that was changed under the process that wrote it.
const POSITION: &str = "position.json";

/// The length of the journal after each append, a number a line. A number is written once the journal
/// is durable, so a journal that is shorter than the last number was cut off, and not by a crash.
const LENGTHS: &str = "lengths";

/// The size at which the file of lengths begins anew, in bytes.
const LENGTHS_LIMIT: u64 = 64 * 1024;

/// The folders of a session.
#[derive(Clone, Debug)]
pub struct SessionFolders {
    /// The session's own folder.
    pub dir: PathBuf,
    /// The folder of the second links, where there is a home folder for it.
    pub keep: Option<PathBuf>,
}

impl From<PathBuf> for SessionFolders {
    fn from(dir: PathBuf) -> Self {
        Self { dir, keep: None }
    }
}

/// Locks on the content of journals. One process may open a journal under two names, and a second
/// lock on the same file would wait for the first.
#[derive(Debug, Default)]
pub(crate) struct JournalLocks(Vec<(FileState, Box<dyn Lock>)>);

impl JournalLocks {
    /// Takes the lock of the journal in `folder`, unless it is held already or there is none.
    pub(crate) fn take(
        &mut self,
        disk: &dyn Disk,
        folder: &Path,
        dir: &Path,
    ) -> Result<(), SessionError> {
        let path = folder.join(JOURNAL);
        let Some(found) = state(disk, &path)? else { return Ok(()) };
        if self.0.iter().any(|(held, _)| held.is_same_file(&found)) {
            return Ok(());
        }
        let lock = disk.lock_content(&path).map_err(|error| match error {
            LockError::Held { holder } => SessionError::Held { dir: dir.to_owned(), holder },
            LockError::Io(error) => SessionError::while_doing("lock", &path)(error),
        })?;
        self.0.push((found, lock));
        Ok(())
    }
}

/// What was done to a session's folder when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The folder or the journal was gone, and was written again.
    Deleted,
    /// The journal was another file. That one is kept here, and the journal is again what Atomic
    /// wrote.
    Replaced {
        /// The path of the other file.
        kept: PathBuf,
    },
}

/// Writes a session again from its second links, where its journal is gone or another file. A second
/// call changes nothing.
pub(crate) fn restore(
    disk: &dyn Disk,
    folders: &SessionFolders,
    locks: &mut JournalLocks,
) -> Result<Option<Recovery>, SessionError> {
    let SessionFolders { dir, keep: Some(keep) } = folders else { return Ok(None) };
    let Some(kept) = kept_state(disk, keep).filter(|kept| kept.size > 0) else {
        return Ok(None);
    };
    let own = state(disk, &dir.join(JOURNAL))?;
    if own.is_some_and(|own| own.is_same_file(&kept)) {
        return Ok(None);
    }
    locks.take(disk, keep, dir)?;
    let restored = match own {
        None => Recovery::Deleted,
        // A change in place has damaged both names. The other file may be a copy that a user has put
        // back, and is judged by the same notes.
        Some(_) if !is_as_noted(disk, keep, kept)? => return Ok(None),
        Some(own) if is_continued(disk, folders, (own, kept))? => return Ok(None),
        Some(_) => Recovery::Replaced { kept: put_aside(disk, dir)? },
    };
    write_again(disk, dir, keep)?;
    Ok(Some(restored))
}

/// Whether the second journal is what was written, as far as that is noted.
fn is_as_noted(disk: &dyn Disk, keep: &Path, kept: FileState) -> Result<bool, SessionError> {
    if noted_length(disk, keep).is_some_and(|noted| kept.size < noted) {
        return Ok(false);
    }
    match noted_position(disk, keep) {
        Some(noted) if kept.size == noted.end => {
            Ok(checksum(disk, &keep.join(JOURNAL))? == noted.crc)
        }
        noted => Ok(noted.is_none()),
    }
}

/// Whether the journal in the project holds everything that its second file has. A copy on another
/// file system can be one write behind.
pub(crate) fn is_continued(
    disk: &dyn Disk,
    folders: &SessionFolders,
    (own, kept): (FileState, FileState),
) -> Result<bool, SessionError> {
    let is_copy = own.device != kept.device;
    if own.size != kept.size && !(is_copy && own.size > kept.size) {
        return Ok(false);
    }
    let keep = folders.keep.as_deref().unwrap_or(&folders.dir);
    let open = |folder: &Path| {
        let path = folder.join(JOURNAL);
        disk.reader(&path).map_err(SessionError::while_doing("read", &path))
    };
    let (own, kept) = (open(&folders.dir)?, open(keep)?);
    begins_with(own, kept).map_err(SessionError::while_doing("compare", &keep.join(JOURNAL)))
}

pub(crate) fn begins_with(mut whole: impl Read, mut beginning: impl Read) -> io::Result<bool> {
    let (mut one, mut other) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let read = beginning.read(&mut one)?;
        if read == 0 {
            return Ok(true);
        }
        match whole.read_exact(&mut other[..read]) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            done => done?,
        }
        if one[..read] != other[..read] {
            return Ok(false);
        }
    }
}

/// Moves a journal that Atomic has not written out of the way.
fn put_aside(disk: &dyn Disk, dir: &Path) -> Result<PathBuf, SessionError> {
    let (path, logs) = (dir.join(JOURNAL), dir.join(LOGS));
    disk.create_dir(&logs).map_err(SessionError::while_doing("create", &logs))?;
    let aside = unused(disk, &logs, |n| format!("journal-changed-{n}.jsonl"))?;
    disk.link(&path, &aside).map_err(SessionError::while_doing("write", &aside))?;
    disk.sync_dir(&logs).map_err(SessionError::while_doing("sync", &logs))?;
    disk.remove(&path).map_err(SessionError::while_doing("remove", &path))?;
    Ok(aside)
}

/// Writes the folder of a session again: the journal last, so that it never lacks a value.
pub(crate) fn write_again(disk: &dyn Disk, dir: &Path, keep: &Path) -> Result<(), SessionError> {
    make_folder(disk, dir)?;
    make_folders(disk, dir)?;
    link_values(disk, keep, dir)?;
    same_file(disk, &keep.join(JOURNAL), &dir.join(JOURNAL))?;
    disk.sync_dir(dir).map_err(SessionError::while_doing("sync", dir))
}

/// Puts back big values that are missing in the session's folder or were replaced there.
pub(crate) fn restore_values(
    disk: &dyn Disk,
    folders: &SessionFolders,
) -> Result<(), SessionError> {
    match &folders.keep {
        Some(keep) if kept_state(disk, keep).is_some() => link_values(disk, keep, &folders.dir),
        _ => Ok(()),
    }
}

/// Gives the big values of one folder a name in the other, where they have none there or it stands for
/// a file with other content.
pub(crate) fn link_values(disk: &dyn Disk, from: &Path, to: &Path) -> Result<(), SessionError> {
    let (from, to) = (from.join(BLOBS), to.join(BLOBS));
    disk.create_dir(&to).map_err(SessionError::while_doing("create", &to))?;
    let there = disk.list(&to).map_err(SessionError::while_doing("read", &to))?;
    let wanted = match disk.list(&from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
        listed => listed.map_err(SessionError::while_doing("read", &from))?,
    };
    for name in wanted.into_iter().filter(|name| !name.starts_with('.')) {
        let (value, second) = (from.join(&name), to.join(&name));
        if there.contains(&name) {
            if !is_replaced(disk, &value, &second) {
                continue;
            }
            disk.remove(&second).map_err(SessionError::while_doing("replace", &second))?;
        }
        same_file(disk, &value, &second)?;
    }
    disk.sync_dir(&to).map_err(SessionError::while_doing("sync", &to))
}

/// Whether the second name of a big value stands for something else, and the first for the value.
fn is_replaced(disk: &dyn Disk, value: &Path, second: &Path) -> bool {
    let state = |path| disk.state(path).ok().flatten();
    if let (Some(value), Some(second)) = (state(value), state(second))
        && value.is_same_file(&second)
    {
        return false;
    }
    let is_whole = |path: &Path| {
        let bytes = disk.read(path, limits::FACT);
        bytes.is_ok_and(|bytes| path.file_name() == Some(sha256(&bytes).as_ref()))
    };
    !is_whole(second) && is_whole(value)
}

/// Gives a file a second name, or copies it where that cannot be. Says whether it is a copy.
fn same_file(disk: &dyn Disk, from: &Path, to: &Path) -> Result<bool, SessionError> {
    match disk.link(from, to) {
        Ok(()) => Ok(false),
        Err(error) if is_folder_gone(&error) => Err(SessionError::while_doing("link", to)(error)),
        // Another file system, or one without hard links.
        Err(_) => {
            let bytes = disk.read(from, u64::MAX);
            let bytes = bytes.map_err(SessionError::while_doing("read", from))?;
            disk.replace(to, &bytes).map_err(SessionError::while_doing("write", to))?;
            Ok(true)
        }
    }
}

/// Whether an operation failed because the session's folder is gone.
pub(crate) fn is_folder_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

/// The state of a file, which may be gone with its folder.
pub(crate) fn state(disk: &dyn Disk, path: &Path) -> Result<Option<FileState>, SessionError> {
    disk.state(path).map_err(SessionError::while_doing("look at", path))
}

/// The state of the second journal. A home folder that cannot be used has none.
pub(crate) fn kept_state(disk: &dyn Disk, keep: &Path) -> Option<FileState> {
    disk.state(&keep.join(JOURNAL)).ok().flatten()
}

/// The second links of a session that is held.
#[derive(Debug)]
pub(crate) struct Keep {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// The second journal, where that is a copy.
    copy: Option<Box<dyn AppendFile>>,
    /// The file of lengths and its size. Without it a cut journal is noticed only by its process.
    lengths: Option<(Box<dyn AppendFile>, u64)>,
}

impl Keep {
    /// Makes the second links of a session's journal and values.
    pub(crate) fn establish(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        folder: &Path,
        locks: &mut JournalLocks,
    ) -> Result<Self, SessionError> {
        let (disk, folder) = (Arc::clone(disk), folder.to_owned());
        let mut keep = Self { disk, folder, copy: None, lengths: None };
        let (disk, folder) = (&keep.disk, &keep.folder);
        disk.create_dir(folder).map_err(SessionError::while_doing("create", folder))?;
        link_values(disk.as_ref(), dir, folder)?;
        keep.link_journal(dir, locks)?;
        let lengths = keep.disk.append(&keep.folder.join(LENGTHS)).ok();
        keep.lengths = lengths.map(|file| (file, LENGTHS_LIMIT));
        Ok(keep)
    }

    fn link_journal(&mut self, dir: &Path, locks: &mut JournalLocks) -> Result<(), SessionError> {
        let disk = Arc::clone(&self.disk);
        let (own, second) = (dir.join(JOURNAL), self.folder.join(JOURNAL));
        let kept = state(disk.as_ref(), &second)?;
        if kept.is_some() && state(disk.as_ref(), &own)? == kept {
            return Ok(());
        }
        if kept.is_some() {
            disk.remove(&second).map_err(SessionError::while_doing("remove", &second))?;
        }
        if same_file(disk.as_ref(), &own, &second)? {
            locks.take(disk.as_ref(), &self.folder, dir)?;
            let copy = disk.append(&second);
            self.copy = Some(copy.map_err(SessionError::while_doing("open", &second))?);
        }
        disk.sync_dir(&self.folder).map_err(SessionError::while_doing("sync", &self.folder))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number of names the journal has by our doing.
    pub(crate) fn links(&self) -> u64 {
        if self.copy.is_some() { 1 } else { 2 }
    }

    /// Adds to the copy what was added to the journal.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(copy) = &mut self.copy else { return Ok(()) };
        copy.write(bytes)?;
        copy.sync()
    }

    /// Notes the length of the journal, which is durable up to there.
    pub(crate) fn note_length(&mut self, end: u64) {
        let Some((file, size)) = &mut self.lengths else { return };
        let line = format!("{end}\n");
        let begun = if *size < LENGTHS_LIMIT { Ok(()) } else { file.cut(0).map(|()| *size = 0) };
        *size += line.len() as u64;
        if begun.and_then(|()| file.write(line.as_bytes())).is_err() {
            // An older number says less, and nothing wrong.
            self.lengths = None;
        }
    }

    /// Remembers how far a journal went that somebody has changed since.
    pub(crate) fn note_position(&self, position: Position) {
        let note = Note { seq: position.seq, end: position.end, crc: position.crc };
        let bytes = serde_json::to_vec(&note).unwrap_or_default();
        // The error that led here is the one to report.
        let _ = self.disk.replace(&self.folder.join(POSITION), &bytes);
    }

    /// Removes the second links.
    pub(crate) fn remove(&self) {
        // What is left is removed by a garbage collection.
        let _ = self.disk.remove_dir(&self.folder);
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    seq: u64,
    end: u64,
    crc: u32,
}

/// Refuses a journal that was cut off after its process was killed.
pub(crate) fn require_length(
    disk: &dyn Disk,
    folders: &SessionFolders,
    position: Position,
) -> Result<(), SessionError> {
    let Some(keep) = &folders.keep else { return Ok(()) };
    match noted_length(disk, keep) {
        Some(noted) if position.end < noted => {
            let found = position.end;
            Err(SessionError::Changed {
                path: folders.dir.join(JOURNAL),
                problem: format!("{noted} bytes were written, {found} are left"),
                is_kept: false,
            })
        }
        _ => Ok(()),
    }
}

/// Whether a journal of this length can be the one that the process has noted. Nothing is known where
/// the journal was changed under the process.
pub(crate) fn may_be_whole(disk: &dyn Disk, keep: &Path, size: u64) -> bool {
    let is_changed = disk.exists(&keep.join(POSITION)).unwrap_or(true);
    !is_changed && noted_length(disk, keep).is_none_or(|noted| size >= noted)
}

/// Returns the last length of the journal that was written to its end.
fn noted_length(disk: &dyn Disk, keep: &Path) -> Option<u64> {
    let bytes = disk.read(&keep.join(LENGTHS), 2 * LENGTHS_LIMIT).ok()?;
    let (whole, _) = std::str::from_utf8(&bytes).ok()?.rsplit_once('\n')?;
    whole.lines().next_back()?.parse().ok()
}

/// Returns how far the journal went when it was changed under its process.
fn noted_position(disk: &dyn Disk, keep: &Path) -> Option<Note> {
    let bytes = disk.read(&keep.join(POSITION), 4096).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Refuses a journal that is not what it was when it was changed under the process that wrote it.
pub(crate) fn require_noted(
    disk: &dyn Disk,
    folders: &SessionFolders,
    position: Position,
) -> Result<(), SessionError> {
    let Some(keep) = &folders.keep else { return Ok(()) };
    let Some(note) = noted_position(disk, keep) else { return Ok(()) };
    if note != (Note { seq: position.seq, end: position.end, crc: position.crc }) {
        let problem = match (note.seq, position.seq) {
            (noted, found) if noted != found => {
                format!("{noted} events were recorded, {found} are left")
            }
            _ => "its content is another one".to_owned(),
        };
        return Err(SessionError::Changed {
            path: folders.dir.join(JOURNAL),
            problem,
            is_kept: false,
        });
    }
    let path = keep.join(POSITION);
    disk.remove(&path).map_err(SessionError::while_doing("remove", &path))
}

/// How the second links of a session stand that nobody in this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepStatus {
    /// There are none.
    Absent,
    /// A process is at work in the session.
    Held,
    /// A process has ended without removing them.
    Left,
}

/// Looks at the second links of a session.
pub fn keep_status(disk: &dyn Disk, keep: &Path) -> KeepStatus {
    let path = keep.join(JOURNAL);
    if kept_state(disk, keep).is_none_or(|kept| kept.size == 0) {
        return KeepStatus::Absent;
    }
    let is_held = disk.is_content_locked(&path).unwrap_or(true);
    if is_held { KeepStatus::Held } else { KeepStatus::Left }
}
