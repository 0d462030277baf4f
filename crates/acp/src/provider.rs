//! Waits for providers in words.

use std::collections::BTreeMap;

use atomic_event::{BackendId, Moment, ProviderEvent, ProviderWaiting};

/// The waits that were told, so that one of many steps is told of once.
#[derive(Debug, Default)]
pub struct ProviderWaits(BTreeMap<BackendId, Moment>);

impl ProviderWaits {
    /// The line about the beginning or the end of a wait; none for a further step of the same wait.
    pub fn line(&mut self, event: &ProviderEvent) -> Option<String> {
        match event {
            ProviderEvent::ProviderWaiting(waiting) => {
                let ProviderWaiting { backend, message, since, until, .. } = waiting;
                let before = self.0.insert(backend.clone(), *until);
                // The steps of a fan are refused within moments of each other.
                let apart =
                    |before: Moment| until.millis_since(before).max(before.millis_since(*until));
                let is_known = before.is_some_and(|before| apart(before) < 1_000);
                let until = until.local(*since);
                (!is_known).then(|| format!("{message}; waiting until {until}"))
            }
            ProviderEvent::PayerFound(found) => Some(found.to_string()),
            ProviderEvent::ProviderBack(back) => {
                self.0.remove(&back.backend);
                let waited = rounded(back.waited_ms);
                Some(format!("{} answers again after {waited}", back.backend))
            }
        }
    }

    /// The backends that wait, with the time until which they do.
    pub fn open(&self) -> impl Iterator<Item = (&BackendId, &Moment)> {
        self.0.iter()
    }
}

fn rounded(millis: u64) -> String {
    let seconds = millis.div_ceil(1_000);
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use atomic_event::{Moment, ProviderBack, ProviderEvent, ProviderWaiting, StepId};

    use super::ProviderWaits;

    #[test]
    fn a_wait_is_told_once_however_many_steps_wait() {
        let at = |time: &str| Moment(format!("2026-11-15T{time}Z").parse().unwrap());
        let waiting = |until: &str, step: &str| {
            ProviderEvent::ProviderWaiting(ProviderWaiting {
                backend: "claude".into(),
                code: "rate_limited".to_owned(),
                status: Some(429),
                message: "claude: the provider limits the rate of requests".to_owned(),
                since: at("10:00:00"),
                until: at(until),
                step: StepId::new(step),
            })
        };
        let mut waits = ProviderWaits::default();
        let first = waits.line(&waiting("10:01:10", "a#1")).unwrap();
        assert!(first.contains("; waiting until "), "{first}");
        assert_eq!(waits.line(&waiting("10:01:10.200", "b#1")), None);
        assert!(waits.line(&waiting("10:05:00", "a#1")).is_some(), "another time is told");
        assert_eq!(waits.open().count(), 1);
        let back = ProviderBack { backend: "claude".into(), waited_ms: 70_001 };
        let back = waits.line(&ProviderEvent::ProviderBack(back)).unwrap();
        assert_eq!(back, "claude answers again after 1 min 11 s");
        assert_eq!(waits.open().count(), 0);
    }
}
