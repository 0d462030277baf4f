//! A workflow and everything that is wrong with it.

use atomic_event::Created;
use atomic_graph::Graph;
use atomic_graph::check::{Known, Problem};
use atomic_workflow::descriptor::{self, Document, Draft, Fault};
use atomic_workflow::typescript::Authored;
use atomic_workflow::{Source, Workflow, builtin};

use crate::failure::Failure;
use crate::gate::{Gate, UNTRUSTED};
use crate::shelf::{Kept, is_code};

/// A workflow with everything that is wrong with it.
pub(crate) struct Loaded {
    /// Absent when it cannot be run.
    pub(crate) workflow: Option<Workflow>,
    /// Its graph, as far as it could be read.
    pub(crate) graph: Option<Graph>,
    /// What is wrong, each as it is shown.
    pub(crate) errors: Vec<String>,
    /// What is odd.
    pub(crate) warnings: Vec<String>,
    /// Why its code was not run, where that is all that is wrong.
    pub(crate) refused: Option<Fault>,
}

impl Loaded {
    /// The workflow, when it can be run.
    pub(crate) fn sound(self) -> Result<Workflow, Failure> {
        let Self { workflow, mut errors, refused, .. } = self;
        errors.extend(refused.map(|fault| fault.to_string()));
        workflow.ok_or_else(|| Failure::Failed(errors.join("\n")))
    }
}

/// The workflow of a session: read again from what the session keeps of it.
pub(crate) fn workflow_of(created: &Created, gate: &Gate) -> Result<Workflow, String> {
    let Some(kept) = &created.origin.source else {
        return builtin::find(created.workflow.as_str()).map_err(|error| error.to_string());
    };
    let told =
        |faults: Vec<Fault>| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    // Its graph is the one the session keeps, and was found sound when it began.
    let document = self::kept(kept, gate).map_err(told)?;
    descriptor::read(&document, &Kept(&kept.uses, gate)).into_workflow().map_err(told)
}

/// The document in a file that a session has kept.
pub(crate) fn kept(source: &Source, gate: &Gate) -> Result<Document, Vec<Fault>> {
    if is_code(source.found()) {
        let authored = Authored::kept(source)?;
        gate.admit_kept(&authored)?;
        return authored.run();
    }
    Ok(Document::plain(source.clone()))
}

/// A workflow of which nothing but what is wrong is known.
pub(crate) fn faulty(faults: &[Fault]) -> Loaded {
    let is_refused = |fault: &&Fault| fault.code == UNTRUSTED;
    let refused = faults.first().filter(is_refused).filter(|_| faults.len() == 1).cloned();
    let told = faults.iter().filter(|_| refused.is_none());
    let (wrong, odd): (Vec<_>, Vec<_>) = told.partition(|fault| fault.is_error);
    let text = |faults: Vec<&Fault>| faults.into_iter().map(ToString::to_string).collect();
    let (errors, warnings) = (text(wrong), text(odd));
    Loaded { workflow: None, graph: None, errors, warnings, refused }
}

pub(crate) fn judge(draft: Draft, known: &Known) -> Loaded {
    let problems = draft.check(known);
    let (wrong, odd): (Vec<_>, Vec<_>) = draft.faults.iter().partition(|fault| fault.is_error);
    let text = |faults: Vec<&Fault>| -> Vec<String> {
        faults.into_iter().map(ToString::to_string).collect()
    };
    let (mut errors, mut warnings) = (text(wrong), text(odd));
    sort(problems, &mut errors, &mut warnings);
    let graph = draft.graph().cloned();
    let workflow = draft.into_workflow().ok().filter(|_| errors.is_empty());
    Loaded { workflow, graph, errors, warnings, refused: None }
}

pub(crate) fn judge_ready(workflow: Workflow, known: &Known) -> Loaded {
    let functions = workflow.functions.ids().cloned().collect();
    let known = Known { functions: Some(functions), ..known.clone() };
    let uses = &atomic_workflow::names_used;
    let spans = atomic_graph::check::Spans::default();
    let problems = atomic_graph::check::check(&workflow.graph, uses, &known, &spans);
    let (mut errors, mut warnings) = (vec![], vec![]);
    sort(problems, &mut errors, &mut warnings);
    let graph = Some(workflow.graph.clone());
    let workflow = Some(workflow).filter(|_| errors.is_empty());
    Loaded { workflow, graph, errors, warnings, refused: None }
}

fn sort(problems: Vec<Problem>, errors: &mut Vec<String>, warnings: &mut Vec<String>) {
    for problem in problems {
        if problem.is_error() { &mut *errors } else { &mut *warnings }.push(problem.to_string());
    }
}
