//! What front ends are shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use atomic_event::{Delta, Envelope};
use atomic_graph::State;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::stream::StreamMode;

/// Something for a front end to show.
#[derive(Clone, Debug)]
pub enum Shown {
    /// A fact; on disk already.
    Fact(Arc<Envelope>),
    /// Something to show and forget.
    Delta(Delta),
    /// What a stream that was asked for has to say about the fact that follows.
    Streamed {
        /// Which stream.
        mode: StreamMode,
        /// What it says: an object.
        value: Value,
    },
}

/// Front ends that are this many things behind are not told what is only typing.
const TYPING_BACKLOG: usize = 1_000;

/// What is on its way to a front end.
#[derive(Debug)]
enum Sent {
    Ready(Shown),
    /// The state after a fact. It is shared until somebody reads it, so that a slow reader does
    /// not make us keep a copy of everything for each step.
    State(u64, Arc<State>),
}

/// A front end's side of a run.
#[derive(Debug)]
pub(crate) struct Front {
    sent: mpsc::UnboundedSender<Sent>,
    backlog: Arc<AtomicUsize>,
}

impl Front {
    /// A front end that is slow, or gone, never holds the run up.
    pub(crate) fn show(&self, shown: Shown) {
        let behind = self.backlog.load(Ordering::Relaxed);
        if behind > TYPING_BACKLOG && matches!(shown, Shown::Delta(_)) {
            return;
        }
        self.send(Sent::Ready(shown));
    }

    /// Shows the state after a fact.
    pub(crate) fn show_state(&self, seq: u64, state: Arc<State>) {
        self.send(Sent::State(seq, state));
    }

    fn send(&self, sent: Sent) {
        if self.sent.send(sent).is_ok() {
            self.backlog.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What a front end listens to.
#[derive(Debug)]
pub struct Show {
    sent: mpsc::UnboundedReceiver<Sent>,
    backlog: Arc<AtomicUsize>,
    /// The state that was shown last.
    state: Option<Value>,
    /// Why the session is not in the list of all.
    pub(crate) unlisted: Option<String>,
}

/// Both ends.
pub(crate) fn front() -> (Front, Show) {
    let (sender, sent) = mpsc::unbounded_channel();
    let backlog = Arc::new(AtomicUsize::new(0));
    let front = Front { sent: sender, backlog: Arc::clone(&backlog) };
    (front, Show { sent, backlog, state: None, unlisted: None })
}

impl Show {
    /// Why a session that was just created is not in the list of all; nothing when it is.
    pub fn unlisted(&self) -> Option<&str> {
        self.unlisted.as_deref()
    }

    /// The next thing to show; nothing once the run is over.
    pub fn next_blocking(&mut self) -> Option<Shown> {
        loop {
            let next = self.sent.blocking_recv()?;
            if let Some(shown) = self.received(next) {
                return Some(shown);
            }
        }
    }

    /// The same, for those who wait otherwise.
    pub async fn next(&mut self) -> Option<Shown> {
        loop {
            let next = self.sent.recv().await?;
            if let Some(shown) = self.received(next) {
                return Some(shown);
            }
        }
    }

    fn received(&mut self, sent: Sent) -> Option<Shown> {
        self.backlog.fetch_sub(1, Ordering::Relaxed);
        match sent {
            Sent::Ready(shown) => Some(shown),
            Sent::State(seq, state) => {
                let values = state.to_value();
                // The run may have gone on elsewhere in the graph and changed nothing.
                if self.state.as_ref() == Some(&values) {
                    return None;
                }
                self.state = Some(values.clone());
                let value = json!({ "seq": seq, "values": values });
                Some(Shown::Streamed { mode: StreamMode::Values, value })
            }
        }
    }
}
