//! The part of a conversation that differs between agent programs.

use std::future::ready;

use atomic_event::{Answer, Question, Stop, TurnEvent};

use super::machine::Input;
use crate::BackendError;

/// How a turn ended, as far as programs have to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnEnd {
    Done,
    Interrupted,
    Failed,
}

impl From<&Stop> for TurnEnd {
    fn from(stop: &Stop) -> Self {
        match stop {
            Stop::Done { .. } => Self::Done,
            Stop::Interrupted => Self::Interrupted,
            Stop::Failed(_) => Self::Failed,
        }
    }
}

/// Protocol and transport of one conversation with an agent program.
///
/// Methods are called by [`ConversationTask`](super::ConversationTask), one at a time. Methods that
/// return no future only hand something to the transport and never wait for the program.
pub(crate) trait AgentProgram: Send + Sized + 'static {
    /// A message of the program, not decoded yet.
    type Message: Send;
    /// A request that only this program supports.
    type Request: Send + 'static;

    /// Returns the error for a caller that uses the conversation in a wrong way.
    fn misused(&self, problem: &str) -> BackendError;

    /// Connects to the program, and starts it if it does not run.
    fn connect(&mut self) -> impl Future<Output = Result<(), BackendError>> + Send;

    /// Sends a prompt that begins a turn. Returns events that precede those of the program.
    fn prompt(&mut self, prompt: String) -> impl Future<Output = Vec<TurnEvent>> + Send;

    /// Sends the prompt of the turn once more, after the program was connected again.
    fn resend(&mut self);

    /// Asks the program to summarise the conversation.
    fn summarise(&mut self) -> Result<(), BackendError>;

    /// Receives the next message. The future may be dropped before it is ready without losing one.
    /// Without `has_room` a program that can be left waiting is left waiting.
    fn receive(&mut self, has_room: bool) -> impl Future<Output = Self::Message> + Send;

    /// Decodes a message.
    fn on_message(&mut self, message: Self::Message) -> impl Future<Output = Vec<Input>> + Send;

    /// Asks the program to stop the turn.
    fn interrupt(&mut self);

    /// Disconnects a program that ignored an interruption, and ends it if it must be.
    fn abandon(&mut self) -> impl Future<Output = ()> + Send;

    /// Sends the answers to the questions of a request.
    fn reply(&mut self, request: &str, answers: &[(Question, Answer)]);

    /// Answers a request that no user can answer.
    fn decline(&mut self, request: &str, questions: usize);

    /// Closes a request that is not answered any more.
    fn withdraw(&mut self, _request: &str) {}

    /// Stops work that no turn asked for.
    fn stop_unwanted(&mut self) {}

    /// Starts a check whether the program is idle.
    fn check_idle(&mut self) {}

    /// Returns how the turn ended, once the program is idle.
    fn conclude(&mut self) -> Option<Stop> {
        None
    }

    /// Called when a turn or a summary has ended.
    fn on_turn_end(&mut self, _end: TurnEnd) {}

    /// Undoes a connection that the caller did not wait for.
    fn disconnect(&mut self) -> impl Future<Output = ()> + Send {
        self.abandon()
    }

    /// Uses another model from the next turn on. The future may be dropped before it is ready; the program
    /// is then connected again for the next turn where it has to be.
    fn set_model(
        &mut self,
        _model: String,
    ) -> impl Future<Output = Result<(), BackendError>> + Send {
        ready(Ok(()))
    }

    /// Performs a request that only this program supports.
    fn request(&mut self, _request: Self::Request) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Closes the conversation. When it returns, nothing is left of a turn that was under way, and unless
    /// the conversation `rests`, no process of it.
    fn close(self, was_busy: bool, rests: bool) -> impl Future<Output = ()> + Send;
}
