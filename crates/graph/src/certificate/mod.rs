//! What a run can cost at most, before it is started.
//!
//! [`certify`] counts agent launches: starts of an attempt at a node that launches an agent. It
//! assumes the worst of everything that is decided at run time: every attempt but the last fails,
//! every condition, `goto` and failure leads where it costs most, losers of a race are stopped
//! only after their last launch. It is exact for most graphs and never below the truth.
//!
//! Outside of it are losses: a step that was cut off by a crash or a pause and is started again
//! is one launch more each time, and so is what a failed run does after it was revived.
//!
//! One graph is looked at situation by situation (`explore`), or, where there are too many, by
//! cheaper bounds (`visits`). Graphs inside nodes are multiplied by how often they run
//! (`estimate`). Limits that hold for the whole run are then applied to the whole.

mod bound;
mod components;
mod estimate;
mod explore;
mod flow;
mod shape;
mod show;
mod visits;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::bound::Bound;
use self::estimate::{Estimate, Most, Reason};
use self::explore::Budget;
use self::shape::{Inside, Level, Shape};
use self::visits::{Visits, visits};
use crate::{Graph, Key, Machine, State};

/// What a run can cost at most, counted from its start, as long as the values it rests on stay
/// what they are. Losses are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// The largest number of agent launches.
    pub launches: Bound,
    /// The largest number of agents at work at once.
    pub at_once: Bound,
    /// The largest number of launches of each node that launches, in order of definition. Not
    /// all of them may be possible in the same run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeBound>,
    /// What has no limit; empty when both numbers are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unbounded: Vec<Unbounded>,
    /// The keys of the state it was computed from; when one of them changes, it no longer holds.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rests_on: BTreeSet<Key>,
}

/// What one node can cost at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeBound {
    /// Its place: `fan/worker`, or inside a branch `both[left]/worker`.
    pub path: String,
    /// The largest number of its launches.
    pub launches: Bound,
}

/// Something that has no limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unbounded {
    /// The node, as in [`NodeBound::path`].
    pub path: String,
    /// Why.
    pub why: String,
    /// What to do.
    pub remedy: String,
}

/// The largest possible number of launches and of agents at once of a run of `graph`, with the
/// lists and limits that `state` has now.
pub fn certify(graph: &Graph, state: &State) -> Certificate {
    let mut shape = Shape::of(graph, state);
    shape.rests_on.insert(Key::from(Machine::MAX_LAUNCHES));
    let ceiling = state.get(Machine::MAX_LAUNCHES).and_then(|ceiling| ceiling.as_u64()).into();
    let each: Vec<Visits> =
        shape.levels.iter().map(|level| visits(&level.flow, &level.limits())).collect();
    let totals = Totals::of(&shape, &each);

    let mut budget = Budget { left: Budget::ALL };
    let mut estimate = |apart: &BTreeSet<usize>| {
        let estimate = Estimate {
            shape: &shape,
            visits: &each,
            budget: &mut budget,
            steps: graph.max_steps,
            apart,
            apart_costs: [].into(),
            endless: vec![],
            crowds: vec![],
        };
        whole_run(estimate)
    };
    let (mut most, mut reasons) = estimate(&totals.crowded);
    if !totals.crowded.is_empty() {
        let (plain, _) = estimate(&BTreeSet::new());
        most.launches = most.launches.min(plain.launches);
        most.at_once = most.at_once.min(plain.at_once);
    }
    let launches = most.launches.min(totals.sum()).min(totals.by_steps(graph.max_steps));
    let launches = launches.min(ceiling);
    let concurrency: Bound = graph.max_concurrency.map(|most| u64::from(most.max(1))).into();
    let at_once = most.at_once.min(launches).min(concurrency);
    if launches < Bound::Unbounded {
        reasons.endless.clear();
    }
    if at_once < Bound::Unbounded {
        reasons.crowds.clear();
    }
    Certificate {
        launches,
        at_once,
        nodes: totals.nodes(launches),
        unbounded: show::unbounded(&shape, reasons),
        rests_on: shape.rests_on,
    }
}

