//! Ends what does not end by itself.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Why the engine was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trip {
    /// One stretch has taken too long.
    Time,
    /// Nobody wants the worker any more.
    Stopped,
}

/// Watches one stretch: from a message to the end of all it causes.
pub(super) struct Watch {
    limit: Duration,
    armed: Cell<Option<Instant>>,
    trip: Cell<Option<Trip>>,
    stop: Arc<AtomicBool>,
    /// The nanoseconds of all stretches so far.
    busy: Arc<AtomicU64>,
}

impl Watch {
    pub(super) fn new(limit: Duration, stop: Arc<AtomicBool>, busy: Arc<AtomicU64>) -> Self {
        Self { limit, armed: Cell::new(None), trip: Cell::new(None), stop, busy }
    }

    pub(super) fn arm(&self) {
        self.armed.set(Some(Instant::now()));
    }

    pub(super) fn disarm(&self) {
        if let Some(armed) = self.armed.take() {
            let nanos = u64::try_from(armed.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.busy.fetch_add(nanos, Ordering::Relaxed);
        }
    }

    /// Whether it is enough. Once it is, it stays so: nothing runs in an engine that was
    /// interrupted, since the exception goes to whoever happens to be next.
    pub(super) fn is_enough(&self) -> bool {
        if self.trip.get().is_none() {
            if self.stop.load(Ordering::Relaxed) {
                self.trip.set(Some(Trip::Stopped));
            } else if self.armed.get().is_some_and(|armed| armed.elapsed() > self.limit) {
                self.trip.set(Some(Trip::Time));
            }
        }
        self.trip.get().is_some()
    }

    pub(super) fn trip(&self) -> Option<Trip> {
        self.trip.get()
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }
}
