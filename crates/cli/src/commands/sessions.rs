//! `atomic sessions`: what there is, and what happened in one.

use std::path::Path;
use std::process::ExitCode;

use atomic_event::Event;
use atomic_session::{
    IndexEntry, KeepStatus, Listing, Session, SessionStatus, SessionSummary, keep_status,
    remove_leftover,
};

use super::FoundSession;
use super::find::{
    Known, Place, find_session_to_remove, has_journal, is_in_another_folder, is_startable, kept,
};
use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::show::{self, plain::Plain};
use crate::{home, paint, stage};

/// How long a session without a journal stays in the list, in seconds. A program that was killed
/// before its first event leaves one, and so does a deleted folder.
const FORGOTTEN_AFTER: i64 = 24 * 60 * 60;

pub(crate) fn list() -> Result<ExitCode, Failure> {
    let disk = stage::disk();
    let here = std::env::current_dir().unwrap_or_default();
    let Known { mut listing, problem, .. } = super::known_sessions(&here);
    if let Some(problem) = problem {
        paint::warn(&format!("only the sessions in this folder are listed: {problem}"));
    }
    let place = Place::of(&here);
    listing.entries.iter_mut().for_each(|entry| place.show_here(entry));
    forget_lost(&mut listing);
    if listing.entries.is_empty() {
        paint::line("There are no sessions yet. Start one with: atomic run ralph \"<prompt>\"");
    }
    for entry in &listing.entries {
        let (status, tasks) = match SessionSummary::read(disk.as_ref(), &entry.dir) {
            _ if !has_journal(&entry.dir) => match kept(entry) {
                KeepStatus::Held => ("running", "-".to_owned()),
                // The folder was deleted, and is written again when the session is resumed.
                KeepStatus::Left | KeepStatus::Absent => ("interrupted", "-".to_owned()),
            },
            Ok(summary) => (
                status_text(&entry.dir, summary.status),
                format!("{}/{}", summary.tasks.done, summary.tasks.total),
            ),
            // The summary comes a moment after the session's first facts.
            Err(_) if super::resume::first_fact(&entry.dir).is_ok() => {
                (status_text(&entry.dir, SessionStatus::Running), "-".to_owned())
            }
            Err(_) => ("unreadable", "-".to_owned()),
        };
        let prompt = entry.prompt.lines().next().unwrap_or_default();
        paint::line(&paint::printable(&format!(
            "{}  {:<11} {:>7}  {:<14} {}",
            entry.session, status, tasks, entry.workflow, prompt
        )));
    }
    Ok(ExitCode::SUCCESS)
}

/// Hides sessions without a journal and drops old ones from the list of all, and removes second
/// links that a program left when it was killed after the end of its run. An entry whose whole
/// project is gone stays in the list: the project may have been moved.
fn forget_lost(listing: &mut Listing) {
    let disk = stage::disk();
    let Some(index) = home::index(&disk) else { return };
    let now = stage::clock().now();
    listing.entries.retain(|entry| {
        if is_startable(entry) {
            if kept(entry) == KeepStatus::Left && is_over(&entry.dir) {
                // Whatever cannot be removed is tried again the next time.
                remove_leftover(&disk, &index.folders(entry.dir.clone()));
            }
            return true;
        }
        let age = now.0.duration_since(entry.created_at.0).as_secs();
        if age > FORGOTTEN_AFTER && is_deleted(entry) {
            let _ = index.drop_entry(&entry.session);
            let _ = disk.remove_dir(&index.keep(&entry.dir));
        }
        false
    });
}

/// Whether a session without a journal was deleted from its project. A new folder at the path of a
/// project that was moved says nothing about it.
fn is_deleted(entry: &IndexEntry) -> bool {
    entry.dir.parent().is_some_and(Path::is_dir) && !is_in_another_folder(entry)
}

/// Whether the last run of a session has come to an orderly stop.
fn is_over(dir: &Path) -> bool {
    let Ok(facts) = Session::read_only(stage::disk(), dir) else { return false };
    let last = facts.map_while(Result::ok).last();
    last.is_some_and(|last| matches!(last.event, Event::RunFinished { .. } | Event::RunStopped(_)))
}

/// Deletes a session: its folder, its second links, and its entry in the list of all.
pub(crate) fn remove(text: &str, place: SessionArgs) -> Result<ExitCode, Failure> {
    let FoundSession { dir, is_copy, .. } = find_session_to_remove(text, place)?;
    let disk = stage::disk();
    let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The second links belong to the session of the list, whatever a stranger's folder is called.
    let index = home::index(&disk).filter(|_| !is_copy && super::is_listed(&dir));
    let keep = index.as_ref().map(|index| index.keep(&dir));
    let is_there = dir.is_dir();
    let holder = if is_there { Session::holder(disk.as_ref(), &dir)? } else { None };
    let is_kept_held =
        || keep.as_ref().is_some_and(|k| keep_status(disk.as_ref(), k) == KeepStatus::Held);
    if let Some(holder) = holder.or_else(|| is_kept_held().then(|| "another process".to_owned())) {
        return Err(Failure::Failed(format!(
            "{name}: the session is held by {holder}\n  hint: end that process, then run: atomic \
             sessions rm {name}"
        )));
    }
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", dir.display()));
    // The folder last: without its entry it is still found in its project.
    if let (Some(index), Some(keep)) = (&index, &keep) {
        if disk.exists(keep).unwrap_or(false) {
            disk.remove_dir(keep).map_err(failed)?;
        }
        index.drop_entry(&name.as_str().into())?;
    }
    let text = if is_there {
        disk.remove_dir(&dir).map_err(failed)?;
        format!("Deleted session {name}: {}", dir.display())
    } else {
        format!("Deleted session {name}; its folder was gone: {}", dir.display())
    };
    paint::line(&paint::printable(&text));
    Ok(ExitCode::SUCCESS)
}

/// A session that says it is running, with nobody at work, was interrupted.
pub(crate) fn status_text(dir: &Path, status: SessionStatus) -> &'static str {
    let held = Session::holder(stage::disk().as_ref(), dir).is_ok_and(|holder| holder.is_some());
    match status {
        SessionStatus::Running if !held => "interrupted",
        SessionStatus::Running => "running",
        SessionStatus::Paused => "paused",
        SessionStatus::Waiting => "waiting",
        SessionStatus::Completed => "completed",
        SessionStatus::Failed => "failed",
    }
}

pub(crate) fn show(text: &str, place: SessionArgs) -> Result<ExitCode, Failure> {
    let FoundSession { dir, .. } = super::find_session(text, place, "atomic sessions show {}")?;
    let disk = stage::disk();
    let mut plain = Plain::default();
    for fact in Session::read_only(disk.clone(), &dir)? {
        for line in plain.lines(&fact?) {
            paint::line(&line);
        }
    }
    paint::line("");
    for line in show::task_lines(&dir) {
        paint::line(&line);
    }
    for (id, question) in super::answer::open_questions(&dir)? {
        paint::line(&format!("\n{}", show::question_text(&id, &question)));
    }
    if let Ok(summary) = SessionSummary::read(disk.as_ref(), &dir) {
        paint::line(&format!("\nStatus: {}", status_text(&dir, summary.status)));
    }
    paint::line(&paint::printable(&format!("Folder: {}", dir.display())));
    Ok(ExitCode::SUCCESS)
}
