//! Which sorts of nodes met which fates. A suite that never sees one of them proves nothing
//! about it.

use std::collections::{BTreeMap, BTreeSet};

use atomic_graph::{Effect, Graph, How, Input, Kind, Machine, StepId, Strategy, code};

use crate::ledger::{Ledger, Stop, about, is_inside, node_of, stops};
use crate::scene::Sort;

/// What became of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Executed,
    Failed,
    TimedOut,
    Retried,
    Lost,
    Cancelled,
}

const FATES: [Fate; 6] =
    [Fate::Executed, Fate::Failed, Fate::TimedOut, Fate::Retried, Fate::Lost, Fate::Cancelled];

/// The sort that a node of this kind is of.
fn sort_of(kind: &Kind) -> Sort {
    match kind {
        Kind::Work { launch: false, .. } => Sort::Work,
        Kind::Work { launch: true, .. } => Sort::Launch,
        Kind::Decision => Sort::Decision,
        Kind::Subgraph { .. } => Sort::Subgraph,
        Kind::Loop { .. } => Sort::Loop,
        Kind::Each(_) => Sort::Each,
        Kind::Parallel(parallel) => match parallel.strategy {
            Strategy::All => Sort::All,
            Strategy::Race => Sort::Race,
            Strategy::Any => Sort::Any,
        },
        Kind::Script(_) => panic!("scripts have runs of their own"),
    }
}

/// The sort after this one: a sort that is new cannot be left out here.
fn next(sort: Sort) -> Option<Sort> {
    match sort {
        Sort::Work => Some(Sort::Launch),
        Sort::Launch => Some(Sort::Decision),
        Sort::Decision => Some(Sort::Subgraph),
        Sort::Subgraph => Some(Sort::Loop),
        Sort::Loop => Some(Sort::Each),
        Sort::Each => Some(Sort::All),
        Sort::All => Some(Sort::Race),
        Sort::Race => Some(Sort::Any),
        Sort::Any => None,
    }
}

fn sorts() -> impl Iterator<Item = Sort> {
    std::iter::successors(Some(Sort::Work), |sort| next(*sort))
}

/// Whether nodes of a sort can meet a fate. A decision is made at once or not at all: nobody
/// carries it out, so there is nothing to take too long or to be lost; one that was not recorded
/// is simply made again.
fn can_meet(sort: Sort, fate: Fate) -> bool {
    sort != Sort::Decision || ![Fate::TimedOut, Fate::Lost].contains(&fate)
}

/// How often each sort met each fate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    cells: BTreeMap<(Sort, Fate), u64>,
    /// Decisions that could not be made, until the next choice.
    undecided: BTreeSet<StepId>,
    /// The nodes that hold others.
    regions: Vec<String>,
    /// Attempts at what is inside a node that were heard of.
    begun: BTreeSet<StepId>,
    pub(crate) inputs: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
}

impl Coverage {
    pub(crate) fn new(graph: &Graph) -> Self {
        let mut regions = vec![];
        add_regions(graph, &mut regions);
        Self { regions, ..Self::default() }
    }

    pub(crate) fn count(&mut self, sort: Sort, fate: Fate) {
        *self.cells.entry((sort, fate)).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (cell, count) in &other.cells {
            *self.cells.entry(*cell).or_default() += count;
        }
        self.inputs += other.inputs;
        self.completed += other.completed;
        self.failed += other.failed;
    }

    /// The cells that were never hit.
    pub(crate) fn empty(&self) -> Vec<(Sort, Fate)> {
        let all = sorts().flat_map(|sort| FATES.map(|fate| (sort, fate)));
        all.filter(|(sort, fate)| can_meet(*sort, *fate))
            .filter(|cell| !self.cells.contains_key(cell))
            .collect()
    }

    pub(crate) fn show(&self) -> String {
        let mut lines = vec![format!("{:>10} {FATES:?}", "")];
        for sort in sorts() {
            let counts = FATES.map(|fate| self.cells.get(&(sort, fate)).copied().unwrap_or(0));
            lines.push(format!("{:>10} {counts:?}", format!("{sort:?}")));
        }
        lines.join("\n")
    }

    /// Something is about to happen.
    pub(crate) fn sees(&mut self, ledger: &Ledger, input: &Input) {
        self.inputs += 1;
        let was_stopping = |step: &StepId| ledger.cancelling.contains(step);
        match input {
            Input::Finished { step, .. } => self.count(sort(step), Fate::Executed),
            Input::Failed { step, error, .. } if !was_stopping(step) => {
                // Whoever carries a step out stops it when its time is up, and reports that.
                let late = error.code == code::TIMEOUT;
                self.count(sort(step), if late { Fate::TimedOut } else { Fate::Failed });
            }
            Input::Lost { step, .. } if !was_stopping(step) => {
                self.count(sort(step), Fate::Lost);
                for stop in stops(step).iter().rev().skip(1) {
                    self.count(Sort::of(node_of(stop.visit)), Fate::Lost);
                }
            }
            Input::TimedOut { step } => self.count(sort(step), Fate::TimedOut),
            Input::Chosen { step, chosen: Some(_) } if sort(step) == Sort::Decision => {
                self.count(Sort::Decision, Fate::Executed);
                self.undecided.remove(step);
            }
            Input::Chosen { step, chosen: None } | Input::Evaluated { step, result: Err(_) }
                if sort(step) == Sort::Decision =>
            {
                self.count(Sort::Decision, Fate::Failed);
                self.undecided.insert(step.clone());
            }
            Input::Revived => self.undecided.clear(),
            Input::Failed { .. }
            | Input::Lost { .. }
            | Input::Cancelled { .. }
            | Input::Rested { .. }
            | Input::Settled { .. }
            | Input::Answered { .. }
            | Input::Chosen { .. }
            | Input::Evaluated { .. }
            | Input::Patched { .. } => {}
        }
    }

