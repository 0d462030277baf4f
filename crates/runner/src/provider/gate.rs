//! What a run does about the waits: it puts steps off, tries one, and lets the others follow.

use std::borrow::Cow;
use std::time::Duration;

use atomic_event::{BackendId, Event, How, Moment, ProviderBack, ProviderEvent, StepError, StepId};
use atomic_graph::Start;
use atomic_workflow::{Action, ContextAction};
use tokio::time::Instant;

use super::parking::Parked;
use super::{ProviderWait, is_answer_of_provider};
use crate::begin::Begun;
use crate::perform::{Live, Outcome, Task};
use crate::run::{Run, RunError};

/// How long the run sleeps at most before it looks at the clock again. A timer stands still while
/// the machine is suspended; the wait does not.
const LOOK: Duration = Duration::from_secs(10);

impl Run {
    fn retry_window(&self) -> Duration {
        Duration::from_secs(self.settings.program.retry_window_secs)
    }

    /// The event that records a refused turn; none where the user wants no wait, and for errors
    /// that a wait does not help. `before` will be recorded with it.
    pub(crate) fn refused_turn(
        &self,
        backend: &BackendId,
        step: &StepId,
        error: &StepError,
        before: &[Event],
    ) -> Option<Event> {
        let outage = error.outage.filter(|_| !self.retry_window().is_zero())?;
        let (window, now) = (self.retry_window(), self.stage.clock.now());
        let mut waits = Cow::Borrowed(&self.book.providers);
        if before.iter().any(|event| matches!(event, Event::Provider(_))) {
            before.iter().for_each(|event| waits.to_mut().learn(event, now));
        }
        let waiting = waits.refused((backend, step), (error, outage), window, now);
        Some(Event::Provider(ProviderEvent::ProviderWaiting(waiting)))
    }

    /// Keeps a step open whose turn was refused. Its program is gone.
    pub(crate) fn park(&mut self, step: StepId, attempt: u32, backend: BackendId) {
        self.crew.parking.park(step, Parked { attempt, backend });
        self.hold_limits();
    }

    /// Takes up the steps again that waited when the session was stopped; they are not lost.
    pub(crate) fn park_again(&mut self) {
        let running = self.machine.running();
        for (step, attempt) in running {
            let open = self.book.open.get(&step).is_some_and(|open| open.attempt == attempt);
            if open && let Some(backend) = self.book.providers.of_step(&step).cloned() {
                self.park(step, attempt, backend);
            }
        }
    }

    /// What a person is told of the waits that a resumed run keeps to.
    pub(crate) fn notes_about_waits(&self, tries_now: bool) -> Vec<Event> {
        let now = self.stage.clock.now();
        let waits = self.book.providers.waits().filter(|(_, wait)| !tries_now && wait.until > now);
        let told = |(_, wait): (&BackendId, &ProviderWait)| {
            let until = wait.until.local(now);
            let text = format!("{}; waiting until {until}; --now tries at once", wait.message);
            Event::Noted { text }
        };
        waits.map(told).collect()
    }

    /// Lets the limits around steps that wait stand still, and the others run.
    pub(crate) fn hold_limits(&mut self) {
        for place in self.crew.parking.take_changed() {
            if self.crew.parking.stops_clock_of(&place) {
                self.timers.hold(&place);
            } else {
                self.timers.release(&place);
            }
        }
    }

    /// The backend that a step about to start has to wait for. The first step after the wait is
    /// the one that tries.
    pub(crate) fn must_wait(&mut self, start: &Start) -> Option<BackendId> {
        if self.ceilings.exhausted.is_some() || self.retry_window().is_zero() {
            return None;
        }
        let backend = self.prompted(start)?;
        let wait = self.book.providers.get(&backend)?;
        let is_due = wait.until <= self.stage.clock.now();
        let probe = self.crew.parking.probes.get(&backend);
        if probe.is_some_and(|probe| *probe == start.step) {
            return None;
        }
        if probe.is_none() && is_due {
            self.crew.parking.probes.insert(backend, start.step.clone());
            return None;
        }
        Some(backend)
    }

