//! Programs that serve many conversations at once: what those have in common that talk with one.

mod lifeline;
mod presence;
mod roster;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub(crate) use lifeline::{Lease, Lifeline, Lives};
pub(crate) use presence::Presence;
pub(crate) use roster::{Roster, Talks};

/// How long those who leave a program are waited for when it is to end.
const LEAVING: Duration = Duration::from_secs(3);

/// Waits for those who are about to leave: whoever is dropped does so in a task of its own.
pub(crate) async fn until_left(is_being_left: impl Fn() -> bool) {
    let until = Instant::now() + LEAVING;
    while is_being_left() && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
