//! A machine as data.
//!
//! Values and states are shared between many frames. Each is written once, in a pool, and
//! referred to by its number, so a snapshot is as large as what it holds and no larger.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fan::Fan;
use super::frame::{Failed, Frame, Judging, Leaf, Merging, Parent, Visit, VisitState, Was};
use super::history::Scripting;
use super::limit::Used;
use super::region::{Absorbing, Ending, Region, Wait};
use super::{Machine, Misfit, Place};
use crate::state::Changes;
use crate::{Key, NodeId, Program, State, StepError, StepId, StepResult};

/// A machine without its program.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Snapshot {
    values: Vec<Value>,
    states: Vec<SavedState>,
    frames: BTreeMap<u32, SavedFrame>,
    next_frame: u32,
    open: BTreeMap<StepId, Place>,
    limited: BTreeMap<StepId, Place>,
    queue: VecDeque<StepId>,
    running: u32,
    steps: u64,
    launches: u64,
    visits: Vec<((u32, u32), u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exhausted: Option<StepError>,
    outcome: Option<Result<(), StepError>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedState {
    base: Option<usize>,
    keys: BTreeMap<Key, usize>,
    outputs: SavedOutputs,
}

/// Outputs by node, each value by its number.
type SavedOutputs = BTreeMap<NodeId, usize>;

/// Changes by key, each value by its number.
type SavedChanges = BTreeMap<Key, Vec<usize>>;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedFrame {
    plan: u32,
    scope: String,
    parent: Option<Parent>,
    state: usize,
    active: Vec<SavedVisit>,
    pending: usize,
    merging: Option<(usize, Option<(Key, usize)>)>,
    stopping: bool,
    visits: BTreeMap<u32, u32>,
    arrived: BTreeMap<u32, BTreeSet<u32>>,
    changes: SavedChanges,
    output: usize,
    idle: usize,
    error: Option<StepError>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedVisit {
    node: u32,
    step: StepId,
    attempt: u32,
    failures: u32,
    state: SavedVisitState,
    merged: SavedChanges,
    inner: SavedOutputs,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum SavedVisitState {
    Leaf(Leaf),
    Region(Box<SavedRegion>),
    Asking(StepResult),
    Judging(SavedFailed, Judging),
    Resting,
    Done(StepResult),
    Failed(SavedFailed),
    Choosing,
    Routed(Vec<u32>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedFailed {
    error: StepError,
    was: SavedWas,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum SavedWas {
    Outside,
    Nothing,
    Leaf(Leaf),
    Region(Box<SavedRegion>),
    Asking(StepResult),
    Choosing,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedRegion {
    state: usize,
    changes: SavedChanges,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    items: BTreeMap<String, SavedChanges>,
    running: BTreeMap<String, u32>,
    failed: BTreeMap<String, u32>,
    waking: BTreeMap<String, u32>,
    outputs: BTreeMap<String, Value>,
    round: u32,
    #[serde(default)]
    idle: usize,
    fan: Fan,
    #[serde(default, skip_serializing_if = "Scripting::is_idle")]
    script: Scripting,
    absorbing: Vec<SavedAbsorbing>,
    wait: Option<SavedWait>,
    ending: Option<Ending>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedAbsorbing {
    name: String,
    changes: SavedChanges,
    output: usize,
    inner: SavedOutputs,
    visits: BTreeMap<u32, u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum SavedWait {
    Input,
    Until,
    Output(usize),
    Reduce(Key, usize),
    Advance(Option<Arc<Value>>),
}

impl Machine {
    /// The machine as data, to be given to [`Machine::restore`] with the same program.
    pub fn snapshot(&self) -> Result<Value, serde_json::Error> {
        let mut pool = Pool::default();
        let frames = self.frames.iter().map(|(id, frame)| (*id, pool.frame(frame))).collect();
        serde_json::to_value(Snapshot {
            frames,
            values: pool.values,
            states: pool.states,
            next_frame: self.next_frame,
            open: self.open.clone(),
            limited: self.limited.clone(),
            queue: self.queue.clone(),
            running: self.running,
            steps: self.used.steps,
            launches: self.used.launches,
            visits: self.used.visits.iter().map(|(place, count)| (*place, *count)).collect(),
            exhausted: self.used.exhausted.clone(),
            outcome: self.outcome.clone(),
        })
    }

    /// Continues from a snapshot.
    pub fn restore(program: Arc<Program>, snapshot: Value) -> Result<Self, Misfit> {
        let saved: Snapshot =
            serde_json::from_value(snapshot).map_err(|error| Misfit(error.to_string()))?;
        let mut shared =
            Shared { values: saved.values.into_iter().map(Arc::new).collect(), states: vec![] };
        for state in saved.states {
            let state = shared.read_state(state)?;
            shared.states.push(Arc::new(state));
        }
        let mut frames = BTreeMap::new();
        for (id, frame) in saved.frames {
            if frame.plan as usize >= program.plans.len() {
                return Err(Misfit("the snapshot is of another graph".to_owned()));
            }
            frames.insert(id, shared.frame(frame)?);
        }
        Ok(Self {
            program,
            frames,
            next_frame: saved.next_frame,
            open: saved.open,
            limited: saved.limited,
            queue: saved.queue,
            running: saved.running,
            used: Used {
                steps: saved.steps,
                launches: saved.launches,
                visits: saved.visits.into_iter().collect(),
                exhausted: saved.exhausted,
            },
            outcome: saved.outcome,
            settled: VecDeque::new(),
            effects: vec![],
            forgotten: BTreeSet::new(),
        })
    }
}

/// What has been written so far, by address: an address stands for one value as long as the
/// machine that holds it is borrowed.
#[derive(Default)]
struct Pool {
    seen_values: BTreeMap<*const Value, usize>,
    values: Vec<Value>,
    seen_states: BTreeMap<*const State, usize>,
    states: Vec<SavedState>,
}

impl Pool {
    fn value(&mut self, value: &Arc<Value>) -> usize {
        *self.seen_values.entry(Arc::as_ptr(value)).or_insert_with(|| {
            self.values.push(Value::clone(value));
            self.values.len() - 1
        })
    }

    fn changes(&mut self, changes: &Changes) -> SavedChanges {
        let saved = changes.0.iter().map(|(key, values)| {
            (key.clone(), values.iter().map(|value| self.value(value)).collect())
        });
        saved.collect()
    }

    fn outputs(&mut self, outputs: &BTreeMap<NodeId, Arc<Value>>) -> SavedOutputs {
        outputs.iter().map(|(node, value)| (node.clone(), self.value(value))).collect()
    }

    /// Bases come before what stands on them.
    fn state(&mut self, state: &Arc<State>) -> usize {
        if let Some(known) = self.seen_states.get(&Arc::as_ptr(state)) {
            return *known;
        }
        let base = state.base.as_ref().map(|base| self.state(base));
        let keys = state.keys.iter().map(|(k, v)| (k.clone(), self.value(v))).collect();
        let outputs = self.outputs(&state.outputs);
        self.states.push(SavedState { base, keys, outputs });
        let number = self.states.len() - 1;
        self.seen_states.insert(Arc::as_ptr(state), number);
        number
    }

    fn frame(&mut self, frame: &Frame) -> SavedFrame {
        let merging = frame.merging.as_ref().map(|merging| {
            let waiting = merging.waiting.as_ref();
            (merging.visit, waiting.map(|(key, change)| (key.clone(), self.value(change))))
        });
        SavedFrame {
            plan: frame.plan,
            scope: frame.scope.clone(),
            parent: frame.parent.clone(),
            state: self.state(&frame.state),
            active: frame.active.iter().map(|visit| self.visit(visit)).collect(),
            pending: frame.pending,
            merging,
            stopping: frame.stopping,
            visits: frame.visits.clone(),
            arrived: frame.arrived.clone(),
            changes: self.changes(&frame.changes),
            output: self.value(&frame.output),
            idle: frame.idle,
            error: frame.error.clone(),
        }
    }

    fn visit(&mut self, visit: &Visit) -> SavedVisit {
        let state = match &visit.state {
            VisitState::Leaf(leaf) => SavedVisitState::Leaf(leaf.clone()),
            VisitState::Region(region) => SavedVisitState::Region(Box::new(self.region(region))),
            VisitState::Asking(result) => SavedVisitState::Asking(result.clone()),
            VisitState::Judging(failed, what) => {
                SavedVisitState::Judging(self.failed(failed), *what)
            }
            VisitState::Resting => SavedVisitState::Resting,
            VisitState::Done(result) => SavedVisitState::Done(result.clone()),
            VisitState::Failed(failed) => SavedVisitState::Failed(self.failed(failed)),
            VisitState::Choosing => SavedVisitState::Choosing,
            VisitState::Routed(nodes) => SavedVisitState::Routed(nodes.clone()),
        };
        SavedVisit {
            node: visit.node,
            step: visit.step.clone(),
            attempt: visit.attempt,
            failures: visit.failures,
            state,
            merged: self.changes(&visit.merged),
            inner: self.outputs(&visit.inner),
        }
    }

    fn failed(&mut self, failed: &Failed) -> SavedFailed {
        let was = match &failed.was {
            Was::Outside => SavedWas::Outside,
            Was::Nothing => SavedWas::Nothing,
            Was::Leaf(leaf) => SavedWas::Leaf(leaf.clone()),
            Was::Region(region) => SavedWas::Region(Box::new(self.region(region))),
            Was::Asking(result) => SavedWas::Asking(result.clone()),
            Was::Choosing => SavedWas::Choosing,
        };
        SavedFailed { error: failed.error.clone(), was }
    }

    fn region(&mut self, region: &Region) -> SavedRegion {
        let absorbing = region.absorbing.iter().map(|child| SavedAbsorbing {
            name: child.name.clone(),
            changes: self.changes(&child.changes),
            output: self.value(&child.output),
            inner: self.outputs(&child.inner),
            visits: child.visits.clone(),
        });
        let absorbing = absorbing.collect();
        let wait = region.wait.as_ref().map(|wait| match wait {
            Wait::Input => SavedWait::Input,
            Wait::Until => SavedWait::Until,
            Wait::Output(value) => SavedWait::Output(self.value(value)),
            Wait::Reduce { key, change } => SavedWait::Reduce(key.clone(), self.value(change)),
            Wait::Advance(told) => SavedWait::Advance(told.clone()),
        });
        SavedRegion {
            state: self.state(&region.state),
            changes: self.changes(&region.changes),
            items: region.items.iter().map(|(k, v)| (k.clone(), self.changes(v))).collect(),
            running: region.running.clone(),
            failed: region.failed.clone(),
            waking: region.waking.clone(),
            outputs: region.outputs.clone(),
            round: region.round,
            idle: region.idle,
            fan: region.fan.clone(),
            script: region.script.clone(),
            absorbing,
            wait,
            ending: region.ending.clone(),
        }
    }
}

/// What has been read so far, by number.
struct Shared {
    values: Vec<Arc<Value>>,
    states: Vec<Arc<State>>,
}

impl Shared {
    fn pick<T: ?Sized>(pool: &[Arc<T>], number: usize) -> Result<Arc<T>, Misfit> {
        let found = pool.get(number).map(Arc::clone);
        found.ok_or_else(|| Misfit("the snapshot refers to something it does not hold".to_owned()))
    }

    fn read_state(&self, saved: SavedState) -> Result<State, Misfit> {
        let mut state = State::default();
        if let Some(base) = saved.base {
            state.base = Some(Self::pick(&self.states, base)?);
        }
        for (key, value) in saved.keys {
            state.keys.insert(key, Self::pick(&self.values, value)?);
        }
        state.outputs = self.outputs(saved.outputs)?;
        Ok(state)
    }

    fn changes(&self, saved: SavedChanges) -> Result<Changes, Misfit> {
        let mut changes = Changes::default();
        for (key, numbers) in saved {
            let values = numbers.into_iter().map(|number| Self::pick(&self.values, number));
            changes.0.insert(key, values.collect::<Result<_, _>>()?);
        }
        Ok(changes)
    }

    fn outputs(&self, saved: SavedOutputs) -> Result<BTreeMap<NodeId, Arc<Value>>, Misfit> {
        let read = |(node, value)| Ok((node, Self::pick(&self.values, value)?));
        saved.into_iter().map(read).collect()
    }

    fn frame(&self, saved: SavedFrame) -> Result<Frame, Misfit> {
        let merging = match saved.merging {
            Some((visit, Some((key, change)))) => {
                let waiting = Some((key, Self::pick(&self.values, change)?));
                Some(Merging { visit, waiting })
            }
            Some((visit, None)) => Some(Merging { visit, waiting: None }),
            None => None,
        };
        Ok(Frame {
            plan: saved.plan,
            scope: saved.scope,
            parent: saved.parent,
            state: Self::pick(&self.states, saved.state)?,
            active: saved.active.into_iter().map(|v| self.visit(v)).collect::<Result<_, _>>()?,
            pending: saved.pending,
            merging,
            stopping: saved.stopping,
            visits: saved.visits,
            arrived: saved.arrived,
            changes: self.changes(saved.changes)?,
            output: Self::pick(&self.values, saved.output)?,
            idle: saved.idle,
            error: saved.error,
        })
    }

    fn visit(&self, saved: SavedVisit) -> Result<Visit, Misfit> {
        let state = match saved.state {
            SavedVisitState::Leaf(leaf) => VisitState::Leaf(leaf),
            SavedVisitState::Region(region) => VisitState::Region(self.region(*region)?),
            SavedVisitState::Asking(result) => VisitState::Asking(result),
            SavedVisitState::Judging(failed, what) => {
                VisitState::Judging(Box::new(self.failed(failed)?), what)
            }
            SavedVisitState::Resting => VisitState::Resting,
            SavedVisitState::Done(result) => VisitState::Done(result),
            SavedVisitState::Failed(failed) => VisitState::Failed(Box::new(self.failed(failed)?)),
            SavedVisitState::Choosing => VisitState::Choosing,
            SavedVisitState::Routed(nodes) => VisitState::Routed(nodes),
        };
        let SavedVisit { node, step, attempt, failures, merged, inner, .. } = saved;
        let merged = self.changes(merged)?;
        let inner = self.outputs(inner)?;
        Ok(Visit { node, step, attempt, failures, state, merged, inner })
    }

    fn failed(&self, saved: SavedFailed) -> Result<Failed, Misfit> {
        let was = match saved.was {
            SavedWas::Outside => Was::Outside,
            SavedWas::Nothing => Was::Nothing,
            SavedWas::Leaf(leaf) => Was::Leaf(leaf),
            SavedWas::Region(region) => Was::Region(self.region(*region)?),
            SavedWas::Asking(result) => Was::Asking(result),
            SavedWas::Choosing => Was::Choosing,
        };
        Ok(Failed { error: saved.error, was })
    }

    fn region(&self, saved: SavedRegion) -> Result<Box<Region>, Misfit> {
        let absorbing = saved.absorbing.into_iter().map(|child| {
            Ok(Absorbing {
                name: child.name,
                changes: self.changes(child.changes)?,
                output: Self::pick(&self.values, child.output)?,
                inner: self.outputs(child.inner)?,
                visits: child.visits,
            })
        });
        let absorbing = absorbing.collect::<Result<_, Misfit>>()?;
        let items =
            saved.items.into_iter().map(|(name, changes)| Ok((name, self.changes(changes)?)));
        let wait = match saved.wait {
            None => None,
            Some(SavedWait::Input) => Some(Wait::Input),
            Some(SavedWait::Until) => Some(Wait::Until),
            Some(SavedWait::Output(value)) => Some(Wait::Output(Self::pick(&self.values, value)?)),
            Some(SavedWait::Reduce(key, change)) => {
                Some(Wait::Reduce { key, change: Self::pick(&self.values, change)? })
            }
            Some(SavedWait::Advance(told)) => Some(Wait::Advance(told)),
        };
        Ok(Box::new(Region {
            state: Self::pick(&self.states, saved.state)?,
            changes: self.changes(saved.changes)?,
            items: items.collect::<Result<_, Misfit>>()?,
            running: saved.running,
            failed: saved.failed,
            waking: saved.waking,
            outputs: saved.outputs,
            round: saved.round,
            idle: saved.idle,
            fan: saved.fan,
            script: saved.script,
            absorbing,
            wait,
            ending: saved.ending,
        }))
    }
}
