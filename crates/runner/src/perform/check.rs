//! A step in which the project's checks are run.

use std::path::Path;
use std::sync::Arc;

use atomic_event::{
    CheckResult, Checked, CheckedBefore, Event, Report, StepError, StepResult, ToolUse,
};
use atomic_workflow::ShellCommand;
use serde_json::{Map, Value, json};

use super::git::GitTree;
use super::{Message, Outcome, Performer, told_to_stop};
use crate::gates::found_gates;
use crate::settings::Settings;
use crate::timer::told;
use crate::verify::{FileStates, Reading, Verification, on_one_line};

/// The name under which a check is reported as a tool.
pub const CHECK_TOOL: &str = "check";

/// The checks that a run uses, and the files that were read before.
pub(crate) struct Checks {
    source: CheckSource,
    known: Vec<String>,
}

/// Where checks come from.
enum CheckSource {
    /// These.
    Given(Vec<String>),
    /// Those that are found in the project.
    Found,
    /// None: those in the project are not trusted.
    LeftOut,
}

impl Checks {
    pub(crate) fn of(settings: &Settings, verification: &Verification) -> Self {
        let source = match &settings.checks {
            Some(given) => CheckSource::Given(given.clone()),
            None if settings.program.trusted => CheckSource::Found,
            None => CheckSource::LeftOut,
        };
        let known = verification.reading.as_ref().map(Reading::names).unwrap_or_default();
        Self { source, known }
    }

    /// Reads the files that define the checks, and the tests.
    pub(crate) fn read(&self, folder: &Path) -> Option<Reading> {
        Reading::of(folder, &self.commands(folder, None), &self.known)
    }

    /// The checks that were given, or those found now and those found before: a check does not go
    /// away because somebody removed what it is found by.
    fn commands(&self, folder: &Path, known: Option<&Value>) -> Vec<String> {
        match &self.source {
            CheckSource::Given(given) => return given.clone(),
            CheckSource::LeftOut => return vec![],
            CheckSource::Found => {}
        }
        let mut commands = found_gates(folder);
        let before = known.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        for command in before {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        commands
    }
}

/// Checks to run.
#[derive(Debug)]
pub(crate) struct CheckJob {
    /// Whether this only finds out how things stand before any work is done.
    pub(crate) baseline: bool,
    /// Whether there was a baseline before: the run failed and was resumed.
    pub(crate) is_again: bool,
    /// Of each check seen so far, whether it was red from the start; null for one that appeared
    /// during the run and has never been green.
    pub(crate) known: Option<Arc<Value>>,
    /// Why green checks verify nothing here.
    pub(crate) hindrance: Option<String>,
}

/// What the checks of one step came to.
#[derive(Default)]
struct Results<'k> {
    baseline: bool,
    known: Option<&'k Value>,
    checks: Vec<CheckResult>,
    failures: Vec<Value>,
    learned: Map<String, Value>,
    /// Checks that the shell could not run, with its exit codes.
    not_run: Vec<(String, i32)>,
    /// Whether there was a baseline before: the run failed and was resumed.
    is_again: bool,
    /// Whether the folder holds work that is not accepted, so that nothing is learned from it.
    is_hindered: bool,
}

/// A check that was red.
struct RedCheck {
    /// The end of its output.
    tail: String,
    code: Option<i32>,
}

/// What the shell says when a program cannot be executed, and when there is none.
const NOT_RUN: [i32; 2] = [126, 127];

