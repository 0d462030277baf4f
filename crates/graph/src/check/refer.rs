//! Ids, and everything that refers to a node by its id.

use std::collections::BTreeSet;

use super::problem::{Place, listed};
use super::scope::Site;
use super::{Code, Problem, Report};
use crate::{Branch, Edge, Kind, Node, NodeId, OnError};

/// What would give a step an ambiguous name.
const NOT_IN_IDS: [char; 3] = ['/', '[', ']'];

/// Returns the nodes that were probably meant by wrong names, so that they are not reported as
/// unreachable too.
pub(super) fn check(site: Site<'_, '_>, report: &mut Report) -> Vec<u32> {
    let mut meant = vec![];
    let graph = site.graph();
    if site.layout().find(&graph.start).is_none() {
        let message = format!("the start node \"{}\" does not exist", graph.start);
        let place = site.place().part("start");
        meant.extend(missing(site, report, (Code::START_MISSING, place), &message, &graph.start));
    }
    ids(site, report);
    for number in &site.layout().broken {
        meant.extend(ends(site, report, *number, &graph.edges[*number]));
    }
    for (_, node) in site.nodes() {
        meant.extend(jumps(site, report, node));
    }
    if let Some(catch) = graph.catch.as_ref().filter(|id| site.layout().find(id).is_none()) {
        let message = format!("failures are caught by \"{catch}\", which does not exist");
        let place = (Code::CATCH_MISSING, site.place().part("catch"));
        meant.extend(missing(site, report, place, &message, catch));
    }
    meant
}

fn ids(site: Site<'_, '_>, report: &mut Report) {
    for (number, node) in site.nodes() {
        let id = &node.id;
        let place = || site.place().part(format!("nodes[{number}]"));
        if let Some(first) = site.layout().find(id).filter(|first| *first != number) {
            let message = format!("the id \"{id}\" already belongs to nodes[{first}]");
            let remedy = "rename one of the two, and the edges that mean it";
            report.add(site, Problem::new(Code::DUPLICATE_NODE, place(), message, remedy));
        }
        if id.as_str().is_empty() || id.as_str().contains(NOT_IN_IDS) {
            let message = match id.as_str() {
                "" => "a node has an empty id".to_owned(),
                id => format!("the id \"{id}\" has a `/`, `[` or `]` in it"),
            };
            let remedy = "use letters, digits, `-` and `_`; the rest is for the names of steps";
            report.add(site, Problem::new(Code::BAD_ID, place(), message, remedy));
        }
        match &node.kind {
            Kind::Parallel(parallel) => names(site, report, id, "branches", &parallel.branches),
            Kind::Script(script) => names(site, report, id, "bodies", &script.bodies),
            Kind::Work { .. }
            | Kind::Decision
            | Kind::Subgraph { .. }
            | Kind::Loop { .. }
            | Kind::Each(_) => {}
        }
    }
}

/// The names of the graphs inside a node.
fn names(site: Site<'_, '_>, report: &mut Report, id: &NodeId, part: &str, all: &[Branch]) {
    let mut names = BTreeSet::new();
    for (number, branch) in all.iter().enumerate() {
        let place = || site.at(id).part(format!("{part}[{number}]"));
        if !names.insert(&branch.id) {
            let message = format!("there is already a branch \"{}\"", branch.id);
            let remedy = "rename one of the two";
            report.add(site, Problem::new(Code::DUPLICATE_BRANCH, place(), message, remedy));
        }
        if branch.id.as_str().is_empty() {
            let message = "a branch has an empty id";
            let remedy = "give it a name, under which its output is found";
            report.add(site, Problem::new(Code::BAD_ID, place(), message, remedy));
        }
    }
}

