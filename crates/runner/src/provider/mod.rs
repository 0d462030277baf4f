//! Waits for providers. A wait belongs to a backend: none of its steps starts while the wait holds,
//! and afterwards one turn is tried before the others follow.
//!
//! [`Providers`] is what the events say. [`Parking`] is what this process has put off because of it.

mod gate;
mod parking;

use std::collections::BTreeMap;
use std::time::Duration;

use atomic_event::{
    BackendId, Event, Moment, Outage, PayerFound, ProviderEvent, ProviderWaiting, Report,
    StepError, StepId,
};
use jiff::{SignedDuration, Timestamp};
pub(crate) use parking::Parking;
use serde::{Deserialize, Serialize};

/// The first wait for a provider that does not say how long it is out of order.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The longest such wait. Each is twice as long as the one before.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The part of such a wait that is kept at least where the provider tells an earlier time.
const SHORTEST_PART: u32 = 30;
/// How long a run whose agents were never answered waits for a connection: the address may be wrong.
const UNPROVEN: Duration = Duration::from_secs(120);

/// The providers of a session, folded from its events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Providers {
    /// The waits that hold.
    by_backend: BTreeMap<BackendId, ProviderWait>,
    /// The trouble since a turn was last answered, whether a wait holds or not.
    #[serde(default)]
    trouble: BTreeMap<BackendId, Trouble>,
    /// The steps whose turns were refused and have not been tried again.
    #[serde(default)]
    refused: BTreeMap<StepId, BackendId>,
    /// The steps that have a conversation.
    #[serde(default)]
    turns: BTreeMap<StepId, BackendId>,
    /// Who pays, for each backend and provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) payers: Vec<PayerFound>,
    /// Whether a model has ever answered in this session.
    has_answered: bool,
    /// When the program of a step first tried again by itself, since its model last answered.
    #[serde(default)]
    retries: BTreeMap<StepId, Moment>,
}

/// The wait of one backend.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProviderWait {
    /// When the retry window began.
    since: Moment,
    pub(crate) until: Moment,
    code: String,
    status: Option<u16>,
    pub(crate) message: String,
}

/// The trouble of one backend.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Trouble {
    /// The first refusal, or when a person has resumed the run.
    since: Moment,
    /// How many waits were begun or extended.
    rounds: u32,
}

/// Whether a provider cannot be reached, as opposed to refusing requests.
fn is_connection(code: &str, status: Option<u16>) -> bool {
    status.is_none() && code == "unavailable"
}

