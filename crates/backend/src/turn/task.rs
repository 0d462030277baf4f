//! The task that holds a conversation with an agent program.

use std::collections::VecDeque;

use atomic_event::{StepError, Stop, Usage};
use tokio::sync::{mpsc, oneshot};

use super::handle::Command;
use super::machine::{Effect, Input, Now, TurnKind, TurnMachine, TurnSettings};
use super::program::{AgentProgram, TurnEnd};
use crate::outlet::{Outlet, at, deserted, tell};
use crate::{BackendError, Turn};

type SummaryReply = oneshot::Sender<Result<Option<Usage>, StepError>>;

/// A conversation: receives commands and messages, and performs what the machine decides.
pub(crate) struct ConversationTask<P: AgentProgram> {
    program: P,
    machine: TurnMachine,
    commands: mpsc::Receiver<Command<P::Request>>,
    /// Buffer for the events of the turn. It stays until the consumer has received the end.
    outlet: Option<Outlet>,
    summary: Option<SummaryReply>,
}

/// Reasons to wake up.
enum Wake<P: AgentProgram> {
    Command(Option<Command<P::Request>>),
    ConsumerGone,
    SummaryUnclaimed,
    Flushed,
    DeadlineReached,
    Message(P::Message),
}

impl<P: AgentProgram> ConversationTask<P> {
    pub(crate) fn new(
        program: P,
        settings: TurnSettings,
        commands: mpsc::Receiver<Command<P::Request>>,
    ) -> Self {
        Self { program, machine: TurnMachine::new(settings), commands, outlet: None, summary: None }
    }

