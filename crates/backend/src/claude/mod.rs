//! Claude Code, by its control protocol: one program for each conversation, for as long as that
//! lasts.
//!
//! `wire` has the program's messages, `decode` turns them into ours without IO, `launch` says how
//! the program is started, and `program` owns the process.

mod about;
mod account;
mod decode;
mod desk;
mod launch;
mod list;
mod login;
mod payer;
mod program;
mod start;
mod trouble;
mod wire;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use atomic_event::{Answer, BackendId, ConversationId, Payer, QuestionId, StepError, Usage};
use serde_json::{Value, json};
use tokio::sync::{OnceCell, Semaphore, oneshot};

use crate::guard::{Guard, Job};
use crate::login::{Credential, Environment, Pay};
use crate::turn::{Command, ConversationTask, Handle, TurnSettings};
use crate::version::Version;
use crate::words::shorten;
use crate::{
    Backend, BackendError, BoxFuture, Conversation, ModelOffer, OpenRequest, Place, ServerState,
    Turn,
};
use desk::Desk;
use launch::{Launch, OLDEST};
pub(crate) use login::{settings_problem, unused_settings};
use program::{ClaudeProgram, ControlRequest, Shared, SharedId};

/// The name of this backend, in every output.
const ID: &str = "claude";

/// How long the program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(20);

/// By what the program is told how often to try again.
const MAX_RETRIES: &str = "CLAUDE_CODE_MAX_RETRIES";

/// Makes the program say how long it would wait before the next try. Without it the program gives up
/// at once when `retry-after` is more than a minute, and does not say that time (2.1.197 and 2.1.325).
/// How long it may try again is decided here.
const RETRY_WATCHDOG: &str = "CLAUDE_CODE_RETRY_WATCHDOG";

/// How to use the program.
#[derive(Clone, Debug)]
pub struct ClaudeConfig {
    /// The program.
    pub program: PathBuf,
    /// Whether the program may skip permission prompts as root.
    pub allow_root: bool,
    /// How long trouble with the provider may last inside a turn.
    pub patience: Duration,
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
    pay: Option<Pay>,
    /// The environment in which credentials are looked for.
    env: Vec<(String, String)>,
}

/// The oldest version that works, when this one is older still.
pub fn needed_instead_of(version: &str) -> Option<String> {
    Version::read(version).filter(|version| *version < OLDEST).map(|_| OLDEST.to_string())
}

/// Whether the program can skip permission prompts for the current user.
pub fn works_unasked(allow_root: bool) -> bool {
    allow_root || !rustix::process::geteuid().is_root()
}

/// A handle of the conversation, and the program's description of itself when it was ready.
type Started = (Handle<ControlRequest>, Value);

impl ClaudeBackend {
    /// Uses the program as `config` says; every process runs under `guard`.
    pub fn new(config: ClaudeConfig, guard: Guard) -> Self {
        let shared = Shared { guard, starts: Arc::new(Semaphore::new(config.starts.max(1))) };
        let env = config.env.clone();
        Self { config, shared, version: Arc::default(), desk: Arc::default(), pay: None, env }
    }

    /// Uses only the credential that was chosen; the others are withheld from the program.
    #[must_use]
    pub fn paying(mut self, pay: Option<Pay>) -> Self {
        let withheld = pay.map(|pay| payer::withheld_variables(pay, &Environment(&self.env)));
        self.config.env.extend(withheld.unwrap_or_default());
        Self { pay, ..self }
    }

    fn credentials(&self) -> Result<Vec<Credential>, String> {
        payer::credentials(&Environment(&self.env), self.pay)
    }

    /// The payer that is expected: the first credential, unless another one was chosen.
    fn expected(&self) -> Option<Payer> {
        let first = self.credentials().unwrap_or_default().into_iter().next()?;
        self.pay.is_none_or(|pay| pay == first.pay).then_some(first.payer)
    }