fn ends(site: Site<'_, '_>, report: &mut Report, number: usize, edge: &Edge) -> Vec<u32> {
    let mut meant = vec![];
    let place = || site.place().part(format!("edges[{number}]"));
    let Edge { from, to, .. } = edge;
    if from.is_empty() {
        let message = format!("the edge to \"{to}\" comes from nowhere");
        let remedy = "name the node it leaves in `from`, or remove it";
        report.add(site, Problem::new(Code::EDGE_FROM_NOWHERE, place(), message, remedy));
    }
    let mut seen = BTreeSet::new();
    let mut is_whole = true;
    for from in from {
        if !seen.insert(from) {
            let message = format!("the edge to \"{to}\" waits for \"{from}\" twice");
            let remedy = "name every node once; to wait for two visits, use a loop or `each`";
            report.add(site, Problem::new(Code::EDGE_FROM_TWICE, place(), message, remedy));
        } else if site.layout().find(from).is_none() {
            is_whole = false;
            let message =
                format!("the edge to \"{to}\" comes from \"{from}\", which does not exist");
            meant.extend(missing(site, report, (Code::EDGE_FROM_MISSING, place()), &message, from));
        }
    }
    if let Some(to) = site.layout().find(to) {
        if !is_whole || from.is_empty() {
            meant.push(to);
        }
    } else {
        let from = from.first().map_or("nowhere", NodeId::as_str);
        let message = format!("the edge from \"{from}\" leads to \"{to}\", which does not exist");
        meant.extend(missing(site, report, (Code::EDGE_TO_MISSING, place()), &message, to));
    }
    meant
}

fn jumps(site: Site<'_, '_>, report: &mut Report, node: &Node) -> Vec<u32> {
    let mut meant = vec![];
    let is_missing = |id: &&NodeId| site.layout().find(id).is_none();
    let mut seen = BTreeSet::new();
    for (number, target) in node.targets.iter().enumerate() {
        let place = site.at(&node.id).part(format!("targets[{number}]"));
        if !seen.insert(target) {
            let message = format!("the goto target \"{target}\" is declared twice");
            let remedy = "remove one of the two";
            report.add(site, Problem::new(Code::TARGET_TWICE, place, message, remedy));
        } else if is_missing(&target) {
            let message = format!("a goto may lead to \"{target}\", which does not exist");
            meant.extend(missing(site, report, (Code::GOTO_MISSING, place), &message, target));
        }
    }
    if let OnError::Goto(target) = &node.on_error
        && is_missing(&target)
    {
        let message = format!("after a failure it goes to \"{target}\", which does not exist");
        let place = (Code::ON_ERROR_MISSING, site.at(&node.id).part("on_error"));
        meant.extend(missing(site, report, place, &message, target));
    }
    if let Some(target) = node.on_revive.as_ref().filter(is_missing) {
        let message = format!("on resume it goes to \"{target}\", which does not exist");
        let place = (Code::ON_REVIVE_MISSING, site.at(&node.id).part("on_revive"));
        meant.extend(missing(site, report, place, &message, target));
    }
    meant
}

/// Reports a node that does not exist; returns the one that was probably meant.
fn missing(
    site: Site<'_, '_>,
    report: &mut Report,
    (code, place): (Code, Place),
    message: &str,
    wanted: &NodeId,
) -> Option<u32> {
    let names = || site.graph().nodes.iter().map(|node| node.id.as_str());
    let meant = report.guess(wanted.as_str(), names());
    let is_around = site.outwards().any(|site| site.layout().find(wanted).is_some());
    let remedy = match (meant, listed(names())) {
        _ if is_around => format!(
            "\"{wanted}\" is in a graph around this one, and only the end of a graph leads out \
             of it: let this one end, and go on from the node it is in"
        ),
        (Some(meant), _) => format!("did you mean \"{meant}\"?"),
        (None, Some(names)) => format!("use {names}, or add a node \"{wanted}\""),
        (None, None) => format!("add a node \"{wanted}\""),
    };
    report.add(site, Problem::new(code, place, message, remedy));
    meant.and_then(|meant| site.layout().find(&NodeId::from(meant)))
}
