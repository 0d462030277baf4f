//! The disk of the machine, with a count of what is written to it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use atomic_session::{AppendFile, Disk, FileState, Lock, LockError, RealDisk};

/// The disk of the machine, with a count of what is written to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingDisk {
    written: Arc<AtomicU64>,
}

impl CountingDisk {
    /// All bytes written so far, whatever became of them.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn count(&self, bytes: &[u8]) {
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    }
}

impl Disk for CountingDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk::default().create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk::default().sync_dir(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealDisk::default().exists(path)
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        RealDisk::default().read(path, limit)
    }

    fn reader(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        RealDisk::default().reader(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        RealDisk::default().list(dir)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk::default().remove(path)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk::default().rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk::default().remove_dir(path)
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let file = RealDisk::default().append(path)?;
        Ok(Box::new(CountingFile { file, disk: self.clone() }))
    }

    fn append_linked(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let file = RealDisk::default().append_linked(path)?;
        Ok(Box::new(CountingFile { file, disk: self.clone() }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk::default().link(from, to)
    }

    fn state(&self, path: &Path) -> io::Result<Option<FileState>> {
        RealDisk::default().state(path)
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.count(bytes);
        RealDisk::default().replace(path, bytes)
    }

    fn log(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.count(bytes);
        RealDisk::default().log(path, bytes)
    }

    fn lock(&self, path: &Path, text: &str) -> Result<Box<dyn Lock>, LockError> {
        RealDisk::default().lock(path, text)
    }

    fn lock_holder(&self, path: &Path) -> io::Result<Option<String>> {
        RealDisk::default().lock_holder(path)
    }

    fn lock_content(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        RealDisk::default().lock_content(path)
    }

    fn is_content_locked(&self, path: &Path) -> io::Result<bool> {
        RealDisk::default().is_content_locked(path)
    }
}

#[derive(Debug)]
struct CountingFile {
    file: Box<dyn AppendFile>,
    disk: CountingDisk,
}

impl AppendFile for CountingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.disk.count(bytes);
        self.file.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn state(&self) -> io::Result<FileState> {
        self.file.state()
    }
}
