//! Steps that this process does not carry out while their backend waits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use atomic_event::{BackendId, StepId};
use atomic_graph::{Effect, Start};

/// The steps that are put off, and those that try whether their provider answers.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// Steps whose turns were refused, by step. They are open.
    parked: BTreeMap<StepId, Parked>,
    /// Steps that were not begun, in their order.
    held: VecDeque<(BackendId, Effect)>,
    held_steps: BTreeSet<StepId>,
    /// The one step of each backend that tries whether the provider answers.
    pub(super) probes: BTreeMap<BackendId, StepId>,
    /// How many of these steps wait for each backend.
    backends: BTreeMap<BackendId, usize>,
    /// How many of these steps are inside each place.
    inside: BTreeMap<StepId, usize>,
    /// The places that have to be looked at again.
    changed: Vec<StepId>,
}

/// A step whose turn was refused.
#[derive(Clone, Debug)]
pub(super) struct Parked {
    pub(super) attempt: u32,
    pub(super) backend: BackendId,
}

impl Parking {
    pub(crate) fn is_empty(&self) -> bool {
        self.backends.is_empty()
    }

    /// The backends that steps wait for.
    pub(super) fn backends(&self) -> Vec<BackendId> {
        self.backends.keys().cloned().collect()
    }

    /// What was not begun; a snapshot keeps it.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Effect> {
        self.held.iter().map(|(_, effect)| effect)
    }

    pub(crate) fn is_parked(&self, step: &StepId) -> bool {
        self.parked.contains_key(step)
    }

    /// Keeps a step whose turn was refused.
    pub(super) fn park(&mut self, step: StepId, parked: Parked) {
        self.probes.retain(|_, probe| *probe != step);
        self.add(&step, &parked.backend);
        self.parked.insert(step, parked);
    }

    /// Takes a step out whose turn was refused.
    pub(super) fn unpark(&mut self, step: &StepId) -> Option<Parked> {
        let parked = self.parked.remove(step)?;
        self.take_off(step, &parked.backend);
        Some(parked)
    }

    /// Keeps a step that is not begun.
    pub(super) fn hold(&mut self, backend: BackendId, start: Start) {
        self.add(&start.step, &backend);
        self.held_steps.insert(start.step.clone());
        self.held.push_back((backend, Effect::Start(start)));
    }

    /// Takes out the first step of a backend that is not begun.
    pub(super) fn take_first_held(&mut self, backend: &BackendId) -> Option<Effect> {
        let place = self.held.iter().position(|(waits_for, _)| waits_for == backend)?;
        let (_, effect) = self.held.remove(place)?;
        self.note_taken(&effect, backend);
        Some(effect)
    }

    /// Takes out every step that is not begun, of one backend or of all.
    pub(super) fn take_held(&mut self, of: Option<&BackendId>) -> Vec<Effect> {
        let all = std::mem::take(&mut self.held);
        let mut taken = vec![];
        for (backend, effect) in all {
            if of.is_none_or(|of| *of == backend) {
                self.note_taken(&effect, &backend);
                taken.push(effect);
            } else {
                self.held.push_back((backend, effect));
            }
        }
        taken
    }

    /// The steps of a backend whose turns were refused.
    pub(super) fn parked_of(&self, backend: &BackendId) -> impl Iterator<Item = &StepId> {
        let parked = self.parked.iter();
        parked.filter(move |(_, parked)| parked.backend == *backend).map(|(step, _)| step)
    }

    /// All steps whose turns were refused.
    pub(super) fn all_parked(&self) -> Vec<StepId> {
        self.parked.keys().cloned().collect()
    }

    /// Forgets a step that was stopped.
    pub(crate) fn forget(&mut self, step: &StepId) {
        self.probes.retain(|_, probe| probe != step);
        self.unpark(step);
        if self.held_steps.contains(step) {
            let is_it = |(_, effect): &(BackendId, Effect)| step_of(effect) == Some(step);
            if let Some(place) = self.held.iter().position(is_it)
                && let Some((backend, effect)) = self.held.remove(place)
            {
                self.note_taken(&effect, &backend);
            }
        }
    }

    /// Whether the time of a place stands still, because a step inside of it waits.
    pub(crate) fn stops_clock_of(&self, place: &StepId) -> bool {
        self.inside.contains_key(place)
    }

    /// The places whose time may have to be stopped or to run on.
    pub(super) fn take_changed(&mut self) -> Vec<StepId> {
        std::mem::take(&mut self.changed)
    }

    fn note_taken(&mut self, effect: &Effect, backend: &BackendId) {
        if let Some(step) = step_of(effect).cloned() {
            self.held_steps.remove(&step);
            self.take_off(&step, backend);
        }
    }

    fn add(&mut self, step: &StepId, backend: &BackendId) {
        *self.backends.entry(backend.clone()).or_default() += 1;
        for place in places_around(step) {
            let count = self.inside.entry(place.clone()).or_default();
            *count += 1;
            if *count == 1 {
                self.changed.push(place);
            }
        }
    }

    fn take_off(&mut self, step: &StepId, backend: &BackendId) {
        if is_last(&mut self.backends, backend) {
            self.backends.remove(backend);
        }
        for place in places_around(step) {
            if is_last(&mut self.inside, &place) {
                self.inside.remove(&place);
                self.changed.push(place);
            }
        }
    }
}

