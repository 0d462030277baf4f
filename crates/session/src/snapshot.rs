//! Snapshots: what was known at some point of the journal, so that reading can begin there.
//!
//! `checkpoints/<seq>.json` is `{version, seq, offset, journal, crc, payload}`: the fact it was
//! taken after, where that ends, the checksum of the journal up to there, and its own. With the
//! journal's checksum a snapshot is never taken for one of another history.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::journal::Position;
use crate::{Disk, SessionError, limits};

/// The folder of the snapshots.
pub(crate) const CHECKPOINTS: &str = "checkpoints";

const VERSION: u32 = 1;

/// Less growth of the journal is not worth a snapshot.
const LEAST_GROWTH: u64 = 64 * 1024;

const PAYLOAD: &[u8] = b",\"payload\":";
const END: &[u8] = b"}\n";

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    seq: u64,
    offset: u64,
    journal: String,
    crc: String,
}

/// A snapshot that is whole. Whether it belongs to the journal is for the reader to see.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) seq: u64,
    pub(crate) offset: u64,
    pub(crate) journal: String,
    pub(crate) payload: Value,
    size: u64,
}

/// The snapshots of one session.
#[derive(Debug)]
pub(crate) struct Snapshots {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// The last good one.
    last: Option<u64>,
    /// The journal's length when one was last taken or tried.
    taken_at: u64,
    /// How big the last one was.
    size: u64,
}

impl Snapshots {
    pub(crate) fn new(disk: Arc<dyn Disk>, dir: &Path, last: Option<&Snapshot>) -> Self {
        Self {
            disk,
            folder: dir.join(CHECKPOINTS),
            last: last.map(|s| s.seq),
            taken_at: last.map_or(0, |s| s.offset),
            size: last.map_or(0, |s| s.size),
        }
    }

    /// Whether the journal has grown enough. Growth is measured against the last snapshot, so
    /// that all snapshots together stay in proportion to the journal.
    pub(crate) fn due(&self, position: Position) -> bool {
        position.end - self.taken_at >= LEAST_GROWTH.max(2 * self.size)
    }

    pub(crate) fn write(
        &mut self,
        position: Position,
        payload: &impl Serialize,
    ) -> Result<(), SessionError> {
        // Also when it fails: a full disk is not tried again on every step.
        self.taken_at = position.end;
        let path = self.folder.join(file_name(position.seq));
        let bytes = encode(position, payload)
            .map_err(|e| SessionError::Unrecordable { problem: e.to_string() })?;
        if bytes.len() as u64 > limits::SNAPSHOT {
            return Ok(());
        }
        let written = self.disk.replace(&path, &bytes);
        written.map_err(SessionError::while_doing("write", &path))?;
        let keep = [Some(position.seq), self.last.replace(position.seq)];
        self.size = bytes.len() as u64;
        self.remove_all_but(keep);
        Ok(())
    }

    fn remove_all_but(&self, keep: [Option<u64>; 2]) {
        for name in self.disk.list(&self.folder).unwrap_or_default() {
            if seq_of(&name).is_some() && !keep.contains(&seq_of(&name)) {
                // One too many does no harm.
                let _ = self.disk.remove(&self.folder.join(name));
            }
        }
    }
}

/// The fact numbers there are snapshots for, newest first.
pub(crate) fn candidates(disk: &dyn Disk, dir: &Path) -> Vec<u64> {
    let names = disk.list(&dir.join(CHECKPOINTS)).unwrap_or_default();
    let mut found: Vec<u64> = names.iter().filter_map(|name| seq_of(name)).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

/// Reads a snapshot; one that is broken, unreadable or of another version is none.
pub(crate) fn load(disk: &dyn Disk, dir: &Path, seq: u64) -> Option<Snapshot> {
    let path = dir.join(CHECKPOINTS).join(file_name(seq));
    let bytes = disk.read(&path, limits::SNAPSHOT).ok()?;
    let split = bytes.windows(PAYLOAD.len()).position(|part| part == PAYLOAD)?;
    let header = [&bytes[..split], b"}"].concat();
    let header: Header = serde_json::from_slice(&header).ok()?;
    let payload = bytes[split + PAYLOAD.len()..].strip_suffix(END)?;
    let crc = hex(crc32fast::hash(payload));
    if header.version != VERSION || header.seq != seq || header.crc != crc {
        return None;
    }
    Some(Snapshot {
        seq,
        offset: header.offset,
        journal: header.journal,
        payload: serde_json::from_slice(payload).ok()?,
        size: bytes.len() as u64,
    })
}

fn encode(position: Position, payload: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let payload = serde_json::to_vec(payload)?;
    let mut bytes = serde_json::to_vec(&Header {
        version: VERSION,
        seq: position.seq,
        offset: position.end,
        journal: hex(position.crc),
        crc: hex(crc32fast::hash(&payload)),
    })?;
    bytes.pop();
    bytes.extend_from_slice(PAYLOAD);
    bytes.extend_from_slice(&payload);
    bytes.extend_from_slice(END);
    Ok(bytes)
}

/// A checksum as it is written.
pub(crate) fn hex(crc: u32) -> String {
    format!("{crc:08x}")
}

fn file_name(seq: u64) -> String {
    format!("{seq:020}.json")
}

fn seq_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}
