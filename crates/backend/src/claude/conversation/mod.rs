//! One conversation: a task that owns the program, and the handle others hold.

mod start;
mod turn;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atomic_event::{Answer, BackendId, ConversationId, Question, QuestionId, Stop};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::Instant;

use super::ID;
use super::decode::{Decoder, Heard};
use super::desk::Held;
use super::launch::Launch;
use super::wire;
use crate::asking::Asking;
use crate::guard::Guard;
use crate::outlet::{Outlet, at, deserted, tell, told_end};
use crate::process::{Exit, Process};
use crate::trouble::{Kind, Trouble, now_ms};
use crate::{BackendError, Turn};
use start::{Known, exited, garbled};
use turn::{CurrentTurn, Trial, answered};

/// How long an interrupted turn may take to end by itself.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// The conversation's id, which the program may change.
pub(super) type SharedId = Arc<Mutex<ConversationId>>;

/// What the holder of a conversation wants.
pub(super) enum Command {
    Send { prompt: String, literally: bool, reply: oneshot::Sender<Result<Turn, BackendError>> },
    Answer { id: QuestionId, answer: Answer, reply: oneshot::Sender<Result<(), BackendError>> },
    Interrupt { reply: oneshot::Sender<()> },
    Request { wish: Value, reply: oneshot::Sender<Result<Value, String>> },
    Close { reply: oneshot::Sender<()> },
}

/// What all conversations share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) guard: Guard,
    /// How many programs may be starting at once: starting is all computing.
    pub(super) starts: Arc<Semaphore>,
    /// How long trouble with the provider may last inside a turn.
    pub(super) patience: Duration,
}

/// The task that owns a program.
pub(super) struct Talk {
    shared: Shared,
    launch: Launch,
    id: SharedId,
    process: Option<Process>,
    decoder: Decoder,
    commands: mpsc::Receiver<Command>,
    turn: Option<CurrentTurn>,
    outlet: Option<Outlet>,
    /// Requests of ours that are not answered yet.
    asked: Vec<(String, oneshot::Sender<Result<Value, String>>)>,
    /// Given up when everything here is over, the program included.
    _held: Held,
    /// How many requests we have made.
    requests: u64,
    known: Known,
}

/// What wakes the task up.
enum Woken {
    Command(Option<Command>),
    Line(Option<String>),
    Told,
    NobodyListens,
    TimeUp,
}

impl Talk {
    /// Starts the program, and the task that talks to it once it is ready.
    pub(super) async fn start(
        shared: Shared,
        launch: Launch,
        id: SharedId,
        held: Held,
        resume: bool,
    ) -> Result<(mpsc::Sender<Command>, Value), BackendError> {
        let (sender, commands) = mpsc::channel(8);
        let mut talk = Self {
            shared,
            launch,
            id,
            process: None,
            decoder: Decoder::default(),
            commands,
            turn: None,
            outlet: None,
            asked: vec![],
            requests: 0,
            known: if resume { Known::Yes } else { Known::No },
            _held: held,
        };
        let ready = talk.launch().await?;
        tokio::spawn(talk.run());
        Ok((sender, ready))
    }

