//! GitHub Copilot: the suite of all backends, with the real program: one for all checks but those
//! that end it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atomic_backend::Backend;
use atomic_backend::copilot::{CopilotBackend, CopilotConfig};
use atomic_backend::guard::Guard;
use atomic_testing::agents::{COPILOT, CopilotHome, program};
use atomic_testing::conformance::backend::{
    Check, Failure, Program, Scenario, SharedModel, Stage, Words, run_all,
};
use atomic_testing::model::{ModelServer, Received, Reply, Script, Turn};
use serde_json::json;

use super::scripts::{Tongue, error, questions, script};

/// How many checks run at once: most of them wait for something.
const AT_ONCE: usize = 4;

/// How long the program may try again by itself.
pub(super) const WINDOW: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_suite_on_one_program() {
    run_all(Arc::new(CopilotStage::new()), Check::all(), AT_ONCE).await;
}

/// One user with one program and one model, and others for what would be in the way of everybody.
struct CopilotStage {
    model: SharedModel,
    home: CopilotHome,
    shared: Arc<dyn Backend>,
    /// Homes and models of those that have their own.
    apart: Mutex<Vec<(CopilotHome, ModelServer)>>,
}

/// Kills the program once the conversation is on disk. Copilot 1.0.102 writes `events.jsonl` some time
/// after a turn has begun, and a conversation that was never written cannot go on. The program has
/// marked its conversations by lock files with its number.
const KILL_ONCE_SAVED: &str = "n=0; while [ $((n += 1)) -lt 600 ]; do saved=yes; \
    for lock in \"$COPILOT_HOME\"/session-state/*/inuse.$PPID.lock \
    \"$COPILOT_HOME\"/*/session-state/*/inuse.$PPID.lock; do \
    if [ -e \"$lock\" ] && [ ! -s \"${lock%/*}/events.jsonl\" ]; then saved=no; fi; done; \
    if [ $saved = yes ]; then break; fi; sleep 0.05; done; k=kill; $k -9 $PPID";

impl CopilotStage {
    fn new() -> Self {
        let summary = Turn::default().user(Copilot::SUMMARY).reply(Reply::say(Scenario::SUMMARY));
        let model = SharedModel::start(Script::new().with(summary)).unwrap();
        let home = CopilotHome::default();
        let env = home.env(&model.url());
        let shared = Arc::new(backend(program("copilot", COPILOT), WINDOW, env));
        Self { model, home, shared, apart: Mutex::default() }
    }

    fn apart(&self, scenario: &Scenario, executable: PathBuf) -> Box<dyn Backend> {
        let model = ModelServer::start(script::<Copilot>(scenario)).unwrap();
        let home = CopilotHome::default();
        let env = home.env(&model.url());
        self.apart.lock().unwrap().push((home, model));
        Box::new(backend(executable, WINDOW, env))
    }
}

pub(super) fn backend(
    program: PathBuf,
    patience: Duration,
    env: Vec<(String, String)>,
) -> CopilotBackend {
    let config = CopilotConfig { program, patience, env };
    CopilotBackend::new(config, Guard::new(env!("CARGO_BIN_EXE_guard-host").into()))
}

