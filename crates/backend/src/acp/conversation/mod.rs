//! One conversation: a task that owns the program.

mod ending;
mod questions;
mod start;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_client_protocol::v1::schema::{ContentBlock, PromptRequest};
use atomic_event::{BackendId, Report, StepError, TurnEvent, Usage};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::about::About;
use super::decode::{Decoder, Who};
use super::line::{Line, News, Next};
use super::prompt::{Around, blocks, command};
use super::{Left, Shared};
use crate::outlet::{Outlet, at, deserted, tell};
use crate::serving::{Held, Presence, Wish, lock};
use crate::{BackendError, Inherit, OpenRequest, Turn};
use questions::Open;

/// The task that owns a program.
pub(super) struct Talk {
    shared: Arc<Shared>,
    request: OpenRequest,
    session: String,
    /// What it is called by whoever holds it: an agent that has kept nothing has made another.
    held_as: String,
    presence: Arc<Presence>,
    /// The program, as long as it is there.
    line: Option<Line>,
    about: About,
    wishes: mpsc::Receiver<Wish>,
    decoder: Decoder,
    turn: Option<CurrentTurn>,
    outlet: Option<Outlet>,
    /// What the agent was told to be last.
    instructions: Option<String>,
    /// Whether the agent has kept something of what was said.
    is_kept: bool,
    /// How many prompts were sent.
    prompts: u64,
}

/// The turn under way.
#[derive(Default)]
struct CurrentTurn {
    /// Its prompt; what is said about another one is about a turn that was given up.
    number: u64,
    /// What was sent, until the program has said anything since.
    unheard: Option<Vec<ContentBlock>>,
    /// Whether something was sent again because nobody had read it.
    is_repeated: bool,
    /// Questions that are open.
    questions: Vec<Open>,
    /// By when it has to end, when it was interrupted.
    interrupted: Option<Instant>,
    /// Whether a tool was being used then, of which something may go on running.
    was_using_tools: bool,
    /// Why a tool was not allowed, until the agent has gone on since.
    refusal: Option<String>,
    /// How often it was told to go on after that.
    goings_on: usize,
    /// Who waits for a summary, when this is one.
    summary: Option<oneshot::Sender<Result<Option<Usage>, StepError>>>,
}

/// What wakes the task up.
enum Woken {
    Wish(Option<Wish>),
    Line(Next),
    Told,
    NobodyListens,
    TimeUp,
}

impl Talk {
    /// Starts the program, and the task that talks to it once it is ready.
    pub(super) async fn start(
        shared: Arc<Shared>,
        request: OpenRequest,
    ) -> Result<Held, BackendError> {
        let presence = Arc::new(Presence::new(&request.marker));
        let (wishes, orders) = mpsc::channel(8);
        let mut talk = Self::new(shared, request, Arc::clone(&presence), orders);
        let backend = talk.shared.id.clone();
        let (mut told, opened) = oneshot::channel();
        // In a task of its own: what is begun is ended in good order, even if nobody waits for it.
        tokio::spawn(async move {
            let launched = tokio::select! {
                launched = talk.enter_and_launch() => launched,
                () = told.closed() => return talk.end().await,
            };
            let is_launched = launched.is_ok();
            let _ = told.send(launched.map(|()| talk.session.clone()));
            if is_launched {
                talk.run().await;
            }
        });
        let over = || BackendError::Misused {
            backend: backend.clone(),
            problem: "the conversation has ended".to_owned(),
        };
        let session = opened.await.map_err(|_| over())??;
        Ok(Held::new(session, backend, wishes, presence))
    }

    fn new(
        shared: Arc<Shared>,
        request: OpenRequest,
        presence: Arc<Presence>,
        wishes: mpsc::Receiver<Wish>,
    ) -> Self {
        Self {
            decoder: Decoder::new(shared.id.as_str()),
            session: String::new(),
            held_as: String::new(),
            presence,
            line: None,
            about: About::default(),
            wishes,
            turn: None,
            outlet: None,
            instructions: None,
            is_kept: request.resume.is_some(),
            prompts: 0,
            shared,
            request,
        }
    }

