//! What has to be said about the folder a run works in, before anything is paid for.

use std::path::{Path, PathBuf};

use atomic_event::{Created, Event, ProjectRead};
use atomic_registry::project::ProjectFiles;
use atomic_session::{SessionError, SessionStatus};
use atomic_workflow::builtin::prompt;
use atomic_workflow::{WORKERS, Workflow};

use crate::gates::{can_start, found_gates};
use crate::perform::Checks;
use crate::run::{Run, RunError};
use crate::settings::Settings;
use crate::verify::runs_checks;

/// The folder of a project's sessions. The folder may lie behind a link that stays in the
/// repository; the session is then created at its real place, where it is found again without links.
pub(crate) fn sessions_folder(workspace: &Path, name: &str) -> Result<PathBuf, SessionError> {
    let path = workspace.join(name);
    // A workspace that is not on this disk has no links: tests have one in memory.
    let Ok(files) = ProjectFiles::of(workspace, std::env::home_dir().as_deref()) else {
        return Ok(path);
    };
    files.resolve(&path).map_err(|problem| SessionError::Strange { path, problem })
}

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
    let found = found_gates(&created.workspace);
    let checks = match &settings.checks {
        Some(given) if given.is_empty() => {
            return refused("no check is given", "give one, such as --check \"make test\"");
        }
        Some(given) => given,
        None if found.is_empty() => {
            let hint = "give one, such as --check \"make test\"";
            return refused("no check was found in the project", hint);
        }
        None if !settings.program.trusted => {
            let problem = "the checks of the project are not run, because it is not trusted";
            let hint = "atomic trust . (or give a check of your own with --check)";
            return refused(problem, hint);
        }
        None => &found,
    };
    if checks.iter().any(|check| can_start(check, &created.workspace)) {
        return Ok(());
    }
    let named: Vec<String> = checks.iter().map(|check| format!("`{check}`")).collect();
    let problem = format!("the program of {} was not found", named.join(" and "));
    refused(&problem, "install it, or give another check with --check")
}

pub(crate) fn is_one_turn(created: &Created) -> bool {
    created.workflow.as_str() == prompt::NAME && created.origin.source.is_none()
}

impl Run {
    /// What the user should know about the folder. `before` are the settings of a session that is
    /// taken up again.
    pub(crate) fn notes_about_place(&self, before: Option<&Settings>) -> Vec<Event> {
        let folder = self.created.workspace.display();
        let mut notes = vec![];
        if !is_one_turn(&self.created) {
            let running = self.others_here().into_iter().filter(|other| other.is_running);
            notes.extend(running.map(|other| {
                format!(
                    "Session {} is running in {} as well. Both change the same files; a check of \
                     one sees the unfinished work of the other, so no task is verified while both \
                     run.",
                    other.session,
                    other.workspace.display()
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

    /// What the user has changed while the run was stopped, of the files that decide what the checks
    /// mean. After a kill there is no telling who has changed a file.
    pub(crate) fn read_after_stop(&self) -> Option<Box<ProjectRead>> {
        match self.book.status {
            SessionStatus::Paused | SessionStatus::Waiting | SessionStatus::Failed => {}
            SessionStatus::Running | SessionStatus::Completed => return None,
        }
        let verification = &self.book.verification;
        let known = verification.reading.as_ref().filter(|_| verification.is_on)?;
        let reading = Checks::of(&self.settings, verification).read(&self.created.workspace)?;
        reading.since(Some(known)).map(Box::new)
    }

    /// How many items of a list are worked on at once.
    pub(crate) fn workers(&self) -> u64 {
        let newest = self.machine.newest();
        let known = newest.get(WORKERS).and_then(|workers| workers.as_u64());
        known.unwrap_or_else(|| self.settings.workers.map_or(1, u64::from))
    }
}
