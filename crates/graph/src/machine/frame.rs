//! One graph being run: its current superstep and its state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::region::{Region, Wait};
use crate::state::Changes;
use crate::{How, Key, NodeId, State, StepError, StepId, StepResult, code};

/// One graph being run.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) plan: u32,
    pub(super) scope: String,
    pub(super) parent: Option<Parent>,
    pub(super) state: Arc<State>,
    /// The visits of the current superstep, in graph order.
    pub(super) active: Vec<Visit>,
    /// How many of them have not come to the end of what they are in: the work, or the choice of
    /// where to go.
    pub(super) pending: usize,
    /// How far the changes of the superstep have been applied, while a function is evaluated.
    pub(super) merging: Option<Merging>,
    /// Whether it was told to stop: it goes nowhere from here.
    pub(super) stopping: bool,
    /// How often each node was visited here.
    pub(super) visits: BTreeMap<u32, u32>,
    /// For edges that wait for several nodes: those that have arrived.
    pub(super) arrived: BTreeMap<u32, BTreeSet<u32>>,
    /// Everything changed here, for the region this frame is in.
    pub(super) changes: Changes,
    pub(super) output: Arc<Value>,
    /// Supersteps in a row in which nothing was started.
    pub(super) idle: usize,
    /// Why it failed, when it has.
    pub(super) error: Option<StepError>,
}

/// The region a frame runs in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Parent {
    pub(super) frame: u32,
    pub(super) visit: usize,
    /// Which of the frames in it: an item, a branch, a round.
    pub(super) name: String,
}

/// How far the changes of a superstep have been applied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Merging {
    /// The visit whose changes are being applied.
    pub(super) visit: usize,
    /// What a function is combining, if one is.
    pub(super) waiting: Option<(Key, Arc<Value>)>,
}

/// A visit to a node in the current superstep.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) node: u32,
    pub(super) step: StepId,
    /// How often what is inside was begun, for nodes that hold others, and how often the
    /// conditions were evaluated, for decisions.
    pub(super) attempt: u32,
    /// How many attempts have failed.
    pub(super) failures: u32,
    pub(super) state: VisitState,
    /// What was changed inside it, when it is a region that is done.
    pub(super) merged: Changes,
    /// What the nodes inside it returned, seen by those that come after it.
    pub(super) inner: BTreeMap<NodeId, Arc<Value>>,
}

/// How a visit stands.
#[derive(Clone, Debug)]
pub(super) enum VisitState {
    /// Carried out by the caller.
    Leaf(Leaf),
    /// A graph is run inside.
    Region(Box<Region>),
    /// It returned, and waits for what the user says.
    Asking(StepResult),
    /// An attempt failed, and a function says what that means.
    Judging(Box<Failed>, Judging),
    /// It waits before its next attempt.
    Resting,
    /// It returned; its changes are applied when the whole superstep has.
    Done(StepResult),
    /// It failed, and the graph with it; kept in case the run is revived.
    Failed(Box<Failed>),
    /// Its changes are applied; which way it goes is being decided.
    Choosing,
    /// Where it goes.
    Routed(Vec<u32>),
}

/// What a function is asked about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Judging {
    /// Whether it is worth another attempt.
    Retry,
    /// What to do about it.
    OnError,
}

/// A step that the caller carries out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Leaf {
    pub(super) attempt: u32,
    pub(super) how: How,
    /// Losses in a row that got nowhere.
    pub(super) lost: u32,
    /// How long to wait before this attempt.
    pub(super) delay_ms: u64,
    pub(super) phase: LeafPhase,
}

/// Where a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LeafPhase {
    Queued,
    Running,
    /// Told to stop, not gone yet.
    Cancelling,
    /// Lost, and the user says what to do.
    Asking,
    /// A decision that waits for the end of its superstep. In journals from before decisions
    /// waited, its choice comes here already; snapshots call it what it was called then.
    #[serde(rename = "Choosing")]
    Due,
    /// A decision whose conditions are being evaluated, after the changes of the superstep.
    #[serde(rename = "Deciding")]
    Choosing,
}

impl LeafPhase {
    /// Whether the caller is carrying it out.
    pub(super) fn is_live(self) -> bool {
        matches!(self, Self::Running | Self::Cancelling)
    }

    /// Whether it is that of a decision.
    pub(super) fn is_decision(self) -> bool {
        matches!(self, Self::Due | Self::Choosing)
    }
}

/// A visit that failed.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) error: StepError,
    /// What it was when it failed.
    pub(super) was: Was,
}

