//! `atomic sessions`: what there is, and what happened in one.

use std::path::Path;
use std::process::ExitCode;

use atomic_session::{Session, SessionStatus, SessionSummary};

use super::find::Known;
use crate::failure::Failure;
use crate::show::{self, plain::Plain};
use crate::{paint, stage};

pub(crate) fn list() -> Result<ExitCode, Failure> {
    let disk = stage::disk();
    let Known { listing, problem, .. } = super::known_sessions();
    if let Some(problem) = problem {
        paint::warn(&format!("only the sessions in this folder are listed: {problem}"));
    }
    if listing.entries.is_empty() {
        paint::line("There are no sessions yet. Start one with: atomic run ralph \"<prompt>\"");
    }
    for entry in &listing.entries {
        let (status, tasks) = match SessionSummary::read(disk.as_ref(), &entry.dir) {
            Ok(summary) => (
                status_text(&entry.dir, summary.status),
                format!("{}/{}", summary.tasks.done, summary.tasks.total),
            ),
            Err(_) if !entry.dir.exists() => ("gone", "-".to_owned()),
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

pub(crate) fn show(text: &str) -> Result<ExitCode, Failure> {
    let dir = super::find_session(text)?;
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
