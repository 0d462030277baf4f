//! What a node is to do, as data. A new kind of action is a new variant here and one arm in the
//! runner.

use atomic_event::{AgentName, Question};
use atomic_graph::{FunctionId, Node};
use serde::{Deserialize, Serialize};

/// What the runner carries out at a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Action {
    /// Prompt an agent and wait for its turn to end.
    Agent(AgentAction),
    /// Evaluate a pure function; its result is the step's.
    Function {
        /// Which one.
        call: FunctionId,
    },
    /// Run the project's checks.
    Gates(Gates),
    /// Ask the user.
    Ask(Asking),
}

/// A prompt for an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentAction {
    /// The persona.
    pub agent: AgentName,
    /// The persona's own instructions, when it is not one that is looked up by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What to ask.
    pub prompt: Text,
    /// Turns the final text into the output. When it cannot, the agent is asked once more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parse: Option<FunctionId>,
    /// Whether it starts a conversation of its own; otherwise it shares its lane's.
    #[serde(default)]
    pub fresh: bool,
    /// Whether it may ask the user.
    #[serde(default)]
    pub questions: bool,
    /// Whether each start counts as an iteration of the run.
    #[serde(default)]
    pub iteration: bool,
}

/// Running the project's checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gates {
    /// Whether this only finds out how things stand before any work is done.
    #[serde(default)]
    pub baseline: bool,
}

/// A question of the workflow itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asking {
    /// The question; its text is a template.
    pub question: Question,
}

/// A text that is made when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// `{key}`, `{item.id}` and `{outputs.node}` are filled from the state.
    Template(String),
    /// A function writes it.
    Call(FunctionId),
}

/// How an action uses the files of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// Together with others.
    Shared,
    /// Alone, so that what it sees does not change under it.
    Alone,
    /// Not at all.
    Unused,
}

impl Action {
    /// How the action uses the files of the project.
    pub fn tree(&self) -> Tree {
        match self {
            Self::Agent(_) => Tree::Shared,
            Self::Gates(_) => Tree::Alone,
            Self::Function { .. } | Self::Ask(_) => Tree::Unused,
        }
    }

    /// A node that does this.
    pub(crate) fn node(&self, id: &str, description: &str) -> Node {
        let action = serde_json::to_value(self).unwrap_or_default();
        Node::work(id, action).described(description)
    }
}
