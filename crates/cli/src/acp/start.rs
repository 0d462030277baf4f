//! Runs that begin and runs that go on. Everything here waits for disks and for code, and is done
//! where that holds nobody up.

use std::path::{Path, PathBuf};

use atomic_event::{Created, Event};
use atomic_registry::Registry;
use atomic_registry::settings::Values;
use atomic_runner::{Inherit, ProgramSettings, Run, Settings, Show, StartRequest, read_prompt};
use atomic_session::{Session, SessionStatus, SessionSummary};
use atomic_workflow::Workflow;
use std::sync::Arc;

use super::record::Note;
use crate::args::AcpArgs;
use crate::catalog::Catalog;
use crate::commands::resume::{Finished, Prepared, Wanted, first_fact, is_one_turn};
use crate::commands::{FoundSession, find_session_in, sessions, working_folder};
use crate::failure::Failure;
use crate::gate::Refused;
use crate::show::proper_name;
use crate::trust::{Answered, Asking};
use crate::{roles, settings, stage};

/// A run that was begun or taken up.
pub(super) struct Begun {
    pub(super) run: Run,
    pub(super) show: Show,
    /// What it is called.
    pub(super) name: String,
    /// Whether it is one turn of one agent.
    pub(super) is_one_turn: bool,
    /// Whether it has just begun.
    pub(super) is_new: bool,
    /// Where it works.
    pub(super) folder: PathBuf,
}

/// The outcome of resuming a session.
pub(super) enum Resumed {
    /// The run goes on.
    Running(Box<Begun>),
    /// The session was completed before, and only its result is shown.
    Finished(Box<Finished>),
}

/// Why a run has not begun.
pub(super) enum Hindrance {
    /// Nobody has said that its code may be run.
    Untrusted(Vec<Refused>, Failure),
    Failed(Failure),
}

/// What a run begins with.
#[derive(Clone)]
pub(super) struct Wish {
    pub(super) args: AcpArgs,
    pub(super) folder: PathBuf,
    /// The model, where the user has chosen one in the session.
    pub(super) model: Option<String>,
    /// The answer to the question whether the project is trusted.
    pub(super) answer: Option<Answered>,
}

/// Opens the project of a session, with the answer that was given in it.
pub(super) fn open(folder: &Path, args: &AcpArgs, answer: Option<&Answered>) -> Catalog {
    let flags = settings::start_flags(&args.start, &args.settings);
    let mut catalog = Catalog::open(folder, flags);
    if let Some(answer) = answer
        && let Some(mut trust) = catalog.shelf.gate.trust.take()
    {
        trust.apply(answer);
        catalog.follow(trust);
    }
    catalog
}

/// The settings of a run or chat that a person looks on.
pub(super) fn attended() -> Settings {
    let mut settings = Settings::default();
    settings.program.retry_window_secs = ProgramSettings::SHORT_RETRY_WINDOW_SECS;
    settings
}

/// The settings of a project, with somebody there to answer questions.
pub(super) fn settings_of(
    catalog: &Catalog,
    mut wanted: Settings,
) -> Result<(Settings, Values), Failure> {
    let given = catalog.values()?;
    settings::apply(&given, &mut wanted, true);
    wanted.program.trusted = catalog.is_trusted();
    wanted.program.backend_from = settings::backend_from(&given, &catalog.project);
    Ok((wanted, given))
}

impl Wish {
    /// Starts a workflow by name. `allowed` is the code that may be run this once.
    pub(super) fn workflow(
        &self,
        name: &str,
        text: &str,
        allowed: Vec<String>,
    ) -> Result<Begun, Hindrance> {
        let mut catalog = self.catalog();
        let (wanted, given) = settings_of(&catalog, attended()).map_err(Hindrance::Failed)?;
        catalog.shelf.gate.allowed = allowed;
        let found = catalog.workflow(&format!("workflow:{name}"));
        let found =
            found.and_then(|workflow| catalog.admit_documents(&workflow).map(|()| workflow));
        let workflow = found.map_err(|failure| {
            let refused = catalog.shelf.gate.take_refused();
            match refused.is_empty() {
                true => Hindrance::Failed(failure),
                false => Hindrance::Untrusted(refused, failure),
            }
        })?;
        roles::agents(&catalog, &workflow.graph, &wanted).map_err(Hindrance::Failed)?;
        let prompt = read_prompt(text, &self.folder, &workflow.name, name);
        let prompt = prompt.map_err(|error| Hindrance::Failed(error.into()))?;
        self.start(workflow, prompt, (wanted, given), catalog.registry).map_err(Hindrance::Failed)
    }