    /// Talks until the conversation is closed or nobody holds it any more.
    async fn run(mut self) {
        loop {
            match self.woken().await {
                Woken::Wish(None) => return self.end().await,
                Woken::Wish(Some(Wish::Close { reply, .. })) => {
                    self.end().await;
                    let _ = reply.send(());
                    return;
                }
                Woken::Wish(Some(wish)) => self.obey(wish).await,
                Woken::Line(next) => self.hear(next).await,
                Woken::Told => {}
                Woken::NobodyListens => {
                    self.outlet = None;
                    self.interrupt();
                }
                Woken::TimeUp => self.give_up().await,
            }
        }
    }

    async fn woken(&mut self) -> Woken {
        let deadline = self.turn.as_ref().and_then(|turn| turn.interrupted);
        let listener = self.outlet.as_ref().map(Outlet::listener);
        let has_room = self.outlet.as_ref().is_none_or(Outlet::has_room);
        let line = &mut self.line;
        tokio::select! {
            biased;
            wish = self.wishes.recv() => Woken::Wish(wish),
            () = deserted(listener) => Woken::NobodyListens,
            () = tell(&mut self.outlet) => Woken::Told,
            () = at(deadline) => Woken::TimeUp,
            next = next(line, has_room) => Woken::Line(next),
        }
    }

    async fn obey(&mut self, wish: Wish) {
        match wish {
            Wish::Send { prompt, mut reply } => {
                let sent = tokio::select! {
                    sent = self.send(&prompt) => sent,
                    // Nobody waits for the program to start any more.
                    () = reply.closed() => return,
                };
                let _ = reply.send(sent);
            }
            Wish::Answer { id, answer, reply } => {
                let answered = self.answer(&id, &answer);
                let _ = reply.send(answered);
            }
            Wish::Interrupt { reply } => {
                self.interrupt();
                let _ = reply.send(());
            }
            Wish::Compact { reply } => self.compact(reply).await,
            Wish::SetModel { model, mut reply } => {
                let set = self.set_model(model, &mut reply).await;
                let _ = reply.send(set);
            }
            Wish::Close { reply, .. } => {
                let _ = reply.send(());
            }
        }
    }

    fn misused(&self, problem: &str) -> BackendError {
        BackendError::Misused { backend: self.shared.id.clone(), problem: problem.to_owned() }
    }

    /// Nothing is under way, and there is a program.
    async fn ready(&mut self) -> Result<(), BackendError> {
        if self.turn.is_some() || self.outlet.is_some() {
            return Err(self.misused("a turn is under way; wait for its end"));
        }
        self.awake().await
    }

    async fn send(&mut self, prompt: &str) -> Result<Turn, BackendError> {
        self.ready().await?;
        let Some((mut outlet, turn)) = Outlet::open() else {
            return Err(self.misused("there is no room for the turn's events"));
        };
        for text in self.remarks() {
            outlet.push(TurnEvent::Reported(Report::Remarked { text }));
        }
        let wanted = self.request.system_prompt.as_str();
        let instructions = (self.instructions.as_deref() != Some(wanted)).then_some(wanted);
        let around = Around { instructions, schema: self.request.schema.as_ref() };
        let blocks = blocks(prompt, around);
        self.outlet = Some(outlet);
        self.begin(blocks, None);
        Ok(turn)
    }

    /// Lets the agent summarise the conversation, where it has a command for that.
    async fn compact(&mut self, mut reply: oneshot::Sender<Result<Option<Usage>, StepError>>) {
        let mut ready = tokio::select! {
            ready = self.ready() => ready,
            () = reply.closed() => return,
        };
        if ready.is_ok() && !self.about.compacts() {
            let problem = "this agent has no command `compact`, and the protocol has none; begin a \
                           new conversation instead";
            ready = Err(self.misused(problem));
        }
        match ready {
            Ok(()) => self.begin(command("compact"), Some(reply)),
            Err(error) => _ = reply.send(Err(error.into())),
        }
    }

