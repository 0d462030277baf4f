//! One conversation: a task that talks in a session of the server.

mod ending;
mod errands;
mod session;
mod summary;
mod turn;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atomic_event::{Answer, BackendId, Question, QuestionId, Report, Stop, TurnEvent};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::catalogue::Facts;
use super::decode::{Decoder, Heard, Verdict};
use super::failures::broken_off;
use super::launch::{NOBODY, PERSONA, Setup};
use super::server::Server;
use super::talker::{News, Talker};
use super::wire::{Model, Prompt, PromptPart};
use super::{ID, Shared, misused, model_named};
use crate::asking::Asking;
use crate::outlet::{Outlet, at, deserted, tell};
use crate::serving::{Held, Lease, Presence, Wish};
use crate::trouble::{Trouble, now_ms};
use crate::{BackendError, OpenRequest, Turn};
use errands::{Errand, Errands};
use session::{known, made, servers};
use summary::Summary;
use turn::{CurrentTurn, Standing, Trial, answered, message_id, nobody_to_ask};

/// How long something may still be said after the program has nothing more to do.
const SETTLED: Duration = Duration::from_millis(300);

/// How often a turn may be found not to have begun before it counts as over: some ten seconds.
const LOOKS: u32 = 30;

/// The task that talks.
pub(super) struct Talk {
    shared: Arc<Shared>,
    setup: Setup,
    model: Model,
    session: String,
    talker: Arc<Talker>,
    /// Where it talks, as long as that is there.
    server: Option<(Lease<Server>, Errands)>,
    news: mpsc::UnboundedReceiver<News>,
    wishes: mpsc::Receiver<Wish>,
    decoder: Decoder,
    turn: Option<CurrentTurn>,
    outlet: Option<Outlet>,
    summary: Option<Summary>,
    standing: Standing,
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
    /// Makes a session, or finds the one to go on with, and starts the task that talks there.
    pub(super) async fn start(
        shared: Arc<Shared>,
        setup: Setup,
        model: Model,
        request: OpenRequest,
    ) -> Result<Held, BackendError> {
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
        let (talker, news) = Talker::new(request, mcp, Arc::clone(&presence));
        server.enter(&session, &talker).await?;
        let (wishes, orders) = mpsc::channel(8);
        let mut decoder = Decoder::new(&session);
        facts.tell(&mut decoder);
        let mut talk = Self {
            shared,
            setup,
            model,
            session: session.clone(),
            talker: Arc::clone(&talker),
            server: None,
            news,
            wishes: orders,
            decoder,
            turn: None,
            outlet: None,
            summary: None,
            standing: Standing {
                may_be_busy: talker.request.resume.is_some(),
                ..Standing::default()
            },
        };
        talk.settle_in(server);
        tokio::spawn(talk.run());
        Ok(Held::new(session, ID, wishes, presence))
    }

    fn settle_in(&mut self, server: Lease<Server>) {
        let errands = Errands::start(&server, &self.session, &self.talker);
        self.server = Some((server, errands));
    }

