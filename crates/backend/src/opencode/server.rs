//! One running server: its process, its events, and who talks in which of its sessions.
//!
//! Start reading at [`Server::start`].

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use atomic_event::BackendId;
use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use reqwest::{Method, Response};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::gate::Gate;
use super::http::{Http, garbled};
use super::launch::{Den, Setup};
use super::ready::{AGAIN, ASKING, Unready, ready, why_not_ready};
use super::settings::Places;
use super::talker::{News, Talker};
use super::wire::{Envelope, Event, Session};
use super::{ID, OpenCodeConfig, gate};
use crate::BackendError;
use crate::guard::{Guard, Job};
use crate::process::{Exit, Process};
use crate::serving::{Lifeline, Lives, Roster, lock};
use crate::words::{shorten, without_colours};

/// How long the program may take until it answers.
const READY: Duration = Duration::from_secs(120);

/// The server says something every ten seconds.
const SILENCE: Duration = Duration::from_secs(25);

/// How long it may answer nothing after it was told to stop something.
const SILENT: Duration = Duration::from_secs(20);

/// How often its events are asked for again before it counts as lost.
const TRIES: u32 = 5;

/// A server that runs, or did.
#[derive(Debug)]
pub(super) struct Server {
    line: Lifeline,
    pub(super) setup: Setup,
    pub(super) http: Http,
    /// What the shells of tools are told in place of what the server was told.
    pub(super) shell_env: Vec<(String, String)>,
    talkers: Roster<Talker>,
    /// Of helpers: in whose session they work, and who they are.
    helpers: Mutex<BTreeMap<String, (String, String)>>,
    /// What it knows about models, by the folder.
    catalogues: Mutex<BTreeMap<PathBuf, Arc<Value>>>,
    pub(super) gate: Gate,
    _den: Den,
}

impl Lives for Server {
    fn line(&self) -> &Lifeline {
        &self.line
    }
}

impl Deref for Server {
    type Target = Lifeline;

    fn deref(&self) -> &Lifeline {
        &self.line
    }
}

impl Server {
    /// Starts a server and waits until it is ready and its events are heard.
    pub(super) async fn start(
        config: &OpenCodeConfig,
        guard: &Guard,
        setup: Setup,
        shell_env: Vec<(String, String)>,
        marker: String,
    ) -> Result<Arc<Self>, BackendError> {
        let broken = |error: std::io::Error| BackendError::Misconfigured(error.to_string());
        let den = Den::make(&setup).map_err(broken)?;
        let listener = UnixListener::bind(den.gate()).map_err(broken)?;
        let password = uuid::Uuid::new_v4().simple().to_string();
        let program = config.program.display().to_string();
        let mut env = config.env.clone();
        env.extend(den.env(&setup, &password));
        let arguments = ["serve", "--hostname=127.0.0.1", "--port=0"].map(str::to_owned);
        let argv = std::iter::once(program).chain(arguments).collect();
        let job = Job { argv, cwd: std::env::temp_dir(), env, marker, stdin: false };
        let mut process = Process::start(guard, &job).map_err(broken)?;
        let http = match timeout(READY, ready(config, &mut process, password)).await {
            Ok(Ok(http)) => http,
            Ok(Err(Unready::Ended)) => {
                let mut exit = process.exit().await;
                // It has read a copy of the user's settings.
                let users = Places::of_environment(&config.env).config_home();
                let [copy, users] = [den.config_home(), users].map(|it| it.display().to_string());
                exit.complaint = exit.complaint.replace(&copy, &users);
                return Err(why_not_ready(config, &exit));
            }
            Ok(Err(Unready::Unfit(error))) => {
                process.kill().await;
                return Err(error);
            }
            Err(_) => {
                process.kill().await;
                return Err(exited(format!("it was not ready after {} s", READY.as_secs())));
            }
        };
        let (line, ending) = Lifeline::new();
        let server = Arc::new(Self {
            line,
            setup,
            http,
            shell_env,
            talkers: Roster::default(),
            helpers: Mutex::default(),
            catalogues: Mutex::default(),
            gate: Gate::default(),
            _den: den,
        });
        tokio::spawn(watch(process, ending, Arc::downgrade(&server)));
        tokio::spawn(gate::serve(listener, Arc::downgrade(&server)));
        let (heard, connected) = oneshot::channel();
        tokio::spawn(listen(Arc::downgrade(&server), server.http.clone(), Some(heard)));
        match timeout(READY, connected).await {
            Ok(Ok(())) => Ok(server),
            _ => {
                server.end().await;
                Err(exited("its events were not to be heard".to_owned()))
            }
        }
    }

