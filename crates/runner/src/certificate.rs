//! How often agents can be launched: worked out before the run, and again when a plan is known.

use atomic_event::{Certified, Event};
use atomic_graph::certificate::{Bound, Certificate, certify};
use atomic_graph::{Graph, State};

use atomic_workflow::Workflow;

use crate::lane::scope;
use crate::run::{Run, RunError};
use crate::settings::Settings;

/// A certificate as a fact.
pub(crate) fn fact(certificate: &Certificate) -> Event {
    let number = |bound: &Bound| if let Bound::AtMost(most) = bound { Some(*most) } else { None };
    Event::LaunchesCertified(Certified {
        launches: number(&certificate.launches),
        at_once: number(&certificate.at_once),
        unbounded: certificate
            .unbounded
            .iter()
            .map(|un| format!("{}: {}", un.path, un.why))
            .collect(),
    })
}

/// Refuses a run that is known beforehand to be able to launch more agents than it may.
pub fn refuse_too_many(
    certificate: &Certificate,
    max_launches: Option<u64>,
) -> Result<(), RunError> {
    let (Bound::AtMost(most), Some(limit)) = (&certificate.launches, max_launches) else {
        return Ok(());
    };
    if *most <= limit {
        return Ok(());
    }
    Err(RunError::Refused(format!(
        "the workflow can launch an agent up to {most} times, and --max-launches allows {limit}; \
         raise it, or see with --plan which nodes are launched how often"
    )))
}

/// The certificate of a graph before anything has run. A ceiling on launches is left out: it is
/// what the certificate is compared with.
pub(crate) fn certificate(graph: &Graph, state: &atomic_event::Patch) -> Certificate {
    let mut state = state.clone();
    state.remove(atomic_graph::Machine::MAX_LAUNCHES);
    certify(graph, &State::new(state))
}

/// What a run of this workflow could cost at most.
pub fn planned(
    workflow: &Workflow,
    prompt: &str,
    settings: &Settings,
) -> Result<Certificate, RunError> {
    crate::run::compile(workflow)?;
    let launch = crate::run::launch(prompt, "planned", settings);
    Ok(certificate(&workflow.graph, &workflow.initial_state.state(&launch)))
}

impl Run {
    /// The certificate once more, when a step of the outermost graph has changed what it rests
    /// on: a plan was accepted.
    pub(crate) fn recertified(&mut self, event: &Event) -> Option<Event> {
        let Event::StepFinished { step, result, .. } = event else { return None };
        if !scope(step).is_empty()
            || !result.patch.keys().any(|key| self.ceilings.rests_on.contains(key))
        {
            return None;
        }
        let certificate = certify(self.machine.program().graph(), &self.machine.newest());
        self.ceilings.rests_on.clone_from(&certificate.rests_on);
        Some(fact(&certificate))
    }
}
