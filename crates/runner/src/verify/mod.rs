//! Which tasks are verified: folded from facts, so that every file and every front end says the same.
//!
//! A task is verified when a check that was green before it was run by the engine on a tree that
//! holds this task's work and accepted work only, and was green. A task that brings a check, or
//! changes what defines one, is counted apart.

mod command;
mod definition;
mod named;
mod reading;
mod test_file;
mod unproven;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use atomic_event::{
    CheckResult, Checked, CheckedBefore, Event, ProjectRead, Report, Started, StepId, TestFile,
    Verified,
};
use atomic_graph::{Graph, Kind};
use atomic_session::{
    ChangedBranch, ChangedCheck, CheckSummary, RemovedTest, TaskCheck, TaskVerdict, VerifiedCount,
};
use atomic_workflow::Action;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use reading::{FileStates, Reading};
use unproven::Unproven;
pub(crate) use words::on_one_line;
pub use words::verified_line;

/// What is known about the checks of a run. A snapshot without one of the fields is not used: the
/// version that wrote it judged by other rules, and the facts say everything.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Verification {
    /// Whether the workflow runs checks at all.
    pub(crate) is_on: bool,
    /// The files as they were read last.
    pub(crate) reading: Option<Reading>,
    /// The branch that was checked out when the run began.
    branch: Option<String>,
    tasks: BTreeMap<String, TaskState>,
    unproven: Unproven,
    /// Whether the checks have run before any work was done.
    pub(crate) has_baseline: bool,
    red_from_start: Vec<String>,
    changed_checks: Vec<ChangedCheck>,
    removed_tests: BTreeMap<String, Removed>,
    changed_branch: Option<ChangedBranch>,
}

/// What is known about one task.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct TaskState {
    /// Whether no check speaks against the newest work on it.
    is_accepted: bool,
    verdict: TaskVerdict,
    /// The checks that the verdict rests on, or why there is none.
    by: Vec<String>,
    why_not: Option<String>,
    tree: Option<String>,
    commit: Option<String>,
    /// The step that ran the checks.
    step: Option<StepId>,
}

/// Tests that a task took away.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Removed {
    task: Option<String>,
    what: String,
    /// The file before.
    was: TestFile,
}

/// Whether some node of a graph runs checks.
pub(crate) fn runs_checks(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| {
        let is_check = matches!(&node.kind, Kind::Work { action, .. }
            if matches!(Action::deserialize(action), Ok(Action::Gates(_))));
        is_check || node.inner().iter().any(|(_, inner)| runs_checks(inner))
    })
}

impl Verification {
    /// Takes in a fact.
    pub(crate) fn learn(&mut self, event: &Event) {
        if let Event::SessionCreated(created) = event {
            self.learn_graph(&created.graph);
        } else if let Event::SessionResumed(resumed) = event {
            if let Some(upgraded) = &resumed.upgraded {
                self.learn_graph(&upgraded.graph);
            }
            if let Some(read) = &resumed.read {
                self.learn_reading(None, read);
            }
        } else if let Event::StepStarted(started) = event {
            self.learn_start(started);
        } else if let Event::StepReported { step, report, .. } = event {
            if let Report::ProjectRead(read) = report {
                self.learn_reading(step.item().as_ref(), read);
            } else if let Report::Checked(checked) = report {
                self.learn_checks(step, checked);
            }
        }
    }

    fn learn_graph(&mut self, graph: &Value) {
        self.is_on = Graph::deserialize(graph).is_ok_and(|graph| runs_checks(&graph));
    }

    /// A task that an agent works on again has to be checked again.
    fn learn_start(&mut self, started: &Started) {
        if !self.is_on || started.agent.is_none() {
            return;
        }
        let Some(item) = started.step.item() else { return };
        if self.reading.is_none() {
            self.unproven.learn_unread();
        }
        self.tasks.insert(item, TaskState::default());
    }

    /// Takes in a reading: what has changed is the doing of a task, or of the user, the planner or a
    /// reviewer.
    fn learn_reading(&mut self, item: Option<&String>, read: &ProjectRead) {
        if read.first || self.reading.is_none() {
            self.branch = read.branch.clone().filter(|branch| !branch.is_empty());
        } else {
            self.learn_branch(item, read);
            self.learn_definitions(item, read);
            self.learn_tests(item, read);
        }
        self.reading.get_or_insert_default().apply(read);
    }

    fn learn_branch(&mut self, item: Option<&String>, read: &ProjectRead) {
        let Some(to) = &read.branch else { return };
        match self.branch.clone() {
            // A repository that was made during the run.
            None => self.branch = Some(to.clone()).filter(|to| !to.is_empty()),
            Some(from) if from == *to => self.changed_branch = None,
            Some(from) => {
                let (to, task) = (to.clone(), item.cloned());
                self.changed_branch = Some(ChangedBranch { from, to, task });
            }
        }
    }

