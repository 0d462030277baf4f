//! A machine as data.
//!
//! Values and states are shared between many frames. Each is written once, in a pool, and
//! referred to by its number, so a snapshot is as large as what it holds and no larger.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frame::{Failed, Frame, Leaf, Parent, Visit, VisitState};
use super::region::{Inside, Region};
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
    queue: VecDeque<StepId>,
    running: u32,
    steps: u64,
    visits: Vec<((u32, u32), u64)>,
    outcome: Option<Result<(), StepError>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedState {
    base: Option<usize>,
    keys: BTreeMap<Key, usize>,
    outputs: BTreeMap<NodeId, usize>,
}

/// Changes by key, each value by its number.
type SavedChanges = BTreeMap<Key, Vec<usize>>;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedFrame {
    plan: u32,
    scope: String,
    parent: Option<Parent>,
    state: usize,
    active: Vec<SavedVisit>,
    visits: BTreeMap<u32, u32>,
    arrived: BTreeMap<u32, BTreeSet<u32>>,
    changes: SavedChanges,
    output: usize,
    idle: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedVisit {
    node: u32,
    step: StepId,
    state: SavedVisitState,
    merged: SavedChanges,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum SavedVisitState {
    Leaf(Leaf),
    Region(SavedRegion),
    Done(StepResult),
    Failed { error: StepError, leaf: Option<Leaf>, region: Option<SavedRegion> },
    Choosing,
    Routed(Vec<u32>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedRegion {
    state: usize,
    changes: SavedChanges,
    inside: Inside,
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
            queue: self.queue.clone(),
            running: self.running,
            steps: self.steps,
            visits: self.visits.iter().map(|(place, count)| (*place, *count)).collect(),
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
            queue: saved.queue,
            running: saved.running,
            steps: saved.steps,
            visits: saved.visits.into_iter().collect(),
            outcome: saved.outcome,
            settled: VecDeque::new(),
            effects: vec![],
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

    /// Bases come before what stands on them.
    fn state(&mut self, state: &Arc<State>) -> usize {
        if let Some(known) = self.seen_states.get(&Arc::as_ptr(state)) {
            return *known;
        }
        let base = state.base.as_ref().map(|base| self.state(base));
        let keys = state.keys.iter().map(|(k, v)| (k.clone(), self.value(v))).collect();
        let outputs = state.outputs.iter().map(|(n, v)| (n.clone(), self.value(v))).collect();
        self.states.push(SavedState { base, keys, outputs });
        let number = self.states.len() - 1;
        self.seen_states.insert(Arc::as_ptr(state), number);
        number
    }

    fn frame(&mut self, frame: &Frame) -> SavedFrame {
        SavedFrame {
            plan: frame.plan,
            scope: frame.scope.clone(),
            parent: frame.parent.clone(),
            state: self.state(&frame.state),
            active: frame.active.iter().map(|visit| self.visit(visit)).collect(),
            visits: frame.visits.clone(),
            arrived: frame.arrived.clone(),
            changes: self.changes(&frame.changes),
            output: self.value(&frame.output),
            idle: frame.idle,
        }
    }

    fn visit(&mut self, visit: &Visit) -> SavedVisit {
        let state = match &visit.state {
            VisitState::Leaf(leaf) => SavedVisitState::Leaf(leaf.clone()),
            VisitState::Region(region) => SavedVisitState::Region(self.region(region)),
            VisitState::Done(result) => SavedVisitState::Done(result.clone()),
            VisitState::Failed(failed) => SavedVisitState::Failed {
                error: failed.error.clone(),
                leaf: failed.leaf.clone(),
                region: failed.region.as_ref().map(|region| self.region(region)),
            },
            VisitState::Choosing => SavedVisitState::Choosing,
            VisitState::Routed(nodes) => SavedVisitState::Routed(nodes.clone()),
        };
        let merged = self.changes(&visit.merged);
        SavedVisit { node: visit.node, step: visit.step.clone(), state, merged }
    }

    fn region(&mut self, region: &Region) -> SavedRegion {
        SavedRegion {
            state: self.state(&region.state),
            changes: self.changes(&region.changes),
            inside: region.inside.clone(),
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
        for (node, value) in saved.outputs {
            state.outputs.insert(node, Self::pick(&self.values, value)?);
        }
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

    fn frame(&self, saved: SavedFrame) -> Result<Frame, Misfit> {
        Ok(Frame {
            plan: saved.plan,
            scope: saved.scope,
            parent: saved.parent,
            state: Self::pick(&self.states, saved.state)?,
            active: saved.active.into_iter().map(|v| self.visit(v)).collect::<Result<_, _>>()?,
            visits: saved.visits,
            arrived: saved.arrived,
            changes: self.changes(saved.changes)?,
            output: Self::pick(&self.values, saved.output)?,
            idle: saved.idle,
        })
    }

    fn visit(&self, saved: SavedVisit) -> Result<Visit, Misfit> {
        let state = match saved.state {
            SavedVisitState::Leaf(leaf) => VisitState::Leaf(leaf),
            SavedVisitState::Region(region) => VisitState::Region(self.region(region)?),
            SavedVisitState::Done(result) => VisitState::Done(result),
            SavedVisitState::Failed { error, leaf, region } => {
                let region = region.map(|region| self.region(region)).transpose()?;
                VisitState::Failed(Box::new(Failed { error, leaf, region }))
            }
            SavedVisitState::Choosing => VisitState::Choosing,
            SavedVisitState::Routed(nodes) => VisitState::Routed(nodes),
        };
        let merged = self.changes(saved.merged)?;
        Ok(Visit { node: saved.node, step: saved.step, state, merged })
    }

    fn region(&self, saved: SavedRegion) -> Result<Box<Region>, Misfit> {
        Ok(Box::new(Region {
            state: Self::pick(&self.states, saved.state)?,
            changes: self.changes(saved.changes)?,
            inside: saved.inside,
        }))
    }
}
