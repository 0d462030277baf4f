//! Whether a program is there, who uses it, and how it ends.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, oneshot};

use super::lock;
use crate::BackendError;

/// Whether a program is there, and for whom.
#[derive(Debug)]
pub(crate) struct Lifeline {
    users: AtomicUsize,
    /// Why it is of no use any more, when it is not.
    gone: Mutex<Option<BackendError>>,
    /// Dropped or used to end it.
    end: Mutex<Option<oneshot::Sender<()>>>,
    ended: Notify,
    has_ended: AtomicBool,
}

impl Lifeline {
    /// A lifeline, and what tells whoever owns the process that it is to end.
    pub(crate) fn new() -> (Self, oneshot::Receiver<()>) {
        let (end, ending) = oneshot::channel();
        let line = Self {
            users: AtomicUsize::new(0),
            gone: Mutex::default(),
            end: Mutex::new(Some(end)),
            ended: Notify::new(),
            has_ended: AtomicBool::new(false),
        };
        (line, ending)
    }

    /// Whether nobody uses it.
    pub(crate) fn is_idle(&self) -> bool {
        self.users.load(Ordering::SeqCst) == 0
    }

    /// Why it is of no use any more, when it is not.
    pub(crate) fn gone(&self) -> Option<BackendError> {
        lock(&self.gone).clone()
    }

    /// It is of no use any more, whether it has ended or not.
    pub(crate) fn is_lost(&self, why: BackendError) {
        lock(&self.gone).get_or_insert(why);
    }

    /// Its process has ended.
    pub(crate) fn has_ended(&self, why: BackendError) {
        self.is_lost(why);
        self.has_ended.store(true, Ordering::SeqCst);
        self.ended.notify_waiters();
    }

    /// Ends it and everything it started; when this returns, it is gone.
    pub(crate) async fn end(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        // Listening begins before the look, so that its end is not missed between the two.
        ended.as_mut().enable();
        let asked = lock(&self.end).take();
        let is_to_end = asked.is_some_and(|end| end.send(()).is_ok());
        if is_to_end || !self.has_ended.load(Ordering::SeqCst) {
            ended.await;
        }
    }
}

/// A program that many use.
pub(crate) trait Lives {
    /// Its lifeline.
    fn line(&self) -> &Lifeline;
}

/// A program that somebody uses; it is not ended for being of no use.
#[derive(Debug)]
pub(crate) struct Lease<S: Lives>(Arc<S>);

impl<S: Lives> Lease<S> {
    pub(crate) fn of(server: &Arc<S>) -> Self {
        server.line().users.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(server))
    }
}

impl<S: Lives> Clone for Lease<S> {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl<S: Lives> Drop for Lease<S> {
    fn drop(&mut self) {
        self.0.line().users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<S: Lives> Deref for Lease<S> {
    type Target = Arc<S>;

    fn deref(&self) -> &Arc<S> {
        &self.0
    }
}
