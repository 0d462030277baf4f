//! A real program that serves many conversations, its home, a scripted model and a workspace, for
//! one test.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use atomic_backend::guard::Guard;
use atomic_backend::{Backend, Conversation, OpenRequest};
use atomic_event::{ConversationId, StepError};
use atomic_testing::conformance::backend::{self, Sent, exchange, in_time};
use atomic_testing::model::{ApiError, Break, Ending, ModelServer, Received, Reply, Script, Turn};
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::stand::{PATIENCE, text, until};

/// One user, whose conversations share a program.
pub(super) struct Stand<B, H> {
    pub(super) model: ModelServer,
    pub(super) home: H,
    pub(super) workspace: TempDir,
    pub(super) backend: B,
    pub(super) program: PathBuf,
    run: String,
}

impl<B: Backend, H> Stand<B, H> {
    pub(super) fn of(model: ModelServer, home: H, program: PathBuf, backend: B) -> Self {
        let run = uuid::Uuid::new_v4().to_string();
        let workspace = tempfile::tempdir().unwrap();
        Self { model, home, workspace, backend, program, run }
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

    pub(super) fn server_marker(&self) -> String {
        format!("{}/{}/server", self.run, self.backend.id())
    }

    /// The servers that run.
    pub(super) fn servers(&self) -> Vec<i32> {
        let name = self.program.display().to_string();
        let marked = processes(&self.server_marker());
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

pub(super) fn guard() -> Guard {
    Guard::new(env!("CARGO_BIN_EXE_guard-host").into())
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

pub(super) fn saying(text: &str) -> Script {
    Script::new().with(Turn::default().reply(Reply::say(text)))
}

/// Not for the prompts of [`Stand::goes_on`].
pub(super) fn when(words: &str) -> Turn {
    Turn { absent: vec!["after".to_owned()], ..Turn::default().user(words) }
}

/// Says a word and does not end.
pub(super) fn hang() -> Reply {
    Reply { ending: Ending::Hang, ..Reply::say("Well") }
}

pub(super) fn refusing(status: u16, message: &str, retry_after: Option<u64>) -> Reply {
    let message = (!message.is_empty()).then(|| message.to_owned());
    let error = ApiError { status, kind: None, message, retry_after };
    Reply { ending: Ending::Error(error), ..Reply::default() }
}

/// Checks that an error names the time `after` now, when requests are accepted again.
pub(super) fn retry_at(error: &StepError, after: Duration) {
    let at = error.outage.unwrap().retry_at_ms.unwrap();
    let left =
        Duration::from_millis(u64::try_from(at - Timestamp::now().as_millisecond()).unwrap());
    // Rounding to seconds, and the time that the turn has taken.
    let earliest = after.saturating_sub(PATIENCE);
    assert!((earliest..=after + Duration::from_secs(2)).contains(&left), "{left:?} {error:?}");
}

/// All ways in which an answer can be broken.
pub(super) const BREAKS: [Break; 8] = [
    Break::Cut,
    Break::Garbage,
    Break::Close,
    Break::BadJson,
    Break::Html,
    Break::Empty,
    Break::NoFinish,
    Break::ErrorEvent,
];

/// A prompt whose answer is broken.
pub(super) fn broken(how: Break) -> String {
    format!("broken by {how:?}.")
}
