//! Times that are set for nodes of a run. They run only while the run does: what was left of one
//! when a run stopped begins anew when it is resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atomic_event::{Event, StepError, StepId, StepResult, Timer};
use atomic_graph::code;
use atomic_workflow::Action;
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
    /// The end of a step that only waits.
    Sleep,
}

/// The times that are set.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_step: BTreeMap<StepId, (TimerKind, Instant)>,
    /// The same, the next one first.
    by_time: BTreeSet<(Instant, StepId)>,
    /// Limits that stand still, with the time that is left.
    held: BTreeMap<StepId, Duration>,
    /// How many there may be before those that nobody waits for any more are taken out.
    most: usize,
}

/// So few are not worth looking through.
const FEW: usize = 64;

impl Timers {
    /// Sets a time; a step has at most one.
    pub(crate) fn set(&mut self, step: StepId, kind: TimerKind, millis: u64) {
        self.clear(&step);
        // A time that no clock can show is never up.
        if let Some(at) = Instant::now().checked_add(Duration::from_millis(millis)) {
            self.by_time.insert((at, step.clone()));
            self.by_step.insert(step, (kind, at));
        }
    }

    pub(crate) fn clear(&mut self, step: &StepId) {
        self.held.remove(step);
        if let Some((_, at)) = self.by_step.remove(step) {
            self.by_time.remove(&(at, step.clone()));
        }
    }

    /// When the next one is up.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Takes out those that nobody waits for any more, once in a while.
    pub(crate) fn weed(&mut self, is_awaited: impl Fn(&StepId, TimerKind) -> bool) {
        if self.by_step.len() <= self.most.max(FEW) {
            return;
        }
        self.by_step.retain(|step, (kind, _)| is_awaited(step, *kind));
        self.held.retain(|step, _| is_awaited(step, TimerKind::Limit));
        self.by_time.retain(|(_, step)| self.by_step.contains_key(step));
        self.most = self.by_step.len() * 2;
    }

    /// Lets the limit of a place stand still, if it has one.
    pub(crate) fn hold(&mut self, place: &StepId) {
        if let Some((TimerKind::Limit, at)) = self.by_step.get(place).copied() {
            self.clear(place);
            self.held.insert(place.clone(), at.saturating_duration_since(Instant::now()));
        }
    }

    /// Lets the limit of a place run on, if it stands still.
    pub(crate) fn release(&mut self, place: &StepId) {
        if let Some(left) = self.held.remove(place) {
            let millis = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
            self.set(place.clone(), TimerKind::Limit, millis);
        }
    }

    /// Whether the run goes on by itself when a time has come: after a rest, or when nobody has
    /// answered one of the `open` steps. The limit of what is around a question does not count:
    /// the time a person takes is not the agents'.
    pub(crate) fn run_goes_on(&self, open: impl Fn(&StepId) -> bool) -> bool {
        self.by_step.iter().any(|(step, (kind, _))| match kind {
            TimerKind::Limit => false,
            TimerKind::Rest | TimerKind::Sleep => true,
            TimerKind::Answer => open(step),
        })
    }

    /// Nobody rests any longer.
    pub(crate) fn end_rests(&mut self) {
        let is_rest = |(_, (kind, _)): &(&StepId, &(TimerKind, Instant))| *kind == TimerKind::Rest;
        let rests: Vec<StepId> =
            self.by_step.iter().filter(is_rest).map(|(step, _)| step.clone()).collect();
        for step in rests {
            self.set(step, TimerKind::Rest, 0);
        }
    }

    fn take_due(&mut self) -> Vec<(StepId, TimerKind)> {
        let now = Instant::now();
        let mut due = vec![];
        while self.next().is_some_and(|at| at <= now) {
            let Some((_, step)) = self.by_time.pop_first() else { break };
            if let Some((kind, _)) = self.by_step.remove(&step) {
                due.push((step, kind));
            }
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
                TimerKind::Sleep => {
                    let Some(attempt) = self.book.open.get(&step).map(|open| open.attempt) else {
                        continue;
                    };
                    events.push(match self.ceilings.refusal(false) {
                        Some(error) => Event::StepFailed { step, attempt, error },
                        None => {
                            let (result, commit) = (StepResult::default(), None);
                            Event::StepFinished { step, attempt, result, commit }
                        }
                    });
                }
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

    /// Lets a step wait for a point in time, which may be past.
    pub(crate) fn sleep(&mut self, step: StepId, until: i64) {
        let now = self.stage.clock.now().0.as_millisecond();
        let millis = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
        self.timers.set(step, TimerKind::Sleep, millis);
    }

    /// Until when a step that only waits does so.
    pub(crate) fn asleep(&self, step: &StepId) -> Option<i64> {
        if let Ok(Action::Sleep { until }) = self.action(step) { Some(until) } else { None }
    }

    /// Sets the times of a run that is taken up again.
    pub(crate) fn set_timers_again(&mut self) {
        for (step, timeout_ms) in self.machine.limited() {
            let stands_still = self.crew.parking.stops_clock_of(&step);
            self.timers.set(step.clone(), TimerKind::Limit, timeout_ms);
            if stands_still {
                self.timers.hold(&step);
            }
        }
        for step in self.machine.resting() {
            self.timers.set(step, TimerKind::Rest, 0);
        }
        for (step, _) in self.machine.running() {
            if let Some(until) = self.asleep(&step) {
                self.sleep(step, until);
                continue;
            }
            let limit = self.machine.node(&step).and_then(|node| node.timeout_ms);
            if let Some(timeout_ms) = limit.filter(|_| self.is_ask_node(&step)) {
                self.timers.set(step, TimerKind::Answer, timeout_ms);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use atomic_event::StepId;

    use super::{FEW, TimerKind, Timers};

    #[test]
    fn what_nobody_waits_for_is_not_kept_for_ever() {
        let mut timers = Timers::default();
        for round in 0..10_000_u32 {
            let step = |round: u32| StepId::new(format!("again#1[{round}]/sub#1"));
            timers.set(step(round), TimerKind::Limit, 3_600_000);
            timers.weed(|awaited, _| *awaited == step(round));
            assert!(timers.by_step.len() <= FEW + 1);
            assert_eq!(timers.by_step.len(), timers.by_time.len());
        }
    }

    #[test]
    fn the_next_is_the_earliest_and_a_step_has_one() {
        let mut timers = Timers::default();
        timers.set(StepId::new("b#1"), TimerKind::Rest, 0);
        timers.set(StepId::new("a#1"), TimerKind::Limit, 3_600_000);
        timers.set(StepId::new("c#1"), TimerKind::Limit, 0);
        timers.set(StepId::new("c#1"), TimerKind::Limit, 3_600_000);
        assert_eq!(timers.take_due(), [(StepId::new("b#1"), TimerKind::Rest)]);
        timers.set(StepId::new("d#1"), TimerKind::Rest, 3_600_000);
        timers.end_rests();
        assert_eq!(timers.take_due(), [(StepId::new("d#1"), TimerKind::Rest)]);
        timers.clear(&StepId::new("a#1"));
        timers.clear(&StepId::new("c#1"));
        assert_eq!(timers.next(), None);
    }
}