    /// Starts one turn of one agent, skill or command.
    pub(super) fn apart(&self, workflow: Workflow, text: String) -> Result<Begun, Failure> {
        let catalog = self.catalog();
        let inherits = Settings { inherit: Inherit::All, ..attended() };
        let wanted = settings_of(&catalog, inherits)?;
        self.start(workflow, text, wanted, catalog.registry)
    }

    /// The project, with the answer that was given in this session.
    fn catalog(&self) -> Catalog {
        open(&self.folder, &self.args, self.answer.as_ref())
    }

    fn start(
        &self,
        workflow: Workflow,
        prompt: String,
        (wanted, given): (Settings, Values),
        registry: Arc<Registry>,
    ) -> Result<Begun, Failure> {
        let stage = stage::stage(settings::backend(&given), &wanted, &self.folder, registry)?;
        let model = self.model.clone().or_else(|| settings::model(&given));
        let name = workflow.name.to_string();
        let is_one_turn =
            name == atomic_workflow::builtin::prompt::NAME && workflow.source.is_none();
        let workspace = self.folder.clone();
        let request = StartRequest { workflow, prompt, workspace, model, settings: wanted };
        let (run, show) = Run::start(stage, request)?;
        Ok(Begun { run, show, name, is_one_turn, is_new: true, folder: self.folder.clone() })
    }

    /// Resumes the session in a folder.
    pub(super) fn resume(&self, dir: PathBuf, more: Option<String>) -> Result<Resumed, Failure> {
        let wanted = Wanted { instruction: more, upgrade: false, now: false };
        let asking = (true, Asking::Nobody);
        let found = FoundSession { workspace: working_folder(&dir), dir, is_copy: false };
        if let Some(finished) = Finished::find(&found, &wanted, &self.args.settings)? {
            return Ok(Resumed::Finished(Box::new(finished)));
        }
        let prepared = Prepared::new(found, wanted, &self.args.settings, asking, false)?;
        let Created { workflow, workspace, .. } = &prepared.created;
        let (name, folder) = (workflow.to_string(), workspace.clone());
        let is_one_turn = is_one_turn(&prepared.created);
        let (run, show) = prepared.take_up(vec![])?;
        let begun = Begun { run, show, name, is_one_turn, is_new: false, folder };
        Ok(Resumed::Running(Box::new(begun)))
    }
}

/// How a session stands.
fn status(dir: &Path) -> Option<(Created, SessionStatus, &'static str)> {
    let created = first_fact(dir).ok()?;
    let summary = SessionSummary::read(stage::disk().as_ref(), dir);
    let status = summary.map_or(SessionStatus::Running, |summary| summary.status);
    Some((created, status, sessions::status_text(dir, status)))
}

/// Whether a session can be taken up now.
pub(super) fn can_go_on(dir: &Path) -> bool {
    !has_holder(dir) && is_unfinished(dir)
}

/// Whether there is something left to do in a session.
pub(super) fn is_unfinished(dir: &Path) -> bool {
    status(dir).is_some_and(|(_, status, _)| status != SessionStatus::Completed)
}

fn has_holder(dir: &Path) -> bool {
    Session::holder(stage::disk().as_ref(), dir).is_ok_and(|holder| holder.is_some())
}

/// Whether there is a run with this name.
pub(super) fn is_known(id: &str, folder: &Path) -> bool {
    find_session_in(folder, id).is_ok()
}

/// Whether some process is at work on the run with this name.
pub(super) fn is_held(id: &str, folder: &Path) -> bool {
    find_session_in(folder, id).is_ok_and(|found| has_holder(&found.dir))
}

/// What to say about a session that can go on.
pub(super) fn how_it_stands(dir: &Path) -> Option<String> {
    let (created, _, status) = status(dir)?;
    let name = proper_name(created.workflow.as_str());
    Some(format!(
        "The {name} session {} is {status}. Your next message continues it, and is told to its \
         agents; anything that begins with a slash does something else instead.",
        created.session
    ))
}

/// A session that no editor has opened, as if one had.
pub(super) fn notes_of_session(id: &str, folder: &Path) -> Option<Vec<Note>> {
    let dir = find_session_in(folder, id).ok()?.dir;
    let (created, _, status) = status(&dir)?;
    let name = proper_name(created.workflow.as_str());
    let mut said = vec![format!("Started {name} session: {id}")];
    let facts = Session::read_only(stage::disk(), &dir).ok()?;
    for fact in facts.filter_map(Result::ok) {
        if let Event::Noted { text } = fact.event {
            said.push(format!("Note: {text}"));
        }
    }
    said.extend(super::play::told_tasks(&dir));
    said.push(format!("The session is {status}."));
    Some(vec![
        Note::Opened { cwd: folder.to_owned() },
        Note::Prompted { text: created.original_prompt },
        Note::Said { text: said.join("\n\n") },
        Note::Ran { dir },
    ])
}
