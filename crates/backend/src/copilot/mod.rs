//! GitHub Copilot, by its server: one program for all conversations.
//!
//! `wire` has the program's messages, `decode` turns them into ours without IO, `rpc` moves them,
//! `launch` says what a session is made with, `server` owns the program and hands its messages to
//! those who talk, `conversation` is one of these.

mod conversation;
mod decode;
mod launch;
mod rpc;
mod server;
mod talker;
mod wire;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use atomic_event::{Answer, BackendId, ConversationId, QuestionId, StepError, Usage};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::guard::Guard;
use crate::version::Version;
use crate::{
    Backend, BackendError, BoxFuture, Conversation, ModelOffer, OpenRequest, Place, ServerState,
    Turn,
};
use conversation::{Command, Talk};
use server::{Lease, Server};
use talker::Talker;

/// The name of this backend, in every output.
const ID: &str = "copilot";

/// The oldest version that was tried.
const OLDEST: Version = Version(1, 0, 102);

/// The version of the protocol that is spoken here.
const PROTOCOL: u64 = 3;

/// How long an answer may take that needs no model.
const PATIENCE: Duration = Duration::from_secs(60);

/// The oldest version that works, when this one is older still.
pub fn needed_instead_of(version: &str) -> Option<String> {
    Version::read(version).filter(|version| *version < OLDEST).map(|_| OLDEST.to_string())
}

/// How to use the program.
#[derive(Clone, Debug)]
pub struct CopilotConfig {
    /// The program.
    pub program: PathBuf,
    /// How long the program may try again by itself when its provider is in trouble.
    pub retry_window: Duration,
    /// Added to our own environment.
    pub env: Vec<(String, String)>,
}

/// GitHub Copilot.
#[derive(Clone)]
pub struct CopilotBackend {
    shared: Arc<Shared>,
}

/// What all conversations share.
struct Shared {
    config: CopilotConfig,
    guard: Guard,
    /// Held while it is started, so that all wait for the same one.
    server: tokio::sync::Mutex<Option<Arc<Server>>>,
}

impl CopilotBackend {
    /// Uses the program as `config` says; every process runs under `guard`.
    pub fn new(config: CopilotConfig, guard: Guard) -> Self {
        let server = tokio::sync::Mutex::default();
        Self { shared: Arc::new(Shared { config, guard, server }) }
    }

    async fn begin(&self, request: OpenRequest) -> Result<CopilotConversation, BackendError> {
        let (commands, id, talker) = Talk::start(Arc::clone(&self.shared), request).await?;
        Ok(CopilotConversation { id: ConversationId::from(id), commands, talker })
    }
}

impl Shared {
    /// A variable as the program sees it.
    fn variable(&self, name: &str) -> Option<String> {
        let own = self.config.env.iter().rev().find(|(known, _)| known == name);
        let value = own.map(|(_, value)| value.clone()).or_else(|| std::env::var(name).ok());
        value.filter(|value| !value.is_empty())
    }

    /// The program; the one that runs, or a new one.
    async fn server(&self, marker: &str) -> Result<Lease, BackendError> {
        let mut server = self.server.lock().await;
        if let Some(running) = server.as_ref().filter(|server| server.line.gone().is_none()) {
            return Ok(Lease::of(running));
        }
        // It works for all steps of the run, not for the one that is first.
        let run = marker.split('/').next().unwrap_or_default();
        let marker = format!("{run}/{ID}/server");
        let started = Server::start(&self.config, &self.guard, marker).await?;
        let lease = Lease::of(&started);
        *server = Some(started);
        Ok(lease)
    }
}

impl Backend for CopilotBackend {
    fn id(&self) -> BackendId {
        BackendId::from(ID)
    }

    /// The program counts requests, not money.
    fn reports_cost(&self) -> bool {
        false
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move { Ok(Box::new(self.begin(request).await?) as Box<dyn Conversation>) })
    }

    fn models(&self, _place: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        Box::pin(async move {
            let server = self.shared.server("").await?;
            match server.rpc.call("models.list", json!({}), Some(PATIENCE)).await {
                Ok(told) => Ok(offers(&told)),
                Err(BackendError::Rejected { message, .. })
                    if message.to_lowercase().contains("authenticated") =>
                {
                    Err(BackendError::LoginNeeded { backend: self.id() })
                }
                Err(error) => Err(error),
            }
        })
    }

    fn servers(&self, place: Place) -> BoxFuture<'_, Result<Vec<ServerState>, BackendError>> {
        Box::pin(async move {
            let Place { workspace, inherit } = place;
            let request =
                OpenRequest { inherit, ..OpenRequest::new("servers", workspace, String::new()) };
            let conversation = self.begin(request).await?;
            let told = conversation.tell(|reply| Command::Servers { reply }).await;
            let told = told.unwrap_or_else(over);
            Box::new(conversation).close().await;
            Ok(states(&told?))
        })
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut server = self.shared.server.lock().await;
            if let Some(idle) = server.take_if(|server| server.line.is_idle()) {
                idle.line.end().await;
            }
        })
    }
}

fn offers(told: &Value) -> Vec<ModelOffer> {
    let models = told.get("models").and_then(Value::as_array).into_iter().flatten();
    let text = |model: &Value, key: &str| {
        model.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    models.map(|model| ModelOffer { name: text(model, "id"), about: text(model, "name") }).collect()
}

fn states(told: &Value) -> Vec<ServerState> {
    let servers = told.get("servers").and_then(Value::as_array).into_iter().flatten();
    let state = |about: &Value| {
        let text = |key: &str| about.get(key).and_then(Value::as_str).map(str::to_owned);
        ServerState {
            name: text("name").unwrap_or_default(),
            status: text("status").unwrap_or_else(|| "unknown".to_owned()),
            error: text("error"),
        }
    };
    servers.map(state).collect()
}

/// A conversation that somebody holds.
struct CopilotConversation {
    id: ConversationId,
    commands: mpsc::Sender<Command>,
    talker: Weak<Talker>,
}

impl CopilotConversation {
    /// Tells the task something and waits for its answer.
    async fn tell<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.ok()?;
        answer.await.ok()
    }
}

impl Drop for CopilotConversation {
    fn drop(&mut self) {
        if let Some(talker) = self.talker.upgrade() {
            talker.leaves();
        }
    }
}

fn over<T>() -> Result<T, BackendError> {
    Err(misused("the conversation has ended"))
}

impl Conversation for CopilotConversation {
    fn id(&self) -> ConversationId {
        self.id.clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(async move {
            self.tell(|reply| Command::Send { prompt, reply }).await.unwrap_or_else(over)
        })
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: Answer,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let told = self.tell(|reply| Command::Answer { id: question, answer, reply }).await;
            told.unwrap_or_else(over)
        })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.tell(|reply| Command::Interrupt { reply }).await;
        })
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async move {
            let told = self.tell(|reply| Command::Compact { reply }).await;
            told.unwrap_or_else(|| Err(misused("the conversation has ended").into()))
        })
    }

    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            self.tell(|reply| Command::SetModel { model, reply }).await.unwrap_or_else(over)
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _ = self.tell(|reply| Command::Close { rests: false, reply }).await;
        })
    }

    fn rest(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _ = self.tell(|reply| Command::Close { rests: true, reply }).await;
        })
    }
}

fn misused(problem: &str) -> BackendError {
    BackendError::Misused { backend: BackendId::from(ID), problem: problem.to_owned() }
}
