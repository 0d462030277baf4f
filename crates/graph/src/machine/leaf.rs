//! A step that the caller carries out: how it starts, and how it comes back.

use serde_json::{Map, Value};

use super::frame::{Failed, Leaf, LeafPhase, VisitState, Was};
use super::{Effect, Machine, Misfit, Place, Start, unexpected};
use crate::{How, Kind, OnLost, Signal, StepError, StepId, StepResult, code};

/// After this many lost attempts in a row that got nowhere a step has failed.
const MAX_LOST: u32 = 5;

impl Machine {
    pub(super) fn finished(
        &mut self,
        step: &StepId,
        attempt: u32,
        mut result: StepResult,
    ) -> Result<(), Misfit> {
        // A step that was being stopped may have finished first; then it is done for good.
        let (place, phase) = self.close_live(step, attempt)?;
        self.frame(place.0).state.trim(&mut result.patch);
        let signal = result.signals.iter().find(|signal| signal.kind == Signal::HUMAN).cloned();
        match signal.filter(|_| phase == LeafPhase::Running) {
            Some(signal) => {
                self.frame_mut(place.0).active[place.1].state = VisitState::Asking(result);
                self.ask(place, signal);
            }
            None => self.settle(place, VisitState::Done(result)),
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, place: Place, signal: Signal) {
        let step = self.await_step(place);
        self.effects.push(Effect::Ask { step, signal });
    }

    /// The answer becomes a part of what the step returned.
    pub(super) fn answered(&mut self, step: &StepId, answer: Value) -> Result<(), Misfit> {
        let place = *self.open.get(step).ok_or_else(|| unexpected(step))?;
        let state = &mut self.frame_mut(place.0).active[place.1].state;
        let VisitState::Asking(result) = state else { return Err(unexpected(step)) };
        let mut result = std::mem::take(result);
        let mut output = match result.output {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Map::from_iter([("result".to_owned(), other)])
            }
        };
        output.insert("answer".to_owned(), answer);
        result.output = Value::Object(output);
        self.open.remove(step);
        self.settle(place, VisitState::Done(result));
        Ok(())
    }

    pub(super) fn attempt_failed(
        &mut self,
        step: &StepId,
        attempt: u32,
        error: StepError,
    ) -> Result<(), Misfit> {
        let (place, phase) = self.close_live(step, attempt)?;
        if phase == LeafPhase::Cancelling {
            self.leaf_failed(place, stopped());
            return Ok(());
        }
        if error.code == code::CEILING {
            self.exhaust(&error);
        }
        self.leaf_failed(place, error);
        Ok(())
    }

    /// A step was stopped and is gone.
    pub(super) fn cancelled(&mut self, step: &StepId, attempt: u32) -> Result<(), Misfit> {
        let place = self.open.get(step).copied();
        let cancelling = |leaf: &Leaf| leaf.phase == LeafPhase::Cancelling;
        if !place.and_then(|place| self.leaf(place)).is_some_and(cancelling) {
            return Err(unexpected(step));
        }
        self.attempt_failed(step, attempt, stopped())
    }

    pub(super) fn attempt_lost(
        &mut self,
        step: &StepId,
        attempt: u32,
        progressed: bool,
    ) -> Result<(), Misfit> {
        let (place, phase) = self.close_live(step, attempt)?;
        if phase == LeafPhase::Cancelling {
            self.leaf_failed(place, stopped());
            return Ok(());
        }
        let (program, plan, node) = self.node_at(place);
        let on_lost = program.plan(plan).node(node).on_lost;
        let Some(leaf) = self.leaf_mut(place) else { return Ok(()) };
        leaf.lost = if progressed { 0 } else { leaf.lost + 1 };
        if leaf.lost >= MAX_LOST {
            let message = format!("it was cut off {MAX_LOST} times without getting anywhere");
            self.leaf_failed(place, StepError::new(code::LOST, message));
            return Ok(());
        }
        match on_lost {
            OnLost::Continue => self.start_again(place, How::Continued, 0),
            OnLost::RunAgain => self.start_again(place, How::RunAgain, 0),
            OnLost::Ask => {
                leaf.phase = LeafPhase::Asking;
                let attempt = leaf.attempt;
                let step = self.await_step(place);
                self.effects.push(Effect::AskLost { step, attempt });
            }
        }
        Ok(())
    }

