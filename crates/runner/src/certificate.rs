//! How often agents can be launched: worked out before the run, and again when a plan is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use atomic_event::{Certified, Event, Key};
use atomic_graph::certificate::{Bound, Certificate, certify};
use atomic_graph::{Graph, Machine, State};
use atomic_workflow::Workflow;
use serde_json::Value;

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
    state.remove(Machine::MAX_LAUNCHES);
    certify(graph, &State::new(state))
}

/// What a run of this workflow could cost at most.
pub fn planned(
    workflow: &Workflow,
    prompt: &str,
    settings: &Settings,
) -> Result<Certificate, RunError> {
    crate::run::compile(workflow)?;
    let nowhere = std::path::Path::new("");
    let launch = crate::run::launch(prompt, ("planned", nowhere), settings);
    let state = workflow.initial_state.state(&launch);
    let state = state.map_err(|error| crate::run::no_state(&error))?;
    Ok(certificate(&workflow.graph, &state))
}

/// What a certificate rests on.
#[derive(Debug, Default)]
pub(crate) struct Basis {
    values: BTreeMap<Key, Known>,
    certified: Option<Event>,
}

/// A value that a certificate rests on.
#[derive(Debug)]
struct Known {
    /// As large as it has been anywhere: a certificate counts from the start, and what was
    /// launched for a longer list stays launched. Kept apart: whoever shares the run's own value
    /// has it copied at the next change.
    largest: Option<Value>,
    /// The one that was compared last, so that the same is not compared again.
    last: Weak<Value>,
}

impl Known {
    /// Takes over a value that differs and is no smaller; says whether it has.
    fn grow(&mut self, value: &Arc<Value>) -> bool {
        if std::ptr::eq(self.last.as_ptr(), Arc::as_ptr(value)) {
            return false;
        }
        self.last = Arc::downgrade(value);
        let is_larger = |known: &Value| size(value) >= size(known) && **value != *known;
        let larger = self.largest.as_ref().is_none_or(is_larger);
        if larger {
            self.largest = Some(Value::clone(value));
        }
        larger
    }
}

impl Basis {
    pub(crate) fn of(certificate: &Certificate, state: &State) -> Self {
        // Where nobody is launched, nothing has to be counted.
        let keys = certificate.rests_on.iter().filter(|_| !certificate.nodes.is_empty());
        let keys = keys.filter(|key| key.as_str() != Machine::MAX_LAUNCHES);
        let known = |key: &Key| {
            let largest = state.get(key.as_str()).map(|value| Value::clone(value));
            (key.clone(), Known { largest, last: Weak::new() })
        };
        Self { values: keys.map(known).collect(), certified: Some(fact(certificate)) }
    }

    /// Whether there is anything to count.
    pub(crate) fn counts(&self) -> bool {
        !self.values.is_empty()
    }

    /// Takes over what has changed and is no smaller than before; says whether anything has.
    fn grow(&mut self, state: &State) -> bool {
        let mut grown = false;
        for (key, known) in &mut self.values {
            if let Some(value) = state.get(key.as_str()) {
                grown |= known.grow(value);
            }
        }
        grown
    }
}

fn size(value: &Value) -> u64 {
    match value {
        Value::Array(list) => list.len() as u64,
        Value::Number(number) => number.as_u64().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => 0,
    }
}

impl Run {
    /// The certificate once more, when it says something else because of what it rests on in
    /// this state.
    pub(crate) fn recertified(&mut self, state: &State) -> Option<Event> {
        let basis = &mut self.ceilings.basis;
        if !basis.grow(state) {
            return None;
        }
        let known = basis.values.iter();
        let known = known.filter_map(|(key, known)| Some((key.clone(), known.largest.clone()?)));
        let known = State::new(known.collect());
        let certified = Some(fact(&certify(self.machine.program().graph(), &known)));
        if certified == basis.certified {
            return None;
        }
        basis.certified.clone_from(&certified);
        certified
    }
}
