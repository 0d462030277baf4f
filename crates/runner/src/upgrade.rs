//! A session goes on with the current version of its workflow.

use std::path::Path;
use std::sync::Arc;

use atomic_event::{Created, Event, Patch, StepError, Upgraded};
use atomic_graph::{Graph, Input, Machine, OpenScript, Program};
use atomic_session::{Disk, Session};
use atomic_workflow::{Function, Paths, ScriptCall, StateShape, Workflow};
use serde_json::Value;

use crate::run::{RunError, hashed};

/// That the current version of the workflow is wanted instead of the one that the session has kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Upgrade;

/// What a session is about now: the first fact, with the graph, the source and the version of the
/// state that it was upgraded to since.
pub fn kept(disk: Arc<dyn Disk>, dir: &Path) -> Result<Created, RunError> {
    let mut kept = None;
    for fact in Session::read_only(disk, dir)? {
        let event = fact?.event;
        if let Event::SessionCreated(first) = event {
            kept = Some(*first);
        } else if let (Event::SessionResumed(resumed), Some(kept)) = (event, &mut kept)
            && let Some(upgraded) = resumed.upgraded
        {
            taken_over(kept, *upgraded);
        }
    }
    kept.ok_or_else(|| RunError::Refused(format!("the session in {} never began", dir.display())))
}

/// Makes what a session is about what it was upgraded to.
pub(crate) fn taken_over(created: &mut Created, upgraded: Upgraded) {
    created.graph = upgraded.graph;
    created.graph_hash = upgraded.graph_hash;
    created.origin.source = upgraded.source;
    created.origin.state_version = upgraded.to;
}

/// Reads and checks a graph that a journal has kept.
pub(crate) fn compiled(graph: &Value) -> Result<Arc<Program>, String> {
    let graph: Graph = serde_json::from_value(graph.clone())
        .map_err(|error| format!("the session's graph is unreadable: {error}"))?;
    Program::compile(graph)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Lets a machine go on with what a session was upgraded to.
pub(crate) fn apply(machine: &mut Machine, upgraded: &Upgraded) -> Result<(), String> {
    let program = compiled(&upgraded.graph)?;
    machine.upgrade(program, &upgraded.state).map_err(|missing| missing_nodes(&missing))
}

fn missing_nodes(missing: &[String]) -> String {
    format!(
        "these nodes are under way and are not in the workflow any more, or are of another kind: {}",
        missing.join(", ")
    )
}

/// What becomes of a session with the current version of its workflow; the error says why it
/// cannot go on with it.
pub(crate) fn planned(
    under_way: &UnderWay<'_>,
    from: u64,
    workflow: &Workflow,
) -> Result<Upgraded, RunError> {
    let refused = |why: String| RunError::Refused(format!("the session cannot be upgraded: {why}"));
    let graph = serde_json::to_value(&workflow.graph).unwrap_or_default();
    let state = migrated(under_way.machine, from, &workflow.state_shape).map_err(refused)?;
    let upgraded = Upgraded {
        graph_hash: hashed(&graph),
        graph,
        source: workflow.source.clone(),
        from,
        to: workflow.state_shape.version,
        state,
    };
    // On a copy: whether it can be done is known before anything is recorded.
    let mut machine = under_way.machine.clone();
    apply(&mut machine, &upgraded).map_err(refused)?;
    if under_way.revived {
        machine.apply(Input::Revived).map_err(|misfit| refused(misfit.to_string()))?;
    }
    under_way.check_scripts(&machine, workflow).map_err(|error| refused(error.message))?;
    Ok(upgraded)
}

/// A session that is to go on.
pub(crate) struct UnderWay<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) created: &'a Created,
    pub(crate) paths: Paths,
    /// Whether it has failed and gets another chance.
    pub(crate) revived: bool,
}

impl UnderWay<'_> {
    /// Whether every script does with its new function what it did before.
    fn check_scripts(&self, machine: &Machine, workflow: &Workflow) -> Result<(), StepError> {
        for OpenScript { step, advance, state, history } in machine.scripts() {
            let Some(Function::Advance(advance)) = workflow.functions.find(advance) else {
                continue;
            };
            advance.check(&ScriptCall {
                step,
                state,
                session: self.created.session.as_str(),
                root: self.created.root().as_str(),
                paths: &self.paths,
                history,
                delivery: None,
                now: 0,
            })?;
        }
        Ok(())
    }
}

/// The values of the state that are others in the new version; null for those that go.
fn migrated(machine: &Machine, from: u64, shape: &StateShape) -> Result<Patch, String> {
    let to = shape.version;
    if from == to {
        return Ok(Patch::new());
    }
    let Some(migrate) = &shape.migrate else {
        return Err(format!(
            "its state has the version {from}, the workflow's has {to}, and the workflow has no \
             `migrateState` to bring it there"
        ));
    };
    let old = machine.outermost().to_value();
    let failed = |error: StepError| format!("`migrateState` failed: {}", error.message);
    let new = migrate(old.clone(), from).map_err(failed)?;
    let (Value::Object(mut old), Value::Object(new)) = (old, new) else {
        return Err("`migrateState` did not return an object".to_owned());
    };
    let mut patch = Patch::new();
    for (key, value) in new {
        // What nodes have returned is not the author's to change.
        if old.remove(&key).as_ref() != Some(&value) && key != "outputs" {
            patch.insert(key.into(), value);
        }
    }
    old.remove("outputs");
    patch.extend(old.into_iter().map(|(key, _)| (key.into(), Value::Null)));
    Ok(patch)
}
