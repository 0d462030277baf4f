//! Nodes that go round.
//!
//! A node never comes to an end when, whatever is decided, something that never comes to an end
//! follows it. That is the largest set of nodes in which each has an edge without a condition to
//! another, or conditions of which one must hold and all lead to others, and in which no goto, no
//! rule for failures and no limit leads out.

use super::scope::Site;
use super::{Code, Known, Problem, Report};
use crate::{Condition, Count, NodeId, OnError};

/// The key under which a run keeps its limit.
const LIMIT: &str = "maxIterations";

pub(super) fn check(site: Site<'_, '_>, reached: &[bool], known: &Known, report: &mut Report) {
    let limit = site.graph().max_iterations.as_ref();
    // A limit that the author has not written ends such a run, but does not make it one that was meant.
    // Two nodes of the same id, which is an error of its own, look like a way round.
    let is_written =
        limit.is_some_and(|limit| !is_default(site, limit, known) || site.layout().has_twins());
    if is_written || site.scope().bounded {
        return;
    }
    let mut reported = vec![false; reached.len()];
    if !site.scope().can_be_left {
        let endless = endless(site);
        let stays = |from: u32, to: u32| {
            [from, to].iter().all(|n| endless[*n as usize] && reached[*n as usize])
        };
        let ways = Ways::of(reached.len(), &edges(site), stays);
        for round in ways.rounds() {
            let message = format!(
                "{} goes round for ever, whatever is decided",
                shown(site, &round.shortest)
            );
            let remedy = "let a condition decide whether it goes round (an edge without one is \
                          always taken, also beside one whose condition holds), or set `max_iterations` of the \
                          graph, `max_visits` of a node, or `max_steps` of the outermost graph";
            add(site, report, Code::CYCLE_WITHOUT_END, &round, (message, remedy));
            round.nodes.iter().for_each(|node| reported[*node as usize] = true);
        }
    }
    if limit.is_some() {
        return;
    }
    let mut all = edges(site);
    all.extend(jumps(site));
    let unlimited = |n: u32| reached[n as usize] && site.node(n).max_visits.is_none();
    let ways = Ways::of(reached.len(), &all, |from, to| unlimited(from) && unlimited(to));
    for round in ways.rounds() {
        if round.nodes.iter().any(|node| reported[*node as usize]) {
            continue;
        }
        let message = format!("{} may go round without a limit", shown(site, &round.shortest));
        let remedy = "set `max_iterations` of the graph, `max_visits` of a node, or `max_steps` of \
                      the outermost graph";
        add(site, report, Code::CYCLE_WITHOUT_LIMIT, &round, (message, remedy));
    }
}

/// Whether a limit is the one that holds when the author says nothing.
fn is_default(site: Site<'_, '_>, limit: &Count, known: &Known) -> bool {
    let is_unwritten = |path: &[NodeId]| known.default_limits.contains(path);
    match limit {
        // In the outermost graph only a limit that is looked up is not written.
        Count::Fixed(_) => site.scope().owner.is_some() && is_unwritten(&site.place().path),
        Count::Key(key) => key.as_str() == LIMIT && is_unwritten(&[]),
    }
}

fn add(
    site: Site<'_, '_>,
    report: &mut Report,
    code: Code,
    round: &Round,
    (message, remedy): (String, &str),
) {
    if let Some(first) = round.nodes.first() {
        let place = site.at(&site.node(*first).id);
        report.add(site, Problem::new(code, place, message, remedy));
    }
}

/// The way round, without most of a long one.
fn shown(site: Site<'_, '_>, round: &[u32]) -> String {
    const SHOWN: usize = 6;
    let mut names: Vec<_> =
        round.iter().take(SHOWN).map(|node| site.node(*node).id.as_str()).collect();
    if round.len() > SHOWN {
        names.push("…");
    }
    names.extend(names.first().copied());
    names.join(" → ")
}

/// Where edges lead.
fn edges(site: Site<'_, '_>) -> Vec<(u32, u32)> {
    let wires = site.layout().wires.iter();
    wires.flat_map(|wire| wire.from.iter().filter_map(|from| Some((*from, wire.to?)))).collect()
}

/// Where a node may lead besides. A failure that is caught is left out: what catches it usually
/// cleans up, and that would fail for good.
fn jumps(site: Site<'_, '_>) -> Vec<(u32, u32)> {
    let mut jumps = vec![];
    for (number, node) in site.nodes() {
        let on_error = match &node.on_error {
            OnError::Goto(target) => Some(target),
            OnError::Abort | OnError::Skip | OnError::SkipWith(_) | OnError::Call(_) => None,
        };
        let targets = node.targets.iter().chain(on_error);
        jumps.extend(targets.filter_map(|id| Some((number, site.layout().find(id)?))));
    }
    jumps
}

/// What ties a node to one that follows it.
#[derive(Clone, Copy)]
enum Tie {
    /// An edge that is always taken: one of these is enough.
    Edge,
    /// An edge that may be chosen: all of these are needed.
    Choice,
    /// Where it goes when it has failed.
    Failure,
}

