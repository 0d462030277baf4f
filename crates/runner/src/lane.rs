//! Lanes: which steps share a conversation.

use std::collections::BTreeMap;

use atomic_event::{BackendId, ConversationId, NodeId, StepId};
use atomic_graph::{Graph, Kind};
use serde::{Deserialize, Serialize};

/// A conversation that the steps of a lane share.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Shared {
    pub(crate) conversation: ConversationId,
    /// How full it is, and how large its window, once that is known.
    pub(crate) context: Option<(u64, u64)>,
}

impl Shared {
    /// Makes this the conversation that a lane shares with a backend.
    pub(crate) fn open(
        lane: &mut BTreeMap<BackendId, Self>,
        backend: &BackendId,
        conversation: &ConversationId,
    ) {
        let known = lane.get(backend).is_some_and(|known| known.conversation == *conversation);
        if !known {
            let shared = Self { conversation: conversation.clone(), context: None };
            lane.insert(backend.clone(), shared);
        }
    }

    /// Which part of its window it fills.
    pub(crate) fn full(&self) -> Option<f64> {
        let (used, window) = self.context?;
        (window > 0).then(|| used as f64 / window as f64)
    }
}

/// The graph a step belongs to, empty for the outermost.
pub(crate) fn scope(step: &StepId) -> &str {
    outside(step.as_str())
}

fn outside(place: &str) -> &str {
    place.rsplit_once('/').map_or("", |(scope, _)| scope)
}

/// The loops of a workflow, each by the way to it. A lane is the outermost graph, a branch, an
/// item, or a sub-graph; the rounds of a loop belong to the lane the loop is in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Loops(Vec<Vec<Turn>>);

/// A node on the way to a loop, and the branch that is entered there, if it has several.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Turn {
    node: NodeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<NodeId>,
}

impl Loops {
    pub(crate) fn of(graph: &Graph) -> Self {
        let mut loops = Self::default();
        loops.collect(graph, &mut vec![]);
        loops
    }

    fn collect(&mut self, graph: &Graph, way: &mut Vec<Turn>) {
        for node in &graph.nodes {
            for (branch, inner) in node.inner() {
                way.push(Turn { node: node.id.clone(), branch: branch.cloned() });
                if matches!(node.kind, Kind::Loop { .. }) {
                    self.0.push(way.clone());
                }
                self.collect(inner, way);
                way.pop();
            }
        }
    }

    /// Whether a place such as `again#1[2]` is a round of a loop.
    pub(crate) fn is_round(&self, place: &str) -> bool {
        self.0.iter().any(|way| leads_to(way, place))
    }

    /// The lane a step is in.
    pub(crate) fn lane<'s>(&self, step: &'s StepId) -> &'s str {
        let mut lane = scope(step);
        while self.0.iter().any(|way| leads_to(way, lane)) {
            lane = outside(lane);
        }
        lane
    }
}

/// Whether a scope such as `fan#1[a]/again#1[2]` is what a way leads to.
fn leads_to(way: &[Turn], scope: &str) -> bool {
    let mut parts = scope.split('/');
    let fits = |turn: &Turn| {
        let Some(part) = parts.next() else { return false };
        let (place, inside) = match part.strip_suffix(']').and_then(|open| open.rsplit_once('[')) {
            Some((place, inside)) => (place, Some(inside)),
            None => (part, None),
        };
        let node = place.rsplit_once('#').map_or(place, |(node, _)| node);
        let branch = turn.branch.as_ref().map(NodeId::as_str);
        node == turn.node.as_str() && (branch.is_none() || branch == inside)
    };
    way.iter().all(fits) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use atomic_event::StepId;
    use atomic_graph::{Branch, Graph, Kind, Node, Parallel, Strategy};
    use serde_json::json;

    use super::Loops;

    fn again(graph: Graph) -> Graph {
        let kind = Kind::Loop { graph, until: None, max_rounds: 3 };
        Graph::starting_at("again").node(Node::new("again", kind))
    }

    fn apart(graph: Graph) -> Graph {
        let kind = Kind::Subgraph { graph, isolated: true, input: None, output: None };
        Graph::starting_at("again").node(Node::new("again", kind))
    }

    #[test]
    fn a_round_is_in_the_lane_its_loop_is_in() {
        let work = || Graph::starting_at("work").node(Node::work("work", json!({})));
        let branch = |id: &str, graph| Branch { id: id.into(), graph };
        let branches = vec![branch("a", again(again(work()))), branch("b", apart(work()))];
        let (strategy, fail_fast, merge) = (Strategy::All, false, None);
        let fan = Kind::Parallel(Parallel { branches, strategy, fail_fast, merge });
        let loops = Loops::of(&again(work()).node(Node::new("fan", fan)));
        let table = [
            ("again#1", ""),
            ("again#1[2]/work#1", ""),
            ("again#1!2[2]/work#1", ""),
            ("fan#1[a]/again#1", "fan#1[a]"),
            ("fan#1[a]/again#1[1]/again#1", "fan#1[a]"),
            ("fan#1[a]/again#1[1]/again#1[7]/work#2", "fan#1[a]"),
            ("fan#1[b]/again#1/work#1", "fan#1[b]/again#1"),
        ];
        for (step, lane) in table {
            assert_eq!(loops.lane(&StepId::new(step)), lane, "{step}");
        }
    }
}
