//! A new session from the beginning of another one.
//!
//! The other one is only read, without its lock: somebody may be at work in it. The new one is
//! made under a hidden name and gets its own when it is whole, so that nobody ever finds a part
//! of one. `.fork-<name>.lock` beside it is held meanwhile; what is left without its holder is
//! cleared away by the next who makes one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Envelope, Event, Moment};

use crate::disk::TEMPORARY;
use crate::files::{SUMMARY, SessionSummary, readable_json};
use crate::journal::{Journal, Position, Tail};
use crate::keep::{JournalLocks, SessionFolders};
use crate::reader::{Facts, Lines, Next, look};
use crate::session::{make_folder, make_folders, take_lock_in};
use crate::{Disk, Session, SessionError};

const HIDDEN: &str = ".fork-";
const LOCK: &str = ".lock";

/// A session to be made from the beginning of another one.
#[derive(Debug)]
pub struct Fork {
    /// The folder of the other session.
    pub from: PathBuf,
    /// The last of its facts that is part of the new one.
    pub seq: u64,
    /// The folder of the new session; there must be nothing yet.
    pub dir: PathBuf,
    /// The first fact, in place of the other's.
    pub first: Event,
    /// What is recorded after the beginning.
    pub then: Vec<Event>,
    /// What `session.json` says.
    pub summary: SessionSummary,
}

impl Session {
    /// Makes a session from the beginning of another one, all or nothing, and returns the facts
    /// that are its own. `holder` says in a few words who does.
    pub fn fork(
        disk: &Arc<dyn Disk>,
        fork: Fork,
        holder: &str,
        at: Moment,
    ) -> Result<Vec<Envelope>, SessionError> {
        look(disk.as_ref(), &fork.from)?;
        let (dir, folder) = (fork.dir.clone(), fork.dir.parent().unwrap_or(&fork.dir).to_owned());
        if disk.exists(&dir).map_err(SessionError::while_doing("look for", &dir))? {
            return Err(SessionError::AlreadyExists { dir });
        }
        clear_away(disk.as_ref(), &folder);
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let hidden = folder.join(format!("{HIDDEN}{name}{TEMPORARY}"));
        let lock = folder.join(format!("{HIDDEN}{name}{LOCK}"));
        // Before there is a folder: one without a holder is of no use to anybody.
        let held = take_lock_in(disk.as_ref(), &dir, &lock, holder)?;
        let made = make(disk, fork, &hidden, at).and_then(|facts| {
            let renamed = disk.rename_dir(&hidden, &dir);
            renamed.map_err(SessionError::while_doing("name", &dir))?;
            Ok(facts)
        });
        if made.is_err() {
            // What counts is the first error; what is left is cleared away by the next fork.
            let _ = disk.remove_dir(&hidden);
        }
        let _ = disk.remove(&lock);
        drop(held);
        made
    }
}

fn make(
    disk: &Arc<dyn Disk>,
    fork: Fork,
    dir: &Path,
    at: Moment,
) -> Result<Vec<Envelope>, SessionError> {
    make_folder(disk.as_ref(), dir)?;
    make_folders(disk.as_ref(), dir)?;
    let folders = SessionFolders::from(dir.to_owned());
    let locks = JournalLocks::default();
    let mut journal = Journal::open(disk, &folders, Position::default(), &Tail::Whole, locks)?;
    let mut lines = Lines::open(Arc::clone(disk), &fork.from)?;
    let mut first = Some(fork.first);
    let mut facts = vec![];
    while lines.seq < fork.seq {
        if matches!(lines.advance()?, Next::Torn | Next::End) {
            return Err(lines.too_short(fork.seq));
        }
        match first.take() {
            Some(first) => facts.extend(journal.append(vec![first], lines.fact()?.at)?),
            None => journal.take_over(&lines)?,
        }
    }
    facts.extend(journal.append(fork.then, at)?);
    read_back(disk, dir, journal.position().seq)?;
    let path = dir.join(SUMMARY);
    let written = disk.replace(&path, &readable_json(&fork.summary)?);
    written.map_err(SessionError::while_doing("write", &path))?;
    Ok(facts)
}

/// Reads a new journal before it gets its name: what cannot be read back is no session.
fn read_back(disk: &Arc<dyn Disk>, dir: &Path, facts: u64) -> Result<(), SessionError> {
    let unreadable = |problem: String| SessionError::Unrecordable { problem };
    let mut read = 0;
    for fact in Facts::open(Arc::clone(disk), dir)? {
        fact.map_err(|error| unreadable(error.to_string()))?;
        read += 1;
    }
    let problem = || unreadable(format!("only {read} of {facts} facts can be read back"));
    if read == facts { Ok(()) } else { Err(problem()) }
}

/// Removes what those have left who died while they made a session. Whoever has nothing but the
/// lock may be about to begin.
fn clear_away(disk: &dyn Disk, folder: &Path) {
    for name in disk.list(folder).unwrap_or_default() {
        let Some(hidden) = name.strip_prefix(HIDDEN) else { continue };
        let half = hidden.strip_suffix(TEMPORARY);
        let Some(made) = half.or_else(|| hidden.strip_suffix(LOCK)) else { continue };
        let whole = disk.exists(&folder.join(made)).unwrap_or(false);
        let lock = folder.join(format!("{HIDDEN}{made}{LOCK}"));
        if (half.is_some() || whole) && matches!(disk.lock_holder(&lock), Ok(None)) {
            // None of it is in anybody's way.
            let _ = half.map(|_| disk.remove_dir(&folder.join(&name)));
            let _ = disk.remove(&lock);
        }
    }
}
