//! Agents that speak ACP: the part of the suite that the protocol has words for, with the real
//! OpenCode and the real GitHub Copilot.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use atomic_backend::acp::{AcpBackend, AcpConfig};
use atomic_backend::guard::Guard;
use atomic_backend::{Backend, OpenRequest, ToolRule};
use atomic_event::{Report, Stop};
use atomic_testing::agents::{COPILOT, CopilotHome, OPENCODE, OpenCodeHome, program};
use atomic_testing::conformance::backend::{
    Act, Check, Failure, Program, Scenario, Sent, Stage, Words, exchange, in_time, request, run_all,
};
use atomic_testing::model::{ModelServer, Received, Reply, Script, Turn};
use atomic_testing::sample::Sample;
use serde_json::json;
use tempfile::TempDir;

use super::copilot::Copilot;
use super::opencode::OpenCode;
use super::scripts::{Tongue, error, script};

/// How many checks run at once: each starts a program, which is all computing.
const AT_ONCE: usize = 3;

/// A tenth of it unless all is played: each check takes seconds of computing to start the program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_part_of_the_suite_on_opencode() {
    let checks = Sample::from_env().of(part(Agent::OpenCode).collect());
    run_all(Arc::new(AcpStage::new(Agent::OpenCode).await), checks, AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_part_of_the_suite_on_copilot() {
    run_all(Arc::new(AcpStage::new(Agent::Copilot).await), part(Agent::Copilot), AT_ONCE).await;
}

/// Checks that are not part of the suite over ACP, on which agent, and why.
const LEFT_OUT: &[(&[Agent], &str, &str)] = &[
    (BOTH, "the_system_prompt_reaches_the_model", "the protocol has no system prompt"),
    (BOTH, "somebody_else_goes_on_with_what_was_said", "the protocol has no system prompt"),
    (BOTH, "prompts_reach_the_model_as_they_are", "looks for the system prompt; see below"),
    (BOTH, "a_question_is_asked_and_the_answer_goes_on", ASKS),
    (BOTH, "several_questions_are_asked_one_after_the_other", ASKS),
    (BOTH, "a_second_prompt_during_a_turn_is_refused", ASKS),
    (BOTH, "a_question_is_interrupted", ASKS),
    (BOTH, "without_questions_there_is_no_tool_for_them", ASKS),
    (BOTH, "a_helper_asks", ASKS),
    (BOTH, "helpers_are_told", HELPERS),
    (BOTH, "a_helper_of_a_restricted_agent_is_restricted", HELPERS),
    (BOTH, "a_helper_has_rules_of_its_own", HELPERS),
    (BOTH, "a_list_of_tools_allows_nothing_else", "what is offered cannot be chosen; see below"),
    (BOTH, "what_is_taken_away_cannot_be_used", "what is offered cannot be chosen; see below"),
    (BOTH, "servers_of_the_project_are_used", "the program decides what it inherits"),
    (BOTH, "servers_are_listed", "the protocol has no list of servers"),
    (BOTH, "an_old_program_is_told", "any program will do that speaks the protocol"),
    (BOTH, "a_rate_limit_is_told", SILENT),
    (BOTH, "a_wait_for_the_provider_is_told", SILENT),
    (OPENCODE_ONLY, "an_overload_is_told", SILENT),
    (OPENCODE_ONLY, "an_outage_is_told", SILENT),
    (COPILOT_ONLY, "a_used_up_quota_is_told", SILENT),
    (OPENCODE_ONLY, "an_unknown_model_is_told", "only the provider's sentence is told, no status"),
    (OPENCODE_ONLY, "usage_is_reported", "it tells the price, which is not known beforehand"),
    (OPENCODE_ONLY, "what_was_spent_is_counted_once", "as above"),
    (COPILOT_ONLY, "a_refusal_is_told", "it ends its turn as if it were done"),
    (COPILOT_ONLY, "the_agents_list_is_told", "its list is always told empty"),
    (COPILOT_ONLY, "the_price_is_told", "it counts no money"),
    (COPILOT_ONLY, "the_context_is_measured", "it tells an estimate from before the answer"),
    (COPILOT_ONLY, "models_are_listed", "it lists none without a login"),
];

const BOTH: &[Agent] = &[Agent::OpenCode, Agent::Copilot];
const OPENCODE_ONLY: &[Agent] = &[Agent::OpenCode];
const COPILOT_ONLY: &[Agent] = &[Agent::Copilot];
const ASKS: &str = "the agent does not ask over ACP";
const HELPERS: &str = "no helper can be declared over ACP";
const SILENT: &str = "the program tries again for a long time, and says nothing";

/// The checks that an agent passes over ACP.
fn part(agent: Agent) -> impl Iterator<Item = Check> {
    let is_left_out = move |check: &Check| {
        LEFT_OUT.iter().any(|(agents, name, _)| agents.contains(&agent) && *name == check.name)
    };
    Check::all().filter(move |check| !is_left_out(check))
}

/// What is left out is there, and is not left out twice.
#[test]
fn what_is_left_out_of_the_suite_is_in_it() {
    for (place, (agents, name, _)) in LEFT_OUT.iter().enumerate() {
        assert!(Check::all().any(|check| check.name == *name), "{name}");
        let again = LEFT_OUT[place + 1..].iter().find(|(others, other, _)| {
            other == name && others.iter().any(|other| agents.contains(other))
        });
        assert_eq!(again, None);
    }
}

/// Which agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agent {
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
            Self::OpenCode => script::<OverAcp>(scenario),
            Self::Copilot => script::<Copilot>(scenario),
        }
    }
}