    fn folder(&self) -> PathBuf {
        self.talker.request.workspace.clone()
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
                Woken::TimeUp => self.time_up(),
            }
        }
    }

    async fn woken(&mut self) -> Woken {
        let deadline = self.deadline();
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

    fn deadline(&self) -> Option<Instant> {
        let turn = self.turn.as_ref().and_then(CurrentTurn::deadline);
        let summary = self.summary.as_ref().and_then(|summary| summary.until);
        let trial = self.standing.trial.as_ref().map(|trial| trial.until);
        turn.into_iter().chain(summary).chain(trial).min()
    }

    async fn obey(&mut self, wish: Wish) {
        match wish {
            Wish::Send { prompt, reply } => {
                let sent = self.send(&prompt).await;
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
                let set = self.set_model(&model).await;
                let _ = reply.send(set);
            }
            Wish::Close { reply, .. } => {
                let _ = reply.send(());
            }
        }
    }

    /// Makes sure that there is a server: it may have ended since it was last needed.
    async fn awake(&mut self) -> Result<(), BackendError> {
        if self.server.as_ref().is_some_and(|(server, _)| server.gone().is_none()) {
            return Ok(());
        }
        self.leave_server();
        let server = self.shared.server(&self.setup, &self.talker.request.marker).await?;
        known(&server, &self.session, &self.folder()).await?;
        server.enter(&self.session, &self.talker).await?;
        self.settle_in(server);
        Ok(())
    }

    fn is_busy(&self) -> bool {
        self.turn.is_some() || self.outlet.is_some() || self.summary.is_some()
    }

    async fn send(&mut self, prompt: &str) -> Result<Turn, BackendError> {
        if self.is_busy() {
            return Err(misused("a turn is under way; wait for its end"));
        }
        self.awake().await?;
        self.talker.presence.goes_on().await;
        self.forget_summary();
        let Some((outlet, turn)) = Outlet::open() else {
            return Err(misused("there is no room for the turn's events"));
        };
        let request = &self.talker.request;
        let message = message_id();
        let body = Prompt {
            message: message.clone(),
            parts: [PromptPart { r#type: "text", text: prompt }],
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
        self.outlet = Some(outlet);
        self.turn = Some(CurrentTurn { unheard: Some(body.clone()), ..CurrentTurn::default() });
        let is_busy = std::mem::take(&mut self.standing.may_be_busy);
        self.errand(Errand::Prompt { body, is_busy });
        Ok(turn)
    }

    fn errand(&self, errand: Errand) {
        if let Some((_, errands)) = &self.server {
            errands.run(errand);
        }
    }

    fn answer(&mut self, id: &QuestionId, answer: &Answer) -> Result<(), BackendError> {
        let mut questions = self.turn.iter_mut().flat_map(|turn| turn.questions.iter_mut());
        let Some(asking) = questions.find_map(|asking| asking.answer(id, answer).then_some(asking))
        else {
            return Err(misused(&format!("the question {id} is not open")));
        };
        let Some(answers) = answered(asking) else { return Ok(()) };
        let request = asking.request.clone();
        if let Some(turn) = &mut self.turn {
            turn.questions.retain(|asking| asking.request != request);
        }
        self.errand(Errand::Answer { request, answers });
        Ok(())
    }

    async fn set_model(&mut self, model: &str) -> Result<(), BackendError> {
        let model = model_named(model)?;
        self.awake().await?;
        // A provider that nobody has asked for yet needs another server.
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

    async fn move_to(&mut self, server: Lease<Server>) -> Result<(), BackendError> {
        self.leave_server();
        server.enter(&self.session, &self.talker).await?;
        self.settle_in(server);
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
            News::Resync => self.errand(Errand::Resync { since: self.decoder.prompt().to_owned() }),
            // What is about an earlier turn comes too late.
            News::Looked { prompt, .. } | News::NotSent { prompt, .. }
                if prompt != self.decoder.prompt() => {}
            News::Looked { is_idle: true, .. } if self.waits_for_its_beginning() => {}
            News::Looked { is_idle, .. } => {
                if let (true, Verdict::Over(stop)) = (is_idle, self.decoder.verdict(true)) {
                    self.finish(stop);
                }
            }
            News::NotSent { error, .. } => self.not_sent(error).await,
            News::Summarised { since, result } => {
                // One that was given up before may come to its end only now.
                let is_this = self.standing.unmade.as_ref() == Some(&since);
                if let Some(summary) = self.summary.as_mut().filter(|_| is_this) {
                    summary.is_made(result, SETTLED);
                }
            }
            News::Garbled(line) => {
                let error = BackendError::Garbled { backend: BackendId::from(ID), line };
                self.leave_server();
                self.talker.presence.end_shells().await;
                self.finish(Stop::Failed(error.into()));
            }
            News::Gone(error) => self.lost(error).await,
        }
    }

    /// Does what an event asks for.
    fn serve(&mut self, heard: Heard) {
        match heard {
            Heard::Event(event) => self.tell(event),
            Heard::Asked { request, questions } => self.ask(request, questions),
            Heard::LeaveWanted { request } => self.errand(Errand::Allow { request }),
            Heard::Trouble(trouble) => self.trouble(trouble),
            Heard::Answering => self.standing.trial = None,
            Heard::BrokenOff => self.stop_because(broken_off().into()),
            Heard::Busy => self.is_not_idle(),
            Heard::Began => {
                self.is_not_idle();
                // It may have been told to stop before it had begun.
                if self.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some()) {
                    self.stop_it();
                }
            }
            Heard::Idle => self.idle(),
        }
    }

    fn tell(&mut self, event: TurnEvent) {
        if let (Some(summary), TurnEvent::Reported(Report::Spent(usage))) =
            (&mut self.summary, &event)
        {
            summary.add(usage);
        }
        if let Some(outlet) = &mut self.outlet {
            outlet.push(event);
        }
    }

    /// If it was idle before, that was the end of something else.
    fn is_not_idle(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.settling = None;
            turn.has_begun = true;
        }
    }

    /// Whether the turn may only not have begun yet: the program takes a prompt before it does
    /// anything for it, and what it then says to be over is the turn before.
    fn waits_for_its_beginning(&mut self) -> bool {
        let has_failed = self.decoder.failure().is_some();
        let Some(turn) = &mut self.turn else { return false };
        if turn.has_begun || has_failed || turn.interrupted.is_some() || turn.looks >= LOOKS {
            return false;
        }
        turn.looks += 1;
        turn.settling = Some(Instant::now() + SETTLED);
        true
    }

    /// The program has nothing more to do, or says so.
    fn idle(&mut self) {
        if let Some(summary) = self.summary.take_if(|summary| summary.is_done()) {
            self.summarised(summary);
        }
        let Some(turn) = &mut self.turn else { return };
        match self.decoder.verdict(false) {
            Verdict::Over(stop) => self.finish(stop),
            Verdict::Unsettled => turn.settling = Some(Instant::now() + SETTLED),
        }
    }

    /// The program tries again. It may do so for a while from the first time on, unless the next time
    /// is too far away anyhow.
    fn trouble(&mut self, trouble: Trouble) {
        let is_stopped = self.turn.as_ref().is_some_and(|turn| turn.interrupted.is_some());
        if is_stopped || !self.is_busy() {
            return;
        }
        let now = Instant::now();
        let patience = trouble.kind.patience(self.shared.config.patience);
        let mut until = now + patience;
        if let Some(before) = &self.standing.trial {
            until = until.min(before.until);
        }
        let wait = trouble.outage.retry_at_ms.map_or(0, |next| next.saturating_sub(now_ms()));
        let next = Duration::from_millis(u64::try_from(wait).unwrap_or(0));
        if trouble.is_far(patience) || until.duration_since(now) < next {
            self.stop_because(trouble.into_error(ID));
        } else {
            self.standing.trial = Some(Trial { until, trouble });
        }
    }

    fn ask(&mut self, request: String, questions: Vec<Question>) {
        let asking = Asking::new(request, questions);
        let allowed = self.talker.request.questions && !asking.questions.is_empty();
        match &mut self.turn {
            Some(turn) if turn.knows(&asking.request) => {}
            Some(turn) if allowed && turn.interrupted.is_none() => {
                if let Some(outlet) = &mut self.outlet {
                    asking.events().for_each(|event| outlet.push(event));
                }
                turn.ask(asking);
            }
            // A refusal would end the turn without a word.
            _ => {
                let (request, answers) = nobody_to_ask(asking);
                self.errand(Errand::Answer { request, answers });
            }
        }
    }
}
