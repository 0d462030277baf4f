//! The scenarios: what the model says, and what we do.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use atomic_backend::claude::{ClaudeBackend, ClaudeConfig};
use atomic_backend::guard::Guard;
use atomic_backend::{Backend, BackendError, Conversation, OpenRequest, Persona, ToolRules};
use atomic_event::{Answer, StepError, TurnEvent};
use atomic_testing::agents::{ClaudeHome, program};
use atomic_testing::model::{Action, Ending, ModelServer, Reply, Script, Turn, Usage};
use serde_json::{Value, json};

use crate::normalise;
use crate::troubles::{self, PATIENCE};

/// The scenarios, by name.
pub(crate) const SCENARIOS: [&str; 9] = [
    "text",
    "tools",
    "question",
    "helper",
    "thinking",
    "error",
    "interrupt",
    "compaction",
    "structured",
];

/// What the model says last.
pub(crate) const DONE: &str = "Done.";

/// Plays a scenario with a version of the program; what it said.
pub(crate) async fn play(version: &str, scenario: &str) -> io::Result<Vec<String>> {
    let server = ModelServer::start(script(scenario))?;
    let home = ClaudeHome::default();
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    fs::create_dir(&workspace)?;
    let kept = folder.path().join("lines.jsonl");
    let mut env = home.env(&server.url());
    env.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), "1".to_owned()));
    if scenario == "quota-reset" {
        // Only for accounts with a subscription the program reads the headers about their limits.
        env.retain(|(name, _)| name != "ANTHROPIC_API_KEY");
        env.push(("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "of-no-use-anywhere".to_owned()));
    }
    let config = ClaudeConfig {
        program: overheard(folder.path(), &program("claude", version), &kept)?,
        allow_root: true,
        patience: PATIENCE,
        starts: 1,
        env,
    };
    let backend = ClaudeBackend::new(config, Guard::from_current_exe());
    perform(scenario, &backend, &workspace).await?;
    let lines = fs::read_to_string(&kept)?;
    let shown = workspace.display().to_string();
    let dashed = shown.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let mut secrets = vec![(dashed, "-workspace")];
    secrets.extend(self::secrets(folder.path(), home.path(), &server));
    normalise::lines(&lines, &secrets)
}

/// Has the conversation of a scenario, from its beginning to the end of the program.
pub(crate) async fn perform(
    scenario: &str,
    backend: &dyn Backend,
    workspace: &Path,
) -> io::Result<()> {
    let request = request(scenario, workspace.to_owned());
    let conversation = backend.open(request).await.map_err(io::Error::other)?;
    act(scenario, conversation.as_ref()).await.map_err(|error| io::Error::other(error.message))?;
    conversation.close().await;
    backend.end_resting().await;
    Ok(())
}

/// What is different each time, and what it is to be called.
pub(crate) fn secrets(
    folder: &Path,
    home: &Path,
    model: &ModelServer,
) -> [(String, &'static str); 4] {
    let text = |path: &Path| path.display().to_string();
    [
        (text(&folder.join("workspace")), "/workspace"),
        (text(folder), "/folder"),
        (text(home), "/home"),
        (model.url(), "http://model"),
    ]
}

/// A program that is the given one, and whose output is kept.
pub(crate) fn overheard(folder: &Path, program: &Path, kept: &Path) -> io::Result<PathBuf> {
    let overheard = folder.join(program.file_name().unwrap_or_default());
    let (program, kept) = (program.display(), kept.display());
    let script = format!(
        "#!/bin/sh\n\
         [ \"$1\" = --version ] && exec '{program}' --version\n\
         '{program}' \"$@\" | tee -a '{kept}'\n"
    );
    fs::write(&overheard, script)?;
    fs::set_permissions(&overheard, fs::Permissions::from_mode(0o755))?;
    Ok(overheard)
}

fn request(scenario: &str, workspace: PathBuf) -> OpenRequest {
    let scout = Persona {
        name: "scout".to_owned(),
        description: "Looks around".to_owned(),
        prompt: "You look around.".to_owned(),
        tools: ToolRules::default(),
        model: None,
    };
    let schema = json!({
        "type": "object",
        "properties": { "colour": { "type": "string" } },
        "required": ["colour"],
    });
    OpenRequest {
        system_prompt: "You are part of a recording.".to_owned(),
        questions: true,
        helpers: if scenario == "helper" { vec![scout] } else { vec![] },
        schema: (scenario == "structured").then_some(schema),
        ..OpenRequest::new("worker", workspace, format!("record/{scenario}/1"))
    }
}

async fn act(scenario: &str, conversation: &dyn Conversation) -> Result<(), StepError> {
    if scenario == "compaction" {
        for prompt in ["one", "two", "three"] {
            listen(scenario, conversation, prompt).await?;
        }
        conversation.compact().await?;
    }
    Ok(listen(scenario, conversation, "go").await?)
}

/// Sends a prompt, and does what belongs to the scenario while it is answered.
async fn listen(
    scenario: &str,
    conversation: &dyn Conversation,
    prompt: &str,
) -> Result<(), BackendError> {
    let mut turn = conversation.send(prompt.to_owned()).await?;
    while let Some(event) = turn.recv().await {
        if let TurnEvent::Asked { id, .. } = event {
            conversation.answer(id, Answer { chosen: vec!["Blue".to_owned()] }).await?;
        } else if matches!(event, TurnEvent::Typed { .. }) && scenario == "interrupt" {
            conversation.interrupt().await;
        }
    }
    Ok(())
}

fn script(scenario: &str) -> Script {
    let call = |tool: &str, input: Value| counted(Reply::call(tool, input));
    let helper = Turn::default()
        .user("Look around")
        .reply(call("Bash", json!({ "command": "true" })))
        .reply(counted(Reply::say("Looked.")));
    let compact = Turn::default()
        .user("create a detailed summary of")
        .reply(counted(Reply::say("<summary>They counted.</summary>")));
    let turn = Turn::default();
    let turn = match scenario {
        "tools" => turn
            .reply(call("Write", json!({ "file_path": "made.txt", "content": "made\n" })))
            .reply(call("Bash", json!({ "command": "exit 3" }))),
        "question" => turn.reply(call("AskUserQuestion", question())),
        "helper" => turn.reply(call(
            "Agent",
            json!({ "description": "look", "prompt": "Look around", "subagent_type": "scout" }),
        )),
        "thinking" => turn.reply(think()),
        "error" => turn.reply(Reply::error(429)),
        "interrupt" => turn.reply(Reply { ending: Ending::Hang, ..counted(Reply::say("Well")) }),
        "structured" => turn.reply(call("StructuredOutput", json!({ "colour": "blue" }))),
        _ => troubles::reply(scenario).map_or(turn.clone(), |reply| turn.reply(reply)),
    };
    Script::new().with(helper).with(compact).with(turn.reply(counted(Reply::say(DONE))))
}

pub(crate) fn think() -> Reply {
    let thought = Action::Think("Should I?".to_owned());
    counted(Reply::default().and(thought).and(Action::Say("Yes.".to_owned())))
}

pub(crate) fn question() -> Value {
    let options = ["Red", "Blue"].map(|label| json!({ "label": label, "description": label }));
    json!({ "questions": [{
        "question": "Which colour?",
        "header": "Colour",
        "multiSelect": false,
        "options": options,
    }] })
}

/// With a usage that does not depend on how long the paths of this machine are.
pub(crate) fn counted(reply: Reply) -> Reply {
    let usage =
        Usage { input: Some(100), output: Some(10), cache_read: Some(0), cache_write: Some(0) };
    Reply { usage, ..reply }
}
