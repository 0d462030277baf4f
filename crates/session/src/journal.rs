//! Writing a journal.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Envelope, Event, Moment};

use atomic_files::FileState;
use serde_json::Value;

use crate::blob::{self, Blobs};
use crate::keep::{self, JournalLocks, Keep, SessionFolders};
use crate::reader::{JOURNAL, Lines, continued};
use crate::{AppendFile, Disk, SessionError, failpoint, limits, line};

/// A journal that is being written. It knows where the last good line ends, and after the first
/// failure it writes no more.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Box<dyn AppendFile>,
    blobs: Blobs,
    position: Position,
    /// The file after the last write.
    seen: FileState,
    keep: Option<Keep>,
    /// The reason why there are no second links, where there should be.
    unkept: Option<SessionError>,
    locks: JournalLocks,
    dead: Option<String>,
}

/// What was found at the journal's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The journal, as it was left.
    Same,
    /// Nothing.
    Nothing,
}

/// How far a journal goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// Its last fact.
    pub(crate) seq: u64,
    /// Its length in bytes.
    pub(crate) end: u64,
    /// Checksum of all of it.
    pub(crate) crc: u32,
}

impl Position {
    /// How far it goes with these facts.
    fn after(self, facts: u64, bytes: &[u8]) -> Self {
        Self {
            seq: self.seq + facts,
            end: self.end + bytes.len() as u64,
            crc: continued(self.crc, bytes),
        }
    }
}

/// What is wrong with the end of a journal.
#[derive(Debug)]
pub(crate) enum Tail {
    /// Nothing.
    Whole,
    /// The last line is whole but for its line end.
    Unended,
    /// These bytes are what is left of a line.
    Torn(Vec<u8>),
}

