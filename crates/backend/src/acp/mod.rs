//! Any agent that speaks the Agent Client Protocol: one program for each conversation.
//!
//! `line` moves lines between the program and the protocol's crate, `about` is what an agent says of
//! itself, `decode`, `call`, `spending`, `form` and `trouble` turn its messages into our words and
//! back without IO, `prompt` says what is sent, and `program` owns the process.

mod about;
mod call;
mod command;
mod decode;
mod form;
mod line;
mod permission;
mod program;
mod prompt;
mod spending;
mod start;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use atomic_event::BackendId;
use tokio::sync::Semaphore;

use crate::guard::{Guard, Job};
use crate::login::Credential;
use crate::serving::{Presence, Roster, Talks, lock, until_left};
use crate::{
    Backend, BackendError, BoxFuture, Conversation, ModelOffer, OpenRequest, Place, ToolRules,
};
pub use command::split_command;
use program::AcpProgram;
use spending::Spending;

/// What stands in front of the command in the name of such a backend.
pub const PREFIX: &str = "acp:";

/// By what OpenCode is told which tools it has to ask about.
const OPENCODE_PERMISSION: &str = "OPENCODE_PERMISSION";

/// How to use a program.
#[derive(Clone, Debug)]
pub struct AcpConfig {
    /// The command as it was written; with [`PREFIX`] before it, the backend's name.
    pub command: String,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// How many programs may be starting at once.
    pub starts: usize,
    /// Added to our own environment.
    pub env: Vec<(String, String)>,
}

/// An agent that speaks the Agent Client Protocol.
#[derive(Clone)]
pub struct AcpBackend {
    shared: Arc<Shared>,
}

/// What all conversations share.
struct Shared {
    id: BackendId,
    config: AcpConfig,
    guard: Guard,
    /// How many programs may be starting at once: starting is all computing.
    starts: Semaphore,
    roster: Roster<Talker>,
    /// What is known of sessions that are not open, by their ids.
    left: Mutex<BTreeMap<String, Left>>,
    /// Whether a conversation could not be continued because the agent never can.
    has_lost: AtomicBool,
    /// What cannot be done, and was said.
    said: Mutex<BTreeSet<&'static str>>,
}

/// What is known of a session from when it was last open.
#[derive(Clone, Debug, Default)]
struct Left {
    /// What the agent was told to be.
    instructions: Option<String>,
    spending: Spending,
}

/// One that talks in a session.
struct Talker(Arc<Presence>);

impl Talks for Talker {
    fn presence(&self) -> &Presence {
        &self.0
    }
}

impl AcpBackend {
    /// Uses a program as `config` says; every process runs under `guard`.
    pub fn new(config: AcpConfig, guard: Guard) -> Self {
        let shared = Shared {
            id: BackendId::from(format!("{PREFIX}{}", config.command)),
            starts: Semaphore::new(config.starts.max(1)),
            config,
            guard,
            roster: Roster::default(),
            left: Mutex::default(),
            has_lost: AtomicBool::new(false),
            said: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Shared {
    /// The process to start for somebody who may use these tools.
    fn job(&self, request: &OpenRequest) -> Job {
        let AcpConfig { program, arguments, env, .. } = &self.config;
        let program = program.display().to_string();
        Job {
            argv: std::iter::once(program).chain(arguments.iter().cloned()).collect(),
            cwd: request.workspace.clone(),
            env: self.permission(&request.tools).into_iter().chain(env.iter().cloned()).collect(),
            marker: request.marker.clone(),
            stdin: true,
        }
    }

    /// What OpenCode is told about asking; others do not read it. It never tells of what a helper
    /// asks, so that helpers must not have to; a restricted agent has none.
    fn permission(&self, tools: &ToolRules) -> Option<(String, String)> {
        let is_ours = |(name, _): &(String, String)| name == OPENCODE_PERMISSION;
        let is_set =
            std::env::var_os(OPENCODE_PERMISSION).is_some() || self.config.env.iter().any(is_ours);
        let value = match tools.allow_everything() {
            true if is_set => return None,
            true => r#"{"*":"allow"}"#,
            false => r#"{"*":"ask","task":"deny"}"#,
        };
        Some((OPENCODE_PERMISSION.to_owned(), value.to_owned()))
    }

    /// Whether something has to be said, which is said once.
    fn is_news(&self, what: &'static str) -> bool {
        lock(&self.said).insert(what)
    }
}

impl Backend for AcpBackend {
    fn id(&self) -> BackendId {
        self.shared.id.clone()
    }

    /// Some do, and then it counts. Beforehand it is not known.
    fn reports_cost(&self) -> bool {
        false
    }

    /// The agent program decides, and its protocol does not say what.
    fn credentials(&self, _: &Place, _: Option<&str>) -> Result<Vec<Credential>, String> {
        Ok(vec![Credential::of_agent()])
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move {
            let held = AcpProgram::open(Arc::clone(&self.shared), request).await?;
            Ok(Box::new(held) as Box<dyn Conversation>)
        })
    }

    fn models(&self, place: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        Box::pin(async move {
            let Place { workspace, inherit } = place;
            let request =
                OpenRequest { inherit, ..OpenRequest::new("nobody", workspace, String::new()) };
            AcpProgram::models(Arc::clone(&self.shared), request).await
        })
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        // None rests; whoever was dropped is on its way out.
        Box::pin(until_left(|| {
            let roster = &self.shared.roster;
            !roster.all().is_empty() && roster.is_being_left()
        }))
    }
}
