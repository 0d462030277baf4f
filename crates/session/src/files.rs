//! The files people and other programs read, made from facts: the summary and the logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use atomic_event::{BackendId, Moment, Payer, PayerFound, SessionId, WorkflowName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CheckSummary, Disk, Session, SessionError, limits};

/// The summary's file.
pub(crate) const SUMMARY: &str = "session.json";

/// The folder of the logs.
pub(crate) const LOGS: &str = "logs";

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    /// Somebody works on it; without a live lock: it was interrupted.
    Running,
    /// Stopped by the user; can be resumed.
    Paused,
    /// Cannot go on without an answer.
    Waiting,
    /// Done.
    Completed,
    /// Ended without success; can be resumed.
    Failed,
}

/// How many tasks there are and how many are done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCount {
    /// Completed ones.
    pub done: usize,
    /// All.
    pub total: usize,
    /// Copies of lists that were edited while the run was going on, and were not used.
    #[serde(default, rename = "keptEdits", skip_serializing_if = "Vec::is_empty")]
    pub kept_edits: Vec<PathBuf>,
}

/// What `session.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// The session's id.
    pub session_id: SessionId,
    /// The workflow's name.
    pub workflow: WorkflowName,
    /// What the run is asked to do.
    pub prompt: String,
    /// The same before anybody refined it.
    pub original_prompt: String,
    /// How it stands.
    pub status: SessionStatus,
    /// When it was created.
    pub created_at: Moment,
    /// When this was last true.
    pub last_updated: Moment,
    /// How many workers were started.
    pub iteration: u64,
    /// The program that does the work.
    pub backend: BackendId,
    /// The model, when one was chosen.
    pub model: Option<String>,
    /// The tasks.
    pub tasks: TaskCount,
    /// What was spent so far.
    #[serde(flatten)]
    pub spent: SpentSummary,
    /// What came of the run.
    #[serde(flatten)]
    pub product: Product,
    /// What checks say, where the workflow runs some.
    #[serde(flatten)]
    pub checks: Option<CheckSummary>,
}

/// What a run has spent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpentSummary {
    /// What the whole run cost; null when a part of it is not known, which is not zero.
    #[serde(flatten)]
    pub total: Cost,
    /// What each task cost, over all its attempts, by its id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task_costs: BTreeMap<String, Cost>,
}

/// What something cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// US dollars; null when a part is not known.
    pub cost_usd: Option<f64>,
    /// Tokens, read and written.
    #[serde(default)]
    pub tokens: u64,
    /// Whether a part of the cost is an estimate from list prices.
    #[serde(default)]
    pub estimated: bool,
}

/// What came of a run besides its tasks, and who pays for it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    /// What the function of a plain async workflow returned, if it returned anything. Values over
    /// 16 KB stand in `blobs/`, as in the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The address of the pull request, when one was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
    /// The branch of the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_branch: Option<String>,
    /// Who pays, for each backend and provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paid_by: Vec<PaidBy>,
}

/// A payer as `session.json` names it, with its keys in the style of that file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PaidBy {
    /// The backend.
    pub backend: BackendId,
    /// Who pays.
    #[serde(flatten)]
    pub payer: Payer,
    /// Other credentials that were found and are not meant to pay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
    /// The project's settings file that chose the backend, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_by: Option<String>,
}

impl From<PayerFound> for PaidBy {
    fn from(found: PayerFound) -> Self {
        let PayerFound { backend, payer, unused, chosen_by } = found;
        Self { backend, payer, unused, chosen_by }
    }
}

impl SessionSummary {
    /// Reads the summary of a session, whoever holds it.
    pub fn read(disk: &dyn Disk, dir: &Path) -> Result<Self, SessionError> {
        let path = dir.join(SUMMARY);
        let failed = SessionError::while_doing("read", &path);
        let read =
            disk.read(&path, limits::SUMMARY).and_then(|bytes| Ok(serde_json::from_slice(&bytes)?));
        read.map_err(failed)
    }
}

impl Session {
    /// Writes `session.json`, unless it says the same already.
    pub fn write_summary(&mut self, summary: &SessionSummary) -> Result<(), SessionError> {
        let mut summary = summary.clone();
        if let Some(result) = &mut summary.product.result {
            self.journal.lift(result)?;
        }
        let bytes = readable_json(&summary)?;
        if self.summary.as_ref() == Some(&bytes) {
            return Ok(());
        }
        self.persist(|session| {
            let path = session.dir.join(SUMMARY);
            let written = session.disk.replace(&path, &bytes);
            written.map_err(SessionError::while_doing("write", &path))
        })?;
        self.summary = Some(bytes);
        Ok(())
    }

    /// Adds a line to `logs/agent-calls.jsonl`.
    pub fn log_agent_call(&self, call: &Value) -> Result<(), SessionError> {
        self.log("agent-calls.jsonl", format!("{call}\n"))
    }

    /// Adds a line to `logs/transcript.jsonl`.
    pub fn log_transcript(&self, entry: &Value) -> Result<(), SessionError> {
        self.log("transcript.jsonl", format!("{entry}\n"))
    }

    /// Adds an entry to `logs/errors.log`; further lines of it are indented.
    pub fn log_error(&self, text: &str, at: Moment) -> Result<(), SessionError> {
        self.log("errors.log", format!("{at} {}\n", text.trim_end().replace('\n', "\n  ")))
    }

    #[expect(clippy::needless_pass_by_value, reason = "made for this call")]
    fn log(&self, name: &str, entry: String) -> Result<(), SessionError> {
        let path = self.dir.join(LOGS).join(name);
        let written = self.disk.log(&path, entry.as_bytes());
        written.map_err(SessionError::while_doing("write to", &path))
    }
}

/// JSON for people: indented by two spaces, with a line end.
pub(crate) fn readable_json(value: &(impl Serialize + ?Sized)) -> Result<Vec<u8>, SessionError> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|e| SessionError::Unrecordable { problem: e.to_string() })?;
    bytes.push(b'\n');
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use atomic_event::{Payer, PayerFound, PayerKind};
    use serde_json::json;

    use super::PaidBy;

    #[test]
    fn a_payer_has_the_keys_of_the_summary() {
        let found = PayerFound {
            backend: "claude".into(),
            payer: Payer::new(PayerKind::Key, "ANTHROPIC_API_KEY"),
            unused: vec![],
            chosen_by: Some(".atomic/settings.json".to_owned()),
        };
        let expected = json!({ "backend": "claude", "kind": "key", "source": "ANTHROPIC_API_KEY",
            "chosenBy": ".atomic/settings.json" });
        assert_eq!(json!(PaidBy::from(found)), expected);
    }
}