    /// Opens a conversation, unless the program reports another payer than the chosen one.
    async fn begin_paid(&self, request: OpenRequest) -> Result<ClaudeConversation, BackendError> {
        let conversation = self.begin(request).await?;
        let is_found = self.expected().is_some();
        let refusal = self.pay.and_then(|pay| payer::refusal(&conversation.ready, pay, is_found));
        let Some(problem) = refusal else { return Ok(conversation) };
        conversation.end().await;
        Err(BackendError::Misconfigured(problem))
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
            (Some(0), Some(version)) => self.new_enough(version),
            (None, _) => {
                let limit = VERSION_LIMIT.as_secs();
                let status = format!("it did not say its version within {limit} s");
                Err(BackendError::Exited { backend, status })
            }
            _ => {
                let line = shorten(&said.tail);
                Err(BackendError::Garbled { backend, line })
            }
        }
    }

    fn new_enough(&self, version: Version) -> Result<Version, BackendError> {
        if version >= OLDEST {
            return Ok(version);
        }
        let (backend, program) = (self.id(), self.config.program.clone());
        let (found, needed) = (version.to_string(), OLDEST.to_string());
        Err(BackendError::TooOld { backend, program, found, needed })
    }

    async fn begin(&self, request: OpenRequest) -> Result<ClaudeConversation, BackendError> {
        self.refuse_root()?;
        let (id, resume) = match &request.resume {
            Some(id) => (id.clone(), true),
            None => (new_id(), false),
        };
        if uuid::Uuid::parse_str(id.as_str()).is_err() {
            return Err(BackendError::ConversationGone { backend: self.id(), conversation: id });
        }
        if let Some(rested) = self.desk.take(&id) {
            if same_kind(&rested.request, &request) {
                return Ok(rested);
            }
            rested.end().await;
        }
        let held = self.desk.hold(&id).await?;
        let ClaudeConfig { program, allow_root, mut env, .. } = self.config.clone();
        if !env.iter().any(|(name, _)| name == MAX_RETRIES) {
            let most = tries_within(self.config.patience).to_string();
            env.push((MAX_RETRIES.to_owned(), most));
        }
        if !env.iter().any(|(name, _)| name == RETRY_WATCHDOG) {
            env.push((RETRY_WATCHDOG.to_owned(), "1".to_owned()));
        }
        let version = Arc::clone(&self.version);
        let request_of_launch = request.clone();
        let launch = Launch {
            program,
            version,
            allow_root,
            env,
            request: request_of_launch,
            pay: self.pay,
            settings: None,
        };
        let shared_id: SharedId = Arc::new(Mutex::new(id.clone()));
        let settings = TurnSettings {
            backend: ID.to_owned(),
            patience: self.config.patience,
            questions: request.questions,
        };
        let id_of_program = Arc::clone(&shared_id);
        let mut program =
            ClaudeProgram::new(self.shared.clone(), launch, id_of_program, held, resume);
        let start = async move {
            let ready = program.launch().await?;
            let (handle, commands) = Handle::new();
            tokio::spawn(ConversationTask::new(program, settings, commands).run());
            Ok((handle, ready))
        };
        let (handle, ready) = self.started(start, resume).await?;
        let desk = Arc::downgrade(&self.desk);
        let payer = payer::reported(&ready, self.expected().as_ref());
        let (held, id) = (id, shared_id);
        Ok(ClaudeConversation { held, id, handle, request, ready, payer, desk })
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
            Some(version) => _ = self.version.set(self.new_enough(version)?),
            // One that is too old may also be one that cannot be started like this.
            None => _ = self.version().await?,
        }
        started
    }

    /// Root is refused by the program itself, in words that do not help.
    fn refuse_root(&self) -> Result<(), BackendError> {
        if works_unasked(self.config.allow_root) {
            return Ok(());
        }
        Err(BackendError::Misconfigured(
            "claude refuses to skip permission prompts as root\n  hint: run as a normal user, or pass \
             --allow-root on a disposable machine"
                .to_owned(),
        ))
    }
}

