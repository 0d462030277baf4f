//! The script backend: the suite of all backends, and what only a script can do.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::path::Path;
use std::sync::Arc;

use atomic_backend::guard::Guard;
use atomic_backend::script::{FileSource, Format, Script, ScriptBackend};
use atomic_backend::{Backend, OpenRequest};
use atomic_event::{Report, Stop, ToolUse, TurnEvent};
use atomic_testing::backend_conformance;
use atomic_testing::conformance::backend::{
    Act, Check, Failure, Program, Scenario, Stage, Words, run_all,
};
use serde_json::{Value, json};

backend_conformance!(basic ScriptStage);

struct ScriptStage;

impl Stage for ScriptStage {
    fn program(&self) -> Program {
        Program { name: "script", version: "1" }
    }

    fn backend(&self, scenario: &Scenario) -> Box<dyn Backend> {
        Box::new(playing(&script(scenario)))
    }

    fn words(&self) -> Words {
        Words {
            shell: "run",
            read: "",
            write: "write",
            edit: "edit",
            ask: "ask",
            help: "",
            server_tool: "",
            models: MODELS,
        }
    }
}

const MODELS: [&str; 2] = ["alpha-1", "beta-1"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_checks_pass_at_once_on_one_stage() {
    run_all(Arc::new(ScriptStage), Check::BASIC.iter().copied(), 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_fails_is_named_and_keeps_none_from_running() {
    struct Silent;

    impl Stage for Silent {
        fn program(&self) -> Program {
            Program { name: "silent", version: "2" }
        }

        fn backend(&self, _scenario: &Scenario) -> Box<dyn Backend> {
            ScriptStage.backend(&Scenario::Silence)
        }

        fn words(&self) -> Words {
            ScriptStage.words()
        }
    }

    let names = ["text_is_streamed_and_kept", "silence_is_an_empty_text", "tools_are_reported"];
    let checks: Vec<Check> = Check::all().filter(|check| names.contains(&check.name)).collect();
    let failed = tokio::spawn(run_all(Arc::new(Silent), checks, 1)).await.unwrap_err();
    let said = *failed.into_panic().downcast::<String>().unwrap();
    assert!(said.starts_with("silent 2: 2 of 3 checks failed:\n"), "{said}");
    assert!(said.contains("\ntext_is_streamed_and_kept: in one piece: []"), "{said}");
    assert!(said.contains("\ntools_are_reported: "), "{said}");
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
        Scenario::Acts(acts) => acts.iter().map(act).chain([say]).collect(),
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
                { "model": MODELS[0], "do": [say] },
                { "model": MODELS[1], "do": [{ "say": Scenario::OTHER_TEXT }] },
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
        Scenario::Thought
        | Scenario::Todos
        | Scenario::Spends
        | Scenario::Summary
        | Scenario::Structure
        | Scenario::NotInstalled
        | Scenario::TooOld => panic!("no script does {scenario:?}"),
    };
    json!({ "turn": [{ "do": actions }] })
}

fn act(act: &Act) -> Value {
    match act {
        Act::Run(command) => json!({ "run": command }),
        Act::Write { path, text } => json!({ "write": { "path": path, "text": text } }),
        Act::Read(_) | Act::UseServer | Act::Ask | Act::Help { .. } => {
            panic!("no script does {act:?}")
        }
    }
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