/// Why there is no limit on launches, and why none on agents at once.
struct Reasons {
    endless: Vec<Reason>,
    crowds: Vec<Reason>,
}

/// Estimates a run, with the nodes that were left out added by the limit of their visits.
fn whole_run(mut estimate: Estimate<'_>) -> (Most, Reasons) {
    let root = estimate.shape.levels.len() - 1;
    let mut most = estimate.level(root);
    let apart = estimate.apart_costs.iter();
    let apart: Bound =
        apart.map(|(place, cost)| estimate.shape.places[*place].limit.times(*cost)).sum();
    most.launches = most.launches.plus(apart);
    (most, Reasons { endless: estimate.endless, crowds: estimate.crowds })
}

/// How often every node can be visited in the whole run.
struct Totals<'s> {
    shape: &'s Shape,
    each: &'s [Visits],
    visits: Vec<Bound>,
    /// How often the graph of each node is run.
    runs: Vec<Bound>,
    /// Nodes of graphs that are run more than once, whose limit of visits is met over all of
    /// them together.
    crowded: BTreeSet<usize>,
}

impl<'s> Totals<'s> {
    fn of(shape: &'s Shape, each: &'s [Visits]) -> Self {
        let none = vec![Bound::ZERO; shape.places.len()];
        let (visits, runs) = (none.clone(), none);
        let mut totals = Self { shape, each, visits, runs, crowded: BTreeSet::new() };
        totals.add(shape.levels.len() - 1, Bound::ONE);
        for (number, place) in shape.places.iter().enumerate() {
            if totals.visits[number] > place.limit {
                totals.visits[number] = place.limit;
                if totals.runs[number] > Bound::ONE {
                    totals.crowded.insert(number);
                }
            }
        }
        totals
    }

    /// Adds a graph that is run `runs` times.
    fn add(&mut self, number: usize, runs: Bound) {
        let level: &Level = &self.shape.levels[number];
        for (spot, most) in level.spots.iter().zip(&self.each[number].most) {
            let all = most.times(runs);
            self.visits[spot.place] = self.visits[spot.place].plus(all);
            self.runs[spot.place] = self.runs[spot.place].plus(runs);
            let tries = all.min(spot.limit).times(spot.attempts);
            match &spot.inside {
                Inside::Nothing | Inside::Launch => {}
                Inside::Rounds { level, times } => self.add(*level, tries.times(*times)),
                Inside::Items { levels, times, .. } | Inside::Calls { levels, times } => {
                    levels.iter().for_each(|level| self.add(*level, tries.times(*times)));
                }
                Inside::Branches(levels) => {
                    levels.iter().for_each(|level| self.add(*level, tries));
                }
            }
        }
    }

    fn launches(&self) -> impl Iterator<Item = (&shape::Place, Bound)> {
        let all = self.shape.places.iter().zip(&self.visits).filter(|(place, _)| place.launches);
        all.map(|(place, visits)| (place, visits.times(place.attempts)))
    }

    /// Every node at its own most.
    fn sum(&self) -> Bound {
        self.launches().map(|(_, launches)| launches).sum()
    }

    /// Every step at the node that is tried most often; the nodes around it take a step each.
    fn by_steps(&self, max_steps: Option<u64>) -> Bound {
        let Some(steps) = max_steps else { return Bound::Unbounded };
        let all = self.launches().filter(|(_, launches)| *launches > Bound::ZERO);
        let all = all.map(|(place, _)| {
            Bound::AtMost(steps.saturating_sub(place.depth)).times(place.attempts)
        });
        all.max().unwrap_or(Bound::ZERO)
    }

    fn nodes(&self, most: Bound) -> Vec<NodeBound> {
        self.launches()
            .map(|(place, launches)| NodeBound {
                path: place.path.clone(),
                launches: launches.min(most),
            })
            .collect()
    }
}

#[cfg(test)]
mod brute_tests;
#[cfg(test)]
mod tests;
