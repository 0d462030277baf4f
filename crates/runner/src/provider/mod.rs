//! Waits for providers. A wait belongs to a backend: none of its steps starts while the wait holds,
//! and afterwards one turn is tried before the others follow.
//!
//! [`Providers`] is what the events say. [`Parking`] is what this process has put off because of it.

mod gate;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use atomic_event::{
    BackendId, Event, Moment, Outage, PayerFound, ProviderEvent, ProviderWaiting, Report,
    StepError, StepId,
};
use atomic_graph::Effect;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The first wait for a provider that does not say how long it is out of order.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The longest such wait. Each is twice as long as the one before.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// How long a run whose agents were never answered waits for a connection: the address may be wrong.
const UNPROVEN: Duration = Duration::from_secs(120);

/// The providers of a session, folded from its events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Providers {
    by_backend: BTreeMap<BackendId, ProviderWait>,
    /// Who pays, for each backend and provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) payers: Vec<PayerFound>,
    /// Whether a model has ever answered in this session.
    has_answered: bool,
    /// When the program of a step first tried again by itself, since its model last answered.
    #[serde(default)]
    trouble: BTreeMap<StepId, Moment>,
}

/// The wait of one backend.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProviderWait {
    /// The first trouble since the provider last answered, or since the run was resumed by a person.
    since: Moment,
    pub(crate) until: Moment,
    /// How many times the wait was begun or extended.
    rounds: u32,
    code: String,
    status: Option<u16>,
    message: String,
    /// The steps whose turns were refused and have not been tried again.
    steps: BTreeSet<StepId>,
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
            }
            Event::Provider(ProviderEvent::PayerFound(found)) => {
                crate::payer::learn(&mut self.payers, found);
            }
            Event::StepReported { step, report, .. } => self.learn_report(step, report, at),
            // The step has a conversation again: its turn is being tried.
            Event::ConversationOpened { step, .. }
            | Event::StepFinished { step, .. }
            | Event::StepFailed { step, .. }
            | Event::StepLost { step, .. }
            | Event::StepCancelled { step, .. } => {
                self.trouble.remove(step);
                for wait in self.by_backend.values_mut() {
                    wait.steps.remove(step);
                }
            }
            Event::SessionForked(_) => self.by_backend.clear(),
            Event::SessionResumed(resumed) if resumed.now => {
                self.by_backend.values_mut().for_each(|wait| wait.until = at);
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
            self.trouble.remove(step);
        } else if let Report::Waited(_) = report {
            self.trouble.entry(step.clone()).or_insert(at);
        }
    }

    fn learn_wait(&mut self, waiting: &ProviderWaiting, at: Moment) {
        let ProviderWaiting { backend, code, status, message, since, until, step } = waiting;
        let is_new_round = self.by_backend.get(backend).is_none_or(|wait| at >= wait.until);
        let wait = self.by_backend.entry(backend.clone()).or_insert_with(|| ProviderWait {
            since: *since,
            until: *until,
            rounds: 0,
            code: String::new(),
            status: None,
            message: String::new(),
            steps: BTreeSet::new(),
        });
        wait.rounds += u32::from(is_new_round);
        wait.until = *until;
        wait.code.clone_from(code);
        wait.status = *status;
        wait.message.clone_from(message);
        wait.steps.insert(step.clone());
    }

    /// A person has resumed a run that was paused: the retry window begins again.
    pub(crate) fn restart_windows(&mut self, at: Moment) {
        self.by_backend.values_mut().for_each(|wait| (wait.since, wait.rounds) = (at, 0));
    }

    pub(crate) fn get(&self, backend: &BackendId) -> Option<&ProviderWait> {
        self.by_backend.get(backend)
    }

    /// The backend that a step with a refused turn waits for.
    pub(crate) fn of_step(&self, step: &StepId) -> Option<&BackendId> {
        self.by_backend.iter().find(|(_, wait)| wait.steps.contains(step)).map(|(id, _)| id)
    }

    /// The event that records a refused turn. `window` is the longest wait.
    fn refused(
        &self,
        (backend, step): (&BackendId, &StepId),
        (error, outage): (&StepError, Outage),
        window: Duration,
        now: Moment,
    ) -> ProviderWaiting {
        let known = self.by_backend.get(backend);
        let told = outage.retry_at_ms.and_then(|at| Timestamp::from_millisecond(at).ok());
        let told = told.map(Moment).filter(|at| *at > now);
        let until = match (told, known.filter(|wait| wait.until > now)) {
            (Some(told), Some(wait)) => told.max(wait.until),
            (Some(told), None) => told,
            // Another step has begun the wait that this one joins.
            (None, Some(wait)) => wait.until,
            (None, None) => after(now, pause_of_round(known.map_or(0, |wait| wait.rounds))),
        };
        let since = known.map(|wait| wait.since).or_else(|| self.trouble.get(step).copied());
        let since = since.unwrap_or(now);
        // Without a time from the provider the last try is at the end of the window, and a person who
        // resumes the run after it need not wait.
        let end = self.end_of_window(since, is_connection(&error.code, outage.status), window);
        let until = match told {
            None if until > end && now < end => end,
            None if until > end => after(now, Duration::from_millis(1)),
            _ => until,
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
        Report::Said { .. } | Report::ToolUsed(_) | Report::Spent(_) | Report::Helper(_) => true,
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

/// Steps that this process does not carry out while their backend waits.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// Steps whose turns were refused, by step. They are open.
    parked: BTreeMap<StepId, Parked>,
    /// Steps that were not begun, in their order.
    held: VecDeque<(BackendId, Effect)>,
    /// The one step of each backend that tries whether the provider answers.
    probes: BTreeMap<BackendId, StepId>,
}

/// A step whose turn was refused.
#[derive(Clone, Debug)]
struct Parked {
    attempt: u32,
    backend: BackendId,
    /// How long it has worked: waiting does not use up the time for a turn.
    worked: Duration,
}

impl Parking {
    pub(crate) fn is_empty(&self) -> bool {
        self.parked.is_empty() && self.held.is_empty()
    }

    /// What was not begun; a snapshot keeps it.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Effect> {
        self.held.iter().map(|(_, effect)| effect)
    }

    pub(crate) fn is_parked(&self, step: &StepId) -> bool {
        self.parked.contains_key(step)
    }

    /// Forgets a step that was stopped.
    pub(crate) fn forget(&mut self, step: &StepId) {
        self.parked.remove(step);
        self.probes.retain(|_, probe| probe != step);
        self.held
            .retain(|(_, effect)| !matches!(effect, Effect::Start(start) if start.step == *step));
    }

    /// Whether a step is inside a place whose time stands still, because a step in it waits.
    pub(crate) fn stops_clock_of(&self, place: &StepId) -> bool {
        self.parked.keys().any(|step| is_inside(step, place))
    }
}

fn is_inside(step: &StepId, place: &StepId) -> bool {
    let rest = step.as_str().strip_prefix(place.as_str());
    rest.is_some_and(|rest| rest.starts_with(['[', '/', '!']))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::pause_of_round;

    #[test]
    fn waits_double_up_to_ten_minutes() {
        let seconds = |rounds| pause_of_round(rounds).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 5, 40].map(seconds), [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(pause_of_round(u32::MAX), Duration::from_secs(600));
    }
}
