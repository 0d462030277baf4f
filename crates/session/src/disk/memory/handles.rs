//! Files and locks of the disk in memory. Those of a process that is gone are of no use.

use std::io;
use std::path::PathBuf;
use std::sync::MutexGuard;

use atomic_files::FileState;

use super::{MemoryDisk, State};
use crate::{AppendFile, Lock};

#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) disk: MemoryDisk,
    pub(super) path: PathBuf,
    pub(super) file: usize,
    pub(super) era: u64,
}

impl MemoryFile {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.era != self.era {
            return Err(io::Error::other("this file was opened by a process that is gone"));
        }
        Ok(state)
    }
}

impl AppendFile for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        state.require_room(&self.path)?;
        state.write(self.file, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.state()?.sync_file(self.file)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.step()?;
        let content = &mut state.files[self.file];
        let before = content.cached.len();
        content.cut(usize::try_from(len).unwrap_or(usize::MAX));
        content.changes += 1;
        let freed = (before - content.cached.len()) as u64;
        state.room = state.room.map(|room| room + freed);
        Ok(())
    }

    fn state(&self) -> io::Result<FileState> {
        let state = Self::state(self)?;
        Ok(state.file_state(self.file, &self.path))
    }
}

#[derive(Debug)]
pub(super) struct MemoryContentLock {
    pub(super) disk: MemoryDisk,
    pub(super) file: usize,
    pub(super) era: u64,
}

impl Lock for MemoryContentLock {}

impl Drop for MemoryContentLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locked.get(&self.file) == Some(&self.era) {
            state.locked.remove(&self.file);
        }
    }
}

#[derive(Debug)]
pub(super) struct MemoryLock {
    pub(super) disk: MemoryDisk,
    pub(super) path: PathBuf,
    pub(super) era: u64,
}

impl Lock for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locks.get(&self.path).is_some_and(|(era, _)| *era == self.era) {
            state.locks.remove(&self.path);
        }
    }
}
