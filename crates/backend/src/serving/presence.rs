//! Whether somebody is still there who talks in a session, and what may run for it.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::guard::end_marked;

/// One that talks in a session, as far as others have to know.
#[derive(Debug)]
pub(crate) struct Presence {
    /// What its processes are found by.
    marker: String,
    has_shell: AtomicBool,
    is_leaving: AtomicBool,
    is_stopped: AtomicBool,
}

impl Presence {
    pub(crate) fn new(marker: &str) -> Self {
        Self {
            marker: marker.to_owned(),
            has_shell: AtomicBool::default(),
            is_leaving: AtomicBool::default(),
            is_stopped: AtomicBool::default(),
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

    /// Another turn begins.
    pub(crate) fn goes_on(&self) {
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

    /// Ends what its shells have left running.
    pub(crate) async fn end_shells(&self) {
        if self.has_shell.load(Ordering::Relaxed) && !self.marker.is_empty() {
            let marker = self.marker.clone();
            let _ = tokio::task::spawn_blocking(move || end_marked(&marker)).await;
        }
    }
}
