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
mod program;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use atomic_event::{BackendId, ConversationId, Outage};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

pub use load::{FileSource, Format, Script};

use crate::guard::Guard;
use crate::prices::is_listed;
use crate::trouble::PROVIDER_PATIENCE;
use crate::turn::{ConversationHandle, ConversationTask, Handle, TurnSettings};
use crate::{Backend, BackendError, BoxFuture, Conversation, OpenRequest};
use program::ScriptProgram;
use wire::FailEntry;

/// The name of this backend, in every output.
const ID: &str = "script";

/// What every id we give out begins with.
const CONVERSATION_PREFIX: &str = "script-";

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

    /// Opens a conversation without a memory: its state is its id.
    fn begin(&self, request: OpenRequest) -> Result<ConversationHandle, BackendError> {
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
        let (script, guard, made) = (self.script.clone(), self.guard.clone(), self.made);
        let shared = Shared { id: id.clone(), request, script, guard, made };
        // A request without questions withholds the agent's own question tool. `ask` stands for a
        // question from elsewhere, such as that of an MCP server, so it is always put.
        let settings =
            TurnSettings { backend: ID.to_owned(), patience: PROVIDER_PATIENCE, questions: true };
        let (handle, commands) = Handle::new();
        let program = ScriptProgram::new(Arc::new(shared));
        tokio::spawn(ConversationTask::new(program, settings, commands).run());
        Ok(ConversationHandle::new(id, ID, handle, None))
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

/// Data that a conversation and the tasks of its turns share.
struct Shared {
    id: ConversationId,
    request: OpenRequest,
    script: Script,
    guard: Guard,
    made: Made,
}

impl Shared {
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
}

fn misused(problem: &str) -> BackendError {
    BackendError::Misused { backend: BackendId::from(ID), problem: problem.to_owned() }
}
