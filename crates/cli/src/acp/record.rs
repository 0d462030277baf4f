//! What is kept of a session with an editor: one line for each thing that happened, so that it can
//! be shown again and gone on with.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use atomic_event::{BackendId, ConversationId};
use atomic_session::{Lock, LockError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{home, stage};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Note {
    /// The session was opened in a folder.
    Opened { cwd: PathBuf },
    /// The user wrote.
    Prompted { text: String },
    /// We answered.
    Said { text: String },
    /// The conversation with an agent program has this name there.
    Conversed { backend: BackendId, conversation: ConversationId },
    /// The conversation is over; the next begins anew.
    Cleared,
    /// A run has begun or goes on.
    Ran { dir: PathBuf },
    /// A newer version wrote this.
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    #[serde(flatten)]
    note: Note,
}

/// The file of a session; without a home folder nothing is kept.
#[derive(Debug)]
pub(super) struct Record(Option<PathBuf>);

/// A session that can be loaded.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) id: String,
    pub(super) cwd: PathBuf,
    pub(super) title: Option<String>,
    pub(super) updated: Timestamp,
}

/// Where they are.
fn folder() -> Option<PathBuf> {
    Some(home::folder()?.join("acp"))
}

/// The folder of the last run in a session.
pub(super) fn last_run(notes: &[Note]) -> Option<PathBuf> {
    notes.iter().rev().find_map(|note| {
        let Note::Ran { dir } = note else { return None };
        Some(dir.clone())
    })
}

/// What a session is about, by its first prompt.
pub(super) fn title(prompt: &str) -> Option<String> {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(80).collect())
}

/// Whether it can be a name of ours. It becomes part of a path.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

impl Record {
    pub(super) fn of(id: &str) -> Self {
        Self(folder().map(|folder| folder.join(format!("{id}.jsonl"))))
    }

    /// Whether anything was kept.
    pub(super) fn exists(&self) -> bool {
        self.0.as_ref().is_some_and(|path| path.exists())
    }

    /// Takes the session for this process; what is kept nowhere needs no lock. It goes with the
    /// process, however that ends.
    pub(super) fn lock(&self) -> Result<Option<Box<dyn Lock>>, LockError> {
        let Some(path) = &self.0 else { return Ok(None) };
        make_folder_of(path)?;
        let holder = format!("process {}, atomic acp", std::process::id());
        stage::disk().lock(&path.with_extension("lock"), &holder).map(Some)
    }

    /// Keeps something that happened.
    pub(super) fn add(&self, note: Note) -> std::io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        make_folder_of(path)?;
        let line = serde_json::to_string(&Line { at: Timestamp::now(), note })?;
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        // A line that was cut off must not take the next one with it.
        let is_torn = ends_torn(path).unwrap_or(false);
        let line = if is_torn { format!("\n{line}\n") } else { format!("{line}\n") };
        file.write_all(line.as_bytes())
    }

    /// Everything that happened; nothing when there is no such session.
    pub(super) fn read(&self) -> Option<Vec<Note>> {
        let notes = lines(self.0.as_deref()?)?;
        Some(notes.into_iter().map(|line| line.note).collect())
    }
}

fn make_folder_of(path: &Path) -> std::io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn ends_torn(path: &Path) -> std::io::Result<bool> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = fs::File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// The lines of a file. One that cannot be read was cut off, and is passed over.
fn lines(path: &Path) -> Option<Vec<Line>> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Every session there is, the newest first.
pub(super) fn all() -> Vec<Kept> {
    let files = folder().and_then(|folder| fs::read_dir(folder).ok());
    let files = files.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<Kept> = files.filter_map(|path| kept(&path)).collect();
    all.sort_by_key(|kept| std::cmp::Reverse(kept.updated));
    all
}

fn kept(path: &Path) -> Option<Kept> {
    if path.extension()? != "jsonl" {
        return None;
    }
    let id = path.file_stem()?.to_str().filter(|id| is_id(id))?.to_owned();
    let lines = lines(path)?;
    let cwd = lines.iter().find_map(|line| {
        let Note::Opened { cwd } = &line.note else { return None };
        Some(cwd.clone())
    })?;
    let title = lines.iter().find_map(|line| {
        let Note::Prompted { text } = &line.note else { return None };
        title(text)
    });
    Some(Kept { id, cwd, title, updated: lines.last()?.at })
}

#[cfg(test)]
mod tests {
    use super::{Note, Record, is_id, lines};

    #[test]
    fn a_line_that_was_cut_off_costs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acp/a.jsonl");
        let record = Record(Some(path.clone()));
        let said = |text: &str| Note::Said { text: text.to_owned() };
        record.add(said("one")).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"at\":\"2026-");
        std::fs::write(&path, text).unwrap();
        assert_eq!(record.read(), Some(vec![said("one")]));
        record.add(said("two")).unwrap();
        assert_eq!(record.read(), Some(vec![said("one"), said("two")]));
        let newer = "{\"at\":\"2026-11-17T00:00:00Z\",\"type\":\"danced\",\"how\":1}\n";
        std::fs::write(&path, newer).unwrap();
        assert_eq!(lines(&path).unwrap()[0].note, Note::Unknown);
        assert_eq!(Record(Some(folder.path().join("b.jsonl"))).read(), None);
    }

    #[test]
    fn only_what_looks_like_one_is_the_name_of_a_session() {
        assert!(is_id("0b7a4e7e-6f5a-4d7e-9a55-0123456789ab"));
        for text in ["", "last", "../../../../../../../../etc/passwd..", "0b7a4e7e"] {
            assert!(!is_id(text), "{text}");
        }
    }
}
