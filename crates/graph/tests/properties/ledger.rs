//! What was started and what came back, and what must be true of it at any time.

use std::collections::{BTreeMap, BTreeSet};

use atomic_graph::{Count, Effect, Graph, How, Input, Kind, Machine, StepId, StepResult};

/// The books of a run, kept from the outside.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Steps that have not come back, with their attempts.
    pub(crate) running: BTreeMap<StepId, u32>,
    /// Those of them that were told to stop.
    pub(crate) cancelling: BTreeSet<StepId>,
    /// The newest attempt at every step.
    attempts: BTreeMap<StepId, u32>,
    pub(crate) finished: BTreeMap<StepId, StepResult>,
    /// Visits that were heard of, by the graph they are in.
    pub(crate) seen: BTreeSet<(String, String)>,
    /// Graphs in which something was told to stop.
    stopped: BTreeSet<String>,
    pub(crate) launches: u64,
    /// Those that are due to losses, or came after the run had failed.
    pub(crate) relaunches: u64,
    pub(crate) most_at_once: u64,
    pub(crate) revived: u32,
    workers: BTreeMap<String, u64>,
    max_launches: Option<u64>,
    max_concurrency: Option<u32>,
}

/// One node on the way to a step: the graph it is in, the visit, the attempt, what was entered.
pub(crate) struct Stop<'s> {
    pub(crate) scope: &'s str,
    pub(crate) visit: &'s str,
    pub(crate) attempt: &'s str,
    pub(crate) inside: Option<&'s str>,
}

/// The nodes on the way to a step, its own last.
pub(crate) fn stops(step: &StepId) -> Vec<Stop<'_>> {
    let text = step.as_str();
    let mut stops = vec![];
    let mut begin = 0;
    for part in text.split('/') {
        let scope = text[..begin].trim_end_matches('/');
        begin += part.len() + 1;
        let (rest, inside) = match part.strip_suffix(']').and_then(|part| part.split_once('[')) {
            Some((rest, inside)) => (rest, Some(inside)),
            None => (part, None),
        };
        let (visit, attempt) = rest.split_once('!').unwrap_or((rest, "1"));
        stops.push(Stop { scope, visit, attempt, inside });
    }
    stops
}

/// The name of a visit without its number.
pub(crate) fn node_of(visit: &str) -> &str {
    visit.rsplit_once('#').unwrap().0
}

/// Whether `step` is inside the visit `region`.
pub(crate) fn is_inside(step: &StepId, region: &StepId) -> bool {
    let rest = step.as_str().strip_prefix(region.as_str());
    rest.is_some_and(|rest| rest.starts_with(['/', '[', '!']))
}

/// The step an effect is about.
pub(crate) fn about(effect: &Effect) -> Option<&StepId> {
    match effect {
        Effect::Start(start) => Some(&start.step),
        Effect::Cancel { step, .. }
        | Effect::Choose { step, .. }
        | Effect::Evaluate { step, .. }
        | Effect::Limit { step, .. }
        | Effect::Rest { step, .. }
        | Effect::Ask { step, .. }
        | Effect::AskLost { step, .. } => Some(step),
        Effect::Finish(_) => None,
    }
}

impl Ledger {
    pub(crate) fn new(graph: &Graph, max_launches: Option<u64>) -> Self {
        let mut workers = BTreeMap::new();
        count_workers(graph, &mut workers);
        let max_concurrency = graph.max_concurrency;
        Self { workers, max_launches, max_concurrency, ..Self::default() }
    }

    /// Something happened.
    pub(crate) fn took(&mut self, input: &Input) {
        match input {
            Input::Finished { step, result, .. } => {
                self.gone(step);
                self.finished.insert(step.clone(), result.clone());
            }
            Input::Failed { step, .. }
            | Input::Lost { step, .. }
            | Input::Cancelled { step, .. } => {
                self.gone(step);
            }
            Input::Revived => {
                self.revived += 1;
                self.stopped.clear();
            }
            Input::Patched { patch } => {
                if let Some(limit) = patch.get("maxLaunches") {
                    self.max_launches = limit.as_u64();
                }
            }
            Input::TimedOut { .. }
            | Input::Rested { .. }
            | Input::Settled { .. }
            | Input::Answered { .. }
            | Input::Chosen { .. }
            | Input::Evaluated { .. } => {}
        }
    }

    fn gone(&mut self, step: &StepId) {
        self.running.remove(step).unwrap();
        self.cancelling.remove(step);
    }

    /// Something is to be done.
    pub(crate) fn told(&mut self, machine: &Machine, effects: &[Effect]) {
        let before: Vec<StepId> = self.running.keys().cloned().collect();
        for effect in effects {
            match effect {
                Effect::Start(start) => self.started(machine, start),
                Effect::Cancel { step, attempt } => {
                    assert_eq!(self.running.get(step), Some(attempt), "cancel {step}");
                    assert!(self.cancelling.insert(step.clone()), "{step} was told to stop twice");
                    let scope = step.as_str().rsplit_once('/').map_or("", |(scope, _)| scope);
                    self.stopped.insert(scope.to_owned());
                }
                Effect::Choose { step, .. } | Effect::Rest { step, .. } => self.is_empty(step),
                Effect::Evaluate { step, call, .. } => {
                    if call.as_str() != "reduce" {
                        self.is_empty(step);
                    }
                }
                Effect::Finish(_) => {
                    assert!(self.running.is_empty(), "it ended while {:?} ran", self.running);
                }
                Effect::Limit { .. } | Effect::Ask { .. } | Effect::AskLost { .. } => {}
            }
        }
        self.nothing_was_left_behind(&before, effects);
        self.limits_hold(machine);
    }

