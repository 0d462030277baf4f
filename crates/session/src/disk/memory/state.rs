//! Everything on the disk in memory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use atomic_files::FileState;

use super::layers::{Content, Entry, Folder, Survival};
use crate::disk::folder_of;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) files: Vec<Content>,
    pub(super) folders: BTreeMap<PathBuf, Folder>,
    pub(super) locks: BTreeMap<PathBuf, (u64, String)>,
    /// Files whose content is locked, each with the era of the lock.
    pub(super) locked: BTreeMap<usize, u64>,
    /// Folders whose new name is not durable yet.
    pub(super) renamed: Vec<(PathBuf, PathBuf)>,
    /// Counts ends of processes; what was opened before one is of no use after it.
    pub(super) era: u64,
    pub(super) operations: u64,
    pub(super) power_until: Option<u64>,
    pub(super) room: Option<u64>,
    /// A folder on a file system without room.
    pub(super) full: Option<PathBuf>,
    /// A folder on a file system of its own.
    pub(super) apart: Option<PathBuf>,
    pub(super) next_sync_fails: bool,
    pub(super) written: u64,
}

impl State {
    pub(super) fn powered(&self) -> io::Result<()> {
        match self.power_until {
            Some(until) if self.operations >= until => Err(io::Error::other("the power is off")),
            _ => Ok(()),
        }
    }

    pub(super) fn step(&mut self) -> io::Result<()> {
        self.powered()?;
        self.operations += 1;
        Ok(())
    }

    pub(super) fn is_folder(&self, path: &Path) -> bool {
        is_root(path) || self.folders.contains_key(path)
    }

    pub(super) fn folder(&mut self, path: &Path) -> io::Result<&mut Folder> {
        if is_root(path) {
            return Ok(self.folders.entry(path.to_owned()).or_default());
        }
        self.folders.get_mut(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn entry(&self, path: &Path) -> Option<Entry> {
        self.folders.get(folder_of(path))?.cached.get(&text(path.file_name())).copied()
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<usize> {
        match self.entry(path) {
            Some(Entry::File(file)) => Ok(file),
            Some(Entry::Folder) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn file_or_new(&mut self, path: &Path) -> io::Result<usize> {
        self.powered()?;
        match self.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = self.files.len();
                self.folder(folder_of(path))?;
                self.require_room(path)?;
                self.step()?;
                self.files.push(Content::default());
                let folder = self.folder(folder_of(path))?;
                folder.cached.insert(text(path.file_name()), Entry::File(file));
                Ok(file)
            }
            found => found,
        }
    }

    /// Refuses to write to a file on a file system without room.
    pub(super) fn require_room(&self, path: &Path) -> io::Result<()> {
        match &self.full {
            Some(full) if path.starts_with(full) => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    pub(super) fn write(&mut self, file: usize, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        let fits = self.room.map_or(bytes.len(), |room| {
            bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX))
        });
        self.files[file].cached.extend_from_slice(&bytes[..fits]);
        self.files[file].changes += 1;
        self.written += fits as u64;
        self.room = self.room.map(|room| room - fits as u64);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// The number of names of a file.
    pub(super) fn links(&self, file: usize) -> u64 {
        let names = self.folders.values().flat_map(|folder| folder.cached.values());
        names.filter(|entry| **entry == Entry::File(file)).count() as u64
    }

    pub(super) fn file_state(&self, file: usize, path: &Path) -> FileState {
        let content = &self.files[file];
        FileState {
            device: u64::from(self.apart.as_ref().is_some_and(|apart| path.starts_with(apart))),
            inode: file as u64,
            links: self.links(file),
            size: content.cached.len() as u64,
            modified: (0, content.changes),
        }
    }

    /// Gives back the room of a file without a name.
    pub(super) fn free(&mut self, file: usize) {
        if self.links(file) > 0 {
            return;
        }
        let freed = self.files[file].cached.len() as u64;
        self.room = self.room.map(|room| room + freed);
    }

    pub(super) fn sync_file(&mut self, file: usize) -> io::Result<()> {
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

    pub(super) fn sync_dir(&mut self, path: &Path) -> io::Result<()> {
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
    pub(super) fn rename_dir(&mut self, from: &Path, to: &Path) {
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
    pub(super) fn settle_names(&mut self, survive: Survival<'_>) {
        for (from, to) in std::mem::take(&mut self.renamed).into_iter().rev() {
            if survive(1) == 0 {
                self.rename_dir(&to, &from);
            } else if let Some(parent) = self.folders.get_mut(folder_of(&to)) {
                parent.durable.remove(&text(from.file_name()));
                parent.durable.insert(text(to.file_name()), Entry::Folder);
            }
        }
    }

    pub(super) fn end_era(&mut self) {
        self.era += 1;
        self.locks.clear();
        self.locked.clear();
        self.power_until = None;
        self.next_sync_fails = false;
    }

    pub(super) fn crash(&mut self, survive: Survival<'_>) {
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

pub(super) fn is_root(path: &Path) -> bool {
    path == Path::new("/") || path == Path::new(".") || path == Path::new("")
}

pub(super) fn text(name: Option<&OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}
