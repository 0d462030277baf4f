//! What is said to the thread of a worker.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use serde_json::Value;

use super::script::{Delivery, Turn};
use super::{Arg, Loaded};
use crate::host::{Host, HostError};
use crate::trouble::{Trouble, TroubleKind};

/// Where an answer is waited for.
pub(super) type Reply<T> = SyncSender<Result<T, Trouble>>;

pub(super) enum Message {
    Load { config: Option<Value>, reply: Reply<Loaded> },
    Call { function: u32, args: Vec<Arg>, reply: Reply<Value> },
    Perform { id: u64, function: u32, args: Vec<Arg>, host: Arc<dyn Host>, done: Done },
    Abort { id: u64 },
    Answer { request: u64, result: Result<Value, HostError> },
    Start { id: u64, start: Start, reply: Reply<Turn> },
    Deliver { id: u64, delivery: Delivery, now: i64, reply: Reply<Turn> },
    Forget { id: u64 },
    Stop,
}

/// How a script begins.
pub(super) struct Start {
    pub(super) function: u32,
    pub(super) args: Vec<Arg>,
    pub(super) seed: u64,
    pub(super) now: i64,
}

/// Hears of the end of something, once, whatever happens to the worker.
pub(super) struct Done(Option<Hear>);

type Hear = Box<dyn FnOnce(Result<Value, Trouble>) + Send>;

impl Done {
    pub(super) fn new(done: Hear) -> Self {
        Self(Some(done))
    }

    pub(super) fn give(mut self, result: Result<Value, Trouble>) {
        if let Some(done) = self.0.take() {
            done(result);
        }
    }

    /// Nobody wants to know any more.
    pub(super) fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(Trouble::new(TroubleKind::Gone, "the worker has ended")));
        }
    }
}
