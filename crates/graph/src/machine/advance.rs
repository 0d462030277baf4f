//! From one superstep of a frame to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::frame::{Failed, Frame, Leaf, LeafPhase, Visit, VisitState, Was};
use super::limit::Refusal;
use super::{Effect, FrameId, Machine, Place};
use crate::program::Plan;
use crate::state::Changes;
use crate::{Goto, Kind, StepError, StepId, StepResult, code};

impl Machine {
    /// Adds a frame and starts it.
    pub(super) fn open_frame(&mut self, frame: Frame) {
        let id = self.next_frame;
        self.next_frame += 1;
        let start = self.program.plan(frame.plan).start;
        self.frames.insert(id, frame);
        self.activate(id, &BTreeSet::from([start]));
    }

    /// Begins a superstep.
    fn activate(&mut self, id: FrameId, nodes: &BTreeSet<u32>) {
        let program = Arc::clone(&self.program);
        let frame = self.frame_mut(id);
        let plan = program.plan(frame.plan);
        frame.idle += 1;
        frame.active = nodes
            .iter()
            .map(|node| {
                let visit = frame.visits.entry(*node).or_insert(0);
                *visit += 1;
                let step = StepId::of(&frame.scope, &plan.node(*node).id, *visit);
                Visit {
                    node: *node,
                    step,
                    attempt: 1,
                    failures: 0,
                    state: VisitState::Leaf(Leaf::first()),
                    merged: Changes::default(),
                    inner: BTreeMap::new(),
                }
            })
            .collect();
        frame.pending = nodes.len();
        for visit in 0..nodes.len() {
            // One that failed at once may have stopped those after it.
            if self.leaf((id, visit)).is_some() {
                self.enter((id, visit));
            }
        }
    }

    /// Begins a visit, unless a ceiling forbids it.
    pub(super) fn enter(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        match self.count_visit(place, program.plan(plan).node(node)) {
            Err(Refusal::Hard(error)) => self.give_up(place, Failed::outside(error)),
            Err(Refusal::Soft(error)) => self.failed_for_good(place, Failed::outside(error)),
            Ok(()) => self.begin_attempt(place),
        }
    }

    /// Begins what a visit is for.
    pub(super) fn begin_attempt(&mut self, place: Place) {
        let (program, plan, number) = self.node_at(place);
        let plan = program.plan(plan);
        if let Err(error) = plan.check_input(number, &self.frame(place.0).state) {
            return self.failed_for_good(place, Failed { error, was: Was::Nothing });
        }
        match &plan.node(number).kind {
            Kind::Work { .. } => {
                self.not_idle(place.0);
                self.frame_mut(place.0).active[place.1].state = VisitState::Leaf(Leaf::first());
                let step = self.await_step(place);
                self.queue.push_back(step);
            }
            Kind::Decision => {
                let leaf = Leaf { phase: LeafPhase::Due, ..Leaf::first() };
                self.frame_mut(place.0).active[place.1].state = VisitState::Leaf(leaf);
                self.await_step(place);
                self.end_superstep_if_due(place.0);
            }
            Kind::Subgraph { .. }
            | Kind::Loop { .. }
            | Kind::Each(_)
            | Kind::Parallel(_)
            | Kind::Script(_) => self.enter_region(place),
        }
    }

    fn not_idle(&mut self, id: FrameId) {
        let mut next = Some(id);
        while let Some(id) = next {
            let frame = self.frame_mut(id);
            frame.idle = 0;
            let Some(parent) = &frame.parent else { return };
            let place = (parent.frame, parent.visit);
            if let Some(region) = self.region_mut(place) {
                region.idle = 0;
            }
            next = Some(place.0);
        }
    }

    /// Ends a visit one way or the other, and the superstep if it was the last.
    pub(super) fn settle(&mut self, place: Place, state: VisitState) {
        let program = Arc::clone(&self.program);
        let failed = matches!(state, VisitState::Failed(_));
        let frame = self.frame_mut(place.0);
        frame.active[place.1].state = state;
        frame.pending -= 1;
        let stops = failed && !frame.stopping && program.plan(frame.plan).fail_fast;
        if frame.pending > 0 && stops {
            return self.stop_frame(place.0);
        }
        self.end_superstep_if_due(place.0);
    }

    /// Ends the superstep of a frame when nothing is left in it but decisions, which see what all
    /// others have changed.
    fn end_superstep_if_due(&mut self, id: FrameId) {
        if self.frame(id).only_decisions_left() && !self.settled.contains(&id) {
            self.settled.push_back(id);
        }
    }

