//! The disk of the machine.
//!
//! A session lies in a project, and a project may be a stranger's. Below the root of a project no
//! folder is reached through a link, and no file that is written is one, so that nothing outside is
//! written or read. The rules themselves are in `atomic_files`.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use atomic_files::{FileKind, FileState, Folder, Permissions, Root};

use super::place::{Place, place_of};
use super::{AppendFile, Disk, Layout, Lock, LockError, UNNAMED, holder_named_in};
use crate::failpoint;

const OWNER_ONLY_FOLDER: u32 = 0o700;
const OWNER_ONLY_FILE: u32 = 0o600;

/// Somebody who only asks who holds a lock has it for an instant; that must not turn away
/// somebody who wants to take it.
const LOCK_TRIES: u32 = 5;
/// Whoever was killed may have been about to start a process, which has the file until its own program
/// begins. On a busy machine that takes a while.
const TRIES_OF_THE_DEAD: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The disk of the machine.
#[derive(Clone, Debug, Default)]
pub struct RealDisk {
    /// The root of the project that is worked in.
    root: Option<PathBuf>,
}

impl RealDisk {
    /// The disk for work in the project with this root. Sessions in other projects are protected as
    /// well, as far as their paths tell where a project begins.
    pub fn in_project(root: PathBuf) -> Self {
        Self { root: Some(root) }
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        place_of(path, self.root.as_deref())
    }

    /// The folder a path is in, opened, and the name in it.
    fn folder_of(&self, path: &Path) -> io::Result<(Folder, std::ffi::OsString)> {
        let Place { root, inside, .. } = self.place(path)?;
        let (folder, name) = root.folder_of(&inside)?;
        Ok((folder, name.to_owned()))
    }

    /// A folder, opened.
    fn folder(&self, path: &Path) -> io::Result<Folder> {
        let Place { root, inside, is_guarded } = self.place(path)?;
        if is_guarded { root.folder(&inside) } else { Root::open(path)?.folder(Path::new("")) }
    }