    fn started(&mut self, machine: &Machine, start: &atomic_graph::Start) {
        let step = &start.step;
        assert!(!self.finished.contains_key(step), "{step} had finished and is started again");
        let old = self.attempts.insert(step.clone(), start.attempt);
        assert!(old.unwrap_or(0) < start.attempt, "attempt {} at {step}", start.attempt);
        if let Some((scope, _)) = step.as_str().rsplit_once('/') {
            let stopped = self.stopped.iter().find(|stopped| {
                let rest = scope.strip_prefix(stopped.as_str());
                !stopped.is_empty()
                    && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            });
            assert_eq!(stopped, None, "{step} is started in a graph that was told to stop");
        }
        assert_eq!(self.running.insert(step.clone(), start.attempt), None, "{step} runs twice");
        if let Some(Kind::Work { launch: true, .. }) = machine.node(step).map(|node| &node.kind) {
            let limit = self.max_launches.unwrap_or(u64::MAX);
            assert!(self.launches < limit, "{step} is one launch too many");
            self.launches += 1;
            let again = matches!(start.how, How::Continued | How::RunAgain | How::Revived);
            self.relaunches += u64::from(again || self.revived > 0);
        }
    }

    /// Nothing runs inside a visit.
    fn is_empty(&self, region: &StepId) {
        let inside = self.running.keys().find(|step| is_inside(step, region));
        assert_eq!(inside, None, "it runs inside {region}, which goes on without it");
    }

    /// When a visit, an attempt at what is inside a node, or a round is heard of for the first
    /// time, nothing of what came before it is running.
    fn nothing_was_left_behind(&mut self, before: &[StepId], effects: &[Effect]) {
        let mut new = vec![];
        for stop in effects.iter().filter_map(about).flat_map(stops) {
            let place = (stop.scope.to_owned(), stop.visit.to_owned());
            if !self.seen.contains(&place) && !new.contains(&place) {
                new.push(place);
            }
        }
        let old = || before.iter().filter(|step| self.running.contains_key(*step));
        for step in old() {
            for stop in stops(step) {
                // A queue may let one of a superstep be heard of later than another.
                let stale = self.max_concurrency.is_none()
                    && new.iter().any(|(scope, visit)| scope == stop.scope && visit != stop.visit);
                assert!(!stale, "{step} runs while {new:?} have begun");
            }
        }
        for other in effects.iter().filter_map(about) {
            for stop in stops(other) {
                for step in old() {
                    for left in stops(step) {
                        if (left.scope, left.visit) != (stop.scope, stop.visit) {
                            continue;
                        }
                        let is_loop = node_of(left.visit).starts_with("loop");
                        let same = left.attempt == stop.attempt
                            && (!is_loop || left.inside == stop.inside || stop.inside.is_none());
                        let bare = stop.visit == other.as_str().rsplit('/').next().unwrap();
                        assert!(same || bare, "{step} runs while {other} has begun");
                    }
                }
            }
        }
        self.seen.extend(new);
    }

    fn limits_hold(&mut self, machine: &Machine) {
        let running: BTreeMap<StepId, u32> = machine.running().into_iter().collect();
        assert_eq!(running, self.running, "what the machine holds for running");
        if let Some(limit) = self.max_concurrency {
            assert!(running.len() <= limit as usize, "{limit} at once, not {running:?}");
        }
        assert_eq!(machine.launches(), self.launches, "launches");
        let launched = |step: &&StepId| step.node().starts_with("launch");
        let at_once = running.keys().filter(launched).count() as u64;
        self.most_at_once = self.most_at_once.max(at_once);
        let mut items: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for stop in running.keys().flat_map(stops) {
            if let Some(item) = stop.inside
                && self.workers.contains_key(node_of(stop.visit))
            {
                items.entry((stop.scope, stop.visit)).or_default().insert(item);
            }
        }
        for ((_, visit), items) in items {
            let workers = self.workers[node_of(visit)];
            assert!(items.len() as u64 <= workers, "{workers} at once in {visit}, not {items:?}");
        }
    }
}

fn count_workers(graph: &Graph, workers: &mut BTreeMap<String, u64>) {
    for node in &graph.nodes {
        if let Kind::Each(each) = &node.kind {
            let limit = match &each.workers {
                Count::Fixed(limit) => *limit,
                Count::Key(_) => 2,
            };
            workers.insert(node.id.to_string(), limit);
        }
        for (_, inner) in node.inner() {
            count_workers(inner, workers);
        }
    }
}
