//! Whether somebody is still there who talks in a session, and what may run for it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinHandle;

use crate::guard::end_marked;

/// One that talks in a session, as far as others have to know.
#[derive(Debug)]
pub(crate) struct Presence {
    /// What its processes are found by.
    marker: String,
    has_shell: AtomicBool,
    is_leaving: AtomicBool,
    is_stopped: AtomicBool,
    /// Searches for processes of an interrupted turn that may still be under way.
    searches: Mutex<Vec<JoinHandle<()>>>,
}

impl Presence {
    pub(crate) fn new(marker: &str) -> Self {
        Self {
            marker: marker.to_owned(),
            has_shell: AtomicBool::default(),
            is_leaving: AtomicBool::default(),
            is_stopped: AtomicBool::default(),
            searches: Mutex::default(),
        }
    }

    /// Nobody holds the conversation any more; it is being ended.
    pub(crate) fn leaves(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::Relaxed)
    }

    /// The turn is to end: nothing is begun any more.
    pub(crate) fn stops(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Another turn begins, as soon as the processes of the turn before are gone: all turns of a
    /// conversation have the same marker, so a search that still runs would end the processes of
    /// this turn as well.
    pub(crate) async fn goes_on(&self) {
        let searches = std::mem::take(&mut *self.searches());
        for search in searches {
            // A search that panicked has ended, too.
            let _ = search.await;
        }
        self.is_stopped.store(false, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// A shell is started for it; what marks its processes.
    pub(crate) fn starts_a_shell(&self) -> &str {
        self.has_shell.store(true, Ordering::Relaxed);
        &self.marker
    }

    /// Ends what its shells have left running, without waiting for it.
    pub(crate) fn begin_to_end_shells(self: &Arc<Self>) {
        self.end_shells_after(std::future::ready(()));
    }

    /// The same, as soon as something has come to its end.
    pub(crate) fn end_shells_after(
        self: &Arc<Self>,
        end: impl Future<Output = ()> + Send + 'static,
    ) {
        let this = Arc::clone(self);
        let search = tokio::spawn(async move {
            end.await;
            this.end_shells().await;
        });
        let mut searches = self.searches();
        searches.retain(|search| !search.is_finished());
        searches.push(search);
    }

    fn searches(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what its shells have left running.
    pub(crate) async fn end_shells(&self) {
        if self.has_shell.load(Ordering::Relaxed) && !self.marker.is_empty() {
            let marker = self.marker.clone();
            let _ = tokio::task::spawn_blocking(move || end_marked(&marker)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::sync::Arc;

    use super::Presence;

    fn shell(marker: &str, command: &str) -> Child {
        Command::new("sh").args(["-c", command]).env("ATOMIC_STEP", marker).spawn().unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn processes_of_the_next_turn_are_not_ended_with_those_of_the_interrupted_one() {
        let marker = format!("presence/{}/1", std::process::id());
        let presence = Arc::new(Presence::new(&marker));
        presence.starts_a_shell();
        for turn in 0..20 {
            let mut interrupted = shell(&marker, "exec sleep 1000");
            presence.stops();
            presence.begin_to_end_shells();
            presence.goes_on().await;
            // As long as it takes a search that runs beside it to find it.
            let mut next = shell(&marker, "exec sleep 0.05");
            let waited = tokio::task::spawn_blocking(move || (interrupted.wait(), next.wait()));
            let (interrupted, next) = waited.await.unwrap();
            assert!(!interrupted.unwrap().success(), "turn {turn} was not interrupted");
            assert!(next.unwrap().success(), "the process of the turn after {turn} was ended");
        }
    }
}
