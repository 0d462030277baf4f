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

/// A clock that follows the timers of the runtime, so that a test whose timers are paused lets hours
/// pass at once.
#[derive(Clone, Copy, Debug)]
pub struct TimerClock {
    began: tokio::time::Instant,
    day: Timestamp,
}

impl TimerClock {
    /// A clock that shows the time of the day now. Made inside the runtime.
    pub fn now_on() -> Self {
        Self { began: tokio::time::Instant::now(), day: Timestamp::now() }
    }

    /// The time since it was made, in whole seconds.
    pub fn seconds(&self) -> u64 {
        self.began.elapsed().as_secs()
    }
}

impl Clock for TimerClock {
    fn now(&self) -> Moment {
        let elapsed = SignedDuration::try_from(self.began.elapsed()).unwrap_or_default();
        Moment::to_the_millisecond(self.day + elapsed)
    }
}
