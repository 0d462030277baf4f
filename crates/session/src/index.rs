//! The index of all sessions, so that one can be found from any folder.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atomic_event::{Moment, SessionId, WorkflowName};
use serde::{Deserialize, Serialize};

use crate::{Disk, FolderIdentity, JournalSeal, SessionError, SessionFolders, limits};

const PROMPT_LENGTH: usize = 120;

/// The folder of the second links, beside the index.
const KEEP: &str = "keep";

/// The file that lists all sessions of a user, one a line.
#[derive(Debug)]
pub struct Index {
    disk: Arc<dyn Disk>,
    path: PathBuf,
}

/// A session, as far as it takes to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexEntry {
    /// Its id.
    pub session: SessionId,
    /// Its folder.
    pub dir: PathBuf,
    /// The workflow's name.
    pub workflow: WorkflowName,
    /// When it was created.
    pub created_at: Moment,
    /// The beginning of its prompt.
    pub prompt: String,
    /// The folder it works in. Entries of older versions do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// The root of the repository that folder is in, or the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<PathBuf>,
    /// The hash of what the session is about, by which it is known again in another folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The identity of the folder it works in, by which a new folder at the same path is told from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<FolderIdentity>,
    /// The journal as the last process let it go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<JournalSeal>,
}

/// A line that takes a session out of the list.
#[derive(Debug, Serialize, Deserialize)]
struct Dropped {
    dropped: SessionId,
}

/// What is in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The sessions, newest first.
    pub entries: Vec<IndexEntry>,
    /// How many lines could not be read.
    pub skipped: usize,
}

/// Why a session was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No session has such an id.
    #[error("there is no session `{text}`; `atomic sessions` lists those there are")]
    NotFound {
        /// What was asked for.
        text: String,
    },
    /// Several ids begin like that.
    #[error("`{text}` could be any of {}; give more of the id", ids(candidates))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// The sessions it could be, newest first.
        candidates: Vec<IndexEntry>,
    },
    /// The index could not be read.
    #[error(transparent)]
    Unreadable(#[from] SessionError),
}

fn ids(candidates: &[IndexEntry]) -> String {
    candidates.iter().map(|entry| entry.session.as_str()).collect::<Vec<_>>().join(", ")
}

impl Index {
    /// The index in this file, which need not be there yet.
    pub fn new(disk: Arc<dyn Disk>, path: PathBuf) -> Self {
        Self { disk, path }
    }

    /// The folder for the second links of the session in this folder.
    pub fn keep(&self, dir: &Path) -> PathBuf {
        let home = self.path.parent().unwrap_or(Path::new(""));
        home.join(KEEP).join(dir.file_name().unwrap_or_default())
    }

    /// The folders of the session in this folder.
    pub fn folders(&self, dir: PathBuf) -> SessionFolders {
        SessionFolders { keep: Some(self.keep(&dir)), dir }
    }

    /// Adds a session, or says where it is now. Of its prompt, the first 120 characters are kept.
    pub fn add(&self, mut entry: IndexEntry) -> Result<(), SessionError> {
        entry.prompt = entry.prompt.chars().take(PROMPT_LENGTH).collect();
        self.append(&entry)
    }

    /// Notes the journal of a session that is about to be let go. A session that is listed in another
    /// folder is left alone.
    pub fn add_seal(
        &self,
        session: &SessionId,
        dir: &Path,
        seal: JournalSeal,
    ) -> Result<(), SessionError> {
        let is_it = |entry: &IndexEntry| entry.session == *session && entry.dir == dir;
        match self.entries()?.entries.into_iter().find(is_it) {
            Some(entry) if entry.seal.as_ref() != Some(&seal) => {
                self.append(&IndexEntry { seal: Some(seal), ..entry })
            }
            _ => Ok(()),
        }
    }

    /// Takes a session out of the list.
    pub fn drop_entry(&self, session: &SessionId) -> Result<(), SessionError> {
        self.append(&Dropped { dropped: session.clone() })
    }

    fn append(&self, line: &impl Serialize) -> Result<(), SessionError> {
        let json = serde_json::to_string(line)
            .map_err(|e| SessionError::Unrecordable { problem: e.to_string() })?;
        if let Some(folder) = self.path.parent() {
            let made = self.disk.create_dir(folder);
            made.map_err(SessionError::while_doing("create", folder))?;
        }
        // When somebody else's line was torn, ours still begins on its own.
        let torn = self.read()?.last().is_some_and(|byte| *byte != b'\n');
        let line = format!("{}{json}\n", if torn { "\n" } else { "" });
        let failed = SessionError::while_doing("write to", &self.path);
        let append = || {
            let mut file = self.disk.append(&self.path)?;
            file.write(line.as_bytes())?;
            file.sync()
        };
        append().map_err(failed)
    }

    /// All sessions, newest first.
    pub fn entries(&self) -> Result<Listing, SessionError> {
        let bytes = self.read()?;
        let mut listing = Listing::default();
        let mut seen = HashSet::new();
        for line in bytes.rsplit(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<IndexEntry>(line) {
                Ok(entry) if seen.insert(entry.session.clone()) => listing.entries.push(entry),
                Ok(_) => {}
                Err(_) => match serde_json::from_slice::<Dropped>(line) {
                    Ok(Dropped { dropped }) => drop(seen.insert(dropped)),
                    Err(_) => listing.skipped += 1,
                },
            }
        }
        listing.entries.sort_by_key(|entry| std::cmp::Reverse(entry.created_at));
        Ok(listing)
    }

    /// Finds a session by its id, by the beginning of its id, or the newest as `last`.
    pub fn find(&self, text: &str) -> Result<IndexEntry, FindError> {
        self.entries()?.find(text)
    }

    fn read(&self) -> Result<Vec<u8>, SessionError> {
        match self.disk.read(&self.path, limits::INDEX) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(SessionError::while_doing("read", &self.path)(error)),
        }
    }
}

impl Listing {
    /// Finds a session by its id, by the beginning of its id, or the newest as `last`.
    pub fn find(mut self, text: &str) -> Result<IndexEntry, FindError> {
        let entries = &mut self.entries;
        let wanted = text.trim().to_lowercase();
        match wanted.as_str() {
            "" => entries.clear(),
            "last" => entries.truncate(1),
            _ => entries.retain(|entry| entry.session.as_str().starts_with(&wanted)),
        }
        if let Some(exact) = entries.iter().position(|e| e.session.as_str() == wanted) {
            return Ok(entries.swap_remove(exact));
        }
        let text = text.to_owned();
        match entries.len() {
            1 => entries.pop().ok_or(FindError::NotFound { text }),
            0 => Err(FindError::NotFound { text }),
            _ => Err(FindError::Ambiguous { text, candidates: self.entries }),
        }
    }
}
