//! A disk in memory that forgets everything not synced.

mod handles;
mod layers;
mod state;

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atomic_files::FileState;

use self::handles::{MemoryContentLock, MemoryFile, MemoryLock};
use self::layers::{Entry, Folder};
use self::state::{State, is_root, text};
use super::{
    AppendFile, Disk, Lock, LockError, UNNAMED, folder_of, holder_named_in, temporary_name,
};

/// A disk in memory that keeps apart what is durable and what only seems to be there: bytes of
/// files, and the names in folders, renamed ones included.
///
/// Clones are the same disk. Every promise that [`Disk`] does not make is broken here on purpose.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

impl MemoryDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts the power and brings it back: everything not synced is gone, locks included.
    pub fn crash(&self) {
        self.state().crash(&mut |_| 0);
    }

    /// Cuts the power and brings it back: of what was not synced, some survives, chosen by
    /// `seed`: a beginning of the bytes added to a file, and some of the names.
    pub fn crash_keeping_some(&self, seed: u64) {
        let mut state = seed;
        self.state().crash(&mut |most| {
            // SplitMix64: short, and the same on every machine.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            usize::try_from((z ^ (z >> 31)) % (most as u64 + 1)).unwrap_or(0)
        });
    }

    /// Ends whatever used the disk, as SIGKILL does: everything is there to be read, but what was
    /// not durable still is not.
    pub fn kill(&self) {
        self.state().end_era();
    }

    /// What a power cut would leave of a file.
    pub fn durable(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        let named = |path: &Path| {
            let folder = state.folders.get(folder_of(path))?;
            folder.durable.get(&text(path.file_name())).copied()
        };
        for folder in path.ancestors().skip(1).take_while(|f| !is_root(f)) {
            named(folder)?;
        }
        match named(path)? {
            Entry::File(file) => Some(state.files[file].durable.clone()),
            Entry::Folder => None,
        }
    }

    /// Takes another `bytes`, then the disk is full.
    pub fn fail_after_bytes(&self, bytes: u64) {
        self.state().room = Some(bytes);
    }

    /// Takes nothing more below `folder`.
    pub fn fill(&self, folder: &Path) {
        self.state().full = Some(folder.to_owned());
    }

    /// The disk is no longer full.
    pub fn make_room(&self) {
        let mut state = self.state();
        (state.room, state.full) = (None, None);
    }

    /// The next sync fails, and what it should have made durable never will be.
    pub fn fail_next_sync(&self) {
        self.state().next_sync_fails = true;
    }

    /// Carries out another `operations`, then fails everything until a crash or a kill.
    pub fn cut_power_after(&self, operations: u64) {
        let mut state = self.state();
        state.power_until = Some(state.operations + operations);
    }

    /// How many operations that change something were carried out.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// How many bytes were written, whatever became of them.
    pub fn bytes_written(&self) -> u64 {
        self.state().written
    }

    /// Makes everything below `folder` another file system, so that no file has a name on both.
    pub fn mount(&self, folder: &Path) {
        self.state().apart = Some(folder.to_owned());
    }

    fn open_append(&self, path: &Path, links: u64) -> io::Result<Box<dyn AppendFile>> {
        let mut state = self.state();
        let file = state.file_or_new(path)?;
        if state.links(file) > links {
            return Err(atomic_files::Refusal::HardLinks.into());
        }
        state.sync_dir(folder_of(path))?;
        let (path, era) = (path.to_owned(), state.era);
        Ok(Box::new(MemoryFile { disk: self.clone(), path, file, era }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk for MemoryDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let mut missing = Vec::new();
        let mut above = Some(path);
        while let Some(folder) = above.filter(|f| !state.is_folder(f)) {
            missing.push(folder);
            above = folder.parent();
        }
        for folder in missing.into_iter().rev() {
            let parent = folder_of(folder);
            if state.entry(folder).is_some() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            state.step()?;
            state.folder(parent)?.cached.insert(text(folder.file_name()), Entry::Folder);
            state.folders.insert(folder.to_owned(), Folder::default());
            state.sync_dir(parent)?;
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.state().sync_dir(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = self.state();
        state.powered()?;
        Ok(state.is_folder(path) || state.entry(path).is_some())
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let state = self.state();
        state.powered()?;
        let file = state.file(path)?;
        let found = &state.files[file].cached;
        if found.len() as u64 > limit {
            return Err(atomic_files::Refusal::TooLarge { limit }.into());
        }
        Ok(found.clone())
    }

    fn reader(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(self.read(path, u64::MAX)?)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.powered()?;
        Ok(state.folder(dir)?.cached.keys().cloned().collect())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let file = state.file(path)?;
        state.step()?;
        state.folder(folder_of(path))?.cached.remove(&text(path.file_name()));
        state.free(file);
        Ok(())
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.is_folder(to) || state.entry(to).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !state.folders.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.step()?;
        state.rename_dir(from, to);
        state.renamed.push((from.to_owned(), to.to_owned()));
        state.sync_dir(folder_of(to))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if !state.folders.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.step()?;
        let (removed, left) = std::mem::take(&mut state.folders)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(folder, _)| folder.starts_with(path));
        state.folders = left;
        for entry in removed.values().flat_map(|folder| folder.cached.values()) {
            if let Entry::File(file) = entry {
                state.free(*file);
            }
        }
        let name = text(path.file_name());
        let parent = state.folder(folder_of(path))?;
        parent.cached.remove(&name);
        parent.durable.remove(&name);
        Ok(())
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        self.open_append(path, 1)
    }

    fn append_linked(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        self.open_append(path, 2)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.powered()?;
        let file = state.file(from)?;
        state.folder(folder_of(to))?;
        if state.is_folder(to) || state.entry(to).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if state.apart.as_ref().is_some_and(|disk| from.starts_with(disk) != to.starts_with(disk)) {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        state.step()?;
        state.folder(folder_of(to))?.cached.insert(text(to.file_name()), Entry::File(file));
        Ok(())
    }

    fn state(&self, path: &Path) -> io::Result<Option<FileState>> {
        let state = Self::state(self);
        state.powered()?;
        match state.file(path) {
            Ok(file) => Ok(Some(state.file_state(file, path))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let temporary = folder_of(path).join(temporary_name(path));
        let mut state = self.state();
        let file = state.file_or_new(&temporary)?;
        let written = state.write(file, bytes).and_then(|()| state.sync_file(file));
        if let Err(error) = written {
            drop(state);
            // Does nothing when the power is off, as in life.
            let _ = self.remove(&temporary);
            return Err(error);
        }
        state.step()?;
        let replaced = state.file(path).ok();
        let folder = state.folder(folder_of(path))?;
        folder.cached.remove(&text(temporary.file_name()));
        folder.cached.insert(text(path.file_name()), Entry::File(file));
        if let Some(replaced) = replaced {
            state.free(replaced);
        }
        state.sync_dir(folder_of(path))
    }

    fn log(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let file = state.file_or_new(path)?;
        state.write(file, bytes)
    }

    fn lock(&self, path: &Path, text: &str) -> Result<Box<dyn Lock>, LockError> {
        let mut state = self.state();
        if let Some((_, holder)) = state.locks.get(path) {
            return Err(LockError::Held { holder: holder_named_in(holder) });
        }
        state.file_or_new(path)?;
        let era = state.era;
        state.locks.insert(path.to_owned(), (era, text.to_owned()));
        Ok(Box::new(MemoryLock { disk: self.clone(), path: path.to_owned(), era }))
    }

    fn lock_holder(&self, path: &Path) -> io::Result<Option<String>> {
        let state = self.state();
        state.powered()?;
        Ok(state.locks.get(path).map(|(_, holder)| holder_named_in(holder)))
    }

    fn lock_content(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        let mut state = Self::state(self);
        state.powered()?;
        let (file, era) = (state.file(path)?, state.era);
        if state.locked.contains_key(&file) {
            return Err(LockError::Held { holder: UNNAMED.to_owned() });
        }
        state.locked.insert(file, era);
        Ok(Box::new(MemoryContentLock { disk: self.clone(), file, era }))
    }

    fn is_content_locked(&self, path: &Path) -> io::Result<bool> {
        let state = Self::state(self);
        state.powered()?;
        Ok(state.file(path).is_ok_and(|file| state.locked.contains_key(&file)))
    }
}
