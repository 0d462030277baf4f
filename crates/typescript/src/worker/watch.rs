//! Ends what does not end by itself.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How the thread of a worker is, as it looks to others.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// The nanoseconds of all stretches so far.
    busy: AtomicU64,
    /// When the one that runs began, by a clock of this process; 0 when none does.
    since: AtomicU64,
}

impl Pulse {
    fn clock() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        let since = START.get_or_init(Instant::now).elapsed();
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// How long it has worked for the file.
    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy.load(Ordering::Relaxed))
    }

    /// How long what runs has been running.
    pub(super) fn running(&self) -> Duration {
        match self.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => Duration::from_nanos(Self::clock().saturating_sub(since)),
        }
    }
}

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
    pulse: Arc<Pulse>,
}

impl Watch {
    pub(super) fn new(limit: Duration, stop: Arc<AtomicBool>, pulse: Arc<Pulse>) -> Self {
        Self { limit, armed: Cell::new(None), trip: Cell::new(None), stop, pulse }
    }

    pub(super) fn arm(&self) {
        self.armed.set(Some(Instant::now()));
        self.pulse.since.store(Pulse::clock(), Ordering::Relaxed);
    }

    pub(super) fn disarm(&self) {
        if let Some(armed) = self.armed.take() {
            let nanos = u64::try_from(armed.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.pulse.busy.fetch_add(nanos, Ordering::Relaxed);
            self.pulse.since.store(0, Ordering::Relaxed);
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
