//! Reading a journal.

use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Envelope, FORMAT};
use serde::Deserialize;
use serde_json::Value;

use crate::blob::{self, Blobs, Resolver};
use crate::{Disk, SessionError, limits, line};

/// The journal's file.
pub(crate) const JOURNAL: &str = "journal.jsonl";

const BUFFER: usize = 256 * 1024;

/// What the first line must say for the rest to be read.
#[derive(Deserialize)]
struct First {
    #[serde(rename = "type")]
    kind: String,
    format: Option<u32>,
}

/// What came next in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A good line.
    Line,
    /// A good line at the very end, but for its line end.
    Unended,
    /// What a crash left of a line, at the very end.
    Torn,
    /// Nothing.
    End,
}

/// Goes through the lines of a journal and checks each. Holds one line at a time.
pub(crate) struct Lines {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    path: PathBuf,
    source: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    /// Where the last line begins.
    start: u64,
    /// Where the good lines end.
    pub(crate) end: u64,
    /// How many good lines there were.
    pub(crate) seq: u64,
    /// Checksum of everything up to `end`.
    pub(crate) crc: u32,
}

impl Lines {
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, SessionError> {
        let path = dir.join(JOURNAL);
        let source = disk.reader(&path).map_err(SessionError::while_doing("read", &path))?;
        Ok(Self {
            disk,
            dir: dir.to_owned(),
            path,
            source: BufReader::with_capacity(BUFFER, source),
            line: Vec::new(),
            start: 0,
            end: 0,
            seq: 0,
            crc: 0,
        })
    }

    /// The line that came last, as it is in the file.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Reads on by one line. A line that is bad in a way no crash can leave behind is an error.
    pub(crate) fn advance(&mut self) -> Result<Next, SessionError> {
        self.line.clear();
        self.start = self.end;
        let read = (&mut self.source).take(limits::LINE).read_until(b'\n', &mut self.line);
        read.map_err(SessionError::while_doing("read", &self.path))?;
        if self.line.len() as u64 == limits::LINE {
            let problem = format!("a line is longer than {} MB", limits::LINE >> 20);
            return Err(self.corrupt(problem));
        }
        if self.line.is_empty() {
            return Ok(Next::End);
        }
        let body = self.line.strip_suffix(b"\n");
        let ended = body.is_some();
        match line::check(body.unwrap_or(&self.line), self.seq + 1) {
            Ok(()) => {
                if !ended {
                    self.line.push(b'\n');
                }
                self.seq += 1;
                self.end += self.line.len() as u64;
                self.crc = continued(self.crc, &self.line);
                if self.seq == 1 {
                    self.check_first()?;
                }
                Ok(if ended { Next::Line } else { Next::Unended })
            }
            Err(_) if self.seq > 0 && self.is_torn(ended)? => Ok(Next::Torn),
            Err(problem) if self.seq == 0 => Err(self.bad_first_line(problem)?),
            Err(problem) => Err(self.corrupt(problem)),
        }
    }

    /// The fact in the line that came last, with its big values.
    pub(crate) fn fact(&self) -> Result<Envelope, SessionError> {
        let corrupt = |problem: String| self.corrupt(problem);
        if !blob::may_mention(&self.line) {
            return Envelope::parse(&self.line).map_err(|e| corrupt(e.to_string()));
        }
        let mut value: Value =
            serde_json::from_slice(&self.line).map_err(|e| corrupt(e.to_string()))?;
        Resolver::new(self.disk.as_ref(), &self.dir, &corrupt).resolve(&mut value)?;
        Envelope::parse(value.to_string().as_bytes()).map_err(|e| corrupt(e.to_string()))
    }

    /// Copies the big values of the line that came last to another session.
    pub(crate) fn copy_values(&self, to: &mut Blobs) -> Result<(), SessionError> {
        if !blob::may_mention(&self.line) {
            return Ok(());
        }
        let corrupt = |problem: String| self.corrupt(problem);
        let value: Value =
            serde_json::from_slice(&self.line).map_err(|e| corrupt(e.to_string()))?;
        to.copy(&mut Resolver::new(self.disk.as_ref(), &self.dir, &corrupt), &value)
    }

    /// Says that the journal ends too early.
    pub(crate) fn too_short(&self, wanted: u64) -> SessionError {
        let problem = format!("it has {} facts, and number {wanted} was there before", self.seq);
        SessionError::Corrupt { path: self.path.clone(), offset: self.end, problem }
    }

