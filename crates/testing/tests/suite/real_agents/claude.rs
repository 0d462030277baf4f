//! Claude Code: the suite of all backends, with the real program in two versions.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

use atomic_backend::Backend;
use atomic_backend::claude::{ClaudeBackend, ClaudeConfig};
use atomic_backend::guard::Guard;
use atomic_testing::agents::{CLAUDE, ClaudeHome, OLDER_CLAUDE, program};
use atomic_testing::conformance::backend::{Failure, Scenario};
use atomic_testing::model::{Action, ApiError, Ending, ModelServer, Reply, Script, Turn};
use serde_json::{Value, json};

mod newer {
    use atomic_testing::backend_conformance;

    backend_conformance!(super::stage(super::CLAUDE));
}

mod older {
    use atomic_testing::backend_conformance;

    backend_conformance!(super::stage(super::OLDER_CLAUDE));
}

/// Makes backends that share a home, as those of one user do. Their models stay: a conversation
/// goes on when its backend is dropped.
fn stage(version: &'static str) -> impl Fn(&Scenario) -> Box<dyn Backend> + Sync {
    let home = ClaudeHome::default();
    let servers = Mutex::new(vec![]);
    move |scenario| {
        let server = ModelServer::start(script(scenario)).unwrap();
        let backend = backend(version, &server, &home);
        servers.lock().unwrap().push(server);
        Box::new(backend)
    }
}

fn backend(version: &str, server: &ModelServer, home: &ClaudeHome) -> ClaudeBackend {
    let config = ClaudeConfig {
        program: program("claude", version),
        sandbox: true,
        retry_window: Duration::from_secs(2),
        starts: 2,
        env: home.env(&server.url()),
    };
    ClaudeBackend::new(config, Guard::new(env!("CARGO_BIN_EXE_guard-host").into()))
}

fn script(scenario: &Scenario) -> Script {
    let say = || Reply { chunk: NonZeroUsize::new(7), ..Reply::say(Scenario::TEXT) };
    let shell = |command: &str| Reply::call("Bash", json!({ "command": command }));
    let turn = Turn::default();
    let turn = match scenario {
        Scenario::Text => turn.reply(say()),
        Scenario::EndlessText => turn.reply(Reply { ending: Ending::Hang, ..say() }),
        Scenario::Hang => turn.reply(Reply { ending: Ending::Hang, ..Reply::default() }),
        Scenario::Silence => turn.reply(Reply::default()),
        Scenario::Tools => turn
            .reply(Reply::call(
                "Write",
                json!({ "file_path": Scenario::FILE, "content": Scenario::CONTENT }),
            ))
            .reply(shell(Scenario::FAILING))
            .reply(say()),
        Scenario::Much => turn
            .reply(Reply::call(
                "Write",
                json!({ "file_path": Scenario::FILE, "content": Scenario::large_content() }),
            ))
            .reply(shell(Scenario::PRINTS_MUCH))
            .reply(say()),
        Scenario::Command { command } => turn.reply(shell(command)).reply(say()),
        Scenario::Question => {
            let input = json!({ "questions": [question(Scenario::QUESTION, false)] });
            turn.reply(Reply::call("AskUserQuestion", input))
                .reply(Reply::say("The answer is: {result}"))
        }
        Scenario::Questions => {
            let first = question(Scenario::QUESTION, false);
            let input = json!({ "questions": [first, question(Scenario::OTHER_QUESTION, true)] });
            turn.reply(Reply::call("AskUserQuestion", input))
                .reply(Reply::say("The answers are: {result}"))
        }
        Scenario::Models => {
            let model = |name: &str| Turn { model: Some(name.to_owned()), ..Turn::default() };
            return Script::new()
                .with(model(Scenario::MODEL).reply(say()))
                .with(model(Scenario::OTHER_MODEL).reply(Reply::say(Scenario::OTHER_TEXT)));
        }
        Scenario::FailureThenText(failure) => {
            // Two prompts without an answer between them are one to the model.
            let texts = Turn::default().user(Scenario::BETA).reply(say());
            return Script::new().with(texts).with(Turn::default().reply(failing(*failure)));
        }
        Scenario::Two => {
            return Script::new().with(Turn::default().user(Scenario::ALPHA).reply(say())).with(
                Turn::default().user(Scenario::BETA).reply(Reply {
                    chunk: NonZeroUsize::new(5),
                    ..Reply::say(Scenario::OTHER_TEXT)
                }),
            );
        }
        Scenario::Failure(failure) => turn.reply(failing(*failure)),
    };
    Script::new().with(turn)
}

fn question(text: &str, multi_select: bool) -> Value {
    let options = Scenario::OPTIONS.map(|label| json!({ "label": label, "description": label }));
    json!({
        "question": text,
        "header": "Choice",
        "multiSelect": multi_select,
        "options": options,
    })
}

/// A reply that makes the turn fail. What the provider cannot bring about, a tool does: it ends the
/// program, or writes into its output.
fn failing(failure: Failure) -> Reply {
    let error = |status, message: Option<&str>| {
        let message = message.map(str::to_owned);
        let error = ApiError { status, kind: None, message, retry_after: None };
        Reply { ending: Ending::Error(error), ..Reply::default() }
    };
    let shell = |command: &str| {
        let input = json!({ "command": command });
        Reply::default().and(Action::Call { tool: "Bash".to_owned(), input })
    };
    match failure {
        Failure::Exit => shell("kill -9 $PPID"),
        Failure::Garbage => shell("echo this is no JSON > /proc/$PPID/fd/1; sleep 20"),
        Failure::RateLimit => error(429, None),
        Failure::Overloaded => error(529, None),
        Failure::ContextOverflow => {
            error(400, Some("prompt is too long: 250000 tokens > 200000 maximum"))
        }
        Failure::Login => error(401, None),
        Failure::Quota => error(400, Some("Your credit balance is too low to access the API.")),
        Failure::Unavailable => error(500, None),
        Failure::Refused => Reply { stop: Some("refusal".to_owned()), ..Reply::default() },
        Failure::ModelUnknown => error(404, None),
        Failure::Rejected => error(400, None),
    }
}
