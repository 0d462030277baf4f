//! OpenCode, by its server: one for all conversations that want the same of it.
//!
//! `wire` has the program's messages, `decode` turns them into ours without IO, `launch` says how a
//! server is started, `server` owns it and hands its events to its conversations, and `program` is one
//! of these. `gate` is where the program asks us before it uses a tool, and `settings` is what the
//! user has told the program about providers.

mod catalogue;
mod decode;
mod errands;
mod failures;
mod fill;
mod gate;
mod http;
mod launch;
mod payer;
mod program;
mod ready;
mod server;
mod session;
mod settings;
mod talker;
mod variables;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atomic_event::BackendId;
use serde_json::Value;

use crate::guard::Guard;
use crate::login::{Credential, Pay, UnusedSetting};
use crate::serving::{Lease, until_left};
use crate::turn::ConversationHandle;
use crate::version::Version;
use crate::words::shorten;
use crate::{
    Backend, BackendError, BoxFuture, Conversation, Inherit, ModelOffer, OpenRequest, Place,
    ServerState,
};
use launch::{Den, Setup};
use program::OpenCodeProgram;
use server::Server;
use settings::{Found, Places, code_of_project};
use wire::Model;

/// The name of this backend, in every output.
const ID: &str = "opencode";

/// The oldest version that was tried.
const OLDEST: Version = Version(1, 18, 33);

/// The oldest version that works, when this one is older still.
pub fn needed_instead_of(version: &str) -> Option<String> {
    Version::read(version).filter(|version| *version < OLDEST).map(|_| OLDEST.to_string())
}

/// Settings about providers in the files of a project, none of which is used.
pub(crate) fn unused_settings(workspace: &Path) -> Vec<UnusedSetting> {
    Places::of_environment(&[]).unused(workspace)
}

/// The reason for which the user's settings cannot be used.
pub(crate) fn settings_problem(workspace: &Path) -> Option<String> {
    Places::of_environment(&[]).look(workspace, Inherit::None).problem
}

/// How to use the program.
#[derive(Clone, Debug)]
pub struct OpenCodeConfig {
    /// The program.
    pub program: PathBuf,
    /// How long trouble with the provider may last inside a turn.
    pub patience: Duration,
    /// Added to our own environment.
    pub env: Vec<(String, String)>,
}

/// OpenCode.
#[derive(Clone)]
pub struct OpenCodeBackend {
    shared: Arc<Shared>,
}

/// What all conversations share.
struct Shared {
    config: OpenCodeConfig,
    guard: Guard,
    /// Held while one is started, so that those who want the same wait for it.
    servers: tokio::sync::Mutex<Vec<Arc<Server>>>,
    /// The credential that pays, where one was chosen.
    pay: Option<Pay>,
    /// The environment in which the chosen credential is looked for.
    env: Vec<(String, String)>,
}

impl OpenCodeBackend {
    /// Uses the program as `config` says; every process runs under `guard`.
    pub fn new(config: OpenCodeConfig, guard: Guard) -> Self {
        Self::paying(config, guard, None)
    }

    /// The same, with only the credential that was chosen; the others are withheld from the program.
    pub fn paying(mut config: OpenCodeConfig, guard: Guard, pay: Option<Pay>) -> Self {
        let servers = tokio::sync::Mutex::default();
        let env = config.env.clone();
        config.env.extend(pay.map(payer::withheld_variables).unwrap_or_default());
        Self { shared: Arc::new(Shared { config, guard, servers, pay, env }) }
    }

    async fn begin(&self, request: OpenRequest) -> Result<ConversationHandle, BackendError> {
        let shared = Arc::clone(&self.shared);
        let mut found = shared.settings(&request.workspace, request.inherit)?;
        let model = chosen(&request, &found)?;
        if let Some(pay) = shared.pay {
            let places = Places::of_environment(&shared.env);
            for provider in found.providers([&model].into_iter()) {
                payer::choose(&places, &mut found, &provider, pay);
            }
        }
        let helpers = request.helpers.iter().filter_map(|one| one.model.as_deref());
        let helpers: Vec<Model> = helpers.filter_map(Model::read).collect();
        let setup = Setup {
            inherit: request.inherit,
            helpers: request.helpers.clone(),
            providers: Some(found.providers(helpers.iter().chain([&model]))),
            model: Some(found.model.unwrap_or_else(|| model.clone())),
            users: found.users,
            foreign: found.foreign,
        };
        OpenCodeProgram::open(shared, setup, model, request).await
    }

    /// A server to which nothing is going to be sent.
    async fn to_look_around(&self, place: &Place) -> Result<Lease<Server>, BackendError> {
        let found = self.shared.settings(&place.workspace, place.inherit)?;
        let setup = Setup {
            inherit: place.inherit,
            helpers: vec![],
            providers: None,
            model: found.model,
            users: found.users,
            foreign: found.foreign,
        };
        self.shared.server(&setup, "").await
    }
}

/// The model to use: the one that is asked for, or the one that is set. The program's own choice
/// would send everything to its makers.
fn chosen(request: &OpenRequest, found: &Found) -> Result<Model, BackendError> {
    match &request.model {
        Some(asked) => model_named(asked),
        None => found.model.clone().ok_or_else(|| {
            BackendError::Misconfigured(
                "opencode has no model to use, and its own choice would send your code to its \
                 makers; choose one with --model PROVIDER/MODEL, or as `model` in \
                 ~/.config/opencode/opencode.json (atomic models --backend opencode lists them)"
                    .to_owned(),
            )
        }),
    }
}

