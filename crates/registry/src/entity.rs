//! What can be called by name: commands, skills, agents.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::allowed::Tools;
use crate::normal::Model;
use crate::project::DefinitionKind;

/// What kind of thing it is. The order is that of names: the first of two hides the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A prompt that is run as it is.
    Command,
    /// A prompt that teaches how to do something.
    Skill,
    /// A persona.
    Agent,
}

impl Kind {
    /// Every kind, in the order of names.
    pub const ALL: [Self; 3] = [Self::Command, Self::Skill, Self::Agent];

    /// What it is among a project's definitions.
    pub(crate) fn definition(self) -> DefinitionKind {
        match self {
            Self::Command => DefinitionKind::Command,
            Self::Skill => DefinitionKind::Skill,
            Self::Agent => DefinitionKind::Agent,
        }
    }

    /// Its word, in lower case, as in `skill:commit`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Skill => "skill",
            Self::Agent => "agent",
        }
    }
}

/// Whose folders it was found in. The order is that inside a scope: the first hides the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Provider {
    /// `.atomic`
    Atomic,
    /// `.claude`
    Claude,
    /// `.opencode`
    OpenCode,
    /// `.github` and `.copilot`
    Copilot,
}

impl Provider {
    /// Every provider, the one whose entries hide the others' first.
    pub const ALL: [Self; 4] = [Self::Atomic, Self::Claude, Self::OpenCode, Self::Copilot];

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Claude => "claude",
            Self::OpenCode => "opencode",
            Self::Copilot => "copilot",
        }
    }
}

/// How near it is. The nearer hides the farther.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the project.
    Project,
    /// In the user's home folder.
    User,
    /// In the copies of the providers' folders below `~/.atomic`.
    Managed,
    /// Part of the program.
    BuiltIn,
}

impl Scope {
    /// Whose an entity of it is, in a sentence.
    pub(crate) fn theirs(self) -> &'static str {
        match self {
            Self::Project => "the project's",
            Self::User | Self::Managed => "yours",
            Self::BuiltIn => "the built-in one",
        }
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
            Self::BuiltIn => "built-in",
        }
    }
}

/// Where something comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// How near it is.
    pub scope: Scope,
    /// Whose format it has.
    pub provider: Provider,
    /// Its file, unless it is part of the program.
    pub path: Option<PathBuf>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => {
                write!(f, "{} {}, {}", self.scope.name(), self.provider.name(), path.display())
            }
            None => f.write_str(self.scope.name()),
        }
    }
}

/// A command, a skill or an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// What kind of thing it is.
    pub kind: Kind,
    /// What it is called.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// What it is for.
    pub description: Arc<str>,
    /// What it may use; absent: everything.
    pub tools: Tools,
    /// What it runs on, when it says so.
    pub model: Option<Model>,
    /// What to type after its name.
    pub arguments: Arguments,
    /// Whether it is left out of lists.
    pub hidden: bool,
    /// Everything else that stands in its head.
    pub more: Map<String, Value>,
    /// Where it comes from.
    pub origin: Origin,
    /// Where its prompt is.
    pub prompt: Prompt,
}

/// What to type after a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// In short, as in `[message] | --amend`.
    pub hint: Option<String>,
    /// Those that must not be missing.
    pub required: Vec<String>,
}

/// Where a prompt is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// In the file it comes from, below the head; read when it is needed.
    InFile,
    /// Here.
    Text(String),
    /// Here, with `{file:…}` where the text of a file belongs; read when it is needed.
    WithFiles {
        /// The text as it was written.
        text: String,
        /// What `~` stands for in it.
        home: Option<PathBuf>,
    },
    /// Part of the program.
    Embedded(&'static str),
}
