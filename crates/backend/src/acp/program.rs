//! Implements `AgentProgram` for agents that speak the Agent Client Protocol: a process with one session.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{CancelNotification, ContentBlock, PromptRequest};
use atomic_event::{Answer, BackendId, Question, Report, Stop, TurnEvent};
use serde_json::Value;
use tokio::sync::oneshot;

use super::about::About;
use super::decode::{Decoder, Who};
use super::form::{Form, declined, withdrawn};
use super::line::{Line, News, Next};
use super::permission::respond;
use super::prompt::{Around, blocks, command, without_fence};
use super::trouble::{garbled, of_error};
use super::{Left, Shared};
use crate::serving::{Presence, lock};
use crate::trouble::{Kind, PROVIDER_PATIENCE};
use crate::turn::{
    AgentProgram, ConversationHandle, ConversationTask, Handle, Input, TurnEnd, TurnSettings,
};
use crate::{BackendError, Inherit, OpenRequest};

/// Maximum number of continuation prompts in a turn that the agent ended because a tool was refused.
const MAX_CONTINUATIONS: usize = 20;

/// A process that speaks the protocol, and its session.
pub(super) struct AcpProgram {
    pub(super) shared: Arc<Shared>,
    pub(super) request: OpenRequest,
    pub(super) session: String,
    /// Id under which the conversation is held. An agent that saved nothing has made another session.
    pub(super) held_as: String,
    pub(super) presence: Arc<Presence>,
    /// The process, as long as it is connected.
    pub(super) line: Option<Line>,
    pub(super) about: About,
    pub(super) decoder: Decoder,
    pub(super) turn: CurrentTurn,
    /// System prompt that the agent was given last.
    pub(super) instructions: Option<String>,
    /// Whether the agent has saved something of the session.
    pub(super) is_saved: bool,
    /// Number of prompts that were sent.
    prompts: u64,
}

/// The part of a turn that only this protocol needs.
#[derive(Default)]
pub(super) struct CurrentTurn {
    /// Whether the turn is under way.
    pub(super) is_open: bool,
    is_summary: bool,
    /// Blocks of the last prompt, for a process that ended before it read them.
    blocks: Vec<ContentBlock>,
    pub(super) is_interrupted: bool,
    /// Whether a tool was running at the interruption, which may have started processes.
    was_using_tools: bool,
    /// Reason for which a tool was refused, until the agent has continued since.
    pub(super) refusal: Option<String>,
    continuations: usize,
    /// Open forms, by request.
    forms: BTreeMap<String, (Form, Responder<Value>)>,
}

impl AcpProgram {
    pub(super) fn new(shared: Arc<Shared>, request: OpenRequest, presence: Arc<Presence>) -> Self {
        Self {
            decoder: Decoder::new(shared.id.as_str()),
            session: String::new(),
            held_as: String::new(),
            presence,
            line: None,
            about: About::default(),
            turn: CurrentTurn::default(),
            instructions: None,
            is_saved: request.resume.is_some(),
            prompts: 0,
            shared,
            request,
        }
    }

    /// Starts the process, opens the session, and starts the task of the conversation.
    pub(super) async fn open(
        shared: Arc<Shared>,
        request: OpenRequest,
    ) -> Result<ConversationHandle, BackendError> {
        let backend = shared.id.clone();
        let settings = TurnSettings {
            backend: backend.as_str().to_owned(),
            patience: PROVIDER_PATIENCE,
            questions: request.questions,
        };
        let presence = Arc::new(Presence::new(&request.marker));
        let mut program = Self::new(shared, request, Arc::clone(&presence));
        let (handle, commands) = Handle::new();
        let (mut sender, opened) = oneshot::channel();
        // The task outlives a caller that stops waiting, so a process that was started is ended.
        tokio::spawn(async move {
            let launched = tokio::select! {
                launched = program.enter_and_launch() => launched,
                () = sender.closed() => return program.close(false, false).await,
            };
            let is_launched = launched.is_ok();
            let _ = sender.send(launched.map(|()| program.session.clone()));
            if is_launched {
                ConversationTask::new(program, settings, commands).run().await;
            }
        });
        let over = || BackendError::Misused {
            backend: backend.clone(),
            problem: "the conversation has ended".to_owned(),
        };
        let session = opened.await.map_err(|_| over())??;
        Ok(ConversationHandle::new(session.into(), backend, handle, Some(presence)))
    }

