//! An agent that plays a file of canned turns; no model is involved.
//!
//! A script is TOML, or JSON of the same shape:
//!
//! ```toml
//! reports_cost = true                  # may be left out
//!
//! [[turn]]                             # the first turn that fits the prompt is played
//! agent = "worker"                     # for this agent only
//! system = ["You carry out"]           # all of these are in what it is told to be
//! model = "opus"                       # for this model only
//! prompt = ["Task #4:", "lib.rs"]      # all of these are in the prompt
//! absent = ["earlier attempt"]         # none of these is
//! conversation = "script-1"            # in this conversation only
//!
//! [[turn.do]]
//! say = "Working on it."               # the last `say` is the turn's final text
//! [[turn.do]]
//! pause_ms = 50
//! [[turn.do]]
//! write = { path = "src/lib.rs", from = "files/lib.rs" }          # or `text`
//! [[turn.do]]
//! edit = { path = "README.md", find = "old", replace = "new" }
//! [[turn.do]]
//! delete = "notes.txt"
//! [[turn.do]]
//! run = "cargo test"                   # or { command = "…", timeout_ms = 1000 }
//! [[turn.do]]
//! ask = { question = "Which?", options = [{ label = "A" }, { label = "B" }] }
//! [[turn.do]]
//! say = "You chose {answer}."
//! [[turn.do]]
//! usage = { input_tokens = 10, output_tokens = 5, cost_usd = 0.01 }
//! [[turn.do]]
//! fail = "hang"                        # or exit, garbage, silence, rate_limit, overloaded,
//!                                      # context_overflow, login, quota, unavailable,
//!                                      # refused, model_unknown, rejected
//!
//! [[outage]]                           # as long as it lasts, every turn is refused
//! for_s = 3600                         # after the start; or while_file = "down", in the workspace
//! fail = "rate_limit"                  # or another error
//! retry_after_s = 600                  # may be left out
//! ```
//!
//! Only what a real program would see decides which turn is played: agent, system prompt,
//! model, prompt and conversation id. There are no counters, so a restart changes nothing; and a turn that was cut
//! short and is played again leaves the same files as one that was played once.

mod files;
mod load;
mod play;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atomic_event::{
    Answer, BackendId, ConversationId, Outage, QuestionId, StepError, TurnEvent, Usage,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use load::{FileSource, Format, Script};

use crate::guard::Guard;
use crate::prices::is_listed;
use crate::{Backend, BackendError, BoxFuture, Conversation, OpenRequest, Turn};
use load::CannedTurn;
use play::{Player, failed};
use wire::FailEntry;

/// The name of this backend, in every output.
const ID: &str = "script";

/// What every id we give out begins with.
const CONVERSATION_PREFIX: &str = "script-";

/// How many events may wait for a slow receiver.
const EVENTS: usize = 64;

/// Plays a [`Script`].
#[derive(Clone, Debug)]
pub struct ScriptBackend {
    script: Script,
    guard: Guard,
    made: Made,
}

/// When a backend was made, on two clocks. Outages last from then on; a test may let the time of
/// timers pass faster than that of the day.
#[derive(Clone, Copy, Debug)]
struct Made {
    timer: Instant,
    day: Timestamp,
}

impl ScriptBackend {
    /// Plays `script`; the commands in it run under `guard`.
    pub fn new(script: Script, guard: Guard) -> Self {
        let made = Made { timer: Instant::now(), day: Timestamp::now() };
        Self { script, guard, made }
    }

    fn begin(&self, request: OpenRequest) -> Result<ScriptConversation, BackendError> {
        let id = match &request.resume {
            None => ConversationId::from(format!("{CONVERSATION_PREFIX}{}", uuid::Uuid::new_v4())),
            Some(known) if known.as_str().starts_with(CONVERSATION_PREFIX) => known.clone(),
            Some(foreign) => {
                return Err(BackendError::ConversationGone {
                    backend: self.id(),
                    conversation: foreign.clone(),
                });
            }
        };
        let (script, guard) = (self.script.clone(), self.guard.clone());
        let model = Mutex::new(request.model.clone());
        let (made, current) = (self.made, Mutex::default());
        let shared = Shared { id, request, model, script, guard, made, current };
        Ok(ScriptConversation { shared: Arc::new(shared), task: Mutex::default() })
    }
}

impl Backend for ScriptBackend {
    fn id(&self) -> BackendId {
        BackendId::from(ID)
    }

    fn reports_cost(&self) -> bool {
        self.script.reports_cost()
    }

    fn knows_price(&self, model: Option<&str>) -> bool {
        self.reports_cost() || model.is_some_and(is_listed)
    }

    /// Which turn is played depends on the prompt alone.
    fn remembers(&self) -> bool {
        false
    }

    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async move { Ok(Box::new(self.begin(request)?) as Box<dyn Conversation>) })
    }
}

