//! The programs, and what each calls its tools.

use std::path::PathBuf;

use atomic_testing::agents::{OPENCODE, folder};
use atomic_testing::model::{Action, Reply};
use serde_json::{Value, json};

/// A program that is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Program {
    /// Claude Code, in a version.
    Claude(&'static str),
    OpenCode,
}

impl Program {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Claude(_) => "claude",
            Self::OpenCode => "opencode",
        }
    }

    /// Where it is.
    pub(super) fn folder(self) -> PathBuf {
        match self {
            Self::Claude(version) => folder("claude", version),
            Self::OpenCode => folder("opencode", OPENCODE),
        }
    }

    /// A command for its shell.
    pub(super) fn shell(self, command: &str) -> Action {
        let (tool, input) = match self {
            Self::Claude(_) => ("Bash", json!({ "command": command })),
            Self::OpenCode => ("bash", json!({ "command": command, "description": "Runs it" })),
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
        }
    }

    pub(super) fn writes(self, path: &str, content: &str) -> Reply {
        let (tool, key) = match self {
            Self::Claude(_) => ("Write", "file_path"),
            Self::OpenCode => ("write", "filePath"),
        };
        Reply::call(tool, json!({ key: path, "content": content }))
    }

    pub(super) fn edits(self, path: &str, old: &str, new: &str) -> Reply {
        match self {
            Self::Claude(_) => Reply::call(
                "Edit",
                json!({ "file_path": path, "old_string": old, "new_string": new }),
            ),
            Self::OpenCode => {
                Reply::call("edit", json!({ "filePath": path, "oldString": old, "newString": new }))
            }
        }
    }

    /// Asks all of these at once: red or blue?
    pub(super) fn asks(self, questions: &[&str]) -> Reply {
        let options = ["Red", "Blue"].map(|label| json!({ "label": label, "description": label }));
        let (tool, several) = match self {
            Self::Claude(_) => ("AskUserQuestion", "multiSelect"),
            Self::OpenCode => ("question", "multiple"),
        };
        let question = |text: &&str| -> Value {
            json!({ "question": text, "header": "Colour", several: false, "options": options })
        };
        let questions: Vec<Value> = questions.iter().map(question).collect();
        Reply::call(tool, json!({ "questions": questions }))
    }
}