    fn send_prompt(&mut self, blocks: Vec<ContentBlock>) {
        self.prompts += 1;
        let params = PromptRequest::new(self.session.clone(), blocks.clone());
        self.turn.blocks = blocks;
        // A failure to send is known from the end of the process.
        if let Some(line) = &self.line {
            let _ = line.prompt(self.prompts, params);
        }
    }

    fn begin(&mut self, blocks: Vec<ContentBlock>, is_summary: bool) {
        self.decoder.begin_turn();
        self.turn = CurrentTurn { is_open: true, is_summary, ..CurrentTurn::default() };
        self.send_prompt(blocks);
    }

    async fn end_process(&mut self, at_once: bool) {
        if let Some(line) = self.line.take() {
            line.end(at_once).await;
        }
    }

    /// Returns what the protocol or the agent cannot do here, as far as it was not reported before.
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

    fn on_update(&mut self, method: &str, params: &Value) -> Vec<Input> {
        let Some(update) = params.get("update").filter(|_| method == "session/update") else {
            return vec![];
        };
        self.about.learn_update(update);
        let session = params.get("sessionId").and_then(Value::as_str);
        if session.is_some_and(|session| session != self.session) {
            return vec![];
        }
        if !self.turn.is_open {
            // Between two turns only the counts matter.
            self.decoder.spending.update(update);
            return vec![];
        }
        let events = self.decoder.update(update);
        let continues =
            |event: &TurnEvent| matches!(event, TurnEvent::Typed { .. } | TurnEvent::ToolBegan(_));
        if events.iter().any(continues) {
            self.turn.refusal = None;
        }
        events.into_iter().map(Input::Event).collect()
    }

    /// Puts a form to the user.
    pub(super) fn on_form(&mut self, params: &Value, responder: Responder<Value>) -> Vec<Input> {
        let Some(form) = Form::read(params).filter(|_| self.turn.is_open) else {
            respond(responder, &declined());
            return vec![];
        };
        let request = uuid::Uuid::new_v4().to_string();
        let questions = form.questions();
        self.turn.forms.insert(request.clone(), (form, responder));
        vec![Input::Asked { request, questions }]
    }

    /// Handles the response to a prompt.
    async fn on_answer(&mut self, number: u64, answer: Result<Value, Error>) -> Vec<Input> {
        if !self.turn.is_open || self.prompts != number {
            return vec![];
        }
        if self.turn.was_using_tools {
            // The agent does not end every process that its tools have started.
            self.end_process(true).await;
        }
        match answer {
            Ok(answer) => self.on_turn_answer(&answer),
            // The end of the process says more.
            Err(error) if agent_client_protocol::is_incoming_transport_closed(&error) => {
                self.on_exit().await
            }
            Err(error) => {
                let mut trouble = of_error(&error);
                if trouble.kind == Kind::Rejected && self.about.lacks_models() {
                    // OpenCode 1.18.33 reports only that something has failed.
                    trouble.kind = Kind::Login;
                }
                let stop = Stop::Failed(trouble.into_error(self.shared.id.as_str()));
                // Costs before the failure count.
                let (events, _) = self.decoder.end(&Value::Null);
                events.into_iter().map(Input::Event).chain([Input::Ended(stop)]).collect()
            }
        }
    }

    fn on_turn_answer(&mut self, answer: &Value) -> Vec<Input> {
        let (events, mut stop) = self.decoder.end(answer);
        let mut inputs: Vec<Input> = events.into_iter().map(Input::Event).collect();
        if self.continues(answer) {
            return inputs;
        }
        if let (Stop::Done { text }, Some(_)) = (&mut stop, &self.request.schema) {
            *text = without_fence(text).to_owned();
        }
        inputs.push(Input::Ended(stop));
        inputs
    }

    /// Tells an agent to continue that ended its turn because a tool was refused. Agents do so whatever
    /// the model would have done.
    fn continues(&mut self, answer: &Value) -> bool {
        let is_end = answer.get("stopReason").and_then(Value::as_str) == Some("end_turn");
        let may_continue =
            is_end && !self.turn.is_interrupted && self.turn.continuations < MAX_CONTINUATIONS;
        let Some(why) = self.turn.refusal.take_if(|_| may_continue) else { return false };
        self.turn.continuations += 1;
        self.decoder.begin_turn();
        let prompt = format!("The tool was not used: {why}. Go on without it.");
        self.send_prompt(blocks(&prompt, Around::default()));
        true
    }

    async fn on_garbled(&mut self, text: &str) -> Vec<Input> {
        self.end_process(true).await;
        let error = garbled(self.shared.id.as_str(), text);
        vec![Input::Ended(Stop::Failed(error.into()))]
    }