    fn begin(
        &mut self,
        blocks: Vec<ContentBlock>,
        summary: Option<oneshot::Sender<Result<Option<Usage>, StepError>>>,
    ) {
        self.decoder.begin_turn();
        self.turn = Some(CurrentTurn { summary, ..CurrentTurn::default() });
        self.prompt(blocks);
    }

    fn prompt(&mut self, blocks: Vec<ContentBlock>) {
        self.prompts += 1;
        let params = PromptRequest::new(self.session.clone(), blocks.clone());
        if let Some(turn) = &mut self.turn {
            turn.number = self.prompts;
            turn.unheard = Some(blocks);
        }
        // What cannot be sent is known from the end of the program.
        if let Some(line) = &self.line {
            let _ = line.prompt(self.prompts, params);
        }
    }

    /// What cannot be done here, as far as it was not said yet.
    fn remarks(&self) -> Vec<String> {
        let name = &self.shared.id;
        let has_no_questions = self.about.who != Who::Other;
        let remarks = [
            (
                "continues",
                self.shared.has_lost.load(Ordering::Relaxed),
                format!(
                    "{name}: this agent cannot continue a conversation (it offers neither \
                     session/resume nor session/load); it begins a new one each time"
                ),
            ),
            (
                "tools",
                !self.request.tools.allow_everything(),
                format!(
                    "{name}: over ACP an agent's `tools` restrict only what the agent asks \
                     permission for; what it does unasked is not restricted"
                ),
            ),
            (
                "questions",
                self.request.questions && has_no_questions,
                format!("{name}: {} does not ask questions over ACP", self.about.title),
            ),
            (
                "helpers",
                !self.request.helpers.is_empty(),
                format!("{name}: over ACP an agent cannot be given helpers; it has its own"),
            ),
            (
                "inherit",
                self.request.inherit != Inherit::All,
                format!(
                    "{name}: over ACP the program itself decides which settings of yours and of \
                     the project it reads, hooks and MCP servers included"
                ),
            ),
        ];
        let due =
            remarks.into_iter().filter(|(what, holds, _)| *holds && self.shared.is_news(what));
        due.map(|(_, _, text)| text).collect()
    }

    async fn hear(&mut self, next: Next) {
        match next {
            Next::Passed => {
                if let Some(turn) = &mut self.turn {
                    turn.unheard = None;
                }
            }
            Next::Ended => {}
            Next::Garbled(line) => self.is_garbled(&line).await,
            Next::News(news) => match *news {
                News::Noted { method, params } => self.noted(&method, &params),
                News::Asked { method, params, responder } => {
                    self.asked(&method, &params, responder);
                }
                News::Answered { number, answer } => self.answered(number, answer).await,
                News::Closed => self.program_ended().await,
            },
        }
    }

    fn noted(&mut self, method: &str, params: &Value) {
        let Some(update) = params.get("update").filter(|_| method == "session/update") else {
            return;
        };
        self.about.learn_update(update);
        let session = params.get("sessionId").and_then(Value::as_str);
        if session.is_some_and(|session| session != self.session) {
            return;
        }
        if self.turn.is_none() {
            // What is told between two turns is of use only as a count.
            self.decoder.spending.update(update);
            return;
        }
        for event in self.decoder.update(update) {
            self.tell(event);
        }
    }

    fn tell(&mut self, event: TurnEvent) {
        if let (Some(turn), TurnEvent::Typed { .. } | TurnEvent::ToolBegan(_)) =
            (&mut self.turn, &event)
        {
            turn.refusal = None;
        }
        if let Some(outlet) = &mut self.outlet {
            outlet.push(event);
        }
    }

    /// Keeps what somebody has to know who continues the session.
    fn remember(&self) {
        let left =
            Left { instructions: self.instructions.clone(), spending: self.decoder.spending };
        lock(&self.shared.left).insert(self.session.clone(), left);
    }
}

async fn next(line: &mut Option<Line>, may_read: bool) -> Next {
    match line {
        Some(line) => line.next(may_read).await,
        None => std::future::pending().await,
    }
}

/// The session is unknown to the agent.
fn gone(backend: &BackendId, session: &str) -> BackendError {
    BackendError::ConversationGone { backend: backend.clone(), conversation: session.into() }
}