    /// The backend that a step sends a prompt to, where that waits.
    fn prompted(&self, start: &Start) -> Option<BackendId> {
        let waits = &self.book.providers;
        if waits.by_backend.is_empty() {
            return None;
        }
        let action = self.action(&start.step).ok()?;
        if let Action::ContextMonitor(monitor) = &action {
            let (backend, _, full) = self.book.fullest(&start.step)?;
            let compacts = monitor.action == ContextAction::Compact && full >= monitor.threshold;
            return compacts.then(|| backend.clone());
        }
        if !action.is_launch() {
            return None;
        }
        let open = self.book.open.get(&start.step).filter(|_| start.how == How::Continued);
        let open = open.and_then(|open| open.backend.clone());
        Some(open.or_else(|| action.backend().cloned()).unwrap_or_else(|| self.stage.backend.id()))
    }

    /// Puts a step off that must wait.
    pub(crate) fn hold(&mut self, backend: BackendId, start: Start) {
        self.crew.parking.hold(backend, start);
        self.hold_limits();
    }

    /// The provider has answered the step that tries.
    pub(crate) fn answered_probe(&mut self, step: &StepId) -> Option<Event> {
        let mut probes = self.crew.parking.probes.iter();
        let backend = probes.find(|(_, probe)| *probe == step)?.0.clone();
        self.crew.parking.probes.remove(&backend);
        let wait = self.book.providers.get(&backend)?;
        let waited_ms = self.stage.clock.now().millis_since(wait.since);
        Some(Event::Provider(ProviderEvent::ProviderBack(ProviderBack { backend, waited_ms })))
    }

    /// The end of a step that may be the one that tries. A turn that never reached the provider, such as
    /// one whose program is not installed or that hangs, tells nothing; then the next step tries.
    pub(crate) fn ended_probe(&mut self, step: &StepId, outcome: &Outcome) -> Option<Event> {
        match outcome {
            Outcome::Finished(_) => self.answered_probe(step),
            Outcome::Failed(error) if is_answer_of_provider(error) => self.answered_probe(step),
            Outcome::Failed(_)
            | Outcome::Cancelled
            | Outcome::Stopped
            | Outcome::Refused { .. } => {
                self.crew.parking.probes.retain(|_, probe| probe != step);
                None
            }
        }
    }

    /// When there is something to do about the waits.
    pub(crate) fn providers_due(&mut self) -> Option<Instant> {
        if self.crew.parking.is_empty() {
            return None;
        }
        // A step that could not be started tries nothing.
        let live = &self.crew.live;
        self.crew.parking.probes.retain(|_, probe| live.contains_key(probe));
        if self.ceilings.exhausted.is_some() {
            return Some(Instant::now());
        }
        let now = self.stage.clock.now();
        let due = self.crew.parking.backends().into_iter().filter_map(|backend| {
            match self.book.providers.get(&backend) {
                None => Some(Duration::ZERO),
                Some(_) if self.crew.parking.probes.contains_key(&backend) => None,
                Some(wait) => {
                    let left = self.next_look(wait).millis_since(now);
                    Some(Duration::from_millis(left).min(LOOK))
                }
            }
        });
        due.min().map(|left| Instant::now() + left)
    }

    /// When a wait is looked at next: when its time has come, or when it has no hope any more.
    fn next_look(&self, wait: &ProviderWait) -> Moment {
        let end = self.book.providers.end_of(wait, self.retry_window());
        if wait.until <= end {
            wait.until
        } else if self.goes_on_otherwise() {
            end
        } else {
            wait.since
        }
    }

    /// Whether some step that waits will be tried before the run is paused.
    pub(crate) fn has_hope(&self) -> bool {
        let waits = &self.book.providers;
        let hopes = |backend: &BackendId| {
            let wait = waits.get(backend);
            wait.is_none_or(|wait| wait.until <= waits.end_of(wait, self.retry_window()))
        };
        self.crew.parking.backends().iter().any(hopes)
    }

