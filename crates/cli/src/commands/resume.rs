//! `atomic resume`: take a session up again.

use std::path::Path;
use std::process::ExitCode;

use atomic_event::{Created, Ending, Envelope, Event, Report, SessionId};
use atomic_files::shell_quoted;
use atomic_registry::settings::{TRUST, Values};
use atomic_runner::{
    CHECK_TOOL, Ended, Outcome, ResumeOptions, Run, Settings, Show, Stage, StreamMode, Upgrade,
};
use atomic_session::Session;
use atomic_workflow::builtin::prompt;
use atomic_workflow::{Source, Workflow};

use super::FoundSession;
use super::run::{see_through, sees_output, somebody_is_there};
use crate::args::{OutputArgs, ResumeArgs};
use crate::catalog::Catalog;
use crate::failure::{Failure, exit_code};
use crate::gate::UntrustedCode;
use crate::settings::{self, SettingsArgs};
use crate::show::{self, Look};
use crate::trust::Asking;
use crate::{home, load, paint, roles, stage};

pub(crate) fn resume(args: &ResumeArgs) -> Result<ExitCode, Failure> {
    let found = super::find_session(&args.session, args.place, "atomic resume {}")?;
    let (instruction, upgrade, now) = (args.instruction.clone(), args.upgrade, args.now);
    let wanted = Wanted { instruction, upgrade, now };
    resume_in(found, wanted, &args.settings, &args.output)
}

/// How a session is resumed.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Something to tell every agent started from now on.
    pub(crate) instruction: Option<String>,
    /// Whether the workflow is taken as it is now.
    pub(crate) upgrade: bool,
    /// Whether the provider is tried at once.
    pub(crate) now: bool,
}

/// Resumes the session in this folder.
pub(crate) fn resume_in(
    found: FoundSession,
    wanted: Wanted,
    flags: &SettingsArgs,
    output: &OutputArgs,
) -> Result<ExitCode, Failure> {
    if let Some(finished) = Finished::find(&found, &wanted, flags)? {
        return Ok(finished.show(output));
    }
    let somebody = somebody_is_there(output);
    let asking = Asking::if_somebody(somebody);
    let mut prepared = Prepared::new(found, wanted, flags, (somebody, asking), output.verbose)?;
    // A new session is made of the one in a copy only when nothing speaks against its resume.
    prepared.found = super::fork::own(prepared.found)?;
    super::tell_folder(&prepared.created.workspace);
    let look = look_of(&prepared.created);
    let modes = output.modes();
    let ended = see_through(output, look, || prepared.take_up(modes))?;
    Ok(ExitCode::from(exit_code(&ended.outcome)))
}

/// The fact that completed a session, when it is completed.
pub(super) fn completed(dir: &Path) -> Result<Option<Envelope>, Failure> {
    let mut last = None;
    for fact in Session::read_only(stage::disk(), dir)? {
        let fact = fact?;
        if let Event::RunFinished { ending, .. } = &fact.event {
            last = (*ending == Ending::Completed).then_some(fact);
        }
    }
    Ok(last)
}

/// A completed session, of which only the result is left to show.
pub(crate) struct Finished {
    /// The first event of the session.
    pub(crate) created: Created,
    /// The end of the run.
    pub(crate) ended: Ended,
    /// The event that completed it.
    last: Envelope,
}

impl Finished {
    /// Returns the result of the session in this folder, when it is completed.
    pub(crate) fn find(
        found: &FoundSession,
        wanted: &Wanted,
        flags: &SettingsArgs,
    ) -> Result<Option<Self>, Failure> {
        let Some(last) = completed(&found.dir)? else { return Ok(None) };
        refuse_strangers(&found.dir, &settings::for_resume(flags)?, "resume", &[])?;
        let mut created = first_fact(&found.dir)?;
        if let Some(workspace) = &found.workspace {
            created.workspace.clone_from(workspace);
        }
        let session = created.session.clone();
        if wanted.instruction.is_some() {
            return Err(Failure::Usage(format!(
                "{session}: the session is completed, so no agent would read the instruction\n  \
                 hint: make a new session of it and resume that: atomic fork {session}"
            )));
        }
        let (disk, holder) = (stage::disk(), stage::holder());
        // The program may have ended before it wrote the files. The result does not depend on them.
        // The second links are those of the original.
        let index = home::index(&disk).filter(|_| !found.is_copy);
        let checks = atomic_runner::finished(&disk, index.as_deref(), found.dir.clone(), &holder);
        let (dir, checks) = (found.dir.clone(), checks.ok().flatten());
        let ended = Ended { session, dir, outcome: Outcome::Completed, checks };
        Ok(Some(Self { created, ended, last }))
    }

    /// Prints the result.
    fn show(&self, output: &OutputArgs) -> ExitCode {
        super::tell_folder(&self.created.workspace);
        if output.json {
            paint::line(&serde_json::to_string(&self.last).unwrap_or_default());
        }
        let look = look_of(&self.created);
        if look != Look::Steps
            && !output.for_programs()
            && let Some(text) = show::last_words(&self.ended.dir).text
        {
            paint::value(&text);
        }
        show::farewell(output, look, &self.ended);
        ExitCode::SUCCESS
    }
}

/// Everything that is needed to take a session up again.
pub(crate) struct Prepared {
    /// What the session is about.
    pub(crate) created: Created,
    found: FoundSession,
    given: Values,
    trusted: bool,
    somebody: bool,
    /// Whether a person at a terminal sees who pays.
    is_attended: bool,
    stage: Stage,
    workflow: Workflow,
    wanted: Wanted,
}

