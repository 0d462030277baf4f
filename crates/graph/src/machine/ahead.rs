//! What a run can still come to from where it is.

use std::collections::BTreeSet;

use super::Machine;
use super::frame::{Visit, VisitState};
use crate::{Kind, Node, OnError};

/// A node of a plan, and whether the graphs inside it count too.
type Stop = (u32, u32, bool);

impl Machine {
    /// The nodes that are being visited, and those that can be visited from there. Whether a
    /// condition holds, or a function goes somewhere else, is not known, so every way counts.
    pub fn ahead(&self) -> Vec<&Node> {
        let mut seen: BTreeSet<Stop> = BTreeSet::new();
        let mut left: Vec<Stop> = vec![];
        for frame in self.frames.values() {
            for visit in &frame.active {
                left.extend(self.of_visit(frame.plan, visit));
            }
        }
        while let Some(stop) = left.pop() {
            if seen.insert(stop) {
                let (plan, node, is_whole) = stop;
                left.extend(self.behind(plan, node));
                let plan = self.program.plan(plan);
                let inside = plan.inner().filter(|(owner, ..)| is_whole && *owner == node);
                left.extend(inside.map(|(_, _, body)| (body, self.program.plan(body).start, true)));
            }
        }
        seen.into_iter().map(|(plan, node, _)| self.program.plan(plan).node(node)).collect()
    }

    fn of_visit(&self, plan: u32, visit: &Visit) -> Vec<Stop> {
        match &visit.state {
            VisitState::Done(_) | VisitState::Choosing | VisitState::Routed(_) => {
                self.behind(plan, visit.node)
            }
            VisitState::Leaf(_)
            | VisitState::Region(_)
            | VisitState::Asking(_)
            | VisitState::Judging(..)
            | VisitState::Resting
            | VisitState::Failed(_) => {
                // Of graphs that are run once the frames inside say how far they are.
                let kind = &self.program.plan(plan).node(visit.node).kind;
                let is_once = matches!(kind, Kind::Subgraph { .. } | Kind::Parallel(_));
                vec![(plan, visit.node, !is_once || visit.state.region().is_none())]
            }
        }
    }

    /// The nodes that may follow a node.
    fn behind(&self, number: u32, node: u32) -> Vec<Stop> {
        let plan = self.program.plan(number);
        let known = plan.node(node);
        let on_error =
            if let OnError::Goto(target) = &known.on_error { Some(target) } else { None };
        let named = known.targets.iter().chain(on_error).chain(&known.on_revive);
        let named = named.chain(&plan.catch).filter_map(|id| plan.find(id));
        let edges = plan.leaving(node).map(|(_, edge)| edge.to);
        named.chain(edges).map(|node| (number, node, true)).collect()
    }
}