    /// Whether all who use it are about to leave.
    pub(super) fn is_being_left(&self) -> bool {
        !self.is_idle() && self.talkers.is_being_left()
    }

    /// Ends it if it answers nothing at all; those who talk there are then no worse off than they
    /// were. On a busy machine it may be silent for some seconds.
    pub(super) async fn end_if_silent(&self) {
        let until = Instant::now() + SILENT;
        while self.gone().is_none() {
            match self.health().await {
                Ok(_) => return,
                Err(_) if Instant::now() >= until => return self.end().await,
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }

    /// Whether it has ended, though that may not have been noticed yet.
    pub(super) async fn is_dead(&self) -> bool {
        for _ in 0..TRIES {
            match self.health().await {
                Ok(_) => return false,
                Err(error) if error.is_timeout() => return false,
                Err(error) if error.is_connect() => return true,
                // It may have ended just now, or may have had no time.
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
        true
    }

    async fn health(&self) -> reqwest::Result<Response> {
        self.http.request(Method::GET, "/global/health").timeout(ASKING).send().await
    }

    /// What it knows about models in a folder.
    pub(super) async fn catalogue(&self, folder: &Path) -> Result<Arc<Value>, BackendError> {
        if let Some(known) = lock(&self.catalogues).get(folder) {
            return Ok(Arc::clone(known));
        }
        let told: Arc<Value> = Arc::new(self.http.get("/config/providers", folder).await?);
        lock(&self.catalogues).insert(folder.to_owned(), Arc::clone(&told));
        Ok(told)
    }

    /// Lets somebody talk in a session, which nobody else may do at the same time.
    pub(super) async fn enter(
        &self,
        session: &str,
        talker: &Arc<Talker>,
    ) -> Result<(), BackendError> {
        self.talkers.enter(session, talker, ID).await
    }

    /// Whether it is this one who talks in a session.
    pub(super) fn is_talking(&self, session: &str, talker: &Arc<Talker>) -> bool {
        self.talkers.get(session).is_some_and(|known| Arc::ptr_eq(&known, talker))
    }

    /// Nobody talks in this session any more.
    pub(super) fn leave(&self, session: &str) {
        lock(&self.helpers).retain(|_, (root, _)| root != session);
        self.talkers.leave(session);
    }

    /// Who is responsible for what happens in a session, and which helper does it.
    pub(super) async fn owner(&self, session: &str) -> Option<(Arc<Talker>, Option<String>)> {
        let mut path: Vec<(String, String)> = vec![];
        let mut at = session.to_owned();
        // Helpers of helpers of helpers: somewhere it has to end.
        for _ in 0..32 {
            if let Some((root, known)) = self.root(&at) {
                let helper = path.first().map(|(_, agent)| agent.clone()).or(known);
                for (session, agent) in path {
                    lock(&self.helpers).insert(session, (root.clone(), agent));
                }
                return Some((self.talkers.get(&root)?, helper));
            }
            // Its beginning may not have been heard of yet.
            let path_of = format!("/session/{at}");
            let told: Session = self.http.get(&path_of, Path::new("/")).await.ok()?;
            path.push((told.id, told.agent.unwrap_or_default()));
            at = told.parent?;
        }
        None
    }

    /// The session of whoever is responsible for this one, and which helper works in it.
    fn root(&self, session: &str) -> Option<(String, Option<String>)> {
        if self.talkers.get(session).is_some() {
            return Some((session.to_owned(), None));
        }
        let (root, agent) = lock(&self.helpers).get(session)?.clone();
        Some((root, Some(agent)))
    }

    /// Hands an event to whom it is about.
    fn hear(&self, event: Event) {
        let info = &event.about.info;
        if event.kind == "session.created"
            && let Some((root, _)) = info.parent.as_ref().and_then(|parent| self.root(parent))
        {
            lock(&self.helpers).insert(info.id.clone(), (root, info.agent.clone()));
        }
        let root = self.root(&event.about.session);
        if let Some(talker) = root.and_then(|(root, _)| self.talkers.get(&root)) {
            // One that has left need not know.
            let _ = talker.news.send(News::Event(Box::new(event)));
        }
    }

    fn tell_all(&self, news: impl Fn() -> News) {
        for talker in self.talkers.all() {
            let _ = talker.news.send(news());
        }
    }

    fn ended_by(&self, why: &BackendError) {
        self.line.has_ended(why.clone());
        self.tell_all(|| News::Gone(why.clone()));
        self.talkers.has_changed();
    }
}

/// How it ended.
pub(super) fn ended(exit: &Exit) -> BackendError {
    if exit.complaint.is_empty() {
        return exited(exit.status.clone());
    }
    exited(format!("{}: {}", exit.status, shorten(&without_colours(&exit.complaint))))
}

fn exited(status: String) -> BackendError {
    BackendError::Exited { backend: BackendId::from(ID), status }
}

/// Owns the process until it ends, by itself or because it is to.
async fn watch(mut process: Process, mut ending: oneshot::Receiver<()>, server: Weak<Server>) {
    let why = loop {
        tokio::select! {
            biased;
            _ = &mut ending => {
                process.kill().await;
                break exited("it was ended".to_owned());
            }
            line = process.line() => if line.is_none() {
                break ended(&process.exit().await);
            },
        }
    };
    if let Some(server) = server.upgrade() {
        server.ended_by(&why);
    }
}

/// Hears all events until the server is gone. What was missed while nothing was heard has to be
/// asked for.
async fn listen(server: Weak<Server>, http: Http, mut connected: Option<oneshot::Sender<()>>) {
    let mut failures = 0;
    loop {
        let heard = hear_out(&server, &http, &mut connected).await;
        let Some(server) = server.upgrade() else { return };
        if server.gone().is_some() {
            return;
        }
        match heard {
            Heard::Garbage(line) => {
                server.is_lost(garbled(&line));
                server.tell_all(|| News::Garbled(line.clone()));
                server.end().await;
                return;
            }
            Heard::Something => failures = 0,
            Heard::Nothing => failures += 1,
        }
        if failures >= TRIES {
            server.is_lost(exited("its events are not to be heard any more".to_owned()));
            server.end().await;
            return;
        }
        tokio::time::sleep(AGAIN * failures).await;
    }
}

/// How a stream of events ended.
enum Heard {
    Something,
    Nothing,
    Garbage(String),
}

async fn hear_out(
    server: &Weak<Server>,
    http: &Http,
    connected: &mut Option<oneshot::Sender<()>>,
) -> Heard {
    let asked = timeout(SILENCE, http.request(Method::GET, "/global/event").send()).await;
    let Ok(Ok(response)) = asked else { return Heard::Nothing };
    let mut events = response.bytes_stream().eventsource();
    let mut heard = Heard::Nothing;
    while let Ok(Some(Ok(event))) = timeout(SILENCE, events.next()).await {
        let Some(server) = server.upgrade() else { return heard };
        if matches!(heard, Heard::Nothing) {
            heard = Heard::Something;
            match connected.take() {
                Some(connected) => _ = connected.send(()),
                None => server.tell_all(|| News::Resync),
            }
        }
        match serde_json::from_str::<Envelope<'_>>(&event.data) {
            Ok(envelope) => {
                if let Some(event) = envelope.payload.event() {
                    server.hear(event);
                }
            }
            Err(_) if serde_json::from_str::<IgnoredAny>(&event.data).is_ok() => {}
            Err(_) => return Heard::Garbage(shorten(&event.data)),
        }
    }
    heard
}
