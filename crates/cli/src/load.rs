//! A workflow and everything that is wrong with it.

use std::path::Path;

use atomic_event::Created;
use atomic_graph::Graph;
use atomic_graph::check::{Known, Problem};
use atomic_workflow::descriptor::{self, Document, Draft};
use atomic_workflow::{Source, Workflow, builtin};

use crate::failure::Failure;
use crate::shelf::{Kept, text_of};

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
}

/// The workflow of a session: read again from what the session keeps of it.
pub(crate) fn workflow_of(created: &Created) -> Result<Workflow, String> {
    let Some(kept) = &created.origin.source else {
        return builtin::find(created.workflow.as_str()).map_err(|error| error.to_string());
    };
    // Its graph is the one the session keeps, and was found sound when it began.
    let draft = descriptor::read(&Document::plain(kept.clone()), &Kept(&kept.uses));
    draft
        .into_workflow()
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// A workflow's file.
pub(crate) fn source(path: &Path) -> Result<Source, Failure> {
    let text = text_of(path).map_err(|error| {
        Failure::Failed(format!("{}: the workflow cannot be read: {error}", path.display()))
    })?;
    Ok(Source::new(path, text))
}

pub(crate) fn judge(draft: Draft, known: &Known) -> Loaded {
    let problems = draft.check(known);
    let (wrong, odd): (Vec<_>, Vec<_>) = draft.faults.iter().partition(|fault| fault.is_error);
    let text = |faults: Vec<&descriptor::Fault>| -> Vec<String> {
        faults.into_iter().map(ToString::to_string).collect()
    };
    let (mut errors, mut warnings) = (text(wrong), text(odd));
    sort(problems, &mut errors, &mut warnings);
    let graph = draft.graph().cloned();
    let workflow = draft.into_workflow().ok().filter(|_| errors.is_empty());
    Loaded { workflow, graph, errors, warnings }
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
    Loaded { workflow: Some(workflow).filter(|_| errors.is_empty()), graph, errors, warnings }
}

fn sort(problems: Vec<Problem>, errors: &mut Vec<String>, warnings: &mut Vec<String>) {
    for problem in problems {
        if problem.is_error() { &mut *errors } else { &mut *warnings }.push(problem.to_string());
    }
}
