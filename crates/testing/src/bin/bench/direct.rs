//! Servers of agent programs, driven by as little as is needed to have a turn: OpenCode's here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atomic_backend::BoxFuture;
use atomic_backend::guard::{Guard, Guarded, Job};
use atomic_testing::agents::OpenCodeHome;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::oneshot;

use crate::text;

/// A server that runs.
pub(crate) trait Direct: Send + Sync {
    /// Makes a session.
    fn open(&self) -> BoxFuture<'_, Result<String, String>>;

    /// Has a turn, until the server has nothing more to do.
    fn turn<'a>(&'a self, session: &'a str, prompt: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Leaves a session, where sessions are left.
    fn close<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// What the server says before its address.
const LISTENING: &str = "listening on ";

/// Who waits for the end of a turn, by the session.
pub(crate) type Waiting = Arc<Mutex<Sessions>>;

pub(crate) type Sessions = BTreeMap<String, oneshot::Sender<()>>;

/// A server, and its events.
pub(crate) struct DirectOpenCode {
    client: Client,
    address: String,
    password: String,
    folder: PathBuf,
    waiting: Waiting,
    _process: Guarded,
    _temporary: TempDir,
}

impl DirectOpenCode {
    /// Starts a server with the settings that matter for its speed as ours has them, and hears its
    /// events.
    pub(crate) async fn start(
        program: &Path,
        home: &OpenCodeHome,
        folder: &Path,
    ) -> Result<Self, String> {
        let temporary = TempDir::new().map_err(text)?;
        let password = uuid::Uuid::new_v4().simple().to_string();
        let settings = json!({ "share": "disabled", "autoupdate": false, "snapshot": false });
        let mut env = home.env();
        let shown = temporary.path().display().to_string();
        let more = [
            ("OPENCODE_SERVER_PASSWORD", password.clone()),
            ("OPENCODE_CONFIG_CONTENT", settings.to_string()),
            ("TMPDIR", shown),
        ];
        env.extend(more.map(|(name, value)| (name.to_owned(), value)));
        let arguments = ["serve", "--hostname=127.0.0.1", "--port=0"].map(str::to_owned);
        let argv = std::iter::once(program.display().to_string()).chain(arguments).collect();
        let cwd = temporary.path().to_owned();
        let job = Job { argv, cwd, env, marker: String::new(), stdin: false };
        let mut process = Guard::from_current_exe().spawn(&job).map_err(text)?;
        let output = process.stdout.take().ok_or("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let address = loop {
            let line = lines.next_line().await.map_err(text)?.ok_or("the server has ended")?;
            if let Some((_, address)) = line.split_once(LISTENING) {
                break address.trim().to_owned();
            }
        };
        // Fails where that was done already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().map_err(text)?;
        let (folder, waiting) = (folder.to_owned(), Waiting::default());
        let direct = Self {
            client,
            address,
            password,
            folder,
            waiting,
            _process: process,
            _temporary: temporary,
        };
        let events = direct.request(Method::GET, "/global/event").send().await.map_err(text)?;
        tokio::spawn(hear(events, Arc::clone(&direct.waiting)));
        Ok(direct)
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.address));
        request.basic_auth("opencode", Some(&self.password)).query(&[("directory", &self.folder)])
    }
}

impl Direct for DirectOpenCode {
    fn open(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let request = self.request(Method::POST, "/session").json(&json!({ "title": "bench" }));
            let session: Value = request.send().await.map_err(text)?.json().await.map_err(text)?;
            let id = session.get("id").and_then(Value::as_str);
            id.map(str::to_owned).ok_or_else(|| format!("this is no session: {session}"))
        })
    }

    fn turn<'a>(&'a self, session: &'a str, prompt: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let is_idle = wait_for(&self.waiting, session);
            let [provider, model] = ["scripted", OpenCodeHome::MODELS[0]];
            let body = json!({
                "parts": [{ "type": "text", "text": prompt }],
                "agent": "build",
                "model": { "providerID": provider, "modelID": model },
            });
            let path = format!("/session/{session}/prompt_async");
            let sent = self.request(Method::POST, &path).json(&body).send().await.map_err(text)?;
            sent.error_for_status().map_err(text)?;
            is_idle.await.map_err(text)
        })
    }

    fn close<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// Who is told of the end of the next turn of a session.
pub(crate) fn wait_for(waiting: &Waiting, session: &str) -> oneshot::Receiver<()> {
    let (idle, is_idle) = oneshot::channel();
    lock(waiting).insert(session.to_owned(), idle);
    is_idle
}

/// A turn of a session is over.
pub(crate) fn is_over(waiting: &Waiting, session: &str) {
    if let Some(idle) = lock(waiting).remove(session) {
        let _ = idle.send(());
    }
}

/// Looks for nothing but the ends of turns.
async fn hear(mut events: Response, waiting: Waiting) -> Option<()> {
    let mut read = String::new();
    while let Some(piece) = events.chunk().await.ok()? {
        read.push_str(&String::from_utf8_lossy(&piece));
        while let Some(end) = read.find('\n') {
            let line: String = read.drain(..=end).collect();
            if line.contains("\"session.idle\"") {
                let event: Value = serde_json::from_str(line.strip_prefix("data:")?.trim()).ok()?;
                is_over(&waiting, event["payload"]["properties"]["sessionID"].as_str()?);
            }
        }
    }
    None
}

fn lock(sessions: &Mutex<Sessions>) -> MutexGuard<'_, Sessions> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}
