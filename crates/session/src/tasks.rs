//! The task list people read, and what to do when they wrote into it.
//!
//! `.tasks.sha256` beside the list holds the hashes of the last two lists we wrote. It is written
//! before the list, so after a crash either list is known as ours and any other is an edit.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use atomic_event::TaskStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blob::sha256;
use crate::files::readable_json;
use crate::session::unused;
use crate::{Disk, Session, SessionError, limits};

pub(crate) const TASKS: &str = "tasks.json";
pub(crate) const HASHES: &str = ".tasks.sha256";

/// A row of `tasks.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskRow {
    /// Its id, such as `#1`.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// How it stands.
    pub status: TaskStatus,
    /// The same as `content`, as said while it is being done.
    pub active_form: String,
    /// The tasks that must be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Reads the rows of `tasks.json` as they are: people may have changed them. A session without tasks
/// has none.
pub fn read_tasks(disk: &dyn Disk, dir: &Path) -> Result<Vec<Value>, SessionError> {
    let path = dir.join(TASKS);
    match disk.read(&path, limits::TASKS) {
        // A list that a person is about to save may be half written.
        Ok(text) => Ok(serde_json::from_slice(&text).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(vec![]),
        Err(error) => Err(SessionError::while_doing("read", &path)(error)),
    }
}

/// The copy of a file of ours that somebody had changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Where it is kept.
    pub path: PathBuf,
}

/// The lists that are known to be ours.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    ours: Option<BTreeSet<String>>,
}

impl Session {
    /// Writes `tasks.json`, unless it says the same already. What somebody else wrote into it
    /// since we last did is kept aside, and the caller is told where.
    pub fn write_tasks(&mut self, rows: &[TaskRow]) -> Result<Option<Kept>, SessionError> {
        let bytes = readable_json(rows)?;
        self.persist(|session| session.write_list(rows, &bytes))
    }

    fn write_list(&mut self, rows: &[TaskRow], bytes: &[u8]) -> Result<Option<Kept>, SessionError> {
        let path = self.dir.join(TASKS);
        let found = match self.disk.read(&path, limits::TASKS) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(SessionError::while_doing("read", &path)(error)),
        };
        if found.as_deref() == Some(bytes) {
            return Ok(None);
        }
        let found_hash = found.as_deref().map(sha256);
        let kept = match (&found, &found_hash) {
            (Some(found), Some(hash))
                if !self.our_lists().contains(hash) && !says_the_same(found, rows) =>
            {
                Some(self.keep_edited(found)?)
            }
            _ => None,
        };
        self.remember_lists(found_hash.into_iter().chain([sha256(bytes)]).collect())?;
        let written = self.disk.replace(&path, bytes);
        written.map_err(SessionError::while_doing("write", &path))?;
        Ok(kept)
    }

    /// What stands in `tasks.json`, when somebody else has written it.
    pub fn edited_tasks(&mut self) -> Result<Option<Vec<u8>>, SessionError> {
        let path = self.dir.join(TASKS);
        match self.disk.read(&path, limits::TASKS) {
            Ok(found) => Ok(Some(found).filter(|found| !self.our_lists().contains(&sha256(found)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SessionError::while_doing("read", &path)(error)),
        }
    }

    /// Takes an edited list as ours: it was read, and is not kept aside when it is written over.
    pub fn adopt_tasks(&mut self, edited: &[u8]) {
        self.our_lists();
        self.tasks.ours.get_or_insert_default().insert(sha256(edited));
    }

    /// The copies of edited lists that were kept aside, oldest first.
    pub fn kept_tasks(&self) -> Vec<PathBuf> {
        let names = (1..).map(|n| self.dir.join(kept_name(n)));
        names.take_while(|path| self.disk.exists(path).unwrap_or(false)).collect()
    }

    fn keep_edited(&self, found: &[u8]) -> Result<Kept, SessionError> {
        let path = unused(self.disk.as_ref(), &self.dir, kept_name)?;
        self.disk.replace(&path, found).map_err(SessionError::while_doing("write", &path))?;
        Ok(Kept { path })
    }

    fn our_lists(&mut self) -> &BTreeSet<String> {
        self.tasks.ours.get_or_insert_with(|| {
            // When it cannot be read, whatever is there counts as edited and is kept.
            let bytes = self.disk.read(&self.dir.join(HASHES), limits::HASHES).unwrap_or_default();
            String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect()
        })
    }

    fn remember_lists(&mut self, hashes: BTreeSet<String>) -> Result<(), SessionError> {
        let path = self.dir.join(HASHES);
        let text: String = hashes.iter().map(|hash| format!("{hash}\n")).collect();
        let written = self.disk.replace(&path, text.as_bytes());
        written.map_err(SessionError::while_doing("write", &path))?;
        self.tasks.ours = Some(hashes);
        Ok(())
    }
}

fn kept_name(n: u32) -> String {
    format!("tasks.edited-{n}.json")
}

/// Whether a list was only written down in another way.
fn says_the_same(found: &[u8], rows: &[TaskRow]) -> bool {
    serde_json::from_slice::<Vec<TaskRow>>(found).is_ok_and(|found| found == rows)
}
