//! The holder's end of a conversation.

use std::convert::Infallible;
use std::sync::Arc;

use atomic_event::{Answer, BackendId, ConversationId, QuestionId, StepError, Usage};
use tokio::sync::{mpsc, oneshot};

use crate::serving::Presence;
use crate::{BackendError, BoxFuture, Conversation, Turn};

/// Something the holder of a conversation wants. The reply is sent when it is done.
pub(crate) enum Command<R> {
    Send {
        prompt: String,
        reply: oneshot::Sender<Result<Turn, BackendError>>,
    },
    Answer {
        id: QuestionId,
        answer: Answer,
        reply: oneshot::Sender<Result<(), BackendError>>,
    },
    Interrupt {
        reply: oneshot::Sender<()>,
    },
    Compact {
        reply: oneshot::Sender<Result<Option<Usage>, StepError>>,
    },
    SetModel {
        model: String,
        reply: oneshot::Sender<Result<(), BackendError>>,
    },
    /// A request that only one program supports.
    Request(R),
    Close {
        rests: bool,
        reply: oneshot::Sender<()>,
    },
}

/// Sends commands to the task of a conversation.
#[derive(Debug)]
pub(crate) struct Handle<R> {
    commands: mpsc::Sender<Command<R>>,
}

impl<R> Handle<R> {
    /// Returns a handle and the receiver for the task.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Command<R>>) {
        let (commands, receiver) = mpsc::channel(8);
        (Self { commands }, receiver)
    }

    /// Sends a command and waits for its reply. Returns `None` when the conversation has ended.
    pub(crate) async fn call<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command<R>,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).await.ok()?;
        answer.await.ok()
    }
}

/// A conversation whose task receives only the commands that every program supports.
pub(crate) struct ConversationHandle {
    id: ConversationId,
    backend: BackendId,
    handle: Handle<Infallible>,
    /// Presence in a program that serves several conversations.
    presence: Option<Arc<Presence>>,
}

impl ConversationHandle {
    pub(crate) fn new(
        id: ConversationId,
        backend: impl Into<BackendId>,
        handle: Handle<Infallible>,
        presence: Option<Arc<Presence>>,
    ) -> Self {
        Self { id, backend: backend.into(), handle, presence }
    }

    async fn call<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command<Infallible>,
    ) -> Result<T, BackendError> {
        let over = || BackendError::Misused {
            backend: self.backend.clone(),
            problem: "the conversation has ended".to_owned(),
        };
        self.handle.call(command).await.ok_or_else(over)
    }
}

impl Drop for ConversationHandle {
    fn drop(&mut self) {
        if let Some(presence) = &self.presence {
            presence.leaves();
        }
    }
}

impl Conversation for ConversationHandle {
    fn id(&self) -> ConversationId {
        self.id.clone()
    }

    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(async move { self.call(|reply| Command::Send { prompt, reply }).await? })
    }

    fn answer(&self, id: QuestionId, answer: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.call(|reply| Command::Answer { id, answer, reply }).await? })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // A conversation that has ended has nothing to interrupt.
            let _ = self.call(|reply| Command::Interrupt { reply }).await;
        })
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async move { self.call(|reply| Command::Compact { reply }).await? })
    }

    fn set_model(&self, model: String) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async move { self.call(|reply| Command::SetModel { model, reply }).await? })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _ = self.call(|reply| Command::Close { rests: false, reply }).await;
        })
    }

    fn rest(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let _ = self.call(|reply| Command::Close { rests: true, reply }).await;
        })
    }
}
