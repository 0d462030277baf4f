//! What the program has to ask us before it does it: every use of a tool, by the agent itself or by
//! a helper; and what the shells it starts are told.

use std::sync::Weak;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::server::Server;

/// What is asked.
#[derive(Debug, Deserialize)]
struct Asked {
    session: String,
    /// Without one, it is about the environment of a shell.
    tool: Option<String>,
    #[serde(default)]
    args: Value,
}

/// Answers until the server is gone.
pub(super) async fn serve(listener: UnixListener, server: Weak<Server>) {
    while let Ok((stream, _)) = listener.accept().await {
        let server = server.clone();
        tokio::spawn(async move { answer(stream, &server).await });
    }
}

/// A question without an answer stops whoever asks.
async fn answer(mut stream: UnixStream, server: &Weak<Server>) -> Option<()> {
    let mut question = vec![];
    stream.read_to_end(&mut question).await.ok()?;
    let asked: Asked = serde_json::from_slice(&question).ok()?;
    let server = server.upgrade()?;
    let answer = decide(&server, &asked).await;
    stream.write_all(answer.to_string().as_bytes()).await.ok()
}

async fn decide(server: &Server, asked: &Asked) -> Value {
    let owner = server.owner(&asked.session).await;
    match (&asked.tool, owner) {
        (Some(tool), Some((talker, helper))) => {
            json!({ "refusal": talker.refusal(tool, &asked.args, helper.as_deref()) })
        }
        (Some(_), None) => json!({ "refusal": "this conversation was not started by atomic" }),
        (None, owner) => {
            let mut env: Map<String, Value> =
                server.shell_env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            if let Some((talker, _)) = owner {
                env.insert("ATOMIC_STEP".to_owned(), json!(talker.started_a_shell()));
            }
            json!({ "env": env })
        }
    }
}
