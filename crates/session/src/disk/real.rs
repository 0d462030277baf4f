//! The disk of the machine.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::{AppendFile, Disk, Lock, LockError, folder_of, holder_named_in, temporary_name};
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
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(());
        }
        let folder = folder_of(path);
        self.create_dir(folder)?;
        match DirBuilder::new().mode(OWNER_ONLY_FOLDER).create(path) {
            Ok(()) => {}
            // Another process was quicker; it may not have got to the sync yet.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            Err(error) => return Err(error),
        }
        self.sync_dir(folder)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn reader(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            // A name that is not text is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        // The system would put it in the place of an empty folder.
        if to.try_exists()? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        failpoint::hit("rename.before");
        fs::rename(from, to)?;
        failpoint::hit("rename.after");
        self.sync_dir(folder_of(to))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)?;
        self.sync_dir(folder_of(path))
    }

    fn append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        let file = appending(path)?;
        // Also when the file was there: whoever made it may have died before its sync.
        self.sync_dir(folder_of(path))?;
        Ok(Box::new(RealFile(file)))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = folder_of(path);
        let temporary = folder.join(temporary_name(path));
        let moved = write_and_move(&temporary, path, bytes);
        if moved.is_err() {
            // What counts is the first error; a left-over is cleared away on the next open.
            let _ = fs::remove_file(&temporary);
        }
        moved?;
        failpoint::hit("replace.after_rename");
        self.sync_dir(folder)
    }

    fn log(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        appending(path)?.write_all(bytes)
    }

    fn lock(&self, path: &Path, text: &str) -> Result<Box<dyn Lock>, LockError> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ONLY_FILE)
            .open(path)?;
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
        let mut file = match File::open(path) {
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

fn appending(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(OWNER_ONLY_FILE).open(path)
}

fn write_and_move(temporary: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(OWNER_ONLY_FILE).open(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    failpoint::hit("replace.before_rename");
    fs::rename(temporary, path)
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
