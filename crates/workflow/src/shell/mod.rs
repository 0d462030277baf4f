//! Filling the templates of a shell command, so that no value is ever parsed by the shell.
//!
//! The values are passed as variables of the environment. In the command each template becomes an
//! expansion of its variable, with the quotes that its place needs. Places that are refused:
//! `docs/decisions/0018-templates-in-commands.md`.

mod programs;
mod refusal;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use atomic_graph::State;

pub use refusal::Refusal;
use scan::{Place, Template, templates};

use crate::template::{Braces, TemplateError, Written, is_foreign, lookup, missing};

/// The most bytes of one value. Linux takes 128 KiB for a variable with its name.
const LONGEST: usize = 100 * 1024;

/// The most bytes of all values of a command together. macOS takes 1 MB for arguments and
/// environment, of which the environment of the user has a part.
const LONGEST_TOGETHER: usize = 512 * 1024;

/// The beginning of the names of the variables.
const VARIABLE: &str = "ATOMIC_ARG";

/// A command for `sh -c`, with the variables that have its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    /// The text for the shell.
    pub text: String,
    /// The command as its author wrote it, for people.
    pub written: String,
    /// Variables to add to the environment.
    pub env: Vec<(String, String)>,
    /// Variables whose value is the path of a file with this text.
    pub files: Vec<(String, String)>,
}

impl ShellCommand {
    /// A command without templates.
    pub fn verbatim(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { written: text.clone(), text, ..Self::default() }
    }
}

/// Why a command cannot be filled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShellTemplateError {
    /// The shell would parse the value.
    #[error("the template {{{key}}} stands {}; {}", refusal.place, hint(refusal, key))]
    Refused {
        /// The key of the template.
        key: String,
        /// The place.
        refusal: &'static Refusal,
    },
    /// A key has no value.
    #[error(transparent)]
    Missing(#[from] TemplateError),
    /// A value does not fit into the environment.
    #[error(
        "the value of {{{key}}} has {bytes} bytes, more than the {LONGEST} that fit into a \
         command; write {{file:{key}}}, which is filled with the path of a file that has the value"
    )]
    TooLong {
        /// The key of the template.
        key: String,
        /// The size of the value.
        bytes: usize,
    },
    /// The values together do not fit into the environment.
    #[error(
        "the values of the command have {bytes} bytes, more than the {LONGEST_TOGETHER} that fit \
         into a command; write {{file:{key}}} for the longest, which is filled with the path of a \
         file that has the value"
    )]
    TooLongTogether {
        /// The key of the longest value.
        key: String,
        /// The size of all values.
        bytes: usize,
    },
    /// A value cannot be passed to any program.
    #[error(
        "the value of {{{key}}} contains a NUL byte, which no argument of a program can have; \
         write {{file:{key}}}, which is filled with the path of a file that has the value"
    )]
    Nul {
        /// The key of the template.
        key: String,
    },
}

/// A template of a command, for the checks of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Used<'t> {
    /// The key that it is filled with.
    pub(crate) key: &'t str,
    /// Why it is refused, if it is.
    pub(crate) refusal: Option<&'static Refusal>,
    /// Whether it has to have a value.
    pub(crate) is_needed: bool,
}

/// Returns the replacement to suggest for a refused template.
fn hint(refusal: &Refusal, key: &str) -> String {
    let hint = refusal.hint.replace("{key}", &format!("{{{key}}}"));
    hint.replace("{file:key}", &format!("{{file:{key}}}"))
}

/// The templates of a command.
pub(crate) fn templates_in(template: &str) -> Vec<Used<'_>> {
    let found = templates(template).into_iter();
    found
        .map(|Template { range, written, place }| {
            let refusal = refused(place);
            let is_text = refusal.is_some() || is_foreign(&template[..range.start]);
            Used { key: written.key, refusal, is_needed: !is_text && !written.is_optional }
        })
        .collect()
}

fn refused(place: Place) -> Option<&'static Refusal> {
    if let Place::Refused(refusal) = place { Some(refusal) } else { None }
}

/// Fills `{key}`, `{item.id}` and `{outputs.node}` of a shell command; `{file:key}` is filled with
/// the path of a file that has the value. Braces of other languages stay as they are written.
///
/// # Errors
///
/// When the shell would parse a value, when a key has no value, and when a value does not fit into
/// the environment.
pub fn render_shell(template: &str, state: &State) -> Result<ShellCommand, ShellTemplateError> {
    let mut prefix = VARIABLE.to_owned();
    // The command may have variables of its own.
    while template.contains(&prefix) {
        prefix.push('_');
    }
    let mut command = ShellCommand { written: template.to_owned(), ..ShellCommand::default() };
    let mut known: BTreeMap<(&str, bool), String> = BTreeMap::new();
    let mut end = 0;
    for Template { range, written, place } in templates(template) {
        let Written { key, is_file, is_optional, .. } = written;
        // The braces of a program text (`awk '{print}'`) are its own.
        let is_text = refused(place).is_some() || is_foreign(&template[..range.start]);
        let value = match lookup(key, state) {
            Some(value) => value,
            None if is_text => continue,
            None if is_optional => String::new(),
            None => return Err(missing(written, state, Braces::InCommand).into()),
        };
        if let Some(refusal) = refused(place) {
            return Err(ShellTemplateError::Refused { key: key.to_owned(), refusal });
        }
        let variable = match known.get(&(key, is_file)) {
            Some(variable) => variable.clone(),
            None => {
                let variable = format!("{prefix}{}", known.len() + 1);
                known.insert((key, is_file), variable.clone());
                if is_file {
                    command.files.push((variable.clone(), value));
                } else {
                    fits(key, &value)?;
                    command.env.push((variable.clone(), value));
                }
                variable
            }
        };
        command.text.push_str(&template[end..range.start]);
        command.text.push_str(&match place {
            Place::Double => format!("${{{variable}}}"),
            Place::Single => format!("'\"${{{variable}}}\"'"),
            Place::Bare | Place::Refused(_) => format!("\"${{{variable}}}\""),
        });
        end = range.end;
    }
    command.text.push_str(&template[end..]);
    let bytes = command.env.iter().map(|(_, value)| value.len()).sum();
    if bytes > LONGEST_TOGETHER {
        let longest = command.env.iter().max_by_key(|(_, value)| value.len());
        let longest = longest.map(|(variable, _)| variable);
        let key = known.iter().find(|(_, variable)| Some(*variable) == longest);
        let key = key.map(|((key, _), _)| (*key).to_owned()).unwrap_or_default();
        return Err(ShellTemplateError::TooLongTogether { key, bytes });
    }
    Ok(command)
}

fn fits(key: &str, value: &str) -> Result<(), ShellTemplateError> {
    if value.len() > LONGEST {
        return Err(ShellTemplateError::TooLong { key: key.to_owned(), bytes: value.len() });
    }
    if value.contains('\0') {
        return Err(ShellTemplateError::Nul { key: key.to_owned() });
    }
    Ok(())
}
