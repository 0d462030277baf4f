//! What runs inside a node comes together again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::fan::{changes_in_order, in_order};
use super::merge::replaced_twice;
use super::region::{Ending, Wait};
use super::{Machine, Place};
use crate::{Kind, NodeId, Parallel, StepError, code};

impl Machine {
    /// Ends a region when nothing runs in it and nothing can.
    pub(super) fn end_if_idle(&mut self, place: Place) {
        let Some(region) = self.region_mut(place) else { return };
        if !region.running.is_empty() {
            return;
        }
        if let Some(Ending::Fail(error)) = &region.ending {
            let error = error.clone();
            return self.fail_region(place, error);
        }
        if let Some(Ending::Returned(output)) = &region.ending {
            let output = output.clone();
            return self.finish_region(place, output);
        }
        if region.wait.is_some() {
            return;
        }
        if region.failed.is_empty() || region.ending == Some(Ending::Join) {
            return self.absorb_branches(place);
        }
        let failed = region.failed.clone();
        let all = failed.len() + region.outputs.len() + region.absorbing.len();
        let errors: Vec<&StepError> =
            failed.values().filter_map(|id| self.frames.get(id)?.error.as_ref()).collect();
        // A ceiling of the run is told apart, wherever it was met.
        let ceiling = errors.iter().find(|error| error.code == code::CEILING);
        let first = ceiling.or(errors.first()).map_or("", |error| error.message.as_str());
        let (program, plan, node) = self.node_at(place);
        let what = match &program.plan(plan).node(node).kind {
            Kind::Parallel(_) => "branches",
            Kind::Each(_)
            | Kind::Work { .. }
            | Kind::Decision
            | Kind::Subgraph { .. }
            | Kind::Script(_)
            | Kind::Loop { .. } => "items",
        };
        let message = format!("{} of {all} {what} failed; the first: {first}", failed.len());
        let code = if ceiling.is_some() { code::CEILING } else { code::FAN };
        self.fail_region(place, StepError::new(code, message));
    }

    /// The branches have come together: their changes are applied in the order of their
    /// definition, whichever finished first.
    fn absorb_branches(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let Some(region) = self.region_mut(place) else { return };
        if region.absorbing.is_empty() {
            return self.join(place);
        }
        if let Kind::Parallel(parallel) = &program.plan(plan).node(node).kind {
            let order: BTreeMap<&str, usize> =
                parallel.branches.iter().map(|b| b.id.as_str()).zip(0..).collect();
            let children = region.absorbing.make_contiguous();
            children.sort_by_key(|child| order.get(child.name.as_str()).copied());
            let changes =
                region.absorbing.iter().map(|child| (child.name.as_str(), child.changes.0.keys()));
            let reducers = &program.plan(plan).reducers;
            match replaced_twice(changes, reducers, "branches") {
                Some(mut error) => {
                    let node = &program.plan(plan).node(node).id;
                    error.message = format!("node `{node}`: {}", error.message);
                    self.fail_region(place, error);
                }
                None => self.absorb(place),
            }
        }
    }

    /// All frames that are waited for have finished.
    fn join(&mut self, place: Place) {
        let (program, plan, node) = self.node_at(place);
        let Some(region) = self.region_mut(place) else { return };
        let outputs = match &program.plan(plan).node(node).kind {
            Kind::Each(each) => {
                let list = region.state.get(each.over.as_str()).and_then(|list| list.as_array());
                let list = list.map_or(&[][..], Vec::as_slice);
                let reducers = &program.plan(plan).reducers;
                let items = std::mem::take(&mut region.items);
                for changes in changes_in_order(each, items, list) {
                    region.changes.add(changes, reducers);
                }
                let outputs = in_order(std::mem::take(&mut region.outputs), list);
                Value::Object(outputs.into_iter().collect())
            }
            Kind::Parallel(parallel) => {
                let outputs = std::mem::take(&mut region.outputs);
                if let Some(call) = &parallel.merge {
                    let outputs = Arc::new(by_branch(outputs, parallel));
                    region.wait = Some(Wait::Output(Arc::clone(&outputs)));
                    return self.evaluate(place, call.clone(), vec![outputs]);
                }
                by_branch(outputs, parallel)
            }
            Kind::Work { .. }
            | Kind::Decision
            | Kind::Subgraph { .. }
            | Kind::Script(_)
            | Kind::Loop { .. } => Value::Null,
        };
        self.finish_region(place, outputs);
    }
}

/// The outputs of branches in the order of their definition.
fn by_branch(mut outputs: BTreeMap<String, Value>, parallel: &Parallel) -> Value {
    let name = |id: &NodeId| id.as_str().to_owned();
    let names = parallel.branches.iter().map(|branch| name(&branch.id));
    Value::Object(names.filter_map(|name| outputs.remove_entry(&name)).collect::<Map<_, _>>())
}