    async fn on_exit(&mut self) -> Vec<Input> {
        let Some(line) = self.line.take() else { return vec![] };
        let exit = line.exit().await;
        vec![Input::Lost { error: self.why_it_ended(&exit), may_resend: exit.is_deaf }]
    }

    /// Keeps the state that the next holder of the session needs.
    fn remember(&self) {
        let left =
            Left { instructions: self.instructions.clone(), spending: self.decoder.spending };
        lock(&self.shared.left).insert(self.session.clone(), left);
    }
}

impl AgentProgram for AcpProgram {
    type Message = Next;
    type Request = Infallible;

    fn misused(&self, problem: &str) -> BackendError {
        BackendError::Misused { backend: self.shared.id.clone(), problem: problem.to_owned() }
    }

    async fn connect(&mut self) -> Result<(), BackendError> {
        if self.line.is_none() {
            self.launch().await?;
        }
        Ok(())
    }

    async fn prompt(&mut self, prompt: String) -> Vec<TurnEvent> {
        let remarks = self.remarks().into_iter();
        let wanted = self.request.system_prompt.as_str();
        let instructions = (self.instructions.as_deref() != Some(wanted)).then_some(wanted);
        let around = Around { instructions, schema: self.request.schema.as_ref() };
        let blocks = blocks(&prompt, around);
        self.begin(blocks, false);
        remarks.map(|text| TurnEvent::Reported(Report::Remarked { text })).collect()
    }

    fn resend(&mut self) {
        self.send_prompt(self.turn.blocks.clone());
    }

    fn summarise(&mut self) -> Result<(), BackendError> {
        if !self.about.compacts() {
            let problem = "this agent has no command `compact`, and the protocol has none; begin a \
                           new conversation instead";
            return Err(self.misused(problem));
        }
        self.begin(command("compact"), true);
        Ok(())
    }

    async fn receive(&mut self, has_room: bool) -> Next {
        match &mut self.line {
            Some(line) => line.next(has_room).await,
            None => std::future::pending().await,
        }
    }

    async fn on_message(&mut self, message: Next) -> Vec<Input> {
        match message {
            Next::Passed => vec![Input::Heard],
            Next::Ended => vec![],
            Next::Garbled(line) => self.on_garbled(&line).await,
            Next::News(news) => match *news {
                News::Noted { method, params } => self.on_update(&method, &params),
                News::Asked { method, params, responder } => {
                    self.on_request(&method, &params, responder)
                }
                News::Answered { number, answer } => self.on_answer(number, answer).await,
                News::Closed => self.on_exit().await,
            },
        }
    }

    fn interrupt(&mut self) {
        self.turn.is_interrupted = true;
        self.turn.was_using_tools = self.decoder.is_using_tools();
        if let Some(line) = &self.line {
            line.note("session/cancel", CancelNotification::new(self.session.clone()));
        }
    }

    async fn abandon(&mut self) {
        self.end_process(true).await;
    }

    fn reply(&mut self, request: &str, answers: &[(Question, Answer)]) {
        let Some((form, responder)) = self.turn.forms.remove(request) else { return };
        let answers: Vec<&Answer> = answers.iter().map(|(_, answer)| answer).collect();
        respond(responder, &form.filled(&answers));
    }

    fn decline(&mut self, request: &str, _questions: usize) {
        if let Some((_, responder)) = self.turn.forms.remove(request) {
            respond(responder, &declined());
        }
    }

    fn withdraw(&mut self, request: &str) {
        if let Some((_, responder)) = self.turn.forms.remove(request) {
            respond(responder, &withdrawn());
        }
    }

    fn on_turn_end(&mut self, end: TurnEnd) {
        self.turn.is_open = false;
        // Of an interrupted turn, not even the prompt may have been saved.
        self.is_saved |= end != TurnEnd::Interrupted;
        if end == TurnEnd::Done && !self.turn.is_summary {
            self.instructions = Some(self.request.system_prompt.clone());
        }
        self.remember();
    }

    async fn set_model(&mut self, model: String) -> Result<(), BackendError> {
        if self.turn.is_open {
            return Err(self.misused("a turn is under way; wait for its end"));
        }
        self.choose_model(model).await
    }

    async fn close(mut self, was_busy: bool, _rests: bool) {
        self.presence.leaves();
        self.end_process(was_busy).await;
        self.shared.roster.leave(&self.held_as);
    }
}

/// The session is unknown to the agent.
pub(super) fn gone(backend: &BackendId, session: &str) -> BackendError {
    BackendError::ConversationGone { backend: backend.clone(), conversation: session.into() }
}
