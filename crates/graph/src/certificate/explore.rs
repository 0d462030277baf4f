//! Every way one run of a graph can go, superstep by superstep: exact, where there are not too
//! many.
//!
//! What happens next depends on the active nodes, the arrivals at joins, and the visits already
//! made to nodes that have a limit. Each such situation is looked at once.

use std::collections::{BTreeMap, BTreeSet};

use super::Bound;
use super::components::{components, is_cyclic};
use super::flow::{Flow, Move};

/// What is asked of a graph.
pub(super) struct Question<'q> {
    pub(super) flow: &'q Flow,
    /// What one visit to each node can cost.
    pub(super) costs: &'q [Bound],
    /// How many can be at work at once in each node.
    pub(super) peaks: &'q [Bound],
    /// The visits that nodes are allowed, where they are to be counted. To count fewer than are
    /// limited only adds ways to go, and so never gives less than the truth.
    pub(super) limits: BTreeMap<u32, Limit>,
    /// The visits allowed in all.
    pub(super) steps: Option<u64>,
}

/// The visits that a node is allowed.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// What one more means is for the node to say.
    pub(super) own: Bound,
    /// One more ends the graph.
    pub(super) per_run: Bound,
}

/// The answer.
pub(super) struct Found {
    pub(super) launches: Bound,
    pub(super) peak: Bound,
    /// Nodes that cost something and can be visited for ever.
    pub(super) endless: BTreeSet<u32>,
}

/// How much may be looked at before giving up.
pub(super) struct Budget {
    /// What is left of it, in words of situations.
    pub(super) left: u64,
}

impl Budget {
    pub(super) const ALL: u64 = 4_000_000;
    const SITUATIONS: usize = 20_000;
    const WAYS: usize = 200_000;
    /// Ways on from one situation.
    const AT_ONCE: usize = 4_096;

    fn spend(&mut self, words: usize) -> Option<()> {
        self.left = self.left.checked_sub(u64::try_from(words).unwrap_or(u64::MAX))?;
        Some(())
    }
}

/// Looks at everything that can happen; `None` when that is too much. Half of what is left of the
/// budget is kept for whoever comes next.
pub(super) fn explore(question: &Question<'_>, budget: &mut Budget) -> Option<Found> {
    let kept = budget.left / 2;
    let mut own = Budget { left: budget.left - kept };
    let found = explore_within(question, &mut own);
    budget.left = kept + own.left;
    found
}

fn explore_within(question: &Question<'_>, budget: &mut Budget) -> Option<Found> {
    let Some(start) = question.flow.start else {
        return Some(Found { launches: Bound::ZERO, peak: Bound::ZERO, endless: BTreeSet::new() });
    };
    let mut search = Search::new(question)?;
    search.number(Situation::first(start, question), budget)?;
    let mut next = 0;
    while let Some(situation) = search.queue.get(next).cloned() {
        next += 1;
        let (step, after) = search.step(&situation)?;
        let mut follows = vec![];
        for situation in after {
            follows.push(search.number(situation, budget)?);
        }
        search.ways += follows.len();
        search.steps.push(step);
        search.follows.push(follows);
        if search.ways > Budget::WAYS {
            return None;
        }
    }
    Some(search.longest())
}

/// All that decides how a run goes on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Situation {
    active: Vec<u32>,
    /// Joins, and the nodes that have arrived there.
    arrived: Vec<(u32, u32)>,
    /// Visits so far to the nodes that are counted, in their order.
    visits: Vec<u64>,
    steps: u64,
}

impl Situation {
    fn first(start: u32, question: &Question<'_>) -> Self {
        let visits = vec![0; question.limits.len()];
        Self { active: vec![start], arrived: vec![], visits, steps: 0 }
    }

    fn words(&self) -> usize {
        8 + self.active.len() + self.arrived.len() + self.visits.len()
    }
}

/// What one superstep adds.
struct Step {
    launches: Bound,
    peak: Bound,
    costly: Vec<u32>,
}

struct Search<'q> {
    question: &'q Question<'q>,
    /// The place of each counted node among the visits.
    counted: BTreeMap<u32, usize>,
    moves: Vec<Vec<Move>>,
    refused: BTreeMap<u32, Vec<Move>>,
    known: BTreeMap<Situation, u32>,
    queue: Vec<Situation>,
    steps: Vec<Step>,
    follows: Vec<Vec<u32>>,
    ways: usize,
}

