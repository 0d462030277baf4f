//! A workflow that is a function: a graph of one node, with the workflows it calls inside.

use std::collections::BTreeMap;
use std::sync::Arc;

use atomic_graph::{Graph, NodeId};

use super::ScriptPart;
use super::created::Creating;
use super::fields::Fields;
use super::reader::Reader;
use super::shelf::Taken;
use crate::{Callable, Function, script_node};

/// The node of a workflow that is a function.
pub(super) const RUN: &str = "run";

impl<'d> Reader<'d, '_, '_> {
    /// The graph of a function.
    pub(super) fn script_graph(&mut self, part: &ScriptPart, fields: &Fields<'d>) -> Graph {
        self.depth += 1;
        let mut callable = vec![];
        let mut makers = BTreeMap::new();
        for name in &part.workflows {
            let Some(Taken { mut graph, make }) = self.taken_in(name, fields.at) else { continue };
            makers.extend(make.map(|make| (name.clone(), make)));
            let timeout_ms = graph.timeout_ms.take();
            callable.push(Callable { name: name.clone(), graph, output: None, timeout_ms });
        }
        self.depth -= 1;
        let script = Arc::clone(&part.advance);
        let advance = self.own_function("run", Function::advance(Creating { script, makers }));
        let mut node = script_node(RUN, advance, callable, part.max_calls.clone());
        if let Some((text, _, is_used)) = self.descriptions.get_mut(RUN) {
            *is_used = true;
            node.description = Some((*text).to_owned());
        }
        self.path.push(NodeId::from(RUN));
        self.mark(None, fields.at);
        self.path.pop();
        Graph::starting_at(RUN).node(node)
    }
}
