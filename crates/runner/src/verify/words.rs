//! Sentences about what is verified.

use atomic_event::{Event, ProjectRead, StepId, Verified};
use atomic_session::{ChangedBranch, TaskVerdict};

use super::{Verification, test_file};

/// The largest number of files that a sentence names.
const NAMED: usize = 10;

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
    let mut line = format!("Completed: {checked} of {total} {tasks} verified{by}");
    match own {
        0 => {}
        1 => line += ", 1 by its own check",
        own => line += &format!(", {own} by their own checks"),
    }
    let rest = total.saturating_sub(checked + own);
    if rest > 0 {
        line += &format!(", {rest} not verified");
    }
    line
}

fn quoted(commands: &[String]) -> String {
    let quoted: Vec<String> = commands.iter().map(|command| format!("\"{command}\"")).collect();
    match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}

pub(super) fn on_another_branch(ChangedBranch { from, to, .. }: &ChangedBranch) -> String {
    format!("{} is checked out, and the run began on {from}", named_branch(to))
}

fn named_branch(name: &str) -> String {
    if name.is_empty() { "no branch".to_owned() } else { format!("branch {name}") }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
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
            task.as_ref().map_or_else(String::new, |task| format!(" ({task})"))
        };
        let changed = self.changed_checks.iter();
        let changed: Vec<_> = changed.map(|it| format!("{}{}", it.file, of(&it.task))).collect();
        if !changed.is_empty() {
            lines.push(format!("Changed checks: {}", listed(&changed)));
        }
        let removed = self.removed_tests.iter();
        let removed: Vec<_> =
            removed.map(|(file, it)| format!("{file} {}{}", it.what, of(&it.task))).collect();
        if !removed.is_empty() {
            lines.push(format!("Removed tests: {}", listed(&removed)));
        }
        if let Some(branch) = &self.changed_branch {
            let (to, from) = (named_branch(&branch.to), &branch.from);
            lines.push(format!("Changed branch: {to} instead of {from}{}", of(&branch.task)));
        }
        lines
    }

    /// What a reading shows that a person should know at once.
    pub(crate) fn notes(&self, step: &StepId, read: &ProjectRead) -> Vec<Event> {
        let Some(before) = self.reading.as_ref().filter(|_| !read.first) else {
            let text = "The project has more files than Atomic reads; removed tests and changed \
                        checks in the rest of them are not noticed.";
            return noted(read.partial.then(|| text.to_owned()));
        };
        let who = step.item().map_or_else(|| step.node().to_owned(), |item| format!("Task {item}"));
        let mut notes = vec![];
        if let (Some(from), Some(to)) = (&self.branch, &read.branch)
            && from != to
        {
            let to = named_branch(to);
            notes.push(format!("{who} left the branch {from}: now {to} is checked out."));
        }
        let files: Vec<String> = read.definitions.keys().cloned().collect();
        if !files.is_empty() {
            notes.push(format!("{who} changed what defines the checks: {}.", listed(&files)));
        }
        let removed: Vec<String> = read
            .tests
            .iter()
            .filter_map(|(file, now)| {
                let was = before.tests.get(file)?;
                let what = test_file::lost(was, now.as_ref())?;
                (!super::is_moved(was, read)).then(|| format!("{file} ({what})"))
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