    /// Applies what the superstep changed, in graph order, and asks which way each visit goes.
    pub(super) fn close_superstep(&mut self, id: FrameId) {
        let Some(frame) = self.frames.get(&id) else { return };
        let stopped = frame.stopping.then(super::leaf::stopped);
        if let Some(error) = frame.failure().cloned().or(stopped) {
            return self.frame_failed(id, error);
        }
        self.merge_superstep(id);
    }

    /// Finds out where every visit goes.
    pub(super) fn route_superstep(&mut self, id: FrameId) {
        // Each is counted before it is asked, so that none is taken for the last too early.
        let frame = self.frame_mut(id);
        let mut places = vec![];
        for (place, visit) in frame.active.iter_mut().enumerate() {
            if let VisitState::Leaf(leaf) = &mut visit.state
                && leaf.phase == LeafPhase::Due
            {
                leaf.phase = LeafPhase::Choosing;
                places.push(place);
            } else if visit.state.is_done() {
                places.push(place);
            }
        }
        frame.pending = places.len();
        if places.is_empty() {
            // The run was revived when all of that was known already.
            return self.next_superstep(id);
        }
        for place in places {
            self.route_visit((id, place));
        }
    }

    fn route_visit(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let visit = &mut self.frame_mut(place.0).active[place.1];
        if let VisitState::Leaf(_) = &visit.state {
            return self.choose(place);
        }
        let VisitState::Done(result) = &mut visit.state else { return };
        if let Some(goto) = result.goto.take() {
            let targets = goto.nodes().iter().map(|target| plan.find(target));
            return match targets.collect::<Option<Vec<u32>>>() {
                Some(targets) => self.routed(place, targets),
                None => {
                    let message = format!("`{}` went to a node that is not there", visit.step);
                    self.cannot_choose(place, StepError::new(code::NO_SUCH_NODE, message));
                }
            };
        }
        if plan.leaving(node).any(|(_, edge)| edge.when.is_some()) {
            visit.state = VisitState::Choosing;
            return self.choose(place);
        }
        self.follow_edges(place, None);
    }

    /// Asks which of the conditions after a visit holds.
    pub(super) fn choose(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let step = self.await_step(place);
        let (options, targets) = plan
            .leaving(node)
            .filter_map(|(_, edge)| Some((edge.when.clone()?, plan.node(edge.to).id.clone())))
            .unzip();
        self.effects.push(Effect::Choose { step, options, targets });
    }

    /// The conditions after a visit, or those of a loop, were evaluated.
    pub(super) fn chosen(&mut self, place: Place, chosen: Option<u32>) {
        let (program, plan, node) = self.node_at(place);
        let plan = program.plan(plan);
        let mut conditional = plan.leaving(node).filter(|(_, edge)| edge.when.is_some());
        let target = chosen.and_then(|n| conditional.nth(n as usize)).map(|(_, edge)| edge.to);
        let state = &self.frame(place.0).active[place.1].state;
        let is_early = state.is_due();
        if matches!(state, VisitState::Region(_)) {
            return self.round_judged(place, chosen.is_some());
        }
        if matches!(state, VisitState::Choosing) {
            return self.follow_edges(place, target);
        }
        let Some(target) = target else {
            let id = &plan.node(node).id;
            let message =
                format!("no condition of the decision `{id}` holds, and it has no `otherwise`");
            let error = StepError::new(code::NO_ROUTE, message);
            return self.choice_failed(place, error);
        };
        let to = plan.node(target).id.clone();
        let output = Value::String(to.to_string());
        if is_early {
            // Chosen before decisions waited for the end of their superstep.
            let goto = Some(Goto::One(to));
            let result = StepResult { output, goto, ..StepResult::default() };
            return self.settle(place, VisitState::Done(result));
        }
        // Seen from the next superstep on, so that all that is chosen in this one sees the same.
        let inner = &mut self.frame_mut(place.0).active[place.1].inner;
        inner.insert(plan.node(node).id.clone(), Arc::new(output));
        self.routed(place, vec![target]);
    }

    /// A decision could not be made.
    pub(super) fn choice_failed(&mut self, place: Place, error: StepError) {
        let was = self.leaf(place).cloned().map_or(Was::Nothing, Was::Leaf);
        self.attempt_over(place, Failed { error, was });
    }

    /// It is not known where a visit goes.
    pub(super) fn cannot_choose(&mut self, place: Place, error: StepError) {
        self.give_up(place, Failed { error, was: Was::Choosing });
    }

    /// Takes the chosen edge, and those without a condition.
    fn follow_edges(&mut self, place: Place, chosen: Option<u32>) {
        let (program, plan, node) = self.node_at(place);
        let frame = self.frame_mut(place.0);
        let mut targets: Vec<u32> = chosen.into_iter().collect();
        for (number, edge) in program.plan(plan).leaving(node) {
            if edge.when.is_some() {
                continue;
            }
            if edge.from.len() > 1 {
                frame.arrived.entry(number).or_default().insert(node);
            } else {
                targets.push(edge.to);
            }
        }
        self.routed(place, targets);
    }

