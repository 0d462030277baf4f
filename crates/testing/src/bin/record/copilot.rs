//! The scenarios of GitHub Copilot.

use std::fs;
use std::io;
use std::path::Path;

use atomic_backend::copilot::{CopilotBackend, CopilotConfig};
use atomic_backend::guard::Guard;
use atomic_testing::agents::{COPILOT, CopilotHome, program};
use atomic_testing::model::{ApiError, Ending, ModelServer, Reply, Script, Turn};
use serde_json::{Value, json};

use crate::normalise;
use crate::scenarios::{DONE, counted, overheard, perform, secrets, think};
use crate::troubles::{self, PATIENCE};

/// The scenarios, by name.
pub(crate) const SCENARIOS: [&str; 12] = [
    "text",
    "thinking",
    "tools",
    "question",
    "helper",
    "error",
    "retry",
    "interrupt",
    "compaction",
    "structured",
    "todos",
    "overflow",
];

/// Events that nobody reads, by how they begin, and that are long or many.
const NOISE: [&str; 7] = [
    "hook.",
    "model.",
    "pending_messages.",
    "session.background_tasks_changed",
    "session.managed_settings_resolved",
    "session.shutdown",
    "session.usage_checkpoint",
];

/// Events that are like those, and are there all the same: one is read, the other is the longest.
const NO_NOISE: [&str; 2] = ["model.model_call_failure", "model.messages_snapshot"];

/// Events that hold all that was said so far.
const HUGE: [&str; 2] = ["system.message", "model.messages_snapshot"];

/// Plays a scenario; what the program said.
pub(crate) async fn play(scenario: &str) -> io::Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let (workspace, kept) = (folder.path().join("workspace"), folder.path().join("messages"));
    fs::create_dir(&workspace)?;
    let model = ModelServer::start(script(scenario, &workspace))?;
    let home = CopilotHome::default();
    let mut env = home.env(&model.url());
    if scenario == "overflow" {
        // Less than the tools alone take.
        env.push(("COPILOT_PROVIDER_MAX_PROMPT_TOKENS".to_owned(), "2000".to_owned()));
    }
    let config = CopilotConfig {
        program: overheard(folder.path(), &program("copilot", COPILOT), &kept)?,
        patience: PATIENCE,
        env,
    };
    let backend = CopilotBackend::new(config, Guard::from_current_exe());
    perform(scenario, &backend, &workspace).await?;
    let secrets = secrets(folder.path(), home.path(), &model);
    let mut text = String::new();
    for message in messages(&fs::read(&kept)?)?.into_iter().filter_map(worth_keeping) {
        text.push_str(&message.to_string());
        text.push('\n');
    }
    normalise::lines(&text, &secrets)
}

/// A message, if it is about what happens in a session, without what would fill a screen.
fn worth_keeping(mut message: Value) -> Option<Value> {
    match message["method"].as_str() {
        Some("session.event") => {}
        Some("userInput.request") => return Some(message),
        _ => return None,
    }
    let event = &mut message["params"]["event"];
    let kind = event["type"].as_str().unwrap_or_default();
    if NOISE.iter().any(|noise| kind.starts_with(noise)) && !NO_NOISE.contains(&kind) {
        return None;
    }
    if HUGE.contains(&kind) {
        event["data"] = json!({});
    }
    // The same once more, with the time in front.
    event["data"].as_object_mut().map(|data| data.remove("transformedContent"));
    Some(message)
}

/// The bodies of messages that have their length in front.
fn messages(mut kept: &[u8]) -> io::Result<Vec<Value>> {
    let mut messages = vec![];
    let broken = || io::Error::other("there is something between the messages");
    while !kept.is_empty() {
        let head = b"Content-Length: ";
        let rest = kept.strip_prefix(head).ok_or_else(broken)?;
        let end = rest.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(broken)?;
        let length = str::from_utf8(&rest[..end]).ok().and_then(|text| text.parse().ok());
        let (body, after) = length
            .and_then(|length| rest[end + 4..].split_at_checked(length))
            .ok_or_else(broken)?;
        messages.push(serde_json::from_slice(body)?);
        kept = after;
    }
    Ok(messages)
}

fn script(scenario: &str, workspace: &Path) -> Script {
    let call = |tool: &str, input: Value| counted(Reply::call(tool, input));
    let run = |command: &str| json!({ "command": command, "description": "as asked" });
    let helper = Turn::default()
        .user("Look around")
        .reply(call("bash", run("true")))
        .reply(counted(Reply::say("Looked.")));
    let compact = Turn::default()
        .user("Please create a detailed summary")
        .reply(counted(Reply::say("They counted.")));
    let busy = ApiError { status: 429, kind: None, message: None, retry_after: Some(1) };
    let note = "INSERT INTO todos (id, title, description, status) VALUES \
                ('a', 'look', 'as asked', 'done'), ('b', 'leap', 'as asked', 'pending')";
    let turn = Turn::default();
    let turn = match scenario {
        "tools" => turn
            .reply(call(
                "create",
                json!({ "path": workspace.join("made.txt"), "file_text": "made" }),
            ))
            .reply(call("bash", run("exit 3")))
            .reply(call("unheard-of", json!({}))),
        "question" => turn.reply(call(
            "ask_user",
            json!({ "question": "Which colour?", "choices": ["Red", "Blue"] }),
        )),
        "helper" => turn.reply(call(
            "task",
            json!({
                "agent_type": "scout",
                "name": "look",
                "description": "look",
                "prompt": "Look around",
                "mode": "sync",
            }),
        )),
        "thinking" => turn.reply(think()),
        "error" => turn.reply(Reply::error(400)),
        "retry" => turn.reply(Reply { ending: Ending::Error(busy), ..Reply::default() }),
        "interrupt" => turn.reply(Reply { ending: Ending::Hang, ..counted(Reply::say("Well")) }),
        "structured" => turn.reply(counted(Reply::say(r#"{"colour":"blue"}"#))),
        "todos" => turn.reply(call("sql", json!({ "description": "note", "query": note }))),
        _ => troubles::reply(scenario).map_or(turn.clone(), |reply| turn.reply(reply)),
    };
    Script::new().with(helper).with(compact).with(turn.reply(counted(Reply::say(DONE))))
}
