//! What the program has to ask us before it does it: every use of a tool, by the agent itself or by
//! a helper; and what the shells it starts are told.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::server::Server;
use super::talker::Talker;
use crate::{BackendError, Persona};

/// How long the program may take to load it, once it has looked at a folder.
const LOADED: Duration = Duration::from_secs(30);

/// What is asked.
#[derive(Debug, Deserialize)]
struct Asked {
    session: String,
    /// The folder in which the plugin was loaded, when it says that it was.
    hello: Option<PathBuf>,
    /// Without one, it is about the environment of a shell.
    tool: Option<String>,
    #[serde(default)]
    args: Value,
}

/// Where the plugin is loaded: without it nobody would be asked.
#[derive(Debug, Default)]
pub(super) struct Gate {
    folders: Mutex<BTreeSet<PathBuf>>,
    changed: Notify,
}

impl Gate {
    fn stands_in(&self, folder: &Path) {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).insert(real);
        self.changed.notify_waiters();
    }

    /// Waits until the plugin is loaded in a folder.
    ///
    /// # Errors
    /// When it is not: nothing may be done there then.
    pub(super) async fn is_in(&self, folder: &Path) -> Result<(), BackendError> {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let loaded = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                if self.folders.lock().unwrap_or_else(PoisonError::into_inner).contains(&real) {
                    return;
                }
                changed.await;
            }
        };
        timeout(LOADED, loaded).await.map_err(|_| {
            BackendError::Misconfigured(
                "opencode has not loaded the plugin by which its tools are checked, so nothing is \
                 done with it; see that nothing in its settings keeps plugins from being loaded"
                    .to_owned(),
            )
        })
    }
}

/// Answers until the server is gone.
pub(super) async fn serve(listener: UnixListener, server: Weak<Server>) {
    while let Ok((stream, _)) = listener.accept().await {
        let server = server.clone();
        tokio::spawn(async move { answer(stream, &server).await });
    }
}

/// A question without an answer stops whoever asks.
async fn answer(stream: UnixStream, server: &Weak<Server>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut question = String::new();
    stream.read_line(&mut question).await.ok()?;
    let asked: Asked = serde_json::from_str(&question).ok()?;
    let server = server.upgrade()?;
    let answer = match &asked.hello {
        Some(folder) => {
            server.gate.stands_in(folder);
            json!({})
        }
        None => decide(&server, &asked).await,
    };
    stream.write_all(answer.to_string().as_bytes()).await.ok()
}

async fn decide(server: &Server, asked: &Asked) -> Value {
    let owner = server.owner(&asked.session).await;
    match (&asked.tool, owner) {
        (Some(tool), Some((talker, helper))) => {
            let refusal = talker.refusal(tool, &asked.args, helper.as_deref());
            json!({ "refusal": refusal.or_else(|| stranger(server, &talker, asked)) })
        }
        (Some(_), None) => json!({ "refusal": "this conversation was not started by atomic" }),
        (None, owner) => {
            let mut env: Map<String, Value> =
                server.shell_env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            if let Some((talker, _)) = owner {
                env.insert("ATOMIC_STEP".to_owned(), json!(talker.presence.starts_a_shell()));
            }
            json!({ "env": env })
        }
    }
}

/// Why a helper must not be started: the server knows those of all who talk there.
fn stranger(server: &Server, talker: &Talker, asked: &Asked) -> Option<String> {
    let name = asked.args.get("subagent_type").filter(|_| asked.tool.as_deref() == Some("task"))?;
    let is_called = |helper: &&Persona| name.as_str() == Some(helper.name.as_str());
    let of_others = server.setup.helpers.iter().any(|helper| is_called(&helper));
    let of_ours = talker.request.helpers.iter().any(|helper| is_called(&helper));
    (of_others && !of_ours).then(|| format!("there is no helper {name} for this agent"))
}
