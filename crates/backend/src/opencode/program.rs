//! Implements `AgentProgram` for OpenCode: a session of the shared server.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atomic_event::{Answer, BackendId, Question, Stop, TurnEvent};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::catalogue::Facts;
use super::decode::{Decoder, Heard, Verdict};
use super::errands::{Errand, Errands};
use super::failures::broken_off;
use super::launch::{NOBODY, PERSONA, Setup};
use super::server::Server;
use super::session::{known, made, servers};
use super::talker::{News, Talker};
use super::wire::{Model, Prompt, PromptPart};
use super::{ID, Shared, misused, model_named};
use crate::outlet::at;
use crate::serving::{Lease, Presence};
use crate::turn::{
    AgentProgram, ConversationHandle, ConversationTask, Handle, INTERRUPT_TIMEOUT, Input,
    TurnSettings,
};
use crate::{BackendError, OpenRequest};

/// Reply to a question that no user can answer. A refusal would end the turn without a word.
const DECLINED: &str = "Nobody can be asked here. Decide yourself and say what you decided.";

/// Time in which the costs of a summary may still be reported after it is made.
const SUMMARY_SETTLE_TIME: Duration = Duration::from_millis(300);

/// A session and the server that holds it.
pub(super) struct OpenCodeProgram {
    shared: Arc<Shared>,
    setup: Setup,
    model: Model,
    session: String,
    talker: Arc<Talker>,
    news: mpsc::UnboundedReceiver<News>,
    /// The server, as long as it is connected.
    server: Option<(Lease<Server>, Errands)>,
    decoder: Decoder,
    /// Body of the last prompt, for a server that ended before it received the prompt.
    prompt: Value,
    /// The summary under way.
    summary: Option<Summary>,
    /// Id from which on messages belong to a summary that was requested and not made.
    unmade_since: Option<String>,
    /// Whether the server may still work on a turn that is over.
    may_be_busy: bool,
}

/// A summary under way.
#[derive(Default)]
struct Summary {
    result: Option<Result<(), BackendError>>,
    deadline: Option<Instant>,
}

/// Reasons to look at the session.
pub(super) enum Message {
    News(News),
    SummarySettled,
}

impl OpenCodeProgram {
    /// Creates a session or finds the one to continue, and starts the task of the conversation.
    pub(super) async fn open(
        shared: Arc<Shared>,
        setup: Setup,
        model: Model,
        request: OpenRequest,
    ) -> Result<ConversationHandle, BackendError> {
        let server = shared.server(&setup, &request.marker).await?;
        let facts = Facts::of(&server, &request.workspace, &model).await?;
        server.gate.is_in(&request.workspace).await?;
        let session = match &request.resume {
            Some(id) => {
                known(&server, id.as_str(), &request.workspace).await?;
                id.as_str().to_owned()
            }
            None => made(&server, &request).await?,
        };
        let mcp = servers(&server, &request).await;
        let presence = Arc::new(Presence::new(&request.marker));
        let settings = TurnSettings {
            backend: ID.to_owned(),
            patience: shared.config.patience,
            questions: request.questions,
        };
        let may_be_busy = request.resume.is_some();
        let (talker, news) = Talker::new(request, mcp, Arc::clone(&presence));
        server.enter(&session, &talker).await?;
        let mut decoder = Decoder::new(&session);
        facts.tell(&mut decoder);
        let mut program = Self {
            shared,
            setup,
            model,
            session: session.clone(),
            talker,
            news,
            server: None,
            decoder,
            prompt: Value::Null,
            summary: None,
            unmade_since: None,
            may_be_busy,
        };
        program.use_server(server);
        let (handle, commands) = Handle::new();
        tokio::spawn(ConversationTask::new(program, settings, commands).run());
        Ok(ConversationHandle::new(session.into(), ID, handle, Some(presence)))
    }

    fn use_server(&mut self, server: Lease<Server>) {
        let errands = Errands::start(&server, &self.session, &self.talker);
        self.server = Some((server, errands));
    }

    /// Leaves the server. Nothing it may still send is for this conversation.
    fn leave_server(&mut self) {
        if let Some((server, _)) = self.server.take() {
            server.leave(&self.session);
        }
        (self.talker, self.news) = self.talker.renewed();
    }

    async fn move_to(&mut self, server: Lease<Server>) -> Result<(), BackendError> {
        self.leave_server();
        server.enter(&self.session, &self.talker).await?;
        self.use_server(server);
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.talker.request.workspace.clone()
    }

    fn errand(&self, errand: Errand) {
        if let Some((_, errands)) = &self.server {
            errands.run(errand);
        }
    }

    /// Deletes the request for a summary that was not made. OpenCode 1.18.33 would make the summary
    /// before it looks at the next prompt, and then not look at the prompt.
    fn forget_summary(&mut self) {
        if let Some(since) = self.unmade_since.take() {
            self.errand(Errand::Forget { since });
        }
    }

