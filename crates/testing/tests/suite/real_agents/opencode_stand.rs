//! The real OpenCode, its home, a scripted model and a workspace, for one test.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use atomic_backend::opencode::{OpenCodeBackend, OpenCodeConfig};
use atomic_backend::{Persona, ToolRules};
use atomic_testing::agents::{OPENCODE, OpenCodeHome, program};
use atomic_testing::model::{ModelServer, Reply, Script};
use serde_json::{Value, json};

use super::serving_stand::{self, guard};
use super::stand::until;

/// How long the program may try again by itself: it first does so after two seconds or a little more.
pub(super) const WINDOW: Duration = Duration::from_secs(5);

/// One user, whose conversations share a server.
pub(super) type Stand = serving_stand::Stand<OpenCodeBackend, OpenCodeHome>;

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
            OpenCodeConfig { program: program.clone(), patience: WINDOW, env: home.env() };
        change(&mut config);
        Self::of(model, home, program, OpenCodeBackend::new(config, guard()))
    }
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