/// How often the program can try again within a time: it waits half a second, then twice as long
/// each time, up to half a minute. What it says when it gives up is worth more than what we know.
fn tries_within(window: Duration) -> u32 {
    let (mut tries, mut waited, mut next) = (0, 0.0, 0.5);
    while waited + next <= window.as_secs_f64() && tries < 1_000 {
        tries += 1;
        waited += next;
        next = f64::min(next * 2.0, 32.0);
    }
    tries
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

/// A conversation in which nothing is said: the program is only asked about itself.
fn asked_in(Place { workspace, inherit }: Place) -> OpenRequest {
    OpenRequest { inherit, ..OpenRequest::new("nobody", workspace, String::new()) }
}

impl Backend for ClaudeBackend {
    fn id(&self) -> BackendId {
        BackendId::from(ID)
    }

    fn reports_cost(&self) -> bool {
        true
    }

    fn credentials(&self, _: &Place, _: Option<&str>) -> Result<Vec<Credential>, String> {
        Self::credentials(self)
    }

    fn is_paid(&self) -> bool {
        true
    }

    fn pay(&self) -> Option<Pay> {
        self.pay
    }

    fn reports_payer(&self, pay: Pay) -> bool {
        pay == Pay::Subscription
    }

    fn with_pay(&self, pay: Pay) -> Option<Arc<dyn Backend>> {
        let config = ClaudeConfig { env: self.env.clone(), ..self.config.clone() };
        Some(Arc::new(Self::new(config, self.shared.guard.clone()).paying(Some(pay))))
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(
            async move { Ok(Box::new(self.begin_paid(request).await?) as Box<dyn Conversation>) },
        )
    }

    fn models(&self, place: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        Box::pin(async move {
            let mut request = asked_in(place);
            // No tool of theirs is used, so no MCP server is started.
            request.tools.only = Some(vec![]);
            let conversation = self.begin(request).await?;
            let is_logged_out = about::is_logged_out(&conversation.ready);
            let offers = about::offers(&conversation.ready);
            conversation.end().await;
            if is_logged_out {
                return Err(BackendError::LoginNeeded { backend: self.id() });
            }
            Ok(offers)
        })
    }

    fn servers(&self, place: Place) -> BoxFuture<'_, Result<Vec<ServerState>, BackendError>> {
        Box::pin(async move {
            let conversation = self.begin(asked_in(place)).await?;
            let servers = about::settled(&conversation).await;
            conversation.end().await;
            servers
        })
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let resting = self.desk.take_all();
            let ends: Vec<_> = resting.into_iter().map(|rests| tokio::spawn(rests.end())).collect();
            for end in ends {
                let _ = end.await;
            }
        })
    }
}

/// A conversation that somebody holds.
struct ClaudeConversation {
    /// What it is held under.
    held: ConversationId,
    id: SharedId,
    handle: Handle<ControlRequest>,
    request: OpenRequest,
    /// What the program said about itself when it was ready.
    ready: Value,
    /// The payer that it reported, where that is another one than expected.
    payer: Option<Payer>,
    /// Not held up by us: what rests there ends with its backend.
    desk: Weak<Desk>,
}

impl ClaudeConversation {
    /// Sends a command to the task and waits for its reply.
    async fn call<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command<ControlRequest>,
    ) -> Result<T, BackendError> {
        self.handle.call(command).await.ok_or_else(|| misused("the conversation has ended"))
    }

    async fn ask_program(&self, wish: Value) -> Result<Value, BackendError> {
        let request = |reply| Command::Request(ControlRequest { body: wish, reply });
        let answer = self.handle.call(request).await;
        let answer = answer.unwrap_or_else(|| Err("the program has ended".to_owned()));
        answer.map_err(|message| BackendError::Rejected { backend: BackendId::from(ID), message })
    }

    /// Ends the program; nobody holds the conversation any more.
    async fn end(self) {
        let _ = self.call(|reply| Command::Close { rests: false, reply }).await;
    }
}

impl Drop for ClaudeConversation {
    fn drop(&mut self) {
        if let Some(desk) = self.desk.upgrade() {
            desk.expect_end(&self.held);
        }
    }
}

impl Conversation for ClaudeConversation {
    fn id(&self) -> ConversationId {
        lock(&self.id).clone()
    }

    fn payer(&self) -> Option<Payer> {
        self.payer.clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(async move { self.call(|reply| Command::Send { prompt, reply }).await? })
    }

    fn answer(&self, id: QuestionId, answer: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.call(|reply| Command::Answer { id, answer, reply }).await? })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.call(|reply| Command::Interrupt { reply }).await;
        })
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async move { self.call(|reply| Command::Compact { reply }).await? })
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
            // With another id than it was opened with, nobody would find it where it rests.
            let desk = self.desk.upgrade().filter(|_| self.id() == self.held);
            let Some(desk) = desk else { return (*self).end().await };
            if let Some(longest) = desk.put_aside(*self) {
                longest.end().await;
            }
        })
    }
}

/// An id for a conversation that is begun.
fn new_id() -> ConversationId {
    uuid::Uuid::new_v4().to_string().into()
}

fn misused(problem: &str) -> BackendError {
    BackendError::Misused { backend: BackendId::from(ID), problem: problem.to_owned() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
