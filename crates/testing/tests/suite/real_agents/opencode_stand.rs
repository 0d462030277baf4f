//! The real OpenCode, its home, a scripted model and a workspace, for one test.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use atomic_backend::guard::Guard;
use atomic_backend::opencode::{OpenCodeBackend, OpenCodeConfig};
use atomic_backend::{Backend as _, Conversation, OpenRequest, Persona, ToolRules};
use atomic_event::ConversationId;
use atomic_testing::agents::{OPENCODE, OpenCodeHome, program};
use atomic_testing::conformance::backend::{self, Sent, exchange, in_time};
use atomic_testing::model::{ModelServer, Received, Reply, Script, Turn};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::stand::{PATIENCE, text, until};

/// How long the program may try again by itself: it first does so after two seconds or a little more.
pub(super) const WINDOW: Duration = Duration::from_secs(5);

/// One user, whose conversations share a server.
pub(super) struct Stand {
    pub(super) model: ModelServer,
    pub(super) home: OpenCodeHome,
    pub(super) workspace: TempDir,
    pub(super) backend: OpenCodeBackend,
    program: PathBuf,
    run: String,
}

impl Stand {
    pub(super) fn new(script: Script) -> Self {
        Self::with(script, |_| {})
    }

    /// With other settings than usual.
    pub(super) fn with(script: Script, change: impl FnOnce(&mut OpenCodeConfig)) -> Self {
        let model = ModelServer::start(script).unwrap();
        let home = OpenCodeHome::new(&model.url());
        let program = program("opencode", OPENCODE);
        let mut config =
            OpenCodeConfig { program: program.clone(), retry_window: WINDOW, env: home.env() };
        change(&mut config);
        let guard = Guard::new(env!("CARGO_BIN_EXE_guard-host").into());
        Self {
            model,
            home,
            workspace: tempfile::tempdir().unwrap(),
            backend: OpenCodeBackend::new(config, guard),
            program,
            run: uuid::Uuid::new_v4().to_string(),
        }
    }

    pub(super) fn marker(&self, step: &str) -> String {
        format!("{}/{step}/1", self.run)
    }

    /// A new conversation of a step in the workspace.
    pub(super) fn request(&self, step: &str) -> OpenRequest {
        let request = backend::request(self.workspace.path(), None);
        OpenRequest { marker: self.marker(step), ..request }
    }

    pub(super) fn resume(&self, step: &str, id: ConversationId) -> OpenRequest {
        OpenRequest { resume: Some(id), ..self.request(step) }
    }

    pub(super) async fn open(&self, request: OpenRequest) -> Box<dyn Conversation> {
        in_time("opening", self.backend.open(request)).await.unwrap()
    }

    /// Waits for the request whose last text of the user contains this.
    pub(super) fn asked(&self, text: &str) -> Sent {
        let fits = |it: &Received| Sent::read(it).is_some_and(|it| it.last_words().contains(text));
        Sent::read(&self.model.wait_for(fits, PATIENCE).unwrap()).unwrap()
    }

    /// How often the model was asked something by which the user's last words contain this.
    pub(super) fn times_asked(&self, text: &str) -> usize {
        let requests = self.model.requests();
        let sent = requests.iter().filter_map(Sent::read);
        sent.filter(|sent| sent.last_words().contains(text)).count()
    }

    /// The conversation goes on, and the model is told what was said before.
    pub(super) async fn goes_on(&self, conversation: &dyn Conversation, before: &str) {
        let prompt = format!("after {before}");
        let (_, stop) = exchange(conversation, &prompt).await;
        assert_eq!(text(stop), "Yes.");
        let said = self.asked(&prompt).said();
        assert!(said.contains(before), "{said}");
    }

    pub(super) fn made(&self, name: &str) -> bool {
        self.workspace.path().join(name).exists()
    }

    pub(super) async fn is_made(&self, name: &str) {
        until("a file is made", || self.made(name)).await;
    }

    /// The servers that run.
    pub(super) fn servers(&self) -> Vec<i32> {
        let name = self.program.display().to_string();
        let marked = processes(&format!("{}/opencode/server", self.run));
        let is_program = |id: &i32| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).next() == Some(name.as_bytes())
        };
        marked.into_iter().filter(is_program).collect()
    }

    /// The one server.
    pub(super) fn server(&self) -> i32 {
        let servers = self.servers();
        assert_eq!(servers.len(), 1, "{servers:?}");
        servers[0]
    }

    /// Sends the one server a signal.
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.server()).unwrap(), signal).unwrap();
    }
}

/// The processes with a marker.
pub(super) fn processes(marker: &str) -> Vec<i32> {
    let variable = format!("ATOMIC_STEP={marker}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_ours = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        environment.split(|byte| *byte == 0).any(|e| e == variable.as_bytes()).then_some(id)
    };
    entries.filter_map(of_ours).collect()
}

/// The folders that servers of this process have to themselves.
pub(super) fn dens() -> Vec<PathBuf> {
    let prefix = format!("atomic-opencode-{}-", std::process::id());
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let is_one = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&prefix);
    entries.map(|entry| entry.path()).filter(is_one).collect()
}

/// Waits until nothing is left of any server.
pub(super) async fn nothing_is_left(stand: &Stand) {
    until("the servers and their folders are gone", || {
        stand.servers().is_empty() && dens().is_empty()
    })
    .await;
}

pub(super) fn saying(text: &str) -> Script {
    Script::new().with(Turn::default().reply(Reply::say(text)))
}

/// Not for the prompts of [`Stand::goes_on`].
pub(super) fn when(words: &str) -> Turn {
    Turn { absent: vec!["after".to_owned()], ..Turn::default().user(words) }
}

pub(super) fn run(command: &str) -> Reply {
    Reply::call("bash", json!({ "command": command, "description": "as asked" }))
}

pub(super) fn question(text: &str) -> Value {
    let options = ["Red", "Blue"].map(|label| json!({ "label": label, "description": label }));
    json!({ "questions": [{ "question": text, "header": "Which", "options": options }] })
}

pub(super) fn help(agent: &str, prompt: &str) -> Reply {
    let task = json!({ "description": "a task", "prompt": prompt, "subagent_type": agent });
    Reply::call("task", task)
}

pub(super) fn helper(name: &str) -> Persona {
    Persona {
        name: name.to_owned(),
        description: format!("Is {name}"),
        prompt: format!("You are {name}."),
        tools: ToolRules::default(),
        model: None,
    }
}

/// Runs something and says how long it took.
pub(super) async fn timed<T>(what: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let done = what.await;
    (done, start.elapsed())
}
