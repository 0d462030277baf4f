//! What a node is to do, as data. A new kind of action is a new variant here and one arm in the
//! runner.

use atomic_event::{AgentName, BackendId, Question};
use atomic_graph::{FunctionId, Node};
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Run a command in a shell, in the project's folder.
    Shell(Shell),
    /// Run the prompt of a skill or command, by name, in a conversation of its own.
    Entry(Entry),
    /// Run the project's checks.
    Gates(Gates),
    /// Ask the user.
    Ask(Asking),
    /// The next agent of this lane starts a new conversation.
    ClearContext,
    /// Look at how full the lane's conversation is, and do something about it.
    ContextMonitor(ContextMonitor),
    /// Read or write a file of tasks.
    TaskFile(TaskFile),
    /// What the script that called this step has put down under the key `call`.
    Called,
    /// Wait until a point in time, in milliseconds since 1970. Being absolute, it means the same
    /// after a restart.
    Sleep {
        /// When.
        until: i64,
    },
    /// Ask something of the world outside, as [`crate::Host::request`] does.
    Request {
        /// What.
        name: String,
        /// With what.
        #[serde(default)]
        args: Value,
    },
}

/// A prompt for an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentAction {
    /// The persona.
    pub agent: AgentName,
    /// Whether the name is a role of a built-in workflow, which agents of other programs do not
    /// take by having the same name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub role: bool,
    /// The backend it runs on; otherwise the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendId>,
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
    /// Whether it may start the other agents there are as helpers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub helpers: bool,
    /// Whether each start counts as an iteration of the run.
    #[serde(default)]
    pub iteration: bool,
    /// Makes the changes to the state out of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<FunctionId>,
    /// The model, where it is not the node's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// JSON Schema of the answer, where it is not the node's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The name of the conversation it shares with others of its script; otherwise it is that of
    /// its lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
}

impl AgentAction {
    /// A prompt for an agent that is looked up by name, in its lane's conversation.
    pub fn new(agent: impl Into<AgentName>, prompt: Text) -> Self {
        Self {
            agent: agent.into(),
            role: false,
            backend: None,
            instructions: None,
            prompt,
            parse: None,
            fresh: false,
            questions: false,
            helpers: false,
            iteration: false,
            map: None,
            model: None,
            schema: None,
            lane: None,
        }
    }
}

/// A command for a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// What to run. Its output, without the last line break, is the step's; a status other than
    /// zero is a failure.
    pub command: Text,
    /// Makes the changes to the state out of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<FunctionId>,
}

/// A skill or command, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Which of the two.
    pub kind: EntryKind,
    /// Its name.
    pub name: String,
    /// The backend it runs on; otherwise the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendId>,
    /// What it is given.
    pub args: Text,
    /// Makes the changes to the state out of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<FunctionId>,
}

/// What a registry entry with a prompt can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A reusable prompt.
    Skill,
    /// A slash command.
    Command,
}

/// What to do about a conversation that is nearly full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContextMonitor {
    /// From which part of the window on.
    #[serde(default = "default_threshold")]
    pub threshold: f64,
    /// What to do.
    #[serde(default)]
    pub action: ContextAction,
}

fn default_threshold() -> f64 {
    0.8
}

/// What to do about a conversation that is nearly full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextAction {
    /// Let the program summarise it.
    #[default]
    Compact,
    /// Start a new one.
    Fresh,
    /// Only say so.
    Warn,
}

/// One use of a file of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskFile {
    /// Where it is, inside the project.
    pub path: String,
    /// Says where it is instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_from: Option<FunctionId>,
    /// What to do with it.
    pub op: TaskFileOp,
    /// Picks the next task instead of the order of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<FunctionId>,
    /// The number of rounds after which the loop ends whatever is left; 0 means no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_rounds: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What to do with a file of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFileOp {
    /// Put the next task that can be done under `currentTask`, its number under `iteration`, and the
    /// whole list under `tasks`; with none left, `tasksDone` is true.
    Next,
    /// Mark `currentTask` as completed, in the file too.
    Complete,
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
    /// The question; its text is a template, unless a script asks.
    pub question: Question,
}

/// A text that is made when it is needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    /// `{key}`, `{item.id}` and `{outputs.node}` are filled from the state.
    Template(String),
    /// Exactly this.
    Verbatim(String),
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
            Self::Agent(_) | Self::Shell(_) | Self::Entry(_) | Self::TaskFile(_) => Tree::Shared,
            Self::Gates(_) => Tree::Alone,
            Self::Request { name, .. } if name == "shell" => Tree::Shared,
            Self::Function { .. }
            | Self::Ask(_)
            | Self::ClearContext
            | Self::ContextMonitor(_)
            | Self::Called
            | Self::Sleep { .. }
            | Self::Request { .. } => Tree::Unused,
        }
    }

    /// Whether every attempt launches an agent.
    pub fn is_launch(&self) -> bool {
        matches!(self, Self::Agent(_) | Self::Entry(_))
    }

    /// The backend it names.
    pub fn backend(&self) -> Option<&BackendId> {
        match self {
            Self::Agent(agent) => agent.backend.as_ref(),
            Self::Entry(entry) => entry.backend.as_ref(),
            Self::Function { .. }
            | Self::Shell(_)
            | Self::Gates(_)
            | Self::Ask(_)
            | Self::ClearContext
            | Self::ContextMonitor(_)
            | Self::Called
            | Self::Sleep { .. }
            | Self::Request { .. }
            | Self::TaskFile(_) => None,
        }
    }

    /// A node that does this.
    pub fn node(&self, id: &str) -> Node {
        let action = serde_json::to_value(self).unwrap_or_default();
        if matches!(self, Self::Ask(_)) {
            return Node::question(id, action);
        }
        if self.is_launch() { Node::launch(id, action) } else { Node::work(id, action) }
    }
}
