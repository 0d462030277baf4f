//! Which sorts of nodes met which fates. A suite that never sees one of them proves nothing
//! about it.

use std::collections::{BTreeMap, BTreeSet};

use atomic_graph::{Effect, Graph, How, Input, Machine, StepId, code};

use crate::ledger::{Ledger, about, is_inside, node_of, stops};
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

/// How often each sort met each fate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    cells: BTreeMap<(Sort, Fate), u64>,
    /// Decisions that could not be made, until the next choice.
    undecided: BTreeSet<StepId>,
    /// The nodes that hold others.
    regions: Vec<String>,
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
        let all = Sort::ALL.iter().flat_map(|(sort, _)| FATES.map(|fate| (*sort, fate)));
        all.filter(|cell| !self.cells.contains_key(cell)).collect()
    }

    pub(crate) fn show(&self) -> String {
        let mut lines = vec![format!("{:>10} {FATES:?}", "")];
        for (sort, word) in Sort::ALL {
            let counts = FATES.map(|fate| self.cells.get(&(sort, fate)).copied().unwrap_or(0));
            lines.push(format!("{word:>10} {counts:?}"));
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
            Input::Chosen { step, .. } if sort(step) == Sort::Decision => {
                self.count(Sort::Decision, Fate::Executed);
                self.undecided.remove(step);
            }
            Input::Evaluated { step, result: Err(error) } if sort(step) == Sort::Decision => {
                let late = error.code == code::TIMEOUT;
                self.count(Sort::Decision, if late { Fate::TimedOut } else { Fate::Failed });
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
            if matches!(input, Input::Revived) {
                continue;
            }
            for stop in about(effect).into_iter().flat_map(stops).filter(|s| s.attempt != "1") {
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
        let text = step.as_str();
        let mut end = 0;
        for (stop, part) in stops(step).iter().zip(text.split('/')) {
            let region = StepId::new(&text[..end + stop.visit.len()]);
            end += part.len() + 1;
            let outside = cause.is_some_and(|cause| *cause != region && !is_inside(cause, &region));
            if end <= text.len() && outside {
                self.count(Sort::of(node_of(stop.visit)), Fate::Cancelled);
            }
        }
    }
}

fn add_regions(graph: &Graph, regions: &mut Vec<String>) {
    for node in &graph.nodes {
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
