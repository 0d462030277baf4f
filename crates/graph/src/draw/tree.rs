//! A graph as a tree of lines for the terminal.

use std::fmt;

use super::overlay::{Overlay, Status};
use super::picture::{Inner, Shape, Sheet, What, Why};
use super::words;
use crate::Graph;

/// One line of a tree. As text it is plain; colours are up to whoever prints the spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeLine {
    /// The parts of the line, in order.
    pub spans: Vec<Span>,
    /// The path of the node the line is about, where it is about one.
    pub node: Option<String>,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it says.
    pub text: String,
    /// What it is.
    pub role: Role,
}

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The lines of the tree and the blanks between the parts.
    Frame,
    /// The id of a node or the name of a branch.
    Name,
    /// What kind of node it is.
    Kind,
    /// What a node does.
    Description,
    /// The rules of a node.
    Rules,
    /// Where a run goes from there.
    Way,
    /// Where it goes when something failed.
    ErrorWay,
    /// Something that is wrong with the graph.
    Problem,
    /// How a node stands, how often it was visited and how long it took.
    Progress(Status),
}

impl fmt::Display for TreeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spans.iter().try_for_each(|span| f.write_str(&span.text))
    }
}

/// Draws a graph as lines for the terminal: one for every node, those inside a node below it.
/// `▸` marks where a graph begins.
pub fn tree(graph: &Graph, overlay: &Overlay) -> Vec<TreeLine> {
    let sheet = Sheet::of(graph, overlay);
    let mut lines = vec![];
    if !sheet.rules.is_empty() {
        let mut line = TreeLine { spans: vec![], node: None };
        line.push(&sheet.rules.join(" · "), Role::Rules);
        lines.push(line);
    }
    grow(&sheet, "", !overlay.is_empty(), &mut lines);
    lines
}

impl TreeLine {
    fn framed(frame: String) -> Self {
        Self { spans: vec![Span { text: frame, role: Role::Frame }], node: None }
    }

    fn push(&mut self, text: &str, role: Role) {
        self.spans.push(Span { text: text.to_owned(), role });
    }

    /// Adds a part after a gap.
    fn part(&mut self, text: &str, role: Role) {
        if !text.is_empty() {
            self.push("  ", Role::Frame);
            self.push(text, role);
        }
    }
}

/// Adds the lines of a sheet. `frame` is what the lines above it draw down its left side.
fn grow(sheet: &Sheet, frame: &str, marked: bool, lines: &mut Vec<TreeLine>) {
    let mut ways: Vec<Vec<usize>> = vec![vec![]; sheet.shapes.len()];
    for (index, arrow) in sheet.arrows.iter().enumerate() {
        ways[arrow.from].push(index);
    }
    let shown: Vec<usize> = (0..sheet.shapes.len())
        .filter(|index| !matches!(sheet.shapes[*index].what, What::Start | What::End))
        .collect();
    let ids = shown.iter().map(|index| words::columns(&sheet.shapes[*index].id));
    let width = ids.max().unwrap_or(0).min(24);
    let first = ways[0].first().map(|arrow| sheet.arrows[*arrow].to);
    for (count, index) in shown.iter().enumerate() {
        let shape = &sheet.shapes[*index];
        let (corner, side) =
            if count + 1 == shown.len() { ("└─", "  ") } else { ("├─", "│ ") };
        let begins = if first == Some(*index) { "▸ " } else { "  " };
        let mut line = TreeLine::framed(format!("{frame}{corner}{begins}"));
        describe(shape, width, marked, &mut line);
        for arrow in &ways[*index] {
            lead(sheet, *arrow, &mut line);
        }
        if let (Some(text), Some(status)) = (shape.progress(), shape.status()) {
            line.part(&text, Role::Progress(status));
        }
        lines.push(line);
        let below = format!("{frame}{side}  ");
        for (count, inner) in shape.inner.iter().enumerate() {
            grow_inner(inner, &below, count + 1 == shape.inner.len(), marked, lines);
        }
    }
}

fn grow_inner(inner: &Inner, frame: &str, last: bool, marked: bool, lines: &mut Vec<TreeLine>) {
    let Some(branch) = &inner.branch else { return grow(&inner.sheet, frame, marked, lines) };
    let (corner, side) = if last { ("└─", "  ") } else { ("├─", "│ ") };
    let mut line = TreeLine::framed(format!("{frame}{corner} "));
    line.push(&format!("[{branch}]"), Role::Name);
    line.part(&inner.sheet.rules.join(" · "), Role::Rules);
    lines.push(line);
    grow(&inner.sheet, &format!("{frame}{side} "), marked, lines);
}

fn describe(shape: &Shape, width: usize, marked: bool, line: &mut TreeLine) {
    if shape.what == What::Caught {
        return line.push(&shape.id, Role::ErrorWay);
    }
    if marked {
        match shape.status() {
            Some(status) => line.push(status.symbol(), Role::Progress(status)),
            None => line.push(" ", Role::Frame),
        }
        line.push(" ", Role::Frame);
    }
    line.node = shape.what.is_node().then(|| shape.path.clone());
    line.push(&shape.id, Role::Name);
    let missing = width.saturating_sub(words::columns(&shape.id));
    if missing > 0 {
        line.push(&" ".repeat(missing), Role::Frame);
    }
    let role = if shape.what == What::Missing { Role::Problem } else { Role::Kind };
    line.part(&shape.caption, role);
    let description = shape.description.as_deref().unwrap_or_default();
    line.part(&words::shorten(description, 72), Role::Description);
    line.part(&shape.all_rules(), Role::Rules);
}

/// Adds where an arrow leads.
fn lead(sheet: &Sheet, arrow: usize, line: &mut TreeLine) {
    let arrow = &sheet.arrows[arrow];
    let target = &sheet.shapes[arrow.to];
    let id = if target.what == What::End { "end" } else { &target.id };
    let label = arrow.label.as_deref().unwrap_or_default();
    let (text, role) = match arrow.why {
        Why::Edge if label.is_empty() => (format!("→ {id}"), Role::Way),
        Why::Edge | Why::Join => (format!("→ {id} ({})", words::shorten(label, 48)), Role::Way),
        Why::Goto | Why::Revive => (format!("{label} → {id}"), Role::Way),
        Why::Error if label.is_empty() => (format!("→ {id}"), Role::ErrorWay),
        Why::Error => (format!("{label} → {id}"), Role::ErrorWay),
    };
    line.part(&text, role);
}
