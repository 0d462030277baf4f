//! A session that is held while somebody else deletes its folder or writes to its journal.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use atomic_files::{FileState, Refusal};

use crate::identity::is_moved;
use crate::journal::Found;
use crate::keep::{self, JournalLocks, KeepStatus, Recovery, SessionFolders, keep_status};
use crate::progress::Progress;
use crate::reader::JOURNAL;
use crate::session::{LOCK, take_lock_in};
use crate::tasks::Tasks;
use crate::{Disk, FolderIdentity, Lock, Session, SessionError};

/// How often a write is tried in a folder that somebody deletes meanwhile. All tries together take
/// longer than any deletion of a session's folder should.
const ATTEMPTS: u32 = 100;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

/// The lock on the file `lock`, and what it takes to get it again.
#[derive(Debug)]
pub(crate) struct HeldLock {
    pub(crate) holder: String,
    /// The file that is locked.
    file: Option<FileState>,
    _lock: Box<dyn Lock>,
}

impl Session {
    /// Writes a session again whose folder was deleted while a process was at work in it, and that
    /// process is gone. Nothing is done to a session that is there.
    pub fn restore(
        disk: &dyn Disk,
        folders: &SessionFolders,
    ) -> Result<Option<Recovery>, SessionError> {
        let is_there = keep::state(disk, &folders.dir.join(JOURNAL))?.is_some();
        let kept = folders.keep.as_deref().map_or(KeepStatus::Absent, |k| keep_status(disk, k));
        match kept {
            // Whoever holds the session sees to its folder.
            KeepStatus::Held if is_there => Ok(None),
            KeepStatus::Held | KeepStatus::Left => {
                keep::restore(disk, folders, &mut JournalLocks::default())
            }
            KeepStatus::Absent => Ok(None),
        }
    }

    /// Looks whether the session's folder is there and nobody else has written to the journal. A
    /// folder that was deleted is written again; a journal that was changed is an error.
    pub fn secure(&mut self) -> Result<(), SessionError> {
        for _ in 0..ATTEMPTS {
            if self.journal.look()? == Found::Same {
                self.lock_again();
                return Ok(());
            }
            match self.write_again() {
                // Whoever deletes the folder may not be done yet.
                Err(SessionError::Io { source, .. }) if is_disturbed(&source) => {
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                }
                done => done?,
            }
        }
        Err(self.journal.changed("it is deleted again and again".to_owned()))
    }

    fn write_again(&mut self) -> Result<(), SessionError> {
        let kept = self.journal.keep().map(|keep| keep.folder().to_owned());
        let is_there = |keep: &PathBuf| matches!(self.disk.state(&keep.join(JOURNAL)), Ok(Some(kept)) if kept.size > 0);
        let Some(keep) = kept.filter(is_there) else {
            return Err(self.journal.changed("it was removed".to_owned()));
        };
        // At its old path a folder would be made that is not the project.
        if is_moved(self.disk.as_ref(), &keep) {
            return Err(self.journal.changed("its folder was moved".to_owned()));
        }
        if let Some((workspace, own)) = &self.workspace
            && FolderIdentity::of(workspace).is_none_or(|found| !found.is_same_folder(own))
        {
            let problem = format!("the project folder {} is gone", workspace.display());
            return Err(self.journal.changed(problem));
        }
        keep::write_again(self.disk.as_ref(), &self.dir, &keep)?;
        self.journal.reopen()?;
        (self.summary, self.tasks, self.progress) = (None, Tasks::default(), Progress::default());
        self.restored = true;
        Ok(())
    }

    /// Takes the lock again after its file was removed. The lock on the journal holds meanwhile.
    fn lock_again(&mut self) {
        let path = self.dir.join(LOCK);
        let found = self.disk.state(&path).ok().flatten();
        let is_ours = match (&found, &self.lock.file) {
            (Some(found), Some(ours)) => found.is_same_file(ours),
            _ => false,
        };
        if !is_ours && let Ok(lock) = take_lock(self.disk.as_ref(), &self.dir, &self.lock.holder) {
            self.lock = lock;
        }
    }

    /// Whether the folder was written again since this was last asked. The files made from facts
    /// are not in it then.
    pub fn take_restored(&mut self) -> bool {
        std::mem::take(&mut self.restored)
    }

    /// The reason why the session has no second links outside of the project, once.
    pub fn take_unkept(&mut self) -> Option<SessionError> {
        self.journal.take_unkept()
    }

    /// Removes the second links, because the process is about to let the session go. Returns false
    /// where the folder was deleted meanwhile: it was written again, without the files made from
    /// facts.
    pub fn release(&mut self) -> Result<bool, SessionError> {
        self.secure()?;
        if self.restored {
            return Ok(false);
        }
        if let Some(keep) = self.journal.keep() {
            keep::link_values(self.disk.as_ref(), keep.folder(), &self.dir)?;
        }
        self.journal.stop_keeping();
        Ok(true)
    }

    /// Carries out a write in the session's folder, again where the folder was deleted meanwhile.
    pub(crate) fn persist<T>(
        &mut self,
        mut act: impl FnMut(&mut Self) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        for _ in 0..ATTEMPTS {
            self.secure()?;
            match act(self) {
                Err(SessionError::Io { source, .. }) if is_disturbed(&source) => {
                    std::thread::sleep(BETWEEN_ATTEMPTS);
                }
                done => return done,
            }
        }
        act(self)
    }
}

/// Whether an operation failed because somebody deletes the folder right now.
fn is_disturbed(error: &io::Error) -> bool {
    keep::is_folder_gone(error) || error.kind() == io::ErrorKind::AlreadyExists
}

/// Refuses a journal with a second name that is not the one in the user's folder.
pub(crate) fn require_our_links(
    disk: &dyn Disk,
    folders: &SessionFolders,
) -> Result<(), SessionError> {
    let path = folders.dir.join(JOURNAL);
    let Some(own) = keep::state(disk, &path)? else { return Ok(()) };
    let kept = folders.keep.as_ref().and_then(|keep| keep::kept_state(disk, keep));
    let expected = if kept.is_some_and(|kept| kept.is_same_file(&own)) { 2 } else { 1 };
    if own.links > expected {
        return Err(SessionError::Strange { path, problem: Refusal::HardLinks });
    }
    Ok(())
}

pub(crate) fn take_lock(
    disk: &dyn Disk,
    dir: &Path,
    holder: &str,
) -> Result<HeldLock, SessionError> {
    let path = dir.join(LOCK);
    let lock = take_lock_in(disk, dir, &path, holder)?;
    let file = disk.state(&path).ok().flatten();
    Ok(HeldLock { holder: holder.to_owned(), file, _lock: lock })
}
