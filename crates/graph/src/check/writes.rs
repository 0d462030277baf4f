//! Values that are replaced from two sides at once, so that one of them would be lost.
//!
//! What an action writes is known only where it is literal, and whether a node runs at all often
//! depends on a choice. So there is an error only where two writes are certain, and a warning
//! where they are possible.

use std::collections::{BTreeMap, BTreeSet};

use super::lanes::{self, Lane};
use super::limits::OUTPUTS;
use super::reach::certain;
use super::scope::{Scopes, Site};
use super::used::Used;
use super::{Code, Place, Problem, Report, UseKind};
use crate::{Count, Each, Kind, Node, NodeId, OnError, Parallel, Strategy};

/// How many nodes are looked at in all to find out what runs at once: in a graph where far more ways
/// than that lead past each other, the rest is not looked for.
const LOOKED_AT: usize = 500_000;

/// The keys something writes, and whether it does so whenever it succeeds.
type Keys<'a> = BTreeMap<&'a str, bool>;

/// What the graphs inside the nodes of a graph write, by node.
type Inside<'a> = BTreeMap<u32, Vec<(Option<&'a NodeId>, Keys<'a>)>>;

pub(super) fn check<'a>(scopes: &'a Scopes<'_>, used: &'a [Used], report: &mut Report) {
    let mut budget = LOOKED_AT;
    let mut inside: Vec<Inside<'a>> = used.iter().map(|_| Inside::new()).collect();
    // The ones inside come after the ones around them.
    for site in scopes.sites().rev() {
        let inner = std::mem::take(&mut inside[site.number]);
        let by_node = by_node(site, &used[site.number], inner, report);
        siblings(site, &by_node, &mut budget, report);
        if let Some(owner) = site.scope().owner {
            let keys = all(site, by_node);
            inside[owner.scope].entry(owner.node).or_default().push((owner.branch, keys));
        }
    }
}

/// What each node writes to the state of its graph.
fn by_node<'a>(
    site: Site<'a, '_>,
    used: &'a Used,
    mut inside: Inside<'a>,
    report: &mut Report,
) -> BTreeMap<u32, Keys<'a>> {
    let mut by_node = BTreeMap::new();
    for (number, node) in site.nodes() {
        let mut inner = inside.remove(&number).unwrap_or_default();
        inner.reverse();
        let mut keys = match &node.kind {
            Kind::Work { .. } => {
                let uses = used.get(&number).into_iter().flatten();
                let writes = uses.filter_map(|used| match used.kind {
                    UseKind::Writes => Some((used.name.as_str(), true)),
                    UseKind::MayWrite => Some((used.name.as_str(), false)),
                    UseKind::Agent
                    | UseKind::Skill
                    | UseKind::Command
                    | UseKind::Workflow
                    | UseKind::Model
                    | UseKind::Function
                    | UseKind::TextFunction
                    | UseKind::Provides
                    | UseKind::Template { .. }
                    | UseKind::Output { .. }
                    | UseKind::UnsafeTemplate { .. } => None,
                });
                writes.collect()
            }
            Kind::Decision => Keys::new(),
            // What a function makes of it is not known.
            Kind::Subgraph { isolated: true, .. } | Kind::Subgraph { output: Some(_), .. } => {
                Keys::new()
            }
            // What is changed inside a call stays there, and what the script changes is not known.
            Kind::Script(_) => Keys::new(),
            Kind::Subgraph { .. } | Kind::Loop { .. } => union(inner),
            Kind::Each(each) => items(site, node, each, union(inner), report),
            Kind::Parallel(parallel) => branches(site, node, parallel, inner, report),
        };
        keys.remove(OUTPUTS);
        if let OnError::SkipWith(patch) = &node.on_error {
            for key in patch.keys() {
                keys.entry(key.as_str()).or_insert(false);
            }
        }
        if !keys.is_empty() {
            by_node.insert(number, keys);
        }
    }
    by_node
}

fn items<'a>(
    site: Site<'a, '_>,
    node: &'a Node,
    each: &Each,
    mut keys: Keys<'a>,
    report: &mut Report,
) -> Keys<'a> {
    // Every item has its own.
    keys.remove(each.item.as_str());
    let at_once = each.workers != Count::Fixed(1);
    for (key, certain) in keys.iter().filter(|(key, _)| at_once && site.replaces(key)) {
        let message = match certain {
            true => format!("every item replaces `{key}`, so that only one item's value is kept"),
            false => format!("several items may replace `{key}`; only one value would be kept"),
        };
        let code = if *certain { Code::ITEM_WRITES } else { Code::POSSIBLE_WRITES };
        report.add(site, Problem::new(code, site.at(&node.id), message, remedy(key)));
    }
    // The list may be empty.
    keys.values_mut().for_each(|certain| *certain = false);
    keys
}

fn branches<'a>(
    site: Site<'a, '_>,
    node: &'a Node,
    parallel: &Parallel,
    inner: Vec<(Option<&'a NodeId>, Keys<'a>)>,
    report: &mut Report,
) -> Keys<'a> {
    if parallel.strategy != Strategy::All {
        // Only one branch's changes are kept.
        let mut keys = union(inner);
        keys.values_mut().for_each(|certain| *certain = false);
        return keys;
    }
    let mut writers = Writers::new();
    for (lane, (branch, keys)) in inner.iter().enumerate() {
        let name = branch.map_or("", NodeId::as_str);
        for (key, certain) in keys {
            let writer = Writer { name, lane, runs: true, certain: *certain };
            writers.entry(key).or_default().push(writer);
        }
    }
    let place = || site.at(&node.id).part("branches");
    for conflict in conflicts(site, writers) {
        report.add(site, conflict.problem("the branches", Code::BRANCH_WRITES, place()));
    }
    union(inner)
}