/// The nodes that never come to an end.
fn endless(site: Site<'_, '_>) -> Vec<bool> {
    let layout = site.layout();
    let count = site.graph().nodes.len();
    let mut followed_by: Vec<Vec<(u32, Tie)>> = vec![vec![]; count];
    let mut edges = vec![0u32; count];
    let mut choices = vec![false; count];
    let mut alive = vec![true; count];
    for (number, node) in site.nodes() {
        let n = number as usize;
        for to in layout.plain(number).filter_map(|wire| wire.to) {
            edges[n] += 1;
            followed_by[to as usize].push((number, Tie::Edge));
        }
        let mut conditions = layout.choices(number);
        // One must hold only if there is an `otherwise`; what is behind it does not count.
        choices[n] = loop {
            let Some(wire) = conditions.next() else { break false };
            let Some(to) = wire.to else { break false };
            followed_by[to as usize].push((number, Tie::Choice));
            if wire.when == Some(&Condition::Otherwise) {
                break true;
            }
        };
        let can_leave = match &node.on_error {
            // What a function may go to is declared in the targets.
            OnError::Abort | OnError::Skip | OnError::SkipWith(_) | OnError::Call(_) => false,
            OnError::Goto(target) => match layout.find(target) {
                Some(to) => {
                    followed_by[to as usize].push((number, Tie::Failure));
                    false
                }
                None => true,
            },
        };
        let has_end = edges[n] == 0 && !choices[n];
        alive[n] = !(has_end || can_leave || !node.targets.is_empty() || node.max_visits.is_some());
    }
    let mut ending: Vec<usize> = (0..count).filter(|n| !alive[*n]).collect();
    while let Some(ended) = ending.pop() {
        for (before, tie) in std::mem::take(&mut followed_by[ended]) {
            let n = before as usize;
            match tie {
                Tie::Edge => edges[n] -= 1,
                Tie::Choice => choices[n] = false,
                Tie::Failure => {}
            }
            let has_end = matches!(tie, Tie::Failure) || edges[n] == 0 && !choices[n];
            if alive[n] && has_end {
                alive[n] = false;
                ending.push(n);
            }
        }
    }
    alive
}

/// What leads where, with the targets of each node side by side.
struct Ways {
    first: Vec<usize>,
    to: Vec<u32>,
}

/// Nodes that lead to each other.
struct Round {
    /// In order of definition.
    nodes: Vec<u32>,
    /// The shortest way from the first of them back to it.
    shortest: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Ways {
    fn of(count: usize, pairs: &[(u32, u32)], wanted: impl Fn(u32, u32) -> bool) -> Self {
        let pairs = || pairs.iter().filter(|(from, to)| wanted(*from, *to));
        let mut first = vec![0; count + 1];
        for (from, _) in pairs() {
            first[*from as usize + 1] += 1;
        }
        for n in 0..count {
            first[n + 1] += first[n];
        }
        let mut next = first.clone();
        let mut to = vec![0; first[count]];
        for (from, target) in pairs() {
            to[next[*from as usize]] = *target;
            next[*from as usize] += 1;
        }
        Self { first, to }
    }

    fn after(&self, node: u32) -> &[u32] {
        &self.to[self.first[node as usize]..self.first[node as usize + 1]]
    }

    /// The groups of nodes that lead to each other, in order of definition.
    fn rounds(&self) -> Vec<Round> {
        let group = self.groups();
        let mut members: Vec<Vec<u32>> = vec![vec![]; group.len()];
        for (node, group) in (0u32..).zip(&group) {
            members[*group as usize].push(node);
        }
        members.retain(|nodes| match nodes.as_slice() {
            [] => false,
            [node] => self.after(*node).contains(node),
            [..] => true,
        });
        members.sort_unstable();
        let mut before = vec![NONE; group.len()];
        let round = |nodes: Vec<u32>| {
            let shortest = self.shortest(nodes[0], &group, &mut before);
            Round { nodes, shortest }
        };
        members.into_iter().map(round).collect()
    }

    /// The shortest way from a node back to it, inside its group.
    fn shortest(&self, start: u32, group: &[u32], before: &mut [u32]) -> Vec<u32> {
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for next in self.after(node) {
                let known = before[*next as usize] != NONE;
                if known || group[*next as usize] != group[start as usize] {
                    continue;
                }
                before[*next as usize] = node;
                queue.push_back(*next);
                if *next == start {
                    queue.clear();
                    break;
                }
            }
        }
        let mut way = vec![start];
        let mut node = before[start as usize];
        while node != start && node != NONE {
            way.push(node);
            node = before[node as usize];
        }
        way[1..].reverse();
        way
    }

    /// Tarjan's strongly connected components, with a stack of its own: the group of each node.
    fn groups(&self) -> Vec<u32> {
        let count = self.first.len() - 1;
        let mut group = vec![NONE; count];
        let mut seen = vec![NONE; count];
        let mut low = vec![NONE; count];
        let (mut next_seen, mut next_group) = (0u32, 0u32);
        let mut open: Vec<u32> = vec![];
        for root in (0u32..).take(count) {
            if seen[root as usize] != NONE {
                continue;
            }
            let mut path = vec![(root, 0usize)];
            while let Some((node, way)) = path.last_mut() {
                let n = *node as usize;
                if *way == 0 {
                    seen[n] = next_seen;
                    low[n] = next_seen;
                    next_seen += 1;
                    open.push(*node);
                }
                if let Some(to) = self.after(*node).get(*way) {
                    *way += 1;
                    let t = *to as usize;
                    if seen[t] == NONE {
                        path.push((*to, 0));
                    } else if group[t] == NONE {
                        low[n] = low[n].min(seen[t]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    let p = *parent as usize;
                    low[p] = low[p].min(low[n]);
                }
                if low[n] == seen[n] {
                    while let Some(member) = open.pop() {
                        group[member as usize] = next_group;
                        if member as usize == n {
                            break;
                        }
                    }
                    next_group += 1;
                }
            }
        }
        group
    }
}
