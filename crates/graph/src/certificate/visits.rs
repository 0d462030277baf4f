//! Bounds on one run of a graph that are cheap for graphs of any size. Never below the truth,
//! but they do not know which visits exclude each other.

use std::collections::BTreeMap;

use super::Bound;
use super::components::{components, is_cyclic};
use super::flow::{Flow, Join};

/// How often and when the nodes of one graph are visited while it is run once.
pub(super) struct Visits {
    /// Visits that start something, per node.
    pub(super) most: Vec<Bound>,
    /// Whether no node can be reached from itself.
    pub(super) acyclic: bool,
    /// The nodes, each before everything it leads to; without meaning where there are cycles.
    order: Vec<u32>,
    /// The first and the last superstep in which a node can be active.
    spans: Vec<Option<Span>>,
}

#[derive(Clone, Copy)]
struct Span {
    first: u64,
    last: Bound,
}

impl Span {
    fn length(self) -> Bound {
        match self.last {
            Bound::AtMost(last) => Bound::AtMost((last - self.first).saturating_add(1)),
            Bound::Unbounded => Bound::Unbounded,
        }
    }

    fn hull(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// The visits that nodes are allowed.
pub(super) struct Limits {
    /// Each node; what one visit more means is for the node to say.
    pub(super) own: Vec<Bound>,
    /// All of them; one visit more ends the graph.
    pub(super) per_run: Bound,
}

/// Computes them.
pub(super) fn visits(flow: &Flow, limits: &Limits) -> Visits {
    let follows = flow.follows();
    let mut count = Counting::of(flow, limits, &follows);
    let mut all = components(&follows);
    all.reverse();
    let mut acyclic = true;
    for component in &all {
        let reached = component.iter().any(|node| count.is_reached(*node));
        if !reached {
            continue;
        }
        if is_cyclic(component, &follows) {
            acyclic = false;
            count.cycle(component);
        } else {
            component.iter().for_each(|node| count.node(*node, false));
        }
    }
    let order = all.into_iter().flatten().collect();
    Visits { most: count.real, acyclic, order, spans: count.spans }
}

struct Counting<'f> {
    flow: &'f Flow,
    limits: &'f Limits,
    follows: &'f [Vec<u32>],
    before: Vec<Vec<u32>>,
    joins_to: Vec<Vec<&'f Join>>,
    /// Visits that start something.
    real: Vec<Bound>,
    /// How often control goes on from there, also after a refused visit.
    passed: Vec<Bound>,
    spans: Vec<Option<Span>>,
}

impl<'f> Counting<'f> {
    fn of(flow: &'f Flow, limits: &'f Limits, follows: &'f [Vec<u32>]) -> Self {
        let mut before: Vec<Vec<u32>> = vec![vec![]; follows.len()];
        for (node, number) in flow.ways.iter().zip(0u32..) {
            node.straight().iter().for_each(|to| before[*to as usize].push(number));
        }
        Self {
            flow,
            limits,
            follows,
            before,
            joins_to: flow.joins_to(),
            real: vec![Bound::ZERO; follows.len()],
            passed: vec![Bound::ZERO; follows.len()],
            spans: vec![None; follows.len()],
        }
    }

    fn is_reached(&self, node: u32) -> bool {
        self.arrivals(node) > Bound::ZERO
    }

    /// How often control comes to `node`.
    fn arrivals(&self, node: u32) -> Bound {
        let started = if self.flow.start == Some(node) { Bound::ONE } else { Bound::ZERO };
        let before = self.before[node as usize].iter().map(|from| self.passed[*from as usize]);
        let joined = self.joins_to[node as usize].iter().map(|join| {
            let passed = join.from.iter().map(|from| self.passed[*from as usize]);
            passed.min().unwrap_or(Bound::ZERO)
        });
        started.plus(before.chain(joined).sum())
    }

    /// Counts a node after everything that leads to it.
    fn node(&mut self, node: u32, in_cycle: bool) {
        let place = node as usize;
        let span = if in_cycle {
            Some(Span { first: 0, last: Bound::Unbounded })
        } else {
            self.span(node)
        };
        let length = span.map_or(Bound::ZERO, Span::length);
        let arrivals = self.arrivals(node).min(length).min(self.limits.per_run);
        self.spans[place] = span.filter(|_| arrivals > Bound::ZERO);
        self.real[place] = arrivals.min(self.limits.own[place]);
        self.passed[place] = if self.flow.refusal_ends(node) { self.real[place] } else { arrivals };
    }

