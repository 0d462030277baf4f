//! A backend that writes down, outside the session, what was really done, and looks at the disk
//! each time: nothing may be done before the fact that says so would survive a power cut.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, OpenRequest, Turn};
use atomic_event::{Answer, BackendId, ConversationId, QuestionId, StepError, Usage};
use atomic_session::MemoryDisk;
use serde_json::Value;

/// What was done, and what was done too early or twice.
#[derive(Debug)]
pub struct Ledger {
    disk: MemoryDisk,
    /// Where the sessions are, inside the workspace.
    sessions_dir: String,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    opened: Vec<(String, u32)>,
    sent: Vec<(String, String)>,
    closed: usize,
    violations: Vec<String>,
}

impl Ledger {
    /// An empty ledger for sessions on this disk.
    pub fn new(disk: MemoryDisk, sessions_dir: &str) -> Self {
        Self { disk, sessions_dir: sessions_dir.to_owned(), pages: Mutex::default() }
    }

    /// Every conversation that was opened: the step and its attempt.
    pub fn opened(&self) -> Vec<(String, u32)> {
        self.read(|pages| pages.opened.clone())
    }

    /// Every prompt that was sent, with the step that sent it.
    pub fn sent(&self) -> Vec<(String, String)> {
        self.read(|pages| pages.sent.clone())
    }

    /// How many conversations were closed in good order.
    pub fn closed(&self) -> usize {
        self.read(|pages| pages.closed)
    }

    /// What should not have been done, in words.
    pub fn violations(&self) -> Vec<String> {
        self.read(|pages| pages.violations.clone())
    }

    fn read<T>(&self, look: impl FnOnce(&mut Pages) -> T) -> T {
        look(&mut self.pages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks that exactly what `rule` wants is durable about an attempt.
    fn check(&self, place: &Place, rule: Rule) {
        let journal = place.workspace.join(&self.sessions_dir).join(&place.session);
        let bytes = self.disk.durable(&journal.join("journal.jsonl")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let about = |fact: &Value| fact["step"] == *place.step;
        let attempt = |fact: &Value| fact["attempt"] == place.attempt;
        let facts: Vec<Value> = text
            .lines()
            .filter(|line| line.contains(&place.step))
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(about)
            .collect();
        let has = |kind: &str| facts.iter().any(|fact| fact["type"] == kind && attempt(fact));
        let problem = match rule {
            Rule::Started if facts.iter().any(|fact| fact["type"] == "step_finished") => {
                Some("was performed although its finish is on disk")
            }
            Rule::Started if !has("step_started") => {
                Some("was performed before its start was on disk")
            }
            Rule::Opened if !has("conversation_opened") => {
                Some("was prompted before its conversation was on disk")
            }
            Rule::Started | Rule::Opened => None,
        };
        if let Some(problem) = problem {
            let line = format!("{} attempt {} {problem}", place.step, place.attempt);
            self.read(|pages| pages.violations.push(line));
        }
    }
}

/// What must be durable.
#[derive(Clone, Copy)]
enum Rule {
    /// The start of the attempt, and no finish of the step.
    Started,
    /// The conversation.
    Opened,
}

/// Whose work something is.
#[derive(Clone, Debug)]
struct Place {
    workspace: PathBuf,
    session: String,
    step: String,
    attempt: u32,
}

impl Place {
    /// Reads it from a marker, `<session>/<step>/<attempt>`.
    fn of(request: &OpenRequest) -> Option<Self> {
        let (session, rest) = request.marker.split_once('/')?;
        let (step, attempt) = rest.rsplit_once('/')?;
        Some(Self {
            workspace: request.workspace.clone(),
            session: session.to_owned(),
            step: step.to_owned(),
            attempt: attempt.parse().ok()?,
        })
    }
}

/// A backend whose work is written down in a [`Ledger`].
///
/// A new conversation is named after its step: `script-<step>`. So a script can tell the first
/// visit to a node from the second as a real program can, which remembers the conversation, and
/// two runs give the same journal.
pub struct LedgerBackend {
    inner: Arc<dyn Backend>,
    ledger: Arc<Ledger>,
}

impl LedgerBackend {
    /// Lets `inner`, a script, do the work.
    pub fn new(inner: Arc<dyn Backend>, ledger: Arc<Ledger>) -> Self {
        Self { inner, ledger }
    }
}

impl Backend for LedgerBackend {
    fn id(&self) -> BackendId {
        self.inner.id()
    }

    fn reports_cost(&self) -> bool {
        self.inner.reports_cost()
    }

    /// What it does depends on the prompt alone.
    fn remembers(&self) -> bool {
        false
    }

    fn open(
        &self,
        mut request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move {
            let Some(place) = Place::of(&request) else {
                let problem = format!("the marker {:?} names no step", request.marker);
                return Err(BackendError::Misconfigured(problem));
            };
            self.ledger.check(&place, Rule::Started);
            self.ledger.read(|pages| pages.opened.push((place.step.clone(), place.attempt)));
            let name = || ConversationId::from(format!("script-{}", place.step));
            request.resume = Some(request.resume.unwrap_or_else(name));
            let inner = self.inner.open(request).await?;
            let ledger = Arc::clone(&self.ledger);
            Ok(Box::new(LedgerConversation { inner, ledger, place }) as Box<dyn Conversation>)
        })
    }
}

struct LedgerConversation {
    inner: Box<dyn Conversation>,
    ledger: Arc<Ledger>,
    place: Place,
}

impl Conversation for LedgerConversation {
    fn id(&self) -> ConversationId {
        self.inner.id()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        self.ledger.check(&self.place, Rule::Opened);
        let step = self.place.step.clone();
        self.ledger.read(|pages| pages.sent.push((step, prompt.clone())));
        self.inner.send(prompt)
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: Answer,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        self.inner.answer(question, answer)
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        self.inner.interrupt()
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        self.inner.compact()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.inner.close().await;
            self.ledger.read(|pages| pages.closed += 1);
        })
    }
}
