//! From the inside out: what one run of each graph can cost at most.

use std::collections::{BTreeMap, BTreeSet};

use super::Bound;
use super::components::returns;
use super::explore::{Budget, Found, Limit, Question, explore};
use super::shape::{Inside, Level, Shape, Spot, Unknown};
use super::visits::{Limits, Visits, visits};

/// An estimate under way.
pub(super) struct Estimate<'s> {
    pub(super) shape: &'s Shape,
    pub(super) visits: &'s [Visits],
    pub(super) budget: &'s mut Budget,
    /// The visits allowed in the whole run.
    pub(super) steps: Option<u64>,
    /// Nodes whose cost is left out here, to be counted by the limit of their visits instead.
    pub(super) apart: &'s BTreeSet<usize>,
    /// What one visit to each of those can cost.
    pub(super) apart_costs: BTreeMap<usize, Bound>,
    /// What keeps the number of launches from being known.
    pub(super) endless: Vec<Reason>,
    /// What keeps the number at once from being known.
    pub(super) crowds: Vec<Reason>,
}

/// Why there is no limit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reason {
    /// Where.
    pub(super) place: usize,
    pub(super) why: Why,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Why {
    /// A number is missing.
    Unknown(Unknown),
    /// A cycle leads to these again and again.
    Cycle {
        nodes: Vec<usize>,
        /// Numbers that would limit it.
        unknown: Vec<Unknown>,
    },
}

/// The most that one thing can cost, and the most of it at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Most {
    pub(super) launches: Bound,
    pub(super) at_once: Bound,
}

impl Most {
    const NOTHING: Self = Self { launches: Bound::ZERO, at_once: Bound::ZERO };
}

