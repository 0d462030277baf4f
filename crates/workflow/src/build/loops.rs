//! Loops: until something holds, through a file of tasks, until an agent says so.

use atomic_graph::{Condition, Kind, NodeId};
use serde_json::Value;

use super::builder::{Builder, graph};
use super::draft::{Draft, Test, When, says};
use super::nodes::{simple, work};
use crate::action::{Action, TaskFile, TaskFileOp};
use crate::function::Function;
use crate::loops::{ENOUGH_TASKS, JUDGE_CRITERIA, enough_tasks, judge_criteria, tasks_done};
use crate::typed::{Outcome, View};

/// Repeats until the condition holds after a round, at most so often; 0 means no limit. The
/// condition sees what the nodes of the last round returned.
pub fn repeat<S: 'static>(
    id: impl Into<NodeId>,
    body: impl Into<Builder<S>>,
    until: When<S>,
    max_rounds: u32,
) -> Draft<S> {
    let body = body.into();
    Draft::new(id, move |site| {
        let is_endless = matches!(until.test, Test::Never);
        let graph = site.graph(&body, None);
        let until = (!is_endless).then(|| site.condition("until", &until));
        Kind::Loop { graph, until, max_rounds }
    })
}

/// Works through a file of tasks.
pub struct TaskLoop<S> {
    tasks_path: String,
    task_nodes: Builder<S>,
    pre_iteration_node: Option<Draft<S>>,
    until: Option<When<S>>,
    max_iterations: u32,
    task_selector: Option<Function>,
}

impl<S: 'static> TaskLoop<S> {
    /// Does this for every task of `research/tasks.json`, which is found under `currentTask`.
    pub fn new(task_nodes: impl Into<Builder<S>>) -> Self {
        Self {
            tasks_path: "research/tasks.json".to_owned(),
            task_nodes: task_nodes.into(),
            pre_iteration_node: None,
            until: None,
            max_iterations: 100,
            task_selector: None,
        }
    }

    /// Sets where the file is, inside the project.
    #[must_use]
    pub fn tasks_path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.tasks_path);
        self
    }

    /// Does something before every task.
    #[must_use]
    pub fn pre_iteration_node(mut self, node: Draft<S>) -> Self {
        self.pre_iteration_node = Some(node);
        self
    }

    /// Ends when this holds before the next task, even when tasks are left.
    #[must_use]
    pub fn until(mut self, until: When<S>) -> Self {
        self.until = Some(until);
        self
    }

    /// Limits the number of tasks; 0 means no limit.
    #[must_use]
    pub fn max_iterations(mut self, max_iterations: u32) -> Self {
        self.max_iterations = max_iterations;
        self
    }

    /// Picks the next of the tasks; null means that none is left.
    #[must_use]
    pub fn task_selector<R: Outcome<Value>>(
        mut self,
        select: impl Fn(&Value, &View<'_, S>) -> R + Send + Sync + 'static,
    ) -> Self {
        self.task_selector = Some(Function::value(move |call, args| {
            let tasks = args.first().map_or(&Value::Null, AsRef::as_ref);
            select(tasks, &View::new(call)).outcome()
        }));
        self
    }

    fn next(&self) -> Draft<S> {
        let (path, selector) = (self.tasks_path.clone(), self.task_selector.clone());
        let max_rounds = self.max_iterations;
        Draft::new("next-task", move |site| {
            let selector = selector.as_ref().map(|selector| site.function("selector", selector));
            let path = path.clone();
            work(&Action::TaskFile(TaskFile {
                path,
                path_from: None,
                op: TaskFileOp::Next,
                selector,
                max_rounds,
            }))
        })
    }

    fn complete(&self) -> Draft<S> {
        let path = self.tasks_path.clone();
        let (op, max_rounds) = (TaskFileOp::Complete, self.max_iterations);
        let file = TaskFile { path, path_from: None, op, selector: None, max_rounds };
        simple("complete-task", Action::TaskFile(file))
    }
}

impl<S> std::fmt::Debug for TaskLoop<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TaskLoop").field(&self.tasks_path).finish()
    }
}

/// Works through a file of tasks: the next one that can be done is put under `currentTask`, the
/// nodes run, and it is marked as completed, until none is left.
pub fn task_loop<S: 'static>(tasks: TaskLoop<S>) -> Draft<S> {
    let done = Condition::Equals { key: tasks_done(), value: true.into() };
    let left = When::of(Test::Data(Condition::Not(Box::new(done.clone()))));
    let mut task = graph();
    if let Some(node) = &tasks.pre_iteration_node {
        task = task.start(node.clone()).then(tasks.task_nodes.clone());
    } else {
        task = tasks.task_nodes.clone();
    }
    let task = graph().if_(left).then(task).then(tasks.complete()).endif();
    let body = graph().start(tasks.next());
    let body = match tasks.until {
        None => body.then(task),
        Some(until) => body.if_(until).then(enough()).else_().then(task).endif(),
    };
    repeat("task-loop", body, When::of(Test::Data(done)), tasks.max_iterations)
}

/// No further task is wanted.
fn enough<S: 'static>() -> Draft<S> {
    let enough = enough_tasks();
    Draft::new(ENOUGH_TASKS, move |site| {
        work(&Action::Function { call: site.function("execute", &enough) })
    })
}

/// Repeats nodes until one of them says that everything is done.
pub struct CriteriaLoop<S> {
    /// What is done in every round. The last of them must say the words.
    pub task_nodes: Vec<Draft<S>>,
    /// The words.
    pub completion_signal: String,
    /// The largest number of rounds; 0 means no limit.
    pub max_iterations: u32,
}

impl<S> std::fmt::Debug for CriteriaLoop<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CriteriaLoop").field(&self.completion_signal).finish()
    }
}

/// Repeats nodes until the last of them says that everything is done, or a limit is met.
pub fn criteria_loop<S: 'static>(criteria: CriteriaLoop<S>) -> Draft<S> {
    let CriteriaLoop { task_nodes, completion_signal, max_iterations } = criteria;
    let speaker = task_nodes.last().map_or_else(|| NodeId::from(""), |last| last.node.id.clone());
    let until = says(speaker.clone(), &completion_signal);
    let judge = judge_criteria(speaker, Some(completion_signal), max_iterations);
    let judge = Draft::new(JUDGE_CRITERIA, move |site| {
        work(&Action::Function { call: site.function("execute", &judge) })
    });
    let nodes: Vec<Draft<S>> = task_nodes.into_iter().chain([judge]).collect();
    repeat("criteria-loop", nodes, until, max_iterations)
}
