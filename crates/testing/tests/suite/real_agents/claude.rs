//! Claude Code: the suite of all backends, with the real program in two versions.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use atomic_backend::Backend;
use atomic_backend::claude::ClaudeConfig;
use atomic_testing::agents::{CLAUDE, ClaudeHome, OLDER_CLAUDE, program};
use atomic_testing::conformance::backend::{Act, Failure, Program, Scenario, Stage, Words};
use atomic_testing::model::{
    Action, ApiError, Ending, ModelServer, Received, Reply, Script, Turn, Usage,
};
use serde_json::{Value, json};

use super::stand::{backend, config, stand_in};

mod newer {
    use atomic_testing::backend_conformance;

    backend_conformance!(super::ClaudeStage::new(super::CLAUDE));
}

mod older {
    use atomic_testing::backend_conformance;

    backend_conformance!(super::ClaudeStage::new(super::OLDER_CLAUDE));
}

/// Makes backends that share a home, as those of one user do, each with a model of its own.
struct ClaudeStage {
    version: &'static str,
    home: ClaudeHome,
    models: Mutex<Vec<ModelServer>>,
}

impl ClaudeStage {
    fn new(version: &'static str) -> Self {
        Self { version, home: ClaudeHome::default(), models: Mutex::default() }
    }

    /// The program, or what there is in its place.
    fn executable(&self, scenario: &Scenario) -> PathBuf {
        if *scenario == Scenario::NotInstalled {
            self.home.path().join("missing")
        } else if *scenario == Scenario::TooOld {
            stand_in(self.home.path(), "2.1.196")
        } else {
            program("claude", self.version)
        }
    }
}

impl Stage for ClaudeStage {
    fn program(&self) -> Program {
        Program { name: "claude", version: self.version }
    }

    fn backend(&self, scenario: &Scenario) -> Box<dyn Backend> {
        let model = ModelServer::start(script(scenario)).unwrap();
        let mut env = self.home.env(&model.url());
        if let Scenario::Acts(_) = scenario {
            // Every tool is offered at once, so that it can be seen which ones are.
            env.push(("ENABLE_TOOL_SEARCH".to_owned(), "false".to_owned()));
        }
        self.models.lock().unwrap().push(model);
        let program = self.executable(scenario);
        Box::new(backend(ClaudeConfig { program, ..config(self.version, env) }))
    }

    fn words(&self) -> Words {
        Words {
            shell: "Bash",
            read: "Read",
            write: "Write",
            ask: QUESTION,
            help: "Task",
            server_tool: SERVER_TOOL,
            models: MODELS,
        }
    }

    fn received(&self) -> Vec<Received> {
        self.models.lock().unwrap().iter().flat_map(ModelServer::requests).collect()
    }

    fn add_server(&self, project: &Path, command: &[String]) {
        let about = json!({ "command": command[0], "args": command[1..] });
        let servers = json!({ "mcpServers": { Scenario::SERVER: about } });
        fs::write(project.join(".mcp.json"), servers.to_string()).unwrap();
    }
}

const QUESTION: &str = "AskUserQuestion";
const SERVER_TOOL: &str = "mcp__host__touch";
const MODELS: [&str; 2] = ["claude-alpha-1", "claude-beta-1"];

