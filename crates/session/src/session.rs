//! A session that is held: created or opened, and written by nobody else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Envelope, Event, Moment};
use serde::Serialize;
use serde_json::Value;

use crate::disk::{TEMPORARY, UNNAMED};
use crate::files::{LOGS, SUMMARY};
use crate::journal::{Journal, Position, Tail};
use crate::keep::{self, JournalLocks, Recovery, SessionFolders};
use crate::progress::{PROGRESS, Progress};
use crate::reader::{Facts, JOURNAL, Lines, Next, look};
use crate::secure::{HeldLock, require_our_links, take_lock};
use crate::snapshot::{self, Snapshot, Snapshots};
use crate::tasks::{HASHES, TASKS, Tasks};
use crate::{
    Disk, FolderIdentity, Layout, Lock, LockError, SessionError, blob, inbox, limits, values,
};

pub(crate) const LOCK: &str = "lock";

const RESEARCH: &str = "research";
const FOLDERS: &[&str] = &[snapshot::CHECKPOINTS, LOGS, blob::BLOBS, inbox::INBOX, RESEARCH];

/// Files and folders of a session.
const LAYOUT: Layout = Layout {
    appended: &[LOCK, PROGRESS],
    replaced: &[SUMMARY, TASKS, HASHES],
    limits: &[
        (SUMMARY, limits::SUMMARY),
        (TASKS, limits::TASKS),
        (HASHES, limits::HASHES),
        (PROGRESS, limits::PROGRESS),
    ],
    folders: &[snapshot::CHECKPOINTS, LOGS, blob::BLOBS, inbox::INBOX, RESEARCH, values::VALUES],
    logs: LOGS,
    not_ours: &[RESEARCH],
};

/// A session that is held by this process, until it is dropped.
#[derive(Debug)]
pub struct Session {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) journal: Journal,
    snapshots: Snapshots,
    pub(crate) summary: Option<Vec<u8>>,
    pub(crate) tasks: Tasks,
    pub(crate) progress: Progress,
    pub(crate) lock: HeldLock,
    /// Whether the folder was written again, and nobody has asked for that yet.
    pub(crate) restored: bool,
    /// The folder that the session works in.
    pub(crate) workspace: Option<(PathBuf, FolderIdentity)>,
}

/// What was found when a session was opened.
#[derive(Debug)]
pub struct Opened {
    /// The first fact, whether or not it is among `facts`.
    pub first: Envelope,
    /// What was known at some point, if a snapshot could be used.
    pub snapshot: Option<Value>,
    /// Everything that happened since; without a snapshot, everything.
    pub facts: Vec<Envelope>,
    /// What a crash had left of a last line, if it did.
    pub repaired: Option<Torn>,
    /// What had to be done to the session's folder, which somebody had deleted or changed.
    pub restored: Option<Recovery>,
}

/// A last line that had not been written to its end. Nothing had acted on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Where the journal was cut off.
    pub offset: u64,
    /// How many bytes were cut off; zero when only the line end had been missing.
    pub bytes: u64,
    /// Where they are kept.
    pub kept: Option<PathBuf>,
}

