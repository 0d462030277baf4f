//! The programs, and what each calls its tools.

use std::path::PathBuf;

use atomic_testing::agents::{COPILOT, OPENCODE, folder};
use atomic_testing::model::{Action, Reply};
use serde_json::{Value, json};

/// A program that is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Program {
    /// Claude Code, in a version.
    Claude(&'static str),
    OpenCode,
    Copilot,
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Claude(_) => "claude",
            Self::OpenCode => "opencode",
            Self::Copilot => "copilot",
        }
    }

    /// Where it is.
    pub(super) fn folder(self) -> PathBuf {
        match self {
            Self::Claude(version) => folder("claude", version),
            Self::OpenCode => folder("opencode", OPENCODE),
            Self::Copilot => folder("copilot", COPILOT),
        }
    }

    /// A command for its shell.
    pub(super) fn shell(self, command: &str) -> Action {
        let (tool, input) = match self {
            Self::Claude(_) => ("Bash", json!({ "command": command })),
            Self::OpenCode | Self::Copilot => {
                ("bash", json!({ "command": command, "description": "Runs it" }))
            }
        };
        Action::Call { tool: tool.to_owned(), input }
    }

    pub(super) fn runs(self, command: &str) -> Reply {
        Reply::default().and(self.shell(command))
    }

    pub(super) fn reads(self, path: &str) -> Reply {
        match self {
            Self::Claude(_) => Reply::call("Read", json!({ "file_path": path })),
            Self::OpenCode => Reply::call("read", json!({ "filePath": path })),
            Self::Copilot => Reply::call("view", json!({ "path": path })),
        }
    }

    pub(super) fn writes(self, path: &str, content: &str) -> Reply {
        let (tool, place, text) = match self {
            Self::Claude(_) => ("Write", "file_path", "content"),
            Self::OpenCode => ("write", "filePath", "content"),
            Self::Copilot => ("create", "path", "file_text"),
        };
        Reply::call(tool, json!({ place: path, text: content }))
    }

    /// What it has to do before it can write a file that may be there, in a folder that may not.
    pub(super) fn makes_room(self, path: &str) -> Option<Reply> {
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let is_needed = self == Self::Copilot;
        is_needed.then(|| self.runs(&format!("mkdir -p {folder} && rm -f {path}")))
    }

    pub(super) fn edits(self, path: &str, old: &str, new: &str) -> Reply {
        let (tool, [place, before, after]) = match self {
            Self::Claude(_) => ("Edit", ["file_path", "old_string", "new_string"]),
            Self::OpenCode => ("edit", ["filePath", "oldString", "newString"]),
            Self::Copilot => ("edit", ["path", "old_str", "new_str"]),
        };
        Reply::call(tool, json!({ place: path, before: old, after: new }))
    }

    /// Asks all of these at once: red or blue?
    pub(super) fn asks(self, questions: &[&str]) -> Reply {
        let labels = ["Red", "Blue"];
        let (tool, several) = match self {
            Self::Claude(_) => ("AskUserQuestion", "multiSelect"),
            Self::OpenCode => ("question", "multiple"),
            Self::Copilot => {
                let ask = |text: &&str| Action::Call {
                    tool: "ask_user".to_owned(),
                    input: json!({ "question": text, "choices": labels }),
                };
                return questions.iter().map(ask).fold(Reply::default(), Reply::and);
            }
        };
        let options = labels.map(|label| json!({ "label": label, "description": label }));
        let question = |text: &&str| -> Value {
            json!({ "question": text, "header": "Colour", several: false, "options": options })
        };
        let questions: Vec<Value> = questions.iter().map(question).collect();
        Reply::call(tool, json!({ "questions": questions }))
    }
}
