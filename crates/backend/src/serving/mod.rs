//! Programs that serve many conversations at once: what those have in common that talk with one.

mod held;
mod lifeline;
mod presence;
mod roster;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use held::{Held, Wish};
pub(crate) use lifeline::{Lease, Lifeline, Lives};
pub(crate) use presence::Presence;
pub(crate) use roster::{Roster, Talks};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
