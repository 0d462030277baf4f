//! Another chance for a failed run: what failed is tried again, what is done stays done.

use super::frame::{Failed, LeafPhase, VisitState, Was};
use super::region::{Ending, Region};
use super::{FrameId, Machine, Misfit, Place};
use crate::{Goto, How, Kind, Parallel, Signal, StepResult, Strategy, code};

impl Machine {
    pub(super) fn revive(&mut self) -> Result<(), Misfit> {
        match self.outcome.take() {
            Some(Err(_)) => {
                self.forget_used();
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
        let frame = self.frame_mut(id);
        frame.stopping = false;
        frame.idle = 0;
        frame.error = None;
        let failed = |state: &VisitState| matches!(state, VisitState::Failed(_));
        // Counted before the first is revived: one that is done at once must not be taken for
        // the last while others are still to come.
        frame.pending = frame.active.iter().filter(|visit| failed(&visit.state)).count();
        if frame.pending == 0 {
            return self.settled.push_back(id);
        }
        for place in 0..frame.active.len() {
            let visit = &mut self.frame_mut(id).active[place];
            if !failed(&visit.state) {
                continue;
            }
            visit.failures = 0;
            let state = std::mem::replace(&mut visit.state, VisitState::Resting);
            if self.frame(id).stopping {
                // One that failed again at once has stopped the others.
                self.settle((id, place), state);
            } else if let VisitState::Failed(failed) = state {
                self.revive_visit((id, place), *failed);
            }
        }
    }

    fn revive_visit(&mut self, place: Place, failed: Failed) {
        let (program, plan, node) = self.node_at(place);
        let node = program.plan(plan).node(node);
        // One that is done, and only did not know where to go, is asked that again.
        if let Some(target) = &node.on_revive
            && !matches!(failed.was, Was::Choosing)
        {
            if let Was::Region(region) = &failed.was {
                self.drop_children(region);
            }
            let result =
                StepResult { goto: Some(Goto::One(target.clone())), ..StepResult::default() };
            return self.settle(place, VisitState::Done(result));
        }
        // A fan that found no list, or no number, has more to do once it does.
        let unread = matches!(node.kind, Kind::Each(_)) && failed.error.code == code::WRONG_VALUE;
        match failed.was {
            Was::Outside => self.enter(place),
            Was::Nothing => self.begin_attempt(place),
            Was::Leaf(_) if matches!(node.kind, Kind::Decision) => self.begin_attempt(place),
            Was::Leaf(mut leaf) => {
                // A step that was never started is started for the first time.
                if leaf.phase != LeafPhase::Queued {
                    leaf.attempt += 1;
                    leaf.how = How::Revived;
                }
                (leaf.lost, leaf.delay_ms, leaf.phase) = (0, 0, LeafPhase::Queued);
                self.frame_mut(place.0).active[place.1].state = VisitState::Leaf(leaf);
                let step = self.await_step(place);
                self.queue.push_back(step);
            }
            Was::Region(region) if unread => self.resume_failed(place, region),
            Was::Region(region) if matches!(node.kind, Kind::Script(_)) => {
                self.revive_script(place, region);
            }
            Was::Region(region) => self.revive_region(place, region, &node.kind),
            Was::Asking(result) => {
                let asks = |signal: &&Signal| signal.kind == Signal::HUMAN;
                let signal = result.signals.iter().find(asks).cloned();
                self.frame_mut(place.0).active[place.1].state = VisitState::Asking(result);
                if let Some(signal) = signal {
                    self.ask(place, signal);
                }
            }
            Was::Choosing => {
                self.frame_mut(place.0).active[place.1].state = VisitState::Choosing;
                self.choose(place);
            }
        }
    }

    fn revive_region(&mut self, place: Place, mut region: Box<Region>, kind: &Kind) {
        let undone = region.wait.is_some() || !region.absorbing.is_empty();
        if !undone && region.failed.is_empty() {
            // All of it was done, and what came of it did not fit: only all of it can be tried
            // again.
            self.frame_mut(place.0).active[place.1].attempt += 1;
            return self.begin_attempt(place);
        }
        let one_wins = matches!(
            kind,
            Kind::Parallel(Parallel { strategy: Strategy::Race | Strategy::Any, .. })
        );
        if one_wins && undone {
            // A race that was won stays won.
            self.drop_children(&region);
            region.failed.clear();
            region.ending = Some(Ending::Join);
        }
        self.resume_failed(place, region);
    }

    /// Goes on with a region where it was.
    fn resume_failed(&mut self, place: Place, mut region: Box<Region>) {
        region.waking = std::mem::take(&mut region.failed);
        region.idle = 0;
        self.frame_mut(place.0).active[place.1].state = VisitState::Region(region);
        self.limit(place);
        self.wake(place);
        self.resume_region(place);
    }

    /// Gives frames that have failed their other chance, in a fan as many as there are workers.
    pub(super) fn wake(&mut self, place: Place) {
        // What is wrong with the limit is said when the fan is filled.
        let Ok(limit) = self.workers(place) else { return };
        while let Some(region) = self.region_mut(place) {
            if region.running.len() >= limit || region.ending.is_some() {
                return;
            }
            let Some((name, child)) = region.waking.pop_first() else { return };
            region.running.insert(name, child);
            self.revive_frame(child);
        }
    }
}
