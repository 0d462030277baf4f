//! A conversation that somebody holds, and what is wanted of the task that leads it.

use std::sync::Arc;

use atomic_event::{Answer, BackendId, ConversationId, QuestionId, StepError, Usage};
use tokio::sync::{mpsc, oneshot};

use super::presence::Presence;
use crate::{BackendError, BoxFuture, Conversation, Turn};

/// What the holder of a conversation wants.
pub(crate) enum Wish {
    Send { prompt: String, reply: oneshot::Sender<Result<Turn, BackendError>> },
    Answer { id: QuestionId, answer: Answer, reply: oneshot::Sender<Result<(), BackendError>> },
    Interrupt { reply: oneshot::Sender<()> },
    Compact { reply: oneshot::Sender<Result<Option<Usage>, StepError>> },
    SetModel { model: String, reply: oneshot::Sender<Result<(), BackendError>> },
    Close { rests: bool, reply: oneshot::Sender<()> },
}

/// A conversation that somebody holds.
pub(crate) struct Held {
    id: ConversationId,
    backend: BackendId,
    wishes: mpsc::Sender<Wish>,
    presence: Arc<Presence>,
}

impl Held {
    pub(crate) fn new(
        id: String,
        backend: impl Into<BackendId>,
        wishes: mpsc::Sender<Wish>,
        presence: Arc<Presence>,
    ) -> Self {
        Self { id: ConversationId::from(id), backend: backend.into(), wishes, presence }
    }

    /// Tells the task something and waits for its answer.
    async fn tell<T>(
        &self,
        wish: impl FnOnce(oneshot::Sender<T>) -> Wish,
    ) -> Result<T, BackendError> {
        let over = || BackendError::Misused {
            backend: self.backend.clone(),
            problem: "the conversation has ended".to_owned(),
        };
        let (reply, answer) = oneshot::channel();
        self.wishes.send(wish(reply)).await.map_err(|_| over())?;
        answer.await.map_err(|_| over())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.presence.leaves();
    }
}

impl Conversation for Held {
    fn id(&self) -> ConversationId {
        self.id.clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(async move { self.tell(|reply| Wish::Send { prompt, reply }).await? })
    }

    fn answer(&self, id: QuestionId, answer: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.tell(|reply| Wish::Answer { id, answer, reply }).await? })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let _ = self.tell(|reply| Wish::Interrupt { reply }).await;
        })
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async move { self.tell(|reply| Wish::Compact { reply }).await? })
    }

    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.tell(|reply| Wish::SetModel { model, reply }).await? })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _ = self.tell(|reply| Wish::Close { rests: false, reply }).await;
        })
    }

    fn rest(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _ = self.tell(|reply| Wish::Close { rests: true, reply }).await;
        })
    }
}
