//! What one prompt to one backend can lead to, in words that are no vendor's own.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Checked, ProjectRead, Question, QuestionId, StepError};

/// Something a backend reported while a turn was under way.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEvent {
    /// More of the text the agent is writing. Shown, not kept.
    Typed {
        /// The piece.
        text: String,
    },
    /// More of what the agent is thinking. Shown, not kept.
    Thought {
        /// The piece.
        text: String,
    },
    /// A tool is being used; how it ended is reported. Shown, not kept.
    ToolBegan(ToolCall),
    /// Something worth keeping happened.
    Reported(Report),
    /// The agent asks the user and waits.
    Asked {
        /// The backend's own id of the question; the answer is given under it.
        id: QuestionId,
        /// What it asks.
        question: Question,
        /// How many more questions follow that are asked together with this one.
        more: usize,
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

/// The part of a turn that is kept in the journal, and what the engine itself found out in a step.
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
    /// A helper that the agent has started came further.
    Helper(Helper),
    /// The agent's own list of what it means to do. It is not the run's task list.
    Todos {
        /// The list, in its order.
        items: Vec<Todo>,
    },
    /// The conversation was summarised to make room.
    Compacted {
        /// How much it filled before, in tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<u64>,
        /// How much it fills now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u64>,
    },
    /// The provider is in trouble, and the program tries again by itself.
    Waited(Wait),
    /// Something the user should know, such as that another model has taken over.
    Remarked {
        /// What.
        text: String,
    },
    /// The engine ran the checks. No backend reports this.
    Checked(Checked),
    /// The engine read the files that define the checks, and the tests. No backend reports this.
    ProjectRead(Box<ProjectRead>),
}

/// A tool that is being used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolCall {
    /// The tool, such as `write` or `shell`.
    pub tool: String,
    /// What it is used on, in a few words.
    pub summary: String,
    /// The helper that uses it, when the agent itself does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// An agent that another agent has started inside its turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Helper {
    /// The program's own name for it.
    pub id: String,
    /// Which persona, where it is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// What it is to do, in a few words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// How far it has come.
    pub state: HelperState,
    /// How many tools it has used.
    #[serde(default)]
    pub tools_used: u64,
    /// How many tokens it has spent; they are part of the turn's.
    #[serde(default)]
    pub tokens: u64,
}

/// How far a helper has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HelperState {
    /// It has begun.
    Started,
    /// It is done.
    Finished,
    /// It failed or was stopped.
    Failed,
}

/// An entry of an agent's own list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is, in the program's own word, such as `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// A wait for the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Wait {
    /// The kind of trouble: the code the turn would fail with.
    pub code: String,
    /// Which try failed, from 1.
    pub attempt: u64,
    /// How long the program waits before the next, in milliseconds, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
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
    /// The helper that used it, when the agent itself did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl ToolUse {
    /// A tool the agent itself used.
    pub fn new(tool: impl Into<String>, summary: impl Into<String>, ok: bool) -> Self {
        Self { tool: tool.into(), summary: summary.into(), ok, by: None }
    }
}

/// Tokens spent, and money where the backend knows it.
#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Cost in US dollars by a price list, where the program does not state one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_usd: Option<f64>,
    /// Whether this is the total of the turn so far: it replaces what was reported of the turn's
    /// calls. Otherwise it is added to them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_total: bool,
    /// How much of its window the conversation fills now, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// How large that window is, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// Fields that most reports do not have are left out, in recordings of tests as well.
impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Usage");
        fields.field("input_tokens", &self.input_tokens);
        fields.field("output_tokens", &self.output_tokens);
        fields.field("cost_usd", &self.cost_usd);
        if let Some(estimated) = &self.estimated_usd {
            fields.field("estimated_usd", estimated);
        }
        if self.is_total {
            fields.field("is_total", &true);
        }
        fields.field("context_tokens", &self.context_tokens);
        fields.field("context_window", &self.context_window).finish()
    }
}
