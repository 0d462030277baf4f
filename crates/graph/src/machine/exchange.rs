//! What goes into the machine and what comes out of it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Condition, FunctionId, How, NodeId, Patch, Signal, StepError, StepId, StepResult};

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
    /// An attempt failed, and nothing of it is left.
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
    /// A step was stopped as it was told to, and nothing of it is left.
    Cancelled {
        /// Which one.
        step: StepId,
        /// Which attempt.
        attempt: u32,
    },
    /// What runs inside a node has taken longer than it may.
    TimedOut {
        /// The visit to that node.
        step: StepId,
    },
    /// A node has waited long enough before its next attempt.
    Rested {
        /// The visit to that node.
        step: StepId,
    },
    /// The user said what to do about a lost step.
    Settled {
        /// Which one.
        step: StepId,
        /// Whether to run it again; otherwise it has failed.
        again: bool,
    },
    /// The user answered what a step had asked by a signal.
    Answered {
        /// Which step.
        step: StepId,
        /// The answer.
        answer: Value,
    },
    /// The conditions after a step were evaluated.
    Chosen {
        /// Which step.
        step: StepId,
        /// The number of the first that held.
        chosen: Option<u32>,
    },
    /// A function was evaluated, or a condition could not be.
    Evaluated {
        /// For which step.
        step: StepId,
        /// What it returned.
        result: Result<Value, StepError>,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Carry out a step.
    Start(Start),
    /// End a step and everything it started; it is over when nothing of it is left.
    Cancel {
        /// Which one.
        step: StepId,
        /// Which attempt.
        attempt: u32,
    },
    /// Evaluate these conditions in order on the step's view of the state.
    Choose {
        /// After which step.
        step: StepId,
        /// The conditions.
        options: Vec<Condition>,
        /// Where each of them leads, where they are edges.
        targets: Vec<NodeId>,
    },
    /// Evaluate a function on these values and the step's view of the state.
    Evaluate {
        /// For which step.
        step: StepId,
        /// The function.
        call: FunctionId,
        /// The values.
        args: Vec<Arc<Value>>,
    },
    /// Say so when this node, which holds others, has taken longer than it may.
    Limit {
        /// The visit to that node.
        step: StepId,
        /// How long it may take from now on.
        timeout_ms: u64,
    },
    /// Wait, then say so.
    Rest {
        /// The visit that waits.
        step: StepId,
        /// How long.
        delay_ms: u64,
    },
    /// Ask the user what a step wants to know.
    Ask {
        /// Which one.
        step: StepId,
        /// What it wants to know.
        signal: Signal,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
