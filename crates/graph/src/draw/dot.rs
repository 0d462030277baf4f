//! A graph for Graphviz.

use std::fmt::Write as _;

use super::overlay::{Overlay, Status};
use super::picture::{Arrow, Inner, Shape, Sheet, What, Why};
use super::{colour, words};
use crate::Graph;

/// Draws a graph in the language of Graphviz.
pub fn dot(graph: &Graph, overlay: &Overlay) -> String {
    let sheet = Sheet::of(graph, overlay);
    let mut page = Page::default();
    page.line(0, "digraph workflow {");
    page.line(1, "compound=true;");
    page.line(1, "fontname=\"Helvetica\";");
    page.line(1, "node [fontname=\"Helvetica\", fontsize=12, shape=box];");
    page.line(1, "edge [fontname=\"Helvetica\", fontsize=10];");
    page.sheet(&sheet, 1);
    page.line(0, "}");
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", depth * 2);
    }

    fn sheet(&mut self, sheet: &Sheet, depth: usize) {
        for shape in &sheet.shapes {
            if shape.what == What::Cluster {
                self.cluster(shape, depth);
            } else {
                self.line(depth, &node(shape));
            }
        }
        for arrow in &sheet.arrows {
            self.line(depth, &edge(arrow, sheet));
        }
    }

    fn cluster(&mut self, shape: &Shape, depth: usize) {
        let (fill, line) = colours(shape.status());
        self.line(depth, &format!("subgraph {} {{", quote(&cluster_name(&shape.path))));
        let label = format!("label={}; labeljust=l;", label(shape));
        self.line(depth + 1, &label);
        let style = format!("style=\"rounded,filled\"; fillcolor=\"{fill}\"; color=\"{line}\";");
        self.line(depth + 1, &style);
        let (entry, exit) = doors(shape);
        for door in [&entry, &exit].into_iter().filter(|door| is_made_up(door)) {
            self.line(depth + 1, &format!("{} [shape=point, style=invis];", quote(door)));
        }
        for inner in &shape.inner {
            self.inner(inner, (&entry, &exit), depth + 1);
        }
        self.line(depth, "}");
    }

    fn inner(&mut self, inner: &Inner, (entry, exit): (&str, &str), depth: usize) {
        let Some(branch) = &inner.branch else { return self.sheet(&inner.sheet, depth) };
        self.line(depth, &format!("subgraph {} {{", quote(&cluster_name(&inner.path))));
        let title = [vec![branch.clone()], inner.sheet.rules.clone()].concat().join(" · ");
        let label = escape(&words::shorten(&title, 60));
        self.line(depth + 1, &format!("label=\"{label}\"; labeljust=l; style=\"rounded,dashed\";"));
        self.sheet(&inner.sheet, depth + 1);
        self.line(depth, "}");
        let start = &inner.sheet.shapes[0];
        let end = end_of(&inner.sheet).unwrap_or(start);
        let (start, end) = (quote(&start.path), quote(&end.path));
        self.line(depth, &format!("{} -> {start} [style=invis];", quote(entry)));
        self.line(depth, &format!("{end} -> {} [style=invis];", quote(exit)));
    }
}

fn cluster_name(path: &str) -> String {
    format!("cluster_{path}")
}

/// The nodes by which edges enter and leave a cluster, as edges of Graphviz lead to nodes: where
/// its only graph begins and ends, or nodes made up for it.
fn doors(shape: &Shape) -> (String, String) {
    let only = shape.inner.first().filter(|inner| inner.branch.is_none());
    let start = only.map(|inner| inner.sheet.shapes[0].path.clone());
    let end = only.and_then(|inner| end_of(&inner.sheet)).map(|end| end.path.clone());
    (
        start.unwrap_or_else(|| format!("{}/(in)", shape.path)),
        end.unwrap_or_else(|| format!("{}/(out)", shape.path)),
    )
}

fn is_made_up(door: &str) -> bool {
    door.ends_with("/(in)") || door.ends_with("/(out)")
}

fn end_of(sheet: &Sheet) -> Option<&Shape> {
    sheet.shapes.iter().find(|shape| shape.what == What::End)
}

