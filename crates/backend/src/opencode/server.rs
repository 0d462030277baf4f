//! One running server: its process, its events, and who talks in which of its sessions.
//!
//! Start reading at [`Server::start`].

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use atomic_event::BackendId;
use eventsource_stream::Eventsource as _;
use futures_util::StreamExt as _;
use reqwest::Method;
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::net::UnixListener;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::gate::Gate;
use super::http::{Http, garbled};
use super::launch::{Den, Setup};
use super::ready::{AGAIN, ASKING, Unready, ready, why_not_ready};
use super::settings::Places;
use super::talker::{News, Talker};
use super::wire::{Envelope, Event, Session};
use super::{ID, OpenCodeConfig, gate, misused};
use crate::BackendError;
use crate::guard::{Guard, Job};
use crate::process::{Exit, Process};
use crate::words::{shorten, without_colours};

/// How long the program may take until it answers.
const READY: Duration = Duration::from_secs(120);

/// The server says something every ten seconds.
const SILENCE: Duration = Duration::from_secs(25);

/// How often its events are asked for again before it counts as lost.
const TRIES: u32 = 5;

/// A server that somebody uses; it is not ended for being of no use.
#[derive(Debug)]
pub(super) struct Lease(Arc<Server>);

impl Lease {
    pub(super) fn of(server: &Arc<Server>) -> Self {
        server.users.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(server))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Deref for Lease {
    type Target = Arc<Server>;

    fn deref(&self) -> &Arc<Server> {
        &self.0
    }
}

/// A server that runs, or did.
#[derive(Debug)]
pub(super) struct Server {
    users: AtomicUsize,
    pub(super) setup: Setup,
    pub(super) http: Http,
    /// What the shells of tools are told in place of what the server was told.
    pub(super) shell_env: Vec<(String, String)>,
    sessions: Mutex<Sessions>,
    changed: Notify,
    /// Why it is gone, when it is.
    gone: Mutex<Option<BackendError>>,
    /// Dropped or used to end the process.
    end: Mutex<Option<oneshot::Sender<()>>>,
    ended: Notify,
    has_ended: AtomicBool,
    /// What it knows about models, by the folder.
    catalogues: Mutex<BTreeMap<PathBuf, Arc<Value>>>,
    pub(super) gate: Gate,
    _den: Den,
}

#[derive(Debug, Default)]
struct Sessions {
    talkers: BTreeMap<String, Arc<Talker>>,
    /// Of helpers: in whose session they work, and who they are.
    helpers: BTreeMap<String, (String, String)>,
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
        let (end, ending) = oneshot::channel();
        let server = Arc::new(Self {
            users: AtomicUsize::new(0),
            setup,
            http,
            shell_env,
            sessions: Mutex::default(),
            changed: Notify::new(),
            gone: Mutex::default(),
            end: Mutex::new(Some(end)),
            ended: Notify::new(),
            has_ended: AtomicBool::new(false),
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

    /// Why it is gone, when it is.
    pub(super) fn gone(&self) -> Option<BackendError> {
        lock(&self.gone).clone()
    }

    /// Whether nobody uses it.
    pub(super) fn is_idle(&self) -> bool {
        self.users.load(Ordering::SeqCst) == 0
    }

    /// Whether all who use it are about to leave.
    pub(super) fn is_being_left(&self) -> bool {
        !self.is_idle() && lock(&self.sessions).talkers.values().all(|talker| talker.is_leaving())
    }

    /// It is of no use any more, whether it has ended or not.
    fn is_lost(&self, why: BackendError) {
        lock(&self.gone).get_or_insert(why);
    }

    /// Whether it answers.
    pub(super) async fn answers(&self) -> bool {
        let asked = self.http.request(Method::GET, "/global/health").timeout(ASKING).send();
        asked.await.is_ok()
    }

    /// Whether it has ended, though that may not have been noticed yet.
    pub(super) async fn is_dead(&self) -> bool {
        let asked = self.http.request(Method::GET, "/global/health").timeout(ASKING).send();
        asked.await.is_err_and(|error| !error.is_timeout())
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

    /// Ends it and everything it started.
    pub(super) async fn end(&self) {
        let ended = self.ended.notified();
        let mut ended = std::pin::pin!(ended);
        ended.as_mut().enable();
        let asked = lock(&self.end).take();
        let is_to_end = asked.is_some_and(|end| end.send(()).is_ok());
        if is_to_end || !self.has_ended.load(Ordering::SeqCst) {
            ended.await;
        }
    }

    /// Lets somebody talk in a session, which nobody else may do at the same time. One who is about
    /// to leave is waited for.
    pub(super) async fn enter(
        &self,
        session: &str,
        talker: &Arc<Talker>,
    ) -> Result<(), BackendError> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Listening begins before the look, so that no change is missed between the two.
            changed.as_mut().enable();
            {
                let mut sessions = lock(&self.sessions);
                match sessions.talkers.get(session) {
                    None => {
                        sessions.talkers.insert(session.to_owned(), Arc::clone(talker));
                        return Ok(());
                    }
                    Some(other) if !other.is_leaving() => {
                        return Err(misused(&format!(
                            "the conversation {session} is open already"
                        )));
                    }
                    Some(_) => {}
                }
            }
            changed.await;
        }
    }

    /// Whether it is this one who talks in a session.
    pub(super) fn is_talking(&self, session: &str, talker: &Arc<Talker>) -> bool {
        lock(&self.sessions).talkers.get(session).is_some_and(|known| Arc::ptr_eq(known, talker))
    }

    /// Nobody talks in this session any more.
    pub(super) fn leave(&self, session: &str) {
        let mut sessions = lock(&self.sessions);
        sessions.talkers.remove(session);
        sessions.helpers.retain(|_, (root, _)| root != session);
        drop(sessions);
        self.changed.notify_waiters();
    }

    /// Who is responsible for what happens in a session, and which helper does it.
    pub(super) async fn owner(&self, session: &str) -> Option<(Arc<Talker>, Option<String>)> {
        let mut path: Vec<(String, String)> = vec![];
        let mut at = session.to_owned();
        // Helpers of helpers of helpers: somewhere it has to end.
        for _ in 0..32 {
            // The lock is not held while this is looked at: it is needed again.
            let known = lock(&self.sessions).find(&at);
            if let Some((talker, known)) = known {
                let helper = path.first().map(|(_, agent)| agent.clone()).or(known);
                self.remember(&talker, path);
                return Some((talker, helper));
            }
            // Its beginning may not have been heard of yet.
            let path_of = format!("/session/{at}");
            let told: Session = self.http.get(&path_of, Path::new("/")).await.ok()?;
            path.push((told.id, told.agent.unwrap_or_default()));
            at = told.parent?;
        }
        None
    }

    fn remember(&self, talker: &Arc<Talker>, path: Vec<(String, String)>) {
        let mut sessions = lock(&self.sessions);
        let root = sessions.talkers.iter().find(|(_, known)| Arc::ptr_eq(known, talker));
        let Some(root) = root.map(|(root, _)| root.clone()) else { return };
        for (session, agent) in path {
            sessions.helpers.insert(session, (root.clone(), agent));
        }
    }

    /// Hands an event to whom it is about.
    fn hear(&self, event: Event) {
        let mut sessions = lock(&self.sessions);
        let info = &event.about.info;
        if event.kind == "session.created"
            && let Some(root) = info.parent.as_ref().and_then(|parent| sessions.root(parent))
        {
            sessions.helpers.insert(info.id.clone(), (root, info.agent.clone()));
        }
        if let Some((talker, _)) = sessions.find(&event.about.session) {
            // One that has left need not know.
            let _ = talker.news.send(News::Event(Box::new(event)));
        }
    }

    fn tell_all(&self, news: impl Fn() -> News) {
        for talker in lock(&self.sessions).talkers.values() {
            let _ = talker.news.send(news());
        }
    }

    fn ended_by(&self, why: &BackendError) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.is_lost(why.clone());
        self.tell_all(|| News::Gone(why.clone()));
        self.ended.notify_waiters();
        self.changed.notify_waiters();
    }
}

impl Sessions {
    fn root(&self, session: &str) -> Option<String> {
        if self.talkers.contains_key(session) {
            return Some(session.to_owned());
        }
        self.helpers.get(session).map(|(root, _)| root.clone())
    }

    fn find(&self, session: &str) -> Option<(Arc<Talker>, Option<String>)> {
        if let Some(talker) = self.talkers.get(session) {
            return Some((Arc::clone(talker), None));
        }
        let (root, agent) = self.helpers.get(session)?;
        Some((Arc::clone(self.talkers.get(root)?), Some(agent.clone())))
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
