//! What there is to see of a graph, whatever the format.

use std::collections::BTreeMap;

use super::overlay::{Mark, Overlay, Status, inside, join};
use super::words;
use crate::{Condition, Edge, Graph, Kind, Node, NodeId, OnError};

/// One graph: its shapes and the arrows between them. The first shape is the start.
pub(super) struct Sheet {
    pub(super) shapes: Vec<Shape>,
    pub(super) arrows: Vec<Arrow>,
    pub(super) rules: Vec<String>,
}

/// Something arrows lead to and from.
pub(super) struct Shape {
    /// Unique in the whole picture.
    pub(super) path: String,
    pub(super) what: What,
    pub(super) id: String,
    pub(super) caption: String,
    pub(super) description: Option<String>,
    pub(super) rules: Vec<String>,
    pub(super) mark: Option<Mark>,
    pub(super) inner: Vec<Inner>,
}

/// A graph inside a node.
pub(super) struct Inner {
    pub(super) branch: Option<String>,
    pub(super) path: String,
    pub(super) sheet: Sheet,
}

/// What a shape stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Where the graph begins.
    Start,
    /// Where it ends.
    End,
    /// Where it goes on when anything in it failed.
    Caught,
    /// A node that an arrow leads to but that is not there.
    Missing,
    Work,
    Agent,
    Decision,
    /// Has graphs inside.
    Cluster,
}

impl What {
    /// Whether it stands for a node of the graph.
    pub(super) fn is_node(self) -> bool {
        match self {
            Self::Work | Self::Agent | Self::Decision | Self::Cluster => true,
            Self::Start | Self::End | Self::Caught | Self::Missing => false,
        }
    }
}

/// From one shape to another, by index.
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) why: Why,
    pub(super) label: Option<String>,
}

/// Why a run goes from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// Along an edge, or from the start, or to the end.
    Edge,
    /// Along an edge that waits for others.
    Join,
    /// A node may choose so.
    Goto,
    /// It failed.
    Error,
    /// It had failed and the run was resumed.
    Revive,
}

impl Why {
    /// Its name, in lower case.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Join => "join",
            Self::Goto => "goto",
            Self::Error => "error",
            Self::Revive => "revive",
        }
    }
}

impl Sheet {
    /// The picture of a whole graph.
    pub(super) fn of(graph: &Graph, overlay: &Overlay) -> Self {
        let marks = if overlay.is_empty() { BTreeMap::new() } else { overlay.marks(graph) };
        Self::inside(graph, "", &marks)
    }

    fn inside(graph: &Graph, scope: &str, marks: &BTreeMap<String, Mark>) -> Self {
        let mut drawing = Drawing::new(graph, scope);
        for (index, node) in graph.nodes.iter().enumerate() {
            drawing.add_node(node, index, marks);
        }
        drawing.connect();
        drawing.sheet.rules = words::graph_rules(graph, scope.is_empty());
        drawing.sheet
    }

    /// Every status in here, however deep.
    pub(super) fn statuses(&self) -> Vec<Status> {
        let mut seen = vec![];
        self.collect_statuses(&mut seen);
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    fn collect_statuses(&self, seen: &mut Vec<Status>) {
        for shape in &self.shapes {
            seen.extend(shape.mark.iter().flat_map(|mark| mark.lanes.keys().copied()));
            for inner in &shape.inner {
                inner.sheet.collect_statuses(seen);
            }
        }
    }
}

impl Shape {
    fn marker(scope: &str, what: What, id: &str) -> Self {
        Self {
            path: join(scope, &format!("({id})")),
            what,
            id: id.to_owned(),
            caption: String::new(),
            description: None,
            rules: vec![],
            mark: None,
            inner: vec![],
        }
    }

    /// Its status, where there is a run.
    pub(super) fn status(&self) -> Option<Status> {
        self.mark.as_ref().and_then(Mark::status)
    }

    /// Its rules and those of the graph inside it.
    pub(super) fn all_rules(&self) -> String {
        let inner = self.inner.iter().filter(|inner| inner.branch.is_none());
        let rules = self.rules.iter().chain(inner.flat_map(|inner| &inner.sheet.rules));
        rules.cloned().collect::<Vec<_>>().join(" · ")
    }

    /// How it stands, how often it was visited and how long that took.
    pub(super) fn progress(&self) -> Option<String> {
        let mark = self.mark.as_ref()?;
        let mut how = mark.symbols();
        if mark.visits > 1 {
            how.push_str(&format!(" ×{}", mark.visits));
        }
        let mut parts = vec![how];
        parts.extend(mark.took_ms.map(words::time));
        parts.extend(mark.note.as_deref().map(words::clean));
        parts.retain(|part| !part.is_empty());
        if let ([_], 0..=1, Some(status)) = (parts.as_slice(), mark.visits, mark.status()) {
            parts[0] = format!("{} {}", parts[0], status.name());
        }
        Some(parts.join(" · ")).filter(|text| !text.is_empty())
    }
}

/// A sheet in the making.
struct Drawing<'a> {
    graph: &'a Graph,
    scope: &'a str,
    places: BTreeMap<&'a str, usize>,
    sheet: Sheet,
    end: Option<usize>,
}

