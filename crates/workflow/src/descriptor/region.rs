//! Nodes that have graphs inside them.

use atomic_graph::{
    Branch, Count, Each, Graph, Key, Kind, Node, NodeId, Parallel, Ready, Strategy,
};

use super::Role;
use super::fault::code;
use super::fields::Fields;
use super::graph::{MAX_ITERATIONS, Sketch, unreadable};
use super::json::Item;
use super::node::{Ids, Type, id_of};
use super::reader::{Reader, is_function};
use super::rules::Asked;
use super::shelf::{Taken, begin_with};
use crate::{DEFAULT_ITERATIONS, Initial};

const STRATEGIES: [(&str, Strategy); 3] =
    [("all", Strategy::All), ("race", Strategy::Race), ("any", Strategy::Any)];

impl<'d> Reader<'d, '_, '_> {
    pub(super) fn parallel(&mut self, fields: &mut Fields<'d>) -> Kind {
        let item = fields.need(&["branches"], "what runs at once", &mut self.faults);
        self.fan(fields, item, Self::branch)
    }

    /// A node, a list of nodes in a row, or a graph.
    fn branch(&mut self, item: &'d Item, ids: &mut Ids) -> Option<Branch> {
        if let Some(nodes) = item.as_list() {
            let id = NodeId::from(ids.make("branch"));
            let sketch = Sketch::row(nodes.iter().collect());
            let graph = self.inside(&id, item.at, |reader| reader.inner_graph(&sketch));
            return Some(Branch { id, graph });
        }
        let mut fields = self.object(item, "a node, a list of nodes or a graph")?;
        let is_graph = item.find("nodes").is_some() && item.find("type").is_none();
        if !is_graph {
            let id = if item.find("id").is_some() { id_of(item) } else { ids.make(&id_of(item)) };
            let id = NodeId::from(id);
            let sketch = Sketch::row(vec![item]);
            let graph = self.inside(&id, item.at, |reader| reader.inner_graph(&sketch));
            return Some(Branch { id, graph });
        }
        fields.turn_out("a branch");
        let id = fields.take("id").and_then(|id| self.name(id));
        let id = NodeId::from(id.map_or_else(|| ids.make("branch"), str::to_owned));
        let graph = self.inside(&id, item.at, |reader| {
            let read = reader.graph_fields(&mut fields, "");
            reader.no_defaults(read)
        });
        fields.finish(&mut self.faults);
        Some(Branch { id, graph })
    }

    /// Reads what is inside a branch.
    fn inside<T>(&mut self, branch: &NodeId, at: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(branch.clone());
        self.mark(None, at);
        let result = read(self);
        self.path.pop();
        result
    }

