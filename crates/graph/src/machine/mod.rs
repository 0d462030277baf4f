//! The machine: what has happened goes in, what to do next comes out.
//!
//! A run is a tree of frames. A [`Frame`] is one graph being run: the nodes of its current
//! superstep and the state they see. A node that holds a graph is a [`Region`] of its frame, and
//! what runs inside it are frames again.

mod advance;
mod frame;
mod region;
mod revive;
mod snapshot;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::graph::Count;
use crate::machine::frame::{Frame, Leaf, LeafPhase, VisitState};
use crate::{
    Condition, How, Node, NodeId, OnLost, Patch, Program, State, StepError, StepId, StepResult,
    code,
};

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A step returned.
    Finished {
        /// Which one.
        step: StepId,
        /// Which attempt.
        attempt: u32,
        /// What it returned.
        result: StepResult,
    },
    /// An attempt failed.
    Failed {
        /// Which one.
        step: StepId,
        /// Which attempt.
        attempt: u32,
        /// Why.
        error: StepError,
    },
    /// An attempt was cut off.
    Lost {
        /// Which one.
        step: StepId,
        /// Which attempt.
        attempt: u32,
        /// Whether it had got anywhere.
        progressed: bool,
    },
    /// The user said what to do about a lost step.
    Settled {
        /// Which one.
        step: StepId,
        /// Whether to run it again; otherwise it has failed.
        again: bool,
    },
    /// The conditions after a step were evaluated.
    Chosen {
        /// Which step.
        step: StepId,
        /// The number of the first that held.
        chosen: Option<u32>,
    },
    /// The state was changed from outside.
    Patched {
        /// The change.
        patch: Patch,
    },
    /// A failed run gets another chance: what failed is tried again, what is done stays done.
    Revived,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Carry out a step.
    Start(Start),
    /// Evaluate these conditions in order on the step's view of the state.
    Choose {
        /// After which step.
        step: StepId,
        /// The conditions.
        options: Vec<Condition>,
        /// Where each of them leads, where they are edges.
        targets: Vec<NodeId>,
    },
    /// Ask the user what to do about a lost step.
    AskLost {
        /// Which one.
        step: StepId,
        /// Which attempt.
        attempt: u32,
    },
    /// The run is over.
    Finish(Result<(), StepError>),
}

/// A step to carry out.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Which one.
    pub step: StepId,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Why.
    pub how: How,
    /// How long to wait first.
    pub delay_ms: u64,
}

/// An input that cannot have happened: the journal is not of this graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit(pub String);

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

/// After this many lost attempts in a row that got nowhere a step has failed.
const MAX_LOST: u32 = 5;

type FrameId = u32;

/// Where a step is: in which frame, and which visit of its superstep.
type Place = (FrameId, usize);

/// A run under way.
#[derive(Clone, Debug)]
pub struct Machine {
    program: Arc<Program>,
    frames: BTreeMap<FrameId, Frame>,
    next_frame: FrameId,
    /// Steps that are waited for.
    open: BTreeMap<StepId, Place>,
    /// Steps that wait for one of the places that `max_concurrency` leaves.
    queue: VecDeque<StepId>,
    running: u32,
    steps: u64,
    /// Visits so far to nodes that have a limit, by graph and node.
    visits: BTreeMap<(u32, u32), u64>,
    outcome: Option<Result<(), StepError>>,
    /// Frames whose superstep has ended, while an input is being applied.
    settled: VecDeque<FrameId>,
    /// What that leads to.
    effects: Vec<Effect>,
}

impl Machine {
    /// Begins a run.
    pub fn start(program: Arc<Program>, state: Patch) -> (Self, Vec<Effect>) {
        let mut machine = Self {
            program,
            frames: BTreeMap::new(),
            next_frame: 0,
            open: BTreeMap::new(),
            queue: VecDeque::new(),
            running: 0,
            steps: 0,
            visits: BTreeMap::new(),
            outcome: None,
            settled: VecDeque::new(),
            effects: vec![],
        };
        let root = Frame::new(0, String::new(), None, State::new(state));
        machine.open_frame(root);
        let effects = machine.carry_on();
        (machine, effects)
    }

