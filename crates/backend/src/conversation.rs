//! What every agent program can do for us.

use std::path::PathBuf;
use std::pin::Pin;

use atomic_event::{AgentName, Answer, BackendId, ConversationId, QuestionId, TurnEvent};
use tokio::sync::mpsc;

use crate::BackendError;

/// A future that can be held behind `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The events of one turn, in order; [`TurnEvent::Ended`] is the last one.
pub type Turn = mpsc::Receiver<TurnEvent>;

/// A program that answers prompts and edits files.
///
/// Implementations hold configuration and what all conversations share. All of them pass
/// `atomic_testing::conformance::backend`.
pub trait Backend: Send + Sync {
    /// The name used in settings, facts and on the screen.
    fn id(&self) -> BackendId;

    /// Whether turns report what they cost. A money ceiling on one that does not is refused.
    fn reports_cost(&self) -> bool;

    /// Opens a conversation, or continues the one named in `request.resume`. When it returns, the
    /// conversation's id is known and nothing has been sent.
    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>>;
}

/// Turns that share context.
///
/// Dropping a conversation ends whatever it started, as [`Conversation::close`] does, without
/// waiting for it.
pub trait Conversation: Send + Sync {
    /// The program's own id, by which the conversation can be continued later.
    fn id(&self) -> ConversationId;

    /// Sends one prompt. One turn at a time.
    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>>;

    /// Answers a question the current turn asked.
    fn answer(
        &self,
        question: QuestionId,
        answer: Answer,
    ) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Interrupts the current turn, if there is one; it then ends as
    /// [`Stop::Interrupted`](atomic_event::Stop::Interrupted).
    fn interrupt(&self) -> BoxFuture<'_, ()>;

    /// Lets the program summarise the conversation, so that it fills less of its window.
    fn compact(&self) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Ends the conversation. When it returns, every process it started is gone.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Who is to be talked to, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The persona.
    pub agent: AgentName,
    /// The persona's prompt.
    pub system_prompt: String,
    /// The model, when one was chosen.
    pub model: Option<String>,
    /// The folder the agent works in.
    pub workspace: PathBuf,
    /// The conversation to continue.
    pub resume: Option<ConversationId>,
    /// Whether the agent may ask the user.
    pub questions: bool,
    /// Marks every process of this conversation: `ATOMIC_STEP=<run>/<step>/<attempt>`.
    pub marker: String,
}
