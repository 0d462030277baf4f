//! Nodes that hold a graph: sub-graphs, loops, fans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::{Failed, Frame, Parent, VisitState};
use super::{Effect, FrameId, Machine, Place};
use crate::id::escape;
use crate::state::Changes;
use crate::{Condition, Each, Kind, Ready, State, StepError, StepResult, code};

/// A node in which graphs are run.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// What the frames inside start from; changed by those that have finished.
    pub(super) state: Arc<State>,
    /// The same changes, to be applied at this node's place when its superstep ends.
    pub(super) changes: Changes,
    pub(super) inside: Inside,
}

/// What runs inside.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Inside {
    /// A sub-graph, or one round of a loop.
    Single { child: FrameId, round: u32 },
    /// The items of a fan.
    Fan(Fan),
}

/// The items of a fan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fan {
    pub(super) running: BTreeMap<String, FrameId>,
    pub(super) failed: BTreeMap<String, FrameId>,
    /// How often each node was visited for each item, so that visits count on when it runs again.
    visits: BTreeMap<String, BTreeMap<u32, u32>>,
    /// Each item as it was when it last started: one that is still the same is not run again.
    started: BTreeMap<String, Value>,
    /// How far the list has been read, for fans that run every item once.
    read: usize,
    outputs: BTreeMap<String, Value>,
}

impl Machine {
    pub(super) fn enter_region(&mut self, place: Place) {
        let frame = self.frame(place.0);
        let visit = &frame.active[place.1];
        let (scope, base) = (visit.step.as_str().to_owned(), Arc::clone(&frame.state));
        let node = self.program.plan(frame.plan).node(visit.node);
        let inside = match &node.kind {
            Kind::Each(_) => Inside::Fan(Fan::default()),
            Kind::Work { .. } | Kind::Subgraph { .. } | Kind::Loop { .. } => {
                Inside::Single { child: self.next_frame, round: 1 }
            }
        };
        let first_scope = match &node.kind {
            Kind::Loop { .. } => Some(format!("{scope}[1]")),
            Kind::Subgraph { .. } => Some(scope),
            Kind::Work { .. } | Kind::Each(_) => None,
        };
        let state = Arc::new(State::over(&base));
        let region = Region { state, changes: Changes::default(), inside };
        self.frame_mut(place.0).active[place.1].state = VisitState::Region(Box::new(region));
        match first_scope {
            Some(scope) => self.open_child(place, scope, None),
            None => self.fill_fan(place),
        }
    }

    /// Starts a frame inside a region.
    fn open_child(&mut self, place: Place, scope: String, item: Option<(String, Value)>) {
        let program = Arc::clone(&self.program);
        let frame = self.frame(place.0);
        let plan = program.plan(frame.plan);
        let visit = &frame.active[place.1];
        let body = plan.bodies[visit.node as usize].unwrap_or(0);
        let VisitState::Region(region) = &visit.state else { return };
        let mut state = State::over(&region.state);
        let mut visits = BTreeMap::new();
        let name = item.map(|(name, value)| {
            if let Kind::Each(each) = &plan.node(visit.node).kind {
                state.keys.insert(each.item.clone(), Arc::new(value));
            }
            if let Inside::Fan(fan) = &region.inside {
                visits = fan.visits.get(&name).cloned().unwrap_or_default();
            }
            name
        });
        let parent = Parent { frame: place.0, visit: place.1, item: name };
        let mut child = Frame::new(body, scope, Some(parent), state);
        child.visits = visits;
        self.open_frame(child);
    }

    fn region_mut(&mut self, place: Place) -> Option<&mut Region> {
        match &mut self.frame_mut(place.0).active[place.1].state {
            VisitState::Region(region) => Some(region),
            VisitState::Leaf(_)
            | VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        }
    }

    fn take_region(&mut self, place: Place) -> Option<Box<Region>> {
        let state = &mut self.frame_mut(place.0).active[place.1].state;
        match std::mem::replace(state, VisitState::Choosing) {
            VisitState::Region(region) => Some(region),
            VisitState::Leaf(_)
            | VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        }
    }