impl Session {
    /// Creates a session in a new folder, with its first fact, which says what it is about.
    /// `holder` says in a few words who has it from now on.
    pub fn create(
        disk: Arc<dyn Disk>,
        folders: impl Into<SessionFolders>,
        holder: &str,
        first: Event,
        at: Moment,
    ) -> Result<(Self, Envelope), SessionError> {
        let folders = folders.into();
        let dir = folders.dir.clone();
        if !matches!(first, Event::SessionCreated(_)) {
            let problem = "the first fact must be the creation of the session".to_owned();
            return Err(SessionError::Unrecordable { problem });
        }
        make_folder(disk.as_ref(), &dir)?;
        let lock = take_lock(disk.as_ref(), &dir, holder)?;
        let journal = dir.join(JOURNAL);
        let is_empty = |mut file: Box<dyn io::Read + Send>| Ok(file.read(&mut [0])? == 0);
        match disk.reader(&journal).and_then(is_empty) {
            Ok(true) => {}
            Ok(false) => return Err(SessionError::AlreadyExists { dir }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(SessionError::while_doing("read", &journal)(error)),
        }
        make_folders(disk.as_ref(), &dir)?;
        let locks = JournalLocks::default();
        let mut journal = Journal::open(&disk, &folders, Position::default(), &Tail::Whole, locks)?;
        let recorded = journal.append(vec![first], at)?.into_iter().next();
        let Some(recorded) = recorded else { return Err(SessionError::NeverStarted { dir }) };
        let snapshots = Snapshots::new(Arc::clone(&disk), &dir, None);
        Ok((Self::held(disk, dir, journal, snapshots, lock), recorded))
    }

    /// Takes a session up again: locks it, checks every line of its journal, mends what a crash
    /// left of the last one, and returns what happened so far.
    pub fn open(
        disk: Arc<dyn Disk>,
        folders: impl Into<SessionFolders>,
        holder: &str,
    ) -> Result<(Self, Opened), SessionError> {
        let folders = folders.into();
        let dir = folders.dir.clone();
        let mut locks = JournalLocks::default();
        let restored = keep::restore(disk.as_ref(), &folders, &mut locks)?;
        look(disk.as_ref(), &dir)?;
        // Before the lock, which is the first file that is written: a folder with something strange
        // in it stays as it is.
        disk.inspect(&dir, &LAYOUT)
            .map_err(|(path, error)| SessionError::while_doing("look at", &path)(error))?;
        require_our_links(disk.as_ref(), &folders)?;
        let lock = take_lock(disk.as_ref(), &dir, holder)?;
        // Somebody may have removed the file of the lock, and then it is free for everybody.
        locks.take(disk.as_ref(), &dir, &dir)?;
        keep::restore_values(disk.as_ref(), &folders)?;
        let (scan, snapshot) = scan_from_best_snapshot(&disk, &dir)?;
        let first = scan.first.ok_or_else(|| SessionError::NeverStarted { dir: dir.clone() })?;
        make_folders(disk.as_ref(), &dir)?;
        remove_temporary_files(disk.as_ref(), &dir);
        let repaired = match &scan.tail {
            Tail::Whole => None,
            Tail::Unended => Some(Torn { offset: scan.position.end, bytes: 0, kept: None }),
            Tail::Torn(bytes) => Some(keep_aside(disk.as_ref(), &dir, scan.position.end, bytes)?),
        };
        keep::require_noted(disk.as_ref(), &folders, scan.position)?;
        keep::require_length(disk.as_ref(), &folders, scan.position)?;
        let journal = Journal::open(&disk, &folders, scan.position, &scan.tail, locks)?;
        let snapshots = Snapshots::new(Arc::clone(&disk), &dir, snapshot.as_ref());
        let snapshot = snapshot.map(|snapshot| snapshot.payload);
        let opened = Opened { first, snapshot, facts: scan.facts, repaired, restored };
        Ok((Self::held(disk, dir, journal, snapshots, lock), opened))
    }

    /// The facts of a session that may be held by somebody else. Nothing is locked or mended.
    pub fn read_only(disk: Arc<dyn Disk>, dir: &Path) -> Result<Facts, SessionError> {
        look(disk.as_ref(), dir)?;
        Facts::open(disk, dir)
    }

    /// Who holds a session, by its own words; nobody when nobody does.
    pub fn holder(disk: &dyn Disk, dir: &Path) -> Result<Option<String>, SessionError> {
        let path = dir.join(LOCK);
        let failed = || SessionError::while_doing("ask for the lock", &path);
        if let Some(holder) = disk.lock_holder(&path).map_err(failed())? {
            return Ok(Some(holder));
        }
        let is_locked = disk.is_content_locked(&dir.join(JOURNAL)).map_err(failed())?;
        Ok(is_locked.then(|| UNNAMED.to_owned()))
    }

    /// Records facts, all with one write and one sync. They are on disk when this returns.
    ///
    /// After an error nothing can be recorded by this handle any more, except after
    /// [`SessionError::Unrecordable`], which leaves everything as it was.
    pub fn append(
        &mut self,
        events: Vec<Event>,
        at: Moment,
    ) -> Result<Vec<Envelope>, SessionError> {
        self.secure()?;
        self.journal.append(events, at)
    }

    /// All facts from the first, for whoever cannot use the snapshot.
    pub fn facts(&self) -> Result<Facts, SessionError> {
        Facts::open(Arc::clone(&self.disk), &self.dir)
    }

    /// Whether the journal has grown enough to be worth a snapshot.
    pub fn snapshot_due(&self) -> bool {
        self.snapshots.due(self.journal.position())
    }

    /// Keeps what is known now, so that the next open need not read everything before. When it
    /// fails nothing is lost but time.
    pub fn write_snapshot(&mut self, known: &impl Serialize) -> Result<(), SessionError> {
        // Facts before a snapshot are not read again, so nothing could put back what is lost.
        self.persist(|session| session.make_progress_durable())?;
        self.persist(|session| session.snapshots.write(session.journal.position(), known))
    }

    /// The session's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The number of the last fact.
    pub fn seq(&self) -> u64 {
        self.journal.position().seq
    }

    fn held(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        journal: Journal,
        snapshots: Snapshots,
        lock: HeldLock,
    ) -> Self {
        Self {
            disk,
            dir,
            journal,
            snapshots,
            summary: None,
            tasks: Tasks::default(),
            progress: Progress::default(),
            lock,
            restored: false,
            workspace: None,
        }
    }
}

/// What is in a journal.
struct Scan {
    first: Option<Envelope>,
    facts: Vec<Envelope>,
    position: Position,
    tail: Tail,
}

/// Reads the journal after the newest snapshot that belongs to it.
fn scan_from_best_snapshot(
    disk: &Arc<dyn Disk>,
    dir: &Path,
) -> Result<(Scan, Option<Snapshot>), SessionError> {
    for seq in snapshot::candidates(disk.as_ref(), dir) {
        if let Some(snapshot) = snapshot::load(disk.as_ref(), dir, seq)
            && let Some(scan) = scan(disk, dir, Some(&snapshot))?
        {
            return Ok((scan, Some(snapshot)));
        }
    }
    let scan = scan(disk, dir, None)?;
    let never_started = || SessionError::NeverStarted { dir: dir.to_owned() };
    Ok((scan.ok_or_else(never_started)?, None))
}

/// Checks the whole journal and reads the facts after the snapshot; nothing when the snapshot
/// does not belong to it.
fn scan(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    snapshot: Option<&Snapshot>,
) -> Result<Option<Scan>, SessionError> {
    let mut lines = Lines::open(Arc::clone(disk), dir)?;
    let (mut first, mut facts) = (None, Vec::new());
    let after = snapshot.map_or(0, |snapshot| snapshot.seq);
    let tail = loop {
        let next = lines.advance()?;
        match next {
            Next::End => break Tail::Whole,
            Next::Torn => break Tail::Torn(lines.line().to_vec()),
            Next::Line | Next::Unended => {}
        }
        if lines.seq == 1 {
            first = Some(lines.fact()?);
        }
        if lines.seq > after {
            facts.push(lines.fact()?);
        }
        if snapshot.is_some_and(|s| s.seq == lines.seq && !belongs(s, &lines)) {
            return Ok(None);
        }
        if next == Next::Unended {
            break Tail::Unended;
        }
    };
    if lines.seq < after {
        return Ok(None);
    }
    let position = Position { seq: lines.seq, end: lines.end, crc: lines.crc };
    Ok(Some(Scan { first, facts, position, tail }))
}

fn belongs(snapshot: &Snapshot, lines: &Lines) -> bool {
    snapshot.offset == lines.end && snapshot.journal == snapshot::hex(lines.crc)
}

/// Takes the lock in this file for a session's folder.
pub(crate) fn take_lock_in(
    disk: &dyn Disk,
    dir: &Path,
    path: &Path,
    holder: &str,
) -> Result<Box<dyn Lock>, SessionError> {
    let text = format!("process {}, {holder}", std::process::id());
    disk.lock(path, &text).map_err(|error| match error {
        LockError::Held { holder } => SessionError::Held { dir: dir.to_owned(), holder },
        LockError::Io(error) => SessionError::while_doing("lock", path)(error),
    })
}

/// Makes the session's folder, and sees to it that git does not.
pub(crate) fn make_folder(disk: &dyn Disk, dir: &Path) -> Result<(), SessionError> {
    let parent = dir.parent().unwrap_or(dir);
    // A folder that was there and is not called that is somebody's own: it is not ours to hide.
    let ours = parent.file_name().is_some_and(|name| name == "sessions")
        || !disk.exists(parent).map_err(SessionError::while_doing("look for", parent))?;
    create_dir(disk, dir)?;
    let path = if ours { parent } else { dir }.join(".gitignore");
    if !disk.exists(&path).map_err(SessionError::while_doing("look for", &path))? {
        disk.replace(&path, b"*\n").map_err(SessionError::while_doing("write", &path))?;
    }
    Ok(())
}

/// Makes what is missing inside the session's folder, and makes sure that the folder itself is
/// durable: whoever made it may have died before its sync.
pub(crate) fn make_folders(disk: &dyn Disk, dir: &Path) -> Result<(), SessionError> {
    for name in FOLDERS {
        create_dir(disk, &dir.join(name))?;
    }
    // The session's folder, the one of all sessions, `.atomic`, the project, and what that is in.
    for folder in dir.ancestors().take(5).filter(|folder| !folder.as_os_str().is_empty()) {
        match disk.sync_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => break,
            synced => synced.map_err(SessionError::while_doing("sync", folder))?,
        }
    }
    Ok(())
}

