//! Sentences about what is verified.

use std::collections::BTreeMap;

use atomic_event::{Event, ProjectRead, StepId, Verified};
use atomic_registry::project;
use atomic_session::{ChangedBranch, TaskVerdict};

use super::{Verification, test_file};
use crate::commit::DETACHED;

/// The largest number of files that a sentence names.
const NAMED: usize = 10;

/// The longest command in a sentence, in characters.
const LONGEST: usize = 80;

/// The longest name of a file or branch in a sentence, in characters.
const LONGEST_NAME: usize = 200;

/// The last line of a completed run whose workflow runs checks.
pub fn verified_line(verified: &Verified) -> String {
    let Verified { checked, own, total, by } = verified;
    if checked + own == 0 {
        return "Completed, not verified".to_owned();
    }
    let tasks = if *total == 1 { "task" } else { "tasks" };
    let by = match by.as_slice() {
        [] => String::new(),
        by => format!(" by {}", quoted(by)),
    };
    let by_own = if *own == 1 { "by its own check" } else { "by their own checks" };
    let mut line = match (checked, own) {
        (0, own) => format!("Completed: {own} of {total} {tasks} verified {by_own}"),
        (checked, 0) => format!("Completed: {checked} of {total} {tasks} verified{by}"),
        (checked, own) => {
            format!("Completed: {checked} of {total} {tasks} verified{by}, {own} {by_own}")
        }
    };
    let rest = total.saturating_sub(checked + own);
    if rest > 0 {
        line += &format!(", {rest} not verified");
    }
    line
}

/// Text from a command or the project on one line: a worker can give a file a name that would begin
/// a line of its own, or act on the terminal.
pub(crate) fn on_one_line(text: &str) -> String {
    cut(text, LONGEST)
}

pub(super) fn named(text: &str) -> String {
    cut(text, LONGEST_NAME)
}

fn cut(text: &str, longest: usize) -> String {
    let line = project::on_one_line(text);
    match line.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

fn quoted(commands: &[String]) -> String {
    let quoted: Vec<String> =
        commands.iter().map(|command| format!("\"{}\"", on_one_line(command))).collect();
    match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}

pub(super) fn on_another_branch(ChangedBranch { from, to, .. }: &ChangedBranch) -> String {
    format!("{}, and the run began on {}", checked_out(to), named(from))
}

/// Says which branch is checked out; an empty name where the repository is gone.
pub(super) fn checked_out(branch: &str) -> String {
    match branch {
        "" => "the git repository is gone".to_owned(),
        DETACHED => "no branch is checked out (detached HEAD)".to_owned(),
        branch => format!("branch {} is checked out", named(branch)),
    }
}

pub(super) fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(NAMED).cloned().collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Verification {
    /// The line of `progress.txt` about a completed task.
    pub(crate) fn task_line(&self, item: &str) -> Option<String> {
        if !self.is_on {
            return None;
        }
        let Some(task) = self.tasks.get(item) else {
            return Some("Verified: no".to_owned());
        };
        let why_not = task.why_not.as_deref().unwrap_or("no check was run");
        Some(match task.verdict {
            TaskVerdict::Checked => format!("Verified: by {}", quoted(&task.by)),
            TaskVerdict::Own => format!("Verified: by its own check, {}", quoted(&task.by)),
            TaskVerdict::None => format!("Verified: no, {why_not}"),
        })
    }

    /// Lines that name what a person should look at: checks that were red from the start, changed
    /// definitions, removed tests, another branch.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut lines = vec![];
        if !self.red_from_start.is_empty() {
            lines.push(format!("Red from the start: {}", quoted(&self.red_from_start)));
        }
        let of = |task: &Option<String>| {
            task.as_ref().map_or_else(String::new, |task| format!(" ({})", named(task)))
        };
        let mut by_file: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for change in &self.changed_checks {
            by_file.entry(&change.file).or_default().extend(change.task.as_deref().map(named));
        }
        let changed = by_file.into_iter().map(|(file, tasks)| match tasks.as_slice() {
            [] => named(file),
            tasks => format!("{} ({})", named(file), tasks.join(", ")),
        });
        let changed: Vec<_> = changed.collect();
        if !changed.is_empty() {
            lines.push(format!("Changed checks: {}", listed(&changed)));
        }
        let removed = self.removed_tests.iter();
        let removed: Vec<_> = removed
            .map(|(file, it)| format!("{} {}{}", named(file), it.what, of(&it.task)))
            .collect();
        if !removed.is_empty() {
            lines.push(format!("Removed tests: {}", listed(&removed)));
        }
        if let Some(branch) = &self.changed_branch {
            let to = match branch.to.as_str() {
                "" => "no git repository".to_owned(),
                DETACHED => "no branch (detached HEAD)".to_owned(),
                to => format!("branch {}", named(to)),
            };
            let from = named(&branch.from);
            lines.push(format!("Changed branch: {to} instead of {from}{}", of(&branch.task)));
        }
        lines
    }

    /// What a reading shows that a person should know at once.
    pub(crate) fn notes(&self, step: &StepId, read: &ProjectRead) -> Vec<Event> {
        let was_partial = self.reading.as_ref().is_some_and(|before| before.partial);
        let text = "The project has more files than Atomic reads; removed tests and changed \
                    checks in the rest of them are not noticed.";
        let partial = (read.partial && !was_partial).then(|| text.to_owned());
        let Some(before) = self.reading.as_ref().filter(|_| !read.first) else {
            return noted(partial);
        };
        let who = step
            .item()
            .map_or_else(|| step.node().to_owned(), |item| format!("Task {}", named(&item)));
        let mut notes = vec![];
        notes.extend(partial);
        if let (Some(from), Some(to)) = (&self.branch, &read.branch)
            && from != to
        {
            let (from, to) = (named(from), checked_out(to));
            notes.push(format!("{who} left the branch {from}: now {to}."));
        }
        let files = self.changed_definitions(read);
        let files: Vec<String> = files.iter().map(|file| named(file)).collect();
        if !files.is_empty() {
            notes.push(format!("{who} changed what defines the checks: {}.", listed(&files)));
        }
        let removed: Vec<String> = read
            .tests
            .iter()
            .filter_map(|(file, now)| {
                let was = before.tests.get(file)?;
                let what = test_file::lost(was, now.as_ref())?;
                (!super::is_moved(file, was, read)).then(|| format!("{} ({what})", named(file)))
            })
            .collect();
        if !removed.is_empty() {
            notes.push(format!("{who} took away tests: {}.", listed(&removed)));
        }
        noted(notes)
    }
}

fn noted(texts: impl IntoIterator<Item = String>) -> Vec<Event> {
    texts.into_iter().map(|text| Event::Noted { text }).collect()
}