    /// Takes in what happened and says what to do next.
    pub fn apply(&mut self, input: Input) -> Result<Vec<Effect>, Misfit> {
        match input {
            Input::Finished { step, attempt, mut result } => {
                let place = self.close_step(&step, attempt)?;
                crate::state::trim(&mut result.patch, &self.frame(place.0).state);
                self.settle(place, VisitState::Done(result));
            }
            Input::Failed { step, attempt, error } => {
                let place = self.close_step(&step, attempt)?;
                self.attempt_failed(place, step, error);
            }
            Input::Lost { step, attempt, progressed } => {
                let place = self.close_step(&step, attempt)?;
                self.attempt_lost(place, step, progressed);
            }
            Input::Settled { step, again } => {
                let place = self.open.remove(&step).ok_or_else(|| unexpected(&step))?;
                if again {
                    self.try_again(place, step, How::RunAgain, 0);
                } else {
                    let error = StepError::new(code::LOST, "it was cut off and not run again");
                    self.fail_leaf(place, error);
                }
            }
            Input::Chosen { step, chosen } => {
                let place = self.open.remove(&step).ok_or_else(|| unexpected(&step))?;
                self.chosen(place, chosen);
            }
            Input::Patched { patch } => self.patch_everywhere(patch)?,
            Input::Revived => self.revive()?,
        }
        Ok(self.carry_on())
    }

    /// What a step returned, judged before it is recorded: a result that does not fit the graph
    /// or the state is a failure of the step.
    pub fn judge(&self, step: &StepId, result: &StepResult) -> Result<(), StepError> {
        let Some((frame, _)) = self.open.get(step) else { return Ok(()) };
        let frame = self.frame(*frame);
        let plan = self.program.plan(frame.plan);
        if let Some(target) = result.goto.as_ref().filter(|target| plan.find(target).is_none()) {
            let message = format!("`{step}` went to `{target}`, which is not in its graph");
            return Err(StepError::new(code::NO_SUCH_NODE, message));
        }
        frame.state.accepts(&result.patch, &plan.reducers).map_err(|problem| {
            StepError::new(code::REDUCER, format!("node `{}`, {problem}", step.node()))
        })
    }

    /// Does everything that follows without anybody's help.
    fn carry_on(&mut self) -> Vec<Effect> {
        while let Some(frame) = self.settled.pop_front() {
            self.close_superstep(frame);
        }
        self.start_queued();
        std::mem::take(&mut self.effects)
    }

    /// The state a step sees.
    pub fn view(&self, step: &StepId) -> Option<Arc<State>> {
        let (frame, visit) = *self.open.get(step)?;
        let frame = self.frames.get(&frame)?;
        match &frame.active.get(visit)?.state {
            VisitState::Region(region) => Some(Arc::clone(&region.state)),
            VisitState::Leaf(_)
            | VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => Some(Arc::clone(&frame.state)),
        }
    }

    /// The node a step visits.
    pub fn node(&self, step: &StepId) -> Option<&Node> {
        let (frame, visit) = *self.open.get(step)?;
        let frame = self.frames.get(&frame)?;
        Some(self.program.plan(frame.plan).node(frame.active.get(visit)?.node))
    }

    /// The steps that were started and have not come back, with their attempts.
    pub fn running(&self) -> Vec<(StepId, u32)> {
        self.open
            .iter()
            .filter_map(|(step, place)| {
                let leaf = self.leaf(*place)?;
                (leaf.phase == LeafPhase::Running).then(|| (step.clone(), leaf.attempt))
            })
            .collect()
    }

    /// The newest state: of the innermost region the run is in.
    pub fn newest(&self) -> Arc<State> {
        let root = self.frame(0);
        let region = root.active.iter().find_map(|visit| match &visit.state {
            VisitState::Region(region) => Some(&region.state),
            VisitState::Failed(failed) => failed.region.as_ref().map(|region| &region.state),
            VisitState::Leaf(_)
            | VisitState::Done(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        });
        Arc::clone(region.unwrap_or(&root.state))
    }

    /// How the run ended, when it has.
    pub fn outcome(&self) -> Option<&Result<(), StepError>> {
        self.outcome.as_ref()
    }

    /// The graph that is run.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn frame(&self, frame: FrameId) -> &Frame {
        &self.frames[&frame]
    }

    #[expect(clippy::expect_used, reason = "a frame is removed only together with its visits")]
    fn frame_mut(&mut self, frame: FrameId) -> &mut Frame {
        self.frames.get_mut(&frame).expect("a frame lives as long as something refers to it")
    }

    fn leaf(&self, place: Place) -> Option<&Leaf> {
        match &self.frames.get(&place.0)?.active.get(place.1)?.state {
            VisitState::Leaf(leaf) => Some(leaf),
            VisitState::Region(_)
            | VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        }
    }

    fn leaf_mut(&mut self, place: Place) -> Option<&mut Leaf> {
        match &mut self.frames.get_mut(&place.0)?.active.get_mut(place.1)?.state {
            VisitState::Leaf(leaf) => Some(leaf),
            VisitState::Region(_)
            | VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        }
    }