fn node(shape: &Shape) -> String {
    let name = quote(&shape.path);
    let (fill, line) = colours(shape.status());
    let look = match shape.what {
        What::Start => "shape=circle, label=\"\", width=0.2, style=filled, fillcolor=\"#57606a\"",
        What::End => {
            "shape=doublecircle, label=\"\", width=0.15, style=filled, fillcolor=\"#57606a\""
        }
        What::Caught => "shape=plaintext, fontcolor=\"#cf222e\"",
        What::Missing => "style=dashed, color=\"#cf222e\", fontcolor=\"#cf222e\"",
        What::Work | What::Cluster => "style=\"rounded,filled\"",
        What::Agent => "style=\"rounded,filled\", peripheries=2",
        What::Decision => "shape=diamond, style=filled",
    };
    let text = if matches!(shape.what, What::Start | What::End) {
        String::new()
    } else {
        format!("label={}, ", label(shape))
    };
    let colour = if shape.what.is_node() {
        format!(", fillcolor=\"{fill}\", color=\"{line}\"")
    } else {
        String::new()
    };
    format!("{name} [{text}{look}{colour}];")
}

fn edge(arrow: &Arrow, sheet: &Sheet) -> String {
    let (from, to) = (&sheet.shapes[arrow.from], &sheet.shapes[arrow.to]);
    let mut options: Vec<String> = vec![];
    let mut tail = from.path.clone();
    let mut head = to.path.clone();
    // An edge cannot be cut off at a cluster that it begins and ends in.
    let itself = arrow.from == arrow.to;
    if from.what == What::Cluster {
        tail = doors(from).1;
        options.extend((!itself).then(|| format!("ltail={}", quote(&cluster_name(&from.path)))));
    }
    if to.what == What::Cluster {
        head = doors(to).0;
        options.extend((!itself).then(|| format!("lhead={}", quote(&cluster_name(&to.path)))));
    }
    if let Some(label) = &arrow.label {
        options.push(format!("label=\"{}\"", escape(&words::shorten(label, 48))));
    }
    options.extend(match arrow.why {
        Why::Edge => None,
        Why::Join => Some("penwidth=2".to_owned()),
        Why::Goto => Some("style=dashed".to_owned()),
        Why::Error => Some("style=dotted, color=\"#cf222e\", fontcolor=\"#cf222e\"".to_owned()),
        Why::Revive => Some("style=dotted, color=\"#6e7781\", fontcolor=\"#6e7781\"".to_owned()),
    });
    let options =
        if options.is_empty() { String::new() } else { format!(" [{}]", options.join(", ")) };
    format!("{} -> {}{options};", quote(&tail), quote(&head))
}

fn label(shape: &Shape) -> String {
    let mut lines = vec![words::shorten(&shape.id, 48)];
    if matches!(shape.what, What::Cluster | What::Missing) {
        lines.push(words::shorten(&shape.caption, 80));
    }
    lines.extend(shape.description.as_deref().iter().flat_map(|text| words::wrap(text, 36, 3)));
    lines.extend(words::wrap(&shape.all_rules(), 40, 2));
    lines.extend(shape.progress().map(|text| words::shorten(&text, 60)));
    lines.retain(|line| !line.is_empty());
    let end_of_line = if shape.what == What::Cluster { "\\l" } else { "\\n" };
    let mut text = lines.iter().map(|line| escape(line)).collect::<Vec<_>>().join(end_of_line);
    if shape.what == What::Cluster {
        text.push_str(end_of_line);
    }
    format!("\"{text}\"")
}

/// The colours of the inside and the line.
fn colours(status: Option<Status>) -> (&'static str, &'static str) {
    let [fill, line, _] = status.map_or(["#ffffff", "#57606a", ""], colour::light);
    (fill, line)
}

/// Text inside the quotes of a label, which Graphviz searches for references as HTML has them.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('&', "&amp;")
}

/// A name in quotes. Two names are never written the same.
fn quote(name: &str) -> String {
    let mut safe = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        match c {
            '\\' => safe.push_str("\\\\"),
            '"' => safe.push_str("\\\""),
            c if c.is_control() => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    format!("\"{safe}\"")
}
