//! GitHub Copilot's server, driven by as little as is needed to have a turn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use atomic_backend::BoxFuture;
use atomic_backend::guard::{Guard, Guarded, Job};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::oneshot;

use crate::direct::{Direct, Waiting, is_over, wait_for};
use crate::text;

/// Who waits for which answer.
type Calls = Arc<Mutex<BTreeMap<u64, oneshot::Sender<Value>>>>;

/// What an answer begins with.
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// What the end of a turn has in it.
const IDLE: &[u8] = br#""type":"session.idle""#;

/// A server, and its messages.
pub(crate) struct DirectCopilot {
    stdin: tokio::sync::Mutex<ChildStdin>,
    calls: Calls,
    count: AtomicU64,
    waiting: Waiting,
    folder: PathBuf,
    provider: Value,
    _process: Guarded,
}

impl DirectCopilot {
    /// Starts a server in a home, with the model at an address.
    pub(crate) fn start(
        program: &Path,
        env: Vec<(String, String)>,
        url: &str,
        folder: &Path,
    ) -> Result<Self, String> {
        let arguments = ["--server", "--stdio", "--no-auto-update"].map(str::to_owned);
        let argv = std::iter::once(program.display().to_string()).chain(arguments).collect();
        let job = Job { argv, cwd: std::env::temp_dir(), env, marker: String::new(), stdin: true };
        let mut process = Guard::from_current_exe().spawn(&job).map_err(text)?;
        let stdin = process.stdin.take().ok_or("the server has no input")?;
        let stdout = process.stdout.take().ok_or("the server has no output")?;
        let (calls, waiting) = (Calls::default(), Waiting::default());
        tokio::spawn(hear(stdout, Arc::clone(&calls), Arc::clone(&waiting)));
        let provider = json!({
            "type": "openai",
            "wireApi": "completions",
            "baseUrl": format!("{url}/v1"),
            "apiKey": "of-no-use-anywhere",
        });
        Ok(Self {
            stdin: stdin.into(),
            calls,
            count: AtomicU64::new(1),
            waiting,
            folder: folder.to_owned(),
            provider,
            _process: process,
        })
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.count.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let body = body.to_string();
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.stdin.lock().await.write_all(message.as_bytes()).await.map_err(text)?;
        let answer = answer.await.map_err(text)?;
        if answer.get("error").is_some() { Err(format!("{method}: {answer}")) } else { Ok(answer) }
    }
}

impl Direct for DirectCopilot {
    fn open(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move {
            let id = uuid::Uuid::new_v4().to_string();
            let session = json!({
                "sessionId": id,
                "workingDirectory": self.folder,
                "model": "plain-1",
                "provider": self.provider,
                "streaming": true,
                "requestPermission": true,
                "skipCustomInstructions": true,
            });
            self.call("session.create", session).await?;
            let mode = json!({ "sessionId": id, "mode": "allow-all" });
            self.call("session.permissions.setMode", mode).await?;
            Ok(id)
        })
    }

    fn turn<'a>(&'a self, session: &'a str, prompt: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let is_idle = wait_for(&self.waiting, session);
            let message = json!({ "sessionId": session, "prompt": prompt });
            self.call("session.send", message).await?;
            is_idle.await.map_err(text)
        })
    }

    fn close<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            self.call("session.destroy", json!({ "sessionId": session })).await.map(drop)
        })
    }
}

/// Looks for nothing but answers and the ends of turns.
async fn hear(stdout: ChildStdout, calls: Calls, waiting: Waiting) -> Option<()> {
    let mut stdout = BufReader::with_capacity(256 * 1024, stdout);
    let (mut head, mut body) = (String::new(), vec![]);
    loop {
        head.clear();
        stdout.read_line(&mut head).await.ok()?;
        let length = head.strip_prefix("Content-Length: ")?.trim_end().parse().ok()?;
        stdout.read_line(&mut head).await.ok()?;
        body.resize(length, 0);
        stdout.read_exact(&mut body).await.ok()?;
        if body.starts_with(ANSWER) {
            let answer: Value = serde_json::from_slice(&body).ok()?;
            let id = answer["id"].as_u64()?;
            let caller = calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            if let Some(caller) = caller {
                let _ = caller.send(answer);
            }
        // It is said in the beginning.
        } else if body.len() < 1_000 && body.windows(IDLE.len()).any(|part| part == IDLE) {
            let event: Value = serde_json::from_slice(&body).ok()?;
            is_over(&waiting, event["params"]["sessionId"].as_str()?);
        }
    }
}
