//! Ordered decisions about tools, as in OpenCode's `permission`: the last one that fits holds.

use std::path::Path;

use super::{Subject, Use, addresses, commands, paths, wildcard};

/// A decision about a tool, or about some of its uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDecision {
    /// The tool's name, in which `*` stands for any characters.
    pub tool: String,
    /// Which uses: a pattern for the command, path, address or name. Without it, all of them.
    pub uses: Option<String>,
    /// Whether these uses are allowed.
    pub allowed: bool,
}

/// The pseudo tool for paths outside of the workspace, in OpenCode's name for it.
pub(super) const OUTSIDE: &str = "external_directory";

/// Tools whose patterns are about what is searched for, which cannot be judged here.
const SEARCHES: [&str; 5] = ["grep", "glob", "list", "ls", "rg"];

impl ToolDecision {
    /// Makes a decision; the pattern `*` stands for every use.
    pub fn new(tool: &str, uses: Option<&str>, allowed: bool) -> Self {
        let uses = uses.filter(|uses| *uses != "*").map(str::to_owned);
        Self { tool: tool.to_owned(), uses, allowed }
    }

    pub(super) fn is_about(&self, tool: &str) -> bool {
        let (pattern, tool) = (self.tool.to_ascii_lowercase(), tool.to_ascii_lowercase());
        wildcard::fits(&pattern, &tool) || wildcard::fits(&plain(&pattern), &plain(&tool))
    }

    /// Whether the decision surely is about this use.
    fn covers(&self, subject: &Subject<'_>, workspace: &Path) -> bool {
        let Some(uses) = &self.uses else { return true };
        match subject {
            Subject::Command(command) => commands::is_allowed_by_wildcard(uses, command),
            Subject::Address(url) => addresses::is_plain(url) && wildcard::fits(uses, url),
            Subject::Path(path) => paths::fits_wildcard(uses, path, workspace),
            Subject::Name(name) => wildcard::fits(uses, name),
            Subject::Unclear => false,
        }
    }

    /// Whether the decision may be about this use.
    fn may_cover(&self, subject: &Subject<'_>, workspace: &Path) -> bool {
        let Some(uses) = &self.uses else { return true };
        match subject {
            Subject::Command(command) => {
                wildcard::fits(uses, command) || commands::may_be_prohibited(uses, command)
            }
            Subject::Address(url) => !addresses::is_plain(url) || wildcard::fits(uses, url),
            Subject::Path(path) => paths::may_fit_wildcard(uses, path, workspace),
            Subject::Name(name) => wildcard::fits(uses, name),
            Subject::Unclear => true,
        }
    }
}

/// Why a layer of decisions does not allow a use, when it does not. A use that names several
/// things has to be allowed for each of them.
pub(super) fn refusal(layer: &[ToolDecision], this: &Use<'_>) -> Option<String> {
    let about: Vec<&ToolDecision> =
        layer.iter().filter(|decision| decision.is_about(this.tool)).collect();
    let mut subjects: Vec<Subject<'_>> = this.subjects().collect();
    let is_search = SEARCHES.iter().any(|name| this.tool.eq_ignore_ascii_case(name));
    if subjects.is_empty() || is_search {
        subjects = vec![Subject::Unclear];
    }
    let refused = subjects.iter().find_map(|subject| {
        let decision = deciding(&about, subject, this.workspace).filter(|it| !it.allowed)?;
        Some(match &decision.uses {
            None => format!("{} is not among the tools of this agent", this.tool),
            Some(uses) => format!("this agent may not use {} as {uses}", this.tool),
        })
    });
    refused.or_else(|| outside(layer, this))
}

/// The last decision that fits.
fn deciding<'d>(
    about: &[&'d ToolDecision],
    subject: &Subject<'_>,
    workspace: &Path,
) -> Option<&'d ToolDecision> {
    about.iter().rev().copied().find(|decision| match decision.allowed {
        true => decision.covers(subject, workspace),
        false => decision.may_cover(subject, workspace),
    })
}

/// Why a layer does not allow a use that reaches out of the workspace, when it says something
/// about that.
fn outside(layer: &[ToolDecision], this: &Use<'_>) -> Option<String> {
    let about: Vec<&ToolDecision> =
        layer.iter().filter(|it| it.tool.eq_ignore_ascii_case(OUTSIDE)).collect();
    if about.iter().all(|decision| decision.allowed) {
        return None;
    }
    let reached = this.subjects().flat_map(|subject| match subject {
        Subject::Path(path) => vec![path.to_owned()],
        Subject::Command(command) => commands::paths(command),
        Subject::Address(_) | Subject::Name(_) | Subject::Unclear => vec![],
    });
    let mut outside = reached.filter(|path| paths::may_lead_out(path, this.workspace));
    outside.find_map(|path| {
        let subject = Subject::Path(&path);
        let decision = deciding(&about, &subject, this.workspace)?;
        let why = format!("this agent may not reach {path}, which is outside of the workspace");
        (!decision.allowed).then_some(why)
    })
}

/// Whether a layer allows some use of a tool.
pub(super) fn may_use(layer: &[ToolDecision], tool: &str) -> bool {
    for decision in layer.iter().rev().filter(|decision| decision.is_about(tool)) {
        if decision.allowed {
            return true;
        }
        if decision.uses.is_none() {
            return false;
        }
    }
    true
}

/// Whether a layer allows only what it names.
pub(super) fn is_closed(layer: &[ToolDecision]) -> bool {
    let general = |decision: &&ToolDecision| decision.tool == "*" && decision.uses.is_none();
    layer.iter().rev().find(general).is_some_and(|decision| !decision.allowed)
}

/// A tool's name in the form in which the names of a server's tools are compared: programs call
/// one `mcp__server__tool`, `server_tool` or `server-tool`.
fn plain(name: &str) -> String {
    let name = name.strip_prefix("mcp__").unwrap_or(name);
    let mut plain = String::with_capacity(name.len());
    for letter in name.chars() {
        let is_kept = letter.is_ascii_alphanumeric() || matches!(letter, '*' | '?');
        let letter = if is_kept { letter } else { '_' };
        if letter != '_' || !plain.ends_with('_') {
            plain.push(letter);
        }
    }
    plain
}
