//! OpenCode: the suite of all backends, with the real program: one server for all checks but those
//! that end it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atomic_backend::Backend;
use atomic_backend::guard::Guard;
use atomic_backend::opencode::{OpenCodeBackend, OpenCodeConfig};
use atomic_testing::agents::{OPENCODE, OpenCodeHome, program};
use atomic_testing::conformance::backend::{
    Check, Failure, Program, Scenario, SharedModel, Stage, Words, run_all,
};
use atomic_testing::model::{ModelServer, Received, Reply, Script, Turn};
use serde_json::json;

use super::scripts::{Tongue, error, questions, script};

/// How many checks run at once: most of them wait for something.
const AT_ONCE: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_suite_on_one_server() {
    run_all(Arc::new(OpenCodeStage::new()), Check::all(), AT_ONCE).await;
}

/// One user with one server and one model, and others for what would be in the way of everybody.
struct OpenCodeStage {
    model: SharedModel,
    home: OpenCodeHome,
    shared: Arc<dyn Backend>,
    /// Homes and models of those that have their own.
    apart: Mutex<Vec<(OpenCodeHome, ModelServer)>>,
}

impl OpenCodeStage {
    fn new() -> Self {
        let summary = Turn::default().user(OpenCode::SUMMARY).reply(Reply::say(Scenario::SUMMARY));
        let model = SharedModel::start(Script::new().with(summary)).unwrap();
        let home = OpenCodeHome::new(&model.url());
        let shared = Arc::new(backend(program("opencode", OPENCODE), home.env()));
        Self { model, home, shared, apart: Mutex::default() }
    }

    /// A server of its own, run by a program that stands between it and us.
    fn apart(&self, scenario: &Scenario, executable: PathBuf) -> Box<dyn Backend> {
        let model = ModelServer::start(script::<OpenCode>(scenario)).unwrap();
        let home = OpenCodeHome::new(&model.url());
        let mut env = home.env();
        env.push((
            "ATOMIC_TEST_OPENCODE".to_owned(),
            program("opencode", OPENCODE).display().to_string(),
        ));
        if *scenario == Scenario::TooOld {
            env.push(("ATOMIC_TEST_OPENCODE_VERSION".to_owned(), "1.18.32".to_owned()));
        }
        self.apart.lock().unwrap().push((home, model));
        Box::new(backend(executable, env))
    }
}

fn backend(program: PathBuf, env: Vec<(String, String)>) -> OpenCodeBackend {
    let config = OpenCodeConfig { program, patience: Duration::from_secs(3), env };
    OpenCodeBackend::new(config, Guard::new(env!("CARGO_BIN_EXE_guard-host").into()))
}

impl Stage for OpenCodeStage {
    fn program(&self) -> Program {
        Program { name: "opencode", version: OPENCODE }
    }

    fn backend(&self, scenario: &Scenario) -> Box<dyn Backend> {
        if *scenario == Scenario::NotInstalled {
            return self.apart(scenario, self.home.path().join("missing"));
        }
        let is_apart = matches!(
            scenario,
            Scenario::TooOld
                // What overflows is summarised by the program, unless that overflows, too.
                | Scenario::Failure(Failure::ContextOverflow)
                | Scenario::Failure(Failure::Exit | Failure::Garbage)
                | Scenario::FailureThenText(Failure::Exit | Failure::Garbage)
        );
        if is_apart {
            return self.apart(scenario, PathBuf::from(env!("CARGO_BIN_EXE_opencode-between")));
        }
        self.model.playing(script::<OpenCode>(scenario), Arc::clone(&self.shared))
    }

    fn words(&self) -> Words {
        Words {
            shell: "bash",
            read: "read",
            write: "write",
            edit: "edit",
            ask: "question",
            help: "task",
            server_tool: SERVER_TOOL,
            models: ["scripted/claude-alpha-1", "scripted/claude-beta-1"],
        }
    }

    fn received(&self) -> Vec<Received> {
        let apart = self.apart.lock().unwrap();
        let apart = apart.iter().flat_map(|(_, model)| model.requests());
        self.model.received().into_iter().chain(apart).collect()
    }

    fn add_server(&self, project: &Path, command: &[String]) {
        let servers =
            json!({ "mcp": { Scenario::SERVER: { "type": "local", "command": command } } });
        fs::write(project.join("opencode.json"), servers.to_string()).unwrap();
    }
}

const SERVER_TOOL: &str = "host_touch";

/// The words of OpenCode.
pub(super) struct OpenCode;

impl Tongue for OpenCode {
    const SUMMARY: &str = "anchored summary";
    const MODELS: [&str; 2] = ["claude-alpha-1", "claude-beta-1"];

    fn run(command: &str) -> Reply {
        Reply::call("bash", json!({ "command": command, "description": "as asked" }))
    }

    fn read(path: &str) -> Reply {
        Reply::call("read", json!({ "filePath": path }))
    }

    fn write(path: &str, text: &str) -> Reply {
        Reply::call("write", json!({ "filePath": path, "content": text }))
    }

    fn use_server() -> Reply {
        Reply::call(SERVER_TOOL, json!({}))
    }

    fn ask(asked: &[(&str, bool)]) -> Reply {
        Reply::call("question", questions(asked, "multiple"))
    }

    fn help(prompt: &str) -> Reply {
        let task = json!({
            "description": Scenario::TASK,
            "prompt": prompt,
            "subagent_type": Scenario::HELPER,
        });
        Reply::call("task", task)
    }

    fn note(turn: Turn) -> Turn {
        let [first, second] = Scenario::TODOS;
        let todos = json!({ "todos": [
            { "content": first, "status": "completed", "priority": "high" },
            { "content": second, "status": "pending", "priority": "low" },
        ] });
        turn.reply(Reply::call("todowrite", todos))
    }

    /// What the provider cannot bring about, a tool does: it ends the program, or is told of in a
    /// stream that is then broken.
    fn fail(failure: Failure) -> Reply {
        match failure {
            Failure::Exit => Self::run("kill -9 $PPID"),
            Failure::Garbage => Self::run("echo garbage, please; sleep 20"),
            Failure::RateLimit => error(429, Some("This request would exceed your rate limit.")),
            Failure::Overloaded => error(529, Some("Overloaded")),
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
}
