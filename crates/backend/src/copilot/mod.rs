//! GitHub Copilot, by its server: one program for all conversations.
//!
//! `wire` has the program's messages, `decode` turns them into ours without IO, `rpc` moves them,
//! `launch` says what a session is made with and `home`
//! where it lies, `server` owns the program and hands its messages to
//! its conversations, and `program` is one of these.

mod decode;
mod home;
mod launch;
mod list;
mod payer;
mod program;
mod questions;
mod rpc;
mod server;
mod talker;
mod typing;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atomic_event::BackendId;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::guard::Guard;
use crate::login::{Credential, Environment, Pay};
use crate::prices::is_listed;
use crate::serving::{Lease, until_left};
use crate::version::Version;
use crate::{
    Backend, BackendError, BoxFuture, Conversation, ModelOffer, OpenRequest, Place, ServerState,
};
use home::{Home, Providers};
use program::CopilotProgram;
use server::Server;

/// The name of this backend, in every output.
const ID: &str = "copilot";

/// The oldest version that was tried.
const OLDEST: Version = Version(1, 0, 102);

/// The version of the protocol that is spoken here.
const PROTOCOL: u64 = 3;

/// How long an answer may take that needs no model.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long MCP servers may take to come up, and how often that is looked at.
const COMING_UP: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The oldest version that works, when this one is older still.
pub fn needed_instead_of(version: &str) -> Option<String> {
    Version::read(version).filter(|version| *version < OLDEST).map(|_| OLDEST.to_string())
}

/// The reason for which the user's settings cannot be used.
pub(crate) fn settings_problem() -> Option<String> {
    providers_in(&Environment(&[])).err()
}

/// The providers in the user's file. `COPILOT_PROVIDER_BASE_URL` wins over the file, as in the program
/// itself, which then does not read it.
fn providers_in(env: &Environment<'_>) -> Result<Option<Providers>, String> {
    env.path("COPILOT_HOME")?;
    if launch::provider(&|name| env.get(name)).is_some() {
        return Ok(None);
    }
    let named = env.path("COPILOT_PROVIDERS_CONFIG")?;
    Home::of(&|name| env.get(name)).providers(named)
}

fn providers(env: &[(String, String)]) -> Result<Option<Providers>, BackendError> {
    providers_in(&Environment(env)).map_err(|problem| {
        let hint = "copilot gets its providers from this file; correct it";
        BackendError::Misconfigured(format!("{problem}\n  hint: {hint}"))
    })
}

/// How to use the program.
#[derive(Clone, Debug)]
pub struct CopilotConfig {
    /// The program.
    pub program: PathBuf,
    /// How long trouble with the provider may last inside a turn.
    pub patience: Duration,
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
    /// The credential that pays, where one was chosen.
    pay: Option<Pay>,
    /// The environment in which credentials are looked for.
    env: Vec<(String, String)>,
}

impl CopilotBackend {
    /// Uses the program as `config` says; every process runs under `guard`.
    pub fn new(config: CopilotConfig, guard: Guard) -> Self {
        Self::paying(config, guard, None)
    }

    /// The same, with only the credential that was chosen; the others are withheld from the program.
    pub fn paying(mut config: CopilotConfig, guard: Guard, pay: Option<Pay>) -> Self {
        let server = tokio::sync::Mutex::default();
        let env = config.env.clone();
        config.env.extend(pay.map(payer::withheld_variables).unwrap_or_default());
        Self { shared: Arc::new(Shared { config, guard, server, pay, env }) }
    }
}

impl Shared {
    /// A variable as the program sees it.
    fn variable(&self, name: &str) -> Option<String> {
        Environment(&self.config.env).get(name)
    }

    /// Whether calls of the model go to a provider of the user's own.
    fn has_own_provider(&self) -> bool {
        launch::provider(&|name| self.variable(name)).is_some()
            || providers(&self.config.env).is_ok_and(|own| own.is_some())
    }

    /// The model of the user's own settings.
    fn users_model(&self) -> Option<String> {
        let home = Home::of(&|name: &str| self.variable(name));
        self.variable("COPILOT_MODEL").or_else(|| home.model())
    }

    /// Everything a session is told.
    fn about(
        &self,
        id: &str,
        request: &OpenRequest,
        model: Option<&str>,
    ) -> Result<Value, BackendError> {
        let variable = |name: &str| self.variable(name);
        let home = Home::of(&variable);
        let model = model.map(str::to_owned).or_else(|| self.users_model());
        let provider = launch::provider(&variable);
        let mut about = launch::session(id, request, model.as_deref(), provider.as_ref());
        // Providers in the file pay only where nothing else was chosen.
        let is_wanted = self.pay.is_none_or(|pay| pay == Pay::Settings);
        let own = if is_wanted { providers(&self.config.env)? } else { None };
        if let Some(Providers { providers, models }) = own {
            about["providers"] = json!(providers);
            about["models"] = json!(models);
        }
        if let Some(folder) = home.of_session(id, request.inherit) {
            about["configDir"] = json!(folder);
        }
        Ok(about)
    }

