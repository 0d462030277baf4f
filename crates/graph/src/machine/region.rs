//! A node in which graphs are run: sub-graphs, loops, fans and branches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::advance::goes_round;
use super::fan::Fan;
use super::frame::{Failed, Frame, Parent, VisitState, Was};
use super::history::Scripting;
use super::merge::to_patch;
use super::{Effect, FrameId, Machine, Place};
use crate::state::Changes;
use crate::{Key, Kind, NodeId, Parallel, Ready, State, StepError, StepResult, Strategy};

/// A node in which graphs are run.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// What the frames inside start from; changed by those that have finished.
    pub(super) state: Arc<State>,
    /// The same changes, to be applied at this node's place when its superstep ends.
    pub(super) changes: Changes,
    /// The changes of items that are put in the order of the list when the fan ends.
    pub(super) items: BTreeMap<String, Changes>,
    /// The frames inside, by item, branch or round.
    pub(super) running: BTreeMap<String, FrameId>,
    pub(super) failed: BTreeMap<String, FrameId>,
    /// Those of a revived run that have failed and wait for a worker.
    pub(super) waking: BTreeMap<String, FrameId>,
    pub(super) outputs: BTreeMap<String, Value>,
    /// Which round of a loop.
    pub(super) round: u32,
    /// Rounds in a row in which nothing was started.
    pub(super) idle: usize,
    pub(super) fan: Fan,
    /// What a script has done so far.
    pub(super) script: Scripting,
    /// Frames that have finished and whose changes are being applied, oldest first.
    pub(super) absorbing: VecDeque<Absorbing>,
    /// What it waits for besides its frames.
    pub(super) wait: Option<Wait>,
    /// How it ends once its frames are gone.
    pub(super) ending: Option<Ending>,
}

/// A frame that has finished.
#[derive(Clone, Debug)]
pub(super) struct Absorbing {
    pub(super) name: String,
    pub(super) changes: Changes,
    pub(super) output: Arc<Value>,
    /// What the nodes in it returned.
    pub(super) inner: BTreeMap<NodeId, Arc<Value>>,
    pub(super) visits: BTreeMap<u32, u32>,
}

/// What a region waits for besides its frames.
#[derive(Clone, Debug)]
pub(super) enum Wait {
    /// The state to begin with.
    Input,
    /// Whether a loop is done.
    Until,
    /// The changes it makes to the state around it, out of this value.
    Output(Arc<Value>),
    /// A change from inside, combined with what was there.
    Reduce { key: Key, change: Arc<Value> },
    /// What a script calls next, told this if it has begun already.
    Advance(Option<Arc<Value>>),
}

/// How a region ends once its frames are gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Ending {
    /// It fails.
    Fail(StepError),
    /// One branch has settled it.
    Join,
    /// A script has returned this.
    Returned(Value),
}

impl Region {
    fn new(state: State) -> Self {
        Self {
            state: Arc::new(state),
            changes: Changes::default(),
            items: BTreeMap::new(),
            running: BTreeMap::new(),
            failed: BTreeMap::new(),
            waking: BTreeMap::new(),
            outputs: BTreeMap::new(),
            round: 0,
            idle: 0,
            fan: Fan::default(),
            script: Scripting::default(),
            absorbing: VecDeque::new(),
            wait: None,
            ending: None,
        }
    }

    /// The frame through which everything in here goes, when there can only be one.
    pub(super) fn only_child(&self) -> Option<FrameId> {
        let mut frames = self.running.iter().chain(&self.failed);
        frames.next().filter(|(name, _)| name.as_str() == SINGLE).map(|(_, frame)| *frame)
    }
}

/// The name of the frame of a sub-graph or of a loop's round.
pub(super) const SINGLE: &str = "";

impl Machine {
    pub(super) fn enter_region(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let node = program.plan(plan).node(node);
        let region = Region::new(State::over(&self.frame(place.0).state));
        self.frame_mut(place.0).active[place.1].state = VisitState::Region(Box::new(region));
        self.limit(place);
        match &node.kind {
            Kind::Subgraph { input: Some(call), .. } => {
                self.wait(place, Wait::Input);
                self.evaluate(place, call.clone(), vec![]);
            }
            Kind::Subgraph { .. } => self.open_child(place, SINGLE.to_owned(), None),
            Kind::Loop { .. } => self.next_round(place),
            Kind::Each(_) => self.fill_fan(place),
            Kind::Parallel(parallel) => self.open_branches(place, parallel),
            Kind::Script(_) => self.advance_script(place, None),
            Kind::Work { .. } | Kind::Decision => {}
        }
    }

