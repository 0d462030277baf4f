//! A step in which the project's checks are run.

use atomic_event::{Event, Report, StepError, StepResult, ToolUse};
use atomic_workflow::ShellCommand;
use serde_json::{Map, Value, json};

use super::{Outcome, Performer, told_to_stop};
use crate::gates::found_gates;
use crate::settings::Settings;
use crate::timer::told;

/// The name under which a check is reported as a tool.
pub const CHECK_TOOL: &str = "check";

/// The checks that a run uses.
pub(super) enum Checks {
    /// These.
    Given(Vec<String>),
    /// Those that are found in the project.
    Found,
    /// None: those in the project are not trusted.
    LeftOut,
}

impl Checks {
    pub(super) fn of(settings: &Settings) -> Self {
        match &settings.checks {
            Some(given) => Self::Given(given.clone()),
            None if settings.program.trusted => Self::Found,
            None => Self::LeftOut,
        }
    }
}

/// How much of a check's output is kept.
const TAIL: usize = 4_000;

impl Performer {
    /// Runs every check, alone in the project's files. `known` says of each check seen so far
    /// whether it was red before any work was done; only such a one may be red.
    pub(super) async fn check(&mut self, baseline: bool, known: Option<&Value>) -> Outcome {
        let mut orders = self.orders.clone();
        let tree = std::sync::Arc::clone(&self.tree);
        let _alone = tokio::select! {
            permit = tree.write() => permit,
            order = told_to_stop(&mut orders) => return self.outcome_of(&order),
        };
        let commands = self.commands(known);
        let left_out = self.left_out();
        if baseline && !left_out.is_empty() {
            let text = format!(
                "Checks found in the project are not run, because the repository is not trusted: \
                 {}. Nothing but the agents' own word says that a task is done.",
                left_out.join(", ")
            );
            self.say(Event::Noted { text }).await;
        } else if commands.is_empty() && baseline {
            let text = "No checks were found (cargo test, npm test, pytest, go test, make test) and \
                        none were given with --check. Until there are some, nothing but the agents' \
                        own word says that a task is done.";
            self.say(Event::Noted { text: text.to_owned() }).await;
        }
        let mut failures = vec![];
        let mut learned = Map::new();
        for command in &commands {
            let was_red = known.and_then(|known| known.get(command)).and_then(Value::as_bool);
            let tail = match self.run_check(command).await {
                Ok(result) => result.err(),
                Err(outcome) => return outcome,
            };
            let may_be_red = baseline || was_red == Some(true);
            let stays_red = tail.is_some() && may_be_red;
            if let Some(tail) = tail.filter(|_| !may_be_red) {
                failures.push(json!({"command": command, "tail": tail}));
            }
            if was_red != Some(stays_red) {
                learned.insert(command.clone(), stays_red.into());
            }
        }
        let output = json!({"checks": commands, "failures": failures});
        let mut result = StepResult { output, ..StepResult::default() };
        if !learned.is_empty() {
            result = result.set("redGates", Value::Object(learned));
        }
        Outcome::Finished(result)
    }

    /// The checks that were given, or those found now and those found before: a check does not go
    /// away because somebody removed what it is found by.
    fn commands(&self, known: Option<&Value>) -> Vec<String> {
        match &self.checks {
            Checks::Given(given) => return given.clone(),
            Checks::LeftOut => return vec![],
            Checks::Found => {}
        }
        let mut commands = found_gates(&self.reach.workspace);
        let before = known.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        for command in before {
            if !commands.contains(command) {
                commands.push(command.clone());
            }
        }
        commands
    }

    /// The checks that are found and not run.
    fn left_out(&self) -> Vec<String> {
        match self.checks {
            Checks::LeftOut => found_gates(&self.reach.workspace),
            Checks::Given(_) | Checks::Found => vec![],
        }
    }

    /// Runs one check: green, or red with the end of its output.
    async fn run_check(&mut self, command: &str) -> Result<Result<(), String>, Outcome> {
        let checked = ShellCommand::verbatim(command);
        let run = self.run_in_shell(&checked, Some(self.timeout), TAIL).await;
        let finished = run.map_err(|error| {
            let message = format!("the check `{command}` could not be started: {error}");
            Outcome::Failed(StepError::new("check", message))
        })?;
        let Some(status) = finished.status else {
            let order = self.orders.borrow().clone();
            if order != super::Order::Work {
                return Err(self.outcome_of(&order));
            }
            let limit = told(self.timeout);
            let tail = format!("{}\nit took longer than {limit} and was stopped", finished.tail);
            self.report(command, false).await;
            return Ok(Err(tail));
        };
        self.report(command, status.success()).await;
        Ok(if status.success() { Ok(()) } else { Err(finished.tail) })
    }

    async fn report(&self, command: &str, ok: bool) {
        let tool = ToolUse::new(CHECK_TOOL, command, ok);
        let (step, attempt) = (self.step.clone(), self.attempt);
        self.say(Event::StepReported { step, attempt, report: Report::ToolUsed(tool) }).await;
    }
}
