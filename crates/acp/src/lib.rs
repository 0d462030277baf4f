//! What happens, in the words of the Agent Client Protocol, and what editors say, in ours.
//!
//! Nothing is done here: no connection, no file, no process. Facts and typing go in and updates of a
//! session come out ([`Narrator`]); a question becomes a form or a choice of permissions
//! ([`Form`], [`Choices`]); the parts of a prompt become a text ([`Prompt`]).

mod narrator;
mod prompt;
mod provider;
mod question;
mod tool;
mod typed;

pub use narrator::{Narrator, Voice, message, plan_of_tasks, user_message};
pub use prompt::{Prompt, Slash};
pub use provider::ProviderWaits;
pub use question::{Choices, Form};
pub use tool::{Look, Seen};
