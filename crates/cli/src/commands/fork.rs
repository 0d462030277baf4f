//! `atomic fork`: a new session from the beginning of another one.

use std::path::Path;
use std::process::ExitCode;

use atomic_files::shell_quoted;
use atomic_runner::{Fork, ForkRequest, ForkTools, SetKey, fork as make};
use serde_json::Value;

use super::FoundSession;
use super::resume::{Wanted, refuse_strangers, resume_in};
use crate::args::ForkArgs;
use crate::failure::Failure;
use crate::settings::{self, SettingsArgs};
use crate::show::{self, plain};
use crate::{home, paint, stage};

/// The most characters of a value that are shown.
const SHOWN: usize = 200;

pub(crate) fn fork(args: &ForkArgs) -> Result<ExitCode, Failure> {
    let (session, step) = match args.from.split_once('@') {
        Some((session, step)) => (session, Some(step.to_owned())),
        None => (args.from.as_str(), None),
    };
    let command = step.as_ref().map_or("atomic fork {}".to_owned(), |step| {
        format!("atomic fork {{}}@{}", shell_quoted(Path::new(step)))
    });
    let FoundSession { dir, workspace, .. } = super::find_session(session, args.place, &command)?;
    let flags = SettingsArgs::trusting(args.trust);
    // What is made of it is one of the user's own sessions, about which nobody asks.
    refuse_strangers(&dir, &settings::for_resume(&flags)?, "fork", &[])?;
    if let Some(workspace) = &workspace {
        super::require_folder(workspace)?;
    }
    let set = args.set.iter().map(|(key, value)| (key.as_str().into(), value.clone())).collect();
    let fork = make(&tools(), ForkRequest { dir, step, set, workspace, whole: false })?;
    if args.output.json {
        for fact in &fork.facts {
            paint::line(&serde_json::to_string(fact).unwrap_or_default());
        }
    } else if !args.output.for_programs() {
        for line in told(&fork, args.run) {
            paint::line(&paint::printable(&line));
        }
    }
    if !args.run {
        return Ok(ExitCode::SUCCESS);
    }
    let workspace = Some(fork.workspace);
    let made = FoundSession { dir: fork.dir, workspace, is_copy: false };
    resume_in(made, Wanted::default(), &flags, &args.output)
}

/// What forks are made with.
fn tools() -> ForkTools {
    let disk = stage::disk();
    let (index, at) = (home::index(&disk), stage::clock().now());
    ForkTools { index, holder: stage::holder(), at, disk }
}

/// A session that can go on under its own id: of one in a copy of a project, a fork in that copy. The
/// caller has refused a stranger's session.
pub(super) fn own(found: FoundSession) -> Result<FoundSession, Failure> {
    if !found.is_copy {
        return Ok(found);
    }
    let FoundSession { dir, workspace, .. } = found;
    let request = ForkRequest { dir, step: None, set: [].into(), workspace, whole: true };
    let fork = make(&tools(), request)?;
    paint::aside(&format!(
        "Made session {} from {} for this copy of the project",
        fork.session, fork.from
    ));
    Ok(FoundSession { dir: fork.dir, workspace: Some(fork.workspace), is_copy: false })
}

/// Everything a person must know about the new session.
fn told(fork: &Fork, runs_on: bool) -> Vec<String> {
    let Fork { session, from, step, .. } = fork;
    let name = show::proper_name(fork.workflow.as_str());
    let mut lines = vec![
        format!("Forked {name} session: {session}"),
        match step {
            Some(step) => {
                format!("  It has everything of session {from} up to and including {step}.")
            }
            None => format!("  It has everything of session {from}."),
        },
    ];
    lines.extend(fork.set.iter().map(set_line));
    if !fork.under_way.is_empty() {
        let steps: Vec<_> = fork.under_way.iter().map(plain::name).collect();
        lines.push(format!("  Under way then, and begun again: {}.", steps.join(", ")));
    }
    let workspace = fork.workspace.display();
    lines.push(format!("  The files in {workspace} are as they are now, not as they were then."));
    if let Some((step, commit)) = &fork.commit {
        let short: String = session.as_str().chars().take(8).collect();
        lines.push(format!(
            "  After {step} they were at commit {commit}; to see them as they were:"
        ));
        let beside = shell_quoted(Path::new(&format!("{workspace}-{short}")));
        let inside = shell_quoted(&fork.workspace);
        lines.push(format!("    git -C {inside} worktree add {beside} {commit}"));
    }
    if let Some(holder) = &fork.holder {
        lines.push(format!("  Session {from} is at work in the same files right now ({holder})."));
    }
    if !runs_on {
        lines.push(format!("Resume with: atomic resume {session}"));
    }
    lines
}

fn set_line(set: &SetKey) -> String {
    let SetKey { key, value, combined, is_new, meant } = set;
    let mut notes = vec![];
    if *combined {
        notes.push("combined with what was there, as its reducer says".to_owned());
    }
    if *is_new {
        notes.push("a new key of the state".to_owned());
    }
    notes.extend(meant.iter().map(|meant| format!("did you mean `{meant}`?")));
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    format!("  {key} is now {}{notes}", shortened(value))
}

/// A value that fits into a line or two.
fn shortened(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN {
        return text;
    }
    let beginning: String = text.chars().take(SHOWN).collect();
    format!("{beginning}…")
}
