//! One conversation: a task that talks in a session of the program.

use std::sync::{Arc, Weak};
use std::time::Duration;

use atomic_event::{
    Answer, BackendId, Choice, ConversationId, Question, QuestionId, Report, StepError, Stop, Todo,
    TurnEvent, Usage,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::decode::{Decoder, Heard};
use super::server::Lease;
use super::talker::{News, Talker};
use super::{ID, PATIENCE, Shared, launch, misused};
use crate::asking::Asking;
use crate::guard::end_marked;
use crate::outlet::{Outlet, at, deserted, tell};
use crate::trouble::Trouble;
use crate::{BackendError, OpenRequest, Turn};

/// How long an interrupted turn may take to end by itself.
const INTERRUPTED: Duration = Duration::from_secs(2);

/// What the holder of a conversation wants.
pub(super) enum Command {
    Send { prompt: String, reply: oneshot::Sender<Result<Turn, BackendError>> },
    Answer { id: QuestionId, answer: Answer, reply: oneshot::Sender<Result<(), BackendError>> },
    Interrupt { reply: oneshot::Sender<()> },
    Compact { reply: oneshot::Sender<Result<Option<Usage>, StepError>> },
    SetModel { model: String, reply: oneshot::Sender<Result<(), BackendError>> },
    Servers { reply: oneshot::Sender<Result<Value, BackendError>> },
    Close { rests: bool, reply: oneshot::Sender<()> },
}

/// The task that talks.
pub(super) struct Talk {
    shared: Arc<Shared>,
    model: Option<String>,
    session: String,
    talker: Arc<Talker>,
    /// The program, as long as it is there.
    server: Option<Lease>,
    news: mpsc::UnboundedReceiver<News>,
    commands: mpsc::Receiver<Command>,
    decoder: Decoder,
    turn: Option<CurrentTurn>,
    outlet: Option<Outlet>,
    summary: Option<Summary>,
    /// Whether the program may have kept anything of the session.
    is_kept: bool,
}

/// The turn under way.
#[derive(Default)]
struct CurrentTurn {
    /// Questions that are open, with what they are answered under.
    questions: Vec<(Asking, Value)>,
    interrupted: Option<Instant>,
    /// What to report in place of the interruption.
    failure: Option<StepError>,
    /// Why the program tries again, and for how long it may.
    trouble: Option<(Instant, Trouble)>,
    /// The prompt, until anything has been heard since.
    unheard: Option<String>,
}

struct Summary {
    reply: oneshot::Sender<Result<Option<Usage>, StepError>>,
    spent: Option<Usage>,
}

/// What wakes the task up.
enum Woken {
    Command(Option<Command>),
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
    ) -> Result<(mpsc::Sender<Command>, String, Weak<Talker>), BackendError> {
        let session = match &request.resume {
            Some(id) => id.as_str().to_owned(),
            None => uuid::Uuid::new_v4().to_string(),
        };
        if uuid::Uuid::parse_str(&session).is_err() {
            return Err(gone(&session));
        }
        let model = request.model.clone().or_else(|| shared.variable("COPILOT_MODEL"));
        let is_kept = request.resume.is_some();
        let (sender, news) = mpsc::unbounded_channel();
        let talker = Arc::new(Talker::new(request, sender));
        let (commands, orders) = mpsc::channel(8);
        let mut talk = Self {
            shared,
            model,
            session: session.clone(),
            talker: Arc::clone(&talker),
            server: None,
            news,
            commands: orders,
            decoder: Decoder::default(),
            turn: None,
            outlet: None,
            summary: None,
            is_kept,
        };
        talk.awake().await?;
        tokio::spawn(talk.run());
        Ok((commands, session, Arc::downgrade(&talker)))
    }

    /// Makes sure that there is a program that knows the session.
    async fn awake(&mut self) -> Result<(), BackendError> {
        if self.server.as_ref().is_some_and(|server| server.line.gone().is_none()) {
            return Ok(());
        }
        self.server = None;
        let server = self.shared.server(&self.talker.request.marker).await?;
        // Its events may come before the answer does.
        server.enter(&self.session, &self.talker).await?;
        while self.news.try_recv().is_ok() {}
        let known = self.make_known(&server).await;
        if known.is_err() {
            server.leave(&self.session);
        }
        known?;
        self.server = Some(server);
        Ok(())
    }

    async fn make_known(&mut self, server: &Lease) -> Result<(), BackendError> {
        let shared = Arc::clone(&self.shared);
        let provider = launch::provider(&|name| shared.variable(name));
        let request = &self.talker.request;
        let about =
            launch::session(&self.session, request, self.model.as_deref(), provider.as_ref());
        let resumed = if self.is_kept {
            Some(server.rpc.call("session.resume", about.clone(), Some(PATIENCE)).await)
        } else {
            None
        };
        match resumed {
            Some(Ok(_)) => {}
            // It ended before it had kept anything: there is nothing to lose.
            Some(Err(error)) if is_unknown(&error) && request.resume.is_none() => {
                server.rpc.call("session.create", about, Some(PATIENCE)).await?;
            }
            Some(Err(error)) if is_unknown(&error) => return Err(gone(&self.session)),
            Some(Err(error)) => return Err(error),
            None => _ = server.rpc.call("session.create", about, Some(PATIENCE)).await?,
        }
        // It outlives the program, so it is said each time.
        let mode = json!({ "sessionId": self.session, "mode": "allow-all" });
        server.rpc.call("session.permissions.setMode", mode, Some(PATIENCE)).await?;
        Ok(())
    }

    /// Talks until the conversation is closed or nobody holds it any more.
    async fn run(mut self) {
        loop {
            match self.woken().await {
                Woken::Command(None) => return self.end(false).await,
                Woken::Command(Some(Command::Close { rests, reply })) => {
                    self.end(rests).await;
                    let _ = reply.send(());
                    return;
                }
                Woken::Command(Some(command)) => self.obey(command).await,
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
            .and_then(|turn| turn.interrupted.or(turn.trouble.as_ref().map(|(until, _)| *until)));
        let listener = self.outlet.as_ref().map(Outlet::listener);
        tokio::select! {
            biased;
            command = self.commands.recv() => Woken::Command(command),
            () = deserted(listener) => Woken::NobodyListens,
            () = tell(&mut self.outlet) => Woken::Told,
            news = self.news.recv() => Woken::News(news),
            () = at(deadline) => Woken::TimeUp,
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Send { prompt, reply } => {
                let sent = self.send(prompt).await;
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
            Command::Compact { reply } => self.compact(reply).await,
            Command::SetModel { model, reply } => {
                let set = self.set_model(model).await;
                let _ = reply.send(set);
            }
            Command::Servers { reply } => {
                let told = self.servers().await;
                let _ = reply.send(told);
            }
            Command::Close { reply, .. } => {
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
        let Some((outlet, turn)) = Outlet::open() else {
            return Err(misused("there is no room for the turn's events"));
        };
        self.decoder.begin_turn();
        self.talker.goes_on();
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
        self.call("session.send", message, |talker, sent| {
            if let Err(error) = sent {
                talker.tell(News::NotSent(error));
            }
        });
    }

    /// Calls a method without waiting; calls get there in the order in which they are made.
    fn call(
        &self,
        method: &'static str,
        params: Value,
        then: impl FnOnce(&Talker, Result<Value, BackendError>) + Send + 'static,
    ) {
        let Some(server) = &self.server else { return };
        let (server, talker) = (server.again(), Arc::clone(&self.talker));
        tokio::spawn(async move {
            let answer = server.rpc.call(method, params, None).await;
            then(&talker, answer);
        });
    }

    fn answer(&mut self, id: &QuestionId, answer: &Answer) -> Result<(), BackendError> {
        let mut questions = self.turn.iter_mut().flat_map(|turn| turn.questions.iter_mut());
        let open = questions
            .find_map(|(asking, under)| asking.answer(id, answer).then_some((asking, under)));
        let Some((asking, under)) = open else {
            return Err(misused(&format!("the question {id} is not open")));
        };
        let Some(answers) = asking.answered() else { return Ok(()) };
        let is_offered = answers.iter().all(|(question, answer)| {
            let labels = question.options.iter().map(|choice| &choice.label);
            answer.chosen.iter().all(|chosen| labels.clone().any(|label| label == chosen))
        });
        let text: Vec<String> = answers.iter().map(|(_, answer)| answer.text()).collect();
        let reply = json!({ "answer": text.join("\n"), "wasFreeform": !is_offered });
        let (under, request) = (under.clone(), asking.request.clone());
        if let Some(server) = &self.server {
            server.rpc.reply(&under, &reply);
        }
        if let Some(turn) = &mut self.turn {
            turn.questions.retain(|(asking, _)| asking.request != request);
        }
        Ok(())
    }

    async fn set_model(&mut self, model: String) -> Result<(), BackendError> {
        self.awake().await?;
        let Some(server) = &self.server else { return Ok(()) };
        let params = json!({ "sessionId": self.session, "modelId": model });
        server.rpc.call("session.model.switchTo", params, Some(PATIENCE)).await?;
        self.model = Some(model);
        Ok(())
    }

    async fn servers(&mut self) -> Result<Value, BackendError> {
        self.awake().await?;
        let Some(server) = &self.server else { return Ok(Value::Null) };
        let params = json!({ "sessionId": self.session });
        server.rpc.call("session.mcp.list", params, Some(PATIENCE)).await
    }

    /// Lets the program summarise the conversation.
    async fn compact(&mut self, reply: oneshot::Sender<Result<Option<Usage>, StepError>>) {
        let ready = if self.is_busy() {
            Err(misused("a turn is under way; wait for its end"))
        } else {
            self.awake().await
        };
        if let Err(error) = ready {
            let _ = reply.send(Err(error.into()));
            return;
        }
        self.decoder.begin_turn();
        self.summary = Some(Summary { reply, spent: None });
        let params = json!({ "sessionId": self.session });
        self.call("session.history.compact", params, |talker, made| {
            talker.tell(News::Summarised(made.map(drop)));
        });
    }

    /// Interrupts the turn; it has a moment to end by itself.
    fn interrupt(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        if turn.interrupted.is_some() {
            return;
        }
        turn.interrupted = Some(Instant::now() + INTERRUPTED);
        turn.questions.clear();
        self.talker.stops();
        self.stop_it();
    }

    /// Tells the program to stop, and ends what its shells are running.
    fn stop_it(&self) {
        self.call("session.abort", json!({ "sessionId": self.session }), |_, _| {});
        if self.talker.has_shell() {
            let marker = self.talker.request.marker.clone();
            tokio::task::spawn_blocking(move || end_marked(&marker));
        }
    }

    async fn time_up(&mut self) {
        let now = Instant::now();
        let Some(turn) = &mut self.turn else { return };
        if turn.interrupted.is_some_and(|until| until <= now) {
            self.give_up().await;
        } else if let Some((_, trouble)) = turn.trouble.take_if(|(until, _)| *until <= now) {
            turn.failure = Some(trouble.into_error(ID));
            self.interrupt();
        }
    }

    /// The program does not stop. The session is left, and continued when it is needed; if the
    /// program does not answer at all, it is ended, and others on it are no worse off than they were.
    async fn give_up(&mut self) {
        self.finish(Stop::Interrupted);
        let Some(server) = self.server.take() else { return };
        let left = json!({ "sessionId": self.session });
        let left = server.rpc.call("session.destroy", left, Some(INTERRUPTED)).await;
        server.leave(&self.session);
        if left.is_err() {
            server.line.is_lost(super::rpc::exited("it did not listen any more"));
            server.line.end().await;
        }
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
            News::Asked { id, params } => self.ask(id, &params),
            News::NotSent(error @ BackendError::Exited { .. }) => self.lost(error).await,
            News::NotSent(error) => self.finish(Stop::Failed(error.into())),
            News::Listed(told) => {
                let items = todos(&told);
                self.tell(TurnEvent::Reported(Report::Todos { items }));
            }
            News::Summarised(made) => {
                if let Some(summary) = self.summary.take() {
                    let _ = summary.reply.send(made.map(|()| summary.spent).map_err(Into::into));
                }
            }
            News::Gone(error) => {
                if let Some(summary) = self.summary.take() {
                    let _ = summary.reply.send(Err(error.clone().into()));
                }
                self.lost(error).await;
            }
        }
    }

    /// The program is gone. A prompt that it has done nothing for is sent again, once, to another.
    async fn lost(&mut self, error: BackendError) {
        self.server = None;
        let unheard = self.turn.as_mut().filter(|turn| turn.interrupted.is_none());
        let unheard = unheard.and_then(|turn| turn.unheard.take());
        let is_exit = matches!(error, BackendError::Exited { .. });
        let error = match unheard.filter(|_| is_exit) {
            Some(prompt) => match self.awake().await {
                Ok(()) => return self.prompt(&prompt),
                Err(error) => error,
            },
            None => error,
        };
        self.finish(Stop::Failed(error.into()));
    }

    /// Does what an event asks for.
    fn serve(&mut self, heard: Heard) {
        match heard {
            Heard::Event(event) => self.tell(event),
            Heard::ListChanged => {
                let params = json!({ "sessionId": self.session });
                self.call("session.plan.readSqlTodos", params, |talker, told| {
                    talker.tell(News::Listed(told.unwrap_or_default()));
                });
            }
            Heard::Trouble(trouble) => self.trouble(trouble),
            Heard::Answering => {
                if let Some(turn) = &mut self.turn {
                    turn.trouble = None;
                }
            }
            Heard::Began => {
                // It may have been told to stop before it had begun.
                if self.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some()) {
                    self.stop_it();
                }
            }
            Heard::Ended(stop) => self.finish(stop),
        }
    }

    fn tell(&mut self, event: TurnEvent) {
        if let (Some(summary), TurnEvent::Reported(Report::Spent(usage))) =
            (&mut self.summary, &event)
        {
            let sum = summary.spent.get_or_insert_default();
            sum.input_tokens = sum.input_tokens.saturating_add(usage.input_tokens);
            sum.output_tokens = sum.output_tokens.saturating_add(usage.output_tokens);
        }
        if let Some(outlet) = &mut self.outlet {
            outlet.push(event);
        }
    }

    /// The program tries again. It may do so for a while from the first time on.
    fn trouble(&mut self, trouble: Trouble) {
        let Some(turn) = &mut self.turn else { return };
        let mut until = Instant::now() + trouble.kind.patience(self.shared.config.retry_window);
        if let Some((before, _)) = &turn.trouble {
            until = until.min(*before);
        }
        turn.trouble = Some((until, trouble));
    }

    fn ask(&mut self, id: Value, params: &Value) {
        let allowed = self.talker.request.questions;
        match &mut self.turn {
            Some(turn) if allowed && turn.interrupted.is_none() => {
                let asking = Asking::new(format!("ask-{id}"), vec![question(params)]);
                if let Some(outlet) = &mut self.outlet {
                    asking.events().for_each(|event| outlet.push(event));
                }
                turn.questions.push((asking, id));
            }
            _ => {
                if let Some(server) = &self.server {
                    server.rpc.reply(&id, &json!({ "noResponse": true }));
                }
            }
        }
    }

    /// The turn is over. Its end is the last event.
    fn finish(&mut self, stop: Stop) {
        let Some(mut turn) = self.turn.take() else { return };
        let stop = match (stop, turn.failure.take()) {
            (Stop::Interrupted | Stop::Failed(_), Some(failure)) => Stop::Failed(failure),
            (Stop::Failed(_), None) if turn.interrupted.is_some() => Stop::Interrupted,
            (stop, _) => stop,
        };
        if let Some(outlet) = &mut self.outlet {
            outlet.end(stop);
        }
    }

    /// Leaves the session. When it returns, nothing is left of the turn that was under way.
    async fn end(mut self, rests: bool) {
        self.talker.leaves();
        let was_busy = self.turn.take().is_some() || self.summary.is_some();
        if let Some(server) = self.server.take() {
            let params = json!({ "sessionId": self.session });
            if was_busy {
                self.talker.stops();
                let abort = server.rpc.call("session.abort", params.clone(), None);
                let _ = timeout(INTERRUPTED, abort).await;
            }
            if !rests && self.talker.has_shell() {
                let marker = self.talker.request.marker.clone();
                let _ = tokio::task::spawn_blocking(move || end_marked(&marker)).await;
            }
            let left = server.rpc.call("session.destroy", params, None);
            let _ = timeout(INTERRUPTED, left).await;
            server.leave(&self.session);
        }
        if let Some(outlet) = self.outlet.take() {
            outlet.close(Stop::Interrupted);
        }
    }
}

fn question(params: &Value) -> Question {
    let text = params.get("question").and_then(Value::as_str).unwrap_or_default();
    let choices = params.get("choices").and_then(Value::as_array).into_iter().flatten();
    let choice = |choice: &Value| Choice {
        label: choice.as_str().unwrap_or_default().to_owned(),
        description: String::new(),
    };
    Question {
        question: text.to_owned(),
        header: String::new(),
        options: choices.map(choice).collect(),
        multi_select: false,
        free_text: params.get("allowFreeform").and_then(Value::as_bool).unwrap_or(true),
    }
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
    matches!(error, BackendError::Rejected { message, .. } if message.contains("not found"))
}

fn gone(session: &str) -> BackendError {
    BackendError::ConversationGone {
        backend: BackendId::from(ID),
        conversation: ConversationId::from(session.to_owned()),
    }
}