    fn learn_definitions(&mut self, item: Option<&String>, read: &ProjectRead) {
        let files = self.changed_definitions(read);
        for file in &files {
            let changed = ChangedCheck { file: file.clone(), task: item.cloned() };
            if !self.changed_checks.contains(&changed) {
                self.changed_checks.push(changed);
            }
        }
        if let Some(known) = &self.reading {
            self.unproven.learn_definitions(&known.definitions, read, &files);
        }
    }

    /// The files that define checks and were changed. Where a project has more files than are read,
    /// one that is read for the first time may always have been there.
    fn changed_definitions(&self, read: &ProjectRead) -> Vec<String> {
        let is_changed = |file: &&String| match &self.reading {
            Some(before) if before.partial => {
                let is_always_read = !file.contains('/') || file.starts_with("..");
                before.definitions.contains_key(*file) || is_always_read
            }
            Some(_) | None => true,
        };
        read.definitions.keys().filter(is_changed).cloned().collect()
    }

    fn learn_tests(&mut self, item: Option<&String>, read: &ProjectRead) {
        let Some(before) = &self.reading else { return };
        for (file, now) in &read.tests {
            let was = match (self.removed_tests.get(file), before.tests.get(file)) {
                (Some(removed), _) => removed.was.clone(),
                (None, Some(was)) => was.clone(),
                (None, None) => continue,
            };
            match test_file::lost(&was, now.as_ref()).filter(|_| !is_moved(file, &was, read)) {
                Some(what) => {
                    let removed = Removed { task: item.cloned(), what: what.to_owned(), was };
                    self.removed_tests.insert(file.clone(), removed);
                }
                None => drop(self.removed_tests.remove(file)),
            }
        }
    }

    fn learn_checks(&mut self, step: &StepId, checked: &Checked) {
        if checked.baseline && !self.has_baseline {
            self.has_baseline = true;
            let red = checked.checks.iter().filter(|check| !check.green);
            self.red_from_start = red.map(|check| check.command.clone()).collect();
        }
        let Some(item) = step.item() else { return };
        let task = self.tasks.entry(item).or_default();
        (task.tree, task.commit) = (checked.tree.clone(), checked.commit.clone());
        task.step = Some(step.clone());
        let found = match &self.changed_branch {
            Some(branch) => Err(words::on_another_branch(branch)),
            None => verdict(checked, &self.unproven),
        };
        task.is_accepted =
            checked.checks.iter().all(|check| check.green || check.before == CheckedBefore::Red);
        let is_alone = checked.hindrance.is_none() && self.changed_branch.is_none();
        // The work on a task is accepted together with that of the tasks that mend it.
        let is_proved = task.is_accepted && is_alone && checked.mends.is_none();
        self.unproven.learn_checks(checked, is_proved);
        (task.verdict, task.by, task.why_not) = match found {
            Ok((verdict, by)) => (verdict, by, None),
            Err(why) => (TaskVerdict::None, vec![], Some(why)),
        };
    }

    /// Whether an agent has worked on a task, and nothing has accepted that work.
    pub(crate) fn is_unaccepted(&self, item: &str) -> bool {
        self.tasks.get(item).is_some_and(|task| !task.is_accepted)
    }

    /// Says what the user has changed while the run was stopped.
    pub(crate) fn changed_by_user(&self, read: &ProjectRead) -> Option<Event> {
        let branch = read.branch.iter().map(|to| words::checked_out(to));
        let files = self.changed_definitions(read).into_iter();
        let files = files.map(|file| words::named(&file));
        let tests = self.lost_tests(read).into_iter();
        let tests = tests.map(|(file, what)| format!("{} ({what})", words::named(&file)));
        let changed: Vec<String> = branch.chain(files).chain(tests).collect();
        let text = format!("Changed since the run stopped: {}.", words::listed(&changed));
        (!changed.is_empty()).then_some(Event::Noted { text })
    }

    /// Files whose tests are fewer than before, with what became of them.
    fn lost_tests(&self, read: &ProjectRead) -> Vec<(String, &'static str)> {
        let Some(before) = &self.reading else { return vec![] };
        let lost = |(file, now): (&String, &Option<TestFile>)| {
            let was = before.tests.get(file)?;
            let what = test_file::lost(was, now.as_ref()).filter(|_| !is_moved(file, was, read))?;
            Some((file.clone(), what))
        };
        read.tests.iter().filter_map(lost).collect()
    }

    /// The verdict on the task that a step checked.
    pub(crate) fn verdict_of(&self, step: &StepId) -> Option<TaskVerdict> {
        let task = self.tasks.get(&step.item()?)?;
        (task.step.as_ref() == Some(step)).then_some(task.verdict)
    }

