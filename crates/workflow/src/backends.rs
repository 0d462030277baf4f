//! The backends a node can name, and those that a graph does name.

use std::collections::BTreeSet;

use atomic_event::{AgentName, BackendId};
use atomic_graph::{Graph, Kind, NodeId};
use serde::Deserialize as _;

use crate::Action;

/// Every backend as authors write it: the one table of their names. Whether this version can drive
/// it on this machine is for whoever starts a run to find out.
pub const BACKENDS: [&str; 5] = ["claude", "opencode", "copilot", "script", ACP];

/// Any program that speaks ACP: the command that starts it is part of the name.
const ACP: &str = "acp:<command>";

/// The backend that is meant by a name, if there is one.
pub fn backend_called(name: &str) -> Option<BackendId> {
    let has_command = name.strip_prefix("acp:").is_some_and(|command| !command.trim().is_empty());
    let is_known = name != ACP && BACKENDS.contains(&name);
    (is_known || has_command && name != ACP).then(|| BackendId::from(name))
}

/// A node that launches an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// The way to it: nodes and names of branches, from the outermost graph inwards.
    pub path: Vec<NodeId>,
    /// The backend it names; otherwise it is the run's.
    pub backend: Option<BackendId>,
    /// The model its node names.
    pub model: Option<String>,
}

impl std::fmt::Display for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path: Vec<&str> = self.path.iter().map(NodeId::as_str).collect();
        f.write_str(&path.join("/"))
    }
}

/// Every node of a graph that launches an agent, inner graphs included, in the order in which they
/// are written.
pub fn launchers(graph: &Graph) -> Vec<Launcher> {
    let mut found = vec![];
    collect(graph, &mut vec![], &mut found);
    found
}

fn collect(graph: &Graph, path: &mut Vec<NodeId>, found: &mut Vec<Launcher>) {
    for node in &graph.nodes {
        path.push(node.id.clone());
        if let Kind::Work { action, launch: true, .. } = &node.kind {
            let action = Action::deserialize(action).ok();
            let backend = action.as_ref().and_then(|action| action.backend().cloned());
            let model = match action {
                Some(Action::Agent(agent)) => agent.model,
                _ => None,
            };
            found.push(Launcher { path: path.clone(), backend, model });
        }
        for (branch, inner) in node.inner() {
            path.extend(branch.cloned());
            collect(inner, path, found);
            path.truncate(path.len() - usize::from(branch.is_some()));
        }
        path.pop();
    }
}

/// The roles that agents have in a graph, inner graphs included, each once.
pub fn roles(graph: &Graph) -> BTreeSet<AgentName> {
    let mut found = BTreeSet::new();
    for node in &graph.nodes {
        if let Kind::Work { action, .. } = &node.kind
            && let Ok(Action::Agent(agent)) = Action::deserialize(action)
            && agent.role
        {
            found.insert(agent.agent);
        }
        for (_, inner) in node.inner() {
            found.extend(roles(inner));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{BACKENDS, backend_called};

    #[test]
    fn a_backend_is_called_by_its_whole_name() {
        let known = ["claude", "opencode", "copilot", "script", "acp:gemini --acp"];
        for name in known {
            assert_eq!(backend_called(name).map(|id| id.to_string()).as_deref(), Some(name));
        }
        for name in ["", "Claude", "acp", "acp:", "acp: ", "acp:<command>", "gemini"] {
            assert_eq!(backend_called(name), None, "{name:?}");
        }
        assert_eq!(BACKENDS[..4], known[..4]);
    }
}
