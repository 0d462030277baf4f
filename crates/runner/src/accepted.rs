//! Whether the folder of a run holds accepted work only, so that a green check verifies a task.

use std::path::{Path, PathBuf};

use atomic_event::{Event, Moment, Report, SessionId, StepId};
use atomic_graph::task::Task;
use atomic_session::{Session, SessionStatus};
use serde::Deserialize;

use crate::commit::GitFiles;
use crate::place::is_one_turn;
use crate::run::Run;

/// The largest `session.json` that is read.
const SUMMARY_LIMIT: u64 = 64 << 20;

/// Another session whose agents change the files of this run.
pub(crate) struct OtherSession {
    pub(crate) session: SessionId,
    pub(crate) workspace: PathBuf,
    /// Whether a process works on it now; otherwise it was left unfinished during this run.
    pub(crate) is_running: bool,
}

/// How a session stands, as its `session.json` says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    status: SessionStatus,
    last_updated: Moment,
}

impl Run {
    /// Why green checks would verify nothing in this step: the folder holds work that is neither
    /// this task's nor accepted.
    pub(crate) fn hindrance(&self, step: &StepId) -> Option<String> {
        let workers = self.workers();
        if workers > 1 {
            return Some(format!("{workers} workers share the folder"));
        }
        let unfinished = || self.unfinished_work(step);
        let unfinished =
            || unfinished().map(|id| format!("the folder holds unfinished work on {id}"));
        self.hindering_session().or_else(unfinished)
    }

    /// Completes what a check reports with what is known only when it has ended.
    pub(crate) fn witnessed(&self, mut event: Event) -> Event {
        if let Event::StepReported { step, report: Report::Checked(checked), .. } = &mut event {
            let hindrance = checked.hindrance.take();
            checked.hindrance = hindrance.or_else(|| self.hindering_session());
            let mends = step.item().and_then(|item| self.mends(&item));
            let is_done =
                |id: &String| self.tasks_done().iter().any(|task| task.id == *id && task.is_done);
            checked.mends = mends.filter(|id| !is_done(id));
        }
        event
    }

    /// Another task that an agent has begun to work on, and whose work was not accepted. A task and
    /// those that mend it share their work.
    fn unfinished_work(&self, step: &StepId) -> Option<String> {
        let item = step.item();
        // Work that was cut off when there were several workers.
        let mut open = self.book.open.iter().filter(|(_, open)| open.agent);
        let open = open.find_map(|(other, _)| other.item().filter(|_| other.item() != item));
        let family = |id: &str| self.mends(id).unwrap_or_else(|| id.to_owned());
        let own = item.as_deref().map(family);
        let is_unfinished =
            |id: &str| self.book.verification.is_unaccepted(id) && Some(family(id)) != own;
        let failed = || {
            let tasks = self.tasks_done().into_iter();
            tasks.filter(|task| !task.is_done).map(|task| task.id).find(|id| is_unfinished(id))
        };
        open.or_else(failed)
    }

    /// The task that a task mends, as its row in the state says.
    fn mends(&self, id: &str) -> Option<String> {
        let state = self.machine.newest();
        let rows = state.get("tasks")?.as_array()?;
        let row = rows.iter().find(|row| Task(row).id() == Some(id))?;
        row.get("mends")?.as_str().map(str::to_owned)
    }

    /// Names another session that changes the same files, or has left them half changed.
    fn hindering_session(&self) -> Option<String> {
        let other = self.others_here().into_iter().next()?;
        let OtherSession { session, is_running, .. } = other;
        Some(if is_running {
            format!("session {session} works in the same folder")
        } else {
            format!("session {session} left unfinished work in the folder")
        })
    }

    /// Other sessions that change the same files: those that are being worked on, and those that
    /// stopped after this run began (or was resumed) and are not completed.
    pub(crate) fn others_here(&self) -> Vec<OtherSession> {
        let Some(sessions) = self.session.dir().parent() else { return vec![] };
        let names = self.stage.disk.list(sessions).unwrap_or_default();
        let beside = names.into_iter().map(|name| sessions.join(name));
        let listed = self.stage.index.as_ref().and_then(|index| index.entries().ok());
        let listed = listed.into_iter().flat_map(|listing| listing.entries);
        let place = Place::of(&self.created.workspace);
        let listed = listed.filter(|entry| {
            entry
                .workspace
                .as_ref()
                .is_none_or(|folder| place.shares_files_with(&Place::of(folder)))
        });
        let mut dirs: Vec<PathBuf> = beside.chain(listed.map(|entry| entry.dir)).collect();
        dirs.sort();
        dirs.dedup();
        dirs.iter().filter_map(|dir| self.other_here(dir, &place)).collect()
    }

    /// The session in a folder, when it changes our files.
    fn other_here(&self, dir: &Path, place: &Place) -> Option<OtherSession> {
        let is_hidden = dir.file_name()?.to_string_lossy().starts_with('.');
        if is_hidden || dir == self.session.dir() {
            return None;
        }
        let disk = &self.stage.disk;
        let is_running = Session::holder(disk.as_ref(), dir).ok()?.is_some();
        if !is_running && !self.was_left_during_this_run(dir) {
            return None;
        }
        let first = Session::read_only(disk.clone(), dir).ok()?.next()?.ok()?;
        let Event::SessionCreated(created) = first.event else { return None };
        let is_here =
            place.shares_files_with(&Place::of(&created.workspace)) && !is_one_turn(&created);
        let (session, workspace) = (created.session, created.workspace);
        is_here.then_some(OtherSession { session, workspace, is_running })
    }

    fn was_left_during_this_run(&self, dir: &Path) -> bool {
        let Some(begun) = self.book.times.begun else { return false };
        let bytes = self.stage.disk.read(&dir.join("session.json"), SUMMARY_LIMIT);
        let standing = bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let last = match standing {
            Some(Standing { status: SessionStatus::Completed, .. }) => return false,
            Some(Standing { status: SessionStatus::Running, .. }) | None => self.last_fact(dir),
            Some(Standing { last_updated, .. }) => Some(last_updated),
        };
        last.is_some_and(|last| last >= begun)
    }

    /// When something was last heard of a session that was killed: its `session.json` is behind.
    fn last_fact(&self, dir: &Path) -> Option<Moment> {
        let facts = Session::read_only(self.stage.disk.clone(), dir).ok()?;
        facts.map_while(Result::ok).last().map(|fact| fact.at)
    }
}

/// The files that a run in a folder changes: those of its working tree, or of the folder where there
/// is no git.
struct Place {
    folder: PathBuf,
    has_git: bool,
}

impl Place {
    fn of(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        match GitFiles::of(&folder) {
            Some(files) => Self { folder: files.root, has_git: true },
            None => Self { folder, has_git: false },
        }
    }

    /// A working tree inside another one, such as a worktree, has files of its own.
    fn shares_files_with(&self, other: &Self) -> bool {
        let (one, other_folder) = (&self.folder, &other.folder);
        if self.has_git && other.has_git {
            return one == other_folder;
        }
        one.starts_with(other_folder) || other_folder.starts_with(one)
    }
}
