//! Whether the agents that have the roles of a built-in workflow can do their work.

use atomic_graph::Graph;
use atomic_registry::{Entity, Tools};
use atomic_runner::{Settings, agent_of_role};
use atomic_workflow::roles;

use crate::catalog::Catalog;
use crate::failure::Failure;

/// The agents of all roles in a graph, each with its role.
///
/// # Errors
/// When the agent for a role is not there, or when its tools cannot do the work: nothing is paid
/// for before that is known.
pub(crate) fn agents<'c>(
    catalog: &'c Catalog,
    graph: &Graph,
    settings: &Settings,
) -> Result<Vec<(String, &'c Entity)>, Failure> {
    let mut found = vec![];
    for role in roles(graph) {
        let role = role.as_str();
        let agent = agent_of_role(&catalog.registry, settings, role).map_err(|missing| {
            let remedy = format!("choose another one: atomic config set --user ralph.{role} …");
            Failure::Usage(format!("ralph.{role}: {missing}\n  hint: {remedy}"))
        })?;
        refuse_unable(catalog, role, agent)?;
        found.push((role.to_owned(), agent));
    }
    Ok(found)
}

/// Refuses an agent whose tools cannot do the work of its role.
fn refuse_unable(catalog: &Catalog, role: &str, agent: &Entity) -> Result<(), Failure> {
    let missing = missing(role, &agent.tools);
    if missing.is_empty() {
        return Ok(());
    }
    let place = match &agent.origin.path {
        Some(path) => catalog.shown(path),
        None => format!("the built-in agent {}", agent.name),
    };
    let missing = missing.join(" and ");
    Err(Failure::Usage(format!(
        "{role}: {place} cannot do this role's work: its tools do not include {missing}\n  hint: \
         allow {missing} in the file, or choose another agent: atomic config set --user \
         ralph.{role} …"
    )))
}

/// The tools that a role needs and an agent does not have.
fn missing(role: &str, tools: &Tools) -> Vec<&'static str> {
    let needed: &[(bool, &str)] = match role {
        "worker" => &[(tools.may_edit(), "edit"), (tools.may_run(), "bash")],
        _ => &[(tools.may_read(), "read")],
    };
    needed.iter().filter(|(has, _)| !has).map(|(_, tool)| *tool).collect()
}