    /// A frame inside a region has come to its end.
    pub(super) fn child_done(&mut self, id: FrameId, parent: &Parent) {
        let place = (parent.frame, parent.visit);
        let Some(child) = self.frames.remove(&id) else { return };
        let program = Arc::clone(&self.program);
        let plan = program.plan(self.frame(place.0).plan);
        let kind = &plan.node(self.frame(place.0).active[place.1].node).kind;
        let Some(region) = self.region_mut(place) else { return };

        let isolated = matches!(kind, Kind::Subgraph { isolated: true, .. });
        let mut problem = None;
        if !isolated {
            let state = Arc::make_mut(&mut region.state);
            problem = state.apply(&child.changes, &plan.reducers).err();
            region.changes.add(child.changes, &plan.reducers);
        }
        if let Some(problem) = problem {
            let error =
                StepError::new(code::REDUCER, format!("inside `{}`: {problem}", child.scope));
            return self.fail_region(place, error);
        }
        match (&mut region.inside, kind) {
            (Inside::Fan(fan), _) => {
                let name = parent.item.clone().unwrap_or_default();
                fan.running.remove(&name);
                fan.visits.insert(name.clone(), child.visits);
                fan.outputs.insert(name, Value::clone(&child.output));
                self.fill_fan(place);
            }
            (Inside::Single { round, .. }, Kind::Loop { until, max_rounds, .. }) => {
                let last = *round == *max_rounds;
                self.round_done(place, until.as_ref(), last, Value::clone(&child.output));
            }
            (Inside::Single { .. }, Kind::Work { .. } | Kind::Subgraph { .. } | Kind::Each(_)) => {
                let output =
                    if isolated { child.state.own_values() } else { Value::clone(&child.output) };
                self.region_done(place, output);
            }
        }
    }

    fn round_done(&mut self, place: Place, until: Option<&Condition>, last: bool, output: Value) {
        let step = self.frame(place.0).active[place.1].step.clone();
        match until {
            _ if last => self.region_done(place, output),
            Some(until) => {
                self.open.insert(step.clone(), place);
                self.effects.push(Effect::Choose {
                    step,
                    options: vec![until.clone()],
                    targets: vec![],
                });
            }
            None => self.round_judged(place, false),
        }
    }

    /// A loop knows whether it is done.
    pub(super) fn round_judged(&mut self, place: Place, done: bool) {
        if done {
            return self.region_done(place, Value::Null);
        }
        let next = self.next_frame;
        let scope = self.frame(place.0).active[place.1].step.as_str().to_owned();
        let Some(region) = self.region_mut(place) else { return };
        let Inside::Single { child, round } = &mut region.inside else { return };
        *round += 1;
        *child = next;
        let scope = format!("{scope}[{round}]");
        self.open_child(place, scope, None);
    }

    /// A region is done: its changes become the result of its visit.
    fn region_done(&mut self, place: Place, output: Value) {
        let Some(region) = self.take_region(place) else { return };
        let frame = self.frame_mut(place.0);
        let result = StepResult { output, ..StepResult::default() };
        // The changes are applied one by one when the superstep ends; they travel beside the
        // result because a reducer may have to see each of them.
        frame.active[place.1].merged = region.changes;
        self.settle(place, VisitState::Done(result));
    }

    /// A frame inside a region has failed. In a fan its siblings go on.
    pub(super) fn child_failed(&mut self, id: FrameId, parent: &Parent, error: StepError) {
        let place = (parent.frame, parent.visit);
        let Some(region) = self.region_mut(place) else { return };
        match &mut region.inside {
            Inside::Fan(fan) => {
                let name = parent.item.clone().unwrap_or_default();
                fan.running.remove(&name);
                fan.failed.insert(name, id);
                self.fill_fan(place);
            }
            Inside::Single { .. } => self.fail_region(place, error),
        }
    }

    fn fail_region(&mut self, place: Place, error: StepError) {
        let region = self.take_region(place);
        self.fail(place, Failed { error, leaf: None, region }, false);
    }

    /// Forgets what is inside a region.
    pub(super) fn drop_children(&mut self, region: &Region) {
        let children: Vec<FrameId> = match &region.inside {
            Inside::Single { child, .. } => vec![*child],
            Inside::Fan(fan) => fan.failed.values().copied().collect(),
        };
        for child in children {
            let Some(frame) = self.frames.remove(&child) else { continue };
            for visit in frame.active {
                if let VisitState::Failed(failed) = visit.state
                    && let Some(inner) = failed.region
                {
                    self.drop_children(&inner);
                }
            }
        }
    }

