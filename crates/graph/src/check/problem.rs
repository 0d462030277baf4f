//! One problem: what is wrong, where, and what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::code::{Code, Severity};
use super::known::nearest;
use crate::NodeId;

/// Something wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Which kind.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
    /// The lines of the author's file around it, where somebody has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
}

/// Where in a workflow something is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The nodes, and the names of branches, from the outermost graph inwards; empty means the
    /// outermost graph itself.
    pub path: Vec<NodeId>,
    /// Which part of the node, or of the graph inside it: `edges[3]`, `on_error`, `retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Where the author wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// A place in an author's file; lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// Where the author wrote what.
#[derive(Clone, Debug, Default)]
pub struct Spans(BTreeMap<(Vec<NodeId>, Option<String>), Span>);

impl Spans {
    /// Says where a node (or with an empty path the graph), or a part of it, is.
    pub fn insert(&mut self, path: Vec<NodeId>, part: Option<&str>, span: Span) {
        self.0.insert((path, part.map(str::to_owned)), span);
    }

    /// Where a place is, or else the nearest thing around it that is known: for `edges[3]` of a
    /// node also `edges`, then the node, then the nodes around it.
    pub fn find(&self, path: &[NodeId], part: Option<&str>) -> Option<&Span> {
        if self.0.is_empty() {
            return None;
        }
        let mut key = (path.to_vec(), part.map(str::to_owned));
        loop {
            if let Some(span) = self.0.get(&key) {
                return Some(span);
            }
            match key.1.take() {
                Some(part) => key.1 = around(&part).map(str::to_owned),
                None => drop(key.0.pop()?),
            }
        }
    }
}

/// The part around a part: `edges` for `edges[3]`, `reducers` for `reducers.tasks`.
fn around(part: &str) -> Option<&str> {
    part.rfind(['[', '.']).map(|end| &part[..end])
}

impl Place {
    /// A node, or with an empty path the graph.
    pub fn new(path: Vec<NodeId>) -> Self {
        Self { path, part: None, span: None }
    }

    /// A part of it.
    #[must_use]
    pub fn part(mut self, part: impl Into<String>) -> Self {
        self.part = Some(part.into());
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str("the graph")?;
        }
        for (place, id) in self.path.iter().enumerate() {
            let between = if place == 0 { "" } else { "/" };
            // An empty id is a problem that must be seen, too.
            let id = if id.as_str().is_empty() { "\"\"" } else { id.as_str() };
            write!(f, "{between}{id}")?;
        }
        self.part.iter().try_for_each(|part| write!(f, " ({part})"))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, severity, place, message, remedy, frame } = self;
        let span = place.span.as_ref().map_or_else(String::new, |span| format!("{span}: "));
        let said = format!("{span}{code} {severity} at {place}: {message}");
        // Names in a graph come from strangers: none of them begins a line of its own.
        let [said, remedy] = [&said, remedy].map(|text| text.replace('\n', "\\n"));
        let frame = frame.as_deref().unwrap_or_default().trim_end();
        let frame = if frame.is_empty() { String::new() } else { format!("{frame}\n") };
        write!(f, "{said}\n{frame}  help: {remedy}")
    }
}

impl Problem {
    /// A problem; its kind says how bad it is.
    pub fn new(
        code: Code,
        place: Place,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { code, severity: code.severity(), place, message, remedy, frame: None }
    }

    /// Whether it keeps the graph from being run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// A name that is in none of the tables; `code` is one of the `UNKNOWN_…`.
    pub fn not_found<'k>(
        code: Code,
        name: &str,
        known: impl Iterator<Item = &'k str> + Clone,
        place: Place,
    ) -> Self {
        Self::not_found_but(code, name, nearest(name, known.clone()), known, place)
    }

    /// The same, when it is already known which name was probably meant.
    pub(super) fn not_found_but<'k>(
        code: Code,
        name: &str,
        meant: Option<&str>,
        known: impl Iterator<Item = &'k str>,
        place: Place,
    ) -> Self {
        let noun = noun(code);
        let message = match meant {
            Some(meant) => format!("{noun} not found: \"{name}\" (did you mean \"{meant}\"?)"),
            None => format!("{noun} not found: {name}"),
        };
        let instead = meant.map_or_else(|| listed(known), |meant| Some(format!("\"{meant}\"")));
        let remedy = match instead {
            _ if code == Code::UNKNOWN_MODEL => {
                "leave it if the agent program knows it, or choose another one".to_owned()
            }
            Some(instead) => format!("use {instead}, or add \"{name}\" to what is there"),
            None => format!("add \"{name}\": there is none at all yet"),
        };
        Self::new(code, place, message, remedy)
    }

    /// Workflows that use each other; the chain ends with the one it begins with.
    pub fn circular_workflows<N: AsRef<str>>(chain: &[N], place: Place) -> Self {
        let chain: Vec<&str> = chain.iter().map(AsRef::as_ref).collect();
        let message = format!("Circular workflow dependency detected: {}", chain.join(" -> "));
        let remedy = "take one of these workflows out of the next one, or move what both need \
                      into a third";
        Self::new(Code::CIRCULAR_WORKFLOWS, place, message, remedy)
    }
}

fn noun(code: Code) -> &'static str {
    let nouns = [
        (Code::UNKNOWN_AGENT, "Agent"),
        (Code::UNKNOWN_SKILL, "Skill"),
        (Code::UNKNOWN_COMMAND, "Command"),
        (Code::UNKNOWN_WORKFLOW, "Workflow"),
        (Code::UNKNOWN_FUNCTION, "Function"),
        (Code::UNKNOWN_MODEL, "Model"),
    ];
    nouns.iter().find(|(known, _)| *known == code).map_or("Name", |(_, noun)| noun)
}

/// The first few names, for a sentence; `None` when there are none.
pub(super) fn listed<'k>(names: impl Iterator<Item = &'k str>) -> Option<String> {
    const SHOWN: usize = 8;
    // What is there twice is told of elsewhere.
    let mut told = BTreeSet::new();
    let mut names = names.filter(|name| told.insert(*name));
    let shown: Vec<String> = names.by_ref().take(SHOWN).map(|name| format!("\"{name}\"")).collect();
    let more = if names.next().is_some() { ", …" } else { "" };
    match shown.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        [..] => Some(format!("one of {}{more}", shown.join(", "))),
    }
}
