//! Implements `AgentProgram` for GitHub Copilot: a session of the shared server process.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use atomic_event::{Answer, BackendId, ConversationId, Question, Report, Stop, TurnEvent};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::decode::{Decoder, Heard};
use super::list::todos;
use super::questions::{chosen, in_words, question};
use super::server::Server;
use super::talker::{News, Talker};
use super::{ID, PATIENCE, Shared, misused, rpc};
use crate::serving::{Lease, Presence};
use crate::trouble::Trouble;
use crate::turn::{
    AgentProgram, ConversationHandle, ConversationTask, Handle, INTERRUPT_TIMEOUT, Input, TurnEnd,
    TurnSettings,
};
use crate::{BackendError, OpenRequest};

/// Reply to a question that no user can answer.
const DECLINED: &str = "Nobody can be asked here. Decide yourself and say what you decided.";

/// A session and the program that holds it.
pub(super) struct CopilotProgram {
    shared: Arc<Shared>,
    model: Option<String>,
    session: String,
    talker: Arc<Talker>,
    news: mpsc::UnboundedReceiver<News>,
    /// The program, as long as it is connected.
    server: Option<Lease<Server>>,
    decoder: Decoder,
    /// The last prompt, for a program that ended before it received the prompt.
    prompt: String,
    /// Whether the program has accepted the prompt. An end before that belongs to another turn.
    is_accepted: bool,
    /// Ways to answer open questions, by request.
    open: BTreeMap<String, AskedBy>,
    summary: Option<Summary>,
    /// Number of summaries that were requested.
    summaries: u64,
    /// Whether the program may have saved anything of the session.
    is_saved: bool,
}

/// A summary under way.
struct Summary {
    /// A summary that was interrupted may end later.
    number: u64,
    /// The last failure of a call to the model.
    trouble: Option<Trouble>,
}

/// Ways in which the agent asks. The program has a tool for one question with one answer, and Atomic
/// adds a tool for everything else.
enum AskedBy {
    Call(Value),
    Tool,
}

impl CopilotProgram {
    /// Creates a session or continues one, and starts the task of the conversation.
    pub(super) async fn open(
        shared: Arc<Shared>,
        request: OpenRequest,
    ) -> Result<ConversationHandle, BackendError> {
        let session = match &request.resume {
            Some(id) => id.as_str().to_owned(),
            None => uuid::Uuid::new_v4().to_string(),
        };
        if uuid::Uuid::parse_str(&session).is_err() {
            return Err(gone(&session));
        }
        let settings = TurnSettings {
            backend: ID.to_owned(),
            patience: shared.config.patience,
            questions: request.questions,
        };
        let (model, is_saved) = (request.model.clone(), request.resume.is_some());
        let presence = Arc::new(Presence::new(&request.marker));
        let (talker, news) = Talker::new(request, Arc::clone(&presence));
        let mut program = Self {
            shared,
            model,
            session: session.clone(),
            talker,
            news,
            server: None,
            decoder: Decoder::default(),
            prompt: String::new(),
            is_accepted: false,
            open: BTreeMap::new(),
            summary: None,
            summaries: 0,
            is_saved,
        };
        let (handle, commands) = Handle::new();
        let conversation = ConversationHandle::new(session.into(), ID, handle, Some(presence));
        let (sender, opened) = oneshot::channel();
        // The task outlives a caller that stops waiting, so a session that was entered is left.
        tokio::spawn(async move {
            let connected = program.connect().await;
            let is_connected = connected.is_ok();
            let _ = sender.send(connected);
            if is_connected {
                ConversationTask::new(program, settings, commands).run().await;
            }
        });
        opened.await.map_err(|_| misused("the conversation has ended"))??;
        Ok(conversation)
    }

