//! Definitions that a project brings along: everything in its files that would run by itself, or
//! change how agents work, once the user trusts the repository.
//!
//! Only definitions count, not the files they lead to: the command of a hook, not the script that
//! the command runs. Nothing here starts a process or follows a link out of the repository.

mod files;
mod git;
mod identity;
mod programs;
mod shown;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use files::ProjectFiles;
pub use git::{Repository, commands_in_git, is_lazy_fetch};
pub use identity::{DefinitionId, Reach, path_text};
pub use programs::{is_never_used, program_definitions};
pub(crate) use shown::commands;
pub use shown::{LONGEST_KEPT, on_one_line, setting_lines, whole_line};
use shown::{kept, readable};

/// Something a project defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// What kind of thing it is.
    pub kind: DefinitionKind,
    /// The file it stands in, from the repository's root.
    pub path: PathBuf,
    /// What it is called there.
    pub name: String,
    /// Lines about what it would do. None is left out, and none is cut.
    pub detail: Vec<String>,
    /// The hash of the definition.
    pub digest: String,
    /// The beginning of the text that counts. A decision keeps it, so that the question about a
    /// change can show the difference.
    pub text: String,
    /// The folder it counts in, from the repository's root.
    pub folder: PathBuf,
    /// Whether it counts in the folders below as well.
    pub reach: Reach,
    /// Its number among definitions with the same kind, place and name, from 0.
    nth: usize,
}

/// What kind of thing a project defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionKind {
    /// A command that an agent program runs when something happens.
    Hook,
    /// A server of tools.
    McpServer,
    /// A server that knows a programming language, or a formatter.
    LanguageServer,
    /// Code that an agent program loads.
    Plugin,
    /// A command in the repository's own git settings, or a git hook.
    Git,
    /// A command that checks the work.
    Check,
    /// The code of a workflow.
    Workflow,
    /// An agent that replaces the user's or a built-in one.
    Agent,
    /// A skill that replaces the user's or a built-in one.
    Skill,
    /// A command that replaces the user's or a built-in one.
    Command,
    /// A setting of Atomic that needs trust.
    Setting,
    /// A setting of an agent program.
    ProgramSetting,
    /// A text that an agent program reads into every conversation.
    Instructions,
    /// A folder of programs that is in `PATH`.
    Programs,
    /// Something else in the folder of an agent program.
    OtherFile,
}

impl DefinitionKind {
    /// The heading of a list of such definitions.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Hook => "hooks",
            Self::McpServer => "MCP servers",
            Self::LanguageServer => "language servers",
            Self::Plugin => "plugins",
            Self::Git => "git",
            Self::Check => "checks",
            Self::Workflow => "workflows",
            Self::Agent => "agents",
            Self::Skill => "skills",
            Self::Command => "commands",
            Self::Setting | Self::ProgramSetting => "settings",
            Self::Instructions => "instructions",
            Self::Programs => "programs in PATH",
            Self::OtherFile => "other files",
        }
    }

    /// The word for such a definition in a line about its id.
    fn word(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::McpServer => "mcp",
            Self::LanguageServer => "lsp",
            Self::Plugin => "plugin",
            Self::Git => "git",
            Self::Check => "check",
            Self::Workflow => "workflow",
            Self::Agent => "agent",
            Self::Skill => "skill",
            Self::Command => "command",
            Self::Setting => "setting",
            Self::ProgramSetting => "program",
            Self::Instructions => "instructions",
            Self::Programs => "programs",
            Self::OtherFile => "file",
        }
    }
}

impl Definition {
    /// A definition whose text is what counts.
    pub fn new(
        kind: DefinitionKind,
        path: impl Into<PathBuf>,
        name: impl Into<String>,
        text: &str,
    ) -> Self {
        let (digest, kept) = (digest(text), kept(text));
        let (path, name, folder, reach) = (path.into(), name.into(), PathBuf::new(), Reach::Below);
        let new =
            Self { kind, path, name, detail: vec![], digest, text: kept, folder, reach, nth: 0 };
        new.detailed(text)
    }

    /// The same in a folder, from the repository's root. Without this a definition counts in the
    /// whole repository.
    #[must_use]
    pub fn within(self, folder: impl Into<PathBuf>, reach: Reach) -> Self {
        Self { folder: folder.into(), reach, ..self }
    }

    /// The same with one line about what it would do, or none.
    #[must_use]
    pub fn detailed(self, detail: impl Into<String>) -> Self {
        self.listing(vec![detail.into()])
    }

    /// The same with these lines about what it would do, one for each command.
    #[must_use]
    pub fn listing(self, lines: Vec<String>) -> Self {
        Self { detail: shown::plain(lines), ..self }
    }

    /// The same with another text in which a person looks for a difference. The hash stays.
    #[must_use]
    pub fn keeping(self, text: &str) -> Self {
        Self { text: kept(text), ..self }
    }

    /// The identity under which a decision remembers the definition.
    ///
    /// Of a check that is found, the command line counts, wherever in the repository it would run:
    /// what it runs can change without a question, too.
    pub fn id(&self) -> DefinitionId {
        let is_check = self.kind == DefinitionKind::Check;
        let unless_check = |path: &PathBuf| if is_check { PathBuf::new() } else { path.clone() };
        DefinitionId {
            kind: self.kind,
            folder: unless_check(&self.folder),
            reach: self.reach,
            path: unless_check(&self.path),
            name: self.name.clone(),
            nth: self.nth,
        }
    }
}

/// Sorts definitions, drops repetitions, and numbers those that would have the same id: a list of
/// plugins without names, a server that two keys of one file define.
pub fn number(definitions: &mut Vec<Definition>) {
    definitions.sort();
    definitions.dedup();
    let mut known: BTreeMap<DefinitionId, usize> = BTreeMap::new();
    for definition in definitions {
        let count = known.entry(definition.id()).or_insert(0);
        definition.nth = *count;
        *count += 1;
    }
}

/// The hash of a text, as decisions remember it.
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The folders from one up to the repository's root, the root first.
fn folders_between<'f>(root: &Path, folder: &'f Path) -> Vec<&'f Path> {
    let mut folders: Vec<&Path> =
        folder.ancestors().take_while(|above| above.starts_with(root)).collect();
    folders.reverse();
    folders
}