impl Results<'_> {
    /// Takes in a check that was green, or red.
    fn add(&mut self, command: &str, red: Option<RedCheck>) {
        let code = red.as_ref().and_then(|red| red.code).filter(|code| NOT_RUN.contains(code));
        self.not_run.extend(code.map(|code| (command.to_owned(), code)));
        let tail = red.map(|red| red.tail);
        let was_red = self.known.and_then(|known| known.get(command)).and_then(Value::as_bool);
        let green = tail.is_none();
        let before = match was_red {
            Some(false) => CheckedBefore::Green,
            Some(true) => CheckedBefore::Red,
            None => CheckedBefore::New,
        };
        self.checks.push(CheckResult { command: command.to_owned(), green, before });
        let may_be_red = self.baseline || was_red == Some(true);
        let stays_red = !green && may_be_red;
        if let Some(tail) = tail.filter(|_| !may_be_red) {
            self.failures.push(json!({"command": command, "tail": tail}));
        }
        if self.is_again {
            // A check that was green must be green again: only a failed task can have broken it.
            if !self.is_hindered && was_red != Some(false) && was_red != Some(stays_red) {
                self.learned.insert(command.to_owned(), stays_red.into());
            }
        } else if !green && was_red.is_none() && !self.baseline {
            // It has to become green, and until then it verifies nothing.
            self.learned.insert(command.to_owned(), Value::Null);
        } else if was_red != Some(stays_red) {
            self.learned.insert(command.to_owned(), stays_red.into());
        }
    }

    /// Names the checks that are red before any work is done, or before a failed run goes on.
    fn red_from_start(&self) -> Vec<String> {
        let is_run = |command: &str| self.not_run.iter().all(|(other, _)| other != command);
        let red = self.checks.iter().filter(|check| !check.green && is_run(&check.command));
        // A check that was green was broken by a failed task, which is worked on again.
        let red = red.filter(|check| !self.is_again || check.before != CheckedBefore::Green);
        let red: Vec<String> =
            red.map(|check| format!("`{}`", on_one_line(&check.command))).collect();
        let mut notes = vec![];
        if !red.is_empty() {
            let red_since = match (self.is_again, red.len()) {
                (false, 1) => "fails before any work is done",
                (false, _) => "fail before any work is done",
                (true, 1) => "still fails",
                (true, _) => "still fail",
            };
            notes.push(format!(
                "{} {red_since}, and so cannot verify a task until fixed.",
                red.join(", ")
            ));
        }
        let not_run = self.not_run.iter().map(|(command, code)| {
            let why = if *code == 127 { "not found" } else { "not executable" };
            let command = on_one_line(command);
            format!(
                "`{command}` cannot be run: a program is {why} (exit code {code}). No task can be \
                 verified by it until fixed."
            )
        });
        notes.extend(not_run);
        notes
    }
}

/// How much of a check's output is kept.
const TAIL: usize = 4_000;

impl Performer {
    /// Runs every check, alone in the project's files. `known` says of each check seen so far
    /// whether it was red before any work was done; only such a one may be red.
    pub(super) async fn check(&mut self, job: CheckJob) -> Outcome {
        let mut orders = self.orders.clone();
        let tree = Arc::clone(&self.tree);
        let _alone = tokio::select! {
            permit = tree.write() => permit,
            order = told_to_stop(&mut orders) => return self.outcome_of(&order),
        };
        let CheckJob { baseline, is_again, known, hindrance } = job;
        let known = known.as_deref();
        let commands = self.checks.commands(&self.reach.workspace, known);
        if baseline {
            self.say_what_is_missing(&commands).await;
        }
        let GitTree { tree, commit } = if commands.is_empty() || baseline {
            GitTree::default()
        } else {
            self.git_tree().await
        };
        // A file that the checks themselves write is no task's change.
        let states = self.read_files(None).await;
        let is_hindered = hindrance.is_some();
        let mut results = Results { baseline, known, is_again, is_hindered, ..Results::default() };
        for command in &commands {
            match self.run_check(command).await {
                Ok(result) => results.add(command, result.err()),
                Err(outcome) => return outcome,
            }
        }
        if baseline {
            for text in results.red_from_start() {
                self.say(Event::Noted { text }).await;
            }
        }
        let Results { checks, failures, learned, .. } = results;
        let is_first = baseline && !is_again;
        self.read_files(states.map(|states| (states, is_first))).await;
        let report = Report::Checked(Checked {
            baseline,
            checks,
            hindrance,
            tree,
            commit,
            ..Checked::default()
        });
        let (step, attempt) = (self.step.clone(), self.attempt);
        // What the run decides next rests on it.
        if !self.confirm(Event::StepReported { step, attempt, report }).await {
            return Outcome::Stopped;
        }
        let output = json!({"checks": commands, "failures": failures});
        let mut result = StepResult { output, ..StepResult::default() };
        if !learned.is_empty() {
            result = result.set("redGates", Value::Object(learned));
        }
        Outcome::Finished(result)
    }

