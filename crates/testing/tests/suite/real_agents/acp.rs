//! Agents that speak ACP: the part of the suite that the protocol has words for, with the real
//! OpenCode and the real GitHub Copilot.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use atomic_backend::Backend;
use atomic_backend::acp::{AcpBackend, AcpConfig};
use atomic_backend::guard::Guard;
use atomic_testing::agents::{COPILOT, CopilotHome, OPENCODE, OpenCodeHome, program};
use atomic_testing::conformance::backend::{Check, Program, Scenario, Stage, Words, run_all};
use atomic_testing::model::{ModelServer, Received, Script};

use super::copilot::Copilot;
use super::opencode::OpenCode;
use super::scripts::script;

/// How many checks run at once: each starts a program, which is all computing.
const AT_ONCE: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_part_of_the_suite_on_opencode() {
    run_all(Arc::new(AcpStage::new(Agent::OpenCode)), subset(), AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_part_of_the_suite_on_copilot() {
    run_all(Arc::new(AcpStage::new(Agent::Copilot)), subset(), AT_ONCE).await;
}

fn subset() -> impl Iterator<Item = Check> {
    let only = std::env::var("ONLY").ok();
    Check::all().filter(move |check| {
        only.as_ref().is_none_or(|only| only.split(',').any(|o| check.name.contains(o)))
    })
}

/// Which agent.
#[derive(Clone, Copy)]
pub(super) enum Agent {
    OpenCode,
    Copilot,
}

impl Agent {
    fn program(self) -> PathBuf {
        match self {
            Self::OpenCode => program("opencode", OPENCODE),
            Self::Copilot => program("copilot", COPILOT),
        }
    }

    fn argument(self) -> &'static str {
        match self {
            Self::OpenCode => "acp",
            Self::Copilot => "--acp",
        }
    }

    /// A home for it in which a model is at `url`, and what makes it live there.
    fn home(self, url: &str) -> (Box<dyn Any + Send>, Vec<(String, String)>) {
        match self {
            Self::OpenCode => {
                let home = OpenCodeHome::new(url);
                let env = home.env();
                (Box::new(home), env)
            }
            Self::Copilot => {
                let home = CopilotHome::default();
                let env = home.env(url);
                (Box::new(home), env)
            }
        }
    }

    fn script(self, scenario: &Scenario) -> Script {
        match self {
            Self::OpenCode => script::<OpenCode>(scenario),
            Self::Copilot => script::<Copilot>(scenario),
        }
    }
}

/// A backend for an agent.
pub(super) fn backend(agent: Agent, program: PathBuf, env: Vec<(String, String)>) -> AcpBackend {
    let name = program.file_name().unwrap().to_string_lossy().into_owned();
    let config = AcpConfig {
        command: format!("{name} {}", agent.argument()),
        program,
        arguments: vec![agent.argument().to_owned()],
        starts: 2,
        env,
    };
    AcpBackend::new(config, Guard::new(env!("CARGO_BIN_EXE_guard-host").into()))
}

/// A home and a model for every scenario: which one is meant cannot be told by the system prompt,
/// which the protocol does not have.
struct AcpStage {
    agent: Agent,
    apart: Mutex<Vec<(Box<dyn Any + Send>, ModelServer)>>,
    /// Homes that the same scenario is played in again.
    kept: Mutex<Vec<(Scenario, Vec<(String, String)>)>>,
}

impl AcpStage {
    fn new(agent: Agent) -> Self {
        Self { agent, apart: Mutex::default(), kept: Mutex::default() }
    }
}

impl Stage for AcpStage {
    fn program(&self) -> Program {
        match self.agent {
            Agent::OpenCode => Program { name: "acp-opencode", version: OPENCODE },
            Agent::Copilot => Program { name: "acp-copilot", version: COPILOT },
        }
    }

    fn backend(&self, scenario: &Scenario) -> Box<dyn Backend> {
        let mut kept = self.kept.lock().unwrap();
        let known = kept.iter().find(|(known, _)| known == scenario).map(|(_, env)| env.clone());
        let env = known.unwrap_or_else(|| {
            let model = ModelServer::start(self.agent.script(scenario)).unwrap();
            let (home, env) = self.agent.home(&model.url());
            self.apart.lock().unwrap().push((home, model));
            kept.push((scenario.clone(), env.clone()));
            env
        });
        let program = match scenario {
            Scenario::NotInstalled => PathBuf::from("/nowhere/missing"),
            _ => self.agent.program(),
        };
        Box::new(backend(self.agent, program, env))
    }

    fn words(&self) -> Words {
        let (read, write, server_tool, models) = match self.agent {
            Agent::OpenCode => (
                "read",
                "write",
                "host_touch",
                ["scripted/claude-alpha-1", "scripted/claude-beta-1"],
            ),
            Agent::Copilot => ("view", "create", "host-touch", ["alpha-1", "beta-1"]),
        };
        let (ask, help) = ("question", "task");
        Words { shell: "bash", read, write, edit: "edit", ask, help, server_tool, models }
    }

    fn received(&self) -> Vec<Received> {
        let apart = self.apart.lock().unwrap();
        apart.iter().flat_map(|(_, model)| model.requests()).collect()
    }

    fn add_server(&self, _project: &Path, _command: &[String]) {
        panic!("over ACP the program itself knows its servers");
    }
}
