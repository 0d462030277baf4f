//! What a workflow makes use of, found out from what it is.

use atomic_graph::{Graph, Kind, Node};
use serde::Deserialize as _;

use crate::{Action, Initial, Workflow};

/// What a workflow makes use of. Nobody declares it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It has a list of tasks to show.
    pub tasks: bool,
    /// It launches agents.
    pub agents: bool,
    /// It asks the user.
    pub questions: bool,
}

/// The key of the state under which tasks are kept.
const TASKS: &str = "tasks";

impl Workflow {
    /// What it makes use of, inner graphs included.
    pub fn capabilities(&self) -> Capabilities {
        let begins_with_tasks =
            matches!(&self.initial_state, Initial::Given(values) if values.contains_key(TASKS));
        let mut found = Capabilities { tasks: begins_with_tasks, ..Capabilities::default() };
        let mut graphs: Vec<&Graph> = vec![&self.graph];
        while let Some(graph) = graphs.pop() {
            found.tasks |= graph.reducers.contains_key(TASKS);
            for node in &graph.nodes {
                found.look_at(node);
                graphs.extend(node.inner().into_iter().map(|(_, inner)| inner));
            }
        }
        found
    }
}

impl Capabilities {
    fn look_at(&mut self, node: &Node) {
        let Kind::Work { action, launch, asks } = &node.kind else { return };
        self.agents |= launch;
        self.questions |= asks;
        match Action::deserialize(action) {
            Ok(Action::Ask(_)) => self.questions = true,
            Ok(Action::TaskFile(_)) => self.tasks = true,
            Ok(
                Action::Agent(_)
                | Action::Function { .. }
                | Action::Shell(_)
                | Action::Entry(_)
                | Action::Gates(_)
                | Action::ClearContext
                | Action::ContextMonitor(_)
                | Action::Called
                | Action::Sleep { .. }
                | Action::Request { .. },
            )
            | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Capabilities;
    use crate::builtin;

    #[test]
    fn the_built_in_workflows_say_what_they_use() {
        let of = |name: &str| builtin::find(name).map(|workflow| workflow.capabilities());
        let all = Capabilities { tasks: true, agents: true, questions: false };
        assert_eq!(of("ralph"), Ok(all));
        let asks = Capabilities { tasks: false, agents: true, questions: true };
        assert_eq!(of("second-opinion"), Ok(asks));
    }
}
