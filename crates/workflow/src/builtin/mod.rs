//! Workflows that ship with Atomic, one file or folder each.

pub mod prompt;
pub mod ralph;
mod second_opinion;

use crate::Workflow;

/// All that can be run by name.
pub fn all() -> Vec<Workflow> {
    vec![ralph::ralph("ralph"), second_opinion::second_opinion()]
}

/// Finds a workflow by name or alias, also the one of `atomic -p`; the error suggests what may have been meant.
pub fn find(name: &str) -> Result<Workflow, NotFound> {
    if name == prompt::NAME {
        return Ok(prompt::prompt(None));
    }
    let known = all();
    let matches = |w: &Workflow| w.name.as_str() == name || w.aliases.iter().any(|a| a == name);
    let names = known.iter().map(|workflow| workflow.name.to_string()).collect();
    known.into_iter().find(matches).ok_or_else(|| NotFound { name: name.to_owned(), known: names })
}

/// There is no such workflow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Workflow not found: {name}\nThere are: {}", known.join(", "))]
pub struct NotFound {
    /// What was looked for.
    pub name: String,
    /// What there is.
    pub known: Vec<String>,
}