/// Takes one off a count; whether none is left.
fn is_last<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) -> bool {
    counts.get_mut(key).is_some_and(|count| {
        *count = count.saturating_sub(1);
        *count == 0
    })
}

fn step_of(effect: &Effect) -> Option<&StepId> {
    if let Effect::Start(start) = effect { Some(&start.step) } else { None }
}

/// The places that a step is inside of: `a#1` and `a#1[x]` for `a#1[x]/b#1`.
fn places_around(step: &StepId) -> impl Iterator<Item = StepId> {
    let text = step.as_str();
    text.match_indices(['[', '/', '!']).map(|(end, _)| StepId::new(&text[..end]))
}

#[cfg(test)]
mod tests {
    use atomic_event::{How, StepId};
    use atomic_graph::Start;

    use super::{Parked, Parking};

    fn parked() -> Parked {
        Parked { attempt: 1, backend: "claude".into() }
    }

    fn start(step: &str) -> Start {
        Start { step: StepId::new(step), attempt: 1, how: How::First, delay_ms: 0 }
    }

    #[test]
    fn the_time_of_a_place_stands_still_as_long_as_a_step_inside_of_it_waits() {
        let mut parking = Parking::default();
        let stands = |parking: &Parking, place: &str| parking.stops_clock_of(&StepId::new(place));
        parking.park(StepId::new("fan#1[x]/a#1"), parked());
        parking.hold("claude".into(), start("fan#1[y]/b#1"));
        for (place, expected) in [
            ("fan#1", true),
            ("fan#1[x]", true),
            ("fan#1[y]", true),
            ("fan", false),
            ("fan#1[x]/a#1", false),
        ] {
            assert_eq!(stands(&parking, place), expected, "{place}");
        }
        assert!(parking.unpark(&StepId::new("fan#1[x]/a#1")).is_some());
        assert!(stands(&parking, "fan#1") && !stands(&parking, "fan#1[x]"));
        parking.forget(&StepId::new("fan#1[y]/b#1"));
        assert!(!stands(&parking, "fan#1") && parking.is_empty());
        assert_eq!(parking.held().count(), 0);
    }

    #[test]
    fn steps_are_taken_out_by_their_backend() {
        let mut parking = Parking::default();
        for step in ["a#1", "b#1", "c#1"] {
            parking.hold(if step == "b#1" { "copilot" } else { "claude" }.into(), start(step));
        }
        assert_eq!(parking.take_held(Some(&"claude".into())).len(), 2);
        assert_eq!(parking.backends(), ["copilot".into()]);
        assert!(parking.take_first_held(&"claude".into()).is_none());
        assert_eq!(parking.take_held(None).len(), 1);
        assert!(parking.is_empty());
    }
}