    /// Whether the bad line is what a crash in the middle of a write leaves behind: a beginning,
    /// or blocks that were never filled, and nothing after it.
    fn is_torn(&mut self, ended: bool) -> Result<bool, SessionError> {
        if self.line.contains(&0) {
            let rest = self.source.fill_buf();
            let rest = rest.map_err(SessionError::while_doing("read", &self.path))?;
            return Ok(rest.is_empty());
        }
        // A whole line with one byte more was not torn: its line end was changed.
        let but_last = &self.line[..self.line.len() - 1];
        Ok(!ended && line::check(but_last, self.seq + 1).is_err())
    }

    fn check_first(&self) -> Result<(), SessionError> {
        let first: First =
            serde_json::from_slice(&self.line).map_err(|e| self.corrupt(e.to_string()))?;
        match first.format {
            Some(format) if format > FORMAT => Err(self.newer(format)),
            Some(_) if first.kind == "session_created" => Ok(()),
            _ => Err(self.foreign("it does not begin with the creation of a session")),
        }
    }

    /// What to say about a bad first line: it was never finished, is damaged, from a newer
    /// version, or none of ours.
    fn bad_first_line(&mut self, problem: String) -> Result<SessionError, SessionError> {
        let ended = self.line.ends_with(b"\n");
        let torn = self.is_torn(ended)?;
        let body = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let ours = line::looks_like_ours(body) || body.starts_with(b"\0");
        let format = serde_json::from_slice::<First>(body).ok().and_then(|first| first.format);
        Ok(match format {
            // A newer format may do without our checksum.
            Some(format) if format > FORMAT && !line::is_sealed(body) => self.newer(format),
            _ if ours && torn => SessionError::NeverStarted { dir: self.dir.clone() },
            _ if ours => self.corrupt(problem),
            _ => self.foreign("its first line is none of ours"),
        })
    }

    fn newer(&self, format: u32) -> SessionError {
        SessionError::Newer { path: self.path.clone(), format, readable: FORMAT }
    }

    fn foreign(&self, problem: &str) -> SessionError {
        SessionError::Foreign { path: self.path.clone(), problem: problem.to_owned() }
    }

    fn corrupt(&self, problem: String) -> SessionError {
        SessionError::Corrupt { path: self.path.clone(), offset: self.start, problem }
    }
}

/// The checksum of what `crc` is the checksum of, followed by `bytes`.
pub(crate) fn continued(crc: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(crc);
    hasher.update(bytes);
    hasher.finalize()
}

/// Looks whether there is a session of ours in a folder, without touching anything.
pub(crate) fn look(disk: &dyn Disk, dir: &Path) -> Result<(), SessionError> {
    let exists =
        |path: &Path| disk.exists(path).map_err(SessionError::while_doing("look for", path));
    let path = dir.join(JOURNAL);
    if !exists(dir)? {
        return Err(SessionError::NotFound { dir: dir.to_owned() });
    }
    if !exists(&path)? {
        let summary = dir.join(crate::files::SUMMARY);
        if exists(&summary)? {
            let problem = format!("there is a {} but no {JOURNAL}", crate::files::SUMMARY);
            return Err(SessionError::Foreign { path: dir.to_owned(), problem });
        }
        return Err(SessionError::NeverStarted { dir: dir.to_owned() });
    }
    let mut head = Vec::new();
    let reader = disk.reader(&path).map_err(SessionError::while_doing("read", &path))?;
    let read = reader.take(64).read_to_end(&mut head);
    read.map_err(SessionError::while_doing("read", &path))?;
    // Zeros are blocks that were never filled.
    if head.iter().all(|byte| *byte == 0) {
        return Err(SessionError::NeverStarted { dir: dir.to_owned() });
    }
    Ok(())
}

/// The facts of a journal, one after the other, for those who only read. A line that was not
/// written to its end is left out; the first error is the last item.
pub struct Facts {
    lines: Lines,
    over: bool,
}

impl std::fmt::Debug for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Facts").field("path", &self.lines.path).finish_non_exhaustive()
    }
}

impl Facts {
    pub(crate) fn open(disk: Arc<dyn Disk>, dir: &Path) -> Result<Self, SessionError> {
        Ok(Self { lines: Lines::open(disk, dir)?, over: false })
    }

    fn read_on(&mut self) -> Result<Option<Envelope>, SessionError> {
        match self.lines.advance()? {
            Next::Line => self.lines.fact().map(Some),
            Next::Unended | Next::Torn | Next::End => Ok(None),
        }
    }
}

impl Iterator for Facts {
    type Item = Result<Envelope, SessionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let item = self.read_on().transpose();
        self.over = !matches!(item, Some(Ok(_)));
        item
    }
}