    fn open_append(&self, path: &Path, links: u64) -> io::Result<Box<dyn AppendFile>> {
        let (folder, name) = self.folder_of(path)?;
        let file = folder.open_append_linked(&name, OWNER_ONLY_FILE, links)?;
        // Also when the file was there: whoever made it may have died before its sync.
        folder.sync()?;
        Ok(Box::new(RealFile(file)))
    }
}

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let Place { root, inside, is_guarded } = self.place(path)?;
        if !is_guarded && path.is_dir() {
            return Ok(());
        }
        root.create_folder(&inside, OWNER_ONLY_FOLDER).map(drop)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.folder(path)?.sync()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.folder_of(path) {
            Ok((folder, name)) => Ok(folder.kind(&name)?.is_some()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let (folder, name) = self.folder_of(path)?;
        folder.read(&name, limit)
    }

    fn reader(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let (folder, name) = self.folder_of(path)?;
        Ok(Box::new(folder.open_file(&name)?))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = self.folder(dir)?.entries()?;
        // A name that is not text is none of ours.
        Ok(entries.into_iter().filter_map(|(name, _)| name.into_string().ok()).collect())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        folder.remove(&name)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, before) = self.folder_of(from)?;
        let (new, after) = self.folder_of(to)?;
        // The system would put it in the place of an empty folder.
        if new.kind(&after)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        failpoint::hit("rename.before");
        old.rename(&before, &new, &after)?;
        failpoint::hit("rename.after");
        new.sync()
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        folder.remove_folder(&name)?;
        folder.sync()
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        self.open_append(path, 1)
    }

    fn append_linked(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        self.open_append(path, 2)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (old, before) = self.folder_of(from)?;
        let (new, after) = self.folder_of(to)?;
        failpoint::hit("link.before");
        old.link(&before, &new, &after)?;
        failpoint::hit("link.after");
        Ok(())
    }

    fn state(&self, path: &Path) -> io::Result<Option<FileState>> {
        match self.folder_of(path) {
            Ok((folder, name)) => folder.state(&name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        let staged = folder.stage(&name, bytes, Permissions::New(OWNER_ONLY_FILE))?;
        staged.sync()?;
        failpoint::hit("replace.before_rename");
        staged.commit()?;
        failpoint::hit("replace.after_rename");
        folder.sync()
    }

    fn log(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.folder_of(path)?;
        folder.open_append(&name, OWNER_ONLY_FILE)?.write_all(bytes)
    }

    fn inspect(&self, dir: &Path, layout: &Layout) -> Result<(), (PathBuf, io::Error)> {
        let at = |name: &str| {
            let path = dir.join(name);
            move |error: io::Error| (path, error)
        };
        let folder = self.folder(dir).map_err(at(""))?;
        for name in layout.appended {
            folder.require_own_file(OsStr::new(name)).map_err(at(name))?;
        }
        for name in layout.replaced {
            let kind = folder.kind(OsStr::new(name)).map_err(at(name))?;
            let found = kind.map_or(Ok(()), FileKind::require_regular);
            found.map_err(|refused| at(name)(refused.into()))?;
        }
        for (name, limit) in layout.limits {
            folder.require_size(OsStr::new(name), *limit).map_err(at(name))?;
        }
        for name in layout.folders {
            let inner = match folder.folder(OsStr::new(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(at(name))?,
            };
            if layout.not_ours.contains(name) {
                continue;
            }
            for (file, kind) in inner.entries().map_err(at(name))? {
                let found = match kind {
                    // Something that is not ours, and never opened.
                    FileKind::Folder => Ok(()),
                    FileKind::Regular if layout.logs == *name => inner.require_own_file(&file),
                    FileKind::Regular
                    | FileKind::Link
                    | FileKind::Fifo
                    | FileKind::Socket
                    | FileKind::Device => kind.require_regular().map_err(io::Error::from),
                };
                found.map_err(|error| (dir.join(name).join(file), error))?;
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path, text: &str) -> Result<Box<dyn Lock>, LockError> {
        let (folder, name) = self.folder_of(path)?;
        let mut file = folder.open_writable(&name, OWNER_ONLY_FILE)?;
        let mut tries = 1;
        while let Err(refused) = file.try_lock() {
            match refused {
                TryLockError::Error(error) => return Err(error.into()),
                TryLockError::WouldBlock if tries < LOCK_TRIES => thread::sleep(BETWEEN_TRIES),
                TryLockError::WouldBlock => {
                    let holder = named_in(&mut file)?;
                    if tries >= TRIES_OF_THE_DEAD || !is_gone(&holder) {
                        return Err(LockError::Held { holder });
                    }
                    thread::sleep(BETWEEN_TRIES);
                }
            }
            tries += 1;
        }
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("{text}\n").as_bytes())?;
        Ok(Box::new(RealLock(file)))
    }

    fn lock_holder(&self, path: &Path) -> io::Result<Option<String>> {
        let opened = self.folder_of(path).and_then(|(folder, name)| folder.open_file(&name));
        let mut file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Shared, so that two who ask do not take each other for a holder.
        match file.try_lock_shared() {
            // Given up at once, for the same reason as when a lock is dropped.
            Ok(()) => file.unlock().map(|()| None),
            Err(TryLockError::WouldBlock) => named_in(&mut file).map(Some),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn lock_content(&self, path: &Path) -> Result<Box<dyn Lock>, LockError> {
        let (folder, name) = self.folder_of(path)?;
        let file = folder.open_file(&name)?;
        // The file does not say who holds it, so the time of a dead holder is given to everybody.
        for _ in 0..TRIES_OF_THE_DEAD {
            match file.try_lock() {
                Ok(()) => return Ok(Box::new(ContentLock(file))),
                Err(TryLockError::Error(error)) => return Err(error.into()),
                Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
            }
        }
        Err(LockError::Held { holder: UNNAMED.to_owned() })
    }

    fn is_content_locked(&self, path: &Path) -> io::Result<bool> {
        let opened = self.folder_of(path).and_then(|(folder, name)| folder.open_file(&name));
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => file.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Whether the process that is named as a holder has ended, where that can be seen.
fn is_gone(holder: &str) -> bool {
    let mut words = holder.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let Some(id) = words.next() else { return false };
    if !Path::new("/proc/self").exists() {
        return false;
    }
    match fs::read_to_string(format!("/proc/{id}/stat")) {
        // One that nobody has taken note of yet is a zombie.
        Ok(stat) => stat.rsplit(") ").next().is_some_and(|state| state.starts_with('Z')),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn named_in(file: &mut File) -> io::Result<String> {
    let mut text = Vec::new();
    file.rewind()?;
    file.take(1024).read_to_end(&mut text)?;
    Ok(holder_named_in(&String::from_utf8_lossy(&text)))
}

#[derive(Debug)]
struct RealFile(File);

impl AppendFile for RealFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn state(&self) -> io::Result<FileState> {
        FileState::of_file(&self.0)
    }
}

#[derive(Debug)]
struct ContentLock(File);

impl Lock for ContentLock {}

impl Drop for ContentLock {
    fn drop(&mut self) {
        // Closing is not enough, as for `RealLock`.
        let _ = self.0.unlock();
    }
}

#[derive(Debug)]
struct RealLock(File);

impl Lock for RealLock {}

impl Drop for RealLock {
    fn drop(&mut self) {
        // So that nobody is named as the holder who no longer is.
        let _ = self.0.set_len(0);
        // Closing is not enough: a process being started right now has the file too, until its
        // own program begins.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::is_gone;

    #[test]
    fn a_holder_that_has_ended_is_gone() {
        let holder = |id: u32| format!("process {id}, atomic 0.1.0");
        assert!(!is_gone(&holder(std::process::id())));
        assert!(!is_gone("somebody"));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(is_gone(&holder(child.id())));
    }
}
