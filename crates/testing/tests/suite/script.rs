//! The script backend: the suite of all backends, and what only a script can do.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;

use atomic_backend::guard::Guard;
use atomic_backend::script::{FileSource, Format, Script, ScriptBackend};
use atomic_backend::{Backend, OpenRequest};
use atomic_event::{Report, Stop, ToolUse, TurnEvent};
use atomic_testing::backend_conformance;
use atomic_testing::conformance::backend::{Failure, Scenario};
use serde_json::{Value, json};

backend_conformance!(stage);

fn stage(scenario: &Scenario) -> Box<dyn Backend> {
    Box::new(playing(&script(scenario)))
}

fn playing(script: &Value) -> ScriptBackend {
    let no_files = FileSource::Embedded(&[]);
    let script = Script::parse(&script.to_string(), Format::Json, &no_files).unwrap();
    ScriptBackend::new(script, Guard::new(env!("CARGO_BIN_EXE_guard-host").into()))
}

fn script(scenario: &Scenario) -> Value {
    let say = json!({ "say": Scenario::TEXT });
    let hang = json!({ "fail": "hang" });
    let actions = match scenario {
        Scenario::Text => json!([
            { "usage": { "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01 } },
            say,
        ]),
        Scenario::EndlessText => json!([say, hang]),
        Scenario::Hang => json!([hang]),
        Scenario::Silence => json!([{ "fail": "silence" }]),
        Scenario::Tools => json!([
            { "write": { "path": Scenario::FILE, "text": Scenario::CONTENT } },
            { "run": Scenario::FAILING },
            say,
        ]),
        Scenario::Much => json!([
            { "write": { "path": Scenario::FILE, "text": Scenario::large_content() } },
            { "run": Scenario::PRINTS_MUCH },
            say,
        ]),
        Scenario::Command { command } => json!([{ "run": command }]),
        Scenario::Question => {
            let options = Scenario::OPTIONS.map(|label| json!({ "label": label }));
            let ask = json!({ "question": Scenario::QUESTION, "options": options });
            json!([{ "ask": ask }, { "say": "So it is {answer}." }])
        }
        Scenario::Questions => {
            let options = Scenario::OPTIONS.map(|label| json!({ "label": label }));
            let ask = json!({ "question": Scenario::QUESTION, "options": options });
            let mut other = json!({ "question": Scenario::OTHER_QUESTION, "options": options });
            other["multi_select"] = json!(true);
            other["free_text"] = json!(true);
            let say = json!({ "say": "So it is {answer}." });
            json!([{ "ask": ask }, say, { "ask": other }, say])
        }
        Scenario::Models => {
            return json!({ "turn": [
                { "model": Scenario::MODEL, "do": [say] },
                { "model": Scenario::OTHER_MODEL, "do": [{ "say": Scenario::OTHER_TEXT }] },
            ] });
        }
        Scenario::FailureThenText(failure) => {
            return json!({ "turn": [
                { "prompt": [Scenario::ALPHA], "do": [{ "fail": word(*failure) }] },
                { "prompt": [Scenario::BETA], "do": [say] },
            ] });
        }
        Scenario::Two => {
            return json!({ "turn": [
                { "prompt": [Scenario::ALPHA], "do": [say] },
                { "prompt": [Scenario::BETA], "do": [{ "say": Scenario::OTHER_TEXT }] },
            ] });
        }
        Scenario::Failure(failure) => json!([{ "fail": word(*failure) }]),
    };
    json!({ "turn": [{ "do": actions }] })
}

fn word(failure: Failure) -> &'static str {
    match failure {
        Failure::Exit => "exit",
        Failure::Garbage => "garbage",
        Failure::RateLimit => "rate_limit",
        Failure::Overloaded => "overloaded",
        Failure::ContextOverflow => "context_overflow",
        Failure::Login => "login",
        Failure::Quota => "quota",
        Failure::Unavailable => "unavailable",
        Failure::Refused => "refused",
        Failure::ModelUnknown => "model_unknown",
        Failure::Rejected => "rejected",
    }
}

/// Plays these actions and shows the tools that were used, and the end.
async fn play(actions: Value, workspace: &Path) -> (Vec<ToolUse>, Option<TurnEvent>) {
    let request = OpenRequest::new("worker", workspace.to_owned(), "run/step/1".to_owned());
    let backend = playing(&json!({ "turn": [{ "do": actions }] }));
    let conversation = backend.open(request).await.unwrap();
    let mut turn = conversation.send("go".to_owned()).await.unwrap();
    let (mut tools, mut last) = (Vec::new(), None);
    while let Some(event) = turn.recv().await {
        if let TurnEvent::Reported(Report::ToolUsed(tool)) = &event {
            tools.push(tool.clone());
        }
        last = Some(event);
    }
    (tools, last)
}

fn shell(summary: &str, ok: bool) -> ToolUse {
    ToolUse::new("shell", summary, ok)
}

#[tokio::test]
async fn commands_run_in_the_workspace_under_the_steps_name() {
    let folder = tempfile::tempdir().unwrap();
    let command = "pwd -P > where; echo $ATOMIC_STEP >> where; seq 100000";
    let (tools, last) = play(json!([{ "run": command }]), folder.path()).await;
    assert_eq!(tools, [shell(command, true)]);
    assert_eq!(last, Some(TurnEvent::Ended(Stop::Done { text: String::new() })));
    let expected = format!("{}\nrun/step/1\n", folder.path().canonicalize().unwrap().display());
    assert_eq!(std::fs::read_to_string(folder.path().join("where")).unwrap(), expected);
}

#[tokio::test]
async fn a_command_that_fails_or_takes_too_long_is_reported_and_the_turn_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let actions = json!([
        { "run": "exit 1" },
        { "run": { "command": "sleep 1000", "timeout_ms": 20 } },
        { "run": { "command": "true", "timeout_ms": 60_000 } },
        { "say": "on" },
    ]);
    let (tools, last) = play(actions, folder.path()).await;
    assert_eq!(tools, [shell("exit 1", false), shell("sleep 1000", false), shell("true", true)]);
    assert_eq!(last, Some(TurnEvent::Ended(Stop::Done { text: "on".to_owned() })));
}

#[tokio::test]
async fn a_command_that_cannot_be_started_fails_the_turn() {
    let (tools, last) = play(json!([{ "run": "true" }]), Path::new("/no/such/folder")).await;
    assert_eq!(tools, []);
    let Some(TurnEvent::Ended(Stop::Failed(error))) = last else { panic!("{last:?}") };
    assert_eq!(error.code, "tool_failed");
    assert!(error.message.starts_with("script: cannot run \"true\": "), "{}", error.message);
}
