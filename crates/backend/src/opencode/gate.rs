//! What the program has to ask us before it does it: every use of a tool, by the agent itself or by
//! a helper; and what the shells it starts are told.

use std::sync::Weak;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::server::Server;
use super::talker::Talker;
use crate::Persona;

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
async fn answer(stream: UnixStream, server: &Weak<Server>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut question = String::new();
    stream.read_line(&mut question).await.ok()?;
    let asked: Asked = serde_json::from_str(&question).ok()?;
    let server = server.upgrade()?;
    let answer = decide(&server, &asked).await;
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
                env.insert("ATOMIC_STEP".to_owned(), json!(talker.started_a_shell()));
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