fn model_named(name: &str) -> Result<Model, BackendError> {
    Model::read(name).ok_or_else(|| BackendError::ModelUnknown {
        backend: BackendId::from(ID),
        message: format!(
            "{} is no model of opencode's, they are called PROVIDER/MODEL \
             (atomic models --backend opencode lists them)",
            shorten(name)
        ),
    })
}

impl Shared {
    fn settings(&self, workspace: &Path, inherit: Inherit) -> Result<Found, BackendError> {
        let home = std::env::home_dir();
        if inherit == Inherit::None
            && let Some(code) = code_of_project(workspace, home.as_deref())
        {
            return Err(BackendError::Misconfigured(format!(
                "opencode would run what this project brings along ({}), and the project is not \
                 trusted; look at it and trust the project (--trust), or take it away",
                code.display()
            )));
        }
        let found = Places::of_environment(&self.env).look(workspace, inherit);
        found.problem.clone().map_or(Ok(found), |problem| {
            let hint = "opencode gets its providers from your settings; correct them";
            Err(BackendError::Misconfigured(format!("{problem}\n  hint: {hint}")))
        })
    }

    /// A server that does what is wanted; one that runs, or a new one.
    async fn server(&self, setup: &Setup, marker: &str) -> Result<Lease<Server>, BackendError> {
        let mut servers = self.servers.lock().await;
        servers.retain(|server| server.gone().is_none());
        if let Some(server) = servers.iter().find(|server| server.setup.serves(setup)) {
            if !server.is_dead().await {
                return Ok(Lease::of(server));
            }
            server.end().await;
        }
        let config_home = Places::of_environment(&self.config.env).config_home();
        let shell_env = Den::shell_env(setup, &config_home);
        // It works for all steps of the run, not for the one that is first.
        let run = marker.split('/').next().unwrap_or_default();
        let marker = format!("{run}/{ID}/server");
        let started =
            Server::start(&self.config, &self.guard, setup.clone(), shell_env, marker).await?;
        // One that can do less and has nothing to do makes room.
        for idle in servers.extract_if(.., |old| old.is_idle() && setup.serves(&old.setup)) {
            tokio::spawn(async move { idle.end().await });
        }
        let lease = Lease::of(&started);
        servers.push(started);
        Ok(lease)
    }
}

impl Backend for OpenCodeBackend {
    fn id(&self) -> BackendId {
        BackendId::from(ID)
    }

    fn reports_cost(&self) -> bool {
        true
    }

    fn credentials(&self, place: &Place, model: Option<&str>) -> Result<Vec<Credential>, String> {
        let places = Places::of_environment(&self.shared.env);
        let found = places.look(&place.workspace, place.inherit);
        if let Some(problem) = &found.problem {
            return Err(problem.clone());
        }
        let model = model.map_or_else(|| found.model.clone(), Model::read);
        // Without a model the turn fails, and the error says what to do.
        let Some(Model { provider, .. }) = model else { return Ok(vec![]) };
        Ok(payer::credentials(&places, &found, &provider, self.shared.pay))
    }

    fn is_paid(&self) -> bool {
        true
    }

    fn pay(&self) -> Option<Pay> {
        self.shared.pay
    }

    fn with_pay(&self, pay: Pay) -> Option<Arc<dyn Backend>> {
        let Shared { config, guard, env, .. } = &*self.shared;
        let config = OpenCodeConfig { env: env.clone(), ..config.clone() };
        Some(Arc::new(Self::paying(config, guard.clone(), Some(pay))))
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move { Ok(Box::new(self.begin(request).await?) as Box<dyn Conversation>) })
    }

    fn models(&self, place: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        Box::pin(async move {
            let server = self.to_look_around(&place).await?;
            let told: Value = server.http.get("/config/providers", &place.workspace).await?;
            Ok(offers(&told))
        })
    }

    fn servers(&self, place: Place) -> BoxFuture<'_, Result<Vec<ServerState>, BackendError>> {
        Box::pin(async move {
            let server = self.to_look_around(&place).await?;
            let told: Value = server.http.get("/mcp", &place.workspace).await?;
            Ok(states(&told))
        })
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut servers = self.shared.servers.lock().await;
            until_left(|| servers.iter().any(|server| server.is_being_left())).await;
            let (idle, busy): (Vec<_>, Vec<_>) =
                servers.drain(..).partition(|server| server.is_idle());
            *servers = busy;
            let ends =
                idle.into_iter().map(|server| tokio::spawn(async move { server.end().await }));
            for end in ends.collect::<Vec<_>>() {
                let _ = end.await;
            }
        })
    }
}

/// All models of all providers.
fn offers(told: &Value) -> Vec<ModelOffer> {
    let list = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut offers = vec![];
    for provider in list(told, "providers") {
        let (id, whose) = (text(&provider, "id"), text(&provider, "name"));
        let models = provider.get("models").and_then(Value::as_object);
        for (name, model) in models.into_iter().flatten() {
            let about = format!("{} ({whose})", text(model, "name"));
            offers.push(ModelOffer { name: format!("{id}/{name}"), about });
        }
    }
    offers.sort_by(|one, other| one.name.cmp(&other.name));
    offers
}

fn states(told: &Value) -> Vec<ServerState> {
    let all = told.as_object().into_iter().flatten();
    let state = |(name, about): (&String, &Value)| {
        let text = |key: &str| about.get(key).and_then(Value::as_str).map(str::to_owned);
        ServerState {
            name: name.clone(),
            status: text("status").unwrap_or_else(|| "unknown".to_owned()),
            error: text("error"),
        }
    };
    all.map(state).collect()
}

fn misused(problem: &str) -> BackendError {
    BackendError::Misused { backend: BackendId::from(ID), problem: problem.to_owned() }
}