    /// Several branches, and how they come together again.
    fn fan(
        &mut self,
        fields: &mut Fields<'d>,
        list: Option<&'d Item>,
        read: fn(&mut Self, &'d Item, &mut Ids) -> Option<Branch>,
    ) -> Kind {
        let mut branches = vec![];
        if let Some(list) = list {
            self.mark_all("branches", list);
            let items = self.list(list, "a list of branches");
            let mut ids = Ids::of(items.iter());
            branches = items.iter().filter_map(|item| read(self, item, &mut ids)).collect();
        }
        let strategy = fields.take("strategy").and_then(|item| self.word(item, &STRATEGIES));
        let merge = fields.take_one_of(&["merge", "outputMapper"], &mut self.faults);
        let merge = merge.and_then(|merge| self.function(merge, Role::Merge));
        let fail_fast = fields.take("failFast").is_some_and(|item| self.flag(item));
        let is_empty = list.and_then(Item::as_list).is_some_and(<[_]>::is_empty);
        if branches.is_empty() && !is_empty {
            return super::work::unreadable();
        }
        Kind::Parallel(Parallel {
            branches,
            strategy: strategy.unwrap_or_default(),
            fail_fast,
            merge,
        })
    }

    pub(super) fn parallel_subagent(&mut self, fields: &mut Fields<'d>) -> Kind {
        let item = fields.need(&["agents"], "the agents that work at once", &mut self.faults);
        self.fan(fields, item, Self::one_agent)
    }

    /// A branch of one agent, which is called like it.
    fn one_agent(&mut self, item: &'d Item, ids: &mut Ids) -> Option<Branch> {
        let fields = self.object(item, "an agent")?;
        let text = |key: &str| item.find(key).and_then(Item::as_text).filter(|t| !t.is_empty());
        let agent = text("agent").or_else(|| text("agentName")).unwrap_or("agent");
        let id = NodeId::from(text("id").map_or_else(|| ids.make(agent), str::to_owned));
        let mut inner = Ids::default();
        let usual = Some(id.as_str());
        let written = self.inside(&id, item.at, |reader| {
            reader.node_of(Some(Type::Subagent), fields, &mut inner, usual)
        })?;
        Some(Branch { graph: Graph::starting_at(written.node.id.clone()).node(written.node), id })
    }

    /// The graph inside a node: `graph`, `nodes`, or a single `node`.
    fn body(&mut self, fields: &mut Fields<'d>) -> Graph {
        let (graph, node) = (fields.take("graph"), fields.take("node"));
        let sketch = self.sketch(fields);
        match (graph, node) {
            (None, None) if sketch.nodes.is_empty() && fields.peek("nodes").is_none() => {
                fields.lacks("nodes", "what to do", &mut self.faults);
                unreadable()
            }
            (None, None) => self.inner_graph(&sketch),
            (Some(graph), None) if sketch.nodes.is_empty() => {
                let read = self.graph_object(graph, "a graph");
                self.no_defaults(read)
            }
            (None, Some(node)) if sketch.nodes.is_empty() => {
                self.inner_graph(&Sketch::row(vec![node]))
            }
            (Some(item), _) | (None, Some(item)) => {
                let message = "what to do is said twice";
                let remedy = "keep one of `nodes`, `node` and `graph`";
                self.faults.add(code::SAID_TWICE, item.at, message, remedy);
                unreadable()
            }
        }
    }

    pub(super) fn each(&mut self, fields: &mut Fields<'d>) -> Kind {
        let over = fields.need(&["over"], "the key of a list in the state", &mut self.faults);
        let over = over.and_then(|over| self.name(over)).unwrap_or_default();
        let item = fields.take("item").and_then(|item| self.name(item)).unwrap_or("item");
        let known = [("once", Ready::Once), ("tasks", Ready::Tasks)];
        let ready = fields.take("ready").and_then(|item| self.word(item, &known));
        let ready = ready.unwrap_or_default();
        let workers = self.workers(fields);
        let fail_fast = fields.take("failFast").is_some_and(|item| self.flag(item));
        let graph = self.body(fields);
        Kind::Each(Each {
            over: Key::from(over),
            item: Key::from(item),
            graph,
            workers,
            ready,
            fail_fast,
            order: ready.order(),
        })
    }

    pub(super) fn repeat(&mut self, fields: &mut Fields<'d>) -> Kind {
        let until = fields.take("until").map(|item| self.condition(item, Asked::Alone));
        let max_rounds = self.rounds(fields);
        Kind::Loop { graph: self.body(fields), until, max_rounds }
    }

    /// The largest number of rounds; 0 means no limit.
    pub(super) fn rounds(&mut self, fields: &mut Fields<'d>) -> u32 {
        let rounds = fields.take(MAX_ITERATIONS).and_then(|item| self.number(item, 0));
        rounds.unwrap_or(DEFAULT_ITERATIONS)
    }

    /// A graph with a state of its own: written here, or another workflow by its name.
    pub(super) fn subgraph(&mut self, fields: &mut Fields<'d>, node: &mut Node) -> Kind {
        let keys = ["graph", "subgraph", "workflow"];
        let inner = fields.need(&keys, "a graph, or the name of a workflow", &mut self.faults);
        let input = fields.take("inputMapper");
        let input = input.and_then(|item| self.function(item, Role::Input));
        let output = fields.take("outputMapper");
        let output = output.and_then(|item| self.function(item, Role::Output));
        let Some(inner) = inner else {
            return Kind::Subgraph { graph: unreadable(), isolated: true, input, output };
        };
        if inner.as_text().is_some() {
            let Taken { graph, make } = self.other_workflow(inner, node);
            let input = match make {
                Some(make) => Some(self.creating(&node.id, make, input.as_ref())),
                None => input,
            };
            return Kind::Subgraph { graph, isolated: true, input, output };
        }
        let expected = "a graph or the name of a workflow";
        let (mut graph, defaults) = if is_function(inner) {
            self.wrong(inner, expected, "write {\"nodes\": […]}");
            (unreadable(), vec![])
        } else {
            self.graph_object(inner, expected)
        };
        // The limit of the run is not among what a function hands over.
        if input.is_some() && graph.max_iterations == Some(Count::Key(MAX_ITERATIONS.into())) {
            graph.max_iterations = Some(Count::Fixed(DEFAULT_ITERATIONS.into()));
            self.default_limits.insert(self.path.clone());
        }
        for (key, item) in &defaults {
            self.mark(Some(&format!("state.{key}")), item.at);
        }
        let defaults = defaults.into_iter().map(|(key, item)| (key.into(), self.value(item)));
        begin_with(&Initial::Given(defaults.collect()), &mut graph);
        Kind::Subgraph { graph, isolated: true, input, output }
    }
}