    /// The program; the one that runs, or a new one.
    async fn server(&self, marker: &str) -> Result<Lease<Server>, BackendError> {
        let mut server = self.server.lock().await;
        if let Some(running) = server.as_ref().filter(|server| server.gone().is_none()) {
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

    /// The MCP servers that a conversation would have, as soon as all of them have come up or failed.
    async fn servers_of(&self, request: &OpenRequest) -> Result<Vec<ServerState>, BackendError> {
        let server = self.server("").await?;
        let id = uuid::Uuid::new_v4().to_string();
        let session = json!({ "sessionId": id });
        let about = self.about(&id, request, None)?;
        server.rpc.call("session.create", &about, Some(PATIENCE)).await?;
        let until = Instant::now() + COMING_UP;
        let told = loop {
            let told = server.rpc.call("session.mcp.list", &session, Some(PATIENCE)).await;
            let states = told.map(|told| states(&told));
            let is_settled = |states: &Vec<ServerState>| {
                states
                    .iter()
                    .all(|state| !["pending", "connecting"].contains(&state.status.as_str()))
            };
            if states.as_ref().is_ok_and(is_settled) || states.is_err() || Instant::now() > until {
                break states;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        // Nothing was said in it, so nobody will go on with it.
        let _ = server.rpc.call("session.delete", &session, Some(PATIENCE)).await;
        told
    }
}

impl Backend for CopilotBackend {
    fn id(&self) -> BackendId {
        BackendId::from(ID)
    }

    /// With a login the program counts credits. With a provider of the user's own it counts tokens.
    fn reports_cost(&self) -> bool {
        !self.shared.has_own_provider()
    }

    fn knows_price(&self, model: Option<&str>) -> bool {
        let users = || self.shared.users_model();
        self.reports_cost()
            || model.map(str::to_owned).or_else(users).is_some_and(|model| is_listed(&model))
    }

    fn credentials(&self, _: &Place, model: Option<&str>) -> Result<Vec<Credential>, String> {
        let model = model.map(str::to_owned).or_else(|| self.shared.users_model());
        payer::credentials(&Environment(&self.shared.env), model.as_deref(), self.shared.pay)
    }

    fn is_paid(&self) -> bool {
        true
    }

    fn pay(&self) -> Option<Pay> {
        self.shared.pay
    }

    fn with_pay(&self, pay: Pay) -> Option<Arc<dyn Backend>> {
        let Shared { config, guard, env, .. } = &*self.shared;
        let config = CopilotConfig { env: env.clone(), ..config.clone() };
        Some(Arc::new(Self::paying(config, guard.clone(), Some(pay))))
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move {
            let held = CopilotProgram::open(Arc::clone(&self.shared), request).await?;
            Ok(Box::new(held) as Box<dyn Conversation>)
        })
    }

    fn models(&self, _place: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        Box::pin(async move {
            // The program does not list these, and they need no login.
            let own = providers(&self.shared.config.env)?.unwrap_or_default().offers();
            let server = self.shared.server("").await?;
            match server.rpc.call("models.list", &json!({}), Some(PATIENCE)).await {
                Ok(told) => Ok(own.into_iter().chain(offers(&told)).collect()),
                Err(BackendError::Rejected { message, .. })
                    if message.to_lowercase().contains("authenticated") =>
                {
                    let login = BackendError::LoginNeeded { backend: self.id() };
                    if own.is_empty() { Err(login) } else { Ok(own) }
                }
                Err(error) => Err(error),
            }
        })
    }

    fn servers(&self, place: Place) -> BoxFuture<'_, Result<Vec<ServerState>, BackendError>> {
        Box::pin(async move {
            let Place { workspace, inherit } = place;
            let request =
                OpenRequest { inherit, ..OpenRequest::new("nobody", workspace, String::new()) };
            self.shared.servers_of(&request).await
        })
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut server = self.shared.server.lock().await;
            until_left(|| server.as_ref().is_some_and(|server| server.is_being_left())).await;
            if let Some(idle) = server.take_if(|server| server.is_idle()) {
                idle.end().await;
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

fn misused(problem: &str) -> BackendError {
    BackendError::Misused { backend: BackendId::from(ID), problem: problem.to_owned() }
}
