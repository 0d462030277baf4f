//! A script: a function that calls graphs by name and goes on with what they return.
//!
//! The function is evaluated when the node is entered, and again each time a call has ended: that
//! is a delivery. Deliveries are made one at a time, in the order in which the calls ended. What
//! was delivered and what was called because of it is the script's history; whoever evaluates the
//! function can run it again from there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::{Frame, VisitState};
use super::history::{key_of, told_failure};
use super::region::{Ending, Region, Wait};
use super::{Evaluation, FrameId, Issued, Machine, Place};
use crate::{FunctionId, Key, Kind, Patch, Script, State, StepError, StepId, code};

/// A script that is under way.
#[derive(Clone, Copy, Debug)]
pub struct OpenScript<'a> {
    /// The visit to its node.
    pub step: &'a StepId,
    /// The function that says what it calls.
    pub advance: &'a FunctionId,
    /// The state as its node sees it.
    pub state: &'a Arc<State>,
    /// What it was told, and what it called then.
    pub history: &'a [Evaluation],
}

/// What a script's function returns.
#[derive(Debug, Deserialize)]
struct Advanced {
    #[serde(default)]
    at: i64,
    #[serde(default)]
    calls: Vec<Call>,
    #[serde(default)]
    cancel: Vec<String>,
    #[serde(default)]
    done: Option<Done>,
    #[serde(default)]
    failed: Option<StepError>,
    /// The keys of the calls whose failures are what it failed of.
    #[serde(default)]
    cause: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Call {
    #[serde(flatten)]
    issued: Issued,
    body: String,
    #[serde(default)]
    call: Value,
    /// Values of the state that the body sees besides those around it.
    #[serde(default)]
    input: Patch,
}

#[derive(Debug, Deserialize)]
struct Done {
    #[serde(default)]
    output: Value,
    #[serde(default)]
    patch: Patch,
}

impl Machine {
    /// What a script was told and what it called, while it is under way.
    pub fn script_history(&self, step: &StepId) -> Option<&[Evaluation]> {
        let (frame, visit) = *self.open.get(step)?;
        let region = self.frames.get(&frame)?.active.get(visit)?.state.region()?;
        Some(&region.script.history)
    }

    /// The scripts that are under way and will be told more.
    pub fn scripts(&self) -> impl Iterator<Item = OpenScript<'_>> {
        let places = self.frames.iter().flat_map(|(id, frame)| {
            frame.active.iter().enumerate().map(|(number, visit)| ((*id, number), visit))
        });
        places.filter_map(|(place, visit)| {
            let VisitState::Region(region) = &visit.state else { return None };
            let plan = self.program.plan(self.frames.get(&place.0)?.plan);
            let Kind::Script(script) = &plan.node(visit.node).kind else { return None };
            region.ending.is_none().then_some(OpenScript {
                step: &visit.step,
                advance: &script.advance,
                state: &region.state,
                history: &region.script.history,
            })
        })
    }

    /// Lets the script say what to call next.
    pub(super) fn advance_script(&mut self, place: Place, delivery: Option<Arc<Value>>) {
        let (program, plan, node) = self.node_at(place);
        let Kind::Script(script) = &program.plan(plan).node(node).kind else { return };
        self.wait(place, Wait::Advance(delivery.clone()));
        self.evaluate(place, script.advance.clone(), delivery.into_iter().collect());
    }

    /// A call has returned.
    pub(super) fn call_returned(&mut self, place: Place, key: &str, child: Frame) {
        if let Some(region) = self.region_mut(place) {
            // Its name may be used again by a script that gets another chance.
            region.fan.ran(key, child.visits);
        }
        let value = Arc::unwrap_or_clone(child.output);
        self.deliver(place, key, json!({ "key": key, "value": value }));
    }

    /// A call has failed for good, or was stopped.
    pub(super) fn call_failed(&mut self, place: Place, key: &str, error: &StepError) {
        let exhausted = self.used.exhausted.clone();
        let Some(region) = self.region_mut(place) else { return };
        if region.script.cancelled.contains(key) {
            return self.deliver(place, key, json!({ "key": key, "cancelled": true }));
        }
        if let Some(error) = exhausted {
            // A limit of the run is nothing to be caught.
            return self.stop_region(place, Ending::Fail(error));
        }
        self.deliver(place, key, json!({ "key": key, "error": error }));
    }

