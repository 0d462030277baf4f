//! Talking to a coding agent program.
//!
//! One folder per program. In each, `wire.rs` holds the program's own message types, `decode.rs`
//! turns them into [`TurnEvent`](atomic_event::TurnEvent)s without IO, and `mod.rs` starts the
//! program and moves bytes. [`guard`] stands between us and every process that is started.

pub mod acp;
mod asking;
pub mod claude;
mod conversation;
pub mod copilot;
mod error;
pub mod guard;
pub mod login;
pub mod opencode;
mod outlet;
pub mod prices;
mod process;
#[cfg(test)]
mod recordings;
mod retry_time;
pub mod script;
mod serving;
mod temporary;
mod tools;
mod trouble;
mod turn;
mod version;
mod words;

pub use conversation::{
    Backend, BoxFuture, Conversation, Inherit, ModelOffer, OpenRequest, Persona, Place,
    ServerState, Turn,
};
pub use error::BackendError;
pub use temporary::PrivateFolder;
pub use tools::{ToolDecision, ToolRule, ToolRules};
pub use trouble::PROVIDER_PATIENCE;
