//! Answers left for a session by those who do not hold it.

use std::io;
use std::path::{Path, PathBuf};

use atomic_event::QuestionId;
use serde::{Deserialize, Serialize};

use crate::files::{LOGS, readable_json};
use crate::reader::look;
use crate::{Disk, Session, SessionError, limits};

/// The folder answers are left in.
pub(crate) const INBOX: &str = "inbox";

/// An answer somebody left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxAnswer {
    /// Which question; the only open one when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// The labels or the text, as given.
    pub given: Vec<String>,
}

/// The name of something left in the inbox, and the answer it is, or why it is none.
pub type Left = (String, Result<InboxAnswer, String>);

/// Leaves an answer for whoever holds the session now or next. It is on disk when this returns.
pub fn leave_answer(
    disk: &dyn Disk,
    dir: &Path,
    answer: &InboxAnswer,
) -> Result<PathBuf, SessionError> {
    look(disk, dir)?;
    let folder = dir.join(INBOX);
    disk.create_dir(&folder).map_err(SessionError::while_doing("create", &folder))?;
    let there = disk.list(&folder).map_err(SessionError::while_doing("read", &folder))?;
    // Numbered, so that answers are taken in the order they were left.
    let number = |name: &String| name.split_once('-')?.0.parse::<u32>().ok();
    let next = there.iter().filter_map(number).max().unwrap_or(0).saturating_add(1);
    let path = folder.join(format!("{next:06}-{}.json", uuid::Uuid::new_v4()));
    let written = disk.replace(&path, &readable_json(answer)?);
    written.map_err(SessionError::while_doing("write", &path))?;
    Ok(path)
}

impl Session {
    /// The answers that were left, in order, each with its name. One that cannot be read is moved
    /// to the logs and reported once.
    pub fn inbox(&self) -> Result<Vec<Left>, SessionError> {
        let folder = self.dir.join(INBOX);
        let names = match self.disk.list(&folder) {
            // The session's folder was deleted; it is written again with the next fact.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            listed => listed.map_err(SessionError::while_doing("read", &folder))?,
        };
        let answers = names.into_iter().filter(|n| !n.starts_with('.') && n.ends_with(".json"));
        answers.map(|name| self.take_answer(name)).collect()
    }

    fn take_answer(&self, name: String) -> Result<Left, SessionError> {
        let path = self.dir.join(INBOX).join(&name);
        let bytes = match self.disk.read(&path, limits::ANSWER) {
            Ok(bytes) => bytes,
            Err(error) => {
                // A link, a FIFO or a huge file: nothing that `atomic answer` leaves.
                let Some(refusal) = atomic_files::refusal(&error) else {
                    return Err(SessionError::while_doing("read", &path)(error));
                };
                self.clear_inbox(&name)?;
                let problem = format!("{}: {refusal}; it was removed", path.display());
                return Ok((name, Err(problem)));
            }
        };
        match serde_json::from_slice(&bytes) {
            Ok(answer) => Ok((name, Ok(answer))),
            Err(problem) => {
                let aside = self.dir.join(LOGS).join(format!("inbox-{name}"));
                let moved = self.disk.replace(&aside, &bytes);
                moved.map_err(SessionError::while_doing("write", &aside))?;
                self.clear_inbox(&name)?;
                let problem = format!("{} is not a valid answer: {problem}", aside.display());
                Ok((name, Err(problem)))
            }
        }
    }

    /// Removes an answer that was taken. It may come back after a power cut, so one that was
    /// taken before must be recognised.
    pub fn clear_inbox(&self, name: &str) -> Result<(), SessionError> {
        let path = self.dir.join(INBOX).join(name);
        self.disk.remove(&path).map_err(SessionError::while_doing("remove", &path))
    }
}