fn create_dir(disk: &dyn Disk, path: &Path) -> Result<(), SessionError> {
    disk.create_dir(path).map_err(SessionError::while_doing("create", path))
}

/// Clears away what a crash in the middle of a replace left. Not in the inbox: others write there.
fn remove_temporary_files(disk: &dyn Disk, dir: &Path) {
    let inside = [snapshot::CHECKPOINTS, blob::BLOBS, values::VALUES].map(|name| dir.join(name));
    for folder in inside.into_iter().chain([dir.to_owned()]) {
        for name in disk.list(&folder).unwrap_or_default() {
            if name.starts_with('.') && name.ends_with(TEMPORARY) {
                // It is in nobody's way.
                let _ = disk.remove(&folder.join(name));
            }
        }
    }
}

/// Keeps what is about to be cut off.
fn keep_aside(
    disk: &dyn Disk,
    dir: &Path,
    offset: u64,
    bytes: &[u8],
) -> Result<Torn, SessionError> {
    let name = |n: u32| match n {
        1 => format!("torn-{offset}.bin"),
        n => format!("torn-{offset}-{n}.bin"),
    };
    let path = unused(disk, &dir.join(LOGS), name)?;
    disk.replace(&path, bytes).map_err(SessionError::while_doing("write", &path))?;
    Ok(Torn { offset, bytes: bytes.len() as u64, kept: Some(path) })
}

/// The first of `name(1)`, `name(2)`, … that is not taken.
pub(crate) fn unused(
    disk: &dyn Disk,
    folder: &Path,
    name: impl Fn(u32) -> String,
) -> Result<PathBuf, SessionError> {
    let mut n = 1;
    loop {
        let path = folder.join(name(n));
        if !disk.exists(&path).map_err(SessionError::while_doing("look for", &path))? {
            return Ok(path);
        }
        n += 1;
    }
}
