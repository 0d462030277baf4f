//! A clock that stands still until it is told otherwise.

use std::sync::{Mutex, PoisonError};

use atomic_event::Moment;
use atomic_runner::Clock;
use jiff::{SignedDuration, Timestamp};

/// A clock that stands still until it is told otherwise.
#[derive(Debug)]
pub struct SetClock(Mutex<Timestamp>);

impl SetClock {
    /// A clock that shows this time, written as `2026-11-15T10:00:00Z`.
    pub fn at(time: &str) -> Result<Self, jiff::Error> {
        Ok(Self(Mutex::new(time.parse()?)))
    }

    /// Lets time pass.
    pub fn advance(&self, seconds: i64) {
        let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *time += SignedDuration::from_secs(seconds);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Moment {
        Moment(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
