//! `atomic resume`: take a session up again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use atomic_event::{Created, Event};
use atomic_runner::{ResumeOptions, Run, Settings};
use atomic_session::Session;
use atomic_workflow::builtin::prompt;

use super::run::{see_through, somebody_is_there};
use crate::args::{OutputArgs, ResumeArgs};
use crate::catalog::Catalog;
use crate::failure::{Failure, exit_code};
use crate::settings::{self, SettingsArgs};
use crate::show::Look;
use crate::{load, stage};

pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, Failure> {
    let dir = super::find_session(&args.session)?;
    resume_in(dir, args.instruction.clone(), &args.settings, &args.output)
}

/// Resumes the session in this folder.
pub(crate) fn resume_in(
    dir: PathBuf,
    instruction: Option<String>,
    flags: &SettingsArgs,
    output: &OutputArgs,
) -> Result<ExitCode, Failure> {
    let given = settings::for_resume(flags)?;
    let created = first_fact(&dir)?;
    let mut known = newest_settings(&dir)?;
    let somebody = somebody_is_there(output);
    let look = look_of(&created);
    settings::apply(&given, &mut known, somebody);
    let catalog = Catalog::of(&created.workspace);
    catalog.introduce(output.verbose);
    let backend = Some(created.backend.as_str());
    let stage = stage::stage(backend, &known, &created.workspace, catalog.registry)?;
    let options = ResumeOptions { instruction, streams: output.modes() };
    let find = |_: &str| load::workflow_of(&created);
    let adjust = |kept: &mut Settings| settings::apply(&given, kept, somebody);
    let ended = see_through(output, look, || Ok(Run::resume(stage, dir, options, find, adjust)?))?;
    Ok(ExitCode::from(exit_code(&ended.outcome)))
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
