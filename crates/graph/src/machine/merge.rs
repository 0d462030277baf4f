//! Changes meet the state they change. Where a function combines them, the machine stops there
//! until it knows what the function returned.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::frame::{Merging, VisitState};
use super::region::Wait;
use super::{Effect, FrameId, Machine, Place};
use crate::reduce::Reducer;
use crate::{FunctionId, Key, Patch, StepError, code};

/// Where applying changes had to stop.
enum Halt {
    /// A change does not fit.
    Misfit(String),
    /// A function is to be evaluated first.
    Call { call: FunctionId, key: Key, old: Arc<Value>, change: Arc<Value> },
}

impl Machine {
    /// Applies the changes of a superstep in graph order, then finds out where to go.
    pub(super) fn merge_superstep(&mut self, id: FrameId) {
        let merging = self.frame(id).merging.clone();
        if let Some(Merging { visit, waiting: Some((key, change)) }) = merging {
            // The run was revived in the middle of it.
            return self.reduce_again((id, visit), &key, change);
        }
        if merging.is_none()
            && let Some(error) = self.replaced_twice(id)
        {
            return self.frame_failed(id, error);
        }
        for visit in merging.map_or(0, |merging| merging.visit)..self.frame(id).active.len() {
            self.frame_mut(id).merging = Some(Merging { visit, waiting: None });
            match self.merge_visit((id, visit)) {
                Ok(()) => {}
                Err(Halt::Misfit(problem)) => return self.cannot_merge((id, visit), &problem),
                Err(Halt::Call { call, key, old, change }) => {
                    let waiting = Some((key, Arc::clone(&change)));
                    self.frame_mut(id).merging = Some(Merging { visit, waiting });
                    return self.evaluate((id, visit), call, vec![old, change]);
                }
            }
        }
        self.frame_mut(id).merging = None;
        self.route_superstep(id);
    }

    /// Two that ran at once have replaced the same value, so that one of the two would be lost.
    fn replaced_twice(&self, id: FrameId) -> Option<StepError> {
        let frame = self.frame(id);
        let plan = self.program.plan(frame.plan);
        let changes = frame.active.iter().filter_map(|visit| {
            let VisitState::Done(result) = &visit.state else { return None };
            let keys = result.patch.keys().chain(visit.merged.0.keys());
            Some((plan.node(visit.node).id.as_str(), keys))
        });
        replaced_twice(changes, &plan.reducers, "nodes")
    }

    fn merge_visit(&mut self, place: Place) -> Result<(), Halt> {
        let program = Arc::clone(&self.program);
        let parent = self.frame(place.0).parent.as_ref().map(|p| self.frame(p.frame).plan);
        let above = parent.map(|plan| &program.plan(plan).reducers);
        let frame = self.frame_mut(place.0);
        let plan = program.plan(frame.plan);
        let visit = &mut frame.active[place.1];
        let VisitState::Done(result) = &mut visit.state else { return Ok(()) };
        visit.merged.add(std::mem::take(&mut result.patch).into(), &plan.reducers);
        let layer = Arc::make_mut(&mut frame.state);
        while let Some((key, change)) = visit.merged.pop() {
            let reducer = plan.reducers.get(&key);
            if let Some(Reducer::Call(call)) = reducer {
                let old = layer.get(key.as_str()).cloned().unwrap_or_default();
                return Err(Halt::Call { call: call.clone(), key, old, change });
            }
            if let Err(problem) = layer.change(&key, reducer, &change) {
                visit.merged.put_back(key, change);
                return Err(Halt::Misfit(problem));
            }
            if let Some(reducers) = above {
                frame.changes.push(key, change, reducers);
            }
        }
        // One by one: `append` would build the whole map anew.
        layer.outputs.extend(std::mem::take(&mut visit.inner));
        let output = Arc::new(std::mem::replace(&mut result.output, Value::Null));
        layer.outputs.insert(plan.node(visit.node).id.clone(), Arc::clone(&output));
        frame.output = output;
        Ok(())
    }

    /// What a visit changed does not fit what others made of the state. It is done all the same,
    /// and part of its changes may have been applied: the rest is applied when the run is revived.
    fn cannot_merge(&mut self, place: Place, problem: &str) {
        let node = self.frame(place.0).active[place.1].step.node();
        let error = StepError::new(code::REDUCER, format!("node `{node}`, {problem}"));
        self.frame_failed(place.0, error);
    }

    /// Asks the caller to evaluate a function for a visit.
    pub(super) fn evaluate(&mut self, place: Place, call: FunctionId, args: Vec<Arc<Value>>) {
        let step = self.await_step(place);
        self.effects.push(Effect::Evaluate { step, call, args });
    }

    fn reduce_again(&mut self, place: Place, key: &Key, change: Arc<Value>) {
        let (program, plan, _) = self.node_at(place);
        let Some(Reducer::Call(call)) = program.plan(plan).reducers.get(key) else { return };
        let old = self.frame(place.0).state.get(key.as_str()).cloned().unwrap_or_default();
        self.evaluate(place, call.clone(), vec![old, change]);
    }