    /// What is to be done after that.
    pub(crate) fn learns(&mut self, machine: &Machine, input: &Input, effects: &[Effect]) {
        let cause = cause(input);
        for effect in effects {
            match effect {
                Effect::Start(start) => {
                    if start.how == How::Retried {
                        self.count(sort(&start.step), Fate::Retried);
                    }
                    self.regions_seen_from(machine, &start.step);
                }
                Effect::Cancel { step, .. } => {
                    self.count(sort(step), Fate::Cancelled);
                    self.regions_stopped(step, cause);
                }
                Effect::Choose { step, .. } if self.undecided.contains(step) => {
                    self.count(Sort::Decision, Fate::Retried);
                }
                Effect::Evaluate { step, call, .. }
                    if ["retry", "on_error"].contains(&call.as_str())
                        && sort(step).holds_others() =>
                {
                    self.count(sort(step), Fate::Failed);
                }
                Effect::Choose { .. }
                | Effect::Evaluate { .. }
                | Effect::Limit { .. }
                | Effect::Rest { .. }
                | Effect::Ask { .. }
                | Effect::AskLost { .. }
                | Effect::Finish(_) => {}
            }
            if let Some(step) = about(effect) {
                self.regions_begun_again(step, cause);
            }
        }
    }

    /// The nodes with others inside of which this is the first that is heard of a new attempt.
    /// One that failed is tried again because of something in it; all other attempts are those of
    /// revived runs.
    fn regions_begun_again(&mut self, step: &StepId, cause: Option<&StepId>) {
        let again = |stop: &Stop<'_>| stop.attempt != "1";
        for (region, stop) in regions(step).into_iter().filter(|(_, stop)| again(stop)) {
            let attempt = StepId::new(format!("{region}!{}", stop.attempt));
            let inside = |cause: &StepId| *cause == region || is_inside(cause, &region);
            if self.begun.insert(attempt) && cause.is_some_and(inside) {
                let sort = Sort::of(node_of(stop.visit));
                self.count(sort, Fate::Failed);
                self.count(sort, Fate::Retried);
            }
        }
    }

    /// The nodes with others inside whose ends a step can see.
    fn regions_seen_from(&mut self, machine: &Machine, step: &StepId) {
        let Some(view) = machine.view(step) else { return };
        for node in &self.regions {
            let sort = Sort::of(node);
            let Some(output) = view.output(node) else { continue };
            let fate = match output.get("error") {
                None => Fate::Executed,
                // It may be the error of a node inside.
                Some(_) if [Sort::Subgraph, Sort::Loop].contains(&sort) => continue,
                Some(_) => Fate::Failed,
            };
            *self.cells.entry((sort, fate)).or_default() += 1;
        }
    }

    fn regions_stopped(&mut self, step: &StepId, cause: Option<&StepId>) {
        for (region, stop) in regions(step) {
            let outside = cause.is_some_and(|cause| *cause != region && !is_inside(cause, &region));
            if outside {
                self.count(Sort::of(node_of(stop.visit)), Fate::Cancelled);
            }
        }
    }
}

/// The visits that a step is inside of, outermost first.
fn regions(step: &StepId) -> Vec<(StepId, Stop<'_>)> {
    let mut regions = vec![];
    let mut begin = 0;
    for (stop, part) in stops(step).into_iter().zip(step.as_str().split('/')) {
        regions.push((StepId::new(&step.as_str()[..begin + stop.visit.len()]), stop));
        begin += part.len() + 1;
    }
    regions.pop();
    regions
}

fn add_regions(graph: &Graph, regions: &mut Vec<String>) {
    for node in &graph.nodes {
        assert_eq!(Sort::of(node.id.as_str()), sort_of(&node.kind), "the sort of `{}`", node.id);
        for (number, (_, inner)) in node.inner().into_iter().enumerate() {
            if number == 0 {
                regions.push(node.id.to_string());
            }
            add_regions(inner, regions);
        }
    }
}

fn sort(step: &StepId) -> Sort {
    Sort::of(step.node())
}

/// The step because of which something happens.
fn cause(input: &Input) -> Option<&StepId> {
    match input {
        Input::Finished { step, .. }
        | Input::Failed { step, .. }
        | Input::Lost { step, .. }
        | Input::Cancelled { step, .. }
        | Input::TimedOut { step }
        | Input::Rested { step }
        | Input::Settled { step, .. }
        | Input::Answered { step, .. }
        | Input::Chosen { step, .. }
        | Input::Evaluated { step, .. } => Some(step),
        Input::Patched { .. } | Input::Revived => None,
    }
}