impl<'a> Drawing<'a> {
    fn new(graph: &'a Graph, scope: &'a str) -> Self {
        let start = Shape::marker(scope, What::Start, "start");
        let mut places = BTreeMap::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            places.entry(node.id.as_str()).or_insert(index + 1);
        }
        let sheet = Sheet { shapes: vec![start], arrows: vec![], rules: vec![] };
        Self { graph, scope, places, sheet, end: None }
    }

    fn add_node(&mut self, node: &Node, index: usize, marks: &BTreeMap<String, Mark>) {
        let mut path = join(self.scope, node.id.as_str());
        let mut mark = marks.get(&path).cloned();
        if self.places.get(node.id.as_str()) != Some(&(index + 1)) {
            // A second node of the same name is an error, and the picture is there to show it.
            path = format!("{path}~{}", index + 1);
            mark = None;
        }
        let inner: Vec<Inner> = node
            .inner()
            .into_iter()
            .map(|(branch, graph)| {
                let path = inside(&path, branch.map(NodeId::as_str));
                let sheet = Sheet::inside(graph, &path, marks);
                Inner { branch: branch.map(|id| words::clean(id.as_str())), path, sheet }
            })
            .collect();
        let what = match &node.kind {
            Kind::Work { launch: false, .. } => What::Work,
            Kind::Work { launch: true, .. } => What::Agent,
            Kind::Decision => What::Decision,
            Kind::Subgraph { .. }
            | Kind::Loop { .. }
            | Kind::Each(_)
            | Kind::Parallel(_)
            | Kind::Script(_) => What::Cluster,
        };
        let described = node.description.as_deref().map(words::clean);
        self.sheet.shapes.push(Shape {
            path,
            what,
            id: words::clean(node.id.as_str()),
            caption: words::clean(&words::caption(node)),
            description: described.filter(|text| !text.is_empty()),
            rules: words::rules(node).iter().map(|rule| words::clean(rule)).collect(),
            mark,
            inner,
        });
    }

    fn connect(&mut self) {
        let graph = self.graph;
        let start = self.place(&graph.start);
        self.arrow(0, start, Why::Edge, None);
        for edge in &graph.edges {
            self.connect_edge(edge);
        }
        let exits = exits(graph);
        for (index, node) in graph.nodes.iter().enumerate() {
            let from = index + 1;
            for target in &node.targets {
                let to = self.place(target);
                self.arrow(from, to, Why::Goto, Some("goto"));
            }
            if let OnError::Goto(target) = &node.on_error {
                let to = self.place(target);
                self.arrow(from, to, Why::Error, Some("on error"));
            }
            if let Some(target) = &node.on_revive {
                let to = self.place(target);
                self.arrow(from, to, Why::Revive, Some("on resume"));
            }
            let label = match exits[index] {
                Exit::Never => continue,
                Exit::Sometimes => Some("otherwise"),
                Exit::Always => None,
            };
            let end = self.end();
            self.arrow(from, end, Why::Edge, label);
        }
        if let Some(target) = &graph.catch {
            let to = self.place(target);
            let from = self.push(Shape::marker(self.scope, What::Caught, "any failure"));
            self.arrow(from, to, Why::Error, None);
        }
    }

    fn connect_edge(&mut self, edge: &'a Edge) {
        let to = self.place(&edge.to);
        let join = edge.from.len() > 1;
        let mut parts = vec![];
        if join {
            parts.push(format!("all of {}", edge.from.len()));
        }
        parts.extend(edge.when.as_ref().map(|when| words::clean(&words::condition(when))));
        let label = Some(parts.join(" · ")).filter(|label| !label.is_empty());
        for from in &edge.from {
            let from = self.place(from);
            let why = if join { Why::Join } else { Why::Edge };
            self.arrow(from, to, why, label.as_deref());
        }
    }

    fn arrow(&mut self, from: usize, to: usize, why: Why, label: Option<&str>) {
        self.sheet.arrows.push(Arrow { from, to, why, label: label.map(str::to_owned) });
    }

    fn push(&mut self, shape: Shape) -> usize {
        self.sheet.shapes.push(shape);
        self.sheet.shapes.len() - 1
    }

    fn end(&mut self) -> usize {
        if let Some(end) = self.end {
            return end;
        }
        let end = self.push(Shape::marker(self.scope, What::End, "end"));
        self.end = Some(end);
        end
    }

    /// The shape of a node; one is made up for a node that is not there.
    fn place(&mut self, id: &'a NodeId) -> usize {
        if let Some(place) = self.places.get(id.as_str()) {
            return *place;
        }
        let mut shape = Shape::marker(self.scope, What::Missing, "");
        shape.path = join(self.scope, id.as_str());
        shape.id = words::clean(id.as_str());
        shape.caption = "missing".to_owned();
        let place = self.push(shape);
        self.places.insert(id.as_str(), place);
        place
    }
}

/// Whether a path through the graph may end at a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exit {
    Always,
    /// When no condition of its edges holds.
    Sometimes,
    Never,
}

fn exits(graph: &Graph) -> Vec<Exit> {
    let mut leaving: BTreeMap<&str, Vec<&Edge>> = BTreeMap::new();
    for edge in &graph.edges {
        for from in &edge.from {
            leaving.entry(from.as_str()).or_default().push(edge);
        }
    }
    let exit = |node: &Node| {
        let Some(edges) = leaving.get(node.id.as_str()) else { return Exit::Always };
        let conditions: Vec<_> = edges.iter().filter_map(|edge| edge.when.as_ref()).collect();
        let one_is_taken = conditions.len() < edges.len() || cover_everything(&conditions);
        if one_is_taken || matches!(node.kind, Kind::Decision) {
            return Exit::Never;
        }
        Exit::Sometimes
    };
    graph.nodes.iter().map(exit).collect()
}

/// Whether one of them always holds.
fn cover_everything(conditions: &[&Condition]) -> bool {
    // Looking for a pair takes its time, and a node with more conditions than this has an
    // `otherwise` or has none that matters.
    let few = &conditions[..conditions.len().min(32)];
    conditions.iter().any(|condition| matches!(condition, Condition::Otherwise))
        || few.iter().any(|condition| {
            let Condition::Not(inner) = condition else { return false };
            few.iter().any(|other| **other == **inner)
        })
}