impl Providers {
    pub(crate) fn learn(&mut self, event: &Event, at: Moment) {
        match event {
            Event::Provider(ProviderEvent::ProviderWaiting(waiting)) => {
                self.learn_wait(waiting, at);
            }
            Event::Provider(ProviderEvent::ProviderBack(back)) => {
                self.by_backend.remove(&back.backend);
                self.has_answered = true;
            }
            Event::Provider(ProviderEvent::PayerFound(found)) => {
                crate::payer::learn(&mut self.payers, found);
            }
            Event::StepReported { step, report, .. } => self.learn_report(step, report, at),
            // The turn is being tried again.
            Event::ConversationOpened { step, backend, .. } => {
                self.retries.remove(step);
                self.refused.remove(step);
                self.turns.insert(step.clone(), backend.clone());
            }
            Event::StepFinished { step, .. } => {
                // A whole turn was answered: the next trouble has a window of its own.
                if let Some(backend) = self.end_turn(step) {
                    self.trouble.remove(&backend);
                }
            }
            Event::StepFailed { step, .. }
            | Event::StepLost { step, .. }
            | Event::StepCancelled { step, .. } => _ = self.end_turn(step),
            Event::SessionForked(_) => {
                self.by_backend.clear();
                self.trouble.clear();
                self.refused.clear();
            }
            Event::SessionResumed(resumed) if resumed.now => {
                self.restart_windows(at);
                let now = Moment::to_the_millisecond(at.0);
                self.by_backend.values_mut().for_each(|wait| wait.until = now);
            }
            Event::SessionCreated(_)
            | Event::SessionResumed(_)
            | Event::StepStarted(_)
            | Event::TimerFired { .. }
            | Event::FunctionEvaluated { .. }
            | Event::BranchChosen { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered(_)
            | Event::AnswerDelivered { .. }
            | Event::Instructed { .. }
            | Event::StatePatched { .. }
            | Event::LaunchesCertified(_)
            | Event::Noted { .. }
            | Event::RunFinished { .. }
            | Event::RunStopped(_)
            | Event::Unknown(_) => {}
        }
    }

    fn learn_report(&mut self, step: &StepId, report: &Report, at: Moment) {
        if is_answer(report) {
            self.has_answered = true;
            self.retries.remove(step);
        } else if let Report::Waited(_) = report {
            self.retries.entry(step.clone()).or_insert(at);
        }
    }

    /// Forgets the turn of a step; returns the backend that had it.
    fn end_turn(&mut self, step: &StepId) -> Option<BackendId> {
        self.retries.remove(step);
        self.refused.remove(step);
        self.turns.remove(step)
    }

    fn learn_wait(&mut self, waiting: &ProviderWaiting, at: Moment) {
        let ProviderWaiting { backend, code, status, message, since, until, step } = waiting;
        let is_new_round = self.by_backend.get(backend).is_none_or(|wait| at >= wait.until);
        let fresh = Trouble { since: *since, rounds: 0 };
        let trouble = self.trouble.entry(backend.clone()).or_insert(fresh);
        trouble.rounds += u32::from(is_new_round);
        let (code, status, message) = (code.clone(), *status, message.clone());
        let wait = ProviderWait { since: trouble.since, until: *until, code, status, message };
        self.by_backend.insert(backend.clone(), wait);
        self.refused.insert(step.clone(), backend.clone());
    }

    /// A person has resumed a run that was paused, or wants it to go on: the retry windows begin again.
    pub(crate) fn restart_windows(&mut self, at: Moment) {
        let since = Moment::to_the_millisecond(at.0);
        self.by_backend.values_mut().for_each(|wait| wait.since = since);
        self.trouble.values_mut().for_each(|trouble| *trouble = Trouble { since, rounds: 0 });
    }

    pub(crate) fn get(&self, backend: &BackendId) -> Option<&ProviderWait> {
        self.by_backend.get(backend)
    }

    /// The waits that hold.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (&BackendId, &ProviderWait)> {
        self.by_backend.iter()
    }

    /// The backend that has refused the turn of a step, which was not tried again since.
    pub(crate) fn of_step(&self, step: &StepId) -> Option<&BackendId> {
        self.refused.get(step)
    }

    /// The event that records a refused turn. `window` is the longest wait.
    fn refused(
        &self,
        (backend, step): (&BackendId, &StepId),
        (error, outage): (&StepError, Outage),
        window: Duration,
        now: Moment,
    ) -> ProviderWaiting {
        let trouble = self.trouble.get(backend);
        let pause = pause_of_round(trouble.map_or(0, |trouble| trouble.rounds));
        let told = outage.retry_at_ms.and_then(|at| Timestamp::from_millisecond(at).ok());
        let told = told.map(Moment).filter(|at| *at > now);
        // A provider that always says `in one second` is not asked every second for hours.
        let told = told.map(|at| at.max(after(now, pause / SHORTEST_PART)));
        let since = trouble.map(|trouble| trouble.since);
        let since = since.or_else(|| self.retries.get(step).copied()).unwrap_or(now);
        let known = self.by_backend.get(backend).filter(|wait| wait.until > now);
        let until = match (told, known) {
            (Some(told), Some(wait)) => told.max(wait.until),
            (Some(told), None) => told,
            // Another step has begun the wait that this one joins.
            (None, Some(wait)) => wait.until,
            // The last try is at the end of the window, and a person who resumes the run after it need
            // not wait.
            (None, None) => {
                let is_connection = is_connection(&error.code, outage.status);
                let end = self.end_of_window(since, is_connection, window);
                let until = after(now, pause);
                let least = after(now, Duration::from_millis(1));
                if until > end { end.max(least) } else { until }
            }
        };
        ProviderWaiting {
            backend: backend.clone(),
            code: error.code.clone(),
            status: outage.status,
            message: error.message.clone(),
            since,
            until,
            step: step.clone(),
        }
    }

    /// When the retry window ends that began with trouble at `since`.
    fn end_of_window(&self, since: Moment, is_connection: bool, window: Duration) -> Moment {
        let unproven = is_connection && !self.has_answered;
        after(since, if unproven { window.min(UNPROVEN) } else { window })
    }

