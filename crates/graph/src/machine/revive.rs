//! Another chance for a failed run: what failed is tried again, what is done stays done.

use super::frame::{Failed, LeafPhase, VisitState};
use super::region::Inside;
use super::{FrameId, Machine, Misfit, Place};
use crate::{How, StepResult};

impl Machine {
    pub(super) fn revive(&mut self) -> Result<(), Misfit> {
        match self.outcome.take() {
            Some(Err(_)) => {
                self.revive_frame(0);
                Ok(())
            }
            other => {
                self.outcome = other;
                Err(Misfit("only a failed run can be given another chance".to_owned()))
            }
        }
    }

    fn revive_frame(&mut self, id: FrameId) {
        for place in 0..self.frame(id).active.len() {
            let visit = &mut self.frame_mut(id).active[place];
            let state = std::mem::replace(&mut visit.state, VisitState::Choosing);
            match state {
                VisitState::Failed(failed) => self.revive_visit((id, place), *failed),
                VisitState::Leaf(_)
                | VisitState::Region(_)
                | VisitState::Done(_)
                | VisitState::Choosing
                | VisitState::Routed(_) => self.frame_mut(id).active[place].state = state,
            }
        }
        // Visits were revived one by one, and one that is done at once may have come before
        // another that had failed: only now is it clear whether the superstep has ended.
        self.settled.retain(|frame| *frame != id);
        if self.frame(id).is_settled() {
            self.settled.push_back(id);
        }
    }

    fn revive_visit(&mut self, place: Place, failed: Failed) {
        let frame = self.frame(place.0);
        let visit = &frame.active[place.1];
        let node = self.program.plan(frame.plan).node(visit.node);
        if let Some(target) = &node.on_revive {
            let result = StepResult::default().goto(target.clone());
            return self.settle(place, VisitState::Done(result));
        }
        let step = visit.step.clone();
        match (failed.leaf, failed.region) {
            (Some(mut leaf), _) => {
                leaf.attempt += 1;
                (leaf.failures, leaf.lost) = (0, 0);
                (leaf.how, leaf.phase) = (How::Revived, LeafPhase::Queued);
                self.frame_mut(place.0).active[place.1].state = VisitState::Leaf(leaf);
                self.open.insert(step.clone(), place);
                self.queue.push_back(step);
            }
            (None, Some(mut region)) => {
                let children: Vec<FrameId> = match &mut region.inside {
                    Inside::Single { child, .. } => vec![*child],
                    Inside::Fan(fan) => {
                        let failed = std::mem::take(&mut fan.failed);
                        fan.running.extend(failed.clone());
                        failed.into_values().collect()
                    }
                };
                self.frame_mut(place.0).active[place.1].state = VisitState::Region(region);
                for child in children {
                    self.revive_frame(child);
                }
            }
            (None, None) => {
                self.frame_mut(place.0).active[place.1].state =
                    VisitState::Leaf(super::frame::Leaf::first());
                self.enter(place);
            }
        }
    }
}
