//! What one prompt to one backend can lead to, in words that are no vendor's own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Question, QuestionId, StepError};

/// Something a backend reported while a turn was under way.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEvent {
    /// More of the text the agent is writing. Shown, not kept.
    Typed {
        /// The piece.
        text: String,
    },
    /// Something worth keeping happened.
    Reported(Report),
    /// The agent asks the user and waits.
    Asked {
        /// The backend's own id of the question; the answer is given under it.
        id: QuestionId,
        /// What it asks.
        question: Question,
    },
    /// The turn is over; nothing follows.
    Ended(Stop),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The agent finished; this is the whole text of its last message.
    Done {
        /// The final text, empty when the agent said nothing.
        text: String,
    },
    /// We interrupted it.
    Interrupted,
    /// It failed.
    Failed(StepError),
}

/// The part of a turn that is kept in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Report {
    /// A finished piece of text from the agent.
    Said {
        /// The text.
        text: String,
    },
    /// A tool came back.
    ToolUsed(ToolUse),
    /// Tokens were spent.
    Spent(Usage),
}

/// One use of one tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolUse {
    /// The tool, such as `write` or `shell`.
    pub tool: String,
    /// What it was used on, in a few words.
    pub summary: String,
    /// Whether it succeeded.
    pub ok: bool,
}

/// Tokens spent, and money where the backend knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read.
    #[serde(default)]
    pub input_tokens: u64,
    /// Tokens written.
    #[serde(default)]
    pub output_tokens: u64,
    /// Cost in US dollars; absent means unknown, which is not zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How much of its window the conversation fills now, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How large that window is, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}
