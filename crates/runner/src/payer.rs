//! Who pays for a run: found before the first call, refused where nobody has chosen.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use atomic_backend::login::{Credential, Pay};
use atomic_backend::{Backend, Place};
use atomic_event::{BackendId, Created, Event, Payer, PayerFound, ProviderEvent};
use atomic_graph::Graph;
use atomic_workflow::launchers;

use crate::run::{Run, RunError};
use crate::settings::Settings;
use crate::stage::Stage;

/// A backend for which no payer is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpaid {
    backend: BackendId,
    problem: String,
    found: Vec<Credential>,
}

impl Unpaid {
    /// The way on for this backend alone.
    fn hint(&self) -> String {
        let names: Vec<Pay> = self.found.iter().map(|one| one.pay).collect();
        if names.is_empty() {
            return "log in with the agent program, or set the variable with its key".to_owned();
        }
        format!("choose one with {}", offers(&names))
    }
}

impl fmt::Display for Unpaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n  hint: {}", self.backend, self.problem, self.hint())
    }
}

/// The payer of a backend in a place; nothing where nothing is paid, or where no credential is known.
/// Several credentials are an error unless one was chosen or a person sees the line (`is_attended`).
pub fn payer_of(
    backend: &dyn Backend,
    place: &Place,
    model: Option<&str>,
    is_attended: bool,
) -> Result<Option<PayerFound>, Unpaid> {
    let (id, chosen) = (backend.id(), backend.pay());
    let found = match (backend.credentials(place, model), chosen) {
        (Ok(found), _) => found,
        // Without a choice the settings stop the turn, with an error that says what to do.
        (Err(_), None) => return Ok(None),
        (Err(problem), Some(pay)) => {
            let problem = format!("the credential `{}` cannot be looked up: {problem}", pay.name());
            return Err(Unpaid { backend: id, problem, found: vec![] });
        }
    };
    let first = found.first();
    if let Some(pay) = chosen.filter(|_| backend.is_paid()) {
        if let Some(first) = first.filter(|first| first.pay == pay) {
            return Ok(Some(told(id, first, found.iter().filter(|other| other.pay == pay))));
        }
        if backend.reports_payer(pay) {
            let payer = Payer::of(pay.kind());
            return Ok(Some(PayerFound { backend: id, payer, unused: vec![], chosen_by: None }));
        }
        let problem = format!("no credential `{}` was found", pay.name());
        return Err(Unpaid { backend: id, problem, found });
    }
    let Some(first) = first else { return Ok(None) };
    let is_ambiguous = !first.is_explicit && found.iter().any(|other| other != first);
    if is_ambiguous && !is_attended {
        let all: Vec<String> = found.iter().map(|one| one.payer.to_string()).collect();
        let problem = format!("{} credentials could pay: {}", found.len(), all.join(", "));
        return Err(Unpaid { backend: id, problem, found });
    }
    Ok(Some(told(id, first, found.iter())))
}

/// `--pay subscription | --pay key`, each once.
fn offers(names: &[Pay]) -> String {
    let mut offers: Vec<String> = vec![];
    for name in names.iter().map(|pay| format!("--pay {}", pay.name())) {
        if !offers.contains(&name) {
            offers.push(name);
        }
    }
    offers.join(" | ")
}

fn told<'f>(
    backend: BackendId,
    first: &Credential,
    found: impl Iterator<Item = &'f Credential>,
) -> PayerFound {
    PayerFound {
        backend,
        payer: first.payer.clone(),
        unused: found.filter(|other| *other != first).map(Credential::offer).collect(),
        chosen_by: None,
    }
}

/// A backend of a run, with a model that it is used with.
struct Use {
    backend: Arc<dyn Backend>,
    model: Option<String>,
    found: Vec<Credential>,
}

impl Use {
    fn of(backend: Arc<dyn Backend>, place: &Place, model: Option<String>) -> Self {
        let found = backend.credentials(place, model.as_deref()).unwrap_or_default();
        Self { backend, model, found }
    }

    fn has(&self, pay: Pay) -> bool {
        self.found.iter().any(|one| one.pay == pay)
    }

    /// The name of the only credential.
    fn only(&self) -> Option<Pay> {
        let [only] = &*self.found else { return None };
        Some(only.pay)
    }
}