    fn current_id(&self) -> ConversationId {
        self.id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Talks until the conversation is closed or nobody holds it any more.
    async fn run(mut self) {
        loop {
            match self.woken().await {
                Woken::Command(None) => break,
                Woken::Command(Some(Command::Close { reply })) => {
                    self.end().await;
                    let _ = reply.send(());
                    return;
                }
                Woken::Command(Some(command)) => self.obey(command).await,
                Woken::Line(Some(line)) => self.hear(&line).await,
                Woken::Line(None) => self.program_ended().await,
                Woken::Told => {}
                Woken::NobodyListens => self.give_up_turn(),
                Woken::TimeUp => self.time_up().await,
            }
        }
        self.end().await;
    }

    async fn woken(&mut self) -> Woken {
        let deadline = self.turn.as_ref().and_then(CurrentTurn::deadline);
        let listener = self.outlet.as_ref().map(Outlet::listener);
        let has_room = self.outlet.as_ref().is_none_or(Outlet::has_room);
        let process = &mut self.process;
        tokio::select! {
            biased;
            command = self.commands.recv() => Woken::Command(command),
            () = deserted(listener) => Woken::NobodyListens,
            () = tell(&mut self.outlet) => Woken::Told,
            line = next_line(process), if has_room => Woken::Line(line),
            () = at(deadline) => Woken::TimeUp,
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Send { prompt, literally, reply } => {
                let sent = self.send(&prompt, literally).await;
                let _ = reply.send(sent);
            }
            Command::Answer { id, answer, reply } => {
                let answered = self.answer(&id, &answer);
                let _ = reply.send(answered);
            }
            Command::Interrupt { reply } => {
                self.interrupt();
                let _ = reply.send(());
            }
            Command::Request { wish, reply } => {
                if let Err(error) = self.awake().await {
                    let _ = reply.send(Err(error.to_string()));
                    return;
                }
                let request = self.request(&wish);
                self.asked.push((request, reply));
            }
            Command::Close { reply } => {
                let _ = reply.send(());
            }
        }
    }

    /// Makes sure that there is a program: it may have ended since it was last needed.
    async fn awake(&mut self) -> Result<(), BackendError> {
        if self.process.is_none() {
            self.launch().await?;
        }
        Ok(())
    }

    async fn send(&mut self, prompt: &str, literally: bool) -> Result<Turn, BackendError> {
        if self.turn.is_some() || self.outlet.is_some() {
            return Err(misused("a turn is under way; wait for its end"));
        }
        self.awake().await?;
        self.decoder.begin_turn();
        let is_markable = self.launch.knows_literal_prompts();
        let line = if literally { wire::prompt(prompt, is_markable) } else { wire::user(prompt) };
        self.write(line.clone());
        if self.known == Known::No {
            self.known = Known::Perhaps;
        }
        let Some((outlet, turn)) = Outlet::open() else {
            return Err(misused("there is no room for the turn's events"));
        };
        self.outlet = Some(outlet);
        self.turn = Some(CurrentTurn { unheard: Some(line), ..CurrentTurn::default() });
        Ok(turn)
    }

    fn answer(&mut self, id: &QuestionId, answer: &Answer) -> Result<(), BackendError> {
        let asking = self.turn.as_mut().and_then(|turn| turn.question.as_mut());
        let open =
            asking.and_then(|(asking, input)| asking.answer(id, answer).then_some((asking, input)));
        let Some((asking, input)) = open else {
            return Err(misused(&format!("the question {id} is not open")));
        };
        let Some(answered) = answered(asking, input) else { return Ok(()) };
        let line = wire::reply(&asking.request, &answered);
        if let Some(turn) = &mut self.turn {
            turn.question = None;
        }
        self.write(line);
        Ok(())
    }

    /// Interrupts the turn; it has a moment to end by itself.
    fn interrupt(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if turn.interrupted.is_some() {
            return;
        }
        turn.interrupted = Some(Instant::now() + INTERRUPTED);
        turn.question = None;
        self.request(&json!({ "subtype": "interrupt", "cancel_queued": true }));
    }

    /// Nobody listens to the turn any more. Its program is stopped, unless it is done already.
    fn give_up_turn(&mut self) {
        self.outlet = None;
        if self.process.is_none() {
            self.turn = None;
        }
        self.interrupt();
    }

    async fn time_up(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        let now = Instant::now();
        if turn.interrupted.is_some_and(|until| until <= now) {
            // It does not listen. The conversation can be taken up by another start.
            if let Some(process) = self.process.take() {
                process.kill().await;
            }
            self.finish(Stop::Interrupted);
        } else if let Some(trial) = turn.trouble.take_if(|trial| trial.until <= now) {
            turn.failure = Some(trial.trouble.into_error(ID));
            self.interrupt();
        }
    }

    async fn hear(&mut self, line: &str) {
        if let Some(turn) = &mut self.turn {
            turn.unheard = None;
        }
        for heard in self.decoder.line(line) {
            if heard == Heard::Garbled {
                if let Some(process) = self.process.take() {
                    process.kill().await;
                }
                self.finish(Stop::Failed(garbled(line).into()));
            } else {
                self.serve(heard);
            }
        }
    }

    /// Does what a line asks for.
    fn serve(&mut self, heard: Heard) {
        match heard {
            Heard::Event(event) => {
                if let Some(outlet) = &mut self.outlet {
                    outlet.push(event);
                }
            }
            Heard::Asked { request, questions, input } => self.ask(request, questions, input),
            Heard::ToolWanted { request, tool, input, helper } => {
                let verdict = match self.launch.refusal(&tool, &input, helper.as_deref()) {
                    None => json!({}),
                    Some(why) => json!({ "hookSpecificOutput": {
                        "hookEventName": "PreToolUse",
                        "permissionDecision": "deny",
                        "permissionDecisionReason": why,
                    } }),
                };
                self.write(wire::reply(&request, &verdict));
            }
            Heard::LeaveWanted { request, input } => {
                let verdict = json!({ "behavior": "allow", "updatedInput": input });
                self.write(wire::reply(&request, &verdict));
            }
            Heard::Unsupported { request, what } => {
                self.write(wire::refuse(&request, &format!("{what} is not supported")));
            }
            Heard::Withdrawn { request } => {
                if let Some(turn) = &mut self.turn {
                    turn.question.take_if(|(asking, _)| asking.request == request);
                }
            }
            Heard::Replied { request, response } => {
                let place = self.asked.iter().position(|(id, _)| *id == request);
                if let Some((_, reply)) = place.map(|place| self.asked.swap_remove(place)) {
                    let _ = reply.send(response);
                }
            }
            Heard::Renamed(id) => {
                *self.id.lock().unwrap_or_else(PoisonError::into_inner) = id.into();
            }
            Heard::Trouble { trouble, delay_ms } => {
                let delay_ms = i64::try_from(delay_ms).unwrap_or(i64::MAX);
                let next = now_ms().saturating_add(delay_ms);
                let retry_at = trouble.outage.retry_at_ms.unwrap_or(next);
                self.trouble(trouble.with_retry_at(Some(retry_at)));
            }
            Heard::Streaming => {
                if let Some(trial) = self.turn.as_mut().and_then(|turn| turn.trouble.as_mut()) {
                    trial.is_streaming = true;
                }
            }
            Heard::Answering => {
                if let Some(turn) = &mut self.turn {
                    turn.trouble = None;
                }
            }
            Heard::Ended(stop) => {
                // Of an interrupted turn, not even the prompt may have been kept.
                if stop != Stop::Interrupted {
                    self.known = Known::Yes;
                }
                self.finish(stop);
            }
            Heard::Garbled => {}
        }
    }

    /// The program tries again. It may do so for a while from the first time on, even when it gets a
    /// part of an answer in between. A next try that is far away is not waited for here.
    fn trouble(&mut self, trouble: Trouble) {
        let Some(turn) = &mut self.turn else { return };
        let now = Instant::now();
        let patience = trouble.kind.patience(self.shared.patience);
        let mut until = now + patience;
        if let Some(before) = &turn.trouble {
            until = until.min(before.until);
        }
        if until > now && !trouble.is_far(patience) {
            turn.trouble = Some(Trial { until, trouble, is_streaming: false });
        } else {
            turn.failure = Some(trouble.into_error(ID));
            self.interrupt();
        }
    }

    fn ask(&mut self, request: String, questions: Vec<Question>, input: Value) {
        let asking = Asking::new(request, questions);
        let allowed = self.launch.request.questions && !asking.questions.is_empty();
        match &mut self.turn {
            Some(turn) if allowed && turn.interrupted.is_none() => {
                if let Some(outlet) = &mut self.outlet {
                    asking.events().for_each(|event| outlet.push(event));
                }
                turn.question = Some((asking, input));
            }
            _ => {
                let why = "Nobody can be asked here. Decide yourself and say what you decided.";
                let verdict = json!({ "behavior": "deny", "message": why });
                self.write(wire::reply(&asking.request, &verdict));
            }
        }
    }

    /// The turn is over. Its end is the last event.
    fn finish(&mut self, stop: Stop) {
        let Some(mut turn) = self.turn.take() else { return };
        let stop = told_end(stop, turn.failure.take(), turn.interrupted.is_some());
        if let Some(outlet) = &mut self.outlet {
            outlet.end(stop);
        }
    }

    async fn program_ended(&mut self) {
        let Some(process) = self.process.take() else { return };
        let exit = process.exit().await;
        for (_, reply) in self.asked.drain(..) {
            let _ = reply.send(Err("the program has ended".to_owned()));
        }
        let error = match self.unheard() {
            // It had ended before, and we did not know when we sent the prompt.
            Some(prompt) => match self.launch().await {
                Ok(_) => return self.write(prompt),
                Err(error) => error,
            },
            None => exited(&exit),
        };
        self.finish(Stop::Failed(error.into()));
    }

    /// The prompt of a turn of which the program cannot have done anything.
    fn unheard(&mut self) -> Option<String> {
        let turn = self.turn.as_mut().filter(|turn| turn.interrupted.is_none())?;
        turn.unheard.take()
    }

    async fn end(&mut self) {
        let was_busy = self.turn.take().is_some();
        if let Some(process) = self.process.take() {
            if was_busy { process.kill().await } else { process.end().await }
        }
        if let Some(outlet) = self.outlet.take() {
            outlet.close(Stop::Interrupted);
        }
    }

    async fn line(&mut self) -> Option<String> {
        next_line(&mut self.process).await
    }

    fn write(&self, line: String) {
        if let Some(process) = &self.process {
            process.write(line);
        }
    }

    /// Asks the program for something; returns the request's id.
    fn request(&mut self, wish: &Value) -> String {
        self.requests += 1;
        let id = format!("atomic-{}", self.requests);
        let line = wire::request(&id, wish);
        self.write(line);
        id
    }
}

async fn next_line(process: &mut Option<Process>) -> Option<String> {
    match process {
        Some(process) => process.line().await,
        None => std::future::pending().await,
    }
}

pub(super) fn misused(problem: &str) -> BackendError {
    BackendError::Misused { backend: BackendId::from(ID), problem: problem.to_owned() }
}