    /// Runs until the conversation is closed or its handle is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            match self.wake().await {
                Wake::Command(None) => return self.close(false).await,
                Wake::Command(Some(Command::Close { rests, reply })) => {
                    self.close(rests).await;
                    // The caller may have stopped waiting.
                    let _ = reply.send(());
                    return;
                }
                Wake::Command(Some(command)) => self.run_command(command).await,
                Wake::ConsumerGone => {
                    self.outlet = None;
                    self.apply(Input::Interrupt).await;
                }
                Wake::SummaryUnclaimed => {
                    self.summary = None;
                    self.apply(Input::Interrupt).await;
                }
                Wake::Flushed => {}
                Wake::DeadlineReached => self.apply(Input::Tick).await,
                Wake::Message(message) => {
                    for input in self.program.on_message(message).await {
                        self.apply(input).await;
                    }
                }
            }
        }
    }

    /// Deadlines come before messages: a program that never stops talking is interrupted all the same.
    async fn wake(&mut self) -> Wake<P> {
        let consumer = self.outlet.as_ref().map(Outlet::listener);
        let has_room = self.outlet.as_ref().is_none_or(Outlet::has_room);
        let deadline = self.machine.deadline();
        let summary = self.summary.as_mut();
        tokio::select! {
            biased;
            command = self.commands.recv() => Wake::Command(command),
            () = deserted(consumer) => Wake::ConsumerGone,
            () = unclaimed(summary) => Wake::SummaryUnclaimed,
            () = tell(&mut self.outlet) => Wake::Flushed,
            () = at(deadline) => Wake::DeadlineReached,
            message = self.program.receive(has_room) => Wake::Message(message),
        }
    }

    async fn run_command(&mut self, command: Command<P::Request>) {
        // A caller that stopped waiting for its reply does not need it.
        match command {
            Command::Send { prompt, mut reply } => {
                let sent = self.send(prompt, &mut reply).await;
                let _ = reply.send(sent);
            }
            Command::Answer { id, answer, reply } => {
                let effects = self.machine.answer(&id, &answer);
                let answered = match effects {
                    Some(_) => Ok(()),
                    None => Err(self.program.misused(&format!("the question {id} is not open"))),
                };
                self.perform(effects.unwrap_or_default()).await;
                let _ = reply.send(answered);
            }
            Command::Interrupt { reply } => {
                self.apply(Input::Interrupt).await;
                let _ = reply.send(());
            }
            Command::Compact { reply } => self.compact(reply).await,
            Command::SetModel { reply, .. } if self.machine.is_busy() => {
                let busy = self.program.misused("a turn is under way; wait for its end");
                let _ = reply.send(Err(busy));
            }
            Command::SetModel { model, mut reply } => {
                let set = match self.connect(&mut reply).await {
                    Ok(()) => tokio::select! {
                        set = self.program.set_model(model) => set,
                        () = reply.closed() => return,
                    },
                    Err(error) => Err(error),
                };
                let _ = reply.send(set);
            }
            Command::Request(request) => self.program.request(request).await,
            Command::Close { reply, .. } => {
                let _ = reply.send(());
            }
        }
    }

    /// Connects, unless the caller stops waiting: then a connection that was begun is undone.
    async fn connect<T>(&mut self, reply: &mut oneshot::Sender<T>) -> Result<(), BackendError> {
        let over = "the caller has stopped waiting";
        if reply.is_closed() {
            return Err(self.program.misused(over));
        }
        let connected = tokio::select! {
            biased;
            connected = self.program.connect() => Some(connected),
            () = reply.closed() => None,
        };
        match connected {
            Some(Ok(())) if reply.is_closed() => Err(self.program.misused(over)),
            Some(connected) => connected,
            None => {
                self.program.disconnect().await;
                Err(self.program.misused(over))
            }
        }
    }

    /// Connects for a new turn.
    async fn ready<T>(&mut self, reply: &mut oneshot::Sender<T>) -> Result<(), BackendError> {
        if self.machine.is_busy() || self.outlet.is_some() {
            return Err(self.program.misused("a turn is under way; wait for its end"));
        }
        self.connect(reply).await
    }

    async fn send(
        &mut self,
        prompt: String,
        reply: &mut oneshot::Sender<Result<Turn, BackendError>>,
    ) -> Result<Turn, BackendError> {
        self.ready(reply).await?;
        let Some((outlet, turn)) = Outlet::open() else {
            return Err(self.program.misused("there is no room for the turn's events"));
        };
        self.outlet = Some(outlet);
        self.apply(Input::Begin(TurnKind::Prompt)).await;
        for event in self.program.prompt(prompt).await {
            self.apply(Input::Event(event)).await;
        }
        Ok(turn)
    }

    async fn compact(&mut self, mut reply: SummaryReply) {
        let mut begun = self.ready(&mut reply).await;
        if begun.is_ok() {
            begun = self.program.summarise();
        }
        match begun {
            Ok(()) => {
                self.summary = Some(reply);
                self.apply(Input::Begin(TurnKind::Summary)).await;
            }
            Err(error) => _ = reply.send(Err(error.into())),
        }
    }

    async fn apply(&mut self, input: Input) {
        let effects = self.machine.apply(input, Now::read());
        self.perform(effects).await;
    }

    async fn perform(&mut self, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            if let Some(input) = self.perform_one(effect).await {
                effects.extend(self.machine.apply(input, Now::read()));
            }
        }
    }

    /// Performs one effect. Returns what the machine has to know about it.
    async fn perform_one(&mut self, effect: Effect) -> Option<Input> {
        match effect {
            Effect::Emit(event) => {
                let is_taken = self.outlet.as_mut().is_none_or(|outlet| outlet.push(event));
                if !is_taken {
                    let error = self.program.misused("the events of the turn are not read");
                    return Some(Input::Failed(error.into()));
                }
            }
            Effect::Finish(stop) => {
                self.program.on_turn_end(TurnEnd::from(&stop));
                if let Some(outlet) = &mut self.outlet {
                    outlet.end(stop);
                }
            }
            Effect::Summarised(result) => {
                let end = if result.is_ok() { TurnEnd::Done } else { TurnEnd::Failed };
                self.program.on_turn_end(end);
                if let Some(reply) = self.summary.take() {
                    let _ = reply.send(result);
                }
            }
            Effect::Interrupt => self.program.interrupt(),
            Effect::Abandon => self.program.abandon().await,
            Effect::StopUnwanted => self.program.stop_unwanted(),
            Effect::Reply { request, answers } => self.program.reply(&request, &answers),
            Effect::Decline { request, questions } => self.program.decline(&request, questions),
            Effect::Withdraw { request } => self.program.withdraw(&request),
            Effect::Resend => match self.program.connect().await {
                Ok(()) => self.program.resend(),
                Err(error) => return Some(Input::Ended(Stop::Failed(error.into()))),
            },
            Effect::CheckIdle => self.program.check_idle(),
            Effect::Conclude => return self.program.conclude().map(Input::Ended),
        }
        None
    }

    async fn close(self, rests: bool) {
        self.program.close(self.machine.is_busy(), rests).await;
        if let Some(outlet) = self.outlet {
            outlet.close(Stop::Interrupted);
        }
    }
}

/// Completes when the caller of a summary has stopped waiting.
async fn unclaimed(summary: Option<&mut SummaryReply>) {
    match summary {
        Some(reply) => reply.closed().await,
        None => std::future::pending().await,
    }
}
