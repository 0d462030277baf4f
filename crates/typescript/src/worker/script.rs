//! Functions that are run again from what they were told: the plain async form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::dice::Dice;
use crate::fault::Place;
use crate::trouble::Trouble;

/// Something a script wants to have done.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptCall {
    /// Under which key the outcome is delivered.
    pub key: String,
    /// What is to be done, such as `agent`.
    pub kind: String,
    /// The rest.
    pub args: Value,
    /// Where it is written.
    pub at: Option<Place>,
}

/// What a script has done between two waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// What it wants to have done, in order.
    pub calls: Vec<ScriptCall>,
    /// The keys of calls that it wants to have stopped.
    pub cancelled: Vec<String>,
    /// What it has said, each with its level.
    pub logs: Vec<(String, String)>,
    /// Where it stands.
    pub progress: Progress,
    /// Of one that has returned, the calls that nothing has come of and that it has not stopped.
    pub open: Vec<OpenCall>,
}

/// A call that nothing has come of yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    /// Its key.
    pub key: String,
    /// What is to be done.
    pub kind: String,
    /// Where it is written.
    pub at: Option<Place>,
}

/// Where a script stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// It waits for calls.
    Waiting,
    /// It has not ended, and there is no call under way that it could wait for.
    Stuck,
    /// It has ended with this.
    Returned(Value),
    /// It has failed.
    Threw(Box<Trouble>),
}

/// What has come of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// Of which.
    pub key: String,
    /// What.
    pub outcome: Outcome,
}

/// What has come of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It has given this.
    Value(Arc<Value>),
    /// It has failed: in the script this is an error with these words.
    Failed {
        /// A word for programs.
        code: String,
        /// A sentence for people.
        message: String,
    },
    /// It was stopped.
    Cancelled,
}

/// What a script has said since it was last asked, and the world as it sees it.
pub(super) struct Notes {
    pub(super) now: i64,
    /// What time it was when it began.
    pub(super) began: i64,
    pub(super) dice: Dice,
    /// The calls that nothing was delivered for, by their keys, with the numbers of their promises.
    pub(super) open: BTreeMap<String, (u64, OpenCall)>,
    /// Those that it has stopped.
    pub(super) stopped: BTreeSet<String>,
    pub(super) used: BTreeSet<String>,
    pub(super) calls: Vec<ScriptCall>,
    pub(super) cancelled: Vec<String>,
    pub(super) logs: Vec<(String, String)>,
    /// The lines that were too many.
    dropped: usize,
}

/// What is kept of what a script says between two waits.
const MOST_LINES: usize = 1000;

impl Notes {
    pub(super) fn new(seed: u64, now: i64) -> Self {
        Self {
            now,
            began: now,
            dice: Dice::new(seed),
            open: BTreeMap::new(),
            stopped: BTreeSet::new(),
            used: BTreeSet::new(),
            calls: Vec::new(),
            cancelled: Vec::new(),
            logs: Vec::new(),
            dropped: 0,
        }
    }

    /// Keeps a line, if there are not too many.
    pub(super) fn say(&mut self, level: &str, text: &str) {
        if self.logs.len() < MOST_LINES {
            self.logs.push((level.to_owned(), text.to_owned()));
        } else {
            self.dropped += 1;
        }
    }

    /// What has been said, with where the script stands now.
    pub(super) fn take(&mut self, progress: Progress) -> Turn {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            let text = format!("{dropped} more lines were dropped");
            self.logs.push(("warn".to_owned(), text));
        }
        let mut open = vec![];
        if matches!(progress, Progress::Returned(_)) {
            // In the order in which they were made.
            let mut left: Vec<_> = self.open.values().collect();
            left.sort_by_key(|(number, _)| *number);
            open.extend(left.into_iter().map(|(_, call)| call.clone()));
            open.retain(|call| !self.stopped.contains(&call.key));
        }
        Turn {
            open,
            calls: std::mem::take(&mut self.calls),
            cancelled: std::mem::take(&mut self.cancelled),
            logs: std::mem::take(&mut self.logs),
            progress,
        }
    }
}