/// Nodes that run in the same superstep.
fn siblings<'a>(
    site: Site<'a, '_>,
    by_node: &BTreeMap<u32, Keys<'a>>,
    budget: &mut usize,
    report: &mut Report,
) {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    by_node.values().flat_map(Keys::keys).for_each(|key| *times.entry(key).or_default() += 1);
    if times.values().all(|times| *times < 2) {
        return;
    }
    let mut reported = BTreeSet::new();
    for (fork, _) in site.nodes() {
        lanes::behind(site, fork, budget, |lanes| {
            for conflict in conflicts(site, by_lane(site, by_node, lanes)) {
                let names: Vec<&str> = conflict.writers.iter().map(|writer| writer.name).collect();
                let Some(last) = names.last().map(|name| NodeId::from(*name)) else { continue };
                if reported.insert((conflict.key, names)) {
                    let problem = conflict.problem("the nodes", Code::STEP_WRITES, site.at(&last));
                    report.add(site, problem);
                }
            }
        });
    }
}

/// Who writes what in the lanes, in order of definition.
fn by_lane<'a>(
    site: Site<'a, '_>,
    by_node: &BTreeMap<u32, Keys<'a>>,
    lanes: &[Lane],
) -> Writers<'a> {
    let nodes = lanes
        .iter()
        .enumerate()
        .flat_map(|(number, lane)| lane.iter().map(move |(node, runs)| (*node, (number, *runs))));
    let nodes: BTreeMap<u32, (usize, bool)> = nodes.collect();
    let mut writers = Writers::new();
    for (node, (lane, runs)) in nodes {
        for (key, certain) in by_node.get(&node).into_iter().flatten() {
            let name = site.node(node).id.as_str();
            writers.entry(key).or_default().push(Writer { name, lane, runs, certain: *certain });
        }
    }
    writers
}

/// Everything a graph writes.
fn all<'a>(site: Site<'a, '_>, by_node: BTreeMap<u32, Keys<'a>>) -> Keys<'a> {
    if by_node.is_empty() {
        return Keys::new();
    }
    let runs = certain(site);
    let keys = by_node.into_iter().map(|(node, mut keys)| {
        if !runs[node as usize] {
            keys.values_mut().for_each(|certain| *certain = false);
        }
        (None, keys)
    });
    union(keys)
}

/// The keys of all; certain where they are so in one of them.
fn union<'a>(all: impl IntoIterator<Item = (Option<&'a NodeId>, Keys<'a>)>) -> Keys<'a> {
    let mut union = Keys::new();
    for (_, mut keys) in all {
        // Into the larger one, so that a deep nest is not copied at every level.
        if keys.len() > union.len() {
            std::mem::swap(&mut keys, &mut union);
        }
        for (key, certain) in keys {
            *union.entry(key).or_default() |= certain;
        }
    }
    union
}

/// Who writes each key.
type Writers<'a> = BTreeMap<&'a str, Vec<Writer<'a>>>;

/// Something that writes a key.
struct Writer<'a> {
    name: &'a str,
    /// What is in the same one does not run at once, or is looked at elsewhere.
    lane: usize,
    /// Whether it runs for certain.
    runs: bool,
    /// Whether it writes the key whenever it succeeds.
    certain: bool,
}

/// A key that several write at once and that keeps only one value.
struct Conflict<'a> {
    key: &'a str,
    writers: Vec<Writer<'a>>,
}

fn conflicts<'a>(site: Site<'a, '_>, writers: Writers<'a>) -> impl Iterator<Item = Conflict<'a>> {
    let several = writers.into_iter().filter(|(_, writers)| {
        writers.first().is_some_and(|first| writers.iter().any(|other| other.lane != first.lane))
    });
    let lost = several.filter(move |(key, _)| site.replaces(key));
    lost.map(|(key, writers)| Conflict { key, writers })
}

impl Conflict<'_> {
    fn problem(&self, who: &str, certain: Code, place: Place) -> Problem {
        const SHOWN: usize = 4;
        let mut names: Vec<String> =
            self.writers.iter().take(SHOWN).map(|writer| format!("\"{}\"", writer.name)).collect();
        if self.writers.len() > SHOWN {
            names.push(format!("{} more", self.writers.len() - SHOWN));
        }
        let last = names.pop().unwrap_or_default();
        let who = format!("{who} {} and {last}", names.join(", "));
        let key = self.key;
        let is_certain = self.writers.iter().filter(|w| w.runs && w.certain).count() > 1;
        let run =
            if self.writers.iter().filter(|w| w.runs).count() > 1 { "run" } else { "may run" };
        let (code, message) = if is_certain {
            (certain, format!("{who} run at once and replace `{key}`; one value would be lost"))
        } else {
            let message = format!("{who} {run} at once and may replace `{key}`");
            (Code::POSSIBLE_WRITES, format!("{message}; one value would be lost"))
        };
        Problem::new(code, place, message, remedy(key))
    }
}

fn remedy(key: &str) -> String {
    format!(
        "give `{key}` a reducer that combines values, such as `concat`, `merge` or `sum`, or \
         write to different keys"
    )
}
