//! A graph as a Mermaid flowchart.

use std::fmt::Write as _;

use super::overlay::{Overlay, Status};
use super::picture::{Arrow, Inner, Shape, Sheet, What, Why};
use super::{colour, words};
use crate::Graph;

/// Draws a graph as a Mermaid flowchart.
pub fn mermaid(graph: &Graph, overlay: &Overlay) -> String {
    let sheet = Sheet::of(graph, overlay);
    let mut chart = Chart { text: "flowchart TD\n".to_owned(), names: 0, links: vec![] };
    chart.sheet(&sheet, 1);
    chart.styles(&sheet.statuses());
    chart.text
}

struct Chart {
    text: String,
    /// How many names were given. Ids of nodes may be words of the language, so they are not used.
    names: usize,
    /// Of all links in order: Mermaid styles them by number.
    links: Vec<Why>,
}

impl Chart {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", depth * 4);
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    fn sheet(&mut self, sheet: &Sheet, depth: usize) {
        let mut names = vec![];
        for shape in &sheet.shapes {
            let name = self.name();
            if shape.what == What::Cluster {
                self.cluster(shape, &name, depth);
            } else {
                self.line(depth, &node(shape, &name));
            }
            names.push(name);
        }
        for arrow in &sheet.arrows {
            let link = link(arrow, &names);
            self.line(depth, &link);
            self.links.push(arrow.why);
        }
    }

    fn cluster(&mut self, shape: &Shape, name: &str, depth: usize) {
        self.line(depth, &format!("subgraph {name}[\"{}\"]", title(shape)));
        self.line(depth + 1, "direction TB");
        for inner in &shape.inner {
            self.inner(inner, depth + 1);
        }
        if shape.inner.is_empty() {
            // Mermaid takes a subgraph without nodes for a node.
            let empty = self.name();
            self.line(depth + 1, &format!("{empty}[\"nothing\"]:::missing"));
        }
        self.line(depth, "end");
        if let Some(status) = shape.status() {
            // Clusters take no classes.
            self.line(depth, &format!("style {name} {}", style(status)));
        }
    }

    fn inner(&mut self, inner: &Inner, depth: usize) {
        let Some(branch) = &inner.branch else { return self.sheet(&inner.sheet, depth) };
        let name = self.name();
        let title = [vec![branch.clone()], inner.sheet.rules.clone()].concat().join(" · ");
        self.line(depth, &format!("subgraph {name}[\"{}\"]", escape(&words::shorten(&title, 60))));
        self.line(depth + 1, "direction TB");
        self.sheet(&inner.sheet, depth + 1);
        self.line(depth, "end");
    }

    fn styles(&mut self, statuses: &[Status]) {
        self.line(1, "classDef marker fill:#57606a,stroke:#57606a,color:#ffffff");
        if self.text.contains(":::missing") {
            self.line(
                1,
                "classDef missing fill:#fff,stroke:#cf222e,color:#cf222e,stroke-dasharray:4 3",
            );
        }
        for status in statuses {
            self.line(1, &format!("classDef {} {}", status.name(), style(*status)));
        }
        for (why, style) in [
            (Why::Error, "stroke:#cf222e,stroke-dasharray:2 3"),
            (Why::Revive, "stroke:#6e7781,stroke-dasharray:2 3"),
        ] {
            let numbers: Vec<String> = (0..self.links.len())
                .filter(|number| self.links[*number] == why)
                .map(|number| number.to_string())
                .collect();
            if !numbers.is_empty() {
                self.line(1, &format!("linkStyle {} {style}", numbers.join(",")));
            }
        }
    }
}

fn style(status: Status) -> String {
    let [fill, line, text] = colour::light(status);
    format!("fill:{fill},stroke:{line},color:{text}")
}

fn node(shape: &Shape, name: &str) -> String {
    let label = label(shape);
    let class = shape.status().map(|status| format!(":::{}", status.name())).unwrap_or_default();
    match shape.what {
        What::Start => format!("{name}((\"start\")):::marker"),
        What::End => format!("{name}(((\"end\"))):::marker"),
        What::Caught => format!("{name}>\"{label}\"]:::missing"),
        What::Missing => format!("{name}[\"{label}\"]:::missing"),
        What::Work | What::Cluster => format!("{name}[\"{label}\"]{class}"),
        What::Agent => format!("{name}([\"{label}\"]){class}"),
        What::Decision => format!("{name}{{\"{label}\"}}{class}"),
    }
}

fn link(arrow: &Arrow, names: &[String]) -> String {
    let line = match arrow.why {
        Why::Edge => "-->",
        Why::Join => "==>",
        Why::Goto | Why::Error | Why::Revive => "-.->",
    };
    let label = arrow.label.as_deref().map(|label| escape(&words::shorten(label, 48)));
    let label = label.map(|label| format!("|\"{label}\"|")).unwrap_or_default();
    format!("{} {line}{label} {}", names[arrow.from], names[arrow.to])
}

/// What stands in a node.
fn label(shape: &Shape) -> String {
    lines(shape).iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br/>")
}

/// What stands above a cluster: Mermaid has no room there for more than a line.
fn title(shape: &Shape) -> String {
    escape(&words::shorten(&lines(shape).join(" · "), 140))
}

fn lines(shape: &Shape) -> Vec<String> {
    let mut lines = vec![words::shorten(&shape.id, 48)];
    if matches!(shape.what, What::Cluster | What::Missing) {
        lines.push(words::shorten(&shape.caption, 80));
    }
    lines.extend(shape.description.as_deref().map(|text| words::shorten(text, 100)));
    lines.push(words::shorten(&shape.all_rules(), 100));
    lines.extend(shape.progress().map(|text| words::shorten(&text, 100)));
    lines.retain(|line| !line.is_empty());
    lines
}

/// Text inside a quoted label. Whatever Mermaid, Markdown or HTML could take for its own becomes
/// a character reference, and so does the dot or dash that would begin a list.
fn escape(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    let mut may_begin_list = true;
    // Mermaid breaks the line at a backslash before an n, however it is written.
    let line = line.replace("\\n", "\\\u{2060}n");
    for c in line.chars() {
        let begins_list = may_begin_list && matches!(c, '-' | '+' | '.' | ')');
        may_begin_list &= c.is_ascii_digit();
        let is_plain = !c.is_ascii() || c.is_ascii_alphanumeric() || " -.,/()='?!".contains(c);
        if is_plain && !begins_list {
            safe.push(c);
        } else {
            let _ = write!(safe, "#{};", u32::from(c));
        }
    }
    safe
}
