//! The two loops that are made of simpler nodes: through a file of tasks, and until an agent says
//! a word.

use atomic_graph::{Condition, Graph, Kind, Node, NodeId};
use serde_json::Value;

use super::Role;
use super::fault::code;
use super::fields::Fields;
use super::graph::{Sketch, ends};
use super::json::{Body, Item};
use super::node::Ids;
use super::reader::{Reader, is_function};
use super::rules::Asked;
use crate::loops::{ENOUGH_TASKS, JUDGE_CRITERIA, enough_tasks, judge_criteria, tasks_done};
use crate::{Action, TaskFile, TaskFileOp};

const TASKS_PATH: &str = "research/tasks.json";

fn tasks_are_done() -> Condition {
    Condition::Equals { key: tasks_done(), value: Value::Bool(true) }
}

impl<'d> Reader<'d, '_, '_> {
    /// Takes the next task, does it, marks it as completed, until none is left:
    /// `next-task` → … → `complete-task`.
    pub(super) fn task_loop(&mut self, fields: &mut Fields<'d>) -> Kind {
        let (path, path_from) = match fields.take("tasksPath") {
            Some(item) if is_function(item) => (None, self.function(item, Role::Text)),
            item => (item.and_then(|item| self.path_inside(item)), None),
        };
        let path = path.unwrap_or(TASKS_PATH).to_owned();
        let selector = fields.take("taskSelector");
        let selector = selector.and_then(|item| self.function(item, Role::Select));
        let until = fields.take("until").map(|item| self.condition(item, Asked::Alone));
        let max_rounds = self.rounds(fields);
        let mut nodes: Vec<_> = fields.take("preIterationNode").into_iter().collect();
        let task_nodes = self.task_nodes(fields);
        if task_nodes.is_empty() {
            return super::work::unreadable();
        }
        nodes.extend(task_nodes);
        let mut ids = Ids::of(nodes.iter().copied());
        let mut graph = self.inner_graph(&Sketch { before: 1, ..Sketch::row(nodes) });

        let file = |op, selector| {
            let (path, path_from) = (path.clone(), path_from.clone());
            Action::TaskFile(TaskFile { path, path_from, op, selector, max_rounds })
        };
        let next = ids.make("next-task");
        let complete = ids.make("complete-task");
        for end in ends(&graph) {
            graph = graph.edge(end, complete.as_str());
        }
        let first = std::mem::replace(&mut graph.start, NodeId::from(next.as_str()));
        if let Some(until) = until {
            let enough = ids.make(ENOUGH_TASKS);
            let stop = self.own_function(ENOUGH_TASKS, enough_tasks());
            graph = graph
                .edge_when(next.as_str(), enough.as_str(), until)
                .node(Action::Function { call: stop }.node(&enough));
        }
        graph = graph.edge_when(next.as_str(), first, Condition::Not(Box::new(tasks_are_done())));
        graph.nodes.insert(0, file(TaskFileOp::Next, selector).node(&next));
        graph.nodes.push(file(TaskFileOp::Complete, None).node(&complete));
        Kind::Loop { graph, until: Some(tasks_are_done()), max_rounds }
    }

    /// Repeats until the last node says the word.
    pub(super) fn criteria_loop(&mut self, fields: &mut Fields<'d>) -> Kind {
        let signal = fields.take("completionSignal").and_then(|item| self.name(item));
        let max_rounds = self.rounds(fields);
        let nodes = self.task_nodes(fields);
        if nodes.is_empty() {
            return super::work::unreadable();
        }
        let mut ids = Ids::of(nodes.iter().copied());
        let mut graph = self.inner_graph(&Sketch::row(nodes));
        let until = signal.and_then(|text| says(&graph, text));
        let Some(last) = graph.nodes.last().map(|node| node.id.clone()) else {
            return super::work::unreadable();
        };
        // Two loops of a workflow look for different signals.
        let way: Vec<&str> = self.path.iter().map(NodeId::as_str).collect();
        let word = format!("{JUDGE_CRITERIA}:{}", way.join("/"));
        let call = judge_criteria(last, signal.map(str::to_owned), max_rounds);
        let call = self.own_function(&word, call);
        let judge = ids.make(JUDGE_CRITERIA);
        for end in ends(&graph) {
            graph = graph.edge(end, judge.as_str());
        }
        graph = graph.node(Action::Function { call }.node(&judge));
        Kind::Loop { graph, until, max_rounds }
    }

    fn task_nodes(&mut self, fields: &mut Fields<'d>) -> Vec<&'d Item> {
        let item = fields.need(&["taskNodes"], "what to do in each round", &mut self.faults);
        match item.map(|item| (item, &item.body)) {
            Some((item, Body::List(nodes))) if nodes.is_empty() => {
                let message = "there is nothing to do in it";
                self.faults.add(code::OUT_OF_RANGE, item.at, message, "add a node");
                vec![]
            }
            Some((_, Body::List(nodes))) => nodes.iter().collect(),
            Some((item, _)) => vec![item],
            None => vec![],
        }
    }

    /// A path that leads to a place inside the project.
    pub(super) fn path_inside(&mut self, item: &'d Item) -> Option<&'d str> {
        let path = self.name(item)?;
        let parts = std::path::Path::new(path).components();
        if parts.clone().all(|part| matches!(part, std::path::Component::Normal(_))) {
            return Some(path);
        }
        let message = format!("\"{path}\" does not lead to a place inside the project");
        let remedy = "write a path without `..` that begins in the project's folder";
        self.faults.add(code::OUT_OF_RANGE, item.at, message, remedy);
        None
    }
}

fn says(graph: &Graph, text: &str) -> Option<Condition> {
    let last: &Node = graph.nodes.last()?;
    Some(Condition::Says { node: last.id.clone(), text: text.to_owned() })
}
