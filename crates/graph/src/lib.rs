//! Pure workflow execution: a graph, a state, and what to do next.

mod id;
mod outcome;

pub use id::{FunctionId, Key, NodeId, StepId};
pub use outcome::{Patch, StepError, StepResult, code};
