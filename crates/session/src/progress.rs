//! `progress.txt`: what was done, for people and agents, added to and never rewritten.

use std::collections::HashSet;
use std::io;

use crate::{Session, SessionError, limits};

pub(crate) const PROGRESS: &str = "progress.txt";

/// The lines that are in the file.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    lines: Option<HashSet<String>>,
    /// The file does not end with a line end.
    ragged: bool,
}

impl Session {
    /// Adds an entry to `progress.txt`, in one write, unless the line `marker` is there already,
    /// so that an entry added again after a crash is there once. Says whether it was added.
    ///
    /// When `marker` is not a line of `text` it is put before it.
    pub fn append_progress(&mut self, marker: &str, text: &str) -> Result<bool, SessionError> {
        self.persist(|session| session.add_progress(marker, text))
    }

    fn add_progress(&mut self, marker: &str, text: &str) -> Result<bool, SessionError> {
        self.load_progress()?;
        let Some(lines) = &mut self.progress.lines else { return Ok(false) };
        if lines.contains(marker) {
            return Ok(false);
        }
        let mut entry = String::new();
        if self.progress.ragged {
            entry.push('\n');
        }
        if !text.lines().any(|line| line == marker) {
            entry.push_str(marker);
            entry.push('\n');
        }
        entry.push_str(text);
        if !entry.ends_with('\n') {
            entry.push('\n');
        }
        let path = self.dir.join(PROGRESS);
        let written = self.disk.log(&path, entry.as_bytes());
        written.map_err(SessionError::while_doing("write to", &path))?;
        lines.extend(entry.lines().map(str::to_owned));
        self.progress.ragged = false;
        Ok(true)
    }

    /// Makes everything added so far durable.
    pub(crate) fn make_progress_durable(&self) -> Result<(), SessionError> {
        if self.progress.lines.is_none() {
            return Ok(());
        }
        let path = self.dir.join(PROGRESS);
        let synced = self.disk.append(&path).and_then(|mut file| file.sync());
        synced.map_err(SessionError::while_doing("sync", &path))
    }

    fn load_progress(&mut self) -> Result<(), SessionError> {
        if self.progress.lines.is_some() {
            return Ok(());
        }
        let path = self.dir.join(PROGRESS);
        let bytes = match self.disk.read(&path, limits::PROGRESS) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(SessionError::while_doing("read", &path)(error)),
        };
        let text = String::from_utf8_lossy(&bytes);
        self.progress.ragged = !text.is_empty() && !text.ends_with('\n');
        self.progress.lines = Some(text.lines().map(str::to_owned).collect());
        Ok(())
    }
}
