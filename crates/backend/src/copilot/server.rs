//! One running program for all conversations: its process, and who talks in which of its sessions.
//!
//! Start reading at [`Server::start`].

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use atomic_event::BackendId;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::home::native;
use super::rpc::{Incoming, Reader, Rpc, exited};
use super::talker::{News, Talker};
use super::wire::{Message, Notice};
use super::{CopilotConfig, ID, OLDEST, PROTOCOL};
use crate::BackendError;
use crate::guard::{Guard, Guarded, Job};
use crate::process::{Complaint, EXIT_AFTER_OUTPUT};
use crate::serving::{Lifeline, Lives, Roster};
use crate::version::Version;
use crate::words::shorten;

/// How long the program may take until it answers: the first start unpacks it.
const READY: Duration = Duration::from_secs(120);

/// How long it may say nothing before it is asked, and then to answer that.
const QUIET: Duration = Duration::from_secs(30);

/// A program that runs, or did.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) rpc: Rpc,
    line: Lifeline,
    talkers: Roster<Talker>,
}

impl Lives for Server {
    fn line(&self) -> &Lifeline {
        &self.line
    }
}

impl Server {
    /// Starts the program and waits until it answers.
    pub(super) async fn start(
        config: &CopilotConfig,
        guard: &Guard,
        marker: String,
    ) -> Result<Arc<Self>, BackendError> {
        let program = native(&config.program).display().to_string();
        let arguments = ["--server", "--stdio", "--no-auto-update"].map(str::to_owned);
        let argv = std::iter::once(program).chain(arguments).collect();
        let env = config.env.clone();
        let job = Job { argv, cwd: std::env::temp_dir(), env, marker, stdin: true };
        let broken = |error: std::io::Error| BackendError::Misconfigured(error.to_string());
        let mut guarded = guard.spawn(&job).map_err(broken)?;
        let (Some(stdin), Some(stdout)) = (guarded.stdin.take(), guarded.stdout.take()) else {
            return Err(BackendError::Misconfigured("the program has no pipes".to_owned()));
        };
        let (line, ending) = Lifeline::new();
        let talkers = Roster::default();
        let server = Arc::new(Self { rpc: Rpc::new(stdin), line, talkers });
        let complaint = Complaint::of(guarded.stderr.take());
        let reader = Reader::new(stdout);
        tokio::spawn(watch(guarded, reader, ending, Arc::downgrade(&server), complaint));
        match server.connect(config).await {
            Ok(()) => Ok(server),
            Err(error) => {
                // Why it ended says more than that it did not answer.
                let why = server.line.gone().unwrap_or(error);
                server.line.end().await;
                Err(not_installed(config, why))
            }
        }
    }

    async fn connect(&self, config: &CopilotConfig) -> Result<(), BackendError> {
        let told = self.rpc.call("connect", &json!({}), Some(READY)).await?;
        let version = told.get("version").and_then(Value::as_str).unwrap_or_default();
        let Some(found) = Version::read(version) else { return Err(garbled(&told.to_string())) };
        if found < OLDEST {
            return Err(BackendError::TooOld {
                backend: BackendId::from(ID),
                program: config.program.clone(),
                found: found.to_string(),
                needed: OLDEST.to_string(),
            });
        }
        match told.get("protocolVersion").and_then(Value::as_u64) {
            Some(PROTOCOL) => Ok(()),
            other => Err(BackendError::Misconfigured(format!(
                "copilot {found} speaks version {} of its protocol, and {PROTOCOL} is needed; \
                 install a version that speaks it, such as {OLDEST}",
                other.map_or_else(|| "none".to_owned(), |version| version.to_string())
            ))),
        }
    }

    /// Lets somebody talk in a session, which nobody else may do at the same time.
    pub(super) async fn enter(
        &self,
        session: &str,
        talker: &Arc<Talker>,
    ) -> Result<(), BackendError> {
        self.talkers.enter(session, talker, ID).await
    }

    pub(super) fn leave(&self, session: &str) {
        self.talkers.leave(session);
    }

    /// Whether all who use it are about to leave.
    pub(super) fn is_being_left(&self) -> bool {
        !self.is_idle() && self.talkers.is_being_left()
    }

    fn tell_all(&self, news: impl Fn() -> News) {
        for talker in self.talkers.all() {
            talker.tell(news());
        }
    }