impl Journal {
    /// Opens a journal whose good lines go up to `position`, mends its end, and makes its second
    /// link.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        folders: &SessionFolders,
        position: Position,
        tail: &Tail,
        mut locks: JournalLocks,
    ) -> Result<Self, SessionError> {
        let dir = &folders.dir;
        let path = dir.join(JOURNAL);
        let failed = |action| SessionError::while_doing(action, &path);
        let mut file = disk.append_linked(&path).map_err(failed("open"))?;
        // Before there is a second link: one without a holder is taken for what a crash left.
        locks.take(disk.as_ref(), dir, dir)?;
        match tail {
            Tail::Whole => {}
            Tail::Unended => file.write(b"\n").map_err(failed("mend"))?,
            Tail::Torn(_) => file.cut(position.end).map_err(failed("mend"))?,
        }
        // What a process wrote before it was killed is there to be read, but not yet durable.
        file.sync().map_err(failed("sync"))?;
        let wanted = folders.keep.as_ref();
        let keep = wanted.map(|keep| Keep::establish(disk, dir, keep, &mut locks)).transpose();
        // A home folder that is full or read-only does not keep anybody from working.
        let (mut keep, unkept) = match keep {
            Ok(keep) => (keep, None),
            Err(error) => (None, Some(error)),
        };
        if let Some(keep) = &mut keep {
            keep.note_length(position.end);
        }
        let blobs = Blobs::new(Arc::clone(disk), dir, keep.as_ref().map(Keep::folder));
        let seen = file.state().map_err(failed("look at"))?;
        let disk = Arc::clone(disk);
        Ok(Self { disk, path, file, blobs, position, seen, keep, unkept, locks, dead: None })
    }

    /// Compares the file at the journal's path with the one that was written: the same file, with
    /// no name that we did not give it, and with our content.
    pub(crate) fn look(&mut self) -> Result<Found, SessionError> {
        self.require_alive()?;
        let found = self.disk.state(&self.path);
        let problem = match found {
            Ok(None) => return Ok(Found::Nothing),
            Ok(Some(found)) => self.difference(&found)?,
            Err(error) if atomic_files::refusal(&error).is_some() => Some(error.to_string()),
            Err(error) => return Err(SessionError::while_doing("look at", &self.path)(error)),
        };
        match problem {
            None => Ok(Found::Same),
            Some(problem) => Err(self.changed(problem)),
        }
    }

    /// Says what is different about the file.
    fn difference(&mut self, found: &FileState) -> Result<Option<String>, SessionError> {
        if !found.is_same_file(&self.seen) {
            return Ok(Some("it is another file".to_owned()));
        }
        if found.size != self.position.end {
            let (found, written) = (found.size, self.position.end);
            return Ok(Some(format!("it has {found} bytes, and {written} were written")));
        }
        let links = self.keep.as_ref().map_or(1, Keep::links);
        if found.links > links {
            return Ok(Some("it has a hard link that Atomic did not make".to_owned()));
        }
        if found.links < links {
            self.keep_again();
        }
        if found.modified != self.seen.modified && self.checksum()? != self.position.crc {
            return Ok(Some("its content is another one".to_owned()));
        }
        self.seen.modified = found.modified;
        Ok(None)
    }

    /// Makes the second links again, after somebody has removed them.
    fn keep_again(&mut self) {
        let Some(keep) = &self.keep else { return };
        let (folder, dir) = (keep.folder().to_owned(), self.dir().to_owned());
        match Keep::establish(&self.disk, &dir, &folder, &mut self.locks) {
            Ok(keep) => self.keep = Some(keep),
            Err(error) => {
                self.keep = None;
                self.unkept = Some(error);
            }
        }
    }

    /// The checksum of the file as it is now.
    fn checksum(&self) -> Result<u32, SessionError> {
        checksum(self.disk.as_ref(), &self.path)
    }

    /// Ends the journal: somebody else has written to it.
    pub(crate) fn changed(&mut self, problem: String) -> SessionError {
        let kept = self.keep.as_ref().map(|keep| keep.folder().join(JOURNAL));
        let kept = kept.and_then(|path| self.disk.state(&path).ok().flatten());
        // The second name of the file that was changed holds the same content.
        let is_changed = self.disk.state(&self.path).ok().flatten();
        let is_kept =
            kept.is_some_and(|kept| is_changed.is_none_or(|changed| !changed.is_same_file(&kept)));
        if let Some(keep) = &self.keep {
            keep.note_position(self.position);
        }
        let error = SessionError::Changed { path: self.path.clone(), problem, is_kept };
        self.dead = Some(error.to_string());
        error
    }

    /// Opens the journal again after its folder was written again.
    pub(crate) fn reopen(&mut self) -> Result<(), SessionError> {
        let failed = |action| SessionError::while_doing(action, &self.path);
        let found = keep::state(self.disk.as_ref(), &self.path)?;
        if found.is_some_and(|found| found.is_same_file(&self.seen)) {
            return Ok(());
        }
        // On another file system the journal is a copy of its second file.
        let file = self.disk.append_linked(&self.path).map_err(failed("open"))?;
        self.seen = file.state().map_err(failed("look at"))?;
        self.file = file;
        let dir = self.dir().to_owned();
        self.locks.take(self.disk.as_ref(), &dir, &dir)?;
        if self.seen.size != self.position.end || self.checksum()? != self.position.crc {
            return Err(self.changed("it was removed, and its copy is another one".to_owned()));
        }
        Ok(())
    }

    /// The second links, where there are any.
    pub(crate) fn keep(&self) -> Option<&Keep> {
        self.keep.as_ref()
    }

    /// Removes the second links.
    pub(crate) fn stop_keeping(&mut self) {
        if let Some(keep) = self.keep.take() {
            keep.remove();
            self.blobs.stop_keeping();
        }
    }

    /// The reason why there are no second links, once.
    pub(crate) fn take_unkept(&mut self) -> Option<SessionError> {
        self.unkept.take()
    }

    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn require_alive(&self) -> Result<(), SessionError> {
        match &self.dead {
            None => Ok(()),
            Some(reason) => {
                let (path, reason) = (self.path.clone(), reason.clone());
                Err(SessionError::Dead { path, reason })
            }
        }
    }

    /// How far the journal goes.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Records facts together: one write, one sync.
    pub(crate) fn append(
        &mut self,
        events: Vec<Event>,
        at: Moment,
    ) -> Result<Vec<Envelope>, SessionError> {
        self.require_alive()?;
        if events.is_empty() {
            return Ok(Vec::new());
        }
        let facts: Vec<Envelope> = (self.position.seq + 1..)
            .zip(events)
            .map(|(seq, event)| Envelope { seq, at, event })
            .collect();
        let batch = self.encode(&facts).inspect_err(|error| self.die_of(error))?;
        if let Err(error) = self.write(&batch) {
            // The caller is told that these facts were not recorded, so they should not be found
            // later. Where this fails too, they are found as if the crash had come a bit later.
            let _ = self.file.cut(self.position.end);
            self.die_of(&error);
            return Err(error);
        }
        self.position = self.position.after(facts.len() as u64, &batch.bytes);
        self.written(&batch.bytes)?;
        Ok(facts)
    }

    /// Takes note of the file after a write, and writes to the copy.
    fn written(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let seen = self.file.state().map_err(SessionError::while_doing("look at", &self.path));
        self.seen = seen.inspect_err(|error| self.dead = Some(error.to_string()))?;
        if let Some(keep) = &mut self.keep
            && let Err(error) = keep.append(bytes)
        {
            self.keep_no_more(error);
        }
        self.look_at_values();
        if let Some(keep) = &mut self.keep {
            keep.note_length(self.position.end);
        }
        Ok(())
    }

    /// Stops keeping second links where a big value could not get one.
    fn look_at_values(&mut self) {
        if let Some(error) = self.blobs.take_unkept() {
            self.keep_no_more(error);
        }
    }

    /// Goes on without second links, because of an error in their folder.
    fn keep_no_more(&mut self, error: io::Error) {
        if let Some(keep) = &self.keep {
            self.unkept = Some(SessionError::while_doing("write to", keep.folder())(error));
        }
        self.stop_keeping();
    }

    /// Takes over the line of another journal that came last there, as it is; it must be the next
    /// one here. Durable with the next append.
    pub(crate) fn take_over(&mut self, lines: &Lines) -> Result<(), SessionError> {
        lines.copy_values(&mut self.blobs)?;
        let written = self.file.write(lines.line());
        written.map_err(SessionError::while_doing("write to", &self.path))?;
        self.position = self.position.after(1, lines.line());
        Ok(())
    }

    /// Moves the big parts of a value that a fact has, too, into files of their own.
    pub(crate) fn lift(&mut self, value: &mut Value) -> Result<(), SessionError> {
        self.blobs.lift_value(value)?;
        self.look_at_values();
        Ok(())
    }

    fn encode(&mut self, facts: &[Envelope]) -> Result<Batch, SessionError> {
        let mut batch = Batch::default();
        // All are checked before the first big value is written: a fact that cannot be recorded
        // leaves no trace.
        let lines = facts.iter().map(json_of).collect::<Result<Vec<_>, _>>()?;
        for (fact, mut json) in facts.iter().zip(lines) {
            if json.len() > blob::INLINE || blob::may_mention(&json) {
                let mut value = serde_json::to_value(fact).map_err(unrecordable)?;
                self.blobs.lift(&mut value)?;
                json = serde_json::to_vec(&value).map_err(unrecordable)?;
            }
            line::seal(&mut json);
            batch.bytes.append(&mut json);
            batch.ends.push(batch.bytes.len());
        }
        Ok(batch)
    }

    fn write(&mut self, batch: &Batch) -> Result<(), SessionError> {
        failpoint::hit("append.before");
        for end in &batch.ends {
            failpoint::hit_after("append.fact", || {
                let _ = self.file.write(&batch.bytes[..*end]);
            });
        }
        let failed = |action| SessionError::while_doing(action, &self.path);
        self.file.write(&batch.bytes).map_err(failed("write to"))?;
        failpoint::hit("append.written");
        self.file.sync().map_err(failed("sync"))?;
        failpoint::hit("append.synced");
        Ok(())
    }

    fn die_of(&mut self, error: &SessionError) {
        // A fact that cannot be recorded is refused before anything is written.
        if !matches!(error, SessionError::Unrecordable { .. }) {
            self.dead = Some(error.to_string());
        }
    }
}