fn script(scenario: &Scenario) -> Script {
    let turn = Turn::default();
    let turn = match scenario {
        Scenario::Text | Scenario::NotInstalled | Scenario::TooOld => turn.reply(say()),
        Scenario::EndlessText => turn.reply(Reply { ending: Ending::Hang, ..say() }),
        Scenario::Hang => turn.reply(Reply { ending: Ending::Hang, ..Reply::default() }),
        Scenario::Silence => turn.reply(Reply::default()),
        Scenario::Acts(acts) => return acting(Script::new(), turn, acts, say()),
        Scenario::Thought => {
            let think = Action::Think(Scenario::THOUGHT.to_owned());
            turn.reply(Reply { actions: [vec![think], say().actions].concat(), ..say() })
        }
        Scenario::Todos => noting(turn).reply(say()),
        Scenario::Question => {
            turn.reply(ask(&[(Scenario::QUESTION, false)])).reply(Reply::say("It is: {result}"))
        }
        Scenario::Questions => turn
            .reply(ask(&[(Scenario::QUESTION, false), (Scenario::OTHER_QUESTION, true)]))
            .reply(Reply::say("They are: {result}")),
        Scenario::Models => {
            let model = |name: &str| Turn { model: Some(name.to_owned()), ..Turn::default() };
            return Script::new()
                .with(model(MODELS[0]).reply(say()))
                .with(model(MODELS[1]).reply(Reply::say(Scenario::OTHER_TEXT)));
        }
        Scenario::Spends => turn.reply(Reply { usage: spending(), ..say() }),
        Scenario::Summary => {
            let summary = format!("<summary>{}</summary>", Scenario::SUMMARY);
            let wanted = Turn::default().user("create a detailed summary of");
            return Script::new().with(wanted.reply(Reply::say(&summary))).with(turn.reply(say()));
        }
        Scenario::Structure => {
            let give = Reply::call("StructuredOutput", Scenario::structure());
            let good = Turn::default().user(Scenario::ALPHA).reply(give).reply(say());
            return Script::new().with(good).with(turn.reply(say()));
        }
        Scenario::FailureThenText(failure) => {
            // Two prompts without an answer between them are one to the model.
            let texts = Turn::default().user(Scenario::BETA).reply(say());
            return Script::new().with(texts).with(turn.reply(failing(*failure)));
        }
        Scenario::Two => {
            let other = Reply { chunk: NonZeroUsize::new(5), ..Reply::say(Scenario::OTHER_TEXT) };
            return Script::new()
                .with(Turn::default().user(Scenario::ALPHA).reply(say()))
                .with(Turn::default().user(Scenario::BETA).reply(other));
        }
        Scenario::Failure(failure) => turn.reply(failing(*failure)),
    };
    Script::new().with(turn)
}

fn say() -> Reply {
    Reply { chunk: NonZeroUsize::new(7), ..Reply::say(Scenario::TEXT) }
}

/// Of what is read, some is new, some comes from the cache, and some goes there.
fn spending() -> Usage {
    let (cache_read, cache_write) = (500, 200);
    Usage {
        input: Some(Scenario::READ - cache_read - cache_write),
        output: Some(Scenario::WRITTEN),
        cache_read: Some(cache_read),
        cache_write: Some(cache_write),
    }
}

/// A turn that does these and ends with a reply; those of its helpers come before it.
fn acting(mut script: Script, mut turn: Turn, acts: &[Act], last: Reply) -> Script {
    for act in acts {
        turn = turn.reply(match act {
            Act::Run(command) => Reply::call("Bash", json!({ "command": command })),
            Act::Read(path) => Reply::call("Read", json!({ "file_path": path })),
            Act::Write { path, text } => {
                Reply::call("Write", json!({ "file_path": path, "content": text }))
            }
            Act::UseServer => Reply::call(SERVER_TOOL, json!({})),
            Act::Ask => ask(&[(Scenario::QUESTION, false)]),
            Act::Help { prompt, acts } => {
                let helping = Turn::default().user(prompt);
                script = acting(script, helping, acts, Reply::say(Scenario::OTHER_TEXT));
                let task = json!({
                    "description": Scenario::TASK,
                    "prompt": prompt,
                    "subagent_type": Scenario::HELPER,
                });
                Reply::call("Agent", task)
            }
        });
    }
    script.with(turn.reply(last))
}

/// The list as the program offers it by itself, kept entry by entry.
fn noting(turn: Turn) -> Turn {
    let note = |subject| json!({ "subject": subject, "description": "as asked" });
    let [first, second] = Scenario::TODOS.map(|todo| Reply::call("TaskCreate", note(todo)));
    let done = json!({ "taskId": "1", "status": "completed" });
    turn.reply(first).reply(second).reply(Reply::call("TaskUpdate", done))
}

/// Asks these; several options can be chosen where it says so.
fn ask(questions: &[(&str, bool)]) -> Reply {
    let questions: Vec<_> = questions.iter().map(|(text, many)| question(text, *many)).collect();
    Reply::call(QUESTION, json!({ "questions": questions }))
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
    let shell = |command: &str| Reply::call("Bash", json!({ "command": command }));
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