impl Prepared {
    /// Looks at the session in this folder; nothing is changed yet. `somebody` is whether a person
    /// can answer the questions of agents, and `asking` who can be asked about trust.
    pub(crate) fn new(
        found: FoundSession,
        wanted: Wanted,
        flags: &SettingsArgs,
        (somebody, asking): (bool, Asking),
        verbose: bool,
    ) -> Result<Self, Failure> {
        let given = settings::for_resume(flags)?;
        let dir = &found.dir;
        let mut created = atomic_runner::kept(stage::disk(), dir)?;
        if let Some(workspace) = &found.workspace {
            created.workspace.clone_from(workspace);
        }
        let Kept { settings: mut known, checks } = kept_of(dir)?;
        refuse_strangers(dir, &given, "resume", &[])?;
        if !found.is_copy {
            refuse_renamed(dir, &created.session)?;
        }
        super::require_folder(&created.workspace)?;
        let mut catalog = Catalog::open(&created.workspace, given.clone());
        if let Some(trust) = &mut catalog.shelf.gate.trust {
            trust.continue_session(known.program.trusted, &checks);
        }
        catalog.settle_trust(asking)?;
        catalog.introduce(verbose);
        settings::apply(&given, &mut known, somebody);
        known.program.trusted = catalog.is_trusted();
        if asking == Asking::Terminal {
            catalog.shelf.gate.untrusted = UntrustedCode::Prompt;
        }
        let workflow = if wanted.upgrade {
            let workflow = current(&catalog, &created)?;
            catalog.admit_documents(&workflow)?;
            workflow
        } else {
            load::workflow_of(&created, &catalog.shelf.gate).map_err(Failure::Failed)?
        };
        roles::agents(&catalog, &workflow.graph, &known)?;
        let backend = Some(created.backend.as_str());
        let stage = stage::stage(backend, &known, &created.workspace, catalog.registry)?;
        let trusted = known.program.trusted;
        let is_attended = sees_output(asking == Asking::Terminal);
        let prepared =
            Self { created, found, given, trusted, somebody, is_attended, stage, workflow, wanted };
        Ok(prepared)
    }

    /// Takes the session up.
    pub(crate) fn take_up(self, streams: Vec<StreamMode>) -> Result<(Run, Show), Failure> {
        let Self { found, given, trusted, somebody, stage, workflow, wanted, is_attended, .. } =
            self;
        let FoundSession { dir, workspace, .. } = found;
        let upgrade = wanted.upgrade.then_some(Upgrade);
        let options = ResumeOptions {
            instruction: wanted.instruction,
            streams,
            upgrade,
            workspace,
            now: wanted.now,
        };
        let find = |_: &str| Ok(workflow);
        let adjust = |kept: &mut Settings| {
            settings::apply(&given, kept, somebody);
            kept.program.trusted = trusted;
            kept.program.is_attended = is_attended;
        };
        Ok(Run::resume(stage, dir, options, find, adjust)?)
    }
}

/// Refuses a session that came with a cloned project: it has commands in it that nobody here has
/// seen. `verb` and `words` are the command that was typed.
pub(super) fn refuse_strangers(
    dir: &Path,
    given: &Values,
    verb: &str,
    words: &[String],
) -> Result<(), Failure> {
    if super::is_listed(dir) || given.switch(&TRUST) == Some(true) {
        return Ok(());
    }
    let mut command = format!("atomic {verb} --trust {}", shell_quoted(dir));
    for word in words {
        command += &format!(" {}", shell_quoted(Path::new(word)));
    }
    Err(Failure::Failed(format!(
        "{}: this session is not in your list of sessions, so it was not begun by you on this \
         machine, and it can run commands\n  help: if you know where it comes from: {command}",
        dir.display()
    )))
}

/// Refuses to work in a folder with another name than the session's id. The folder is a backup, and the
/// processes, conversations and second links of a session are known by its id.
pub(super) fn refuse_renamed(dir: &Path, session: &SessionId) -> Result<(), Failure> {
    if dir.file_name() == Some(session.as_str().as_ref()) {
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "{}: the name of the folder is not the id of its session, {session}\n  hint: make a new \
         session of it: atomic fork {}",
        dir.display(),
        shell_quoted(dir)
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
    if is_one_turn(created) { Look::Answer { is_kept: true } } else { Look::Steps }
}

/// Whether a session is one turn of one agent, and no workflow of somebody's.
pub(crate) fn is_one_turn(created: &Created) -> bool {
    created.workflow.as_str() == prompt::NAME && created.origin.source.is_none()
}

/// What a session has kept that decides how it goes on.
struct Kept {
    /// The settings it had last.
    settings: Settings,
    /// The checks it has run.
    checks: Vec<String>,
}

fn kept_of(dir: &Path) -> Result<Kept, Failure> {
    let mut kept = Kept { settings: Settings::default(), checks: vec![] };
    for fact in Session::read_only(stage::disk(), dir)? {
        let event = fact?.event;
        let settings = if let Event::SessionCreated(created) = event {
            created.settings
        } else if let Event::SessionResumed(resumed) = event {
            resumed.settings
        } else {
            if let Event::StepReported { report: Report::ToolUsed(tool), .. } = event
                && tool.tool == CHECK_TOOL
                && !kept.checks.contains(&tool.summary)
            {
                kept.checks.push(tool.summary);
            }
            continue;
        };
        kept.settings = serde_json::from_value(settings).unwrap_or(kept.settings);
    }
    Ok(kept)
}

/// What the session in this folder is about.
pub(crate) fn first_fact(dir: &Path) -> Result<Created, Failure> {
    let mut facts = Session::read_only(stage::disk(), dir)?;
    match facts.next().transpose()?.map(|envelope| envelope.event) {
        Some(Event::SessionCreated(created)) => Ok(*created),
        _ => Err(Failure::Failed(format!("there is no session in {}", dir.display()))),
    }
}
