//! What a person asks for.

use crate::{Answer, QuestionId};

/// A wish from a front end. Only the runner acts on it, so every front end means the same by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Interrupt the turns under way, save everything, stop.
    Pause {
        /// What brought it about, such as `Ctrl+C`.
        reason: String,
    },
    /// Answer a question.
    Answer {
        /// Which one.
        question: QuestionId,
        /// With what.
        answer: Answer,
    },
    /// Nobody is there to answer questions any more: go on with what can go on, then wait.
    Leave,
}