    /// Creates or resumes the session in the program.
    async fn enter_session(&mut self, server: &Server) -> Result<(), BackendError> {
        let request = &self.talker.request;
        let about = self.shared.about(&self.session, request, self.model.as_deref())?;
        let resumed = if self.is_saved {
            Some(server.rpc.call("session.resume", &about, Some(PATIENCE)).await)
        } else {
            None
        };
        match resumed {
            Some(Ok(_)) => {}
            // The program ended before it had saved anything, so there is nothing to lose.
            Some(Err(error)) if is_unknown(&error) && request.resume.is_none() => {
                server.rpc.call("session.create", &about, Some(PATIENCE)).await?;
            }
            Some(Err(error)) if is_unknown(&error) => return Err(gone(&self.session)),
            Some(Err(error)) => return Err(error),
            None => _ = server.rpc.call("session.create", &about, Some(PATIENCE)).await?,
        }
        // Copilot 1.0.102 keeps the permission mode across restarts, so it is set on every start.
        let mode = json!({ "sessionId": self.session, "mode": "allow-all" });
        server.rpc.call("session.permissions.setMode", &mode, Some(PATIENCE)).await?;
        Ok(())
    }

    /// Leaves the program. Nothing it may still send is for this conversation.
    fn leave_server(&mut self) {
        if let Some(server) = self.server.take() {
            server.leave(&self.session);
        }
        (self.talker, self.news) = self.talker.renewed();
    }

    fn send_prompt(&mut self) {
        self.is_saved = true;
        let (session, prompt) = (&self.session, &self.prompt);
        let mut message = json!({ "sessionId": session, "prompt": prompt, "mode": "enqueue" });
        if let Some(schema) = &self.talker.request.schema {
            let format = json!({ "name": "answer", "strict": true, "schema": schema });
            message["responseFormat"] = json!({ "type": "json_schema", "jsonSchema": format });
        }
        self.call("session.send", &message, |talker, sent| {
            if let Err(error) = sent {
                talker.tell(News::NotSent(error));
            }
        });
    }

    /// Calls a method without waiting. Calls arrive in the order in which they are made.
    fn call(
        &self,
        method: &'static str,
        params: &Value,
        then: impl FnOnce(&Talker, Result<Value, BackendError>) + Send + 'static,
    ) {
        let Some(server) = &self.server else { return };
        let (call, talker) = (server.rpc.begin(method, params), Arc::clone(&self.talker));
        let lease = server.clone();
        // A call that is never answered must not keep the program alive.
        let takes_long = ["session.send", "session.history.compact"].contains(&method);
        tokio::spawn(async move {
            let answer = if takes_long {
                Some(call.answer().await)
            } else {
                timeout(PATIENCE, call.answer()).await.ok()
            };
            if let Some(answer) = answer {
                then(&talker, answer);
            }
            drop(lease);
        });
    }

    /// Calls a method of the session whose answer does not matter.
    fn notify(&self, method: &'static str) {
        self.call(method, &json!({ "sessionId": self.session }), |_, _| {});
    }

    /// Aborts the turn, and then ends what its shells are running. A shell that ends before the program
    /// has stopped is a result of a tool, with which the program asks the model again.
    fn abort(&self) {
        let params = json!({ "sessionId": self.session });
        let stopping =
            self.server.clone().map(|server| (server.rpc.begin("session.abort", &params), server));
        self.talker.presence.end_shells_after(async move {
            if let Some((call, lease)) = stopping {
                let _ = timeout(INTERRUPT_TIMEOUT, call.answer()).await;
                drop(lease);
            }
        });
    }

    /// Leaves the session. A program that neither stops a turn nor answers this is ended.
    async fn part(&self, server: &Server, has_not_stopped: bool) {
        let left = json!({ "sessionId": self.session });
        let left = server.rpc.call("session.destroy", &left, Some(INTERRUPT_TIMEOUT)).await;
        server.leave(&self.session);
        if has_not_stopped && left.is_err() {
            server.is_lost(rpc::exited("it did not listen any more"));
            server.end().await;
        }
    }

