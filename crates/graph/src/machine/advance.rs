//! From one superstep of a frame to the next.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::frame::{Failed, Frame, Leaf, Visit, VisitState};
use super::{Effect, FrameId, Machine, Place};
use crate::state::Changes;
use crate::{Kind, Node, OnError, StepError, StepId, StepResult, code};

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
        // Only visits that a ceiling refuses start nothing. A frame that has gone past every node
        // without starting anything would go round for ever.
        if frame.idle > plan.nodes.len() + 1 {
            let message = "it went round without being able to start anything";
            let error = StepError::new(code::CEILING, message);
            return self.frame_failed(id, error);
        }
        frame.active = nodes
            .iter()
            .map(|node| {
                let visit = frame.visits.entry(*node).or_insert(0);
                *visit += 1;
                let step = StepId::of(&frame.scope, &plan.node(*node).id, *visit);
                Visit {
                    node: *node,
                    step,
                    state: VisitState::Leaf(Leaf::first()),
                    merged: Changes::default(),
                }
            })
            .collect();
        for visit in 0..nodes.len() {
            self.enter((id, visit));
        }
    }

    /// Begins a visit, unless a ceiling forbids it.
    pub(super) fn enter(&mut self, place: Place) {
        let program = Arc::clone(&self.program);
        let frame = self.frame(place.0);
        let visit = &frame.active[place.1];
        let node = program.plan(frame.plan).node(visit.node);
        let step = visit.step.clone();
        if let Some((error, hard)) = self.ceiling(place, node) {
            let failed = Failed { error, leaf: None, region: None };
            return self.fail(place, failed, hard);
        }
        match &node.kind {
            Kind::Work { .. } => {
                self.not_idle(place.0);
                self.open.insert(step.clone(), place);
                self.queue.push_back(step);
            }
            Kind::Subgraph { .. } | Kind::Loop { .. } | Kind::Each(_) => {
                self.enter_region(place);
            }
        }
    }

    fn not_idle(&mut self, id: FrameId) {
        let mut next = Some(id);
        while let Some(id) = next {
            let frame = self.frame_mut(id);
            frame.idle = 0;
            next = frame.parent.as_ref().map(|parent| parent.frame);
        }
    }

    /// Counts a visit; the error says which limit it would exceed. A limit of the whole run is
    /// hard: no rule of the node can turn it into something else, so a run always ends.
    fn ceiling(&mut self, place: Place, node: &Node) -> Option<(StepError, bool)> {
        let max_steps = self.program.graph().max_steps.unwrap_or(u64::MAX);
        if self.steps >= max_steps {
            let message = format!("the run has used all of its {max_steps} steps");
            return Some((StepError::new(code::CEILING, message), true));
        }
        let frame = self.frame(place.0);
        let key = (frame.plan, frame.active[place.1].node);
        if let Some(limit) = &node.max_visits {
            let limit = Self::count(limit, &frame.state).unwrap_or(u64::MAX);
            let so_far = self.visits.entry(key).or_insert(0);
            if *so_far >= limit {
                let message = format!("node `{}` has used all of its {limit} visits", node.id);
                return Some((StepError::new(code::CEILING, message), false));
            }
            *so_far += 1;
        }
        self.steps += 1;
        None
    }

    /// Ends a visit one way or the other, and the superstep if it was the last.
    pub(super) fn settle(&mut self, place: Place, state: VisitState) {
        let frame = self.frame_mut(place.0);
        frame.active[place.1].state = state;
        if frame.is_settled() {
            self.settled.push_back(place.0);
        }
    }

    pub(super) fn fail_leaf(&mut self, place: Place, error: StepError) {
        let leaf = self.leaf(place).cloned();
        self.fail(place, Failed { error, leaf, region: None }, false);
    }

    /// A visit has failed for good; the node's rule says what that means.
    pub(super) fn fail(&mut self, place: Place, failed: Failed, hard: bool) {
        let frame = self.frame(place.0);
        let node = self.program.plan(frame.plan).node(frame.active[place.1].node);
        let goto = match &node.on_error {
            OnError::Goto(target) if !hard => Some(target.clone()),
            OnError::Skip if !hard => None,
            OnError::Abort | OnError::Goto(_) | OnError::Skip => {
                return self.settle(place, VisitState::Failed(Box::new(failed)));
            }
        };
        if let Some(region) = failed.region {
            self.drop_children(&region);
        }
        let output = json!({ "error": failed.error });
        let result = StepResult { output, goto, ..StepResult::default() };
        self.settle(place, VisitState::Done(result));
    }

    /// Applies what the superstep changed, in graph order, and asks which way each visit goes.
    pub(super) fn close_superstep(&mut self, id: FrameId) {
        if let Some(error) = self.frame(id).failure() {
            let error = error.clone();
            return self.frame_failed(id, error);
        }
        if let Err((visit, problem)) = self.merge_superstep(id) {
            let node = self.frame(id).active[visit].step.node().to_owned();
            let error = StepError::new(code::REDUCER, format!("node `{node}`, {problem}"));
            return self.settle((id, visit), failed_without_work(error));
        }
        self.route_superstep(id);
    }

    fn merge_superstep(&mut self, id: FrameId) -> Result<(), (usize, String)> {
        let program = Arc::clone(&self.program);
        let parent = self.frame(id).parent.as_ref().map(|parent| self.frame(parent.frame).plan);
        let frame = self.frame_mut(id);
        let plan = program.plan(frame.plan);
        let layer = Arc::make_mut(&mut frame.state);
        for (place, visit) in frame.active.iter_mut().enumerate() {
            let VisitState::Done(result) = &mut visit.state else { continue };
            let mut changes = std::mem::take(&mut visit.merged);
            changes.add(std::mem::take(&mut result.patch).into(), &plan.reducers);
            layer.apply(&changes, &plan.reducers).map_err(|problem| (place, problem))?;
            let output = Arc::new(std::mem::replace(&mut result.output, Value::Null));
            layer.outputs.insert(plan.node(visit.node).id.clone(), Arc::clone(&output));
            frame.output = output;
            if let Some(parent) = parent {
                frame.changes.add(changes, &program.plan(parent).reducers);
            }
        }
        Ok(())
    }

    fn route_superstep(&mut self, id: FrameId) {
        for place in 0..self.frame(id).active.len() {
            self.route_visit(id, place);
        }
        self.begin_next_superstep(id);
    }

    fn route_visit(&mut self, id: FrameId, place: usize) {
        let program = Arc::clone(&self.program);
        let frame = self.frame_mut(id);
        let plan = program.plan(frame.plan);
        let visit = &mut frame.active[place];
        let VisitState::Done(result) = &mut visit.state else { return };
        if let Some(target) = result.goto.take() {
            visit.state = plan.find(&target).map_or_else(
                || {
                    let message =
                        format!("`{}` went to `{target}`, which is not there", visit.step);
                    failed_without_work(StepError::new(code::NO_SUCH_NODE, message))
                },
                |target| VisitState::Routed(vec![target]),
            );
            return;
        }
        let options = plan.conditions(visit.node);
        if options.is_empty() {
            visit.state = VisitState::Routed(vec![]);
            return self.follow_plain_edges(id, place);
        }
        visit.state = VisitState::Choosing;
        let (step, node) = (visit.step.clone(), visit.node);
        self.open.insert(step.clone(), (id, place));
        let targets = plan.leaving(node).filter(|(_, edge)| edge.when.is_some());
        let targets = targets.map(|(_, edge)| plan.node(edge.to).id.clone()).collect();
        self.effects.push(Effect::Choose { step, options, targets });
    }

    /// Adds the edges without a condition to where a visit goes.
    fn follow_plain_edges(&mut self, id: FrameId, place: usize) {
        let program = Arc::clone(&self.program);
        let frame = self.frame_mut(id);
        let visit = &mut frame.active[place];
        let VisitState::Routed(targets) = &mut visit.state else { return };
        for (number, edge) in program.plan(frame.plan).leaving(visit.node) {
            if edge.when.is_some() {
                continue;
            }
            if edge.from.len() > 1 {
                let arrived = frame.arrived.entry(number).or_default();
                arrived.insert(visit.node);
                if arrived.len() < edge.from.len() {
                    continue;
                }
                frame.arrived.remove(&number);
            }
            targets.push(edge.to);
        }
    }

    /// The conditions after a visit were evaluated.
    pub(super) fn chosen(&mut self, place: Place, chosen: Option<u32>) {
        let program = Arc::clone(&self.program);
        let frame = self.frame_mut(place.0);
        let visit = &mut frame.active[place.1];
        if matches!(visit.state, VisitState::Region(_)) {
            return self.round_judged(place, chosen.is_some());
        }
        let conditional =
            program.plan(frame.plan).leaving(visit.node).filter(|(_, e)| e.when.is_some());
        let target = chosen.and_then(|n| conditional.map(|(_, edge)| edge.to).nth(n as usize));
        visit.state = VisitState::Routed(target.into_iter().collect());
        self.follow_plain_edges(place.0, place.1);
        self.begin_next_superstep(place.0);
    }

    /// Begins the next superstep once every visit knows where it goes, or ends the frame.
    fn begin_next_superstep(&mut self, id: FrameId) {
        let mut targets = BTreeSet::new();
        for visit in &self.frame(id).active {
            match &visit.state {
                VisitState::Routed(nodes) => targets.extend(nodes.iter().copied()),
                VisitState::Failed(failed) => {
                    let error = failed.error.clone();
                    return self.frame_failed(id, error);
                }
                VisitState::Leaf(_)
                | VisitState::Region(_)
                | VisitState::Done(_)
                | VisitState::Choosing => return,
            }
        }
        if targets.is_empty() {
            self.frame_done(id);
        } else {
            self.activate(id, &targets);
        }
    }

    fn frame_done(&mut self, id: FrameId) {
        match self.frame(id).parent.clone() {
            None => {
                self.outcome = Some(Ok(()));
                self.effects.push(Effect::Finish(Ok(())));
            }
            Some(parent) => self.child_done(id, &parent),
        }
    }

    fn frame_failed(&mut self, id: FrameId, error: StepError) {
        match self.frame(id).parent.clone() {
            None => {
                self.outcome = Some(Err(error.clone()));
                self.effects.push(Effect::Finish(Err(error)));
            }
            Some(parent) => self.child_failed(id, &parent, error),
        }
    }
}

fn failed_without_work(error: StepError) -> VisitState {
    VisitState::Failed(Box::new(Failed { error, leaf: None, region: None }))
}
