//! Graphs: lists of nodes, what follows what, and how changes are combined.

use std::collections::BTreeSet;

use atomic_graph::{Count, Edge, Graph, Key, Kind, Node, NodeId, Reducer};
use serde_json::Value;

use super::fault::code;
use super::fields::Fields;
use super::json::Item;
use super::node::Ids;
use super::reader::Reader;
use super::rules::Asked;

/// The graph is kept with the session, and JSON deeper than 128 cannot be read back.
pub(super) const MOST_NESTED: usize = 12;

/// The key of the state that limits how often a cycle of edges goes round.
pub(super) const MAX_ITERATIONS: &str = "maxIterations";

/// What a graph is written as.
pub(super) struct Sketch<'d> {
    pub(super) nodes: Vec<&'d Item>,
    pub(super) edges: Option<&'d Item>,
    pub(super) start: Option<&'d Item>,
    pub(super) catch: Option<&'d Item>,
    /// How many nodes will be put before these.
    pub(super) before: usize,
}

/// What the keys of a state begin with, as they are written.
pub(super) type Defaults<'d> = Vec<(&'d str, &'d Item)>;

impl<'d> Sketch<'d> {
    /// Nodes in a row.
    pub(super) fn row(nodes: Vec<&'d Item>) -> Self {
        Self { nodes, edges: None, start: None, catch: None, before: 0 }
    }
}

