//! Pure workflow execution: a graph, a state, and what to do next.
//!
//! A [`Machine`] never performs work. The caller feeds it one [`Input`] at a time and carries out
//! the [`Effect`]s it returns. The same inputs always give the same effects, so a journal of
//! inputs is all that is needed to resume a run after a crash.
//!
//! Start reading at [`Machine::apply`].

mod assemble;
pub mod certificate;
pub mod check;
pub mod draw;
mod graph;
mod id;
mod machine;
mod outcome;
mod program;
mod reduce;
mod schema;
mod state;
pub mod task;

pub use check::Problem;
pub use graph::{
    Branch, Condition, Count, Each, Edge, Graph, ItemOrder, Kind, Node, OnError, OnLost, Parallel,
    Ready, Retry, Script, Strategy,
};
pub use id::{FunctionId, Key, NodeId, StepId};
pub use machine::{Effect, Evaluation, Input, Issued, Machine, Misfit, OpenScript, Start};
pub use outcome::{Goto, How, Outage, Patch, Signal, StepError, StepResult, code};
pub use program::Program;
pub use reduce::Reducer;
pub use schema::Schema;
pub use state::State;