/// A program that says a version before the oldest that will do.
fn old_program(folder: &Path) -> PathBuf {
    let program = folder.join("copilot");
    let said = json!({ "jsonrpc": "2.0", "id": 1, "result": { "ok": true, "protocolVersion": 3, "version": "1.0.101" } });
    let said = said.to_string();
    let script = format!(
        "#!/bin/sh\nprintf 'Content-Length: {}\\r\\n\\r\\n%s' '{said}'\ncat > /dev/null\n",
        said.len()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

impl Stage for CopilotStage {
    fn program(&self) -> Program {
        Program { name: "copilot", version: COPILOT }
    }

    fn backend(&self, scenario: &Scenario) -> Box<dyn Backend> {
        let real = program("copilot", COPILOT);
        if *scenario == Scenario::NotInstalled {
            return self.apart(scenario, self.home.path().join("missing"));
        }
        if *scenario == Scenario::TooOld {
            return self.apart(scenario, old_program(self.home.path()));
        }
        let is_apart = matches!(
            scenario,
            Scenario::Failure(Failure::Exit | Failure::Garbage)
                | Scenario::FailureThenText(Failure::Exit | Failure::Garbage)
        );
        if is_apart {
            return self.apart(scenario, real);
        }
        self.model.playing(script::<Copilot>(scenario), Arc::clone(&self.shared))
    }

    fn words(&self) -> Words {
        Words {
            shell: "bash",
            read: "view",
            write: "create",
            edit: "edit",
            ask: "ask_user",
            help: "task",
            server_tool: SERVER_TOOL,
            models: ["alpha-1", "beta-1"],
        }
    }

    fn received(&self) -> Vec<Received> {
        let apart = self.apart.lock().unwrap();
        let apart = apart.iter().flat_map(|(_, model)| model.requests());
        self.model.received().into_iter().chain(apart).collect()
    }

    fn add_server(&self, project: &Path, command: &[String]) {
        let about =
            json!({ "type": "local", "command": command[0], "args": command[1..], "tools": ["*"] });
        let servers = json!({ "mcpServers": { Scenario::SERVER: about } });
        fs::write(project.join(".mcp.json"), servers.to_string()).unwrap();
    }
}

const SERVER_TOOL: &str = "host-touch";

/// The words of GitHub Copilot.
pub(super) struct Copilot;

impl Tongue for Copilot {
    const SUMMARY: &str = "Please create a detailed summary";
    const MODELS: [&str; 2] = ["alpha-1", "beta-1"];

    fn run(command: &str) -> Reply {
        Reply::call("bash", json!({ "command": command, "description": "as asked" }))
    }

    fn read(path: &str) -> Reply {
        Reply::call("view", json!({ "path": path }))
    }

    fn write(path: &str, text: &str) -> Reply {
        Reply::call("create", json!({ "path": path, "file_text": text }))
    }

    fn use_server() -> Reply {
        Reply::call(SERVER_TOOL, json!({}))
    }

    fn ask(asked: &[(&str, bool)]) -> Reply {
        match asked {
            // The program's own tool has one question with one answer; ours is for the rest.
            [(question, false)] => {
                let choices = Scenario::OPTIONS;
                Reply::call("ask_user", json!({ "question": question, "choices": choices }))
            }
            several => Reply::call("ask_questions", questions(several, "multiSelect")),
        }
    }

    fn ask_in_acts() -> Reply {
        Reply::call("ask_questions", questions(&[(Scenario::QUESTION, false)], "multiSelect"))
    }

    fn help(prompt: &str) -> Reply {
        let task = json!({
            "agent_type": Scenario::HELPER,
            "name": "look",
            "description": Scenario::TASK,
            "prompt": prompt,
            "mode": "sync",
        });
        Reply::call("task", task)
    }

    fn structure(turn: Turn) -> Turn {
        turn.reply(Reply::say(&Scenario::structure().to_string()))
    }

    fn note(turn: Turn) -> Turn {
        let [first, second] = Scenario::TODOS;
        let query = format!(
            "INSERT INTO todos (id, title, description, status) VALUES \
             ('a', '{first}', 'as asked', 'done'), ('b', '{second}', 'as asked', 'pending')"
        );
        turn.reply(Reply::call("sql", json!({ "description": "note", "query": query })))
    }

    /// What the provider cannot bring about, a tool does: it ends the program, or writes into its
    /// output. The program itself does not let a command kill what is no number.
    fn fail(failure: Failure) -> Reply {
        match failure {
            Failure::Exit => Self::run(KILL_ONCE_SAVED),
            Failure::Garbage => Self::run("echo this is no JSON > /proc/$PPID/fd/1; sleep 20"),
            Failure::RateLimit => error(429, Some("Rate limit reached for requests.")),
            Failure::Overloaded => error(529, Some("Overloaded")),
            Failure::ContextOverflow => {
                error(400, Some("This model's maximum context length is 128000 tokens."))
            }
            Failure::Login => error(401, None),
            Failure::Quota => error(429, Some("You exceeded your current quota.")),
            Failure::Unavailable => error(500, None),
            Failure::Refused => Reply { stop: Some("refusal".to_owned()), ..Reply::default() },
            Failure::ModelUnknown => error(404, None),
            Failure::Rejected => error(400, None),
        }
    }
}
