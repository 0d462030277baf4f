//! A program that many use at once: who uses it, whether it is there, and how it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

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

    pub(crate) fn add_user(&self) {
        self.users.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn remove_user(&self) {
        self.users.fetch_sub(1, Ordering::SeqCst);
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

/// Who talks in which session. One at a time: two would hear each other's turns.
#[derive(Debug)]
pub(crate) struct Roster<T> {
    talkers: Mutex<BTreeMap<String, Arc<T>>>,
    changed: Notify,
}

/// One that talks.
pub(crate) trait Talks {
    /// Whether it is about to leave.
    fn is_leaving(&self) -> bool;
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self { talkers: Mutex::default(), changed: Notify::new() }
    }
}

impl<T: Talks> Roster<T> {
    /// Lets somebody talk in a session; says whether nobody else does. One who is about to leave is
    /// waited for.
    pub(crate) async fn enter(&self, session: &str, talker: &Arc<T>) -> bool {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let mut talkers = lock(&self.talkers);
                match talkers.get(session) {
                    None => {
                        talkers.insert(session.to_owned(), Arc::clone(talker));
                        return true;
                    }
                    Some(other) if !other.is_leaving() => return false,
                    Some(_) => {}
                }
            }
            changed.await;
        }
    }

    /// Nobody talks in this session any more.
    pub(crate) fn leave(&self, session: &str) {
        lock(&self.talkers).remove(session);
        self.changed.notify_waiters();
    }

    pub(crate) fn get(&self, session: &str) -> Option<Arc<T>> {
        lock(&self.talkers).get(session).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.talkers).values().cloned().collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
