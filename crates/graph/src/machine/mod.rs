//! The machine: what has happened goes in, what to do next comes out.
//!
//! A run is a tree of frames. A [`Frame`] is one graph being run: the nodes of its current
//! superstep and the state they see. A node that holds graphs is a [`region`] of its frame, and
//! what runs inside it are frames again.
//!
//! | file | what happens there |
//! |---|---|
//! | `exchange` | what goes in and what comes out |
//! | `advance` | from one superstep of a frame to the next |
//! | `merge` | changes meet the state they change |
//! | `limit` | what is counted, and what is refused because of it |
//! | `leaf` | a step the caller carries out: start, finish, loss |
//! | `failure` | an attempt has failed: again, or what the node's rule says |
//! | `region`, `fan`, `join` | what runs inside a node |
//! | `script` | a function that calls graphs and goes on with what they return |
//! | `stop` | losers of a race, what runs too long, what runs beside a failure |
//! | `revive` | another chance for a failed run |
//! | `ahead` | what can still be visited |
//! | `upgrade` | the run goes on with another version of its graph |
//! | `snapshot` | the machine as data |

mod advance;
mod ahead;
mod exchange;
mod failure;
mod fan;
mod frame;
mod history;
mod join;
mod leaf;
mod limit;
mod merge;
mod region;
mod revive;
mod script;
mod snapshot;
mod stop;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

pub use exchange::{Effect, Input, Misfit, Start};
pub use history::{Evaluation, Issued};
pub use script::OpenScript;

use crate::graph::INHERIT;
use crate::machine::frame::{Frame, Leaf, Visit, VisitState};
use crate::machine::limit::Used;
use crate::state::Changes;
use crate::{Key, Kind, Node, Patch, Program, Ready, State, StepError, StepId, StepResult, code};

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
    /// Nodes with a time limit in which something runs.
    limited: BTreeMap<StepId, Place>,
    /// Steps that wait for one of the places that `max_concurrency` leaves.
    queue: VecDeque<StepId>,
    /// How many of those places are taken.
    running: u32,
    used: Used,
    outcome: Option<Result<(), StepError>>,
    /// Frames whose superstep has ended, while an input is being applied.
    settled: VecDeque<FrameId>,
    /// What that leads to.
    effects: Vec<Effect>,
    /// Steps for which nothing of that is to be done any more.
    forgotten: BTreeSet<StepId>,
}

impl Machine {
    /// The key of the state that limits how often an agent is launched in the whole run.
    pub const MAX_LAUNCHES: &str = "maxLaunches";

    /// Begins a run.
    pub fn start(program: Arc<Program>, state: Patch) -> (Self, Vec<Effect>) {
        let mut machine = Self {
            program,
            frames: BTreeMap::new(),
            next_frame: 0,
            open: BTreeMap::new(),
            limited: BTreeMap::new(),
            queue: VecDeque::new(),
            running: 0,
            used: Used::default(),
            outcome: None,
            settled: VecDeque::new(),
            effects: vec![],
            forgotten: BTreeSet::new(),
        };
        let root = Frame::new(0, String::new(), None, State::new(state));
        machine.open_frame(root);
        let effects = machine.carry_on();
        (machine, effects)
    }

    /// Takes in what happened and says what to do next.
    pub fn apply(&mut self, input: Input) -> Result<Vec<Effect>, Misfit> {
        match input {
            Input::Finished { step, attempt, result } => self.finished(&step, attempt, result)?,
            Input::Failed { step, attempt, error } => self.attempt_failed(&step, attempt, error)?,
            Input::Lost { step, attempt, progressed } => {
                self.attempt_lost(&step, attempt, progressed)?;
            }
            Input::Cancelled { step, attempt } => self.cancelled(&step, attempt)?,
            Input::TimedOut { step } => self.timed_out(&step)?,
            Input::Rested { step } => {
                let place = self.close(&step, |state| matches!(state, VisitState::Resting))?;
                self.begin_attempt(place);
            }
            Input::Settled { step, again } => self.lost_settled(&step, again)?,
            Input::Answered { step, answer } => self.answered(&step, answer)?,
            Input::Chosen { step, chosen } => {
                let place = self.close(&step, VisitState::is_choosing)?;
                self.chosen(place, chosen);
            }
            Input::Evaluated { step, result } => {
                let failed = result.is_err();
                let place = self.close(&step, |state| {
                    state.is_evaluating() || (failed && state.is_choosing())
                })?;
                self.evaluated(place, result);
            }
            Input::Patched { patch } => self.patch_everywhere(patch)?,
            Input::Revived => self.revive()?,
        }
        Ok(self.carry_on())
    }

