//! The scenarios of OpenCode. Ids stay as they are: their order says what belongs to which turn.

use std::fs;
use std::io;
use std::path::Path;

use atomic_backend::guard::Guard;
use atomic_backend::opencode::{OpenCodeBackend, OpenCodeConfig};
use atomic_testing::agents::{OPENCODE, OpenCodeHome, program};
use atomic_testing::model::{ApiError, Ending, ModelServer, Reply, Script, Turn};
use serde_json::{Value, json};

use crate::scenarios::{DONE, counted, perform, secrets};
use crate::troubles::{self, PATIENCE};

/// The scenarios, by name.
pub(crate) const SCENARIOS: [&str; 9] = [
    "text",
    "tools",
    "question",
    "helper",
    "error",
    "retry",
    "interrupt",
    "compaction",
    "structured",
];

/// Events that nobody reads.
const NOISE: [&str; 9] = [
    "sync",
    "plugin.added",
    "catalog.updated",
    "integration.updated",
    "reference.updated",
    "file.watcher.updated",
    "project.updated",
    "session.updated",
    "session.diff",
];

/// Plays a scenario; what the program said.
pub(crate) async fn play(scenario: &str) -> io::Result<Vec<String>> {
    let model = ModelServer::start(script(scenario))?;
    let home = OpenCodeHome::new(&model.url());
    let folder = tempfile::tempdir()?;
    let (workspace, kept) = (folder.path().join("workspace"), folder.path().join("lines.jsonl"));
    fs::create_dir(&workspace)?;
    let mut env = home.env();
    let text = |path: &Path| path.display().to_string();
    env.push(("ATOMIC_TEST_OPENCODE".to_owned(), text(&program("opencode", OPENCODE))));
    env.push(("ATOMIC_TEST_OPENCODE_LINES".to_owned(), text(&kept)));
    let between = std::env::current_exe()?.with_file_name("opencode-between");
    let config = OpenCodeConfig { program: between, patience: PATIENCE, env };
    let backend = OpenCodeBackend::new(config, Guard::from_current_exe());
    perform(scenario, &backend, &workspace).await?;
    let secrets = secrets(folder.path(), home.path(), &model);
    let mut lines = vec![];
    for line in fs::read_to_string(&kept)?.lines() {
        let event: Value = serde_json::from_str(line)?;
        let kind = event["payload"]["type"].as_str().unwrap_or_default();
        if !NOISE.contains(&kind) && !kind.starts_with("server.") {
            let line =
                secrets.iter().fold(line.to_owned(), |line, (it, name)| line.replace(it, name));
            lines.push(line);
        }
    }
    Ok(lines)
}

fn script(scenario: &str) -> Script {
    let call = |tool: &str, input: Value| counted(Reply::call(tool, input));
    let run = |command: &str| json!({ "command": command, "description": "as asked" });
    let helper = Turn::default()
        .user("Look around")
        .reply(call("bash", run("true")))
        .reply(counted(Reply::say("Looked.")));
    let compact =
        Turn::default().user("anchored summary").reply(counted(Reply::say("They counted.")));
    let busy = ApiError { status: 429, kind: None, message: None, retry_after: Some(1) };
    let turn = Turn::default();
    let turn = match scenario {
        "tools" => turn
            .reply(call("write", json!({ "filePath": "{workspace}/made.txt", "content": "made" })))
            .reply(call("bash", run("exit 3")))
            .reply(call("unheard-of", json!({}))),
        "question" => turn.reply(call("question", crate::scenarios::question())),
        "helper" => turn.reply(call(
            "task",
            json!({ "description": "look", "prompt": "Look around", "subagent_type": "scout" }),
        )),
        "error" => turn.reply(Reply::error(400)),
        "retry" => turn.reply(Reply { ending: Ending::Error(busy), ..Reply::default() }),
        "interrupt" => turn.reply(Reply { ending: Ending::Hang, ..counted(Reply::say("Well")) }),
        "structured" => turn.reply(call("StructuredOutput", json!({ "colour": "blue" }))),
        _ => troubles::reply(scenario).map_or(turn.clone(), |reply| turn.reply(reply)),
    };
    Script::new().with(helper).with(compact).with(turn.reply(counted(Reply::say(DONE))))
}