    /// When the retry window of a wait ends.
    fn end_of(&self, wait: &ProviderWait, window: Duration) -> Moment {
        self.end_of_window(wait.since, is_connection(&wait.code, wait.status), window)
    }
}

/// Whether a report shows that a model has answered.
pub(crate) fn is_answer(report: &Report) -> bool {
    match report {
        Report::Said { .. } | Report::ToolUsed(_) | Report::Helper(_) => true,
        // Claude states a total also for a turn that was refused.
        Report::Spent(usage) => !usage.is_total,
        Report::Todos { .. }
        | Report::Compacted { .. }
        | Report::Waited(_)
        | Report::Remarked { .. }
        | Report::Checked(_)
        | Report::ProjectRead(_) => false,
    }
}

fn after(moment: Moment, time: Duration) -> Moment {
    let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    let sum = moment.0.checked_add(time);
    Moment::to_the_millisecond(sum.unwrap_or(Timestamp::MAX))
}

/// The wait after so many others in a row.
fn pause_of_round(rounds: u32) -> Duration {
    FIRST_WAIT.saturating_mul(2_u32.saturating_pow(rounds)).min(LONGEST_WAIT)
}

/// Whether an error shows that the provider has answered a request.
pub(crate) fn is_answer_of_provider(error: &StepError) -> bool {
    const CODES: [&str; 8] = [
        "context_overflow",
        "login_needed",
        "model_unknown",
        "no_report",
        "quota",
        "refused",
        "rejected",
        "silent",
    ];
    error.outage.is_none() && CODES.contains(&error.code.as_str())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use atomic_event::{Event, Moment, Outage, ProviderBack, ProviderEvent, StepError, StepId};

    use super::{Providers, pause_of_round};

    const WINDOW: Duration = Duration::from_secs(600);

    fn at(seconds: i64) -> Moment {
        Moment(jiff::Timestamp::from_second(1_800_000_000 + seconds).unwrap())
    }

    /// What is recorded for a refused turn, after it was learned.
    fn refuse(waits: &mut Providers, step: &str, now: i64, retry_at: Option<i64>) -> Moment {
        let retry_at_ms = retry_at.map(|seconds| at(seconds).0.as_millisecond());
        let outage = Outage { status: Some(429), retry_at_ms };
        let error = StepError::new("rate_limited", "limited");
        let (backend, step) = ("claude".into(), StepId::new(step));
        let waiting = waits.refused((&backend, &step), (&error, outage), WINDOW, at(now));
        let until = waiting.until;
        waits.learn(&Event::Provider(ProviderEvent::ProviderWaiting(waiting)), at(now));
        until
    }

    #[test]
    fn a_time_that_the_provider_told_is_not_shortened() {
        let mut waits = Providers::default();
        assert_eq!(refuse(&mut waits, "a#1", 0, Some(36_000)), at(36_000));
        assert_eq!(refuse(&mut waits, "b#1", 2, None), at(36_000), "another step joins");
        assert_eq!(refuse(&mut waits, "c#1", 3, Some(50)), at(36_000));
    }

    #[test]
    fn refused_steps_are_known_until_they_are_tried_again() {
        let mut waits = Providers::default();
        refuse(&mut waits, "a#1", 0, None);
        refuse(&mut waits, "b#1", 0, None);
        let back = ProviderBack { backend: "claude".into(), waited_ms: 1 };
        waits.learn(&Event::Provider(ProviderEvent::ProviderBack(back)), at(31));
        // A kill now must not lose them.
        assert!(waits.of_step(&StepId::new("b#1")).is_some());
        assert!(waits.waits().next().is_none());
    }

    #[test]
    fn a_provider_that_always_tells_a_second_is_asked_less_and_less() {
        let (mut waits, mut now, mut tries) = (Providers::default(), 0, 0);
        while now < 300 {
            let until = refuse(&mut waits, "a#1", now, Some(now + 1));
            now = until.0.as_second() - at(0).0.as_second();
            tries += 1;
        }
        assert_eq!(tries, 19);
    }

    #[test]
    fn waits_double_up_to_ten_minutes() {
        let seconds = |rounds| pause_of_round(rounds).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 5, 40].map(seconds), [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(pause_of_round(u32::MAX), Duration::from_secs(600));
    }
}
