//! Everything that can be found wrong with a graph before it runs, all at once.
//!
//! Every [`Problem`] has a stable [`Code`], a [`Place`], what is wrong and what to do. What a
//! caller knows besides the graph, names and places in files, comes as tables, so that nothing
//! here has to read them. The cost grows with the size of the graph, not with its square.
//!
//! Start reading at [`check`].

mod code;
mod cycles;
mod joins;
mod known;
mod lanes;
mod limits;
mod outputs;
mod problem;
mod reach;
mod refer;
mod routes;
mod scope;
#[cfg(test)]
mod tests;
mod used;
mod values;
mod writes;

pub use code::{Code, Severity};
pub use known::{JudgeModel, Known, Use, UseKind, Uses, nearest, no_uses, typed};
pub use problem::{Place, Problem, Span, Spans};
pub use used::unknown;

use crate::Graph;
use scope::{Scopes, Site};

/// Finds every problem of a graph and of the graphs inside it, the outermost first.
pub fn check(graph: &Graph, uses: &Uses<'_>, known: &Known, spans: &Spans) -> Vec<Problem> {
    let scopes = Scopes::of(graph);
    let tables = used::Tables::of(known);
    let mut report = Report { problems: vec![], guesses: GUESSES, steps: STEPS };
    let mut inside = vec![];
    for site in scopes.sites() {
        if !graph_is_empty(site, &mut report) {
            let meant = refer::check(site, &mut report);
            routes::check(site, &mut report);
            let reached = reach::check(site, &meant, &mut report);
            cycles::check(site, &reached, known, &mut report);
            joins::check(site, &mut report);
        }
        limits::check(site, &mut report);
        let used = used::collect(site, uses);
        used::check(site, &used, &tables, &mut report);
        inside.push(used);
    }
    outputs::check(&scopes, &inside, &mut report);
    values::check(&scopes, &inside, known, &mut report);
    writes::check(&scopes, &inside, &mut report);
    report.finish(spans)
}

fn graph_is_empty(site: Site<'_, '_>, report: &mut Report) -> bool {
    let is_empty = site.graph().nodes.is_empty();
    if is_empty {
        let remedy = format!("add a node \"{}\", where it starts", site.graph().start);
        report.add(site, Problem::new(Code::EMPTY_GRAPH, site.place(), "it has no nodes", remedy));
    }
    is_empty
}

/// How many names are compared in all to find out what was meant. With more wrong names than
/// that something else is wrong, and comparing each with each would take for ever.
const GUESSES: usize = 200_000;

/// How many edges are followed in all to find out which nodes exclude each other. A join that is
/// not looked at here is found in a run.
const STEPS: usize = 500_000;

/// The problems found so far.
struct Report {
    problems: Vec<(usize, Problem)>,
    guesses: usize,
    steps: usize,
}

impl Report {
    fn add(&mut self, site: Site<'_, '_>, problem: Problem) {
        self.problems.push((site.number, problem));
    }

    /// The name that was probably meant.
    fn guess<'k>(
        &mut self,
        name: &str,
        known: impl ExactSizeIterator<Item = &'k str>,
    ) -> Option<&'k str> {
        self.guesses = self.guesses.checked_sub(known.len())?;
        nearest(name, known)
    }

    fn finish(mut self, spans: &Spans) -> Vec<Problem> {
        // Stable: within one graph they stay in the order in which they were found.
        self.problems.sort_by_key(|(scope, _)| *scope);
        let located = self.problems.into_iter().map(|(_, mut problem)| {
            let Place { path, part, span } = &mut problem.place;
            *span = spans.find(path, part.as_deref()).cloned();
            problem
        });
        located.collect()
    }
}
