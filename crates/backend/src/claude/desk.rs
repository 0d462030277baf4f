//! Which conversations have a program, and which of them rest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use atomic_event::ConversationId;
use tokio::sync::Notify;

use super::{ClaudeConversation, lock, misused};
use crate::BackendError;

/// How many programs are kept for conversations that may be continued.
const RESTING: usize = 4;

/// The conversations that have a program, and those of them nobody uses.
#[derive(Default)]
pub(super) struct Desk {
    open: Mutex<BTreeMap<ConversationId, Use>>,
    changed: Notify,
    resting: Mutex<Vec<ClaudeConversation>>,
}

/// What a conversation's program is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Somebody has it, or it rests.
    Held,
    /// It is about to be gone.
    Ending,
}

/// The right to run a program for a conversation. Two programs would each write their own version of
/// it, so it is given up only when the program is gone.
pub(super) struct Held {
    desk: Weak<Desk>,
    id: ConversationId,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(desk) = self.desk.upgrade() {
            lock(&desk.open).remove(&self.id);
            desk.changed.notify_waiters();
        }
    }
}

impl Desk {
    /// Waits for a program that is about to be gone; one that stays is in the way.
    pub(super) async fn hold(self: &Arc<Self>, id: &ConversationId) -> Result<Held, BackendError> {
        loop {
            // Listening begins before the look, so that no change is missed between the two.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.try_hold(id) {
                None => return Ok(Held { desk: Arc::downgrade(self), id: id.clone() }),
                Some(Use::Ending) => changed.await,
                Some(Use::Held) => {
                    return Err(misused(&format!("the conversation {id} is open already")));
                }
            }
        }
    }

    /// What is in the way; nothing when it is held now.
    fn try_hold(&self, id: &ConversationId) -> Option<Use> {
        let mut open = lock(&self.open);
        let known = open.get(id).copied();
        if known.is_none() {
            open.insert(id.clone(), Use::Held);
        }
        known
    }

    /// Nobody has the conversation any more; its program is being ended.
    pub(super) fn expect_end(&self, id: &ConversationId) {
        if let Some(used) = lock(&self.open).get_mut(id) {
            *used = Use::Ending;
        }
    }

    /// Takes a resting conversation.
    pub(super) fn take(&self, id: &ConversationId) -> Option<ClaudeConversation> {
        let mut resting = lock(&self.resting);
        let place = resting.iter().position(|rests| rests.held == *id)?;
        Some(resting.remove(place))
    }

    /// Lets a conversation rest; returns the one that has rested longest when there are too many.
    pub(super) fn put_aside(&self, rests: ClaudeConversation) -> Option<ClaudeConversation> {
        let mut resting = lock(&self.resting);
        resting.push(rests);
        (resting.len() > RESTING).then(|| resting.remove(0))
    }

    /// Takes all of them.
    pub(super) fn take_all(&self) -> Vec<ClaudeConversation> {
        std::mem::take(&mut *lock(&self.resting))
    }
}
