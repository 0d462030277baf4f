//! Turns of a conversation with an agent program.
//!
//! [`TurnMachine`] decides, [`ConversationTask`] performs, and an [`AgentProgram`] knows the protocol of
//! its program: how messages are decoded, sent and received. Everything that must be the same on every
//! program is in the machine and the task: interruptions and their deadlines, questions, retries,
//! abandoned and slow consumers, and which of several failures a turn ends with.

mod handle;
mod machine;
#[cfg(test)]
mod machine_tests;
mod program;
mod task;

pub(crate) use handle::{Command, ConversationHandle, Handle};
pub(crate) use machine::{INTERRUPT_TIMEOUT, Input, TurnSettings};
pub(crate) use program::{AgentProgram, TurnEnd};
pub(crate) use task::ConversationTask;
