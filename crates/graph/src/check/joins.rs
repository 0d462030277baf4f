//! Edges that wait for nodes of which only one is ever chosen, so that they are never taken.
//!
//! Two nodes exclude each other when each of them is reached only through another choice of the
//! same node, and that node is visited once.

use super::scope::Site;
use super::{Code, Problem, Report};
use crate::OnError;

pub(super) fn check(site: Site<'_, '_>, report: &mut Report) {
    let layout = site.layout();
    let joins: Vec<_> =
        layout.wires.iter().filter(|wire| wire.is_join() && wire.to.is_some()).collect();
    if joins.is_empty() {
        return;
    }
    let deciding: Vec<u32> = site
        .nodes()
        .map(|(number, _)| number)
        .filter(|number| layout.choices(*number).nth(1).is_some())
        .collect();
    let mut found = vec![None; joins.len()];
    for decision in deciding {
        let Some(only) = only_through(site, decision, report) else { return };
        for (join, found) in joins.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            let mut chosen =
                join.from.iter().filter_map(|node| Some((*node, only[*node as usize]?)));
            let Some((first, choice)) = chosen.next() else { continue };
            *found = chosen
                .find(|(_, other)| *other != choice)
                .map(|(other, _)| (decision, first, other));
        }
    }
    for (join, found) in joins.iter().zip(found) {
        let (Some((decision, first, other)), Some(to)) = (found, join.to) else { continue };
        let id = |number: u32| &site.node(number).id;
        let message = format!(
            "the edge to \"{}\" waits for \"{}\" and \"{}\", but \"{}\" chooses only one of the two",
            id(to),
            id(first),
            id(other),
            id(decision),
        );
        let remedy = format!("write one edge to \"{}\" from each of them", id(to));
        let place = site.place().part(format!("edges[{}]", join.number));
        report.add(site, Problem::new(Code::EXCLUSIVE_JOIN, place, message, remedy));
    }
}

/// The nodes that a graph comes to without coming by `through` before; nothing when there are too many
/// edges to follow.
pub(super) fn reached_without(
    site: Site<'_, '_>,
    through: u32,
    report: &mut Report,
) -> Option<Vec<bool>> {
    let start = site.layout().find(&site.graph().start)?;
    let roots = std::iter::once(start).chain(besides(site));
    reached(site, roots, Without::Node(through), report)
}

/// For every node the choice of `decision` without which it is not reached. Nothing when there are
/// too many edges to follow.
fn only_through(
    site: Site<'_, '_>,
    decision: u32,
    report: &mut Report,
) -> Option<Vec<Option<usize>>> {
    let count = site.graph().nodes.len();
    let mut only = vec![None; count];
    let start = site.layout().find(&site.graph().start);
    let starts = || start.into_iter().chain(besides(site));
    // One that is visited again may choose another way then.
    let behind = reached(site, after(site, decision, None), Without::Nothing, report)?;
    if behind[decision as usize] {
        return Some(only);
    }
    let all = reached(site, starts(), Without::Nothing, report)?;
    for (number, _) in site.layout().choices(decision).enumerate() {
        let others = reached(site, starts(), Without::Choice(decision, number), report)?;
        for node in (0..count).filter(|node| all[*node] && !others[*node]) {
            only[node] = Some(number);
        }
    }
    Some(only)
}

/// Nodes that are reached without an edge: failures and a resume lead there.
fn besides<'a>(site: Site<'a, '_>) -> impl Iterator<Item = u32> + 'a {
    let graph = site.graph();
    let revived = graph.nodes.iter().filter_map(|node| node.on_revive.as_ref());
    graph.catch.iter().chain(revived).filter_map(move |id| site.layout().find(id))
}

/// Where a node may lead, without one of its choices.
fn after<'a>(
    site: Site<'a, '_>,
    number: u32,
    without: Option<usize>,
) -> impl Iterator<Item = u32> + 'a {
    let layout = site.layout();
    let node = site.node(number);
    let on_error = match &node.on_error {
        OnError::Goto(target) => Some(target),
        OnError::Abort | OnError::Skip | OnError::SkipWith(_) | OnError::Call(_) => None,
    };
    let choices = layout.choices(number).enumerate();
    let choices = choices.filter(move |(choice, _)| Some(*choice) != without).map(|(_, wire)| wire);
    let others = layout.leaving(number).map(|(_, wire)| wire);
    let others = others.filter(|wire| wire.when.is_none() || wire.is_join());
    let jumps = node.targets.iter().chain(on_error).filter_map(move |id| layout.find(id));
    choices.chain(others).filter_map(|wire| wire.to).chain(jumps)
}

/// What is not followed.
#[derive(Clone, Copy)]
enum Without {
    Nothing,
    /// One choice of a node.
    Choice(u32, usize),
    /// All ways that lead on from a node.
    Node(u32),
}

/// The nodes that are reached from these.
fn reached(
    site: Site<'_, '_>,
    from: impl Iterator<Item = u32>,
    without: Without,
    report: &mut Report,
) -> Option<Vec<bool>> {
    let mut reached = vec![false; site.graph().nodes.len()];
    let mut waiting: Vec<u32> = vec![];
    for node in from {
        if !std::mem::replace(&mut reached[node as usize], true) {
            waiting.push(node);
        }
    }
    while let Some(node) = waiting.pop() {
        let choice = match without {
            Without::Node(through) if through == node => continue,
            Without::Choice(decision, choice) if decision == node => Some(choice),
            Without::Node(_) | Without::Choice(..) | Without::Nothing => None,
        };
        for next in after(site, node, choice) {
            report.steps = report.steps.checked_sub(1)?;
            if !std::mem::replace(&mut reached[next as usize], true) {
                waiting.push(next);
            }
        }
    }
    Some(reached)
}
