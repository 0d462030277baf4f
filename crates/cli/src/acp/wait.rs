//! The wait of a chat for its provider. A person looks on, so it is short.

use std::time::Duration;

use atomic_event::{Moment, Report, StepError};
use jiff::Timestamp;
use tokio::time::Instant;

/// The first wait where the provider does not say how long it is out of order; the next ones are
/// twice as long each.
const FIRST: Duration = Duration::from_secs(15);

/// What is known of the trouble of a provider in one prompt.
pub(super) struct ProviderWait {
    window: Duration,
    /// The first trouble since the model last answered.
    since: Option<Instant>,
    waits: u32,
}

impl ProviderWait {
    /// No trouble so far; `window` is the longest wait.
    pub(super) fn within(window: Duration) -> Self {
        Self { window, since: None, waits: 0 }
    }

    /// Takes in a report of the turn.
    pub(super) fn learn(&mut self, report: &Report) {
        match report {
            Report::Waited(_) => _ = self.since.get_or_insert_with(Instant::now),
            Report::Said { .. } | Report::ToolUsed(_) | Report::Spent(_) => {
                (self.since, self.waits) = (None, 0);
            }
            Report::Helper(_)
            | Report::Todos { .. }
            | Report::Compacted { .. }
            | Report::Remarked { .. }
            | Report::Checked(_)
            | Report::ProjectRead(_) => {}
        }
    }

    /// How long to wait after a turn that failed like this, and until when in words; nothing where
    /// a wait does not help or would be too long.
    pub(super) fn after(&mut self, error: &StepError) -> Option<(Duration, String)> {
        let outage = error.outage?;
        let now = Moment::to_the_millisecond(Timestamp::now());
        let told = outage.retry_at_ms.and_then(|at| Timestamp::from_millisecond(at).ok());
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.waits));
        let pause = told.map_or(doubled, |at| Duration::from_millis(Moment(at).millis_since(now)));
        self.waits += 1;
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() + pause > self.window {
            return None;
        }
        let until = now.0.checked_add(jiff::SignedDuration::try_from(pause).ok()?).ok()?;
        Some((pause, Moment(until).local(now)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use atomic_event::{Outage, StepError};
    use jiff::Timestamp;

    use super::ProviderWait;

    fn refused(retry_after: Option<i64>) -> StepError {
        let at = retry_after.map(|seconds| Timestamp::now().as_millisecond() + seconds * 1_000);
        let outage = Some(Outage { status: Some(429), retry_at_ms: at });
        StepError { outage, ..StepError::new("rate_limited", "limited") }
    }

    #[test]
    fn waits_double_and_end_with_the_window() {
        let mut wait = ProviderWait::within(Duration::from_secs(50));
        let seconds = |wait: &mut ProviderWait, error: &StepError| {
            wait.after(error).map(|(pause, _)| pause.as_secs_f64().round() as u64)
        };
        assert_eq!(seconds(&mut wait, &refused(None)), Some(15));
        assert_eq!(seconds(&mut wait, &refused(Some(40))), Some(40));
        assert_eq!(seconds(&mut wait, &refused(Some(600))), None, "longer than the window");
        assert_eq!(seconds(&mut wait, &refused(None)), None, "the third is 60 s");
        assert_eq!(seconds(&mut wait, &StepError::new("login_needed", "log in")), None);
        let mut never = ProviderWait::within(Duration::ZERO);
        assert_eq!(seconds(&mut never, &refused(Some(1))), None);
    }
}
