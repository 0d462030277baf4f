//! Who talks where in a program that serves many.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use atomic_event::BackendId;
use tokio::sync::Notify;

use super::lock;
use super::presence::Presence;
use crate::BackendError;

/// Who talks in which session. One at a time: two would hear each other's turns.
#[derive(Debug)]
pub(crate) struct Roster<T> {
    talkers: Mutex<BTreeMap<String, Arc<T>>>,
    changed: Notify,
}

/// One that talks.
pub(crate) trait Talks {
    /// Whether it is still there.
    fn presence(&self) -> &Presence;
}

impl<T> Default for Roster<T> {
    fn default() -> Self {
        Self { talkers: Mutex::default(), changed: Notify::new() }
    }
}

impl<T: Talks> Roster<T> {
    /// Lets somebody talk in a session of this backend, which nobody else may do at the same time. One
    /// who is about to leave is waited for.
    pub(crate) async fn enter(
        &self,
        session: &str,
        talker: &Arc<T>,
        backend: &str,
    ) -> Result<(), BackendError> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Listening begins before the look, so that no change is missed between the two.
            changed.as_mut().enable();
            {
                let mut talkers = lock(&self.talkers);
                match talkers.get(session) {
                    None => {
                        talkers.insert(session.to_owned(), Arc::clone(talker));
                        return Ok(());
                    }
                    Some(other) if !other.presence().is_leaving() => {
                        return Err(BackendError::Misused {
                            backend: BackendId::from(backend),
                            problem: format!("the conversation {session} is open already"),
                        });
                    }
                    Some(_) => {}
                }
            }
            changed.await;
        }
    }

    /// Nobody talks in this session any more.
    pub(crate) fn leave(&self, session: &str) {
        lock(&self.talkers).remove(session);
        self.has_changed();
    }

    /// Nobody will leave any more; whoever waits for that looks again.
    pub(crate) fn has_changed(&self) {
        self.changed.notify_waiters();
    }

    /// Whether all who are there are about to leave.
    pub(crate) fn is_being_left(&self) -> bool {
        lock(&self.talkers).values().all(|talker| talker.presence().is_leaving())
    }

    pub(crate) fn get(&self, session: &str) -> Option<Arc<T>> {
        lock(&self.talkers).get(session).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        lock(&self.talkers).values().cloned().collect()
    }
}
