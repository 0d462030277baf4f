//! The review and what follows from it.

use std::collections::BTreeSet;

use atomic_event::{StepError, StepResult};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::prompts::REVIEW;
use super::task::{Status, Task, one_line};
use crate::{Call, Limits, find_json};

/// Something a reviewer found.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Finding {
    title: String,
    #[serde(default)]
    body: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    line: Option<u64>,
    priority: u8,
}

#[derive(Debug, Default, Deserialize)]
struct Review {
    findings: Vec<Finding>,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Correct,
    #[default]
    Incorrect,
}

impl Finding {
    fn blocks(&self) -> bool {
        self.priority <= 1
    }

    /// The same finding in other words of the same letters, on any line, is the same finding.
    fn fingerprint(&self) -> String {
        let words: String = self
            .title
            .chars()
            .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
            .collect();
        let words: Vec<&str> = words.split_whitespace().collect();
        format!("{}: {}", self.path.to_lowercase(), words.join(" "))
    }
}

/// Reads a review; the error is told to the reviewer.
pub(super) fn read_review(text: &str) -> Result<Value, String> {
    let review = find_json(text, |v| v.get("findings").is_some() && v.get("verdict").is_some())
        .ok_or_else(|| format!("there is no review in your answer. {REVIEW}"))?;
    let checked: Review = serde_json::from_value(review.clone())
        .map_err(|error| format!("the review has the wrong shape ({error}). {REVIEW}"))?;
    match checked.findings.iter().find(|finding| finding.priority > 3) {
        Some(odd) => Err(format!("the finding {:?} has a priority above 3", odd.title)),
        None => Ok(review),
    }
}

/// Turns blocking findings into tasks, or ends the run.
pub(super) fn fixer(call: &Call<'_>) -> Result<StepResult, StepError> {
    let review = call.output("reviewer");
    let review: Review = serde_json::from_value(review)
        .map_err(|error| StepError::new("review", format!("the review cannot be used: {error}")))?;
    let limits: Limits = call.get("limits");
    let round = call.get::<u32>("reviewRound") + 1;
    let seen: BTreeSet<String> =
        call.get::<Vec<Finding>>("findings").iter().map(Finding::fingerprint).collect();

    let mut findings = review.findings;
    findings.sort_by_key(|finding| finding.priority);
    findings.truncate(limits.findings as usize);
    let blocking: Vec<&Finding> = findings.iter().filter(|finding| finding.blocks()).collect();
    if blocking.is_empty() {
        return match review.verdict {
            // Tasks that a person added during the review are done and reviewed like the others.
            Verdict::Correct if has_open_tasks(call) => {
                Ok(accepted(round, &findings).goto("select-ready-tasks"))
            }
            Verdict::Correct => Ok(accepted(round, &findings)),
            Verdict::Incorrect => Err(StepError::new(
                "review",
                "the reviewer's verdict is `incorrect`, but no finding of priority 0 or 1 says why",
            )),
        };
    }
    let left = |why: &str| {
        let titles: Vec<_> =
            blocking.iter().map(|f| format!("{} ({}, P{})", f.title, f.path, f.priority)).collect();
        Err(StepError::new("review", format!("{why}: {}", titles.join("; "))))
    };
    if blocking.iter().all(|finding| seen.contains(&finding.fingerprint())) {
        return left("the review only repeats what it found before, and it is still there");
    }
    if round >= limits.review_rounds {
        return left(&format!("after {round} review rounds blocking findings are left"));
    }
    let known = call.get::<Vec<Task>>("tasks").len();
    if known + blocking.len() > limits.tasks as usize {
        return left(&format!("the list has no room for more than {} tasks", limits.tasks));
    }
    Ok(to_be_fixed(call, round, &findings))
}

fn has_open_tasks(call: &Call<'_>) -> bool {
    let tasks: Vec<Task> = call.get("tasks");
    tasks.iter().any(|task| task.status != Status::Completed)
}

/// The round alone would not tell a review apart from one of an earlier chance.
fn heading(round: u32) -> String {
    format!("## Review {round}, after iteration {{n}}")
}

fn accepted(round: u32, findings: &[Finding]) -> StepResult {
    let notes: Vec<_> = findings.iter().map(|f| format!("P{} {}", f.priority, f.title)).collect();
    let text = if notes.is_empty() {
        "Verdict: correct, no findings.".to_owned()
    } else {
        format!("Verdict: correct. Not blocking: {}", notes.join("; "))
    };
    let entry = json!({"heading": heading(round), "text": text, "status": "accepted"});
    StepResult::output(json!({"progress": entry})).set("reviewRound", round)
}

fn to_be_fixed(call: &Call<'_>, round: u32, findings: &[Finding]) -> StepResult {
    let known: Vec<Task> = call.get("tasks");
    let numbers = known.iter().filter_map(|task| task.id.strip_prefix('#')?.parse::<u32>().ok());
    let first = numbers.max().unwrap_or(0).saturating_add(1);
    let blocking: Vec<&Finding> = findings.iter().filter(|finding| finding.blocks()).collect();
    let tasks: Vec<Task> = (first..).zip(&blocking).map(|(n, finding)| fix(n, finding)).collect();
    let lines: Vec<_> = blocking.iter().map(|f| format!("- P{} {}", f.priority, f.title)).collect();
    let entry = json!({
        "heading": heading(round),
        "text": format!("Verdict: incorrect. To be fixed:\n{}", lines.join("\n")),
        "status": "to be fixed",
    });
    StepResult::output(json!({"progress": entry}))
        .set("tasks", json!(tasks))
        .set("findings", json!(findings))
        .set("reviewRound", round)
        .goto("select-ready-tasks")
}

fn fix(number: u32, finding: &Finding) -> Task {
    let line = finding.line.map_or_else(String::new, |line| format!(":{line}"));
    Task {
        id: format!("#{number}"),
        content: one_line(&finding.title, 80),
        active_form: one_line(&format!("Fixing: {}", finding.title), 80),
        description: format!("A review found, at {}{line}:\n{}", finding.path, finding.body),
        acceptance_criteria: vec!["a test shows that it is fixed".to_owned()],
        ..Task::default()
    }
}