    /// A function was evaluated.
    pub(super) fn evaluated(&mut self, place: Place, result: Result<Value, StepError>) {
        match &self.frame(place.0).active[place.1].state {
            VisitState::Judging(..) => self.judged_failure(place, result),
            VisitState::Region(_) => self.region_evaluated(place, result),
            VisitState::Done(_) => self.change_combined(place, result),
            VisitState::Choosing => self.cannot_choose(place, failure(result)),
            VisitState::Leaf(leaf) if leaf.phase.is_decision() => {
                self.choice_failed(place, failure(result));
            }
            VisitState::Leaf(_)
            | VisitState::Asking(_)
            | VisitState::Resting
            | VisitState::Failed(_)
            | VisitState::Routed(_) => {}
        }
    }

    /// A function has combined a change of a superstep with what was there.
    fn change_combined(&mut self, place: Place, result: Result<Value, StepError>) {
        let program = Arc::clone(&self.program);
        let parent = self.frame(place.0).parent.as_ref().map(|p| self.frame(p.frame).plan);
        let frame = self.frame_mut(place.0);
        let Some((key, change)) = frame.merging.as_mut().and_then(|m| m.waiting.take()) else {
            return;
        };
        match result {
            Ok(value) => {
                Arc::make_mut(&mut frame.state).keys.insert(key.clone(), Arc::new(value));
                if let Some(parent) = parent {
                    frame.changes.push(key, change, &program.plan(parent).reducers);
                }
                self.merge_superstep(place.0);
            }
            Err(error) => {
                // Tried once more when the run is revived; the step itself is done.
                if let Some(merging) = frame.merging.as_mut() {
                    merging.waiting = Some((key, change));
                }
                self.frame_failed(place.0, error);
            }
        }
    }

    /// Applies what a child of a region has changed, then goes on with the region.
    pub(super) fn absorb(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let reducers = &program.plan(plan).reducers;
        let kind = &program.plan(plan).node(node).kind;
        while let Some(region) = self.region_mut(place) {
            let Some(child) = region.absorbing.front_mut() else { return self.end_if_idle(place) };
            while let Some((key, change)) = child.changes.pop() {
                let reducer = reducers.get(&key);
                if let Some(Reducer::Call(call)) = reducer {
                    let old = region.state.get(key.as_str()).cloned().unwrap_or_default();
                    let args = vec![old, Arc::clone(&change)];
                    region.wait = Some(Wait::Reduce { key, change });
                    return self.evaluate(place, call.clone(), args);
                }
                let state = Arc::make_mut(&mut region.state);
                if let Err(problem) = state.change(&key, reducer, &change) {
                    child.changes.put_back(key, change);
                    let error = StepError::new(code::REDUCER, format!("inside: {problem}"));
                    return self.stop_region(place, super::region::Ending::Fail(error));
                }
                region.fan.saw_change(kind, &key, reducer);
                let all = (&mut region.changes, &mut region.items);
                super::fan::kept(kind, &key, &child.name, all).push(key, change, reducers);
            }
            if let Some(child) = region.absorbing.pop_front() {
                self.absorbed(place, child);
            }
        }
    }

    /// A function has combined a change from inside a region with what was there.
    pub(super) fn inner_change_combined(
        &mut self,
        place: Place,
        (key, change): (Key, Arc<Value>),
        value: Value,
    ) {
        let (program, plan, node) = self.node_at(place);
        let kind = &program.plan(plan).node(node).kind;
        let Some(region) = self.region_mut(place) else { return };
        Arc::make_mut(&mut region.state).keys.insert(key.clone(), Arc::new(value));
        region.fan.read_again();
        let name = region.absorbing.front().map_or("", |child| child.name.as_str());
        let all = (&mut region.changes, &mut region.items);
        let reducers = &program.plan(plan).reducers;
        super::fan::kept(kind, &key, name, all).push(key, change, reducers);
        self.absorb(place);
    }
}

/// A key that several have changed, where the changes are not combined. Who changed it is told in
/// the order of definition, so it is the same whoever was first.
pub(super) fn replaced_twice<'a>(
    changes: impl Iterator<Item = (&'a str, impl Iterator<Item = &'a Key>)>,
    reducers: &BTreeMap<Key, Reducer>,
    who: &str,
) -> Option<StepError> {
    let replaces = |key: &Key| matches!(reducers.get(key), None | Some(Reducer::Replace));
    let mut first: BTreeMap<&Key, &str> = BTreeMap::new();
    for (name, keys) in changes {
        for key in keys.filter(|key| replaces(key)) {
            let before = *first.entry(key).or_insert(name);
            if before != name {
                let message = format!(
                    "the {who} `{before}` and `{name}` ran at once and both replaced `{key}`, so \
                     that one value would be lost: give `{key}` a reducer that combines values, or \
                     let them write to different keys, and resume with --upgrade"
                );
                return Some(StepError::new(code::REDUCER, message));
            }
        }
    }
    None
}

/// A choice is not the value of a function.
fn failure(result: Result<Value, StepError>) -> StepError {
    result.err().unwrap_or_else(|| StepError::new(code::FUNCTION, "a choice was expected"))
}

/// What a function returned, as changes to a state.
pub(super) fn to_patch(value: &Value) -> Result<Patch, StepError> {
    match value {
        Value::Null => Ok(Patch::new()),
        Value::Object(fields) => {
            Ok(fields.iter().map(|(key, value)| (Key::from(key.as_str()), value.clone())).collect())
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let message = format!("a function that makes changes returned {value}, not an object");
            Err(StepError::new(code::FUNCTION, message))
        }
    }
}
