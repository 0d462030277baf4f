//! What was asked, kept for those who want to know.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A request that came in.
#[derive(Clone, Debug)]
pub struct Received {
    /// Which request it is, counted from 0 over the life of the server.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path, with what is after the question mark.
    pub path: String,
    /// The headers, by their names in small letters, without those that hold secrets.
    pub headers: BTreeMap<String, String>,
    /// The values of the headers that hold secrets, for tests that compare them. Nothing prints or
    /// records them.
    pub credentials: Vec<String>,
    /// The body; null when there is none, or none that can be read.
    pub body: Arc<Value>,
    /// What it was answered with.
    pub chosen: Chosen,
    /// When it was there.
    pub at: Instant,
}

/// What a request was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// A reply of the script.
    Turn {
        /// The place of the turn in the script, from 0.
        turn: usize,
        /// The turn's name.
        name: Option<String>,
        /// How often the model spoke since the last text of the user.
        step: usize,
    },
    /// The default: no turn of the script fits, or the one that does has nothing to say.
    Unmatched,
    /// Something that programs want besides, and that no script is needed for.
    Aside,
    /// An error: nothing is served there, or the body cannot be read.
    Refused,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn { turn, name: Some(name), step } => {
                write!(f, "turn {} ({name}), step {step}", turn + 1)
            }
            Self::Turn { turn, name: None, step } => write!(f, "turn {}, step {step}", turn + 1),
            Self::Unmatched => write!(f, "no turn fits"),
            Self::Aside => write!(f, "aside"),
            Self::Refused => write!(f, "refused"),
        }
    }
}

/// Everything that came in, and those who wait for more.
#[derive(Debug, Default)]
pub(super) struct Log {
    pages: Mutex<Pages>,
    grown: Condvar,
}

#[derive(Debug, Default)]
struct Pages {
    kept: Vec<Received>,
    /// How many there were before those that are kept.
    forgotten: usize,
}

impl Log {
    /// Keeps a request; its number is given here.
    pub(super) fn add(&self, mut received: Received) {
        let mut pages = self.pages();
        received.number = pages.forgotten + pages.kept.len();
        pages.kept.push(received);
        drop(pages);
        self.grown.notify_all();
    }

    pub(super) fn all(&self) -> Vec<Received> {
        self.pages().kept.clone()
    }

    pub(super) fn take(&self) -> Vec<Received> {
        let mut pages = self.pages();
        pages.forgotten += pages.kept.len();
        mem::take(&mut pages.kept)
    }

    /// The first that fits, be it there already or not.
    pub(super) fn wait_for(
        &self,
        fits: impl Fn(&Received) -> bool,
        limit: Duration,
    ) -> Option<Received> {
        let end = Instant::now() + limit;
        let mut pages = self.pages();
        let mut seen = 0;
        loop {
            let new = pages.kept.iter().filter(|received| received.number >= seen);
            if let Some(found) = new.into_iter().find(|received| fits(received)) {
                return Some(found.clone());
            }
            seen = pages.forgotten + pages.kept.len();
            let left = end.checked_duration_since(Instant::now())?;
            let waited = self.grown.wait_timeout(pages, left);
            pages = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