    fn deliver(&mut self, place: Place, key: &str, delivery: Value) {
        let Some(region) = self.region_mut(place) else { return };
        region.script.cancelled.remove(key);
        region.script.waiting.push_back(Arc::new(delivery));
        self.go_on_with_script(place);
    }

    /// Delivers what comes next, unless something is being delivered.
    fn go_on_with_script(&mut self, place: Place) {
        let Some(region) = self.region_mut(place) else { return };
        if region.wait.is_some() || region.ending.is_some() {
            return;
        }
        if let Some(delivery) = region.script.waiting.pop_front() {
            return self.advance_script(place, Some(delivery));
        }
        self.wake(place);
        let Some(region) = self.region_mut(place) else { return };
        if region.running.is_empty() {
            region.script.broken = true;
            let message = "the script waits for something that never comes: nothing that it \
                           called is under way";
            self.stop_region(place, Ending::Fail(StepError::new(code::STUCK, message)));
        }
    }

    /// The script has said what to call next.
    pub(super) fn advanced(&mut self, place: Place, told: Option<Arc<Value>>, value: Value) {
        let said = serde_json::from_value::<Advanced>(value).map_err(|problem| {
            let message = format!("the script said something that cannot be understood: {problem}");
            StepError::new(code::FUNCTION, message)
        });
        let said = said.and_then(|said| self.judge_script(place, &said).map(|()| said));
        let Some(region) = self.region_mut(place) else { return };
        let Advanced { at, calls, cancel, done, failed, cause } = match said {
            Ok(said) => said,
            Err(error) => {
                // Asked again when the run is revived.
                region.wait = Some(Wait::Advance(told));
                return self.stop_region(place, Ending::Fail(error));
            }
        };
        let ended = done.is_some() || failed.is_some();
        let issued = calls.iter().filter(|_| !ended).map(|call| call.issued.clone()).collect();
        let cancel = if ended { vec![] } else { cancel };
        let (keys, calls_made) = (cancel.clone(), issued);
        let evaluation = Evaluation { delivery: told, at, calls: calls_made, cancel, ended };
        region.script.history.push(evaluation);
        if let Some(error) = failed {
            region.script.broken = true;
            region.script.cause = cause;
            return self.stop_region(place, Ending::Fail(error));
        }
        if let Some(done) = done {
            return self.script_returned(place, done);
        }
        for call in calls {
            self.open_call(place, call);
        }
        for key in keys {
            self.cancel_call(place, key);
        }
        self.wake(place);
        self.go_on_with_script(place);
    }

    /// Whether what a script says can be done.
    fn judge_script(&self, place: Place, said: &Advanced) -> Result<(), StepError> {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let node_number = node;
        let node = plan.node(node);
        let region = self.frame(place.0).active[place.1].state.region();
        let (Kind::Script(script), Some(region)) = (&node.kind, region) else { return Ok(()) };
        if let Some(done) = &said.done {
            let fits = region.state.accepts(&done.patch, &plan.reducers);
            fits.map_err(|problem| {
                StepError::new(code::REDUCER, format!("node `{}`, {problem}", node.id))
            })?;
            return plan.check_output(node_number, &done.output);
        }
        if said.failed.is_some() {
            return Ok(());
        }
        let mut keys = BTreeSet::new();
        for Call { issued, body, .. } in &said.calls {
            let key = issued.key.as_str();
            if region.script.was_called(key) || !keys.insert(key) {
                let message = format!("the script made two calls with the key `{key}`");
                return Err(StepError::new(code::FUNCTION, message));
            }
            if !script.bodies.iter().any(|known| known.id.as_str() == body) {
                let message = format!("the script called `{body}`, which there is not");
                return Err(StepError::new(code::FUNCTION, message));
            }
        }
        let limit = match &script.max_calls {
            Some(count) => self.limit_of(&node.id, Some(count), &region.state)?,
            None => Some(Script::CALLS),
        };
        let calls = (region.script.calls_so_far() + said.calls.len()) as u64;
        if let Some(limit) = limit.filter(|limit| calls > *limit) {
            let message = format!("the script `{}` has used all of its {limit} calls", node.id);
            return Err(StepError::new(code::CEILING, message));
        }
        Ok(())
    }