    /// Says that nothing will be checked, and why.
    async fn say_what_is_missing(&self, commands: &[String]) {
        let left_out = self.left_out();
        let text = if !left_out.is_empty() {
            format!(
                "Checks found in the project are not run, because the repository is not trusted: \
                 {}. Nothing but the agents' own word says that a task is done.",
                left_out.join(", ")
            )
        } else if commands.is_empty() {
            "No checks were found (cargo test, npm test, pytest, go test, make test) and none were \
             given with --check. Until there are some, nothing but the agents' own word says that \
             a task is done."
                .to_owned()
        } else {
            return;
        };
        self.say(Event::Noted { text }).await;
    }

    /// Reads the files that define the checks, and the tests.
    pub(super) async fn read_project(&self) {
        self.read_files(None).await;
    }

    /// The same, and returns when files that define checks were changed last. `before` is what an
    /// earlier reading returned, when checks ran since, and whether no work was done before these.
    async fn read_files(&self, before: Option<(FileStates, bool)>) -> Option<FileStates> {
        let reading = self.reading(before).await?;
        let states = reading.states();
        let (step, attempt) = (self.step.clone(), self.attempt);
        // The run may be over; then nobody needs to know.
        let _ = self.messages.send(Message::Read { step, attempt, reading }).await;
        Some(states)
    }

    /// Reads the files. `before` is as above.
    pub(super) async fn reading(&self, before: Option<(FileStates, bool)>) -> Option<Box<Reading>> {
        let (checks, folder) = (Arc::clone(&self.checks), self.reach.workspace.clone());
        let read = move || {
            let mut reading = checks.read(&folder)?;
            if let Some((before, is_baseline)) = before {
                reading.find_written(&before, is_baseline);
            }
            Some(Box::new(reading))
        };
        tokio::task::spawn_blocking(read).await.ok()?
    }

    /// The checks that are found and not run.
    fn left_out(&self) -> Vec<String> {
        match self.checks.source {
            CheckSource::LeftOut => found_gates(&self.reach.workspace),
            CheckSource::Given(_) | CheckSource::Found => vec![],
        }
    }

    /// Runs one check: green, or red.
    async fn run_check(&mut self, command: &str) -> Result<Result<(), RedCheck>, Outcome> {
        let checked = ShellCommand::verbatim(command);
        let run = self.run_in_shell(&checked, Some(self.times.turn), TAIL).await;
        let finished = run.map_err(|error| {
            let message = format!("the check `{command}` could not be run: {error}");
            Outcome::Failed(StepError::new("check", message))
        })?;
        let Some(status) = finished.status else {
            let order = self.orders.borrow().clone();
            if order != super::Order::Work {
                return Err(self.outcome_of(&order));
            }
            let limit = told(self.times.turn);
            let tail = format!("{}\nit took longer than {limit} and was stopped", finished.tail);
            self.report(command, false).await;
            return Ok(Err(RedCheck { tail, code: None }));
        };
        self.report(command, status.success()).await;
        if status.success() {
            return Ok(Ok(()));
        }
        Ok(Err(RedCheck { tail: finished.tail, code: status.code() }))
    }

    async fn report(&self, command: &str, ok: bool) {
        let tool = ToolUse::new(CHECK_TOOL, command, ok);
        let (step, attempt) = (self.step.clone(), self.attempt);
        self.say(Event::StepReported { step, attempt, report: Report::ToolUsed(tool) }).await;
    }
}
