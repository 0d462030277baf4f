//! One conversation: a task that talks in a session of the program.

mod ending;
mod questions;
mod summary;

use std::sync::Arc;

use atomic_event::{BackendId, ConversationId, Report, StepError, Stop, Todo, TurnEvent};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::decode::{Decoder, Heard};
use super::server::Server;
use super::talker::{News, Talker};
use super::{ID, PATIENCE, Shared, misused};
use crate::outlet::{Outlet, at, deserted, tell};
use crate::serving::{Held, Lease, Presence, Wish};
use crate::trouble::Trouble;
use crate::{BackendError, OpenRequest, Turn};
use questions::Open;
use summary::Summary;

/// The task that talks.
pub(super) struct Talk {
    shared: Arc<Shared>,
    model: Option<String>,
    session: String,
    talker: Arc<Talker>,
    /// The program, as long as it is there.
    server: Option<Lease<Server>>,
    news: mpsc::UnboundedReceiver<News>,
    wishes: mpsc::Receiver<Wish>,
    decoder: Decoder,
    turn: Option<CurrentTurn>,
    outlet: Option<Outlet>,
    summary: Option<Summary>,
    /// How many summaries were wanted.
    summaries: u64,
    /// What was spent since the last turn; the next one tells.
    owed: Vec<TurnEvent>,
    /// Whether the program may have kept anything of the session.
    is_kept: bool,
}

/// The turn under way.
#[derive(Default)]
struct CurrentTurn {
    /// Questions that are open.
    questions: Vec<Open>,
    /// By when it has to end, when it was interrupted.
    interrupted: Option<Instant>,
    /// What to report in place of the interruption.
    failure: Option<StepError>,
    /// Why the program tries again, and for how long it may.
    trouble: Option<(Instant, Trouble)>,
    /// The prompt, until anything has been heard since.
    unheard: Option<String>,
    /// Whether the program has taken the prompt: what it says to be over before is another turn.
    is_taken: bool,
    /// Whether an answer is coming, so that there is no trouble for now.
    is_typing: bool,
}

impl CurrentTurn {
    /// By when something has to be done about it.
    fn deadline(&self) -> Option<Instant> {
        let trouble = self.trouble.as_ref().filter(|_| !self.is_typing);
        self.interrupted.or(trouble.map(|(until, _)| *until))
    }
}

/// What wakes the task up.
enum Woken {
    Wish(Option<Wish>),
    News(Option<News>),
    Told,
    NobodyListens,
    TimeUp,
}

impl Talk {
    /// Makes a session, or continues one, and starts the task that talks there.
    pub(super) async fn start(
        shared: Arc<Shared>,
        request: OpenRequest,
    ) -> Result<Held, BackendError> {
        let session = match &request.resume {
            Some(id) => id.as_str().to_owned(),
            None => uuid::Uuid::new_v4().to_string(),
        };
        if uuid::Uuid::parse_str(&session).is_err() {
            return Err(gone(&session));
        }
        let model = request.model.clone();
        let is_kept = request.resume.is_some();
        let presence = Arc::new(Presence::new(&request.marker));
        let (talker, news) = Talker::new(request, Arc::clone(&presence));
        let (wishes, orders) = mpsc::channel(8);
        let mut talk = Self {
            shared,
            model,
            session: session.clone(),
            talker,
            server: None,
            news,
            wishes: orders,
            decoder: Decoder::default(),
            turn: None,
            outlet: None,
            summary: None,
            summaries: 0,
            owed: vec![],
            is_kept,
        };
        let held = Held::new(session, ID, wishes, presence);
        let (told, opened) = oneshot::channel();
        // In a task of its own: what is begun is ended in good order, even if nobody waits for it.
        tokio::spawn(async move {
            let awake = talk.awake().await;
            let is_awake = awake.is_ok();
            let _ = told.send(awake);
            if is_awake {
                talk.run().await;
            }
        });
        opened.await.map_err(|_| misused("the conversation has ended"))??;
        Ok(held)
    }

    /// Makes sure that there is a program that knows the session.
    async fn awake(&mut self) -> Result<(), BackendError> {
        if self.server.as_ref().is_some_and(|server| server.gone().is_none()) {
            return Ok(());
        }
        self.leave_server();
        let server = self.shared.server(&self.talker.request.marker).await?;
        // Its events may come before the answer does.
        server.enter(&self.session, &self.talker).await?;
        let known = self.make_known(&server).await;
        if known.is_err() {
            server.leave(&self.session);
        }
        known?;
        self.server = Some(server);
        Ok(())
    }

