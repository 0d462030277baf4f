//! Claude Code, by its control protocol: one program for each conversation, for as long as that
//! lasts.
//!
//! `wire` has the program's messages, `decode` turns them into ours without IO, `launch` says how
//! the program is started, `conversation` owns it.

mod account;
mod conversation;
mod decode;
mod launch;
mod list;
mod process;
mod trouble;
mod wire;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use atomic_event::{Answer, BackendId, ConversationId, QuestionId, Stop, TurnEvent};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, Semaphore, mpsc, oneshot};

use crate::guard::{Guard, Job};
use crate::{Backend, BackendError, BoxFuture, Conversation, ModelOffer, OpenRequest, Turn};
use conversation::{Command, Shared, SharedId, Talk, misused};
use launch::{Launch, OLDEST, Version};

/// The name of this backend, in every output.
const ID: &str = "claude";

/// How long the program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// How many programs are kept for conversations that may be continued.
const RESTING: usize = 4;

/// How to use the program.
#[derive(Clone, Debug)]
pub struct ClaudeConfig {
    /// The program.
    pub program: PathBuf,
    /// Whether this machine is a sandbox: the program does not work unasked for root elsewhere.
    pub sandbox: bool,
    /// How long the program may try again by itself when its provider is in trouble.
    pub retry_window: Duration,
    /// How many programs may be starting at once.
    pub starts: usize,
    /// Added to our own environment.
    pub env: Vec<(String, String)>,
}

/// Claude Code.
#[derive(Clone)]
pub struct ClaudeBackend {
    config: ClaudeConfig,
    shared: Shared,
    version: Arc<OnceCell<Version>>,
    desk: Arc<Desk>,
}

/// Whom to tell what is wanted, and what the program said when it was ready.
type Started = (mpsc::Sender<Command>, Value);

/// The conversations somebody holds, and those that rest.
#[derive(Default)]
struct Desk {
    open: Mutex<BTreeSet<ConversationId>>,
    resting: Mutex<Vec<ClaudeConversation>>,
}

impl ClaudeBackend {
    /// Uses the program as `config` says; every process runs under `guard`.
    pub fn new(config: ClaudeConfig, guard: Guard) -> Self {
        let shared = Shared {
            guard,
            starts: Arc::new(Semaphore::new(config.starts.max(1))),
            retry_window: config.retry_window,
        };
        Self { config, shared, version: Arc::default(), desk: Arc::default() }
    }

    /// The program's version, asked for once.
    async fn version(&self) -> Result<Version, BackendError> {
        self.version.get_or_try_init(|| self.ask_version()).await.copied()
    }

    async fn ask_version(&self) -> Result<Version, BackendError> {
        let (backend, program) = (self.id(), self.config.program.clone());
        let job = Job {
            argv: vec![program.display().to_string(), "--version".to_owned()],
            env: self.config.env.clone(),
            ..Job::default()
        };
        let never = std::future::pending();
        let said = self.shared.guard.run(&job, Some(VERSION_LIMIT), 1_000, never).await;
        let said = said.map_err(|error| BackendError::Misconfigured(error.to_string()))?;
        let version = Version::read(&said.tail);
        match (said.status.and_then(|status| status.code()), version) {
            (Some(126 | 127), _) => Err(BackendError::NotInstalled { backend, program }),
            (Some(0), Some(version)) if version < OLDEST => Err(BackendError::TooOld {
                backend,
                program,
                found: version.to_string(),
                needed: OLDEST.to_string(),
            }),
            (Some(0), Some(version)) => Ok(version),
            _ => {
                let line = decode::shorten(&said.tail);
                Err(BackendError::Garbled { backend, line })
            }
        }
    }

    async fn begin(&self, request: OpenRequest) -> Result<ClaudeConversation, BackendError> {
        self.refuse_root()?;
        let (id, resume) = match &request.resume {
            Some(id) => (id.clone(), true),
            None => (ConversationId::from(uuid::Uuid::new_v4().to_string()), false),
        };
        if uuid::Uuid::parse_str(id.as_str()).is_err() {
            return Err(BackendError::ConversationGone { backend: self.id(), conversation: id });
        }
        let rested = self.desk.take(&id);
        if let Some(rested) = rested {
            if same_kind(&rested.request, &request) {
                self.desk.hold(&id)?;
                return Ok(rested);
            }
            rested.end().await;
        }
        self.desk.hold(&id)?;
        let ClaudeConfig { program, sandbox, env, .. } = self.config.clone();
        let version = Arc::clone(&self.version);
        let launch = Launch { program, version, sandbox, env, request: request.clone() };
        let shared_id: SharedId = Arc::new(Mutex::new(id.clone()));
        let start = Talk::start(self.shared.clone(), launch, Arc::clone(&shared_id), resume);
        let started = self.started(start, resume).await;
        let (commands, ready) = match started {
            Ok(started) => started,
            Err(error) => {
                self.desk.release(&id);
                return Err(error);
            }
        };
        let desk = Arc::downgrade(&self.desk);
        Ok(ClaudeConversation { held: id, id: shared_id, commands, request, ready, desk })
    }

    /// Starts the program and learns its version. Newer ones say it when they are ready; only a
    /// conversation that is continued is started differently by different versions.
    async fn started(
        &self,
        start: impl Future<Output = Result<Started, BackendError>>,
        resume: bool,
    ) -> Result<Started, BackendError> {
        if resume {
            self.version().await?;
            return start.await;
        }
        let started = start.await;
        let told = started.as_ref().ok().and_then(|(_, ready)| ready.get("claude_code_version"));
        match told.and_then(Value::as_str).and_then(Version::read) {
            Some(version) => _ = self.version.set(version),
            // One that is too old may also be one that cannot be started like this.
            None => _ = self.version().await?,
        }
        started
    }