    /// Handles what an event of the program means.
    fn on_heard(&mut self, heard: Heard) -> Vec<Input> {
        match heard {
            Heard::Event(event) => {
                let is_typing =
                    matches!(event, TurnEvent::Typed { .. } | TurnEvent::Thought { .. });
                let streaming = is_typing.then_some(Input::Streaming);
                return streaming.into_iter().chain([Input::Event(event)]).collect();
            }
            Heard::ListChanged => {
                let params = json!({ "sessionId": self.session });
                self.call("session.plan.readSqlTodos", &params, |talker, told| {
                    talker.tell(News::Listed(told.unwrap_or_default()));
                });
            }
            // Copilot 1.0.102 waits up to two minutes of `retry-after` by itself and does not report it.
            Heard::CallFailed(trouble) => {
                if let Some(summary) = &mut self.summary {
                    summary.trouble = Some(trouble.clone());
                }
                return vec![Input::Trouble(trouble)];
            }
            Heard::Trouble(trouble) => return vec![Input::Trouble(trouble)],
            Heard::Answering => return vec![Input::Recovered],
            Heard::Began => return vec![Input::Began],
            Heard::LeaveWanted { request } => {
                // Whether a tool may be used is decided by the hook before each use.
                let leave = json!({ "kind": "approve-once" });
                let session = &self.session;
                let params = json!({ "sessionId": session, "requestId": request, "result": leave });
                let method = "session.permissions.handlePendingPermissionRequest";
                self.call(method, &params, |_, _| {});
            }
            Heard::Asked { request, questions } => {
                self.open.insert(request.clone(), AskedBy::Tool);
                return vec![Input::Asked { request, questions }];
            }
            Heard::Taken => self.is_accepted = true,
            Heard::Ended(stop) => {
                // Without a login the turn fails before the prompt is accepted.
                let is_over = matches!(stop, Stop::Interrupted | Stop::Failed(_));
                if self.summary.is_none() && (self.is_accepted || is_over) {
                    return vec![Input::Ended(stop)];
                }
            }
        }
        vec![]
    }

    async fn on_lost(&mut self, error: BackendError) -> Vec<Input> {
        self.leave_server();
        // The guard of its processes may be gone as well.
        self.talker.presence.end_shells().await;
        let is_exit = matches!(error, BackendError::Exited { .. });
        let may_resend = self.summary.take().is_none() && is_exit;
        vec![Input::Lost { error, may_resend }]
    }

    fn on_summarised(&mut self, number: u64, made: Result<(), BackendError>) -> Vec<Input> {
        let Some(summary) = self.summary.take_if(|summary| summary.number == number) else {
            return vec![];
        };
        let stop = match (made, summary.trouble) {
            (Ok(()), _) => Stop::Done { text: String::new() },
            // The program's own message does not tell one trouble from another.
            (Err(BackendError::Rejected { .. }), Some(trouble)) => {
                Stop::Failed(trouble.into_error(ID))
            }
            (Err(error), _) => Stop::Failed(error.into()),
        };
        vec![Input::Ended(stop)]
    }

    fn tool_result(&self, request: &str, text: &str) {
        let result = json!({ "textResultForLlm": text, "resultType": "success" });
        let params = json!({ "sessionId": self.session, "requestId": request, "result": result });
        self.call("session.tools.handlePendingToolCall", &params, |_, _| {});
    }

    fn answer_call(&self, id: &Value, answer: &Value) {
        if let Some(server) = &self.server {
            server.rpc.reply(id, answer);
        }
    }
}

impl AgentProgram for CopilotProgram {
    type Message = News;
    type Request = Infallible;

    fn misused(&self, problem: &str) -> BackendError {
        misused(problem)
    }

    async fn connect(&mut self) -> Result<(), BackendError> {
        if self.server.as_ref().is_some_and(|server| server.gone().is_none()) {
            return Ok(());
        }
        self.leave_server();
        let server = self.shared.server(&self.talker.request.marker).await?;
        // Events of the session may arrive before the answer to its creation.
        server.enter(&self.session, &self.talker).await?;
        self.server = Some(server.clone());
        let entered = self.enter_session(&server).await;
        if entered.is_err() {
            server.leave(&self.session);
            self.server = None;
        }
        entered
    }

    async fn prompt(&mut self, prompt: String) -> Vec<TurnEvent> {
        self.talker.presence.goes_on().await;
        self.decoder.begin_turn();
        self.open.clear();
        self.is_accepted = false;
        self.summary = None;
        self.prompt = prompt;
        self.send_prompt();
        vec![]
    }

    fn resend(&mut self) {
        self.send_prompt();
    }

    fn summarise(&mut self) -> Result<(), BackendError> {
        self.decoder.begin_turn();
        self.summaries += 1;
        let number = self.summaries;
        self.summary = Some(Summary { number, trouble: None });
        let params = json!({ "sessionId": self.session });
        self.call("session.history.compact", &params, move |talker, made| {
            let made = made.and_then(|made| match made.get("success").and_then(Value::as_bool) {
                Some(false) => Err(BackendError::Rejected {
                    backend: BackendId::from(ID),
                    message: "the conversation could not be summarised".to_owned(),
                }),
                _ => Ok(()),
            });
            talker.tell(News::Summarised { number, made });
        });
        Ok(())
    }