    /// Whether there is something to do besides the waits that have no hope.
    fn goes_on_otherwise(&self) -> bool {
        !self.crew.live.values().all(Live::only_waits)
            || !self.crew.backlog.is_empty()
            || !self.book.unanswered().is_empty()
            || self.timers.run_goes_on(|step| self.book.open.contains_key(step))
            || self.has_hope()
    }

    /// Lets go on what can; returns why the run has to be paused, where it has to.
    pub(crate) fn tend_providers(&mut self) -> Result<Option<String>, RunError> {
        if self.ceilings.exhausted.is_some() {
            self.refuse_parked()?;
            return Ok(None);
        }
        let now = self.stage.clock.now();
        for backend in self.crew.parking.backends() {
            let wait = self.book.providers.get(&backend).filter(|_| !self.retry_window().is_zero());
            let Some(wait) = wait else {
                self.release_all(&backend)?;
                continue;
            };
            if self.crew.parking.probes.contains_key(&backend) || self.next_look(wait) > now {
                continue;
            }
            let end = self.book.providers.end_of(wait, self.retry_window());
            if wait.until > end {
                return Ok(Some(hopeless(wait, end, now)));
            }
            self.try_one(&backend)?;
        }
        Ok(None)
    }

    /// A limit of the whole run was met: what waits has failed.
    fn refuse_parked(&mut self) -> Result<(), RunError> {
        let mut events = vec![];
        for step in self.crew.parking.all_parked() {
            let parked = self.crew.parking.unpark(&step);
            if let Some((parked, error)) = parked.zip(self.ceilings.refusal(false)) {
                events.push(Event::StepFailed { step, attempt: parked.attempt, error });
            }
        }
        let held = self.crew.parking.take_held(None);
        self.hold_limits();
        self.record(events, held)
    }

    /// Tries one step of a backend: the first of those that were refused, else the first of those that
    /// were not begun.
    fn try_one(&mut self, backend: &BackendId) -> Result<(), RunError> {
        let parked = self.crew.parking.parked_of(backend).next().cloned();
        if let Some(step) = parked {
            self.crew.parking.probes.insert(backend.clone(), step.clone());
            return self.go_on(step);
        }
        let effect = self.crew.parking.take_first_held(backend);
        self.hold_limits();
        self.record(vec![], effect.into_iter().collect())
    }

    /// Lets everything go on that waited for a backend.
    fn release_all(&mut self, backend: &BackendId) -> Result<(), RunError> {
        let steps: Vec<StepId> = self.crew.parking.parked_of(backend).cloned().collect();
        for step in steps {
            self.go_on(step)?;
        }
        let held = self.crew.parking.take_held(Some(backend));
        self.hold_limits();
        self.record(vec![], held)
    }

    /// Continues a parked step in its own conversation. It is the same attempt.
    fn go_on(&mut self, step: StepId) -> Result<(), RunError> {
        let Some(Parked { attempt, .. }) = self.crew.parking.unpark(&step) else { return Ok(()) };
        self.hold_limits();
        match self.continued(&step, attempt) {
            Ok(Begun::Job(job, backend)) => {
                self.perform(Task { step, attempt, delay_ms: 0, job, backend });
                Ok(())
            }
            // There is nothing left to summarise.
            Ok(Begun::Over(events)) => self.record(events, vec![]),
            Ok(Begun::Asked(_) | Begun::Asleep(_)) => {
                let message = format!("`{step}` is not the work of an agent any more");
                let error = StepError::new("action", message);
                self.record(vec![Event::StepFailed { step, attempt, error }], vec![])
            }
            Err(error) => self.record(vec![Event::StepFailed { step, attempt, error }], vec![]),
        }
    }
}

/// Why a wait is of no use.
fn hopeless(wait: &ProviderWait, end: Moment, now: Moment) -> String {
    let ProviderWait { message, until, .. } = wait;
    let (until, end) = (until.local(now), end.local(now));
    format!(
        "{message}; the next try would be at {until}, but --retry-window ends at {end}; resume with --now \
         to try at once"
    )
}
