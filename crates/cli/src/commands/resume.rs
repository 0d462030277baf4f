//! `atomic resume`: take a session up again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_event::{Created, Event};
use atomic_registry::settings::{TRUST, Values};
use atomic_runner::{ResumeOptions, Run, Settings, Upgrade};
use atomic_session::Session;
use atomic_workflow::builtin::prompt;
use atomic_workflow::{Source, Workflow};

use super::run::{see_through, somebody_is_there};
use crate::args::{OutputArgs, ResumeArgs};
use crate::catalog::Catalog;
use crate::failure::{Failure, exit_code};
use crate::gate::Leave;
use crate::settings::{self, SettingsArgs};
use crate::show::Look;
use crate::{load, stage};

pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, Failure> {
    let dir = super::find_session(&args.session)?;
    let wanted = Wanted { instruction: args.instruction.clone(), upgrade: args.upgrade };
    resume_in(dir, wanted, &args.settings, &args.output)
}

/// How a session is resumed.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Something to tell every agent started from now on.
    pub(crate) instruction: Option<String>,
    /// Whether the workflow is taken as it is now.
    pub(crate) upgrade: bool,
}

/// Resumes the session in this folder.
pub(crate) fn resume_in(
    dir: PathBuf,
    wanted: Wanted,
    flags: &SettingsArgs,
    output: &OutputArgs,
) -> Result<ExitCode, Failure> {
    let given = settings::for_resume(flags)?;
    let created = atomic_runner::kept(stage::disk(), &dir)?;
    let mut known = newest_settings(&dir)?;
    refuse_strangers(&dir, &given, "resume")?;
    known.program.trusted |= settings::trusts(&given, &created.workspace);
    let somebody = somebody_is_there(output);
    let look = look_of(&created);
    settings::apply(&given, &mut known, somebody);
    let mut catalog = Catalog::of(&created.workspace);
    catalog.introduce(output.verbose);
    catalog.shelf.gate.leave = match given.switch(&TRUST) {
        Some(true) => Leave::Given,
        _ if somebody => Leave::Ask,
        _ => Leave::None,
    };
    let workflow = if wanted.upgrade {
        let workflow = current(&catalog, &created)?;
        catalog.admit_documents(&workflow)?;
        workflow
    } else {
        load::workflow_of(&created, &catalog.shelf.gate).map_err(Failure::Failed)?
    };
    let backend = Some(created.backend.as_str());
    let stage = stage::stage(backend, &known, &created.workspace, catalog.registry)?;
    let upgrade = wanted.upgrade.then_some(Upgrade);
    let Wanted { instruction, .. } = wanted;
    let options = ResumeOptions { instruction, streams: output.modes(), upgrade };
    let find = |_: &str| Ok(workflow);
    let trusted = known.program.trusted;
    let adjust = |kept: &mut Settings| {
        settings::apply(&given, kept, somebody);
        kept.program.trusted = trusted;
    };
    let ended = see_through(output, look, || Ok(Run::resume(stage, dir, options, find, adjust)?))?;
    Ok(ExitCode::from(exit_code(&ended.outcome)))
}

/// A session can lie in a project that was cloned, with commands in it that nobody here has seen.
pub(super) fn refuse_strangers(dir: &Path, given: &Values, verb: &str) -> Result<(), Failure> {
    if super::is_listed(dir) || given.switch(&TRUST) == Some(true) {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{}: this session is not in your list of sessions, so it was not begun by you on this \
         machine, and it can run commands\n  help: if you know where it comes from: atomic {verb} \
         --trust {}",
        dir.display(),
        dir.display()
    )))
}

/// The workflow of a session as it is now: in its file, or under its name.
fn current(catalog: &Catalog, created: &Created) -> Result<Workflow, Failure> {
    let file = created.origin.source.as_ref().map(Source::found);
    match file.filter(|path| path.is_file()) {
        Some(path) => catalog.read(path)?.sound(),
        None => catalog.workflow(created.workflow.as_str()),
    }
}

/// A session is shown as it was when it began.
fn look_of(created: &Created) -> Look {
    let one_turn = created.workflow.as_str() == prompt::NAME && created.origin.source.is_none();
    if one_turn { Look::Answer { is_kept: true } } else { Look::Steps }
}

/// The settings the session had last.
fn newest_settings(dir: &Path) -> Result<Settings, Failure> {
    let mut newest = Settings::default();
    for fact in Session::read_only(stage::disk(), dir)? {
        let event = fact?.event;
        let settings = if let Event::SessionCreated(created) = event {
            created.settings
        } else if let Event::SessionResumed(resumed) = event {
            resumed.settings
        } else {
            continue;
        };
        newest = serde_json::from_value(settings).unwrap_or(newest);
    }
    Ok(newest)
}

/// What the session in this folder is about.
pub(crate) fn first_fact(dir: &Path) -> Result<Created, Failure> {
    let mut facts = Session::read_only(stage::disk(), dir)?;
    match facts.next().transpose()?.map(|envelope| envelope.event) {
        Some(Event::SessionCreated(created)) => Ok(*created),
        _ => Err(Failure::Failed(format!("there is no session in {}", dir.display()))),
    }
}