    /// Starts as many items as may start; ends the fan when nothing runs and nothing can.
    pub(super) fn fill_fan(&mut self, place: Place) {
        let program = Arc::clone(&self.program);
        let frame = self.frame(place.0);
        let Kind::Each(each) = &program.plan(frame.plan).node(frame.active[place.1].node).kind
        else {
            return;
        };
        let scope = frame.active[place.1].step.as_str().to_owned();
        while let Some((name, item)) = self.next_item(place, each) {
            let next = self.next_frame;
            let Some(region) = self.region_mut(place) else { return };
            let Inside::Fan(fan) = &mut region.inside else { return };
            fan.running.insert(name.clone(), next);
            let scope = format!("{scope}[{}]", escape(&name));
            self.open_child(place, scope, Some((name, item)));
        }
        self.end_fan_if_idle(place, each);
    }

    fn end_fan_if_idle(&mut self, place: Place, each: &Each) {
        let Some(Region { inside: Inside::Fan(fan), state, .. }) = self.region_mut(place) else {
            return;
        };
        if !fan.running.is_empty() {
            return;
        }
        if fan.failed.is_empty() {
            let list = state.get(each.over.as_str()).and_then(|list| list.as_array());
            let outputs = fan.take_outputs(list.map_or(&[], Vec::as_slice));
            return self.region_done(place, Value::Object(outputs));
        }
        let failed: Vec<FrameId> = fan.failed.values().copied().collect();
        let all = fan.failed.len() + fan.outputs.len();
        let first = failed.first().and_then(|id| self.frame(*id).failure());
        let first = first.map_or_else(String::new, |error| error.message.clone());
        let message = format!("{} of {all} items failed; the first: {first}", failed.len());
        self.fail_region(place, StepError::new(code::FAN, message));
    }

    /// The first item that may start now, if there is a worker for it.
    fn next_item(&mut self, place: Place, each: &Each) -> Option<(String, Value)> {
        let region = self.region_mut(place)?;
        let limit = Self::count(&each.workers, &region.state).unwrap_or(u64::MAX).max(1);
        let list = Arc::clone(region.state.get(each.over.as_str())?);
        let list = list.as_array()?;
        let Inside::Fan(fan) = &mut region.inside else { return None };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match each.ready {
            _ if fan.running.len() >= limit => None,
            Ready::Once => fan.unread(list),
            Ready::Tasks => fan.ready_task(list),
        }
    }
}

/// What an item is called: its id, or else its place in the list.
fn item_name(place: usize, item: &Value) -> String {
    item.get("id").and_then(Value::as_str).map_or_else(|| place.to_string(), str::to_owned)
}

impl Fan {
    /// The outputs by item, in the order of the list; those of items that left it come last.
    fn take_outputs(&mut self, list: &[Value]) -> serde_json::Map<String, Value> {
        let mut left = std::mem::take(&mut self.outputs);
        let names = list.iter().enumerate().map(|(place, item)| item_name(place, item));
        let mut ordered: serde_json::Map<String, Value> =
            names.filter_map(|name| left.remove_entry(&name)).collect();
        ordered.extend(left);
        ordered
    }

    fn unread(&mut self, list: &[Value]) -> Option<(String, Value)> {
        let item = list.get(self.read)?;
        let mut name = item_name(self.read, item);
        if self.started.contains_key(&name) {
            name = format!("{name}~{}", self.read);
        }
        self.read += 1;
        self.started.insert(name.clone(), Value::Null);
        Some((name, item.clone()))
    }

    fn ready_task(&mut self, list: &[Value]) -> Option<(String, Value)> {
        let status = |row: &Value, wanted: &[&str]| {
            row.get("status").and_then(Value::as_str).is_some_and(|s| wanted.contains(&s))
        };
        let done: BTreeSet<&str> = list
            .iter()
            .filter(|row| status(row, &["completed", "skipped"]))
            .filter_map(|row| row.get("id")?.as_str())
            .collect();
        let unblocked = |row: &Value| {
            let blockers = row.get("blockedBy").and_then(Value::as_array);
            let is_done = |id: &Value| id.as_str().is_some_and(|id| done.contains(id));
            blockers.is_none_or(|blockers| blockers.iter().all(is_done))
        };
        let (id, row) = list
            .iter()
            .filter(|row| status(row, &["pending"]) && unblocked(row))
            .filter_map(|row| Some((row.get("id")?.as_str()?, row)))
            .find(|(id, row)| {
                let known = self.running.contains_key(*id) || self.failed.contains_key(*id);
                !known && self.started.get(*id) != Some(row)
            })?;
        self.started.insert(id.to_owned(), row.clone());
        Some((id.to_owned(), row.clone()))
    }
}