/// What a conversation and the task of its turn both see.
struct Shared {
    id: ConversationId,
    request: OpenRequest,
    /// The model from the next turn on.
    model: Mutex<Option<String>>,
    script: Script,
    guard: Guard,
    made: Made,
    current: Mutex<Option<Current>>,
}

/// The turn under way.
struct Current {
    interrupt: Arc<Notify>,
    asked: Option<(QuestionId, oneshot::Sender<Answer>)>,
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Option<Current>> {
        lock(&self.current)
    }

    fn expect_answer(&self, question: QuestionId, answer: oneshot::Sender<Answer>) {
        if let Some(current) = self.current().as_mut() {
            current.asked = Some((question, answer));
        }
    }

    fn interrupt(&self) {
        if let Some(current) = self.current().as_ref() {
            current.interrupt.notify_one();
        }
    }

    /// Why every turn is refused now, if it is.
    fn outage(&self) -> Option<BackendError> {
        let age = self.made.timer.elapsed();
        let outage = self.script.outage(age, &self.request.workspace)?;
        let retry_at = outage.retry_after.and_then(|after| {
            let since = SignedDuration::try_from(age + after).ok()?;
            self.made.day.checked_add(since).ok()
        });
        let status = match outage.fail {
            FailEntry::RateLimit | FailEntry::Quota => Some(429),
            FailEntry::Overloaded => Some(529),
            FailEntry::Exit
            | FailEntry::Hang
            | FailEntry::Garbage
            | FailEntry::Silence
            | FailEntry::ContextOverflow
            | FailEntry::Login
            | FailEntry::Unavailable
            | FailEntry::Refused
            | FailEntry::ModelUnknown
            | FailEntry::Rejected => None,
        };
        let retry_at_ms = retry_at.map(Timestamp::as_millisecond);
        play::error(outage.fail, Outage { status, retry_at_ms })
    }

    fn misused(problem: &str) -> BackendError {
        BackendError::Misused { backend: BackendId::from(ID), problem: problem.to_owned() }
    }
}

/// A conversation without a memory: its id is all there is to it.
struct ScriptConversation {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl ScriptConversation {
    fn begin(&self, prompt: &str) -> Result<Turn, BackendError> {
        let interrupt = Arc::new(Notify::new());
        {
            let mut current = self.shared.current();
            if current.is_some() {
                return Err(Shared::misused("a turn is under way; wait for its end"));
            }
            *current = Some(Current { interrupt: Arc::clone(&interrupt), asked: None });
        }
        let model = lock(&self.shared.model).clone();
        let request = OpenRequest { model, ..self.shared.request.clone() };
        let turn = match self.shared.outage() {
            Some(refusal) => Err(refusal),
            None => self.shared.script.turn_for(&request, &self.shared.id, prompt),
        };
        let (sender, receiver) = mpsc::channel(EVENTS);
        let task = perform(Arc::clone(&self.shared), turn, sender, interrupt);
        *lock(&self.task) = Some(tokio::spawn(task));
        Ok(receiver)
    }

    fn deliver(&self, question: &QuestionId, answer: Answer) -> Result<(), BackendError> {
        let mut current = self.shared.current();
        let asked = current.as_mut().map(|current| &mut current.asked);
        let open = asked.and_then(|asked| asked.take_if(|(id, _)| id == question));
        let not_open = || Shared::misused(&format!("the question {question} is not open"));
        open.ok_or_else(not_open)?.1.send(answer).map_err(|_unheard| not_open())
    }
}

impl Conversation for ScriptConversation {
    fn id(&self) -> ConversationId {
        self.shared.id.clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(async move { self.begin(&prompt) })
    }

    fn answer(
        &self,
        question: QuestionId,
        answer: Answer,
    ) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.deliver(&question, answer) })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.shared.interrupt() })
    }

    /// Canned turns have no context that could be too large.
    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async { Ok(None) })
    }

    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), BackendError>> {
        *lock(&self.shared.model) = Some(model);
        Box::pin(async { Ok(()) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.shared.interrupt();
            let task = lock(&self.task).take();
            if let Some(task) = task {
                // A task that panicked has ended as well.
                let _ = task.await;
            }
        })
    }
}

impl Drop for ScriptConversation {
    fn drop(&mut self) {
        self.shared.interrupt();
    }
}

/// Plays a turn and says how it ended.
async fn perform(
    shared: Arc<Shared>,
    turn: Result<Arc<CannedTurn>, BackendError>,
    events: mpsc::Sender<TurnEvent>,
    interrupt: Arc<Notify>,
) {
    // Room for the end is set aside at the beginning, so that not reading cannot hold it up.
    let room_for_end = events.clone().reserve_owned().await;
    let stop = match turn {
        Ok(turn) => Player::new(Arc::clone(&shared), turn, events, interrupt).play().await,
        Err(error) => failed(error),
    };
    // Whoever sees the end may send the next prompt at once.
    *shared.current() = None;
    if let Ok(room) = room_for_end {
        room.send(TurnEvent::Ended(stop));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
