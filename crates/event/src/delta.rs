//! What is shown and not kept.

use serde::Serialize;

use crate::{StepId, ToolCall};

/// Something to show and forget: lost on a crash, by design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "delta", rename_all = "snake_case")]
pub enum Delta {
    /// More of the text the agent is still writing.
    Typed {
        /// In which step.
        step: StepId,
        /// The piece.
        text: String,
    },
    /// More of what the agent is thinking.
    Thought {
        /// In which step.
        step: StepId,
        /// The piece.
        text: String,
    },
    /// A tool is being used.
    ToolBegan {
        /// In which step.
        step: StepId,
        /// Which one, on what.
        #[serde(flatten)]
        call: ToolCall,
    },
}

impl Delta {
    /// The step it is about.
    pub fn step(&self) -> &StepId {
        match self {
            Self::Typed { step, .. }
            | Self::Thought { step, .. }
            | Self::ToolBegan { step, .. } => step,
        }
    }
}