    /// How many tasks of a list are verified. Tasks that were completed before the run began are
    /// not this run's.
    pub(crate) fn counted(&self, tasks: &[TaskDone]) -> Verified {
        let own_work = || tasks.iter().filter(|task| !task.was_done_before);
        let mut verified = Verified { total: own_work().count(), ..Verified::default() };
        let mut by = BTreeSet::new();
        for task in own_work().filter(|task| task.is_done) {
            let Some(state) = self.tasks.get(&task.id) else { continue };
            match state.verdict {
                TaskVerdict::Checked => {
                    verified.checked += 1;
                    by.extend(state.by.iter().cloned());
                }
                TaskVerdict::Own => verified.own += 1,
                TaskVerdict::None => {}
            }
        }
        verified.by = by.into_iter().collect();
        verified
    }

    /// What a person is told when the run has ended; nothing for a workflow without checks.
    pub(crate) fn ended(&self, tasks: &[TaskDone]) -> Option<EndedChecks> {
        let ended = || EndedChecks { verified: self.counted(tasks), remarks: self.remarks() };
        self.is_on.then(ended)
    }

    /// What `session.json` says about checks; nothing for a workflow without any.
    pub(crate) fn summary(&self, tasks: &[TaskDone]) -> Option<CheckSummary> {
        if !self.is_on {
            return None;
        }
        let Verified { checked, own, total, by } = self.counted(tasks);
        let removed = self.removed_tests.iter().map(|(file, removed)| RemovedTest {
            file: file.clone(),
            what: removed.what.clone(),
            task: removed.task.clone(),
        });
        let per_task = tasks.iter().filter(|task| task.is_done && !task.was_done_before);
        let per_task = per_task.map(|task| {
            let state = self.tasks.get(&task.id).cloned().unwrap_or_default();
            let TaskState { verdict, tree, commit, .. } = state;
            (task.id.clone(), TaskCheck { verified: verdict, tree, commit })
        });
        Some(CheckSummary {
            verified: VerifiedCount { checked, own, total },
            verified_by: by,
            red_from_start: self.red_from_start.clone(),
            changed_checks: self.changed_checks.clone(),
            removed_tests: removed.collect(),
            changed_branch: self.changed_branch.clone(),
            task_checks: per_task.collect(),
        })
    }
}

/// What the checks of a run that came to a stop have verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedChecks {
    /// How many tasks.
    pub verified: Verified,
    /// Lines that name what a person should look at, such as removed tests.
    pub remarks: Vec<String>,
}

/// A task of the list, as far as counting goes.
#[derive(Clone, Debug)]
pub(crate) struct TaskDone {
    pub(crate) id: String,
    pub(crate) is_done: bool,
    /// Whether the task was completed before the run began.
    pub(crate) was_done_before: bool,
}

/// Whether a file with the same text is somewhere else now, where its tests are still found.
fn is_moved(file: &str, was: &TestFile, read: &ProjectRead) -> bool {
    read.tests.iter().any(|(name, now)| {
        now.as_ref().is_some_and(|now| now.hash == was.hash)
            && test_file::is_collected_as(Path::new(file), Path::new(name))
    })
}

/// What checks say about a task, and which; or why they say nothing.
fn verdict(checked: &Checked, unproven: &Unproven) -> Result<(TaskVerdict, Vec<String>), String> {
    if let Some(hindrance) = &checked.hindrance {
        return Err(hindrance.clone());
    }
    let checks = &checked.checks;
    if checks.is_empty() {
        return Err("there is no check".to_owned());
    }
    if let Some(red) =
        checks.iter().find(|check| !check.green && check.before != CheckedBefore::Red)
    {
        return Err(format!("`{}` fails", on_one_line(&red.command)));
    }
    let commands = |before: &[CheckedBefore]| -> Vec<String> {
        let is_one = |check: &&CheckResult| check.green && before.contains(&unproven.before(check));
        let green = checks.iter().filter(is_one);
        green.map(|check| check.command.clone()).collect()
    };
    let changes_checks = unproven.has_definitions();
    let green_before = commands(&[CheckedBefore::Green]);
    if !changes_checks && !green_before.is_empty() {
        return Ok((TaskVerdict::Checked, green_before));
    }
    let mut own = commands(&[CheckedBefore::Green, CheckedBefore::New]);
    if changes_checks {
        own = commands(&[CheckedBefore::Green, CheckedBefore::New, CheckedBefore::Red]);
    }
    if own.is_empty() {
        return Err("no check was green before the task".to_owned());
    }
    Ok((TaskVerdict::Own, own))
}

#[cfg(test)]
mod reading_tests;
#[cfg(test)]
mod tests;