    pub(super) fn lost_settled(&mut self, step: &StepId, again: bool) -> Result<(), Misfit> {
        let asking = |state: &VisitState| matches!(state, VisitState::Leaf(leaf) if leaf.phase == LeafPhase::Asking);
        let place = self.close(step, asking)?;
        if again {
            self.start_again(place, How::RunAgain, 0);
        } else {
            let error = StepError::new(code::LOST, "it was cut off and not run again");
            self.leaf_failed(place, error);
        }
        Ok(())
    }

    fn leaf_failed(&mut self, place: Place, error: StepError) {
        let was = self.leaf(place).cloned().map_or(Was::Nothing, Was::Leaf);
        self.attempt_over(place, Failed { error, was });
    }

    /// Takes a step that is being carried out off the books.
    fn close_live(&mut self, step: &StepId, attempt: u32) -> Result<(Place, LeafPhase), Misfit> {
        let place = *self.open.get(step).ok_or_else(|| unexpected(step))?;
        match self.leaf(place).map(|leaf| (leaf.phase, leaf.attempt)) {
            Some((phase, running)) if phase.is_live() && running == attempt => {
                self.open.remove(step);
                self.running -= u32::from(self.takes_place(place));
                Ok((place, phase))
            }
            _ => Err(unexpected(step)),
        }
    }

    pub(super) fn leaf_mut(&mut self, place: Place) -> Option<&mut Leaf> {
        let state = &mut self.frames.get_mut(&place.0)?.active.get_mut(place.1)?.state;
        if let VisitState::Leaf(leaf) = state { Some(leaf) } else { None }
    }

    /// Starts a step once more. It keeps its place among the running ones, unless that was given
    /// to another while somebody was asked about it: then it is the first to get the next.
    pub(super) fn start_again(&mut self, place: Place, how: How, delay_ms: u64) {
        let Some(leaf) = self.leaf_mut(place) else { return };
        leaf.attempt += 1;
        leaf.how = how;
        leaf.delay_ms = delay_ms;
        leaf.phase = LeafPhase::Queued;
        let step = self.await_step(place);
        self.queue.push_front(step);
    }

    /// Starts as many queued steps as may run.
    pub(super) fn start_queued(&mut self) {
        let limit = self.program.graph().max_concurrency.unwrap_or(u32::MAX);
        while let Some(step) = self.queue.front() {
            let place = self.open.get(step).copied();
            if self.running >= limit && place.is_some_and(|place| self.takes_place(place)) {
                return;
            }
            let Some(step) = self.queue.pop_front() else { return };
            let Some(place) = place else { continue };
            // It may have been stopped while it was queued, and its name used again since.
            if self.leaf(place).is_some_and(|leaf| leaf.phase == LeafPhase::Queued) {
                self.launch(step, place);
            }
        }
    }

    /// Whether a step needs one of the places that `max_concurrency` leaves.
    fn takes_place(&self, place: Place) -> bool {
        let (program, plan, node) = self.node_at(place);
        !matches!(program.plan(plan).node(node).kind, Kind::Work { asks: true, .. })
    }

    /// Starts a step that is waited for, unless a limit of the run forbids it.
    fn launch(&mut self, step: StepId, place: Place) {
        if let Err(error) = self.count_start(place) {
            let was = self.leaf(place).cloned().map_or(Was::Nothing, Was::Leaf);
            self.open.remove(&step);
            return self.give_up(place, Failed { error, was });
        }
        let Some(leaf) = self.leaf_mut(place) else { return };
        leaf.phase = LeafPhase::Running;
        let Leaf { attempt, how, delay_ms, .. } = *leaf;
        self.running += u32::from(self.takes_place(place));
        self.effects.push(Effect::Start(Start { step, attempt, how, delay_ms }));
    }
}

/// Why a step that was stopped has failed.
pub(super) fn stopped() -> StepError {
    StepError::new(code::CANCELLED, "it was stopped because something beside it had ended")
}