impl Estimate<'_> {
    /// One run of a graph.
    pub(super) fn level(&mut self, number: usize) -> Most {
        let (shape, visits) = (self.shape, &self.visits[number]);
        let level = &shape.levels[number];
        let mut costs = vec![Bound::ZERO; level.spots.len()];
        let mut peaks = costs.clone();
        for (place, spot) in level.spots.iter().enumerate() {
            if visits.most[place] > Bound::ZERO {
                let most = self.spot(spot);
                (costs[place], peaks[place]) = (most.launches, most.at_once);
            }
        }
        if peaks.iter().all(|peak| *peak == Bound::ZERO) {
            return Most::NOTHING;
        }
        let steps = self.steps.filter(|_| number + 1 == shape.levels.len());
        let found = self.run(level, visits, (&costs, &peaks), steps);
        if found.launches == Bound::Unbounded && !found.endless.is_empty() {
            let nodes = found.endless.iter().map(|node| level.spots[*node as usize].place);
            let nodes: Vec<usize> = nodes.collect();
            let place = nodes.first().copied().unwrap_or_default();
            let unknown = level.unknown.clone();
            self.endless.push(Reason { place, why: Why::Cycle { nodes, unknown } });
        }
        Most { launches: found.launches, at_once: found.peak }
    }

    fn run(
        &mut self,
        level: &Level,
        closed: &Visits,
        (costs, peaks): (&[Bound], &[Bound]),
        steps: Option<u64>,
    ) -> Found {
        let flow = &level.flow;
        let limits = felt_limits(level);
        let dearest = closed.dearest(flow, costs);
        let peak = closed.peak(flow, peaks);
        let is_simple = closed.acyclic && flow.is_sequential();
        if is_simple && limits.is_empty() && steps.is_none() {
            return Found { launches: dearest, peak, endless: BTreeSet::new() };
        }
        let mut ask = |limits: &BTreeMap<u32, Limit>, steps| {
            let limits = limits.clone();
            explore(&Question { flow, costs, peaks, limits, steps }, self.budget)
        };
        let mut found = ask(&limits, steps);
        if found.is_none() && steps.is_some() {
            found = ask(&limits, None);
        }
        if found.is_none() && limits.len() > 1 {
            let start = flow.start.unwrap_or_default();
            let pivots = returns(&flow.follows(), start);
            let pivots = pivots.iter().filter_map(|node| Some((*node, *limits.get(node)?)));
            found = ask(&pivots.collect(), None);
        }
        let mut found = found.unwrap_or_else(|| {
            let nodes = (0u32..).zip(closed.most.iter().zip(costs));
            let endless = nodes
                .filter(|(_, (most, cost))| **most == Bound::Unbounded && **cost > Bound::ZERO);
            let endless = endless.map(|(node, _)| node).collect();
            Found { launches: Bound::Unbounded, peak: Bound::Unbounded, endless }
        });
        found.launches = found.launches.min(dearest).min(closed.sum(costs));
        found.peak = found.peak.min(peak);
        found
    }

    /// One visit to a node.
    fn spot(&mut self, spot: &Spot) -> Most {
        if spot.limit == Bound::ZERO {
            return Most::NOTHING;
        }
        let once = match &spot.inside {
            Inside::Nothing => Most::NOTHING,
            Inside::Launch => Most { launches: Bound::ONE, at_once: Bound::ONE },
            Inside::Rounds { level, times } => {
                let most = self.level(*level);
                Most { launches: most.launches.times(*times), ..most }
            }
            Inside::Items { levels, times, workers } => {
                self.items(spot.place, levels, *times, *workers)
            }
            Inside::Calls { levels, times } => self.calls(spot.place, levels, *times),
            Inside::Branches(levels) => {
                let all: Vec<Most> = levels.iter().map(|level| self.level(*level)).collect();
                Most {
                    launches: all.iter().map(|most| most.launches).sum(),
                    at_once: all.iter().map(|most| most.at_once).sum(),
                }
            }
        };
        if once.launches == Bound::Unbounded {
            let unknown = self.shape.places[spot.place].unknown.iter();
            let counted = |unknown: &&Unknown| match unknown {
                Unknown::Rounds
                | Unknown::Tasks
                | Unknown::List { .. }
                | Unknown::Script
                | Unknown::Calls { .. } => true,
                Unknown::Workers { .. } | Unknown::Visits { .. } => false,
            };
            let reasons = unknown.filter(counted).cloned().map(Why::Unknown);
            let place = spot.place;
            self.endless.extend(reasons.map(|why| Reason { place, why }));
        }
        let launches = once.launches.times(spot.attempts);
        if self.apart.contains(&spot.place) {
            let known = self.apart_costs.entry(spot.place).or_insert(Bound::ZERO);
            *known = (*known).max(launches);
            return Most { launches: Bound::ZERO, ..once };
        }
        Most { launches, ..once }
    }

    /// Every call may be of what costs most, and all of them may be under way at once.
    fn calls(&mut self, place: usize, levels: &[usize], times: Bound) -> Most {
        let all: Vec<Most> = levels.iter().map(|level| self.level(*level)).collect();
        let dearest = |of: fn(&Most) -> Bound| all.iter().map(of).max().unwrap_or(Bound::ZERO);
        let (launches, at_once) = (dearest(|most| most.launches), dearest(|most| most.at_once));
        if times == Bound::Unbounded && at_once > Bound::ZERO {
            let reasons = self.shape.places[place].unknown.iter().cloned().map(Why::Unknown);
            self.crowds.extend(reasons.map(|why| Reason { place, why }));
        }
        Most { launches: launches.times(times), at_once: at_once.times(times) }
    }

    fn items(&mut self, place: usize, levels: &[usize], times: Bound, workers: Bound) -> Most {
        if times == Bound::ZERO {
            return Most::NOTHING;
        }
        let mut all: Vec<Most> = levels.iter().map(|level| self.level(*level)).collect();
        all.sort_by_key(|most| std::cmp::Reverse(most.at_once));
        let (mut free, mut at_once) = (workers, Bound::ZERO);
        for most in &all {
            let now = free.min(times);
            at_once = at_once.plus(most.at_once.times(now));
            if let (Bound::AtMost(left), Bound::AtMost(now)) = (free, now) {
                free = Bound::AtMost(left - now);
            }
        }
        // However many workers there are, a node is never at work in more visits than it has.
        let inside = &self.shape.places[place + 1..self.shape.places[place].end];
        let limits = inside.iter().filter(|inner| inner.launches).map(|inner| inner.limit);
        let at_once = at_once.min(limits.sum());
        if at_once == Bound::Unbounded && all.iter().all(|most| most.at_once < Bound::Unbounded) {
            let reasons = self.shape.places[place].unknown.iter().cloned().map(Why::Unknown);
            self.crowds.extend(reasons.map(|why| Reason { place, why }));
        }
        let launches = all.iter().map(|most| most.launches).sum::<Bound>().times(times);
        Most { launches, at_once }
    }
}

impl Level {
    /// The visits that nodes are allowed while the graph is run once.
    pub(super) fn limits(&self) -> Limits {
        let own = self.spots.iter().map(|spot| spot.limit).collect();
        Limits { own, per_run: self.per_run }
    }
}

/// Limits of visits that a run of the graph can meet.
fn felt_limits(level: &Level) -> BTreeMap<u32, Limit> {
    let limits = level.limits();
    let per_run = limits.per_run;
    if per_run.min(limits.own.iter().copied().min().unwrap_or(per_run)) == Bound::Unbounded {
        return BTreeMap::new();
    }
    let none = Limits { own: vec![Bound::Unbounded; limits.own.len()], per_run: Bound::Unbounded };
    let free = visits(&level.flow, &none).most;
    let all = (0u32..).zip(limits.own.into_iter().zip(free));
    let felt = all.filter(|(_, (own, free))| per_run.min(*own) < *free);
    felt.map(|(node, (own, _))| (node, Limit { own, per_run })).collect()
}
