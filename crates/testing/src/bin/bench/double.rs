//! An agent whose turns take as long as they are told to, and the stage it plays on.

use std::sync::Arc;
use std::time::Duration;

use atomic_backend::guard::Guard;
use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, OpenRequest, Turn};
use atomic_event::{
    Answer, BackendId, ConversationId, QuestionId, StepError, Stop, TurnEvent, Usage,
};
use atomic_registry::Registry;
use atomic_runner::{OtherBackends, Stage, SystemClock};
use atomic_workflow::{Action, AgentAction, Text};
use tokio::sync::mpsc;

use crate::disk::CountingDisk;

/// The real disk, and agents whose turns take this long.
pub(crate) fn stage(disk: &CountingDisk, turn: Duration) -> Stage {
    Stage {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(SystemClock),
        backend: Arc::new(Double { turn }),
        others: OtherBackends::default(),
        guard: Guard::from_current_exe(),
        registry: Arc::new(Registry::embedded()),
        index: None,
        holder: "a benchmark".to_owned(),
        version: "0.0.0".to_owned(),
    }
}

/// Prompts the agent.
pub(crate) fn agent() -> Action {
    Action::Agent(AgentAction {
        instructions: Some(String::new()),
        fresh: true,
        ..AgentAction::new("worker", Text::Template("Go on".to_owned()))
    })
}

#[derive(Clone, Copy)]
struct Double {
    turn: Duration,
}

impl Backend for Double {
    fn id(&self) -> BackendId {
        BackendId::from("double")
    }

    fn reports_cost(&self) -> bool {
        false
    }

    fn open(
        &self,
        _request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        let conversation = *self;
        Box::pin(async move { Ok(Box::new(conversation) as Box<dyn Conversation>) })
    }
}

impl Conversation for Double {
    fn id(&self) -> ConversationId {
        ConversationId::from("double")
    }

    fn send(&self, _prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        let duration = self.turn;
        Box::pin(async move {
            let (events, turn) = mpsc::channel(1);
            let done = TurnEvent::Ended(Stop::Done { text: "done".to_owned() });
            if duration.is_zero() {
                let _ = events.try_send(done);
            } else {
                tokio::spawn(async move {
                    tokio::time::sleep(duration).await;
                    let _ = events.send(done).await;
                });
            }
            Ok(turn)
        })
    }

    fn answer(&self, _: QuestionId, _: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async { Ok(None) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}