    async fn make_known(&mut self, server: &Server) -> Result<(), BackendError> {
        let request = &self.talker.request;
        let about = self.shared.about(&self.session, request, self.model.as_deref())?;
        let resumed = if self.is_kept {
            Some(server.rpc.call("session.resume", &about, Some(PATIENCE)).await)
        } else {
            None
        };
        match resumed {
            Some(Ok(_)) => {}
            // It ended before it had kept anything: there is nothing to lose.
            Some(Err(error)) if is_unknown(&error) && request.resume.is_none() => {
                server.rpc.call("session.create", &about, Some(PATIENCE)).await?;
            }
            Some(Err(error)) if is_unknown(&error) => return Err(gone(&self.session)),
            Some(Err(error)) => return Err(error),
            None => _ = server.rpc.call("session.create", &about, Some(PATIENCE)).await?,
        }
        // It outlives the program, so it is said each time.
        let mode = json!({ "sessionId": self.session, "mode": "allow-all" });
        server.rpc.call("session.permissions.setMode", &mode, Some(PATIENCE)).await?;
        Ok(())
    }

    /// Talks until the conversation is closed or nobody holds it any more.
    async fn run(mut self) {
        loop {
            match self.woken().await {
                Woken::Wish(None) => return self.end(false).await,
                Woken::Wish(Some(Wish::Close { rests, reply })) => {
                    self.end(rests).await;
                    let _ = reply.send(());
                    return;
                }
                Woken::Wish(Some(wish)) => self.obey(wish).await,
                Woken::News(Some(news)) => self.hear(news).await,
                Woken::News(None) | Woken::Told => {}
                Woken::NobodyListens => {
                    self.outlet = None;
                    self.interrupt();
                }
                Woken::TimeUp => self.time_up().await,
            }
        }
    }

    async fn woken(&mut self) -> Woken {
        let turn = self.turn.as_ref();
        let deadline = turn
            .and_then(CurrentTurn::deadline)
            .or(self.summary.as_ref().and_then(Summary::deadline));
        let listener = self.outlet.as_ref().map(Outlet::listener);
        tokio::select! {
            biased;
            wish = self.wishes.recv() => Woken::Wish(wish),
            () = deserted(listener) => Woken::NobodyListens,
            () = tell(&mut self.outlet) => Woken::Told,
            news = self.news.recv() => Woken::News(news),
            () = at(deadline) => Woken::TimeUp,
        }
    }

