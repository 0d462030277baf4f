//! Which nodes a run can come to.

use super::scope::Site;
use super::{Code, Problem, Report};
use crate::{Node, NodeId, OnError};

/// Reports the nodes that nothing leads to; returns which ones a run can come to. `meant` are
/// those that something would lead to if it were spelled right.
pub(super) fn check(site: Site<'_, '_>, meant: &[u32], report: &mut Report) -> Vec<bool> {
    let graph = site.graph();
    let Some(start) = site.layout().find(&graph.start) else {
        // Everything would be out of reach, and that is not what is wrong.
        return vec![true; graph.nodes.len()];
    };
    let roots =
        meant.iter().copied().chain(graph.catch.as_ref().and_then(|c| site.layout().find(c)));
    let reached = follow(site, roots.chain([start]).collect(), &possible);
    for (number, node) in site.nodes() {
        let is_first = site.layout().find(&node.id) == Some(number);
        if is_first && !reached[number as usize] {
            let message = "no way leads here from the start";
            let remedy = "add an edge to it, name it where a node may go to, or remove it";
            report.add(site, Problem::new(Code::UNREACHABLE, site.at(&node.id), message, remedy));
        }
    }
    reached
}

/// The nodes that run whenever the graph comes to its end without a failure.
pub(super) fn certain(site: Site<'_, '_>) -> Vec<bool> {
    let start = site.layout().find(&site.graph().start);
    follow(site, start.into_iter().collect(), &|node| {
        // A goto may lead past the edges.
        if node.targets.is_empty() { Ways::Plain } else { Ways::None }
    })
}

/// What is followed from a node.
enum Ways<'g> {
    /// Every edge, and these.
    AllAnd(Vec<&'g NodeId>),
    /// Edges without a condition.
    Plain,
    None,
}

fn possible(node: &Node) -> Ways<'_> {
    let on_error = match &node.on_error {
        OnError::Goto(target) => Some(target),
        OnError::Abort | OnError::Skip | OnError::SkipWith(_) | OnError::Call(_) => None,
    };
    Ways::AllAnd(node.targets.iter().chain(on_error).chain(&node.on_revive).collect())
}

fn follow<'g>(
    site: Site<'_, 'g>,
    roots: Vec<u32>,
    ways: &dyn Fn(&'g Node) -> Ways<'g>,
) -> Vec<bool> {
    let layout = site.layout();
    let mut reached = vec![false; site.graph().nodes.len()];
    let mut missing: Vec<usize> = layout.wires.iter().map(|wire| wire.from.len()).collect();
    let mut waiting = roots;
    while let Some(number) = waiting.pop() {
        if std::mem::replace(&mut reached[number as usize], true) {
            continue;
        }
        let (jumps, all) = match ways(site.node(number)) {
            Ways::AllAnd(jumps) => (jumps, true),
            Ways::Plain => (vec![], false),
            Ways::None => continue,
        };
        waiting.extend(jumps.into_iter().filter_map(|id| layout.find(id)));
        for (number, wire) in layout.leaving(number) {
            if wire.when.is_none() || all {
                let missing = &mut missing[number as usize];
                *missing -= 1;
                if *missing == 0 {
                    waiting.extend(wire.to);
                }
            }
        }
    }
    reached
}
