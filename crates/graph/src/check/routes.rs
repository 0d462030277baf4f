//! Decisions and conditions.

use super::scope::Site;
use super::{Code, Place, Problem, Report};
use crate::{Condition, Graph, Kind, Node, NodeId, OnError};

pub(super) fn check(site: Site<'_, '_>, report: &mut Report) {
    for wire in &site.layout().wires {
        let edge = &site.graph().edges[wire.number];
        if wire.when.is_some() && wire.is_join() {
            let place = site.place().part(format!("edges[{}]", wire.number));
            let message = format!(
                "the edge to \"{}\" waits for {} nodes and has a condition",
                edge.to,
                wire.from.len()
            );
            let remedy = "an edge that waits for several nodes is taken when all have come by: \
                          let it lead to a decision, and put the condition behind that";
            report.add(site, Problem::new(Code::CONDITIONAL_JOIN, place, message, remedy));
        }
    }
    for (number, node) in site.nodes() {
        otherwise(site, report, number, node);
        if matches!(node.kind, Kind::Decision) {
            decision(site, report, number, node);
        }
    }
    says(site, report);
}

fn otherwise(site: Site<'_, '_>, report: &mut Report, number: u32, node: &Node) {
    let mut choices = site.layout().choices(number);
    let Some(otherwise) = choices.find(|wire| wire.when == Some(&Condition::Otherwise)) else {
        return;
    };
    let behind: Vec<usize> = choices.map(|wire| wire.number).collect();
    let Some(first) = behind.first() else { return };
    let place = site.place().part(format!("edges[{}]", otherwise.number));
    let which = if behind.len() == 1 { "is" } else { "and more are" };
    let message = format!(
        "this is the `otherwise` of \"{}\", but edges[{first}] {which} behind it and can never be \
         taken",
        node.id
    );
    let remedy = "make `otherwise` the last condition of the node";
    report.add(site, Problem::new(Code::OTHERWISE_NOT_LAST, place, message, remedy));
}

fn decision(site: Site<'_, '_>, report: &mut Report, number: u32, node: &Node) {
    let mut conditions = 0;
    let mut plain = 0;
    let mut is_complete = false;
    for (_, wire) in site.layout().leaving(number) {
        match wire.when {
            Some(when) => {
                conditions += 1;
                is_complete |= *when == Condition::Otherwise;
            }
            None => {
                plain += 1;
                let place = site.place().part(format!("edges[{}]", wire.number));
                let to = &site.graph().edges[wire.number].to;
                let message = format!(
                    "the edge from the decision \"{}\" to \"{to}\" has no condition, so it would \
                     be taken whatever is decided",
                    node.id
                );
                let remedy = "give it a condition; for the way that is left, `otherwise`";
                report.add(site, Problem::new(Code::DECISION_PLAIN_EDGE, place, message, remedy));
            }
        }
    }
    let place = site.at(&node.id);
    if conditions + plain == 0 {
        let message = "the decision leads nowhere, so it always fails";
        let remedy = "add edges that leave it, the last with the condition `otherwise`";
        report.add(site, Problem::new(Code::DECISION_WITHOUT_EDGES, place, message, remedy));
    } else if conditions > 0 && !is_complete && node.on_error == OnError::Abort {
        let message = "when none of its conditions holds, it fails with `no_route`";
        let remedy = "add an edge with the condition `otherwise`, or an `on_error`";
        report.add(site, Problem::new(Code::DECISION_WITHOUT_OTHERWISE, place, message, remedy));
    }
    if !node.targets.is_empty() && !matches!(node.on_error, OnError::Call(_)) {
        let place = site.at(&node.id).part("targets");
        let message = "it declares goto targets, but a decision never returns a goto";
        let remedy = "remove `targets`, and add an edge to each of them";
        report.add(site, Problem::new(Code::DECISION_TARGETS, place, message, remedy));
    }
}

/// Conditions on the output of a node: one of this graph or of those around it; when a loop asks
/// whether it is done, also one inside it.
fn says(site: Site<'_, '_>, report: &mut Report) {
    let is_known = |id: &NodeId| site.outwards().any(|site| site.layout().find(id).is_some());
    for (number, edge) in site.graph().edges.iter().enumerate() {
        if let Some(id) = edge.when.as_ref().and_then(output_of).filter(|id| !is_known(id)) {
            let place = site.place().part(format!("edges[{number}]"));
            unknown_output(site, report, place, (id, site.graph()));
        }
    }
    for (_, node) in site.nodes() {
        if let Kind::Loop { graph, until: Some(until), .. } = &node.kind
            && let Some(id) = output_of(until).filter(|id| !is_known(id))
            && !graph.nodes.iter().any(|node| node.id == *id)
        {
            let place = site.at(&node.id).part("until");
            unknown_output(site, report, place, (id, graph));
        }
    }
}

fn unknown_output(
    site: Site<'_, '_>,
    report: &mut Report,
    place: Place,
    (id, graph): (&NodeId, &Graph),
) {
    let names = graph.nodes.iter().map(|node| node.id.as_str());
    let remedy = match report.guess(id.as_str(), names) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => "name a node of this graph or of one around it".to_owned(),
    };
    let message = format!("the condition looks at the output of \"{id}\", which does not exist");
    report.add(site, Problem::new(Code::CONDITION_NODE_MISSING, place, message, remedy));
}

/// The node whose output a condition looks at.
fn output_of(condition: &Condition) -> Option<&NodeId> {
    let mut condition = condition;
    loop {
        match condition {
            Condition::Says { node, .. } => return Some(node),
            Condition::Not(other) => condition = other,
            Condition::Equals { .. } | Condition::Call(_) | Condition::Otherwise => return None,
        }
    }
}