/// A backend for an agent.
fn backend(agent: Agent, program: PathBuf, env: Vec<(String, String)>) -> AcpBackend {
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

/// What a program is started with.
type Env = Vec<(String, String)>;

/// A home and a model for every scenario: which one is meant cannot be told by the system prompt,
/// which the protocol does not have.
struct AcpStage {
    agent: Agent,
    /// Where OpenCode keeps its conversations, of all scenarios.
    data: TempDir,
    apart: Mutex<Vec<(Box<dyn Any + Send>, ModelServer)>>,
    /// Homes that the same scenario is played in again.
    kept: Mutex<Vec<(Scenario, Env)>>,
}

impl AcpStage {
    async fn new(agent: Agent) -> Self {
        let data = tempfile::tempdir().unwrap();
        let stage = Self { agent, data, apart: Mutex::default(), kept: Mutex::default() };
        // Two that make the same database at the same time are in each other's way.
        let backend = stage.backend(&Scenario::Hang);
        let workspace = tempfile::tempdir().unwrap();
        let first = backend.open(request(workspace.path(), None)).await.unwrap();
        first.close().await;
        stage
    }

    /// What a program is started with for a scenario.
    fn env(&self, scenario: &Scenario) -> Vec<(String, String)> {
        let mut kept = self.kept.lock().unwrap();
        if let Some((_, env)) = kept.iter().find(|(known, _)| known == scenario) {
            return env.clone();
        }
        let model = ModelServer::start(self.agent.script(scenario)).unwrap();
        let (home, mut env) = self.agent.home(&model.url());
        if self.agent == Agent::OpenCode {
            env.retain(|(name, _)| name != DATA);
            env.push((DATA.to_owned(), self.data.path().display().to_string()));
        }
        self.apart.lock().unwrap().push((home, model));
        kept.push((scenario.clone(), env.clone()));
        env
    }
}

/// Where OpenCode keeps its conversations.
const DATA: &str = "XDG_DATA_HOME";

impl Stage for AcpStage {
    fn program(&self) -> Program {
        match self.agent {
            Agent::OpenCode => Program { name: "acp-opencode", version: OPENCODE },
            Agent::Copilot => Program { name: "acp-copilot", version: COPILOT },
        }
    }

    fn backend(&self, scenario: &Scenario) -> Box<dyn Backend> {
        let env = self.env(scenario);
        let program = if *scenario == Scenario::NotInstalled {
            PathBuf::from("/nowhere/missing")
        } else {
            self.agent.program()
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

/// The words of OpenCode, where they are others than over its own protocol.
struct OverAcp;

impl Tongue for OverAcp {
    const SUMMARY: &str = OpenCode::SUMMARY;
    const MODELS: [&str; 2] = OpenCode::MODELS;

    fn run(command: &str) -> Reply {
        OpenCode::run(command)
    }

    fn read(path: &str) -> Reply {
        OpenCode::read(path)
    }

    fn write(path: &str, text: &str) -> Reply {
        OpenCode::write(path, text)
    }

    fn use_server() -> Reply {
        OpenCode::use_server()
    }

    fn ask(asked: &[(&str, bool)]) -> Reply {
        OpenCode::ask(asked)
    }

    fn help(prompt: &str) -> Reply {
        OpenCode::help(prompt)
    }

    fn note(turn: Turn) -> Turn {
        OpenCode::note(turn)
    }

    /// There is no tool for it: it is asked for in words.
    fn structure(turn: Turn) -> Turn {
        turn.reply(Reply::say(&format!("```json\n{}\n```", Scenario::structure())))
    }

    fn fail(failure: Failure) -> Reply {
        if failure == Failure::Garbage {
            return Self::run("echo this is no JSON > /proc/$PPID/fd/1; sleep 20");
        }
        if failure == Failure::Login {
            // As the provider says it: there is no status besides.
            return error(401, Some("invalid x-api-key"));
        }
        OpenCode::fail(failure)
    }
}

/// Whatever the model fails with, the turn has failed.
async fn a_failure_of_the_model_is_no_answer(agent: Agent) {
    let stage = AcpStage::new(agent).await;
    for failure in [Failure::Rejected, Failure::Login, Failure::ModelUnknown, Failure::Quota] {
        // One that waits for ever cannot be told from one that works.
        if agent == Agent::Copilot && failure == Failure::Quota {
            continue;
        }
        let backend = stage.backend(&Scenario::Failure(failure));
        let workspace = tempfile::tempdir().unwrap();
        let opened = in_time("opening", backend.open(request(workspace.path(), None))).await;
        let conversation = opened.unwrap();
        for _ in 0..2 {
            let (heard, stop) = exchange(conversation.as_ref(), "go").await;
            assert!(matches!(stop, Stop::Failed(_)), "{failure:?}: {stop:?}");
            assert_eq!(heard.said, [""; 0], "{failure:?} is said by nobody");
        }
    }
}

/// A prompt is what the model reads: no command and no file is made of it.
async fn a_prompt_reaches_the_model(agent: Agent) {
    let stage = AcpStage::new(agent).await;
    let backend = stage.backend(&Scenario::Text);
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("note.txt"), "the text of the note").unwrap();
    let told = OpenRequest {
        system_prompt: "You are told here.".to_owned(),
        ..request(workspace.path(), None)
    };
    let conversation = in_time("opening", backend.open(told)).await.unwrap();
    let prompts = [
        "one",
        "/help me, said somebody",
        "/compact",
        " /context",
        "@note.txt",
        "!touch made",
        "$ARGUMENTS and !`touch made` and $1",
        "two\nlines with \u{1f980} and \"quotes\"",
    ];
    for prompt in prompts {
        let (_, stop) = exchange(conversation.as_ref(), prompt).await;
        assert_eq!(stop, Stop::Done { text: Scenario::TEXT.to_owned() }, "{prompt}");
        let received = stage.received();
        let mut sent = received
            .iter()
            .filter_map(Sent::read)
            .filter(|sent| sent.said().contains("You are told here."));
        assert!(sent.any(|sent| sent.last_words().ends_with(prompt)), "{prompt}");
        let shows = |sent: Sent| sent.whole().contains("the text of the note");
        assert!(!received.iter().filter_map(Sent::read).any(shows), "{prompt} shows the file");
    }
    let received = stage.received();
    let sent = received.iter().filter_map(Sent::read);
    let told = sent.map(|sent| sent.said().matches("You are told here.").count()).max();
    assert_eq!(told, Some(1), "it is told once what to be");
    assert!(!workspace.path().join("made").exists());
}

/// What the agent asks permission for is restricted, and the agent goes on when it is refused.
async fn tools_that_are_asked_about_are_restricted(agent: Agent) {
    let stage = AcpStage::new(agent).await;
    let acts =
        vec![Act::run("git init -q inner"), Act::run("touch made"), Act::write("written", "x")];
    let backend = stage.backend(&Scenario::Acts(acts));
    let workspace = tempfile::tempdir().unwrap();
    let mut restricted = request(workspace.path(), None);
    restricted.tools.only = Some(vec![ToolRule::read("bash(git:*)"), ToolRule::read("read")]);
    let conversation = in_time("opening", backend.open(restricted)).await.unwrap();
    let (heard, stop) = exchange(conversation.as_ref(), "go").await;
    assert!(matches!(stop, Stop::Done { .. }), "{stop:?}");
    let made = |name: &str| workspace.path().join(name).exists();
    assert!(made("inner/.git") && !made("made") && !made("written"), "{heard:?}");
    let said = |report: &Report| matches!(report, Report::Remarked { text } if text.contains("restrict only"));
    assert!(heard.others.iter().any(said), "{heard:?}");
}

/// One that nobody is logged in to says so when it is opened, or when it is prompted.
async fn a_login_that_is_missing_is_told(agent: Agent) {
    let model = ModelServer::start(Script::new()).unwrap();
    let (_home, mut env) = agent.home(&model.url());
    let is_about_models = |name: &str| {
        ["COPILOT_PROVIDER", "COPILOT_MODEL", "COPILOT_OFFLINE"]
            .iter()
            .any(|it| name.starts_with(it))
    };
    env.retain(|(name, _)| !is_about_models(name));
    if let Some((_, settings)) = env.iter().find(|(name, _)| name == "XDG_CONFIG_HOME") {
        // It has a provider of its own for everybody, on the network.
        let model = "anthropic/claude-sonnet-4-5";
        let about =
            json!({ "enabled_providers": ["anthropic"], "model": model, "small_model": model });
        let settings = Path::new(settings).join("opencode/opencode.json");
        std::fs::write(settings, about.to_string()).unwrap();
    }
    let backend = backend(agent, agent.program(), env);
    let workspace = tempfile::tempdir().unwrap();
    let code = match in_time("opening", backend.open(request(workspace.path(), None))).await {
        Err(error) => error.code().to_owned(),
        Ok(conversation) => match exchange(conversation.as_ref(), "go").await.1 {
            Stop::Failed(error) => error.code,
            stop @ (Stop::Done { .. } | Stop::Interrupted) => panic!("{stop:?}"),
        },
    };
    assert_eq!(code, "login_needed");
    assert_eq!(model.requests().len(), 0);
}

/// Makes a test of each for each agent.
macro_rules! on_both {
    ($($check:ident)*) => {
        mod on_opencode {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    super::$check(super::Agent::OpenCode).await;
                }
            )*
        }

        mod on_copilot {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    super::$check(super::Agent::Copilot).await;
                }
            )*
        }
    };
}

on_both! {
    a_login_that_is_missing_is_told
    a_failure_of_the_model_is_no_answer
    a_prompt_reaches_the_model
    tools_that_are_asked_about_are_restricted
}
