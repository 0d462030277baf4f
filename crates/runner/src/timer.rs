//! Times that are set for nodes of a run. They run only while the run does: what was left of one
//! when a run stopped begins anew when it is resumed.

use std::collections::BTreeMap;
use std::time::Duration;

use atomic_event::{Event, StepError, StepId, Timer};
use atomic_graph::code;
use tokio::time::Instant;

use crate::run::{Run, RunError};

/// A length of time as people are told of it.
pub(crate) fn told(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs_f64())
    }
}

/// What a time is set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    /// The longest time for what is inside a node.
    Limit,
    /// The wait before its next attempt.
    Rest,
    /// The longest time to wait for an answer.
    Answer,
}

/// The times that are set.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeMap<StepId, (TimerKind, Instant)>);

impl Timers {
    /// Sets a time; a step has at most one.
    pub(crate) fn set(&mut self, step: StepId, kind: TimerKind, millis: u64) {
        // A time that no clock can show is never up.
        if let Some(at) = Instant::now().checked_add(Duration::from_millis(millis)) {
            self.0.insert(step, (kind, at));
        }
    }

    pub(crate) fn clear(&mut self, step: &StepId) {
        self.0.remove(step);
    }

    /// When the next one is up.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.values().map(|(_, at)| *at).min()
    }

    /// Whether the run goes on by itself when a time has come: after a rest, or when nobody has
    /// answered one of the `open` steps. The limit of what is around a question does not count:
    /// the time a person takes is not the agents'.
    pub(crate) fn run_goes_on(&self, open: impl Fn(&StepId) -> bool) -> bool {
        self.0.iter().any(|(step, (kind, _))| match kind {
            TimerKind::Limit => false,
            TimerKind::Rest => true,
            TimerKind::Answer => open(step),
        })
    }

    /// Nobody rests any longer.
    pub(crate) fn end_rests(&mut self) {
        let now = Instant::now();
        let rests = self.0.values_mut().filter(|(kind, _)| *kind == TimerKind::Rest);
        rests.for_each(|(_, at)| *at = now);
    }

    fn take_due(&mut self) -> Vec<(StepId, TimerKind)> {
        let now = Instant::now();
        let due = |(_, at): &(TimerKind, Instant)| *at <= now;
        let due: Vec<_> = self.0.iter().filter(|(_, timer)| due(timer)).collect();
        let due: Vec<_> = due.into_iter().map(|(step, (kind, _))| (step.clone(), *kind)).collect();
        for (step, _) in &due {
            self.0.remove(step);
        }
        due
    }
}

impl Run {
    /// Records the times that are up.
    pub(crate) fn fire_timers(&mut self) -> Result<(), RunError> {
        let mut events = vec![];
        for (step, kind) in self.timers.take_due() {
            match kind {
                TimerKind::Limit => events.push(Event::TimerFired { step, timer: Timer::Limit }),
                TimerKind::Rest => events.push(Event::TimerFired { step, timer: Timer::Rest }),
                TimerKind::Answer => {
                    let Some(attempt) = self.book.open.get(&step).map(|open| open.attempt) else {
                        continue;
                    };
                    let message = "nobody answered in the time that was set";
                    let too_late = || StepError::new(code::TIMEOUT, message);
                    let error = self.ceilings.refusal(false).unwrap_or_else(too_late);
                    events.push(Event::StepFailed { step, attempt, error });
                }
            }
        }
        self.record(events, vec![])
    }

    /// Sets the times of a run that is taken up again.
    pub(crate) fn set_timers_again(&mut self) {
        for (step, timeout_ms) in self.machine.limited() {
            self.timers.set(step, TimerKind::Limit, timeout_ms);
        }
        for step in self.machine.resting() {
            self.timers.set(step, TimerKind::Rest, 0);
        }
        for (step, _) in self.machine.running() {
            let limit = self.machine.node(&step).and_then(|node| node.timeout_ms);
            if let Some(timeout_ms) = limit.filter(|_| self.is_ask_node(&step)) {
                self.timers.set(step, TimerKind::Answer, timeout_ms);
            }
        }
    }
}