/// The only credential of a backend that does not have the chosen one, where another backend of the run
/// has that: one choice has to do for all backends.
fn instead(id: &BackendId, uses: &[Use]) -> Option<Pay> {
    let own = || uses.iter().filter(|one| one.backend.id() == *id);
    let backend = &own().next()?.backend;
    let pay = backend.pay().filter(|_| backend.is_paid())?;
    // A login in the keychain of macOS is not in the list.
    if cfg!(target_os = "macos") && backend.reports_payer(pay) {
        return None;
    }
    let only = own().next()?.only()?;
    let is_only = own().all(|one| one.only() == Some(only));
    let is_elsewhere = uses.iter().any(|one| one.backend.id() != *id && one.has(pay));
    (only != pay && is_only && is_elsewhere).then_some(only)
}

/// The payers of all backends that a graph uses, as events. Refuses a run for which nobody has chosen
/// among several credentials.
pub(crate) fn payers(
    stage: &mut Stage,
    graph: &Graph,
    settings: &Settings,
    created: &Created,
) -> Result<Vec<Event>, RunError> {
    let place = Place { workspace: created.workspace.clone(), inherit: settings.inherited() };
    let mut uses = uses(stage, graph, &place, created);
    let ids: BTreeSet<BackendId> = uses.iter().map(|one| one.backend.id()).collect();
    for id in ids {
        let Some(pay) = instead(&id, &uses) else { continue };
        let other = uses.iter().find(|one| one.backend.id() == id);
        let Some(other) = other.and_then(|one| one.backend.with_pay(pay)) else { continue };
        stage.replace(&other);
        for one in uses.iter_mut().filter(|one| one.backend.id() == id) {
            *one = Use::of(Arc::clone(&other), &place, one.model.clone());
        }
    }
    let (mut events, mut problems) = (vec![], vec![]);
    for one in &uses {
        let is_attended = settings.program.is_attended;
        match payer_of(one.backend.as_ref(), &place, one.model.as_deref(), is_attended) {
            Ok(None) => {}
            Ok(Some(mut found)) => {
                if one.backend.id() == stage.backend.id() {
                    found.chosen_by.clone_from(&settings.program.backend_from);
                }
                let event = Event::Provider(ProviderEvent::PayerFound(found));
                if !events.contains(&event) {
                    events.push(event);
                }
            }
            Err(problem) if problems.contains(&problem) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(events) } else { Err(RunError::Unpaid(joined(&problems, &uses))) }
}

/// Every backend of a graph with every model that it is used with; the run's own is the first.
fn uses(stage: &Stage, graph: &Graph, place: &Place, created: &Created) -> Vec<Use> {
    let mut named: BTreeSet<(Option<BackendId>, Option<String>)> = BTreeSet::new();
    for launcher in launchers(graph) {
        let backend = launcher.backend.filter(|id| *id != stage.backend.id());
        // A model belongs to the run's own backend.
        let usual = || created.model.clone().filter(|_| backend.is_none());
        let model = launcher.model.or_else(usual);
        named.insert((backend, model));
    }
    if graph.is_script() {
        // The agents of a script are known only while it runs.
        named.insert((None, created.model.clone()));
    }
    let uses = named.into_iter().filter_map(|(id, model)| {
        let backend = stage.backend(id.as_ref()).ok()?;
        Some(Use::of(backend, place, model))
    });
    uses.collect()
}

/// All problems with one hint: a name that works for every backend, where there is one.
fn joined(problems: &[Unpaid], uses: &[Use]) -> String {
    let backends: BTreeSet<&BackendId> = problems.iter().map(|problem| &problem.backend).collect();
    let is_alone = uses.iter().all(|one| backends.contains(&one.backend.id()));
    if backends.len() == 1 && is_alone {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return told.join("\n");
    }
    let lines = problems.iter().map(|one| format!("{}: {}", one.backend, one.problem));
    let lines: Vec<String> = lines.collect();
    // A backend with one credential uses that one, whichever is named.
    let of_several = || uses.iter().filter(|one| one.found.len() > 1);
    let mut names: Vec<Pay> = Pay::ALL.into();
    names.retain(|pay| {
        of_several().all(|one| one.has(*pay)) && uses.iter().any(|one| one.has(*pay))
    });
    let hint = if names.is_empty() {
        "no choice works for all of these backends; remove a credential that is not to pay"
            .to_owned()
    } else {
        format!("choose one with {}", offers(&names))
    };
    format!("{}\n  hint: {hint}", lines.join("\n"))
}

impl Run {
    /// The backend for an agent, with its only credential where it does not have the chosen one. The
    /// backends of a script are known only when it names them.
    pub(crate) fn paid_backend(
        &mut self,
        backend: Arc<dyn Backend>,
        model: Option<&str>,
    ) -> Arc<dyn Backend> {
        if backend.pay().is_none() || backend.id() == self.stage.backend.id() {
            return backend;
        }
        let workspace = self.created.workspace.clone();
        let place = Place { workspace, inherit: self.settings.inherited() };
        let own = Arc::clone(&self.stage.backend);
        let uses = [
            Use::of(own, &place, self.created.model.clone()),
            Use::of(Arc::clone(&backend), &place, model.map(str::to_owned)),
        ];
        let other = instead(&backend.id(), &uses).and_then(|pay| backend.with_pay(pay));
        let Some(other) = other else { return backend };
        self.stage.replace(&other);
        other
    }
}

/// Everybody known to pay, the newest last.
pub(crate) fn learn(known: &mut Vec<PayerFound>, found: &PayerFound) {
    known.retain(|one| one.backend != found.backend || one.payer != found.payer);
    known.push(found.clone());
}

/// Whether a payer that a step names was recorded before.
pub(crate) fn is_known(known: &[PayerFound], found: &PayerFound) -> bool {
    known.iter().any(|one| one.backend == found.backend && one.payer == found.payer)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use atomic_backend::login::{Credential, Pay};
    use atomic_backend::{
        Backend, BackendError, BoxFuture, Conversation, Inherit, ModelOffer, OpenRequest, Place,
        ServerState,
    };
    use atomic_event::{BackendId, Payer, PayerFound, PayerKind};

    use super::{Unpaid, Use, instead, joined, learn, payer_of};

    /// A backend with these credentials.
    #[derive(Clone)]
    struct Paid {
        name: &'static str,
        found: Result<Vec<Credential>, String>,
        pay: Option<Pay>,
        reports: bool,
    }

    impl Backend for Paid {
        fn id(&self) -> BackendId {
            self.name.into()
        }

        fn reports_cost(&self) -> bool {
            true
        }

        fn credentials(&self, _: &Place, _: Option<&str>) -> Result<Vec<Credential>, String> {
            self.found.clone()
        }

        fn is_paid(&self) -> bool {
            true
        }

        fn pay(&self) -> Option<Pay> {
            self.pay
        }

        fn reports_payer(&self, pay: Pay) -> bool {
            self.reports && pay == Pay::Subscription
        }

        fn with_pay(&self, pay: Pay) -> Option<Arc<dyn Backend>> {
            Some(Arc::new(Self { pay: Some(pay), ..self.clone() }))
        }

        fn open(
            &self,
            _: OpenRequest,
        ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
            Box::pin(async { Err(BackendError::Misconfigured("nothing is opened".to_owned())) })
        }

        fn models(&self, _: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
            Box::pin(async { Ok(vec![]) })
        }

        fn servers(&self, _: Place) -> BoxFuture<'_, Result<Vec<ServerState>, BackendError>> {
            Box::pin(async { Ok(vec![]) })
        }
    }

    fn credential(pay: Pay, source: &str) -> Credential {
        let payer = Payer::new(pay.kind(), source);
        Credential { pay, payer, is_explicit: false, is_sent_as_well: false }
    }

    fn paid(name: &'static str, pay: Option<Pay>, found: &[(Pay, &str)]) -> Paid {
        let found = found.iter().map(|(pay, source)| credential(*pay, source)).collect();
        Paid { name, found: Ok(found), pay, reports: false }
    }

    fn place() -> Place {
        Place { workspace: "/work".into(), inherit: Inherit::None }
    }

    /// The line that is told without a terminal, or the refusal.
    fn told(backend: &Paid) -> String {
        match payer_of(backend, &place(), None, false) {
            Ok(found) => found.map(|found| found.to_string()).unwrap_or_default(),
            Err(problem) => format!("refused: {problem}"),
        }
    }

    #[test]
    fn a_credential_that_was_named_is_never_replaced_by_another() {
        assert_eq!(told(&paid("x", None, &[])), "");
        let none = told(&paid("x", Some(Pay::Key), &[]));
        assert!(
            none.starts_with("refused: x: no credential `key` was found\n  hint: log in"),
            "{none}"
        );
        let other = told(&paid("x", Some(Pay::Key), &[(Pay::Subscription, "login")]));
        let expected = "refused: x: no credential `key` was found\n  hint: choose one with --pay \
                        subscription";
        assert_eq!(other, expected);
        let broken = Paid { found: Err("bad.json: no JSON".to_owned()), ..paid("x", None, &[]) };
        assert_eq!(told(&broken), "", "the turn says what is wrong");
        let broken = told(&Paid { pay: Some(Pay::Key), ..broken });
        assert!(broken.starts_with("refused: x: the credential `key` cannot be"), "{broken}");
        assert!(broken.contains("bad.json: no JSON"), "{broken}");
    }

    #[test]
    fn a_login_that_only_the_program_knows_can_be_chosen() {
        let key = [(Pay::Key, "KEY")];
        for found in [&key[..], &[]] {
            let of_program = Paid { reports: true, ..paid("x", Some(Pay::Subscription), found) };
            assert_eq!(told(&of_program), "x: paid by the subscription");
        }
        assert!(
            told(&Paid { reports: true, ..paid("x", Some(Pay::Token), &key) }).contains("refused")
        );
    }

    #[test]
    fn whole_credentials_are_compared() {
        let same = [(Pay::Settings, "KEY of the file"), (Pay::Settings, "TOKEN of the file")];
        let refused = told(&paid("x", None, &same));
        assert_eq!(
            refused,
            "refused: x: 2 credentials could pay: the API key in KEY of the file, the API key in \
             TOKEN of the file\n  hint: choose one with --pay settings"
        );
        assert_eq!(
            told(&paid("x", Some(Pay::Settings), &same)),
            "x: paid by the API key in KEY of the file; also found: the API key in TOKEN of the file \
             (--pay settings)"
        );
        let two = [(Pay::Key, "KEY"), (Pay::Subscription, "login")];
        assert_eq!(told(&paid("x", Some(Pay::Key), &two)), "x: paid by the API key in KEY");
        let mut explicit = paid("x", None, &two);
        if let Ok(found) = &mut explicit.found {
            found[0].is_explicit = true;
        }
        assert!(told(&explicit).starts_with("x: paid by the API key in KEY; also found: "));
    }

    fn uses(backends: &[Paid]) -> Vec<Use> {
        let all = backends.iter().cloned();
        all.map(|one| Use::of(Arc::new(one), &place(), None)).collect()
    }

    #[test]
    fn a_backend_with_one_credential_pays_with_it_where_another_has_the_named_one() {
        let named = Some(Pay::Subscription);
        let claude = paid("claude", named, &[(Pay::Key, "KEY"), (Pay::Subscription, "login")]);
        let opencode = paid("opencode", named, &[(Pay::Settings, "file")]);
        let id = BackendId::from("opencode");
        assert_eq!(instead(&id, &uses(&[claude.clone(), opencode.clone()])), Some(Pay::Settings));
        assert_eq!(instead(&"claude".into(), &uses(&[claude.clone(), opencode.clone()])), None);
        assert_eq!(instead(&id, &uses(std::slice::from_ref(&opencode))), None, "alone");
        let other = paid("claude", named, &[(Pay::Key, "KEY")]);
        assert_eq!(instead(&id, &uses(&[other, opencode.clone()])), None, "nobody has it");
        let two = paid("opencode", named, &[(Pay::Settings, "file"), (Pay::Stored, "store")]);
        assert_eq!(instead(&id, &uses(&[claude.clone(), two])), None, "two are not one");
        let elsewhere = paid("opencode", named, &[(Pay::Stored, "another provider")]);
        assert_eq!(instead(&id, &uses(&[claude, opencode, elsewhere])), None, "two models");
    }

    #[test]
    fn the_hint_names_only_what_works_for_every_backend() {
        let hint = |backends: &[Paid]| {
            let refused = backends.iter().map(|one| payer_of(one, &place(), None, false));
            let problems: Vec<Unpaid> = refused.filter_map(Result::err).collect();
            let told = joined(&problems, &uses(backends));
            told.rsplit("hint: ").next().unwrap().to_owned()
        };
        let claude = paid("claude", None, &[(Pay::Key, "KEY"), (Pay::Subscription, "login")]);
        let one = paid("opencode", None, &[(Pay::Settings, "file")]);
        assert_eq!(hint(&[claude.clone(), one]), "choose one with --pay subscription | --pay key");
        let same = paid("opencode", None, &[(Pay::Key, "KEY"), (Pay::Stored, "store")]);
        assert_eq!(hint(&[claude.clone(), same]), "choose one with --pay key");
        let other = paid("opencode", None, &[(Pay::Settings, "file"), (Pay::Stored, "store")]);
        assert!(hint(&[claude, other]).starts_with("no choice works for all of these backends"));
    }

    #[test]
    fn everybody_who_has_paid_stays_known() {
        let found = |source: &str| PayerFound {
            backend: "x".into(),
            payer: Payer::new(PayerKind::Key, source),
            unused: vec![],
            chosen_by: None,
        };
        let mut known = vec![];
        for source in ["FIRST", "SECOND", "FIRST", "SECOND"] {
            learn(&mut known, &found(source));
        }
        assert_eq!(known, [found("FIRST"), found("SECOND")]);
    }
}