    /// What a step returned, judged before it is recorded: a result that does not fit the graph
    /// or the state is a failure of the step.
    pub fn judge(&self, step: &StepId, result: &StepResult) -> Result<(), StepError> {
        let Some((frame, visit)) = self.open.get(step) else { return Ok(()) };
        let frame = self.frame(*frame);
        let plan = self.program.plan(frame.plan);
        let number = frame.active[*visit].node;
        let targets = &plan.node(number).targets;
        for target in result.goto.iter().flat_map(crate::Goto::nodes) {
            let problem = if plan.find(target).is_none() {
                "which is not in its graph"
            } else if !targets.contains(target) {
                "which is not among its declared targets"
            } else {
                continue;
            };
            let message = format!("`{step}` went to `{target}`, {problem}");
            return Err(StepError::new(code::NO_SUCH_NODE, message));
        }
        frame.state.accepts(&result.patch, &plan.reducers).map_err(|problem| {
            StepError::new(code::REDUCER, format!("node `{}`, {problem}", step.node()))
        })?;
        plan.check_output(number, &result.output)
    }

    /// Does everything that follows without anybody's help.
    fn carry_on(&mut self) -> Vec<Effect> {
        loop {
            while let Some(frame) = self.settled.pop_front() {
                self.close_superstep(frame);
            }
            self.start_queued();
            if self.settled.is_empty() {
                self.drop_forgotten();
                return std::mem::take(&mut self.effects);
            }
        }
    }

    /// Waits for something about a step.
    fn await_step(&mut self, place: Place) -> StepId {
        let step = self.frame(place.0).active[place.1].step.clone();
        // What is to be done for it from now on is not what was forgotten.
        if self.forgotten.contains(&step) {
            self.drop_forgotten();
        }
        self.open.insert(step.clone(), place);
        step
    }

    /// What was waited for has come.
    fn close(
        &mut self,
        step: &StepId,
        is_it: impl FnOnce(&VisitState) -> bool,
    ) -> Result<Place, Misfit> {
        let place = *self.open.get(step).ok_or_else(|| unexpected(step))?;
        if !is_it(&self.frame(place.0).active[place.1].state) {
            return Err(unexpected(step));
        }
        self.open.remove(step);
        Ok(place)
    }

    /// Nobody waits for a step any more: what was to be done for it is not done.
    fn forget(&mut self, step: &StepId) {
        self.open.remove(step);
        self.forgotten.insert(step.clone());
    }

    /// All at once: looking for each by itself would take the square of their number.
    fn drop_forgotten(&mut self) {
        if self.forgotten.is_empty() {
            return;
        }
        let forgotten = std::mem::take(&mut self.forgotten);
        self.effects.retain(|effect| match effect {
            Effect::Start(Start { step: about, .. })
            | Effect::Choose { step: about, .. }
            | Effect::Evaluate { step: about, .. }
            | Effect::Rest { step: about, .. }
            | Effect::Ask { step: about, .. }
            | Effect::AskLost { step: about, .. } => !forgotten.contains(about),
            Effect::Cancel { .. } | Effect::Limit { .. } | Effect::Finish(_) => true,
        });
    }

    /// Whether something about a step is waited for: what is no longer waited for is not a fact.
    pub fn awaits(&self, step: &StepId) -> bool {
        self.open.contains_key(step)
    }

