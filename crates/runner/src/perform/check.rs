//! A step in which the project's checks are run.

use atomic_backend::guard::Job;
use atomic_event::{Event, Report, StepError, StepResult, ToolUse};
use serde_json::{Map, Value, json};

use super::{Outcome, Performer, told_to_stop};
use crate::gates::found_gates;

/// How much of a check's output is kept.
const TAIL: usize = 4_000;

impl Performer {
    /// Runs every check, alone in the project's files. Only a check that is red and was not red
    /// before any work was done is a failure.
    pub(super) async fn check(&mut self, baseline: bool, red: Option<&Value>) -> Outcome {
        let mut orders = self.orders.clone();
        let tree = std::sync::Arc::clone(&self.tree);
        let _alone = tokio::select! {
            permit = tree.write() => permit,
            order = told_to_stop(&mut orders) => return self.outcome_of(&order),
        };
        let commands = self.checks.clone().unwrap_or_else(|| found_gates(&self.workspace));
        if commands.is_empty() && baseline {
            let text = "No checks were found (cargo test, npm test, pytest, go test, make test) and \
                        none were given with --check. Until there are some, nothing but the agents' \
                        own word says that a task is done.";
            self.say(Event::Noted { text: text.to_owned() }).await;
        }
        let mut failures = vec![];
        let mut now_red = Map::new();
        for command in &commands {
            let was_red = red.and_then(|red| red.get(command)).and_then(Value::as_bool);
            let green = match self.run_check(command).await {
                Ok(Ok(())) => true,
                Ok(Err(tail)) => {
                    if !baseline && was_red != Some(true) {
                        failures.push(json!({"command": command, "tail": tail}));
                    }
                    false
                }
                Err(outcome) => return outcome,
            };
            // Once green, a check has to stay green.
            if green && was_red == Some(true) || baseline && !green {
                now_red.insert(command.clone(), (!green).into());
            }
        }
        let output = json!({"checks": commands, "failures": failures});
        let mut result = StepResult { output, ..StepResult::default() };
        if !now_red.is_empty() {
            result = result.set("redGates", Value::Object(now_red));
        }
        Outcome::Finished(result)
    }

    /// Runs one check: green, or red with the end of its output.
    async fn run_check(&mut self, command: &str) -> Result<Result<(), String>, Outcome> {
        let job = Job {
            argv: vec!["sh".to_owned(), "-c".to_owned(), command.to_owned()],
            cwd: self.workspace.clone(),
            marker: self.marker.clone(),
            ..Job::default()
        };
        let mut orders = self.orders.clone();
        let cancelled = async {
            told_to_stop(&mut orders).await;
        };
        let run = self.guard.run(&job, Some(self.timeout), TAIL, cancelled).await;
        let finished = run.map_err(|error| {
            let message = format!("the check `{command}` could not be started: {error}");
            Outcome::Failed(StepError::new("check", message))
        })?;
        let Some(status) = finished.status else {
            let order = self.orders.borrow().clone();
            if order != super::Order::Work {
                return Err(self.outcome_of(&order));
            }
            let secs = self.timeout.as_secs();
            let tail = format!("{}\nit took longer than {secs} s and was stopped", finished.tail);
            self.report(command, false).await;
            return Ok(Err(tail));
        };
        self.report(command, status.success()).await;
        Ok(if status.success() { Ok(()) } else { Err(finished.tail) })
    }

    async fn report(&self, command: &str, ok: bool) {
        let tool = ToolUse { tool: "check".to_owned(), summary: command.to_owned(), ok };
        let (step, attempt) = (self.step.clone(), self.attempt);
        self.say(Event::StepReported { step, attempt, report: Report::ToolUsed(tool) }).await;
    }
}
