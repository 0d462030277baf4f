//! Writing a journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Envelope, Event, Moment};

use serde_json::Value;

use crate::blob::{self, Blobs};
use crate::reader::{JOURNAL, Lines, continued};
use crate::{AppendFile, Disk, SessionError, failpoint, limits, line};

/// A journal that is being written. It knows where the last good line ends, and after the first
/// failure it writes no more.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Box<dyn AppendFile>,
    blobs: Blobs,
    position: Position,
    dead: Option<String>,
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
    /// Opens a journal whose good lines go up to `position`, and mends its end.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        position: Position,
        tail: &Tail,
    ) -> Result<Self, SessionError> {
        let path = dir.join(JOURNAL);
        let failed = |action| SessionError::while_doing(action, &path);
        let mut file = disk.append(&path).map_err(failed("open"))?;
        match tail {
            Tail::Whole => {}
            Tail::Unended => file.write(b"\n").map_err(failed("mend"))?,
            Tail::Torn(_) => file.cut(position.end).map_err(failed("mend"))?,
        }
        // What a process wrote before it was killed is there to be read, but not yet durable.
        file.sync().map_err(failed("sync"))?;
        let blobs = Blobs::new(Arc::clone(disk), dir);
        Ok(Self { path, file, blobs, position, dead: None })
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
        if let Some(reason) = &self.dead {
            return Err(SessionError::Dead { path: self.path.clone(), reason: reason.clone() });
        }
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
        Ok(facts)
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
        self.blobs.lift_value(value).map(drop)
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
