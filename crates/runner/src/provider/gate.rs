//! What a run does about the waits: it puts steps off, tries one, and lets the others follow.

use std::time::Duration;

use atomic_event::{BackendId, Event, How, Moment, ProviderBack, ProviderEvent, StepError, StepId};
use atomic_graph::{Effect, Start};
use atomic_workflow::{Action, ContextAction};
use tokio::time::Instant;

use super::{Parked, ProviderWait};
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
    /// that a wait does not help.
    pub(crate) fn refused_turn(
        &self,
        backend: &BackendId,
        step: &StepId,
        error: &StepError,
    ) -> Option<Event> {
        let outage = error.outage.filter(|_| !self.retry_window().is_zero())?;
        let waits = &self.book.providers;
        let (window, now) = (self.retry_window(), self.stage.clock.now());
        let waiting = waits.refused((backend, step), (error, outage), window, now);
        Some(Event::Provider(ProviderEvent::ProviderWaiting(waiting)))
    }

    /// Keeps a step open whose turn was refused. Its program is gone.
    pub(crate) fn park(
        &mut self,
        step: StepId,
        attempt: u32,
        backend: BackendId,
        worked: Duration,
    ) {
        self.crew.parking.probes.retain(|_, probe| *probe != step);
        self.crew.parking.parked.insert(step, Parked { attempt, backend, worked });
        self.hold_limits();
    }

    /// Takes up the steps again that waited when the session was stopped; they are not lost.
    pub(crate) fn park_again(&mut self) {
        let running = self.machine.running();
        for (step, attempt) in running {
            let open = self.book.open.get(&step).is_some_and(|open| open.attempt == attempt);
            if open && let Some(backend) = self.book.providers.of_step(&step).cloned() {
                self.park(step, attempt, backend, Duration::ZERO);
            }
        }
    }

    /// The limits around a step stand still while it waits.
    fn hold_limits(&mut self) {
        let parking = &self.crew.parking;
        self.timers.hold(|place| parking.stops_clock_of(place));
    }

    /// The backend that a step about to start has to wait for. The first step after the wait is
    /// the one that tries.
    pub(crate) fn must_wait(&mut self, start: &Start) -> Option<BackendId> {
        if self.ceilings.exhausted.is_some() {
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
        self.crew.parking.held.push_back((backend, Effect::Start(start)));
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

    /// The end of a step that may be the one that tries. Every end but a stop is an answer.
    pub(crate) fn ended_probe(&mut self, step: &StepId, outcome: &Outcome) -> Option<Event> {
        match outcome {
            Outcome::Finished(_) => self.answered_probe(step),
            Outcome::Failed(error) if error.outage.is_none() => self.answered_probe(step),
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
        let due = self.waiting_backends().into_iter().filter_map(|backend| {
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
        } else if self.crew.live.values().all(Live::only_waits) {
            wait.since
        } else {
            end
        }
    }

    /// The backends of the steps that are put off.
    fn waiting_backends(&self) -> Vec<BackendId> {
        let parked = self.crew.parking.parked.values().map(|parked| &parked.backend);
        let held = self.crew.parking.held.iter().map(|(backend, _)| backend);
        let mut all: Vec<BackendId> = parked.chain(held).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// Lets go on what can; returns why the run has to be paused, where it has to.
    pub(crate) fn tend_providers(&mut self) -> Result<Option<String>, RunError> {
        if self.ceilings.exhausted.is_some() {
            self.refuse_parked()?;
            return Ok(None);
        }
        let now = self.stage.clock.now();
        for backend in self.waiting_backends() {
            let Some(wait) = self.book.providers.get(&backend) else {
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
        let parked = std::mem::take(&mut self.crew.parking.parked);
        let mut events = vec![];
        for (step, Parked { attempt, .. }) in parked {
            if let Some(error) = self.ceilings.refusal(false) {
                events.push(Event::StepFailed { step, attempt, error });
            }
        }
        self.hold_limits();
        let held = std::mem::take(&mut self.crew.parking.held);
        self.record(events, held.into_iter().map(|(_, effect)| effect).collect())
    }

    /// Tries one step of a backend. The step that was refused first goes first.
    fn try_one(&mut self, backend: &BackendId) -> Result<(), RunError> {
        let mut parked = self.crew.parking.parked.iter();
        let parked = parked.find(|(_, parked)| parked.backend == *backend);
        if let Some(step) = parked.map(|(step, _)| step.clone()) {
            self.crew.parking.probes.insert(backend.clone(), step.clone());
            return self.go_on(step);
        }
        let place = self.crew.parking.held.iter().position(|(waits_for, _)| waits_for == backend);
        let held = place.and_then(|place| self.crew.parking.held.remove(place));
        let effect = held.map(|(_, effect)| effect);
        self.record(vec![], effect.into_iter().collect())
    }

    /// Lets everything go on that waited for a backend.
    fn release_all(&mut self, backend: &BackendId) -> Result<(), RunError> {
        let parked = self.crew.parking.parked.iter();
        let parked = parked.filter(|(_, parked)| parked.backend == *backend);
        let steps: Vec<StepId> = parked.map(|(step, _)| step.clone()).collect();
        for step in steps {
            self.go_on(step)?;
        }
        let held = std::mem::take(&mut self.crew.parking.held);
        let (due, held) = held.into_iter().partition(|(waits_for, _)| waits_for == backend);
        self.crew.parking.held = held;
        let due: std::collections::VecDeque<_> = due;
        self.record(vec![], due.into_iter().map(|(_, effect)| effect).collect())
    }

    /// Continues a parked step in its own conversation. It is the same attempt.
    fn go_on(&mut self, step: StepId) -> Result<(), RunError> {
        let Some(parked) = self.crew.parking.parked.remove(&step) else { return Ok(()) };
        self.hold_limits();
        let Parked { attempt, worked, .. } = parked;
        match self.continued(&step, attempt) {
            Ok((job, backend)) => {
                self.perform(Task { step, attempt, delay_ms: 0, job, backend, worked });
                Ok(())
            }
            Err(error) => self.record(vec![Event::StepFailed { step, attempt, error }], vec![]),
        }
    }
}

/// Why a wait is of no use.
fn hopeless(wait: &ProviderWait, end: Moment, now: Moment) -> String {
    let ProviderWait { message, until, .. } = wait;
    let (until, end) = (until.local(now), end.local(now));
    format!("{message}; the next try would be at {until}, but --retry-window ends at {end}")
}
