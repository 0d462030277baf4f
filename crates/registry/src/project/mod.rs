//! Definitions that a project brings along: everything in its files that would run by itself, or
//! change how agents work, once the user trusts the repository.
//!
//! Only definitions count, not the files they lead to: the command of a hook, not the script that
//! the command runs. Nothing here starts a process or follows a link out of the repository.

mod files;
mod git;
mod identity;
mod programs;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

pub use files::ProjectFiles;
pub use git::{Repository, commands_in_git, is_lazy_fetch};
pub use identity::{DefinitionId, Reach, path_text};
pub use programs::{is_never_used, program_definitions};

/// Something a project defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition {
    /// What kind of thing it is.
    pub kind: DefinitionKind,
    /// The file it stands in, from the repository's root.
    pub path: PathBuf,
    /// What it is called there.
    pub name: String,
    /// What it would do, in one line.
    pub detail: String,
    /// The hash of the definition.
    pub digest: String,
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
        let (path, name, detail) = (path.into(), name.into(), one_line(text));
        let (folder, reach) = (PathBuf::new(), Reach::Below);
        Self { kind, path, name, detail, digest: digest(text), folder, reach, nth: 0 }
    }

    /// The same in a folder, from the repository's root. Without this a definition counts in the
    /// whole repository.
    #[must_use]
    pub fn within(self, folder: impl Into<PathBuf>, reach: Reach) -> Self {
        Self { folder: folder.into(), reach, ..self }
    }

    /// The same with another line about what it would do.
    #[must_use]
    pub fn detailed(self, detail: impl Into<String>) -> Self {
        Self { detail: one_line(&detail.into()), ..self }
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

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&on_one_line(&self.name))?;
        if !self.detail.is_empty() && self.detail != self.name {
            write!(f, ": {}", on_one_line(&self.detail))?;
        }
        let path = self.path.display().to_string();
        if !path.is_empty() && path != self.name {
            write!(f, "  ({})", on_one_line(&path))?;
        }
        Ok(())
    }
}

/// Returns a text from a stranger's file for a line of the trust question: no character of it begins
/// another line, and none is invisible. Two definitions that differ look different.
pub fn on_one_line(text: &str) -> String {
    let is_hidden = |c: char| c.is_control() || is_invisible(c);
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a character takes no room, looks like a space or changes the direction of a line: format
/// characters and the fillers of Unicode 16. Joined emoji are lost with them, which does no harm in
/// names and commands.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The hash of a text, as decisions remember it.
pub fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The longest line about a definition.
const LONGEST_DETAIL: usize = 100;

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= LONGEST_DETAIL {
        return line;
    }
    let beginning: String = line.chars().take(LONGEST_DETAIL).collect();
    format!("{beginning}…")
}

/// The commands in a definition, wherever they stand in it, for a person to read.
fn commands(value: &Value) -> String {
    let mut found = vec![];
    collect_commands(value, &mut found);
    if found.is_empty() { value.to_string() } else { found.join("; ") }
}

fn collect_commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("command" | "bash" | "url", Value::String(text)) => {
                        let arguments = fields.get("args").and_then(Value::as_array);
                        let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
                        let words: Vec<&str> =
                            [text.as_str()].into_iter().chain(arguments).collect();
                        found.push(words.join(" "));
                    }
                    ("command", Value::Array(words)) => {
                        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                        found.push(words.join(" "));
                    }
                    ("env" | "environment" | "headers", Value::Object(values)) => {
                        // A variable such as NODE_OPTIONS runs something, too.
                        let pairs = values.iter().map(|(name, value)| match value.as_str() {
                            Some(text) => format!("{name}={text}"),
                            None => format!("{name}={value}"),
                        });
                        let pairs: Vec<String> = pairs.collect();
                        if !pairs.is_empty() {
                            found.push(format!("{key} {}", pairs.join(" ")));
                        }
                    }
                    (_, value) => collect_commands(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_commands(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The folders from one up to the repository's root, the root first.
fn folders_between<'f>(root: &Path, folder: &'f Path) -> Vec<&'f Path> {
    let mut folders: Vec<&Path> =
        folder.ancestors().take_while(|above| above.starts_with(root)).collect();
    folders.reverse();
    folders
}
