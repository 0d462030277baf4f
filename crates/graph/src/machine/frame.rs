//! One graph being run: its current superstep and its state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::region::Region;
use crate::state::Changes;
use crate::{How, State, StepError, StepId, StepResult};

/// One graph being run.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) plan: u32,
    pub(super) scope: String,
    pub(super) parent: Option<Parent>,
    pub(super) state: Arc<State>,
    /// The visits of the current superstep, in graph order.
    pub(super) active: Vec<Visit>,
    /// How often each node was visited here.
    pub(super) visits: BTreeMap<u32, u32>,
    /// For edges that wait for several nodes: those that have arrived.
    pub(super) arrived: BTreeMap<u32, BTreeSet<u32>>,
    /// Everything changed here, for the region this frame is in.
    pub(super) changes: Changes,
    pub(super) output: Arc<Value>,
    /// Supersteps in a row in which nothing was started.
    pub(super) idle: usize,
}

/// The region a frame runs in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Parent {
    pub(super) frame: u32,
    pub(super) visit: usize,
    /// The item, in a fan.
    pub(super) item: Option<String>,
}

/// A visit to a node in the current superstep.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) node: u32,
    pub(super) step: StepId,
    pub(super) state: VisitState,
    /// What was changed inside it, when it is a region that is done.
    pub(super) merged: Changes,
}

/// How a visit stands.
#[derive(Clone, Debug)]
pub(super) enum VisitState {
    /// Carried out by the caller.
    Leaf(Leaf),
    /// A graph is run inside.
    Region(Box<Region>),
    /// It returned; its changes are applied when the whole superstep has.
    Done(StepResult),
    /// It failed, and the graph with it; kept in case the run is revived.
    Failed(Box<Failed>),
    /// Its changes are applied; which way it goes is being decided.
    Choosing,
    /// Where it goes.
    Routed(Vec<u32>),
}

/// A step that the caller carries out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Leaf {
    pub(super) attempt: u32,
    pub(super) how: How,
    pub(super) failures: u32,
    pub(super) lost: u32,
    pub(super) phase: LeafPhase,
}

/// Where a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LeafPhase {
    Queued,
    Running,
    Asking,
}

/// A visit that failed.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) error: StepError,
    /// Absent when a ceiling kept it from starting at all.
    pub(super) leaf: Option<Leaf>,
    pub(super) region: Option<Box<Region>>,
}

impl Frame {
    pub(super) fn new(plan: u32, scope: String, parent: Option<Parent>, state: State) -> Self {
        Self {
            plan,
            scope,
            parent,
            state: Arc::new(state),
            active: vec![],
            visits: BTreeMap::new(),
            arrived: BTreeMap::new(),
            changes: Changes::default(),
            output: Arc::new(Value::Null),
            idle: 0,
        }
    }

    /// Whether every visit of the superstep has come to an end.
    pub(super) fn is_settled(&self) -> bool {
        self.active.iter().all(|visit| match visit.state {
            VisitState::Done(_) | VisitState::Failed(_) => true,
            VisitState::Leaf(_)
            | VisitState::Region(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => false,
        })
    }

    /// The first failure of the superstep.
    pub(super) fn failure(&self) -> Option<&StepError> {
        self.active.iter().find_map(|visit| match &visit.state {
            VisitState::Failed(failed) => Some(&failed.error),
            VisitState::Leaf(_)
            | VisitState::Region(_)
            | VisitState::Done(_)
            | VisitState::Choosing
            | VisitState::Routed(_) => None,
        })
    }
}

impl Leaf {
    pub(super) fn first() -> Self {
        Self { attempt: 1, how: How::First, failures: 0, lost: 0, phase: LeafPhase::Queued }
    }
}