    /// The state a step sees.
    pub fn view(&self, step: &StepId) -> Option<Arc<State>> {
        let (frame, visit) = *self.open.get(step)?;
        let frame = self.frames.get(&frame)?;
        match &frame.active.get(visit)?.state {
            VisitState::Region(region) => Some(Arc::clone(&region.state)),
            VisitState::Leaf(_)
            | VisitState::Asking(_)
            | VisitState::Judging(..)
            | VisitState::Resting
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

    /// The model for a step: the node's own, or that of the nearest node or graph around it.
    pub fn model(&self, step: &StepId) -> Option<&str> {
        let mut place = *self.open.get(step)?;
        loop {
            let frame = self.frames.get(&place.0)?;
            let plan = self.program.plan(frame.plan);
            let own = plan.node(frame.active.get(place.1)?.node).model.as_deref();
            let named = |model: &&str| !model.eq_ignore_ascii_case(INHERIT);
            let around = plan.model.as_deref().filter(named);
            if let Some(model) = own.filter(named).or(around) {
                return Some(model);
            }
            let parent = frame.parent.as_ref()?;
            place = (parent.frame, parent.visit);
        }
    }

    /// The model that the node of a step names itself.
    pub fn own_model(&self, step: &StepId) -> Option<&str> {
        let own = self.node(step)?.model.as_deref();
        own.filter(|model| !model.eq_ignore_ascii_case(INHERIT))
    }

    /// The steps that were started and have not come back, with their attempts.
    pub fn running(&self) -> Vec<(StepId, u32)> {
        let live = |(step, place): (&StepId, &Place)| {
            let leaf = self.leaf(*place).filter(|leaf| leaf.phase.is_live())?;
            Some((step.clone(), leaf.attempt))
        };
        self.open.iter().filter_map(live).collect()
    }

    /// The nodes with a time limit in which something runs, with their limits.
    pub fn limited(&self) -> Vec<(StepId, u64)> {
        let limit = |(step, place): (&StepId, &Place)| {
            let frame = self.frames.get(&place.0)?;
            let node = self.program.plan(frame.plan).node(frame.active.get(place.1)?.node);
            Some((step.clone(), node.timeout_ms?))
        };
        self.limited.iter().filter_map(limit).collect()
    }

    /// Whether this is one of them.
    pub fn is_limited(&self, step: &StepId) -> bool {
        self.limited.contains_key(step)
    }

    /// The visits that wait before their next attempt.
    pub fn resting(&self) -> Vec<StepId> {
        let rests = |(step, place): (&StepId, &Place)| {
            let visit = self.frames.get(&place.0)?.active.get(place.1)?;
            matches!(visit.state, VisitState::Resting).then(|| step.clone())
        };
        self.open.iter().filter_map(rests).collect()
    }

    /// The items of fans that have failed and wait for another chance, and why.
    pub fn failed_items(&self) -> BTreeMap<String, StepError> {
        let item = |frame: &Frame| {
            let parent = frame.parent.as_ref()?;
            let error = frame.error.clone().filter(|error| error.code != code::CANCELLED)?;
            let (program, plan, node) = self.node_at((parent.frame, parent.visit));
            let is_fan = matches!(program.plan(plan).node(node).kind, Kind::Each(_));
            is_fan.then(|| (parent.name.clone(), error))
        };
        self.frames.values().filter_map(item).collect()
    }

    /// Whether the graph of this scope is being run and has not failed.
    pub fn is_under_way(&self, scope: &str) -> bool {
        self.frames.values().any(|frame| frame.scope == scope && frame.error.is_none())
    }

    /// The newest state: of the innermost place through which the whole run goes.
    pub fn newest(&self) -> Arc<State> {
        let mut frame = self.frame(0);
        loop {
            let mut regions = frame.active.iter().filter_map(|visit| visit.state.region());
            let (Some(region), None) = (regions.next(), regions.next()) else {
                return Arc::clone(&frame.state);
            };
            let only = region.only_child().and_then(|child| self.frames.get(&child));
            let Some(inner) = only else { return Arc::clone(&region.state) };
            frame = inner;
        }
    }

    /// How often an agent was launched so far.
    pub fn launches(&self) -> u64 {
        self.used.launches
    }

    /// How the run ended, when it has.
    pub fn outcome(&self) -> Option<&Result<(), StepError>> {
        self.outcome.as_ref()
    }

    /// What a run that is nothing but a script has returned, if it has returned anything.
    pub fn result(&self) -> Option<&Value> {
        let is_over = matches!(self.outcome, Some(Ok(())));
        let output = &self.frame(0).output;
        (is_over && self.program.graph().is_script() && !output.is_null()).then_some(output)
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
            | VisitState::Asking(_)
            | VisitState::Judging(..)
            | VisitState::Resting
            | VisitState::Done(_)
            | VisitState::Failed(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        }
    }

    /// The node at a place, with the program it belongs to, so that the machine stays free.
    fn node_at(&self, place: Place) -> (Arc<Program>, u32, u32) {
        let frame = self.frame(place.0);
        (Arc::clone(&self.program), frame.plan, frame.active[place.1].node)
    }

    /// A change from outside reaches every graph that is being run. It is not among the changes
    /// that an inner graph hands up, so it is nowhere applied twice.
    fn patch_everywhere(&mut self, patch: Patch) -> Result<(), Misfit> {
        for frame in self.frames.values() {
            let reducers = &self.program.plan(frame.plan).reducers;
            let regions = frame.active.iter().filter_map(|visit| visit.state.region());
            let regions = regions.map(|region| &region.state);
            for state in std::iter::once(&frame.state).chain(regions) {
                state.accepts(&patch, reducers).map_err(Misfit)?;
            }
        }
        let changes: Changes = patch.into();
        let plans: BTreeMap<FrameId, u32> =
            self.frames.iter().map(|(id, frame)| (*id, frame.plan)).collect();
        for frame in self.frames.values_mut() {
            let lists = task_lists(&self.program, frame);
            let reducers = &self.program.plan(frame.plan).reducers;
            let regions = frame.active.iter_mut().filter_map(|visit| visit.state.region_mut());
            let regions = regions.map(|region| &mut region.state);
            for state in std::iter::once(&mut frame.state).chain(regions) {
                Arc::make_mut(state).apply(&changes, reducers).map_err(Misfit)?;
            }
            let above = frame.parent.as_ref().and_then(|parent| plans.get(&parent.frame));
            if let Some(plan) = above {
                frame.changes.supersede(&changes, &self.program.plan(*plan).reducers);
            }
            for (visit, (over, before)) in frame.active.iter_mut().zip(lists) {
                let Some(region) = visit.state.region_mut() else { continue };
                region.changes.supersede(&changes, reducers);
                region.fan.read_again();
                if let Some(key) = over.filter(|key| changes.0.contains_key(key)) {
                    let now = region.state.get(key.as_str()).map(AsRef::as_ref);
                    region.fan.forget_started(before.as_deref(), now);
                }
            }
        }
        self.fill_fans(&changes);
        Ok(())
    }

    /// Starts tasks that a change from outside has made ready, in fans that are under way.
    fn fill_fans(&mut self, changes: &Changes) {
        let mut fans = vec![];
        for (id, frame) in &self.frames {
            for (number, visit) in frame.active.iter().enumerate() {
                let kind = &self.program.plan(frame.plan).node(visit.node).kind;
                if let (Kind::Each(each), VisitState::Region(region)) = (kind, &visit.state)
                    && each.ready == Ready::Tasks
                    && changes.0.contains_key(&each.over)
                    && region.wait.is_none()
                    && region.absorbing.is_empty()
                {
                    fans.push((*id, number));
                }
            }
        }
        fans.into_iter().for_each(|place| self.fill_fan(place));
    }
}

/// The keys and the lists of the fans over tasks among a frame's visits. Fans that begin every item
/// once know by it which names are taken, so these are left out.
fn task_lists(program: &Program, frame: &Frame) -> Vec<(Option<Key>, Option<Arc<Value>>)> {
    let list = |visit: &Visit| {
        let Kind::Each(each) = &program.plan(frame.plan).node(visit.node).kind else {
            return (None, None);
        };
        if each.ready != Ready::Tasks {
            return (None, None);
        }
        let list = visit.state.region().and_then(|region| region.state.get(each.over.as_str()));
        (Some(each.over.clone()), list.cloned())
    };
    frame.active.iter().map(list).collect()
}

fn unexpected(step: &StepId) -> Misfit {
    Misfit(format!("step {step} is not waited for at this point"))
}

#[cfg(test)]
#[path = "../machine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../region_tests.rs"]
mod region_tests;