    /// The program's other conversations cannot wait for this one.
    async fn receive(&mut self, _has_room: bool) -> News {
        match self.news.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    async fn on_message(&mut self, news: News) -> Vec<Input> {
        match news {
            News::Event(event) => {
                let mut inputs = vec![Input::Heard];
                for heard in self.decoder.event(&event) {
                    inputs.extend(self.on_heard(heard));
                }
                inputs
            }
            News::Asked { id, params } => {
                let request = format!("ask-{id}");
                self.open.insert(request.clone(), AskedBy::Call(id));
                vec![Input::Asked { request, questions: vec![question(&params)] }]
            }
            News::NotSent(error @ BackendError::Exited { .. }) => self.on_lost(error).await,
            News::NotSent(error) => vec![Input::Ended(Stop::Failed(error.into()))],
            News::Listed(told) => {
                vec![Input::Event(TurnEvent::Reported(Report::Todos { items: todos(&told) }))]
            }
            News::Summarised { number, made } => self.on_summarised(number, made),
            News::Gone(error) => self.on_lost(error).await,
        }
    }

    fn interrupt(&mut self) {
        if self.summary.is_some() {
            return self.notify("session.history.abortManualCompaction");
        }
        self.talker.presence.stops();
        self.abort();
    }

    /// Leaves the session, which is continued when it is needed. Other conversations of a program that
    /// does not answer at all lose nothing when it is ended.
    async fn abandon(&mut self) {
        self.summary = None;
        if let Some(server) = self.server.take() {
            self.part(&server, true).await;
        }
    }

    fn reply(&mut self, request: &str, answers: &[(Question, Answer)]) {
        match self.open.remove(request) {
            Some(AskedBy::Call(id)) => self.answer_call(&id, &chosen(answers)),
            Some(AskedBy::Tool) => self.tool_result(request, &in_words(answers)),
            None => {}
        }
    }

    fn decline(&mut self, request: &str, _questions: usize) {
        match self.open.remove(request) {
            Some(AskedBy::Call(id)) => self.answer_call(&id, &json!({ "noResponse": true })),
            Some(AskedBy::Tool) => self.tool_result(request, DECLINED),
            None => {}
        }
    }

    /// A background command that ends wakes the agent, though no prompt was sent.
    fn stop_unwanted(&mut self) {
        self.notify("session.abort");
    }

    async fn disconnect(&mut self) {
        if let Some(server) = self.server.take() {
            self.part(&server, false).await;
        }
    }

    fn on_turn_end(&mut self, _end: TurnEnd) {
        // Commands that were left running may wake the agent between two turns.
        self.talker.presence.stops();
    }

    async fn set_model(&mut self, model: String) -> Result<(), BackendError> {
        let Some(server) = &self.server else { return Ok(()) };
        let params = json!({ "sessionId": self.session, "modelId": model });
        server.rpc.call("session.model.switchTo", &params, Some(PATIENCE)).await?;
        self.model = Some(model);
        Ok(())
    }

    async fn close(mut self, was_busy: bool, rests: bool) {
        let presence = &self.talker.presence;
        presence.leaves();
        presence.stops();
        let Some(server) = self.server.take() else {
            // Commands of earlier turns may still run in the background.
            if !rests {
                presence.end_shells().await;
            }
            return;
        };
        let params = json!({ "sessionId": self.session });
        let mut has_not_stopped = false;
        if was_busy {
            let abort = server.rpc.call("session.abort", &params, Some(INTERRUPT_TIMEOUT));
            has_not_stopped = abort.await.is_err();
            if !has_not_stopped {
                presence.end_shells().await;
            }
        }
        // The session is left before the rest is ended: the end of a command would wake the agent.
        self.part(&server, has_not_stopped).await;
        if !rests || has_not_stopped {
            presence.end_shells().await;
        }
    }
}

fn is_unknown(error: &BackendError) -> bool {
    matches!(error, BackendError::Rejected { message, .. } if message.contains("Session not found"))
}

fn gone(session: &str) -> BackendError {
    BackendError::ConversationGone {
        backend: BackendId::from(ID),
        conversation: ConversationId::from(session.to_owned()),
    }
}