    /// Takes in a message; one that is none is an error.
    fn hear(&self, bytes: &[u8]) -> Result<(), BackendError> {
        let text = std::str::from_utf8(bytes).map_err(|_| garbled("no text"))?;
        let message: Message<'_> = serde_json::from_str(text).map_err(|_| garbled(text))?;
        match (message.method, &message.id) {
            (Some("session.event"), None) => {
                let notice = message.params.and_then(|p| serde_json::from_str(p.get()).ok());
                let notice: Option<Notice<'_>> = notice;
                let known = notice.and_then(|notice| {
                    Some((self.talkers.get(notice.session_id)?, notice.event.event()?))
                });
                if let Some((talker, event)) = known {
                    talker.tell(News::Event(Box::new(event)));
                }
            }
            (Some(method), Some(id)) => self.called(id, method, message.params.map(RawValue::get)),
            (Some(_), None) => {}
            (None, Some(id)) => {
                let result = message.result.and_then(|r| serde_json::from_str(r.get()).ok());
                let answer = match message.error {
                    Some(error) => Err(error.message),
                    None => Ok(result.unwrap_or_default()),
                };
                self.rpc.answered(id, answer);
            }
            // What it could not read, it answers to nobody.
            (None, None) if message.error.is_some() => {}
            (None, None) => return Err(garbled(text)),
        }
        Ok(())
    }

    /// The program wants something of us.
    fn called(&self, id: &Value, method: &str, params: Option<&str>) {
        let params: Value =
            params.and_then(|params| serde_json::from_str(params).ok()).unwrap_or_default();
        let session = params.get("sessionId").and_then(Value::as_str).unwrap_or_default();
        let talker = self.talkers.get(session);
        match (method, talker) {
            ("hooks.invoke", Some(talker)) => self.rpc.reply(id, &talker.hook(&params)),
            ("hooks.invoke", None) => {
                let why = "this conversation is not open any more";
                let output =
                    json!({ "permissionDecision": "deny", "permissionDecisionReason": why });
                self.rpc.reply(id, &json!({ "output": output }));
            }
            ("userInput.request", Some(talker)) => {
                talker.tell(News::Asked { id: id.clone(), params });
            }
            ("userInput.request", None) => self.rpc.reply(id, &json!({ "noResponse": true })),
            _ => self.rpc.refuse(id, method),
        }
    }

    fn has_ended(&self, why: &BackendError) {
        self.line.has_ended(why.clone());
        self.rpc.hang_up();
        self.tell_all(|| News::Gone(why.clone()));
        self.talkers.has_changed();
    }
}

impl Deref for Server {
    type Target = Lifeline;

    fn deref(&self) -> &Lifeline {
        &self.line
    }
}

/// A program that could not be started at all.
fn not_installed(config: &CopilotConfig, why: BackendError) -> BackendError {
    let is_missing = matches!(&why, BackendError::Exited { status, .. }
        if status.starts_with("exit status: 127"));
    if !is_missing {
        return why;
    }
    let (backend, program) = (BackendId::from(ID), config.program.clone());
    BackendError::NotInstalled { backend, program }
}

fn garbled(text: &str) -> BackendError {
    BackendError::Garbled { backend: BackendId::from(ID), line: shorten(text) }
}

/// Owns the process until it ends, by itself or because it is to.
async fn watch(
    guarded: Guarded,
    mut reader: Reader,
    mut ending: oneshot::Receiver<()>,
    server: Weak<Server>,
    mut complaint: Complaint,
) {
    let why = loop {
        let incoming = tokio::select! {
            biased;
            _ = &mut ending => {
                guarded.end().await;
                break exited("it was ended");
            }
            incoming = heard(&mut reader, &server) => incoming,
        };
        let problem = match (incoming, server.upgrade()) {
            (Incoming::Message(bytes), Some(server)) => server.hear(&bytes).err(),
            (Incoming::Garbage(line), Some(_)) => Some(garbled(&line)),
            (Incoming::Silence, Some(_)) => Some(exited("it does not answer any more")),
            (Incoming::End, _) => break ended(guarded, &mut complaint).await,
            (_, None) => continue,
        };
        if let (Some(problem), Some(server)) = (problem, server.upgrade()) {
            server.line.is_lost(problem.clone());
            // Told only then: the conversations end their shells, and a program that outlives them
            // asks the model again.
            guarded.end().await;
            break problem;
        }
    };
    if let Some(server) = server.upgrade() {
        server.has_ended(&why);
    }
}

/// What the program says next. One that has said nothing for a while is asked whether it is there.
async fn heard<R: AsyncRead + Unpin>(reader: &mut Reader<R>, server: &Weak<Server>) -> Incoming {
    // Half a message must not be lost, so this goes on to be read whatever happens besides.
    let mut next = std::pin::pin!(reader.next());
    if let Ok(incoming) = timeout(QUIET, next.as_mut()).await {
        return incoming;
    }
    if let Some(server) = server.upgrade() {
        drop(server.rpc.begin("ping", &json!({})));
    }
    timeout(QUIET, next).await.unwrap_or(Incoming::Silence)
}

async fn ended(mut guarded: Guarded, complaint: &mut Complaint) -> BackendError {
    let Ok(status) = timeout(EXIT_AFTER_OUTPUT, guarded.wait()).await else {
        guarded.end().await;
        return exited("it was ended");
    };
    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let complaint = complaint.whole().await;
    if complaint.is_empty() {
        return exited(&status);
    }
    exited(&format!("{status}: {}", shorten(&complaint)))
}

#[cfg(test)]
mod tests;
