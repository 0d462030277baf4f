//! Whether a session was begun by this user on this machine.

use std::path::Path;

use atomic_event::{Created, Envelope, Event, Moment};
use atomic_runner::digest_of;
use atomic_session::{IndexEntry, KeepStatus, Session, contains_journal};

use super::standing::{has_journal, kept};
use crate::{home, stage};

/// Whether a session was begun by this user on this machine, here or where the project was before.
pub(in crate::commands) fn is_listed(dir: &Path) -> bool {
    let entries = home::index(&stage::disk()).and_then(|index| index.entries().ok());
    let is_it = |entry: &IndexEntry| is_at(entry, dir) || is_ours(entry, dir);
    entries.is_some_and(|listing| listing.entries.iter().any(is_it))
}

/// Whether the list has a session in this folder.
pub(super) fn is_at(entry: &IndexEntry, dir: &Path) -> bool {
    entry.dir == dir || entry.dir.canonicalize().is_ok_and(|own| own == dir)
}

/// Whether the session in a folder is one of the list in another folder. The id proves nothing, nor
/// does the first event: somebody who has seen the session can add events with other commands. So the
/// journal is compared with the one of the original, with its second links, or with its seal.
pub(super) fn is_ours(entry: &IndexEntry, dir: &Path) -> bool {
    let is_about_the_same = first_of(dir).is_some_and(|(_, created)| {
        entry.digest.as_ref().is_some_and(|digest| *digest == digest_of(&created))
    });
    if !is_about_the_same {
        return false;
    }
    let disk = stage::disk();
    if has_journal(&entry.dir) {
        return contains_journal(disk.as_ref(), &entry.dir, dir);
    }
    let is_kept = kept(entry) != KeepStatus::Absent;
    let keep = home::index(&disk).map(|index| index.keep(&entry.dir)).filter(|_| is_kept);
    if keep.is_some_and(|keep| contains_journal(disk.as_ref(), &keep, dir)) {
        return true;
    }
    match &entry.seal {
        Some(seal) => seal.fits(disk.as_ref(), dir),
        // A version without seals has begun it, and nothing else is known about it.
        None => !is_kept,
    }
}

/// The first event of a session and its time.
pub(super) fn first_of(dir: &Path) -> Option<(Moment, Created)> {
    let first = Session::read_only(stage::disk(), dir).ok()?.next()?.ok()?;
    let Envelope { at, event: Event::SessionCreated(created), .. } = first else { return None };
    Some((at, *created))
}