    /// Asks to be told when a region has taken too long.
    pub(super) fn limit(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        if let Some(timeout_ms) = program.plan(plan).node(node).timeout_ms {
            let step = self.frame(place.0).active[place.1].step.clone();
            self.limited.insert(step.clone(), place);
            self.effects.push(Effect::Limit { step, timeout_ms });
        }
    }

    pub(super) fn wait(&mut self, place: Place, wait: Wait) {
        if let Some(region) = self.region_mut(place) {
            region.wait = Some(wait);
        }
    }

    fn open_branches(&mut self, place: Place, parallel: &Parallel) {
        for branch in &parallel.branches {
            self.open_child(place, branch.id.to_string(), None);
        }
        self.end_if_idle(place);
    }

    fn next_round(&mut self, place: Place) {
        if let Some(region) = self.region_mut(place) {
            region.round += 1;
            region.idle += 1;
        }
        self.open_child(place, SINGLE.to_owned(), None);
    }

    /// Starts a frame inside a region; `state` is what it sees, otherwise the region's.
    pub(super) fn open_child(&mut self, place: Place, name: String, state: Option<State>) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let next = self.next_frame;
        let visit = &mut self.frame_mut(place.0).active[place.1];
        let mut scope = visit.step.as_str().to_owned();
        if visit.attempt > 1 {
            scope = format!("{scope}!{}", visit.attempt);
        }
        let VisitState::Region(region) = &mut visit.state else { return };
        match &plan.node(node).kind {
            Kind::Loop { .. } => scope = format!("{scope}[{}]", region.round),
            Kind::Each(_) | Kind::Parallel(_) | Kind::Script(_) => {
                scope = format!("{scope}[{}]", crate::id::escape(&name));
            }
            Kind::Work { .. } | Kind::Decision | Kind::Subgraph { .. } => {}
        }
        region.running.insert(name.clone(), next);
        let mut state = state.unwrap_or_else(|| State::over(&region.state));
        if let Kind::Subgraph { graph, .. } = &plan.node(node).kind {
            state.fill(&graph.defaults);
        }
        let visits = region.fan.visits_of(&name);
        let body = plan.body(node, region.script.body_of(&name).unwrap_or(&name));
        let parent = Parent { frame: place.0, visit: place.1, name };
        let mut child = Frame::new(body, scope, Some(parent), state);
        child.visits = visits;
        self.open_frame(child);
    }

    pub(super) fn region_mut(&mut self, place: Place) -> Option<&mut Region> {
        let state = &mut self.frame_mut(place.0).active[place.1].state;
        if let VisitState::Region(region) = state { Some(region) } else { None }
    }

    fn take_region(&mut self, place: Place) -> Option<Box<Region>> {
        let visit = &mut self.frame_mut(place.0).active[place.1];
        let step = visit.step.clone();
        match std::mem::replace(&mut visit.state, VisitState::Resting) {
            VisitState::Region(region) => {
                self.limited.remove(&step);
                Some(region)
            }
            other @ (VisitState::Leaf(_)
            | VisitState::Asking(_)
            | VisitState::Judging(..)
            | VisitState::Resting
            | VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_)) => {
                visit.state = other;
                None
            }
        }
    }

    /// A frame inside a region has come to its end.
    pub(super) fn child_done(&mut self, id: FrameId, parent: &Parent) {
        let place = (parent.frame, parent.visit);
        let Some(child) = self.frames.remove(&id) else { return };
        let (program, plan, node) = self.node_at(place);
        let kind = &program.plan(plan).node(node).kind;
        let Some(region) = self.region_mut(place) else { return };
        region.running.remove(&parent.name);
        if region.ending.is_some() {
            // It has lost, or came too late: what it changed is dropped.
            return self.end_if_idle(place);
        }
        if let Kind::Script(_) = kind {
            return self.call_returned(place, &parent.name, child);
        }
        if let Kind::Subgraph { isolated, output, .. } = kind
            && (*isolated || output.is_some())
        {
            return match output {
                Some(call) => {
                    let ended = Arc::new(child.state.to_value());
                    region.wait = Some(Wait::Output(Arc::clone(&ended)));
                    self.evaluate(place, call.clone(), vec![ended]);
                }
                None => self.finish_region(place, child.state.own_values()),
            };
        }
        // What it saw is let go of here: nothing else may hold the state that is changed below, or
        // it would have to be copied.
        let Frame { mut changes, output, visits, state, .. } = child;
        if let Kind::Each(each) = kind {
            // The item is what this graph calls it; around it that name means nothing.
            changes.0.remove(&each.item);
        }
        let inner = Arc::unwrap_or_clone(state).outputs;
        let name = parent.name.clone();
        region.absorbing.push_back(Absorbing { name, changes, output, inner, visits });
        match kind {
            Kind::Parallel(Parallel { strategy: Strategy::All, .. }) => self.end_if_idle(place),
            Kind::Parallel(_) => self.stop_region(place, Ending::Join),
            // Those before it in the queue have to be absorbed first.
            _ if region.wait.is_some() => {}
            Kind::Each(_)
            | Kind::Loop { .. }
            | Kind::Subgraph { .. }
            | Kind::Script(_)
            | Kind::Work { .. }
            | Kind::Decision => self.absorb(place),
        }
    }

    /// The changes of a finished frame are applied.
    pub(super) fn absorbed(&mut self, place: Place, child: Absorbing) {
        let (program, plan, node) = self.node_at(place);
        let Some(region) = self.region_mut(place) else { return };
        let kind = &program.plan(plan).node(node).kind;
        let Absorbing { name, output, inner, visits, .. } = child;
        // The items of a fan return each their own; they are kept by item instead.
        if matches!(kind, Kind::Each(_)) {
            drop(inner);
        } else {
            Arc::make_mut(&mut region.state).outputs.extend(inner);
        }
        let output = Arc::unwrap_or_clone(output);
        match kind {
            Kind::Each(each) => {
                // One that cannot run again need not count on.
                if each.ready == Ready::Tasks {
                    region.fan.ran(&name, visits);
                }
                region.outputs.insert(name, output);
                self.fill_fan(place);
            }
            Kind::Parallel(_) => {
                region.outputs.insert(name, output);
            }
            Kind::Loop { max_rounds, .. } if region.round == *max_rounds => {
                self.finish_region(place, output);
            }
            Kind::Loop { until: Some(_), .. } => {
                region.outputs.insert(SINGLE.to_owned(), output);
                self.ask_until(place);
            }
            Kind::Loop { until: None, .. } => self.next_round(place),
            Kind::Work { .. } | Kind::Decision | Kind::Subgraph { .. } | Kind::Script(_) => {
                self.finish_region(place, output);
            }
        }
    }

    fn ask_until(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let Kind::Loop { until: Some(until), .. } = &program.plan(plan).node(node).kind else {
            return;
        };
        self.wait(place, Wait::Until);
        let step = self.await_step(place);
        let options = vec![until.clone()];
        self.effects.push(Effect::Choose { step, options, targets: vec![] });
    }

    /// A loop knows whether it is done.
    pub(super) fn round_judged(&mut self, place: Place, done: bool) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let Some(region) = self.region_mut(place) else { return };
        // One whose rounds are counted ends by itself.
        let endless = matches!(plan.node(node).kind, Kind::Loop { max_rounds: 0, .. });
        let body = program.plan(plan.body(node, SINGLE));
        if !done && endless && region.idle > body.nodes.len() {
            // Asked again when the run is revived.
            return self.fail_region(place, goes_round());
        }
        region.wait = None;
        if done {
            let output = region.outputs.remove(SINGLE).unwrap_or_default();
            return self.finish_region(place, output);
        }
        self.next_round(place);
    }

    /// A function that a region needs was evaluated.
    pub(super) fn region_evaluated(&mut self, place: Place, result: Result<Value, StepError>) {
        let Some(region) = self.region_mut(place) else { return };
        let Some(wait) = region.wait.take() else { return };
        let value = match result {
            Ok(value) => value,
            Err(error) => {
                region.script.broke(&wait, &error);
                region.wait = Some(wait);
                // Others may be running beside the one this was about.
                return self.stop_region(place, Ending::Fail(error));
            }
        };
        let (patch, wait) = match wait {
            Wait::Reduce { key, change } => {
                return self.inner_change_combined(place, (key, change), value);
            }
            Wait::Advance(delivery) => return self.advanced(place, delivery, value),
            // A condition is chosen, not evaluated; only its failure comes here.
            Wait::Until => return,
            wait @ (Wait::Input | Wait::Output(_)) => match to_patch(&value) {
                Ok(patch) => (patch, wait),
                Err(error) => {
                    region.wait = Some(wait);
                    return self.fail_region(place, error);
                }
            },
        };
        if matches!(wait, Wait::Input) {
            return self.open_child(place, SINGLE.to_owned(), Some(State::new(patch)));
        }
        let (program, plan, _) = self.node_at(place);
        if let Some(region) = self.region_mut(place) {
            let mut patch = patch;
            region.state.trim(&mut patch);
            region.changes.add(patch.into(), &program.plan(plan).reducers);
        }
        self.finish_region(place, value);
    }

    /// A frame inside a region has failed. Its siblings go on, unless that is not wanted.
    pub(super) fn child_failed(&mut self, id: FrameId, parent: &Parent, error: StepError) {
        let place = (parent.frame, parent.visit);
        let (program, plan, node) = self.node_at(place);
        let Some(region) = self.region_mut(place) else { return };
        region.running.remove(&parent.name);
        region.failed.insert(parent.name.clone(), id);
        if region.ending.is_some() {
            return self.end_if_idle(place);
        }
        let name = &parent.name;
        match &program.plan(plan).node(node).kind {
            Kind::Each(each) if each.fail_fast => {
                self.stop_region(place, Ending::Fail(about("item", name, &error)));
            }
            Kind::Each(_) => self.fill_fan(place),
            Kind::Parallel(Parallel { strategy: Strategy::Race, .. })
            | Kind::Parallel(Parallel { strategy: Strategy::All, fail_fast: true, .. }) => {
                self.stop_region(place, Ending::Fail(about("branch", name, &error)));
            }
            Kind::Parallel(_) => self.end_if_idle(place),
            Kind::Script(_) => self.call_failed(place, name, &error),
            Kind::Work { .. } | Kind::Decision | Kind::Subgraph { .. } | Kind::Loop { .. } => {
                self.fail_region(place, error);
            }
        }
    }

    /// A region is done: its changes become the result of its visit.
    pub(super) fn finish_region(&mut self, place: Place, output: Value) {
        let (program, plan, node) = self.node_at(place);
        let fits = program.plan(plan).check_output(node, &output);
        let Some(mut region) = self.take_region(place) else { return };
        self.drop_children(&region);
        if let Err(error) = fits {
            // Whoever lost has no part in it any more: only all of it can be tried again.
            region.failed.clear();
            return self.attempt_over(place, Failed { error, was: Was::Region(region) });
        }
        // The changes are applied one by one when the superstep ends; they travel beside the
        // result because a reducer may have to see each of them.
        let visit = &mut self.frame_mut(place.0).active[place.1];
        visit.merged = region.changes;
        visit.inner.clone_from(&region.state.outputs);
        self.settle(place, VisitState::Done(StepResult { output, ..StepResult::default() }));
    }

    pub(super) fn fail_region(&mut self, place: Place, error: StepError) {
        let Some(mut region) = self.take_region(place) else { return };
        region.ending = None;
        region.failed.append(&mut region.waking);
        self.attempt_over(place, Failed { error, was: Was::Region(region) });
    }

    /// Forgets what is inside a region.
    pub(super) fn drop_children(&mut self, region: &Region) {
        let Region { running, failed, waking, .. } = region;
        for child in running.values().chain(failed.values()).chain(waking.values()) {
            self.drop_child(*child);
        }
    }

    /// Forgets a frame and what is inside it; gives it.
    pub(super) fn drop_child(&mut self, child: FrameId) -> Option<Frame> {
        let frame = self.frames.remove(&child)?;
        for visit in &frame.active {
            if let Some(inner) = visit.state.region() {
                self.drop_children(inner);
            }
        }
        Some(frame)
    }

    /// Asks again for what a region was waiting for when it failed, and goes on.
    pub(super) fn resume_region(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let Some(region) = self.region_mut(place) else { return };
        match (region.wait.clone(), &plan.node(node).kind) {
            (Some(Wait::Input), Kind::Subgraph { input: Some(call), .. }) => {
                self.evaluate(place, call.clone(), vec![]);
            }
            (Some(Wait::Until), _) => self.ask_until(place),
            (Some(Wait::Output(value)), Kind::Subgraph { output: Some(call), .. })
            | (Some(Wait::Output(value)), Kind::Parallel(Parallel { merge: Some(call), .. })) => {
                self.evaluate(place, call.clone(), vec![value]);
            }
            (Some(Wait::Reduce { key, change }), _) => {
                if let Some(crate::Reducer::Call(call)) = plan.reducers.get(&key) {
                    let old = region.state.get(key.as_str()).cloned().unwrap_or_default();
                    self.evaluate(place, call.clone(), vec![old, change]);
                }
            }
            (_, Kind::Each(_)) if region.absorbing.is_empty() => self.fill_fan(place),
            (_, Kind::Parallel(_)) => self.end_if_idle(place),
            (_, Kind::Script(_)) => self.resume_script(place),
            (_, _) => self.absorb(place),
        }
    }
}

fn about(what: &str, name: &str, error: &StepError) -> StepError {
    let message = format!("{what} `{name}` failed: {}", error.message);
    StepError { message, thrown: None, ..error.clone() }
}
