//! The arguments of `git`, some of which are commands.

use crate::shell::refusal::{EVALUATED, PROGRAM, Refusal};

/// How far a `git` command has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Git {
    /// Before the subcommand.
    Option,
    /// The value of an option before the subcommand.
    Value,
    /// The value of `-c`.
    Setting,
    /// Behind the subcommand.
    Sub(Sub),
    /// The next word is a command.
    Command(Sub),
    /// Everything that follows may be a command.
    Refused,
}

/// The subcommands that have commands among their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sub {
    Bisect,
    Clone,
    /// `config`, with whether the last word is a key whose value is only read by people.
    Config(bool),
    Difftool,
    Grep,
    Rebase,
    Submodule,
    Other,
}

/// Long options with a command, of any subcommand.
const COMMANDS: [&str; 13] = [
    "exec",
    "upload-pack",
    "receive-pack",
    "exec-path",
    "extcmd",
    "open-files-in-pager",
    "config",
    "config-env",
    "template",
    "smtp-server",
    "sendmail-cmd",
    "to-cmd",
    "cc-cmd",
];

/// Options before the subcommand without a value.
const FLAGS: [&str; 13] = [
    "-p",
    "-P",
    "--paginate",
    "--no-pager",
    "--bare",
    "--no-replace-objects",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--icase-pathspecs",
    "--version",
    "--help",
];

/// Options before the subcommand whose value names a place.
const PLACES: [&str; 5] = ["-C", "--git-dir", "--work-tree", "--namespace", "--attr-source"];

impl Git {
    /// The meaning of the word behind this one.
    pub(super) fn after(self, text: &str) -> Self {
        match self {
            Self::Value | Self::Setting => Self::Option,
            Self::Option if text == "-c" => Self::Setting,
            Self::Option if PLACES.contains(&text) => Self::Value,
            Self::Option if FLAGS.contains(&text) || text.starts_with("--") && has_value(text) => {
                self
            }
            Self::Option if text.starts_with('-') => Self::Refused,
            Self::Option => match text {
                "filter-branch" | "daemon" | "shell" => Self::Refused,
                "bisect" => Self::Sub(Sub::Bisect),
                "clone" => Self::Sub(Sub::Clone),
                "config" => Self::Sub(Sub::Config(false)),
                "difftool" => Self::Sub(Sub::Difftool),
                "grep" => Self::Sub(Sub::Grep),
                "rebase" => Self::Sub(Sub::Rebase),
                "submodule" => Self::Sub(Sub::Submodule),
                _ => Self::Sub(Sub::Other),
            },
            Self::Sub(Sub::Bisect) if text == "run" => Self::Refused,
            Self::Sub(Sub::Submodule) if text == "foreach" => Self::Refused,
            Self::Sub(Sub::Config(_)) => Self::Sub(Sub::Config(is_harmless(text))),
            Self::Sub(sub) if is_command(sub, text) && !has_value(text) => Self::Command(sub),
            Self::Command(sub) => Self::Sub(sub),
            Self::Sub(_) | Self::Refused => self,
        }
    }

    /// Whether the subcommand is still to come.
    pub(super) const fn is_before_subcommand(self) -> bool {
        matches!(self, Self::Option | Self::Value | Self::Setting)
    }

    /// Why a template is refused that stands behind this part of a word.
    pub(super) fn refusal(self, text: &str) -> Option<&'static Refusal> {
        let is_command = match self {
            Self::Value => false,
            Self::Setting => !is_harmless(text),
            Self::Option => {
                let name = text.split('=').next().unwrap_or(text);
                if !text.starts_with('-') {
                    return Some(&PROGRAM);
                }
                !(has_value(text) && PLACES.contains(&name))
            }
            Self::Sub(Sub::Config(is_value)) => !is_value,
            Self::Sub(sub) => is_command(sub, text),
            Self::Command(_) | Self::Refused => true,
        };
        is_command.then_some(&EVALUATED)
    }
}

fn has_value(text: &str) -> bool {
    text.contains('=')
}

/// Whether a key is one of the names of the user.
fn is_harmless(key: &str) -> bool {
    key.to_ascii_lowercase().starts_with("user.")
}

/// Whether an option has a command, in this word or in the next one.
fn is_command(sub: Sub, text: &str) -> bool {
    if let Some(option) = text.strip_prefix("--") {
        let name = option.split('=').next().unwrap_or(option);
        return name.len() > 2 && COMMANDS.iter().any(|command| command.starts_with(name));
    }
    let letters = match sub {
        Sub::Clone => "uc",
        Sub::Rebase | Sub::Difftool => "x",
        Sub::Grep => "O",
        Sub::Bisect | Sub::Config(_) | Sub::Submodule | Sub::Other => return false,
    };
    text.strip_prefix('-').is_some_and(|text| text.contains(|letter| letters.contains(letter)))
}