/// The checksum of a journal.
pub(crate) fn checksum(disk: &dyn Disk, path: &Path) -> Result<u32, SessionError> {
    let failed = || SessionError::while_doing("read", path);
    let mut file = disk.reader(path).map_err(failed())?;
    let (mut crc, mut buffer) = (0, vec![0; 64 * 1024]);
    loop {
        let read = file.read(&mut buffer).map_err(failed())?;
        if read == 0 {
            return Ok(crc);
        }
        crc = continued(crc, &buffer[..read]);
    }
}

/// The lines of one append.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each line ends.
    ends: Vec<usize>,
}

fn json_of(fact: &Envelope) -> Result<Vec<u8>, SessionError> {
    let json = serde_json::to_vec(fact).map_err(unrecordable)?;
    if json.len() as u64 > limits::FACT {
        let problem = format!("its values are larger than {} MB", limits::FACT >> 20);
        return Err(SessionError::Unrecordable { problem });
    }
    if line::depth(&json) > line::DEEPEST {
        let problem = format!("it is nested deeper than {} levels", line::DEEPEST);
        return Err(SessionError::Unrecordable { problem });
    }
    Ok(json)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn unrecordable(error: serde_json::Error) -> SessionError {
    SessionError::Unrecordable { problem: error.to_string() }
}
