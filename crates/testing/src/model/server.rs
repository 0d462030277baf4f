//! The server.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use super::answer::{Answer, Broken, Playback};
use super::asked::{Asked, Situation};
use super::choose::Found;
use super::dialect::{self, Dialect, Spoken};
use super::fill::{Filling, header};
use super::record::{Chosen, Log, Received};
use super::script::{Action, ApiError, Ending, Reply, Script};

/// Headers that are not kept.
const SECRETS: &[&str] = &["authorization", "cookie", "proxy-authorization", "x-api-key"];

/// A model on the loopback; see the [module](super).
///
/// It has a thread of its own. Dropping it ends it: the port and every connection are closed.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Dropped to end the thread.
    end: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Arc<Script>>,
    log: Log,
}

impl ModelServer {
    /// Starts it at a free port.
    ///
    /// # Errors
    /// When the system gives it no port or no thread.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_at(script, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    /// Starts it at an address, so that it can come back to where it was before.
    ///
    /// # Errors
    /// When the address is not one of this machine alone or is in use, or the system gives it no
    /// thread.
    pub fn start_at(script: Script, address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let problem = format!("{address} is not on the loopback; use 127.0.0.1");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        // Entered and not blocked on: whoever starts us may be part of a runtime already.
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let shared = Arc::new(Shared { script: Mutex::new(Arc::new(script)), log: Log::default() });
        let (end, ended) = oneshot::channel();
        let serving = accept(listener, Arc::clone(&shared));
        let thread = thread::Builder::new().name("model-server".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serving => {}
                    _ = ended => {}
                }
            });
        })?;
        Ok(Self { address, shared, end: Some(end), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for programs, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request that came in, in order, but for those that were taken.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.log.all()
    }

    /// The requests that the script has no reply for.
    pub fn unmatched(&self) -> Vec<Received> {
        let mut requests = self.requests();
        requests.retain(|received| received.chosen == Chosen::Unmatched);
        requests
    }

    /// Waits for a request, be it there already or not.
    pub fn wait_for(&self, fits: impl Fn(&Received) -> bool, limit: Duration) -> Option<Received> {
        self.shared.log.wait_for(fits, limit)
    }

    /// The requests that are kept, and keeps them no longer: they hold whole conversations.
    pub fn take_requests(&self) -> Vec<Received> {
        self.shared.log.take()
    }

    /// Uses another script from the next request on.
    pub fn replace(&self, script: Script) {
        *self.shared.script.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(script);
    }

    /// Ends it: the port and every connection are closed when this returns.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic over there has been reported already.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&shared)))),
            // There are too many connections; some will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    // Without it everything still works, only slower.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| respond(&shared, request));
    // Connections end in every way, and the script breaks some of them.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<Response<Playback>, Broken> {
    let (head, incoming) = request.into_parts();
    let bytes = collect(incoming).await.map_err(|_| Broken)?;
    let at = Instant::now();
    let body = Arc::new(serde_json::from_slice(&bytes).unwrap_or(Value::Null));
    let script = Arc::clone(&shared.script.lock().unwrap_or_else(PoisonError::into_inner));
    let path = head.uri.path();
    let speaker = dialect::ALL.iter().find(|dialect| dialect.converses(&head.method, path));
    let (chosen, answer, delay) = match speaker {
        Some(speaker) if body.is_object() => {
            play(&script, *speaker, &speaker.read(&body, bytes.len()))
        }
        Some(speaker) => refuse(*speaker, 400, "the body is no JSON object"),
        None => {
            let aside = |dialect: &&dyn Dialect| dialect.aside(&head.method, path, bytes.len());
            match dialect::ALL.iter().find_map(aside) {
                Some(answer) => (Chosen::Aside, answer, Duration::ZERO),
                None => refuse(dialect::FIRST, 404, "nothing is served here"),
            }
        }
    };
    let text =
        |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let is_secret = |name: &str| SECRETS.contains(&name);
    let credentials = head.headers.iter().filter(|(name, _)| is_secret(name.as_str()));
    let kept = head.headers.iter().filter(|(name, _)| !is_secret(name.as_str()));
    shared.log.add(Received {
        number: 0,
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: kept.map(|(name, value)| (name.to_string(), text(value))).collect(),
        credentials: credentials.map(|(_, value)| text(value)).collect(),
        body,
        chosen,
        at,
    });
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    answer.into_response()
}

/// The whole body of a request.
async fn collect(mut incoming: Incoming) -> Result<Vec<u8>, hyper::Error> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut incoming).poll_frame(context)).await {
        if let Some(data) = frame?.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    Ok(bytes)
}

/// What the script says to a request, and after how long.
fn play(script: &Script, speaker: &dyn Dialect, asked: &Asked<'_>) -> (Chosen, Answer, Duration) {
    let situation = asked.situation();
    let (chosen, reply) = match script.choose(asked, &situation) {
        Found::Reply { turn, reply } => {
            let name = script.turns.get(turn).and_then(|turn| turn.name.clone());
            let step = situation.step;
            (Chosen::Turn { turn, name, step }, Cow::Borrowed(reply))
        }
        Found::OutOfReplies { turn } => {
            let step = situation.step;
            let text = format!("Turn {} of the script has no reply for step {step}.", turn + 1);
            (Chosen::Unmatched, Cow::Owned(Reply::say(&text)))
        }
        Found::Nothing => (Chosen::Unmatched, Cow::Owned(Reply::say(&default(script, &situation)))),
    };
    let delay = reply.delay;
    let mut answer = match &reply.ending {
        Ending::Error(error) => speaker.refuse(error),
        Ending::Finish | Ending::Hang | Ending::Broken(_) => {
            said(speaker, asked, &situation, &reply, chosen != Chosen::Unmatched)
        }
    };
    let now = Timestamp::now();
    let headers = reply.headers.iter();
    answer.headers.extend(headers.map(|(name, value)| (name.clone().into(), header(value, now))));
    (chosen, answer, delay)
}

/// A reply as an answer; placeholders are replaced in what is scripted.
fn said(
    speaker: &dyn Dialect,
    asked: &Asked<'_>,
    situation: &Situation,
    reply: &Reply,
    is_scripted: bool,
) -> Answer {
    let parts = if is_scripted {
        let filling = Filling::new(asked, situation);
        reply.actions.iter().map(|action| fill(&filling, action)).collect()
    } else {
        reply.actions.clone()
    };
    speaker.write(&Spoken { parts, reply: Cow::Borrowed(reply) }, asked)
}

/// What is said when no turn fits.
fn default(script: &Script, situation: &Situation) -> String {
    script.default.clone().unwrap_or_else(|| {
        let user: String = situation.user.chars().take(200).collect();
        format!("No turn of the script fits this request. The user's last text is: {user}")
    })
}

fn fill(filling: &Filling<'_>, action: &Action) -> Action {
    match action {
        Action::Say(text) => Action::Say(filling.text(text)),
        Action::Think(text) => Action::Think(filling.text(text)),
        Action::Call { tool, input } => {
            Action::Call { tool: tool.clone(), input: filling.value(input) }
        }
    }
}

fn refuse(speaker: &dyn Dialect, status: u16, problem: &str) -> (Chosen, Answer, Duration) {
    let message = Some(format!("model-server: {problem}"));
    let error = ApiError { status, kind: None, message, retry_after: None };
    (Chosen::Refused, speaker.refuse(&error), Duration::ZERO)
}