impl<'q> Search<'q> {
    fn new(question: &'q Question<'q>) -> Option<Self> {
        let flow = question.flow;
        let free = flow.joins.is_empty() && question.limits.is_empty() && question.steps.is_none();
        let mut moves = vec![];
        for node in (0u32..).take(flow.ways.len()) {
            let mut ways = flow.moves(node, false)?;
            if free {
                keep_largest(&mut ways);
            }
            moves.push(ways);
        }
        let mut refused = BTreeMap::new();
        for node in question.limits.keys() {
            refused.insert(*node, flow.moves(*node, true)?);
        }
        let counted = question.limits.keys().copied().zip(0..).collect();
        Some(Self {
            question,
            counted,
            moves,
            refused,
            known: BTreeMap::new(),
            queue: vec![],
            steps: vec![],
            follows: vec![],
            ways: 0,
        })
    }

    fn number(&mut self, situation: Situation, budget: &mut Budget) -> Option<u32> {
        if let Some(number) = self.known.get(&situation) {
            return Some(*number);
        }
        budget.spend(situation.words())?;
        if self.queue.len() >= Budget::SITUATIONS {
            return None;
        }
        let number = u32::try_from(self.queue.len()).ok()?;
        self.queue.push(situation.clone());
        self.known.insert(situation, number);
        Some(number)
    }

    /// Runs the active nodes; gives what that adds and every way it can go on.
    fn step(&self, situation: &Situation) -> Option<(Step, BTreeSet<Situation>)> {
        let (mut visited, mut refused, mut ends) = (vec![], vec![], false);
        let mut base = situation.clone();
        for node in &situation.active {
            let Some(place) = self.counted.get(node) else {
                visited.push(*node);
                continue;
            };
            let Limit { own, per_run } = self.question.limits[node];
            let so_far = Bound::AtMost(situation.visits[*place]);
            if so_far >= per_run {
                ends = true;
            } else if so_far >= own {
                refused.push(*node);
            } else {
                visited.push(*node);
            }
            // Further than this the number makes no difference.
            let last = if per_run < Bound::Unbounded { per_run } else { own };
            base.visits[*place] += u64::from(so_far < last);
        }
        let left = self.question.steps.map_or(u64::MAX, |steps| steps - situation.steps);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let over = visited.len() > left;
        // Where only some of them can still run, those are taken to be the dearest.
        let most = |of: &[Bound]| {
            let mut all: Vec<Bound> = visited.iter().map(|node| of[*node as usize]).collect();
            if over {
                all.sort_unstable_by(|a, b| b.cmp(a));
            }
            all.into_iter().take(left).sum()
        };
        let costly = |node: &u32| self.question.costs[*node as usize] > Bound::ZERO;
        let step = Step {
            launches: most(self.question.costs),
            peak: most(self.question.peaks),
            costly: visited.iter().copied().filter(costly).collect(),
        };
        if over || ends {
            return Some((step, BTreeSet::new()));
        }
        if self.question.steps.is_some() {
            base.steps += u64::try_from(visited.len()).unwrap_or(u64::MAX);
        }
        let moves = visited.iter().map(|node| (*node, &self.moves[*node as usize]));
        let moves = moves.chain(refused.iter().map(|node| (*node, &self.refused[node])));
        Some((step, self.onward(&base, moves.collect())?))
    }

    /// Every combination of one way on per node.
    fn onward(
        &self,
        base: &Situation,
        moves: Vec<(u32, &Vec<Move>)>,
    ) -> Option<BTreeSet<Situation>> {
        if moves.iter().any(|(_, moves)| moves.is_empty()) {
            return Some(BTreeSet::new());
        }
        let (single, several): (Vec<_>, Vec<_>) =
            moves.into_iter().partition(|(_, moves)| moves.len() == 1);
        let mut only = Onward::default();
        single.iter().for_each(|(node, moves)| only.take(*node, &moves[0]));
        only.tidy();
        let mut all = BTreeSet::from([only]);
        for (node, moves) in several {
            let mut wider = BTreeSet::new();
            for before in &all {
                for way in moves {
                    let mut after = before.clone();
                    after.take(node, way);
                    after.tidy();
                    wider.insert(after);
                }
            }
            if wider.len() > Budget::AT_ONCE {
                return None;
            }
            all = wider;
        }
        let mut after = BTreeSet::new();
        for onward in all {
            self.join(base, onward, &mut after)?;
        }
        after.retain(|situation| !situation.active.is_empty());
        Some(after)
    }

