//! Plays scripts behind the interface that real programs have.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use atomic_event::{Answer, Question, Stop, TurnEvent};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use super::play::{Player, failed};
use super::{ID, Shared, misused};
use crate::turn::{AgentProgram, Input};
use crate::{BackendError, OpenRequest};

/// Number of messages that may wait to be received.
const MESSAGES: usize = 64;

/// A message of a playing script.
pub(super) enum Played {
    Event(TurnEvent),
    Asked { request: String, question: Question, reply: oneshot::Sender<Answer> },
    Ended(Stop),
}

/// Plays the turns of one conversation.
pub(super) struct ScriptProgram {
    shared: Arc<Shared>,
    model: Option<String>,
    playing: Option<Playing>,
    /// Senders for the answers to open questions, by request.
    open: BTreeMap<String, oneshot::Sender<Answer>>,
}

/// A turn that is played by a task of its own.
struct Playing {
    messages: mpsc::Receiver<Played>,
    interrupt: Arc<Notify>,
    task: JoinHandle<()>,
}

impl ScriptProgram {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let model = shared.request.model.clone();
        Self { shared, model, playing: None, open: BTreeMap::new() }
    }

    fn play(&mut self, turn: impl FnOnce(mpsc::Sender<Played>, Arc<Notify>) -> JoinHandle<()>) {
        let interrupt = Arc::new(Notify::new());
        let (sender, messages) = mpsc::channel(MESSAGES);
        let task = turn(sender, Arc::clone(&interrupt));
        self.open.clear();
        self.playing = Some(Playing { messages, interrupt, task });
    }

    /// Interrupts the turn that is played and waits for its end.
    async fn stop(&mut self) {
        self.open.clear();
        if let Some(playing) = self.playing.take() {
            playing.interrupt.notify_one();
            drop(playing.messages);
            // A task that panicked has ended as well.
            let _ = playing.task.await;
        }
    }
}

impl AgentProgram for ScriptProgram {
    type Message = Played;
    type Request = Infallible;

    fn misused(&self, problem: &str) -> BackendError {
        misused(problem)
    }

    async fn connect(&mut self) -> Result<(), BackendError> {
        Ok(())
    }

    async fn prompt(&mut self, prompt: String) -> Vec<TurnEvent> {
        let shared = Arc::clone(&self.shared);
        let request = OpenRequest { model: self.model.clone(), ..shared.request.clone() };
        let turn = match shared.outage() {
            Some(refusal) => Err(refusal),
            None => shared.script.turn_for(&request, &shared.id, &prompt),
        };
        self.play(|messages, interrupt| {
            tokio::spawn(async move {
                let stop = match turn {
                    Ok(turn) => Player::new(shared, turn, messages.clone(), interrupt).play().await,
                    Err(error) => failed(error),
                };
                // Without a receiver nobody waits for the end.
                let _ = messages.send(Played::Ended(stop)).await;
            })
        });
        vec![]
    }

    /// A script receives every prompt.
    fn resend(&mut self) {}

    /// Canned turns have no context that could be too large.
    fn summarise(&mut self) -> Result<(), BackendError> {
        self.play(|messages, _| {
            tokio::spawn(async move {
                let _ = messages.send(Played::Ended(Stop::Done { text: String::new() })).await;
            })
        });
        Ok(())
    }

    async fn receive(&mut self, has_room: bool) -> Played {
        let Some(playing) = self.playing.as_mut().filter(|_| has_room) else {
            return pending().await;
        };
        let over = || BackendError::Exited { backend: ID.into(), status: "it panicked".to_owned() };
        playing.messages.recv().await.unwrap_or_else(|| Played::Ended(failed(over())))
    }

    async fn on_message(&mut self, message: Played) -> Vec<Input> {
        match message {
            Played::Event(event) => vec![Input::Event(event)],
            Played::Asked { request, question, reply } => {
                self.open.insert(request.clone(), reply);
                vec![Input::Asked { request, questions: vec![question] }]
            }
            Played::Ended(stop) => {
                self.playing = None;
                vec![Input::Ended(stop)]
            }
        }
    }

    fn interrupt(&mut self) {
        if let Some(playing) = &self.playing {
            playing.interrupt.notify_one();
        }
    }

    async fn abandon(&mut self) {
        self.stop().await;
    }

    fn reply(&mut self, request: &str, answers: &[(Question, Answer)]) {
        if let (Some(reply), [(_, answer)]) = (self.open.remove(request), answers) {
            // The turn may have ended meanwhile.
            let _ = reply.send(answer.clone());
        }
    }

    /// Drops the sender of the answer, which ends the turn.
    fn decline(&mut self, request: &str, _questions: usize) {
        self.open.remove(request);
    }

    async fn set_model(&mut self, model: String) -> Result<(), BackendError> {
        self.model = Some(model);
        Ok(())
    }

    async fn close(mut self, _was_busy: bool, _rests: bool) {
        self.stop().await;
    }
}