impl<'d> Reader<'d, '_, '_> {
    /// The nodes and edges among the keys of an object.
    pub(super) fn sketch(&mut self, fields: &mut Fields<'d>) -> Sketch<'d> {
        let nodes = fields.take("nodes").map(|nodes| self.list(nodes, "a list of nodes"));
        Sketch {
            nodes: nodes.unwrap_or_default().iter().collect(),
            edges: fields.take("edges"),
            start: fields.take("startNode"),
            catch: fields.take("catch"),
            before: 0,
        }
    }

    /// A graph as an object of its own.
    pub(super) fn graph_object(&mut self, item: &'d Item, what: &str) -> (Graph, Defaults<'d>) {
        let Some(mut fields) = self.object(item, what) else { return (unreadable(), vec![]) };
        fields.turn_out("a graph");
        if fields.peek("nodes").is_none() {
            fields.lacks("nodes", "the nodes of the graph", &mut self.faults);
            return (unreadable(), vec![]);
        }
        let read = self.graph_fields(&mut fields, "graph.");
        fields.finish(&mut self.faults);
        read
    }

    /// The graph that the keys of an object make up, with its own rules. `mine` is put before the
    /// names of parts that the node around it has too.
    pub(super) fn graph_fields(
        &mut self,
        fields: &mut Fields<'d>,
        mine: &str,
    ) -> (Graph, Defaults<'d>) {
        let sketch = self.sketch(fields);
        let mut graph = self.inner_graph(&sketch);
        if let Some(item) = fields.take("failFast") {
            graph.fail_fast = self.flag(item);
        }
        if let Some(item) = fields.take("model") {
            self.mark(Some(&format!("{mine}model")), item.at);
            graph.model = self.name(item).map(str::to_owned);
        }
        if let Some(item) = fields.take(MAX_ITERATIONS) {
            self.mark(Some(&format!("{mine}max_iterations")), item.at);
            graph.max_iterations = self.number(item, 1).map(Count::Fixed);
        }
        let annotations = fields.take("stateAnnotations");
        let defaults = annotations.map(|item| self.annotations(item, &mut graph));
        (graph, defaults.unwrap_or_default())
    }

    /// A graph that works on the state around it cannot begin with values of its own.
    pub(super) fn no_defaults(&mut self, (graph, defaults): (Graph, Defaults<'d>)) -> Graph {
        for (key, item) in defaults {
            let message =
                format!("\"{key}\" cannot begin with a value here: the state is the outer one");
            let remedy = "give it its default in the `stateAnnotations` of the whole workflow";
            self.faults.add(code::OUT_OF_RANGE, item.at, message, remedy);
        }
        graph
    }

    /// A graph inside another.
    pub(super) fn inner_graph(&mut self, sketch: &Sketch<'d>) -> Graph {
        if self.depth >= MOST_NESTED {
            if let Some(first) = sketch.nodes.first() {
                let message = format!("more than {MOST_NESTED} graphs are inside each other");
                self.faults.add(code::TOO_DEEP, first.at, message, "make it flatter");
            }
            return unreadable();
        }
        self.depth += 1;
        let graph = self.assemble(sketch);
        self.depth -= 1;
        graph
    }

    /// Reads the nodes and edges of a graph.
    pub(super) fn assemble(&mut self, sketch: &Sketch<'d>) -> Graph {
        let mut graph = empty();
        graph.max_iterations = Some(Count::Key(Key::from(MAX_ITERATIONS)));
        graph.catch = sketch.catch.and_then(|item| self.name(item)).map(NodeId::from);
        for (part, item) in [("start", sketch.start), ("catch", sketch.catch)] {
            if let Some(item) = item {
                self.mark(Some(part), item.at);
            }
        }
        let mut ids = Ids::of(sketch.nodes.iter().copied());
        for item in &sketch.nodes {
            let Some(written) = self.node(item, &mut ids) else { continue };
            self.mark(Some(&format!("nodes[{}]", sketch.before + graph.nodes.len())), item.at);
            graph.nodes.push(written.node);
            for (edge, at) in written.edges {
                self.add_edge(&mut graph, edge, at);
            }
        }
        match sketch.edges {
            Some(edges) => self.edges(edges, &mut graph),
            None => in_a_row(&mut graph),
        }
        if let Some(start) = sketch.start.and_then(|item| self.name(item)) {
            graph.start = NodeId::from(start);
        } else if let Some(first) = graph.nodes.first() {
            graph.start = first.id.clone();
        }
        graph
    }

    fn add_edge(&mut self, graph: &mut Graph, edge: Edge, at: usize) {
        self.mark(Some(&format!("edges[{}]", graph.edges.len())), at);
        graph.edges.push(edge);
    }

    fn edges(&mut self, item: &'d Item, graph: &mut Graph) {
        for item in self.list(item, "a list of edges") {
            let Some(mut fields) = self.object(item, "an edge") else { continue };
            let from = fields.need(&["from"], "the node, or nodes, it leaves", &mut self.faults);
            // A list of nothing is an edge from nowhere; a name that cannot be read is told of.
            let is_empty = from.and_then(Item::as_list).is_some_and(<[_]>::is_empty);
            let from = match from {
                Some(from) if from.as_list().is_some() => self.names(from),
                Some(from) => self.name(from).into_iter().collect(),
                None => vec![],
            };
            let to = fields.need(&["to"], "the node it leads to", &mut self.faults);
            let to = to.and_then(|to| self.name(to));
            let when = fields.take("condition").map(|item| self.condition(item, Asked::OnEdge));
            self.label(&mut fields);
            fields.finish(&mut self.faults);
            if let Some(to) = to.filter(|_| is_empty || !from.is_empty()) {
                let from = from.into_iter().map(NodeId::from).collect();
                self.add_edge(graph, Edge { from, to: NodeId::from(to), when }, item.at);
            }
        }
    }

    /// A name for a way, which is for people who read the file.
    pub(super) fn label(&mut self, fields: &mut Fields<'d>) {
        if let Some(item) = fields.take("label") {
            self.words(item);
        }
    }

    /// What is known of the keys of the state: how changes to them are combined, and what they
    /// begin with.
    pub(super) fn annotations(&mut self, item: &'d Item, graph: &mut Graph) -> Defaults<'d> {
        let mut defaults = vec![];
        let Some(entries) = item.as_object() else {
            self.wrong(item, "an object", "write {<key>: {\"default\": …, \"reducer\": …}}");
            return defaults;
        };
        for entry in entries {
            self.mark(Some(&format!("reducers.{}", entry.key)), entry.at);
            let Some(mut fields) = self.object(&entry.item, "an annotation") else { continue };
            defaults.extend(fields.take("default").map(|item| (entry.key.as_str(), item)));
            let reducer = fields.take("reducer").map(|item| self.reducer(item));
            fields.finish(&mut self.faults);
            // Also where it is the usual one, so that the graph knows all annotated keys.
            let reducer = reducer.unwrap_or(Reducer::Replace);
            graph.reducers.insert(Key::from(entry.key.as_str()), reducer);
        }
        defaults
    }
}

/// A graph of nothing.
fn empty() -> Graph {
    Graph::starting_at("start")
}

/// What stands for a graph that could not be read, so that no more is found wrong with it.
pub(super) fn unreadable() -> Graph {
    let node = Node::work("unreadable", Value::Null);
    Graph::starting_at("unreadable").node(node)
}

/// Lets the nodes follow each other. A decision has its own routes, and the node that catches
/// failures stands apart.
fn in_a_row(graph: &mut Graph) {
    let catch = graph.catch.clone();
    let row = graph.nodes.iter().filter(|node| Some(&node.id) != catch.as_ref());
    let row: Vec<&Node> = row.collect();
    let pairs = row.windows(2).filter(|pair| pair[0].kind != Kind::Decision);
    let edges: Vec<Edge> = pairs
        .map(|pair| Edge { from: vec![pair[0].id.clone()], to: pair[1].id.clone(), when: None })
        .collect();
    graph.edges.extend(edges);
}

/// The nodes that nothing follows.
pub(super) fn ends(graph: &Graph) -> Vec<NodeId> {
    let left: BTreeSet<&NodeId> = graph.edges.iter().flat_map(|edge| &edge.from).collect();
    let ends = graph.nodes.iter().map(|node| &node.id).filter(|id| !left.contains(id));
    ends.cloned().collect()
}