    fn span(&self, node: u32) -> Option<Span> {
        let started =
            (self.flow.start == Some(node)).then_some(Span { first: 0, last: Bound::ZERO });
        let joined = self.joins_to[node as usize].iter().flat_map(|join| join.from.iter());
        let after = self.before[node as usize].iter().chain(joined);
        let after = after.filter_map(|from| self.spans[*from as usize]);
        let after = after.map(|span| Span {
            first: span.first.saturating_add(1),
            last: span.last.plus(Bound::ONE),
        });
        started.into_iter().chain(after).reduce(Span::hull)
    }

    /// The most that control can go on from a node, wherever it is.
    fn most_passed(&self, node: u32) -> Bound {
        let own = self.limits.own[node as usize];
        let own = if self.flow.refusal_ends(node) { own } else { Bound::Unbounded };
        own.min(self.limits.per_run)
    }

    /// Counts the nodes of a cycle. Those with a limit whose refusal ends the graph break it;
    /// what is on a cycle without such a node has no limit but its own.
    fn cycle(&mut self, component: &[u32]) {
        let breaks = |node: u32| self.most_passed(node) < Bound::Unbounded;
        let place: BTreeMap<u32, u32> = component.iter().copied().zip(0u32..).collect();
        let onward: Vec<Vec<u32>> = component
            .iter()
            .map(|node| {
                let to = self.follows[*node as usize].iter();
                to.filter(|_| !breaks(*node)).filter_map(|to| place.get(to).copied()).collect()
            })
            .collect();
        for node in component {
            let most = self.most_passed(*node);
            self.passed[*node as usize] = if most < Bound::Unbounded { most } else { Bound::ZERO };
        }
        let mut parts = components(&onward);
        parts.reverse();
        for part in parts {
            if is_cyclic(&part, &onward) {
                for node in &part {
                    self.passed[component[*node as usize] as usize] = Bound::Unbounded;
                }
            }
            part.iter().for_each(|node| self.node(component[*node as usize], true));
        }
    }
}

impl Visits {
    /// The most that one run of the graph can cost: every node as often as it can be visited.
    pub(super) fn sum(&self, costs: &[Bound]) -> Bound {
        self.most.iter().zip(costs).map(|(most, cost)| most.times(*cost)).sum()
    }

    /// The same where there are no cycles: from every node the dearest way on, as if no two
    /// ways ever met. Exact where never more than one node is active.
    pub(super) fn dearest(&self, flow: &Flow, costs: &[Bound]) -> Bound {
        if !self.acyclic {
            return Bound::Unbounded;
        }
        let mut worth = vec![Bound::ZERO; costs.len()];
        for node in self.order.iter().rev() {
            let after = flow.best(*node, &|to| worth[to as usize]);
            worth[*node as usize] = after.plus(costs[*node as usize]);
        }
        flow.start.map_or(Bound::ZERO, |start| worth[start as usize])
    }

    /// The most that can be at work at once, when each node by itself can have `peaks`.
    pub(super) fn peak(&self, flow: &Flow, peaks: &[Bound]) -> Bound {
        let reached = self.spans.iter().zip(peaks).zip(&self.most);
        let reached =
            reached.filter(|((_, peak), most)| **peak > Bound::ZERO && **most > Bound::ZERO);
        let reached = reached.filter_map(|((span, peak), _)| Some(((*span)?, *peak)));
        if flow.is_sequential() {
            return reached.map(|(_, peak)| peak).max().unwrap_or(Bound::ZERO);
        }
        // The most is reached in a superstep in which some node is active for the first time.
        let mut starts = vec![];
        let mut ends = vec![];
        for (span, peak) in reached {
            let Bound::AtMost(peak) = peak else { return Bound::Unbounded };
            starts.push((span.first, u128::from(peak)));
            if let Bound::AtMost(last) = span.last {
                ends.push((last, u128::from(peak)));
            }
        }
        starts.sort_unstable();
        ends.sort_unstable();
        let (mut now, mut most, mut ended) = (0u128, 0u128, 0);
        for (first, peak) in starts {
            while let Some((_, gone)) = ends.get(ended).filter(|(last, _)| *last < first) {
                now -= gone;
                ended += 1;
            }
            now += peak;
            most = most.max(now);
        }
        Bound::AtMost(u64::try_from(most).unwrap_or(u64::MAX))
    }
}