    fn script_returned(&mut self, place: Place, done: Done) {
        let (program, plan, _) = self.node_at(place);
        let Some(region) = self.region_mut(place) else { return };
        let mut patch = done.patch;
        region.state.trim(&mut patch);
        region.changes.add(patch.into(), &program.plan(plan).reducers);
        self.stop_region(place, Ending::Returned(done.output));
    }

    fn open_call(&mut self, place: Place, call: Call) {
        let Some(region) = self.region_mut(place) else { return };
        let Call { issued, body, call, input } = call;
        region.script.bodies.insert(issued.key.clone(), body);
        if let Some(delivery) = region.script.recall(&issued) {
            region.script.waiting.push_back(delivery);
            return;
        }
        let mut state = State::over(&region.state);
        let input = input.into_iter().map(|(key, value)| (key, Arc::new(value)));
        state.keys.extend(input);
        state.keys.insert(Key::from(CALL), Arc::new(call));
        self.open_child(place, issued.key, Some(state));
    }

    /// Stops a call. One that is over, or that was never made, is let be.
    fn cancel_call(&mut self, place: Place, key: String) {
        let Some(region) = self.region_mut(place) else { return };
        let Some(child) = region.running.get(&key).copied() else { return };
        region.script.cancelled.insert(key);
        self.stop_frame(child);
    }

    /// Gives a script another chance. What it was told up to the failure that ended it stays told;
    /// what had ended since is told again, when it is called again if it was called later.
    pub(super) fn revive_script(&mut self, place: Place, mut region: Box<Region>) {
        let script = &mut region.script;
        let told =
            if let Some(Wait::Advance(told)) = region.wait.take() { Some(told) } else { None };
        let dropped = script.history.split_off(script.cut(told.as_ref()));
        script.broken = false;
        script.cause.clear();
        let later = dropped.iter().filter_map(|evaluation| evaluation.delivery.clone());
        let later = later.chain(told.flatten()).chain(std::mem::take(&mut script.waiting));
        let later: Vec<Arc<Value>> = later.collect();
        script.remember(&dropped, &later);
        let calls = script.history.iter().flat_map(|evaluation| &evaluation.calls);
        let begun: BTreeSet<String> = calls.map(|call| call.key.clone()).collect();
        let stopped: BTreeSet<&String> = script.history.iter().flat_map(|e| &e.cancel).collect();
        // A call that failed, or that would not be stopped now, gets another chance instead.
        let stays = |told: &Arc<Value>| {
            let key = key_of(told).to_owned();
            let is_stopped = told.get("cancelled").is_some();
            let is_over = !told_failure(Some(told)) && (!is_stopped || stopped.contains(&key));
            is_over && begun.contains(&key)
        };
        script.waiting = later.into_iter().filter(stays).collect();
        let heard = script.history.iter().filter_map(|evaluation| evaluation.delivery.as_ref());
        let settled = heard.chain(&script.waiting).map(|told| key_of(told).to_owned()).collect();
        script.cancelled.clear();
        self.sort_calls(&mut region, &begun, &settled);
        region.idle = 0;
        region.ending = None;
        self.frame_mut(place.0).active[place.1].state = VisitState::Region(region);
        self.limit(place);
        self.resume_script(place);
    }

    /// Drops calls that were only made because of what is dropped. Their names may be used again,
    /// and then the steps in them count on. Those that are not settled get another chance.
    fn sort_calls(
        &mut self,
        region: &mut Region,
        begun: &BTreeSet<String>,
        settled: &BTreeSet<String>,
    ) {
        let mut all: BTreeMap<String, FrameId> = std::mem::take(&mut region.failed);
        all.append(&mut region.waking);
        for (key, child) in all {
            if !begun.contains(&key) {
                if let Some(frame) = self.drop_child(child) {
                    region.fan.ran(&key, frame.visits);
                }
            } else if settled.contains(&key) {
                region.failed.insert(key, child);
            } else {
                region.waking.insert(key, child);
            }
        }
        region.script.bodies.retain(|key, _| begun.contains(key));
    }

    /// Goes on with a script where it was: from its start, or with what comes next.
    pub(super) fn resume_script(&mut self, place: Place) {
        let Some(region) = self.region_mut(place) else { return };
        if region.script.history.is_empty() {
            return self.advance_script(place, None);
        }
        self.go_on_with_script(place);
    }
}

/// The key of the state under which a body finds what it is called with.
pub(super) const CALL: &str = "call";
