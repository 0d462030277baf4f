//! Who pays for a run: found before the first call, refused where nobody has chosen.

use std::collections::BTreeSet;

use atomic_backend::login::{Credential, Pay};
use atomic_backend::{Backend, Place};
use atomic_event::{BackendId, Created, Event, Payer, PayerFound, PayerKind, ProviderEvent};
use atomic_graph::Graph;
use atomic_workflow::launchers;

use crate::run::RunError;
use crate::settings::Settings;
use crate::stage::Stage;

/// The choice among the credentials of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The credential that was named.
    pub pay: Option<Pay>,
    /// Whether a person sees who pays before the first call.
    pub is_attended: bool,
}

impl Choice {
    /// The choice in settings.
    pub fn of(settings: &Settings) -> Self {
        let pay = settings.program.pay.as_deref().and_then(Pay::read);
        Self { pay, is_attended: settings.program.is_attended }
    }
}

/// The payer of a backend in a place; nothing where nothing is paid, or where no credential is known.
/// The error is a sentence for the user.
pub fn payer_of(
    backend: &dyn Backend,
    place: &Place,
    model: Option<&str>,
    choice: Choice,
) -> Result<Option<PayerFound>, String> {
    // Settings that cannot be read stop the turn, with an error that says what to do.
    let found = backend.credentials(place, model).unwrap_or_default();
    let id = backend.id();
    let Some((first, rest)) = found.split_first() else { return Ok(None) };
    if first.payer.kind == PayerKind::Agent {
        return Ok(Some(told(id, first, rest)));
    }
    match choice.pay {
        Some(pay) if first.pay == pay => return Ok(Some(told(id, first, &[]))),
        Some(pay) => {
            let hint = format!("choose one with {}", offers(&found));
            return Err(format!("{id}: no credential `{}` was found\n  hint: {hint}", pay.name()));
        }
        None => {}
    }
    let is_ambiguous = !first.is_explicit && rest.iter().any(|other| other.pay != first.pay);
    if is_ambiguous && !choice.is_attended {
        let all: Vec<String> = found.iter().map(|one| one.payer.to_string()).collect();
        let hint = format!("choose one with {}", offers(&found));
        return Err(format!(
            "{id}: {} credentials could pay: {}\n  hint: {hint}",
            found.len(),
            all.join(", ")
        ));
    }
    Ok(Some(told(id, first, rest)))
}

/// `--pay subscription | --pay key`.
fn offers(found: &[Credential]) -> String {
    let mut names: Vec<String> =
        found.iter().map(|one| format!("--pay {}", one.pay.name())).collect();
    names.dedup();
    names.join(" | ")
}

fn told(backend: BackendId, first: &Credential, rest: &[Credential]) -> PayerFound {
    let others = rest.iter().filter(|other| other.pay != first.pay);
    PayerFound {
        backend,
        payer: first.payer.clone(),
        unused: others.map(Credential::offer).collect(),
        chosen_by: None,
    }
}

/// The payers of all backends that a graph uses, as events. Refuses a run for which nobody has chosen
/// among several credentials.
pub(crate) fn payers(
    stage: &Stage,
    graph: &Graph,
    settings: &Settings,
    created: &Created,
) -> Result<Vec<Event>, RunError> {
    let place = Place { workspace: created.workspace.clone(), inherit: settings.inherited() };
    let mut named: BTreeSet<Option<BackendId>> =
        launchers(graph).into_iter().map(|launcher| launcher.backend).collect();
    if graph.is_script() {
        // The agents of a script are known only while it runs.
        named.insert(None);
    }
    if named.remove(&Some(stage.backend.id())) {
        named.insert(None);
    }
    let (mut events, mut problems) = (vec![], vec![]);
    for id in named {
        let Ok(backend) = stage.backend(id.as_ref()) else { continue };
        // A model belongs to the run's own backend.
        let model = created.model.as_deref().filter(|_| id.is_none());
        match payer_of(backend.as_ref(), &place, model, Choice::of(settings)) {
            Ok(None) => {}
            Ok(Some(mut found)) => {
                found.chosen_by.clone_from(&settings.program.backend_from);
                if id.is_some() {
                    found.chosen_by = None;
                }
                events.push(Event::Provider(ProviderEvent::PayerFound(found)));
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(events) } else { Err(RunError::Unpaid(problems.join("\n"))) }
}

/// Everybody known to pay, the newest of each backend and provider.
pub(crate) fn learn(known: &mut Vec<PayerFound>, found: &PayerFound) {
    let is_same = |one: &PayerFound| {
        one.backend == found.backend && one.payer.provider == found.payer.provider
    };
    known.retain(|one| !is_same(one));
    known.push(found.clone());
}

/// The event for a payer that a program has reported; nothing where it is known.
pub(crate) fn reported(
    known: &[PayerFound],
    backend: BackendId,
    payer: &Payer,
) -> Option<PayerFound> {
    let is_known = known.iter().any(|one| one.backend == backend && one.payer == *payer);
    let found = PayerFound { backend, payer: payer.clone(), unused: vec![], chosen_by: None };
    (!is_known).then_some(found)
}