    /// Returns the end of the summary. The server reports a summary as made even where it is not.
    fn summary_ended(&mut self, result: Result<(), BackendError>) -> Input {
        self.summary = None;
        let failure = self.decoder.failure().or(result.err().map(Into::into));
        Input::Ended(match failure {
            Some(error) => Stop::Failed(error),
            None => {
                self.unmade_since = None;
                Stop::Done { text: String::new() }
            }
        })
    }

    /// Handles what an event of the server means.
    fn on_heard(&mut self, heard: Heard) -> Option<Input> {
        Some(match heard {
            Heard::Event(event) => Input::Event(event),
            Heard::Asked { request, questions } => Input::Asked { request, questions },
            Heard::LeaveWanted { request } => {
                self.errand(Errand::Allow { request });
                return None;
            }
            Heard::Trouble(trouble) => Input::Trouble(trouble),
            Heard::Answering => Input::Recovered,
            Heard::BrokenOff => Input::Failed(broken_off().into()),
            Heard::Busy => Input::Busy,
            Heard::Began => Input::Began,
            Heard::Idle => {
                let summary = self.summary.as_mut();
                if let Some(result) = summary.and_then(|summary| summary.result.take()) {
                    return Some(self.summary_ended(result));
                }
                if self.summary.is_some() {
                    return None;
                }
                match self.decoder.verdict(false) {
                    Verdict::Over(stop) => Input::Ended(stop),
                    Verdict::Unsettled => Input::MaybeEnded,
                }
            }
        })
    }

    /// Handles the rejection of a prompt. A server that does not even answer a health check is lost: it
    /// may have ended without a message.
    async fn on_not_sent(&mut self, error: BackendError) -> Input {
        if let (BackendError::Exited { .. }, Some((server, _))) = (&error, &self.server)
            && server.is_dead().await
        {
            server.end().await;
            return self.on_lost(error).await;
        }
        Input::Ended(Stop::Failed(error.into()))
    }

    async fn on_lost(&mut self, error: BackendError) -> Input {
        self.leave_server();
        // The guard of its processes may be gone as well.
        self.talker.presence.end_shells().await;
        let may_resend = self.summary.take().is_none();
        Input::Lost { error, may_resend }
    }

    async fn on_news(&mut self, news: News) -> Vec<Input> {
        match news {
            News::Event(event) => {
                let mut inputs = vec![Input::Heard];
                for heard in self.decoder.event(&event) {
                    inputs.extend(self.on_heard(heard));
                }
                inputs
            }
            News::Resync => {
                self.errand(Errand::Resync { since: self.decoder.prompt().to_owned() });
                vec![]
            }
            // About an earlier turn.
            News::Looked { prompt, .. } | News::NotSent { prompt, .. }
                if prompt != self.decoder.prompt() =>
            {
                vec![]
            }
            News::Looked { is_idle: true, .. } if self.decoder.failure().is_some() => {
                self.conclude().map(Input::Ended).into_iter().collect()
            }
            News::Looked { is_idle, .. } => vec![Input::Checked { is_idle }],
            News::NotSent { error, .. } => vec![self.on_not_sent(error).await],
            News::Summarised { since, result } => {
                // A summary that was interrupted may end only now.
                let is_current = self.unmade_since.as_ref() == Some(&since);
                if let Some(summary) = self.summary.as_mut().filter(|_| is_current) {
                    summary.result = Some(result);
                    summary.deadline = Some(Instant::now() + SUMMARY_SETTLE_TIME);
                }
                vec![]
            }
            News::Garbled(line) => {
                let error = BackendError::Garbled { backend: BackendId::from(ID), line };
                self.summary = None;
                self.leave_server();
                self.talker.presence.end_shells().await;
                vec![Input::Ended(Stop::Failed(error.into()))]
            }
            News::Gone(error) => vec![self.on_lost(error).await],
        }
    }
}

impl AgentProgram for OpenCodeProgram {
    type Message = Message;
    type Request = Infallible;

    fn misused(&self, problem: &str) -> BackendError {
        misused(problem)
    }

    async fn connect(&mut self) -> Result<(), BackendError> {
        if self.server.as_ref().is_some_and(|(server, _)| server.gone().is_none()) {
            return Ok(());
        }
        self.leave_server();
        let server = self.shared.server(&self.setup, &self.talker.request.marker).await?;
        known(&server, &self.session, &self.folder()).await?;
        server.enter(&self.session, &self.talker).await?;
        self.use_server(server);
        Ok(())
    }