    /// Root is refused by the program itself, in words that do not help.
    fn refuse_root(&self) -> Result<(), BackendError> {
        if self.config.sandbox || !rustix::process::geteuid().is_root() {
            return Ok(());
        }
        Err(BackendError::Misconfigured(
            "claude does not work unasked for root, who could harm the whole machine; run atomic as \
             another user or, if this machine is a sandbox that may be harmed, say so: --sandbox, \
             `atomic config set sandbox true`, or ATOMIC_SANDBOX=true"
                .to_owned(),
        ))
    }
}

impl Desk {
    /// Takes a resting conversation.
    fn take(&self, id: &ConversationId) -> Option<ClaudeConversation> {
        let mut resting = lock(&self.resting);
        let place = resting.iter().position(|rests| rests.held == *id)?;
        Some(resting.remove(place))
    }

    /// A conversation is held once: two programs would each write their own version of it.
    fn hold(&self, id: &ConversationId) -> Result<(), BackendError> {
        if lock(&self.open).insert(id.clone()) {
            return Ok(());
        }
        Err(misused(&format!("the conversation {id} is open already")))
    }

    fn release(&self, id: &ConversationId) {
        lock(&self.open).remove(id);
    }
}

/// Whether a program that was started for one request can serve another.
fn same_kind(one: &OpenRequest, other: &OpenRequest) -> bool {
    let kind = |request: &OpenRequest| OpenRequest {
        resume: None,
        marker: String::new(),
        agent: "".into(),
        ..request.clone()
    };
    kind(one) == kind(other)
}

impl Backend for ClaudeBackend {
    fn id(&self) -> BackendId {
        BackendId::from(ID)
    }

    fn reports_cost(&self) -> bool {
        true
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move { Ok(Box::new(self.begin(request).await?) as Box<dyn Conversation>) })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        Box::pin(async move {
            let folder = std::env::temp_dir();
            let request = OpenRequest::new("models", folder, String::new());
            let conversation = self.begin(request).await?;
            let offers = offers(&conversation.ready);
            conversation.end().await;
            Ok(offers)
        })
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let resting = std::mem::take(&mut *lock(&self.desk.resting));
            let ends: Vec<_> = resting.into_iter().map(|rests| tokio::spawn(rests.end())).collect();
            for end in ends {
                let _ = end.await;
            }
        })
    }
}

/// The models the program says it has.
fn offers(ready: &Value) -> Vec<ModelOffer> {
    let models = ready.get("models").and_then(Value::as_array).into_iter().flatten();
    let text = |model: &Value, key: &str| {
        model.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let offer = |model: &Value| ModelOffer {
        name: text(model, "value"),
        about: text(model, "description"),
    };
    models.map(offer).filter(|offer| !offer.name.is_empty()).collect()
}

/// A conversation that somebody holds.
struct ClaudeConversation {
    /// What it is held under.
    held: ConversationId,
    id: SharedId,
    commands: mpsc::Sender<Command>,
    request: OpenRequest,
    /// What the program said about itself when it was ready.
    ready: Value,
    /// Not held up by us: what rests there ends with its backend.
    desk: Weak<Desk>,
}

impl ClaudeConversation {
    /// Tells the task something and waits for its answer.
    async fn tell<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.ok()?;
        answer.await.ok()
    }

    async fn send_prompt(&self, prompt: String, literally: bool) -> Result<Turn, BackendError> {
        let sent = self.tell(|reply| Command::Send { prompt, literally, reply }).await;
        sent.unwrap_or_else(|| Err(misused("the conversation has ended")))
    }

    async fn ask_program(&self, wish: Value) -> Result<Value, BackendError> {
        let answer = self.tell(|reply| Command::Request { wish, reply }).await;
        let answer = answer.unwrap_or_else(|| Err("the program has ended".to_owned()));
        answer.map_err(|message| BackendError::Rejected { backend: BackendId::from(ID), message })
    }

    /// Ends the program; nobody holds the conversation any more.
    async fn end(self) {
        let _ = self.tell(|reply| Command::Close { reply }).await;
    }
}

impl Drop for ClaudeConversation {
    fn drop(&mut self) {
        if let Some(desk) = self.desk.upgrade() {
            desk.release(&self.held);
        }
    }
}

impl Conversation for ClaudeConversation {
    fn id(&self) -> ConversationId {
        lock(&self.id).clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(self.send_prompt(prompt, true))
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: Answer,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let told = self.tell(|reply| Command::Answer { id: question, answer, reply }).await;
            told.unwrap_or_else(|| Err(misused("the conversation has ended")))
        })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.tell(|reply| Command::Interrupt { reply }).await;
        })
    }

    fn compact(&self) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            let mut turn = self.send_prompt("/compact".to_owned(), false).await?;
            while let Some(event) = turn.recv().await {
                if let TurnEvent::Ended(Stop::Failed(error)) = event {
                    let (backend, message) = (BackendId::from(ID), error.message);
                    return Err(BackendError::Rejected { backend, message });
                }
            }
            Ok(())
        })
    }

    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move {
            self.ask_program(json!({ "subtype": "set_model", "model": model })).await.map(drop)
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin((*self).end())
    }

    fn rest(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Some(desk) = self.desk.upgrade() else { return (*self).end().await };
            desk.release(&self.held);
            let surplus = {
                let mut resting = lock(&desk.resting);
                resting.push(*self);
                (resting.len() > RESTING).then(|| resting.remove(0))
            };
            if let Some(longest) = surplus {
                longest.end().await;
            }
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
