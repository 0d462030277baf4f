//! Opening conversations and listening to turns.
#![expect(clippy::expect_used, clippy::panic, reason = "a check that fails panics")]

use std::path::Path;
use std::time::Duration;

use atomic_backend::{Backend, Conversation, OpenRequest, Turn};
use atomic_event::{ConversationId, Question, QuestionId, Report, Stop, ToolCall, ToolUse};
use atomic_event::{TurnEvent, Usage};
use tempfile::TempDir;
use tokio::time::timeout;
use uuid::Uuid;

/// Longer than anything here takes; a backend that hangs fails instead of holding up the suite.
const PATIENCE: Duration = Duration::from_secs(120);

/// A conversation in a folder of its own.
pub(super) struct Open {
    pub(super) conversation: Box<dyn Conversation>,
    pub(super) workspace: TempDir,
    /// What marks its processes.
    pub(super) marker: String,
}

/// A folder of its own.
pub(super) fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Opens a new conversation.
pub(super) async fn open(backend: &dyn Backend) -> Open {
    open_as(backend, |request| request).await
}

/// Opens a new conversation that is not quite as most checks want it.
pub(super) async fn open_as(
    backend: &dyn Backend,
    change: impl FnOnce(OpenRequest) -> OpenRequest,
) -> Open {
    let workspace = folder();
    let request = change(request(workspace.path(), None));
    open_in(backend, workspace, request).await
}

/// Opens a conversation in a folder that is there already.
pub(super) async fn open_in(
    backend: &dyn Backend,
    workspace: TempDir,
    request: OpenRequest,
) -> Open {
    let marker = request.marker.clone();
    let conversation = in_time("opening", backend.open(request)).await;
    Open { conversation: conversation.expect("the conversation opens"), workspace, marker }
}

/// A text that nobody else says.
pub(super) fn unique(text: &str) -> String {
    format!("{text} {}", Uuid::new_v4())
}

/// A conversation as most checks want it, with a marker that no other process has: programs are
/// ended by it.
pub fn request(workspace: &Path, resume: Option<ConversationId>) -> OpenRequest {
    let marker = format!("conformance/{}/1", Uuid::new_v4());
    OpenRequest {
        system_prompt: "You are part of a test.".to_owned(),
        resume,
        questions: true,
        ..OpenRequest::new("worker", workspace.to_owned(), marker)
    }
}

impl Open {
    /// Sends a prompt that must be taken.
    pub(super) async fn send(&self, prompt: &str) -> Listener {
        send(self.conversation.as_ref(), prompt).await
    }

    /// Sends a prompt and listens to the end.
    pub(super) async fn exchange(&self, prompt: &str) -> (Heard, Stop) {
        exchange(self.conversation.as_ref(), prompt).await
    }

    /// Ends the conversation.
    pub(super) async fn close(self) {
        in_time("closing", self.conversation.close()).await;
    }
}

/// Sends a prompt that must be taken.
pub async fn send(conversation: &dyn Conversation, prompt: &str) -> Listener {
    let sent = in_time("sending", conversation.send(prompt.to_owned())).await;
    Listener { turn: sent.expect("a prompt is taken"), heard: Heard::default() }
}

/// Sends a prompt and listens to the end.
pub async fn exchange(conversation: &dyn Conversation, prompt: &str) -> (Heard, Stop) {
    send(conversation, prompt).await.until_end().await
}

/// What a turn reported so far.
#[derive(Debug, Default)]
pub struct Heard {
    /// The pieces of its texts.
    pub typed: Vec<String>,
    /// The pieces of what it thought.
    pub thought: Vec<String>,
    /// Its finished texts.
    pub said: Vec<String>,
    /// The tools it began to use.
    pub began: Vec<ToolCall>,
    /// The tools that came back.
    pub tools: Vec<ToolUse>,
    /// What it spent.
    pub spent: Vec<Usage>,
    /// Everything else.
    pub others: Vec<Report>,
}

/// Listens to a turn.
#[derive(Debug)]
pub struct Listener {
    turn: Turn,
    heard: Heard,
}

impl Listener {
    /// Listens until the first text.
    pub async fn until_typed(&mut self) {
        while self.heard.typed.is_empty() {
            match self.next().await {
                Next::Went => {}
                other @ (Next::Asked(..) | Next::Ended(_)) => panic!("{other:?} before any text"),
            }
        }
    }

    /// Listens until a question is asked.
    pub async fn until_asked(&mut self) -> (QuestionId, Question) {
        loop {
            match self.next().await {
                Next::Went => {}
                Next::Asked(id, question) => return (id, question),
                Next::Ended(stop) => panic!("the turn ended before it asked: {stop:?}"),
            }
        }
    }

    /// Listens until the provider is said to be in trouble; returns the kind.
    pub async fn until_waited(&mut self) -> String {
        loop {
            let code = |report: &Report| {
                if let Report::Waited(wait) = report { Some(wait.code.clone()) } else { None }
            };
            if let Some(code) = self.heard.others.iter().find_map(code) {
                return code;
            }
            match self.next().await {
                Next::Went => {}
                other @ (Next::Asked(..) | Next::Ended(_)) => panic!("{other:?} before any wait"),
            }
        }
    }

    /// Listens to the end, which must come once and be followed by nothing.
    pub async fn until_end(mut self) -> (Heard, Stop) {
        loop {
            match self.next().await {
                Next::Went => {}
                Next::Asked(_, question) => panic!("an unexpected question: {question:?}"),
                Next::Ended(stop) => {
                    let after = in_time("closing of the channel", self.turn.recv()).await;
                    assert_eq!(after, None, "nothing follows the end of a turn");
                    return (self.heard, stop);
                }
            }
        }
    }

    async fn next(&mut self) -> Next {
        let event = in_time("listening", self.turn.recv()).await;
        match event.unwrap_or_else(|| panic!("no end after {:?}", self.heard)) {
            TurnEvent::Typed { text } => self.heard.typed.push(text),
            TurnEvent::Thought { text } => self.heard.thought.push(text),
            TurnEvent::ToolBegan(call) => self.heard.began.push(call),
            TurnEvent::Reported(Report::Said { text }) => self.heard.said.push(text),
            TurnEvent::Reported(Report::ToolUsed(tool)) => self.heard.tools.push(tool),
            TurnEvent::Reported(Report::Spent(usage)) => self.heard.spent.push(usage),
            TurnEvent::Reported(other) => self.heard.others.push(other),
            TurnEvent::Asked { id, question, .. } => return Next::Asked(id, question),
            TurnEvent::Ended(stop) => return Next::Ended(stop),
        }
        Next::Went
    }
}

/// What the listener has to react to.
#[derive(Debug)]
enum Next {
    Went,
    Asked(QuestionId, Question),
    Ended(Stop),
}

/// Waits, but not for ever.
pub async fn in_time<T>(what: &str, awaited: impl Future<Output = T>) -> T {
    timeout(PATIENCE, awaited).await.unwrap_or_else(|_| panic!("{what} took over {PATIENCE:?}"))
}
