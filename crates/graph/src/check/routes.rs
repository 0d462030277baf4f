//! Decisions, and the conditions of edges.

use super::scope::Site;
use super::{Code, Problem, Report};
use crate::{Condition, Kind, Node, OnError};

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