/// What a visit was when it failed, for another chance.
#[derive(Clone, Debug)]
pub(super) enum Was {
    /// Not entered: a ceiling forbade it, or it was stopped before its turn.
    Outside,
    /// Entered, but nothing has begun: the state did not fit, or it waited for its next attempt.
    Nothing,
    /// Carried out by the caller.
    Leaf(Leaf),
    /// A node with something inside.
    Region(Box<Region>),
    /// Done, but the user had not answered.
    Asking(StepResult),
    /// Done, but where to go was not known.
    Choosing,
}

impl Frame {
    pub(super) fn new(plan: u32, scope: String, parent: Option<Parent>, state: State) -> Self {
        Self {
            plan,
            scope,
            parent,
            state: Arc::new(state),
            active: vec![],
            pending: 0,
            merging: None,
            stopping: false,
            visits: BTreeMap::new(),
            arrived: BTreeMap::new(),
            changes: Changes::default(),
            output: Arc::new(Value::Null),
            idle: 0,
            error: None,
        }
    }

    /// Whether everything else has come to its end, and only decisions are left.
    pub(super) fn only_decisions_left(&self) -> bool {
        self.pending == self.active.iter().filter(|visit| visit.state.is_due()).count()
    }

    /// The first failure of the superstep; one that only was stopped because of another is not it.
    pub(super) fn failure(&self) -> Option<&StepError> {
        let errors = || self.active.iter().filter_map(|visit| visit.state.failure());
        errors().find(|error| error.code != code::CANCELLED).or_else(|| errors().next())
    }
}

impl VisitState {
    /// Why it failed, if it did.
    fn failure(&self) -> Option<&StepError> {
        if let Self::Failed(failed) = self { Some(&failed.error) } else { None }
    }

    /// What runs, or ran, inside.
    pub(super) fn region(&self) -> Option<&Region> {
        match self {
            Self::Region(region) => Some(region),
            Self::Failed(failed) | Self::Judging(failed, _) => {
                if let Was::Region(region) = &failed.was { Some(region) } else { None }
            }
            Self::Leaf(_)
            | Self::Asking(_)
            | Self::Resting
            | Self::Done(_)
            | Self::Choosing
            | Self::Routed(_) => None,
        }
    }

    /// The same, to be changed.
    pub(super) fn region_mut(&mut self) -> Option<&mut Region> {
        match self {
            Self::Region(region) => Some(region),
            Self::Failed(failed) | Self::Judging(failed, _) => {
                if let Was::Region(region) = &mut failed.was { Some(region) } else { None }
            }
            Self::Leaf(_)
            | Self::Asking(_)
            | Self::Resting
            | Self::Done(_)
            | Self::Choosing
            | Self::Routed(_) => None,
        }
    }

    /// Whether it is a decision that waits for the end of its superstep.
    pub(super) fn is_due(&self) -> bool {
        matches!(self, Self::Leaf(Leaf { phase: LeafPhase::Due, .. }))
    }

    /// Whether it returned and goes nowhere yet.
    pub(super) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// Whether conditions are being evaluated for it, or will be.
    pub(super) fn is_choosing(&self) -> bool {
        match self {
            Self::Choosing => true,
            Self::Leaf(leaf) => leaf.phase.is_decision(),
            Self::Region(region) => matches!(region.wait, Some(Wait::Until)),
            Self::Asking(_)
            | Self::Judging(..)
            | Self::Resting
            | Self::Done(_)
            | Self::Failed(_)
            | Self::Routed(_) => false,
        }
    }

    /// Whether a function is being evaluated for it.
    pub(super) fn is_evaluating(&self) -> bool {
        match self {
            Self::Judging(..) | Self::Done(_) => true,
            Self::Region(region) => {
                matches!(
                    region.wait,
                    Some(Wait::Input | Wait::Output(_) | Wait::Reduce { .. } | Wait::Advance(_))
                )
            }
            Self::Leaf(_)
            | Self::Asking(_)
            | Self::Resting
            | Self::Failed(_)
            | Self::Choosing
            | Self::Routed(_) => false,
        }
    }
}

impl Leaf {
    pub(super) fn first() -> Self {
        Self { attempt: 1, how: How::First, lost: 0, delay_ms: 0, phase: LeafPhase::Queued }
    }
}

impl Failed {
    /// A visit that was not even entered.
    pub(super) fn outside(error: StepError) -> Self {
        Self { error, was: Was::Outside }
    }
}