    async fn prompt(&mut self, prompt: String) -> Vec<TurnEvent> {
        self.talker.presence.goes_on().await;
        self.forget_summary();
        let request = &self.talker.request;
        let message = message_id();
        let body = Prompt {
            message: message.clone(),
            parts: [PromptPart { r#type: "text", text: &prompt }],
            agent: if request.system_prompt.is_empty() { NOBODY } else { PERSONA },
            model: self.model.clone(),
            system: &request.system_prompt,
            tools: self.talker.offered(),
            format: request
                .schema
                .as_ref()
                .map(|schema| json!({ "type": "json_schema", "schema": schema })),
        };
        let body = serde_json::to_value(&body).unwrap_or_default();
        self.decoder.begin_turn(message);
        self.prompt.clone_from(&body);
        let is_busy = std::mem::take(&mut self.may_be_busy);
        self.errand(Errand::Prompt { body, is_busy });
        vec![]
    }

    fn resend(&mut self) {
        self.errand(Errand::Prompt { body: self.prompt.clone(), is_busy: true });
    }

    fn summarise(&mut self) -> Result<(), BackendError> {
        self.forget_summary();
        let since = message_id();
        self.unmade_since = Some(since.clone());
        self.decoder.begin_turn(since.clone());
        self.summary = Some(Summary::default());
        let model = &self.model;
        let body = json!({ "providerID": model.provider, "modelID": model.name });
        self.errand(Errand::Summarise { since, body });
        Ok(())
    }

    /// The server's other conversations cannot wait for this one.
    async fn receive(&mut self, _has_room: bool) -> Message {
        let deadline = self.summary.as_ref().and_then(|summary| summary.deadline);
        tokio::select! {
            biased;
            Some(news) = self.news.recv() => Message::News(news),
            () = at(deadline) => Message::SummarySettled,
        }
    }

    async fn on_message(&mut self, message: Message) -> Vec<Input> {
        match message {
            Message::News(news) => self.on_news(news).await,
            Message::SummarySettled => {
                let result = self.summary.as_mut().and_then(|summary| summary.result.take());
                result.map(|result| self.summary_ended(result)).into_iter().collect()
            }
        }
    }

    /// Aborts the turn, and ends what its shells are running.
    fn interrupt(&mut self) {
        // The turn may not have ended yet when it is over for us, and must not be answered together
        // with the next prompt.
        self.may_be_busy = true;
        self.summary = None;
        self.talker.presence.stops();
        self.errand(Errand::Abort);
        self.talker.presence.begin_to_end_shells();
    }

    async fn abandon(&mut self) {
        if let Some((server, _)) = &self.server {
            let server = Arc::clone(server);
            tokio::spawn(async move { server.end_if_silent().await });
        }
    }

    fn reply(&mut self, request: &str, answers: &[(Question, Answer)]) {
        let answers = answers.iter().map(|(_, answer)| json!(answer.chosen)).collect();
        self.errand(Errand::Answer { request: request.to_owned(), answers });
    }

    fn decline(&mut self, request: &str, questions: usize) {
        let answers = vec![json!([DECLINED]); questions].into();
        self.errand(Errand::Answer { request: request.to_owned(), answers });
    }

    fn check_idle(&mut self) {
        self.errand(Errand::Look { prompt: self.decoder.prompt().to_owned() });
    }

    fn conclude(&mut self) -> Option<Stop> {
        match self.decoder.verdict(true) {
            Verdict::Over(stop) => Some(stop),
            Verdict::Unsettled => None,
        }
    }

    async fn set_model(&mut self, model: String) -> Result<(), BackendError> {
        let model = model_named(&model)?;
        // A provider that no conversation has used yet needs another server.
        if let Some(providers) = &mut self.setup.providers
            && providers.insert(model.provider.clone())
        {
            let server = self.shared.server(&self.setup, &self.talker.request.marker).await?;
            self.move_to(server).await?;
        }
        if let Some((server, _)) = &self.server {
            let facts = Facts::of(server, &self.folder(), &model).await?;
            facts.tell(&mut self.decoder);
        }
        self.model = model;
        Ok(())
    }

    async fn close(mut self, was_busy: bool, rests: bool) {
        self.talker.presence.leaves();
        let Some((server, errands)) = self.server.take() else {
            // Commands of earlier turns may still run in the background.
            if !rests {
                self.talker.presence.end_shells().await;
            }
            return;
        };
        if was_busy || self.may_be_busy {
            self.talker.presence.stops();
            // Shells are ended at once, also where the program takes its time to stop.
            tokio::join!(
                errands.abort_and_wait(INTERRUPT_TIMEOUT),
                self.talker.presence.end_shells()
            );
        }
        if !rests {
            self.talker.presence.end_shells().await;
        }
        server.leave(&self.session);
    }
}

/// Returns a new id of a message in the program's form: the time, so that ids grow, and randomness.
fn message_id() -> String {
    let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    let time = (now << 12) & 0xffff_ffff_ffff;
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("msg_{time:012x}{}", &random[..14])
}
