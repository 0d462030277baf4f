//! How a run is to behave: ceilings, checks, policies.

use std::collections::BTreeMap;
use std::path::PathBuf;

use atomic_backend::Inherit;
use atomic_workflow::Limits;
use serde::{Deserialize, Serialize};

/// The settings of a run; kept in the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// How many agents at once; otherwise as many as the workflow wants.
    pub workers: Option<u32>,
    /// The ceilings the workflow counts, and whether it requires checks.
    pub limits: Limits,
    /// The checks; otherwise those that are found in the project.
    pub checks: Option<Vec<String>>,
    /// What to do with a question.
    pub on_question: OnQuestion,
    /// The limits on what is spent.
    #[serde(flatten)]
    pub budget: Budget,
    /// The largest number of times an agent is launched.
    pub max_launches: Option<u64>,
    /// The file of canned turns, for the backend `script`.
    pub script: Option<PathBuf>,
    /// The longest time for the run from now on, in seconds.
    pub timeout_secs: Option<u64>,
    /// The longest time for one turn or one check, in seconds.
    pub turn_timeout_secs: u64,
    /// What agents take over from the user's and the project's own settings of their program, in a
    /// project that is trusted.
    pub inherit: Inherit,
    /// Further environment variables that workflows may read.
    pub env_allow: Vec<String>,
    /// The agents that the user has chosen for roles of built-in workflows, by role.
    pub roles: BTreeMap<String, String>,
    /// How to use the agent program.
    #[serde(flatten)]
    pub program: ProgramSettings,
}

/// Limits on what is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// The most money for the run, in US dollars.
    pub max_cost_usd: Option<f64>,
    /// The most money for one task over all its attempts, in US dollars.
    pub max_task_cost_usd: Option<f64>,
    /// The most tokens for the run.
    pub max_tokens: Option<u64>,
}

impl Budget {
    /// Whether some limit is in money.
    pub fn limits_money(&self) -> bool {
        self.max_cost_usd.is_some() || self.max_task_cost_usd.is_some()
    }
}

/// How to use an agent program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProgramSettings {
    /// The longest wait for its provider, in seconds. After it the run pauses; with 0 a step fails.
    pub retry_window_secs: u64,
    /// Whether agents may work without permission prompts as root.
    #[serde(alias = "sandbox")]
    pub allow_root: bool,
    /// Whether what the project defines is used: hooks, MCP servers, checks that are found.
    pub trusted: bool,
    /// The name of the credential that pays, where one was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pay: Option<String>,
    /// Whether the machine may not sleep while the run works.
    #[serde(skip_serializing_if = "is_true")]
    pub inhibit_sleep: bool,
    /// The project's settings file that chose the backend, where one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_from: Option<String>,
    /// Whether a person at a terminal sees what happens.
    #[serde(skip)]
    pub is_attended: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_true(switch: &bool) -> bool {
    *switch
}

impl ProgramSettings {
    /// The longest wait of a run.
    pub const RETRY_WINDOW_SECS: u64 = 6 * 3_600;
    /// The longest wait where a person looks on: one turn, or a chat.
    pub const SHORT_RETRY_WINDOW_SECS: u64 = 120;
}

impl Default for ProgramSettings {
    fn default() -> Self {
        Self {
            retry_window_secs: Self::RETRY_WINDOW_SECS,
            allow_root: false,
            trusted: false,
            pay: None,
            inhibit_sleep: true,
            backend_from: None,
            is_attended: false,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: None,
            limits: Limits::default(),
            checks: None,
            on_question: OnQuestion::Pause,
            budget: Budget::default(),
            max_launches: None,
            script: None,
            timeout_secs: None,
            turn_timeout_secs: 30 * 60,
            inherit: Inherit::Project,
            env_allow: vec![],
            roles: BTreeMap::new(),
            program: ProgramSettings::default(),
        }
    }
}

impl Settings {
    /// What agents take over now: until the project is trusted, nothing.
    pub fn inherited(&self) -> Inherit {
        if self.program.trusted { self.inherit } else { Inherit::None }
    }
}

/// What to do with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnQuestion {
    /// Somebody is there to answer it.
    Ask,
    /// Go on with what can go on, then wait.
    Pause,
    /// Take the recommended option; without one, wait.
    Recommended,
    /// The step that asks has failed.
    Fail,
}