    /// Takes a running step off the books.
    fn close_step(&mut self, step: &StepId, attempt: u32) -> Result<Place, Misfit> {
        let place = *self.open.get(step).ok_or_else(|| unexpected(step))?;
        match self.leaf(place) {
            Some(leaf) if leaf.phase == LeafPhase::Running && leaf.attempt == attempt => {}
            _ => return Err(unexpected(step)),
        }
        self.open.remove(step);
        self.running -= 1;
        Ok(place)
    }

    fn attempt_failed(&mut self, place: Place, step: StepId, error: StepError) {
        let frame = self.frame(place.0);
        let retry = &self.program.plan(frame.plan).node(frame.active[place.1].node).retry;
        let failures = self.leaf(place).map_or(0, |leaf| leaf.failures) + 1;
        let worth_it = retry.codes.is_empty() || retry.codes.contains(&error.code);
        if failures >= retry.attempts || !worth_it || error.code == code::CEILING {
            return self.fail_leaf(place, error);
        }
        let exponent = i32::try_from(failures - 1).unwrap_or(i32::MAX);
        let delay_ms = Some(retry.delay_ms as f64 * retry.factor.powi(exponent))
            .filter(|delay| delay.is_finite() && *delay >= 0.0)
            .map_or(u64::MAX, |delay| delay as u64);
        if let Some(leaf) = self.leaf_mut(place) {
            leaf.failures = failures;
        }
        self.try_again(place, step, How::Retried, delay_ms);
    }

    fn attempt_lost(&mut self, place: Place, step: StepId, progressed: bool) {
        let frame = self.frame(place.0);
        let on_lost = self.program.plan(frame.plan).node(frame.active[place.1].node).on_lost;
        let Some(leaf) = self.leaf_mut(place) else { return };
        leaf.lost = if progressed { 0 } else { leaf.lost + 1 };
        if leaf.lost >= MAX_LOST {
            let message = format!("it was cut off {MAX_LOST} times without getting anywhere");
            return self.fail_leaf(place, StepError::new(code::LOST, message));
        }
        match on_lost {
            OnLost::Continue => self.try_again(place, step, How::Continued, 0),
            OnLost::RunAgain => self.try_again(place, step, How::RunAgain, 0),
            OnLost::Ask => {
                leaf.phase = LeafPhase::Asking;
                let attempt = leaf.attempt;
                self.open.insert(step.clone(), place);
                self.effects.push(Effect::AskLost { step, attempt });
            }
        }
    }

    /// Starts a step once more. It keeps its place among the running ones, so it never queues.
    fn try_again(&mut self, place: Place, step: StepId, how: How, delay_ms: u64) {
        let Some(leaf) = self.leaf_mut(place) else { return };
        leaf.phase = LeafPhase::Running;
        leaf.attempt += 1;
        let attempt = leaf.attempt;
        self.running += 1;
        self.open.insert(step.clone(), place);
        self.effects.push(Effect::Start(Start { step, attempt, how, delay_ms }));
    }

    /// Starts as many queued steps as may run.
    fn start_queued(&mut self) {
        let limit = self.program.graph().max_concurrency.unwrap_or(u32::MAX);
        while self.running < limit {
            let Some(step) = self.queue.pop_front() else { return };
            let Some(place) = self.open.get(&step).copied() else { continue };
            let Some(leaf) = self.leaf_mut(place) else { continue };
            leaf.phase = LeafPhase::Running;
            let (attempt, how) = (leaf.attempt, leaf.how);
            self.running += 1;
            self.effects.push(Effect::Start(Start { step, attempt, how, delay_ms: 0 }));
        }
    }

    /// A change from outside reaches every graph that is being run. It is not among the changes
    /// that an inner graph hands up, so it is nowhere applied twice.
    fn patch_everywhere(&mut self, patch: Patch) -> Result<(), Misfit> {
        let changes = patch.into();
        for frame in self.frames.values_mut() {
            let reducers = &self.program.plan(frame.plan).reducers;
            let regions = frame.active.iter_mut().filter_map(|visit| match &mut visit.state {
                VisitState::Region(region) => Some(&mut region.state),
                VisitState::Failed(failed) => failed.region.as_mut().map(|r| &mut r.state),
                VisitState::Leaf(_)
                | VisitState::Done(_)
                | VisitState::Choosing
                | VisitState::Routed(_) => None,
            });
            for state in std::iter::once(&mut frame.state).chain(regions) {
                Arc::make_mut(state).apply(&changes, reducers).map_err(Misfit)?;
            }
        }
        Ok(())
    }

    fn count(count: &Count, state: &State) -> Option<u64> {
        match count {
            Count::Fixed(number) => Some(*number),
            Count::Key(key) => state.get(key.as_str())?.as_u64(),
        }
    }
}

fn unexpected(step: &StepId) -> Misfit {
    Misfit(format!("step {step} is not waited for at this point"))
}

#[cfg(test)]
#[path = "../machine_tests.rs"]
mod tests;