    /// It is known where a visit goes; the next superstep begins once that is true of all.
    fn routed(&mut self, place: Place, targets: Vec<u32>) {
        let frame = self.frame_mut(place.0);
        frame.active[place.1].state = VisitState::Routed(targets);
        frame.pending -= 1;
        if frame.pending > 0 {
            // A decision that is tried again waits for those beside it once more.
            return self.end_superstep_if_due(place.0);
        }
        let skipped = frame.active.iter().any(|visit| visit.state.is_done());
        if frame.stopping || frame.failure().is_some() || skipped {
            return self.settled.push_back(place.0);
        }
        self.next_superstep(place.0);
    }

    fn next_superstep(&mut self, id: FrameId) {
        let program = Arc::clone(&self.program);
        let frame = self.frame_mut(id);
        let mut next = BTreeSet::new();
        for visit in &mut frame.active {
            if !visit.inner.is_empty() {
                let inner = std::mem::take(&mut visit.inner);
                Arc::make_mut(&mut frame.state).outputs.extend(inner);
            }
            if let VisitState::Routed(nodes) = &visit.state {
                next.extend(nodes.iter().copied());
            }
        }
        // All visits arrive before an edge that waits for several is taken: were it taken in
        // between, whoever came after would count for the next time, and order would matter.
        let plan = program.plan(frame.plan);
        let edge = |number: &u32| &plan.edges[*number as usize];
        let is_complete =
            |(number, arrived): &(&u32, &BTreeSet<u32>)| arrived.len() == edge(number).from.len();
        let joined: Vec<u32> =
            frame.arrived.iter().filter(is_complete).map(|(number, _)| *number).collect();
        next.extend(joined.iter().map(|number| edge(number).to));
        if next.is_empty() {
            return match never_joined(frame, plan) {
                Some(error) => self.frame_failed(id, error),
                None => self.frame_done(id),
            };
        }
        // Only visits that a ceiling refuses, and decisions, start nothing. A frame that has gone
        // past every node without starting anything would go round for ever.
        if frame.idle > plan.nodes.len() {
            return self.frame_failed(id, goes_round());
        }
        frame.arrived.retain(|number, arrived| arrived.len() < edge(number).from.len());
        self.activate(id, &next);
    }

    fn frame_done(&mut self, id: FrameId) {
        match (self.frame(id).parent.clone(), &self.used.exhausted) {
            (Some(parent), _) => self.child_done(id, &parent),
            // What met a limit may have lost to something else; the limit was met all the same.
            (None, Some(error)) => self.frame_failed(id, error.clone()),
            (None, None) => {
                self.outcome = Some(Ok(()));
                self.effects.push(Effect::Finish(Ok(())));
            }
        }
    }

    pub(super) fn frame_failed(&mut self, id: FrameId, error: StepError) {
        self.stop_decisions(id);
        let frame = self.frame_mut(id);
        frame.error = Some(error.clone());
        match frame.parent.clone() {
            None => {
                let error = self.used.exhausted.clone().unwrap_or(error);
                self.outcome = Some(Err(error.clone()));
                self.effects.push(Effect::Finish(Err(error)));
            }
            Some(parent) => self.child_failed(id, &parent, error),
        }
    }
}

/// An edge that still waits for nodes that never ran. A node that ran and went elsewhere has left the
/// edge on purpose, and so has a graph that has caught a failure.
fn never_joined(frame: &Frame, plan: &Plan) -> Option<StepError> {
    let has_run = |node: &u32| frame.visits.contains_key(node);
    if plan.catch.as_ref().and_then(|catch| plan.find(catch)).is_some_and(|node| has_run(&node)) {
        return None;
    }
    let names = |nodes: &[u32]| {
        let names = nodes.iter().map(|node| format!("`{}`", plan.node(*node).id));
        names.collect::<Vec<_>>().join(", ")
    };
    frame.arrived.iter().find_map(|(number, arrived)| {
        let edge = &plan.edges[*number as usize];
        let (came, missing): (Vec<u32>, Vec<u32>) =
            edge.from.iter().copied().partition(|node| arrived.contains(node));
        (!came.is_empty() && !missing.iter().any(has_run)).then(|| {
            let to = &plan.node(edge.to).id;
            let message = format!(
                "node `{to}` was never reached: its edge waits for {} and {}, and {} never ran",
                names(&came),
                names(&missing),
                names(&missing),
            );
            StepError::new(code::JOIN, message)
        })
    })
}

/// Why something that can start nothing does not go on for ever.
pub(super) fn goes_round() -> StepError {
    StepError::new(code::CEILING, "it went round without being able to start anything")
}
