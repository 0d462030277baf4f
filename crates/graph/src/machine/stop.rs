//! Stopping what is not wanted any more: losers of a race, what runs too long, what runs beside
//! a failure.
//!
//! Nothing is forgotten at once. A step that is being carried out is told to stop and comes back
//! when nothing of it is left; the frames around it then end one after the other, as if it had
//! failed. So whatever is recorded next is recorded after the last of them is gone.

use super::frame::{Failed, LeafPhase, VisitState, Was};
use super::leaf::stopped;
use super::region::Ending;
use super::{Effect, FrameId, Machine, Misfit, Place, unexpected};
use crate::{StepError, StepId, code};

impl Machine {
    /// What runs inside a node has taken longer than it may.
    pub(super) fn timed_out(&mut self, step: &StepId) -> Result<(), Misfit> {
        let place = *self.limited.get(step).ok_or_else(|| unexpected(step))?;
        let (program, plan, node) = self.node_at(place);
        let limit = program.plan(plan).node(node).timeout_ms.unwrap_or_default();
        let message = format!("it took longer than {limit} ms");
        self.stop_region(place, Ending::Fail(StepError::new(code::TIMEOUT, message)));
        Ok(())
    }

    /// Stops everything inside a region, which then ends as it is told.
    pub(super) fn stop_region(&mut self, place: Place, ending: Ending) {
        let Some(region) = self.region_mut(place) else { return };
        // A failure from outside beats a winner inside; the first failure beats later ones.
        if !matches!(region.ending, Some(Ending::Fail(_))) {
            let gives_up = matches!(ending, Ending::Fail(_));
            region.ending = Some(ending);
            let waits = region.wait.is_some();
            let children: Vec<FrameId> = region.running.values().copied().collect();
            if gives_up && waits {
                let step = self.frame(place.0).active[place.1].step.clone();
                self.forget(&step);
            }
            for child in children {
                self.stop_frame(child);
            }
        }
        self.end_if_idle(place);
    }

    /// Stops a frame where it is.
    pub(super) fn stop_frame(&mut self, id: FrameId) {
        let frame = self.frame_mut(id);
        if frame.stopping {
            return;
        }
        frame.stopping = true;
        if let Some(merging) = &frame.merging {
            let step = frame.active[merging.visit].step.clone();
            self.forget(&step);
        }
        // The last visit to be stopped settles the frame.
        let all_had_ended = self.frame(id).pending == 0;
        for visit in 0..self.frame(id).active.len() {
            self.stop_visit((id, visit));
        }
        if all_had_ended && !self.settled.contains(&id) {
            self.settled.push_back(id);
        }
    }

    /// Stops the decisions of a frame that has failed before their turn came.
    pub(super) fn stop_decisions(&mut self, id: FrameId) {
        for visit in 0..self.frame(id).active.len() {
            let visit = &mut self.frame_mut(id).active[visit];
            if let VisitState::Leaf(leaf) = &visit.state
                && visit.state.is_due()
            {
                let failed = Failed { error: stopped(), was: Was::Leaf(leaf.clone()) };
                let step = visit.step.clone();
                visit.state = VisitState::Failed(Box::new(failed));
                self.forget(&step);
            }
        }
    }

    fn stop_visit(&mut self, place: Place) {
        let visit = &mut self.frame_mut(place.0).active[place.1];
        let step = visit.step.clone();
        if let VisitState::Region(_) = &visit.state {
            return self.stop_region(place, Ending::Fail(stopped()));
        }
        if let VisitState::Leaf(leaf) = &mut visit.state
            && leaf.phase.is_live()
        {
            if leaf.phase == LeafPhase::Running {
                leaf.phase = LeafPhase::Cancelling;
                let attempt = leaf.attempt;
                self.effects.push(Effect::Cancel { step, attempt });
            }
            return;
        }
        // Only one whose turn has not come yet is not waited for.
        let entered = self.open.contains_key(&step);
        let visit = &mut self.frame_mut(place.0).active[place.1];
        let was = match std::mem::replace(&mut visit.state, VisitState::Resting) {
            VisitState::Leaf(_) if !entered => Was::Outside,
            VisitState::Leaf(leaf) => Was::Leaf(leaf),
            VisitState::Asking(result) => Was::Asking(result),
            VisitState::Judging(failed, _) => failed.was,
            VisitState::Choosing => Was::Choosing,
            VisitState::Resting => Was::Nothing,
            settled @ (VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Routed(_)
            | VisitState::Region(_)) => {
                visit.state = settled;
                return;
            }
        };
        self.forget(&step);
        self.give_up(place, Failed { error: stopped(), was });
    }
}
