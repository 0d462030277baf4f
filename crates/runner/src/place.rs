//! What has to be said about the folder a run works in, before anything is paid for.

use std::path::{Path, PathBuf};

use atomic_event::{Created, Event, SessionId, StepId};
use atomic_session::Session;
use atomic_workflow::builtin::prompt;
use atomic_workflow::{WORKERS, Workflow};

use crate::gates::found_gates;
use crate::run::{Run, RunError};
use crate::settings::Settings;
use crate::verify::runs_checks;

/// Refuses a run that cannot be verified although checks are required.
pub(crate) fn refuse_unchecked(
    workflow: &Workflow,
    settings: &Settings,
    created: &Created,
) -> Result<(), RunError> {
    // One turn of one agent has no tasks that could be verified.
    if !settings.limits.require_checks || is_one_turn(created) {
        return Ok(());
    }
    let refused = |problem: &str, hint: &str| {
        Err(RunError::Unchecked(format!("--require-checks: {problem}\n  hint: {hint}")))
    };
    if !runs_checks(&workflow.graph) {
        let problem = format!("the workflow `{}` does not run checks", workflow.name);
        return refused(&problem, "run `ralph`, or leave out --require-checks");
    }
    let workers = settings.workers.map(u64::from);
    let workers =
        workers.or_else(|| created.state.get(WORKERS).and_then(serde_json::Value::as_u64));
    if workers.is_some_and(|workers| workers > 1) {
        let problem = "with several workers in one folder no task can be verified";
        return refused(problem, "run with --workers 1");
    }
    match &settings.checks {
        Some(given) if !given.is_empty() => Ok(()),
        None if found_gates(&created.workspace).is_empty() => {
            refused("no check was found in the project", "give one, such as --check \"make test\"")
        }
        None if !settings.program.trusted => {
            let problem = "the checks of the project are not run, because it is not trusted";
            refused(problem, "atomic trust . (or give a check of your own with --check)")
        }
        None => Ok(()),
        Some(_) => refused("no check is given", "give one, such as --check \"make test\""),
    }
}

fn is_one_turn(created: &Created) -> bool {
    created.workflow.as_str() == prompt::NAME && created.origin.source.is_none()
}

impl Run {
    /// What the user should know about the folder. `before` are the settings of a session that is
    /// taken up again.
    pub(crate) fn notes_about_place(&self, before: Option<&Settings>) -> Vec<Event> {
        let folder = self.created.workspace.display();
        let mut notes = vec![];
        if !is_one_turn(&self.created) {
            notes.extend(self.others_here().into_iter().map(|other| {
                format!(
                    "Session {other} is running in {folder} as well. Both change the same files; \
                     a check of one sees the unfinished work of the other."
                )
            }));
        }
        let workers = self.workers();
        let is_new = before.is_none_or(|before| before.workers != self.settings.workers);
        if self.book.verification.is_on && workers > 1 && is_new {
            notes.push(format!(
                "{workers} workers share {folder}. Each sees the unfinished work of the others, and \
                 a check sees work that is not its task's, so no task is verified."
            ));
        }
        let is_repository = crate::commit::GitFiles::of(&self.created.workspace).is_some();
        if self.book.verification.is_on && !is_repository && before.is_none() {
            notes.push(format!(
                "{folder} is not in a git repository. Changes that agents make there cannot be \
                 compared or undone with git."
            ));
        }
        notes.into_iter().map(|text| Event::Noted { text }).collect()
    }

    /// How many items of a list are worked on at once.
    fn workers(&self) -> u64 {
        let newest = self.machine.newest();
        let known = newest.get(WORKERS).and_then(|workers| workers.as_u64());
        known.unwrap_or_else(|| self.settings.workers.map_or(1, u64::from))
    }

    /// Why green checks would verify nothing in this step: others work in the same folder.
    pub(crate) fn hindrance(&self, step: &StepId) -> Option<String> {
        let workers = self.workers();
        if workers > 1 {
            return Some(format!("{workers} workers share the folder"));
        }
        // Work that was cut off when there were several workers.
        let item = step.item();
        let mut open = self.book.open.iter().filter(|(_, open)| open.agent);
        let other = open.find_map(|(other, _)| other.item().filter(|_| other.item() != item));
        other.map(|other| format!("the folder holds unfinished work on {other}"))
    }

    /// Other sessions that are being worked on in the same folder.
    fn others_here(&self) -> Vec<SessionId> {
        let Some(sessions) = self.session.dir().parent() else { return vec![] };
        let names = self.stage.disk.list(sessions).unwrap_or_default();
        let beside = names.into_iter().map(|name| sessions.join(name));
        let listed = self.stage.index.as_ref().and_then(|index| index.entries().ok());
        let listed = listed.into_iter().flat_map(|listing| listing.entries);
        let mut dirs: Vec<PathBuf> = beside.chain(listed.map(|entry| entry.dir)).collect();
        dirs.sort();
        dirs.dedup();
        dirs.iter().filter_map(|dir| self.held_here(dir)).collect()
    }

    /// The session in a folder, when some process works on it in our folder.
    fn held_here(&self, dir: &Path) -> Option<SessionId> {
        let is_hidden = dir.file_name()?.to_string_lossy().starts_with('.');
        if is_hidden || dir == self.session.dir() {
            return None;
        }
        let disk = &self.stage.disk;
        Session::holder(disk.as_ref(), dir).ok()??;
        let first = Session::read_only(disk.clone(), dir).ok()?.next()?.ok()?;
        let Event::SessionCreated(created) = first.event else { return None };
        let same = |one: &Path, other: &Path| {
            one == other
                || one
                    .canonicalize()
                    .is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
        };
        let is_here = same(&created.workspace, &self.created.workspace) && !is_one_turn(&created);
        is_here.then_some(created.session)
    }
}