    async fn obey(&mut self, wish: Wish) {
        match wish {
            Wish::Send { prompt, reply } => {
                let sent = self.send(prompt).await;
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
            Wish::SetModel { model, reply } => {
                let set = self.set_model(model).await;
                let _ = reply.send(set);
            }
            Wish::Close { reply, .. } => {
                let _ = reply.send(());
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.turn.is_some() || self.outlet.is_some() || self.summary.is_some()
    }

    async fn send(&mut self, prompt: String) -> Result<Turn, BackendError> {
        if self.is_busy() {
            return Err(misused("a turn is under way; wait for its end"));
        }
        self.awake().await?;
        self.talker.presence.goes_on().await;
        let Some((mut outlet, turn)) = Outlet::open() else {
            return Err(misused("there is no room for the turn's events"));
        };
        self.decoder.begin_turn();
        self.owed.drain(..).for_each(|event| outlet.push(event));
        self.outlet = Some(outlet);
        self.turn = Some(CurrentTurn { unheard: Some(prompt.clone()), ..CurrentTurn::default() });
        self.prompt(&prompt);
        Ok(turn)
    }

    fn prompt(&mut self, prompt: &str) {
        self.is_kept = true;
        let mut message = json!({ "sessionId": self.session, "prompt": prompt, "mode": "enqueue" });
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

    /// Calls a method without waiting; calls get there in the order in which they are made.
    fn call(
        &self,
        method: &'static str,
        params: &Value,
        then: impl FnOnce(&Talker, Result<Value, BackendError>) + Send + 'static,
    ) {
        let Some(server) = &self.server else { return };
        let (call, talker) = (server.rpc.begin(method, params), Arc::clone(&self.talker));
        let lease = server.clone();
        // Nothing else takes long; a call that is never answered must not keep the program.
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

    async fn set_model(&mut self, model: String) -> Result<(), BackendError> {
        self.awake().await?;
        let Some(server) = &self.server else { return Ok(()) };
        let params = json!({ "sessionId": self.session, "modelId": model });
        server.rpc.call("session.model.switchTo", &params, Some(PATIENCE)).await?;
        self.model = Some(model);
        Ok(())
    }

    async fn hear(&mut self, news: News) {
        match news {
            News::Event(event) => {
                if let Some(turn) = &mut self.turn {
                    turn.unheard = None;
                }
                for heard in self.decoder.event(&event) {
                    self.serve(heard);
                }
            }
            News::Asked { id, params } => self.asked(id, &params),
            News::NotSent(error @ BackendError::Exited { .. }) => self.lost(error).await,
            News::NotSent(error) => self.finish(Stop::Failed(error.into())),
            News::Listed(told) => {
                let items = todos(&told);
                self.tell(TurnEvent::Reported(Report::Todos { items }));
            }
            News::Summarised { number, made } => {
                if let Some(summary) = self.summary.take_if(|summary| summary.number == number) {
                    summary.end(made);
                }
            }
            News::Gone(error) => self.lost(error).await,
        }
    }

    /// Does what an event asks for.
    fn serve(&mut self, heard: Heard) {
        match heard {
            Heard::Event(event) => self.tell(event),
            Heard::ListChanged => {
                let params = json!({ "sessionId": self.session });
                self.call("session.plan.readSqlTodos", &params, |talker, told| {
                    talker.tell(News::Listed(told.unwrap_or_default()));
                });
            }
            Heard::CallFailed(trouble) => {
                let until = self.patience(&trouble);
                if let Some(summary) = &mut self.summary {
                    note(&mut summary.trouble, until, trouble);
                } else if is_far(&trouble, until) {
                    self.tries_again(trouble, until);
                }
            }
            Heard::Trouble(trouble) => {
                let until = self.patience(&trouble);
                self.tries_again(trouble, until);
            }
            Heard::Answering => {
                if let Some(turn) = &mut self.turn {
                    turn.trouble = None;
                }
            }
            Heard::Began => match &self.turn {
                // It may have been told to stop before it had begun.
                Some(turn) if turn.interrupted.is_some() => self.stop_it(),
                // Something that it had left running has ended and woken it; nobody wants that.
                None if self.summary.is_none() => {
                    self.call("session.abort", &json!({ "sessionId": self.session }), |_, _| {});
                }
                _ => {}
            },
            Heard::LeaveWanted { request } => {
                // Tools are not asked about; whether it may be used at all is decided besides.
                let leave = json!({ "kind": "approve-once" });
                let session = &self.session;
                let params = json!({ "sessionId": session, "requestId": request, "result": leave });
                let method = "session.permissions.handlePendingPermissionRequest";
                self.call(method, &params, |_, _| {});
            }
            Heard::Asked { request, questions } => self.ask(Open::tool(request, questions)),
            Heard::Taken => {
                if let Some(turn) = &mut self.turn {
                    turn.is_taken = true;
                }
            }
            Heard::Ended(stop) => {
                // Without a login it fails before the prompt is taken.
                let is_over = matches!(stop, Stop::Interrupted | Stop::Failed(_));
                if self.turn.as_ref().is_some_and(|turn| turn.is_taken || is_over) {
                    self.finish(stop);
                }
            }
        }
    }

    fn tell(&mut self, event: TurnEvent) {
        if let (Some(turn), TurnEvent::Typed { .. } | TurnEvent::Thought { .. }) =
            (&mut self.turn, &event)
        {
            turn.is_typing = true;
        }
        if self.turn.is_none()
            && self.summary.is_none()
            && matches!(event, TurnEvent::Reported(Report::Spent(_)))
        {
            self.owed.push(event);
            return;
        }
        if let (Some(summary), TurnEvent::Reported(Report::Spent(usage))) =
            (&mut self.summary, &event)
        {
            let money = |one: Option<f64>, other: Option<f64>| {
                [one, other].into_iter().flatten().reduce(|one, other| one + other)
            };
            let sum = summary.spent.get_or_insert_default();
            sum.input_tokens = sum.input_tokens.saturating_add(usage.input_tokens);
            sum.output_tokens = sum.output_tokens.saturating_add(usage.output_tokens);
            sum.cost_usd = money(sum.cost_usd, usage.cost_usd);
            sum.estimated_usd = money(sum.estimated_usd, usage.estimated_usd);
        }
        if let Some(outlet) = &mut self.outlet {
            outlet.push(event);
        }
    }

    /// The program tries again. It may do so until then, unless its next try is too far away.
    fn tries_again(&mut self, trouble: Trouble, until: Instant) {
        let Some(turn) = &mut self.turn else { return };
        turn.is_typing = false;
        let until = if is_far(&trouble, until) { Instant::now() } else { until };
        note(&mut turn.trouble, until, trouble);
    }

    /// Until when the program may try again.
    fn patience(&self, trouble: &Trouble) -> Instant {
        Instant::now() + trouble.kind.patience(self.shared.config.patience)
    }
}

fn is_far(trouble: &Trouble, until: Instant) -> bool {
    trouble.is_far(until.saturating_duration_since(Instant::now()))
}

/// The program tries again. It may do so for a while from the first time on.
fn note(known: &mut Option<(Instant, Trouble)>, until: Instant, trouble: Trouble) {
    let until = known.as_ref().map_or(until, |(before, _)| until.min(*before));
    *known = Some((until, trouble));
}

/// The agent's own list, which it keeps in a table.
fn todos(told: &Value) -> Vec<Todo> {
    let rows = told.get("rows").and_then(Value::as_array).into_iter().flatten();
    let text = |row: &Value, key: &str| {
        row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let todo = |row: &Value| {
        let status = match text(row, "status").as_str() {
            "done" => "completed".to_owned(),
            other => other.to_owned(),
        };
        Todo { content: text(row, "title"), status }
    };
    rows.map(todo).collect()
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
