//! The real program, its home, a scripted model and a workspace, for one test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use atomic_backend::claude::{ClaudeBackend, ClaudeConfig};
use atomic_backend::guard::Guard;
use atomic_backend::{Backend as _, BackendError, Conversation, OpenRequest};
use atomic_event::{ConversationId, StepError, Stop};
use atomic_testing::agents::{ClaudeHome, program};
use atomic_testing::conformance::backend::{self, Sent, in_time};
use atomic_testing::model::{ModelServer, Received, Script};
use tempfile::TempDir;

/// Makes a test of each function for each version; each is given the version. `cargo xtask test`
/// plays only a tenth of the tests in a module `older`.
macro_rules! in_both_versions {
    ($($check:ident)*) => {
        mod newer {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    super::$check(atomic_testing::agents::CLAUDE).await;
                }
            )*
        }

        mod older {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $check() {
                    super::$check(atomic_testing::agents::OLDER_CLAUDE).await;
                }
            )*
        }
    };
}

pub(super) use in_both_versions;

/// How long the program may try again by itself.
pub(super) const WINDOW: Duration = Duration::from_secs(2);

/// Longer than any request takes to come.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Everything for one conversation.
pub(super) struct Stand {
    pub(super) server: ModelServer,
    home: ClaudeHome,
    pub(super) workspace: TempDir,
    pub(super) backend: ClaudeBackend,
    program: PathBuf,
    marker: String,
}

impl Stand {
    pub(super) fn new(version: &str, script: Script) -> Self {
        Self::with(version, script, |_| {})
    }

    /// With other settings than usual.
    pub(super) fn with(
        version: &str,
        script: Script,
        change: impl FnOnce(&mut ClaudeConfig),
    ) -> Self {
        let server = ModelServer::start(script).unwrap();
        let home = ClaudeHome::default();
        let mut config = config(version, home.env(&server.url()));
        change(&mut config);
        let program = config.program.clone();
        Self {
            server,
            home,
            workspace: tempfile::tempdir().unwrap(),
            backend: backend(config),
            program,
            marker: format!("real/{}/1", uuid::Uuid::new_v4()),
        }
    }

    /// A new conversation in the workspace.
    pub(super) fn request(&self) -> OpenRequest {
        OpenRequest { marker: self.marker.clone(), ..backend::request(self.workspace.path(), None) }
    }

    /// The same conversation again.
    pub(super) fn resume(&self, id: ConversationId) -> OpenRequest {
        OpenRequest { resume: Some(id), ..self.request() }
    }

    pub(super) async fn try_open(
        &self,
        request: OpenRequest,
    ) -> Result<Box<dyn Conversation>, BackendError> {
        in_time("opening", self.backend.open(request)).await
    }

    pub(super) async fn open(&self, request: OpenRequest) -> Box<dyn Conversation> {
        self.try_open(request).await.unwrap()
    }

    /// Waits for the request whose last text of the user contains this.
    pub(super) fn asked(&self, text: &str) -> Sent {
        let fits = |it: &Received| Sent::read(it).is_some_and(|it| it.last_words().contains(text));
        Sent::read(&self.server.wait_for(fits, PATIENCE).unwrap()).unwrap()
    }

    pub(super) fn made(&self, name: &str) -> bool {
        self.workspace.path().join(name).exists()
    }

    /// The processes of the program itself, by the marker of their step.
    pub(super) fn processes(&self) -> Vec<i32> {
        let variable = format!("ATOMIC_STEP={}", self.marker);
        let name = self.program.display().to_string();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let of_ours = |entry: fs::DirEntry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let read = |file: &str| fs::read(entry.path().join(file)).ok();
            let is_program = read("cmdline")?.split(|byte| *byte == 0).next()? == name.as_bytes();
            let environment = read("environ")?;
            let is_marked = environment.split(|byte| *byte == 0).any(|e| e == variable.as_bytes());
            (is_program && is_marked).then_some(id)
        };
        entries.filter_map(of_ours).collect()
    }

    /// The one process of the program.
    pub(super) fn process(&self) -> i32 {
        let processes = self.processes();
        assert_eq!(processes.len(), 1, "{processes:?}");
        processes[0]
    }

    /// Waits until no process of the program is left.
    pub(super) async fn is_deserted(&self) {
        until("the program has ended", || self.processes().is_empty()).await;
    }

    /// Waits until the program has written down a text of a conversation; returns its file.
    pub(super) async fn is_kept(&self, id: &ConversationId, text: &str) -> PathBuf {
        let folder = self.home.path().join(".claude/projects");
        let kept = || {
            let projects = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut files = projects.map(|project| project.path().join(format!("{id}.jsonl")));
            files.find(|file| fs::read_to_string(file).is_ok_and(|kept| kept.contains(text)))
        };
        until("the conversation is written down", || kept().is_some()).await;
        kept().unwrap()
    }

    /// Waits until a file of the workspace is there.
    pub(super) async fn is_made(&self, name: &str) {
        until("a file is made", || self.made(name)).await;
    }
}

/// Looks again and again: neither processes nor files tell us when they come and go.
pub(super) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(super) fn config(version: &str, env: Vec<(String, String)>) -> ClaudeConfig {
    ClaudeConfig {
        program: program("claude", version),
        allow_root: true,
        patience: WINDOW,
        starts: 2,
        env,
    }
}

pub(super) fn backend(config: ClaudeConfig) -> ClaudeBackend {
    ClaudeBackend::new(config, Guard::new(env!("CARGO_BIN_EXE_guard-host").into()))
}

/// A program that only says its version.
pub(super) fn stand_in(folder: &Path, version: &str) -> PathBuf {
    let program = folder.join("claude");
    fs::write(&program, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}

pub(super) fn text(stop: Stop) -> String {
    if let Stop::Done { text } = stop { text } else { panic!("not done: {stop:?}") }
}

pub(super) fn error(stop: Stop) -> StepError {
    if let Stop::Failed(error) = stop { error } else { panic!("not failed: {stop:?}") }
}
