//! The outputs of nodes that conditions and texts refer to.
//!
//! An output is seen in the graph of its node and in those inside it. Behind a loop, behind
//! branches and behind a graph that shares its state the outputs of the nodes inside are seen,
//! too. There one id can mean two nodes, and the one that returned last counts.

use std::collections::{BTreeMap, BTreeSet};

use super::scope::{Owner, Scopes, Site};
use super::used::Used;
use super::{Code, Place, Problem, Report, UseKind, joins};
use crate::{Condition, Kind, NodeId, OnError, Strategy};

/// How many nodes are looked at in all to find out what comes after what.
const STEPS: usize = 500_000;

pub(super) fn check(scopes: &Scopes<'_>, used: &[Used], report: &mut Report) {
    let mut index: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for site in scopes.sites() {
        for (_, node) in site.nodes() {
            index.entry(node.id.as_str()).or_default().push(site.number);
        }
    }
    let mut outputs = Outputs { index, steps: STEPS, report };
    for site in scopes.sites() {
        for (number, edge) in site.graph().edges.iter().enumerate() {
            let Some(id) = edge.when.as_ref().and_then(output_of) else { continue };
            let place = || site.place().part(format!("edges[{number}]"));
            let from = edge.from.first().and_then(|from| site.layout().find(from));
            outputs.look(site, (id, place()), from.map(After::With), Code::CONDITION_NODE_MISSING);
            if let Some(from) = from {
                outputs.too_early(site, (id, place()), After::With(from));
            }
        }
        if let Some((outer, number)) = owner(site)
            && let Kind::Loop { until: Some(until), .. } = &outer.node(number).kind
            && let Some(id) = output_of(until)
        {
            let place = outer.at(&outer.node(number).id).part("until");
            outputs.look(site, (id, place), None, Code::CONDITION_NODE_MISSING);
        }
        for (number, used) in &used[site.number] {
            let place = || site.at(&site.node(*number).id).part("action");
            let mut seen: BTreeMap<&str, bool> = BTreeMap::new();
            for used in used.iter() {
                let UseKind::Output { is_needed } = used.kind else { continue };
                *seen.entry(used.name.as_str()).or_default() |= is_needed;
            }
            for (id, is_needed) in seen {
                let id = NodeId::from(id);
                let after = After::Before(*number);
                outputs.look(site, (&id, place()), Some(after), Code::TEXT_NODE_MISSING);
                if is_needed {
                    outputs.too_early(site, (&id, place()), after);
                }
            }
        }
    }
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

/// The graph around a graph, and the node there that it is in.
fn owner<'a, 'g>(site: Site<'a, 'g>) -> Option<(Site<'a, 'g>, u32)> {
    let Owner { node, .. } = site.scope().owner?;
    Some((site.outwards().nth(1)?, node))
}

/// Whether the outputs of the nodes of a graph are seen behind the node it is in.
fn is_seen_behind(site: Site<'_, '_>) -> bool {
    owner(site).is_some_and(|(outer, node)| match &outer.node(node).kind {
        Kind::Loop { .. } | Kind::Parallel(_) => true,
        Kind::Subgraph { isolated, output, .. } => !isolated && output.is_none(),
        Kind::Work { .. } | Kind::Decision | Kind::Each(_) | Kind::Script(_) => false,
    })
}

/// This graph and those around it whose outputs it sees, each with the node this one is in.
fn seen_from<'a, 'g>(
    site: Site<'a, 'g>,
    at: Option<After>,
) -> impl Iterator<Item = (Site<'a, 'g>, Option<After>)> {
    std::iter::successors(Some((site, at)), |(site, _)| {
        let (outer, node) = owner(*site)?;
        let is_apart = matches!(outer.node(node).kind, Kind::Subgraph { input: Some(_), .. });
        (!is_apart).then_some((outer, Some(After::Before(node))))
    })
}

/// When an output is looked at.
#[derive(Clone, Copy)]
enum After {
    /// When the node begins.
    Before(u32),
    /// When the node has returned.
    With(u32),
}

/// The nodes with an id that are inside a node, by the branches they are in.
type Inside<'g> = BTreeMap<u32, BTreeSet<Option<&'g NodeId>>>;

struct Outputs<'a, 'g> {
    /// The graphs that have a node of an id.
    index: BTreeMap<&'g str, Vec<usize>>,
    steps: usize,
    report: &'a mut Report,
}

impl<'g> Outputs<'_, 'g> {
    /// Looks at one reference to the output of a node; `missing` is what it means if there is none.
    fn look(
        &mut self,
        site: Site<'_, 'g>,
        (id, place): (&NodeId, Place),
        after: Option<After>,
        missing: Code,
    ) {
        for (seen, after) in seen_from(site, after) {
            let inside = self.inside(seen, id);
            let own = seen.layout().find(id);
            if own.is_none() && inside.is_empty() {
                continue;
            }
            if let Some(after) = after
                && let Some(message) = self.hidden(seen, (id, own), &inside, after)
            {
                let remedy = "rename one of the two, and say which one is meant";
                self.report.add(site, Problem::new(Code::OUTPUT_HIDDEN, place, message, remedy));
            }
            return;
        }
        self.unknown(site, id, place, missing);
    }

    /// Reports an output that is looked at before its node has run: always, or at least the first time
    /// that a text is filled with it, which fails then.
    fn too_early(&mut self, site: Site<'_, 'g>, (id, place): (&NodeId, Place), after: After) {
        let (After::With(at) | After::Before(at)) = after;
        let Some(own) = site.layout().find(id) else { return };
        let is_text = matches!(after, After::Before(_));
        // What has the same id around it, or in a node of this graph, may have returned something.
        let is_elsewhere = !self.inside(site, id).is_empty()
            || seen_from(site, None).skip(1).any(|(outer, around)| {
                let Some(After::Before(around) | After::With(around)) = around else { return true };
                let beside = |node: &u32| *node != around;
                outer.layout().find(id).is_some() || self.inside(outer, id).keys().any(beside)
            });
        let is_own = own == at;
        let may_be_own = is_own && !is_text && !matches!(site.node(at).kind, Kind::Decision);
        if is_elsewhere || may_be_own || !is_own && !self.follows_only(site, at, own) {
            return;
        }
        if !is_text && self.runs_again(site, at) {
            return;
        }
        let node = &site.node(at).id;
        let (code, message, remedy) = match is_text {
            true => (
                Code::TEXT_NODE_MISSING,
                format!(
                    "the text is filled with the output of \"{id}\", which has not run when \"{node}\" begins"
                ),
                format!("write {{outputs.{id}?}} if it may be missing, or let \"{id}\" run before"),
            ),
            false => (
                Code::CONDITION_NODE_MISSING,
                format!(
                    "the condition looks at the output of \"{id}\", which has not run when \"{node}\" ends"
                ),
                format!("name a node that runs before, or let \"{id}\" run before"),
            ),
        };
        self.report.add(site, Problem::new(code, place, message, remedy));
    }

    /// Whether `node` runs only behind `before`. One that nothing leads to is told of elsewhere.
    fn follows_only(&mut self, site: Site<'_, 'g>, before: u32, node: u32) -> bool {
        let reached = joins::reached_without(site, before, self.report);
        reached.is_some_and(|reached| !reached[node as usize])
            && self.leads(site, After::With(before), node, u32::MAX)
    }

    /// Whether a node may run again when nodes of its graph have run behind it.
    fn runs_again(&mut self, site: Site<'_, 'g>, node: u32) -> bool {
        let (mut site, mut node) = (site, node);
        loop {
            if matches!(site.node(node).kind, Kind::Loop { .. })
                || self.leads(site, After::With(node), node, u32::MAX)
            {
                return true;
            }
            match owner(site).filter(|_| is_seen_behind(site)) {
                Some((outer, around)) => (site, node) = (outer, around),
                None => return false,
            }
        }
    }

    /// The nodes of a graph inside which there is one of this id whose output is seen behind them.
    fn inside(&self, seen: Site<'_, 'g>, id: &NodeId) -> Inside<'g> {
        let mut inside = Inside::new();
        for number in self.index.get(id.as_str()).into_iter().flatten() {
            let mut site = seen.other(*number);
            while is_seen_behind(site)
                && let Some((outer, node)) = owner(site)
            {
                if outer.number == seen.number {
                    let branch = site.scope().owner.and_then(|owner| owner.branch);
                    inside.entry(node).or_default().insert(branch);
                    break;
                }
                site = outer;
            }
        }
        inside
    }

    /// What is wrong when an id is looked up at this point and means another node than it seems.
    fn hidden(
        &mut self,
        seen: Site<'_, 'g>,
        (id, own): (&NodeId, Option<u32>),
        inside: &Inside<'g>,
        after: After,
    ) -> Option<String> {
        for (around, branches) in inside {
            let node = seen.node(*around);
            let name = &node.id;
            match own {
                // Its own output comes last.
                Some(own) if own == *around => {}
                // A loop does the same once more, and the newest is wanted.
                Some(_) if matches!(node.kind, Kind::Loop { .. }) => {}
                Some(own) => {
                    let comes_after = self.leads(seen, After::With(own), *around, own);
                    if comes_after && self.is_behind(seen, *around, after, own) {
                        return Some(format!(
                            "behind \"{name}\" the output of \"{id}\" is that of the node inside \
                             it, not that of this graph's own"
                        ));
                    }
                }
                None => {
                    let all =
                        matches!(&node.kind, Kind::Parallel(p) if p.strategy == Strategy::All);
                    if all && branches.len() > 1 && self.is_behind(seen, *around, after, u32::MAX) {
                        return Some(format!(
                            "{} branches of \"{name}\" have a node \"{id}\", and only the last \
                             one's output is seen behind it",
                            branches.len()
                        ));
                    }
                }
            }
        }
        None
    }

    /// Whether it is looked at after `node`, and `but` does not run in between.
    fn is_behind(&mut self, seen: Site<'_, 'g>, node: u32, after: After, but: u32) -> bool {
        match after {
            After::With(at) => {
                at == node || at != but && self.leads(seen, After::With(node), at, but)
            }
            After::Before(at) => self.leads(seen, After::With(node), at, but),
        }
    }

    /// Whether a way leads from one node to another without coming by a third before.
    fn leads(&mut self, seen: Site<'_, 'g>, from: After, to: u32, but: u32) -> bool {
        let (After::With(from) | After::Before(from)) = from;
        let layout = seen.layout();
        let mut known = BTreeSet::new();
        let mut waiting = vec![from];
        while let Some(number) = waiting.pop() {
            let node = seen.node(number);
            let on_error = match &node.on_error {
                OnError::Goto(target) => Some(target),
                OnError::Abort | OnError::Skip | OnError::SkipWith(_) | OnError::Call(_) => None,
            };
            let jumps = node.targets.iter().chain(on_error).filter_map(|id| layout.find(id));
            for next in layout.leaving(number).filter_map(|(_, wire)| wire.to).chain(jumps) {
                let Some(left) = self.steps.checked_sub(1) else { return false };
                self.steps = left;
                if next == to {
                    return true;
                }
                if next != but && known.insert(next) {
                    waiting.push(next);
                }
            }
        }
        false
    }

    fn unknown(&mut self, site: Site<'_, 'g>, id: &NodeId, place: Place, code: Code) {
        let names = site.graph().nodes.iter().map(|node| node.id.as_str());
        let remedy = match self.report.guess(id.as_str(), names) {
            Some(meant) => format!("did you mean \"{meant}\"?"),
            None => "name a node of this graph or of one around it".to_owned(),
        };
        let why = if self.index.contains_key(id.as_str()) {
            "is not seen here"
        } else {
            "does not exist"
        };
        let who = if code == Code::TEXT_NODE_MISSING {
            "the text is filled with"
        } else {
            "the condition looks at"
        };
        let message = format!("{who} the output of \"{id}\", which {why}");
        self.report.add(site, Problem::new(code, place, message, remedy));
    }
}
