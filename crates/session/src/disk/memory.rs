//! A disk in memory that forgets everything not synced.

mod layers;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::layers::{Content, Entry, Folder, Survival};
use super::{AppendFile, Disk, Lock, LockError, folder_of, holder_named_in, temporary_name};

/// A disk in memory that keeps apart what is durable and what only seems to be there: bytes of
/// files, and the names in folders, renamed ones included.
///
/// Clones are the same disk. Every promise that [`Disk`] does not make is broken here on purpose.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<Content>,
    folders: BTreeMap<PathBuf, Folder>,
    locks: BTreeMap<PathBuf, (u64, String)>,
    /// Folders whose new name is not durable yet.
    renamed: Vec<(PathBuf, PathBuf)>,
    /// Counts ends of processes; what was opened before one is of no use after it.
    era: u64,
    operations: u64,
    power_until: Option<u64>,
    room: Option<u64>,
    next_sync_fails: bool,
    written: u64,
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

    /// The disk is no longer full.
    pub fn make_room(&self) {
        self.state().room = None;
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
        state.free(file);
        state.folder(folder_of(path))?.cached.remove(&text(path.file_name()));
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
        let mut state = self.state();
        let file = state.file_or_new(path)?;
        state.sync_dir(folder_of(path))?;
        Ok(Box::new(MemoryFile { disk: self.clone(), file, era: state.era }))
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
        if let Ok(replaced) = state.file(path) {
            state.free(replaced);
        }
        let folder = state.folder(folder_of(path))?;
        folder.cached.remove(&text(temporary.file_name()));
        folder.cached.insert(text(path.file_name()), Entry::File(file));
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
}

impl State {
    fn powered(&self) -> io::Result<()> {
        match self.power_until {
            Some(until) if self.operations >= until => Err(io::Error::other("the power is off")),
            _ => Ok(()),
        }
    }

    fn step(&mut self) -> io::Result<()> {
        self.powered()?;
        self.operations += 1;
        Ok(())
    }

    fn is_folder(&self, path: &Path) -> bool {
        is_root(path) || self.folders.contains_key(path)
    }

    fn folder(&mut self, path: &Path) -> io::Result<&mut Folder> {
        if is_root(path) {
            return Ok(self.folders.entry(path.to_owned()).or_default());
        }
        self.folders.get_mut(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        self.folders.get(folder_of(path))?.cached.get(&text(path.file_name())).copied()
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        match self.entry(path) {
            Some(Entry::File(file)) => Ok(file),
            Some(Entry::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn file_or_new(&mut self, path: &Path) -> io::Result<usize> {
        self.powered()?;
        match self.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = self.files.len();
                self.folder(folder_of(path))?;
                self.step()?;
                self.files.push(Content::default());
                let folder = self.folder(folder_of(path))?;
                folder.cached.insert(text(path.file_name()), Entry::File(file));
                Ok(file)
            }
            found => found,
        }
    }

    fn write(&mut self, file: usize, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        let fits = self.room.map_or(bytes.len(), |room| {
            bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))
        });
        self.files[file].cached.extend_from_slice(&bytes[..fits]);
        self.written += fits as u64;
        self.room = self.room.map(|room| room - fits as u64);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn free(&mut self, file: usize) {
        let freed = self.files[file].cached.len() as u64;
        self.room = self.room.map(|room| room + freed);
    }

    fn sync_file(&mut self, file: usize) -> io::Result<()> {
        self.step()?;
        let content = &mut self.files[file];
        if std::mem::take(&mut self.next_sync_fails) {
            content.lost = true;
            return Err(io::Error::other("input/output error"));
        }
        if !content.lost {
            content.make_durable();
        }
        Ok(())
    }

    fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
        self.step()?;
        if std::mem::take(&mut self.next_sync_fails) {
            return Err(io::Error::other("input/output error"));
        }
        let folder = self.folder(path)?;
        folder.durable.clone_from(&folder.cached);
        self.renamed.retain(|(_, to)| folder_of(to) != path);
        Ok(())
    }

    /// Moves what is in a folder, and its name as far as it only seems to be there.
    fn rename_dir(&mut self, from: &Path, to: &Path) {
        let moved = |path: PathBuf| match path.strip_prefix(from) {
            Ok(inside) if inside.as_os_str().is_empty() => to.to_owned(),
            Ok(inside) => to.join(inside),
            Err(_) => path,
        };
        let folders = std::mem::take(&mut self.folders).into_iter();
        self.folders = folders.map(|(path, folder)| (moved(path), folder)).collect();
        if let Some(parent) = self.folders.get_mut(folder_of(to)) {
            parent.cached.remove(&text(from.file_name()));
            parent.cached.insert(text(to.file_name()), Entry::Folder);
        }
    }

    /// A folder has its old name or its new one, never both and never none.
    fn settle_names(&mut self, survive: Survival<'_>) {
        for (from, to) in std::mem::take(&mut self.renamed).into_iter().rev() {
            if survive(1) == 0 {
                self.rename_dir(&to, &from);
            } else if let Some(parent) = self.folders.get_mut(folder_of(&to)) {
                parent.durable.remove(&text(from.file_name()));
                parent.durable.insert(text(to.file_name()), Entry::Folder);
            }
        }
    }

    fn end_era(&mut self) {
        self.era += 1;
        self.locks.clear();
        self.power_until = None;
        self.next_sync_fails = false;
    }

    fn crash(&mut self, survive: Survival<'_>) {
        self.end_era();
        self.settle_names(survive);
        for content in &mut self.files {
            content.settle(survive);
        }
        for folder in self.folders.values_mut() {
            folder.settle(survive);
        }
        // Folders come after their parents in this order, so one pass finds all that are gone.
        let mut left = BTreeMap::<PathBuf, Folder>::new();
        for (path, folder) in std::mem::take(&mut self.folders) {
            let name = text(path.file_name());
            let named = left.get(folder_of(&path)).is_some_and(|f| f.cached.contains_key(&name));
            if is_root(&path) || named {
                left.insert(path, folder);
            }
        }
        self.folders = left;
    }
}

fn is_root(path: &Path) -> bool {
    path == Path::new("/") || path == Path::new(".") || path == Path::new("")
}

fn text(name: Option<&OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}

#[derive(Debug)]
struct MemoryFile {
    disk: MemoryDisk,
    file: usize,
    era: u64,
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
        self.state()?.write(self.file, bytes)
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
        let freed = (before - content.cached.len()) as u64;
        state.room = state.room.map(|room| room + freed);
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryLock {
    disk: MemoryDisk,
    path: PathBuf,
    era: u64,
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