    /// Passes the joins at which everybody has arrived.
    fn join(
        &self,
        base: &Situation,
        onward: Onward,
        after: &mut BTreeSet<Situation>,
    ) -> Option<()> {
        let flow = self.question.flow;
        let mut active = onward.to;
        let mut arrived: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (join, node) in &base.arrived {
            arrived.entry(*join).or_default().insert(*node);
        }
        // Nodes that come early come in their order, the others after them in any order. Who was
        // there already and comes again may come before the join is passed or after.
        let (late, early): (Vec<_>, Vec<_>) =
            onward.at.into_iter().partition(|(_, node)| flow.ways[*node as usize].late);
        let mut passed = BTreeSet::new();
        let mut again = vec![];
        for (join, node) in early {
            let here = arrived.entry(join).or_default();
            here.insert(node);
            if here.len() == flow.joins[join as usize].from.len() {
                here.clear();
                passed.insert(join);
            }
        }
        for (join, node) in &late {
            let known = !arrived.entry(*join).or_default().insert(*node);
            again.extend((known && !passed.contains(join)).then_some((*join, *node)));
        }
        for (join, _) in late {
            let here = arrived.entry(join).or_default();
            if here.len() == flow.joins[join as usize].from.len() {
                here.clear();
                passed.insert(join);
            }
        }
        again.retain(|(join, _)| passed.contains(join));
        if again.len() > 4 {
            return None;
        }
        active.extend(passed.iter().map(|join| flow.joins[*join as usize].to));
        active.sort_unstable();
        active.dedup();
        for chosen in 0..1u32 << again.len() {
            let left = (0..).zip(&again).filter(|(bit, _)| chosen >> bit & 1 == 1);
            let waiting =
                arrived.iter().flat_map(|(join, at)| at.iter().map(|node| (*join, *node)));
            let mut arrived: Vec<_> = waiting.chain(left.map(|(_, late)| *late)).collect();
            arrived.sort_unstable();
            let (active, visits) = (active.clone(), base.visits.clone());
            after.insert(Situation { active, arrived, visits, steps: base.steps });
        }
        Some(())
    }

    /// The dearest run among all that were found.
    fn longest(&self) -> Found {
        let mut worth = vec![Bound::ZERO; self.steps.len()];
        let mut endless = BTreeSet::new();
        for component in components(&self.follows) {
            let after = component.iter().flat_map(|at| &self.follows[*at as usize]);
            let after = after.map(|to| worth[*to as usize]).max().unwrap_or(Bound::ZERO);
            let here = component.iter().map(|at| self.steps[*at as usize].launches);
            let here = here.max().unwrap_or(Bound::ZERO);
            let mut total = after.plus(here);
            if here > Bound::ZERO && is_cyclic(&component, &self.follows) {
                total = Bound::Unbounded;
                endless.extend(component.iter().flat_map(|at| &self.steps[*at as usize].costly));
            }
            component.iter().for_each(|at| worth[*at as usize] = total);
        }
        let peak = self.steps.iter().map(|step| step.peak).max().unwrap_or(Bound::ZERO);
        Found { launches: worth[0], peak, endless }
    }
}

/// Where the nodes of a superstep lead, so far.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Onward {
    to: Vec<u32>,
    at: Vec<(u32, u32)>,
}

impl Onward {
    fn take(&mut self, node: u32, way: &Move) {
        self.to.extend(&way.to);
        self.at.extend(way.at.iter().map(|join| (*join, node)));
    }

    fn tidy(&mut self) {
        self.to.sort_unstable();
        self.to.dedup();
        self.at.sort_unstable();
    }
}

/// Where nothing is waited for and nothing is limited, more active nodes never lead to less.
fn keep_largest(ways: &mut Vec<Move>) {
    let all = ways.clone();
    ways.retain(|way| {
        let covers = |other: &Move| other != way && way.to.iter().all(|to| other.to.contains(to));
        !all.iter().any(covers)
    });
}
