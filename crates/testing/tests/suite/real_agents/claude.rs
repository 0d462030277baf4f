//! Claude Code: the suite of all backends, with the real program in two versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use atomic_backend::Backend;
use atomic_backend::claude::ClaudeConfig;
use atomic_testing::agents::{CLAUDE, ClaudeHome, OLDER_CLAUDE, program};
use atomic_testing::conformance::backend::{Failure, Program, Scenario, Stage, Words};
use atomic_testing::model::{ModelServer, Received, Reply, Turn};
use serde_json::json;

use super::scripts::{Tongue, error, questions, script};
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
        let model = ModelServer::start(script::<Claude>(scenario)).unwrap();
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
            edit: "Edit",
            ask: QUESTION,
            help: "Task",
            server_tool: SERVER_TOOL,
            models: Claude::MODELS,
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

/// The words of Claude Code.
struct Claude;

impl Tongue for Claude {
    const SUMMARY: &str = "create a detailed summary of";
    const MODELS: [&str; 2] = ["claude-alpha-1", "claude-beta-1"];

    fn run(command: &str) -> Reply {
        Reply::call("Bash", json!({ "command": command }))
    }

    fn read(path: &str) -> Reply {
        Reply::call("Read", json!({ "file_path": path }))
    }

    fn write(path: &str, text: &str) -> Reply {
        Reply::call("Write", json!({ "file_path": path, "content": text }))
    }

    fn use_server() -> Reply {
        Reply::call(SERVER_TOOL, json!({}))
    }

    fn ask(asked: &[(&str, bool)]) -> Reply {
        Reply::call(QUESTION, questions(asked, "multiSelect"))
    }

    fn help(prompt: &str) -> Reply {
        let task = json!({
            "description": Scenario::TASK,
            "prompt": prompt,
            "subagent_type": Scenario::HELPER,
        });
        Reply::call("Agent", task)
    }

    /// The list as the program offers it by itself, kept entry by entry.
    fn note(turn: Turn) -> Turn {
        let note = |subject| json!({ "subject": subject, "description": "as asked" });
        let [first, second] = Scenario::TODOS.map(|todo| Reply::call("TaskCreate", note(todo)));
        let done = json!({ "taskId": "1", "status": "completed" });
        turn.reply(first).reply(second).reply(Reply::call("TaskUpdate", done))
    }

    /// What the provider cannot bring about, a tool does: it ends the program, or writes into its
    /// output.
    fn fail(failure: Failure) -> Reply {
        let shell = Self::run;
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
}
