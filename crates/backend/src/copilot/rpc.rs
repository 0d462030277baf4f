//! Messages with their length in front, and calls that are answered.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use atomic_event::BackendId;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::process::ChildStdout;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::ID;
use crate::BackendError;
use crate::serving::lock;

/// What the length of a message is called.
const LENGTH: &str = "content-length:";

/// The largest message that is taken.
const LARGEST: usize = 256 * 1024 * 1024;

/// Whoever waits for the answer to a call.
type Waiting = oneshot::Sender<Result<Value, String>>;

/// The longest line in front of a message.
const LONGEST_LINE: usize = 4 * 1024;

/// Our side of the line.
#[derive(Debug)]
pub(super) struct Rpc {
    outgoing: mpsc::UnboundedSender<Value>,
    /// Nothing, when nobody will answer any more.
    open: Mutex<Option<BTreeMap<u64, Waiting>>>,
    calls: AtomicU64,
}

impl Rpc {
    /// Writes what is said into the program's input, as soon as the program reads it.
    pub(super) fn new(stdin: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (outgoing, said) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, said));
        Self { outgoing, open: Mutex::new(Some(BTreeMap::new())), calls: AtomicU64::new(1) }
    }

    fn say(&self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        // A program that is gone is noticed by its end.
        let _ = self.outgoing.send(message);
    }

    /// Calls a method and waits for its answer; without a limit as long as the program lives.
    pub(super) async fn call(
        &self,
        method: &'static str,
        params: &Value,
        limit: Option<Duration>,
    ) -> Result<Value, BackendError> {
        let call = self.begin(method, params);
        let Some(limit) = limit else { return call.answer().await };
        let id = call.id;
        let answer = timeout(limit, call.answer()).await;
        answer.unwrap_or_else(|_| {
            self.close(id);
            Err(exited(&format!("it did not answer {method} in time")))
        })
    }

    /// Calls a method: it is on its way when this returns, behind all that was said before.
    pub(super) fn begin(&self, method: &'static str, params: &Value) -> Call {
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        if let Some(open) = lock(&self.open).as_mut() {
            open.insert(id, sender);
        }
        self.say(json!({ "id": id, "method": method, "params": params }));
        Call { id, method, answer }
    }

    /// Answers a call of the program's.
    pub(super) fn reply(&self, id: &Value, result: &Value) {
        self.say(json!({ "id": id, "result": result }));
    }

    /// Answers a call that is not known here.
    pub(super) fn refuse(&self, id: &Value, method: &str) {
        let error = json!({ "code": -32601, "message": format!("{method} is not supported") });
        self.say(json!({ "id": id, "error": error }));
    }

    /// The program has answered a call.
    pub(super) fn answered(&self, id: &Value, answer: Result<Value, String>) {
        if let Some(open) = id.as_u64().and_then(|id| self.close(id)) {
            let _ = open.send(answer);
        }
    }

    fn close(&self, id: u64) -> Option<Waiting> {
        lock(&self.open).as_mut()?.remove(&id)
    }

    /// Nobody will answer any more.
    pub(super) fn hang_up(&self) {
        lock(&self.open).take();
    }
}

/// A call that is on its way.
pub(super) struct Call {
    id: u64,
    method: &'static str,
    answer: oneshot::Receiver<Result<Value, String>>,
}

impl Call {
    /// Its answer, as soon as there is one.
    pub(super) async fn answer(self) -> Result<Value, BackendError> {
        match self.answer.await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(message)) => {
                Err(BackendError::Rejected { backend: BackendId::from(ID), message })
            }
            Err(_) => Err(exited(&format!("it ended before it had answered {}", self.method))),
        }
    }
}

async fn write(mut stdin: impl AsyncWrite + Unpin, mut said: mpsc::UnboundedReceiver<Value>) {
    while let Some(message) = said.recv().await {
        let body = message.to_string();
        let head = format!("Content-Length: {}\r\n\r\n", body.len());
        let whole = [head.as_bytes(), body.as_bytes()].concat();
        if stdin.write_all(&whole).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// What comes from the program.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Message(Vec<u8>),
    /// Something that is no message.
    Garbage(String),
    /// Nothing, for too long.
    Silence,
    End,
}

/// Reads messages.
pub(super) struct Reader<R = ChildStdout>(BufReader<R>);

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(stdout: R) -> Self {
        Self(BufReader::with_capacity(256 * 1024, stdout))
    }

    pub(super) async fn next(&mut self) -> Incoming {
        let mut length = None;
        loop {
            let mut line = vec![];
            let mut limited = (&mut self.0).take(LONGEST_LINE as u64);
            let read = limited.read_until(b'\n', &mut line).await;
            // A line that is not whole is too long, or there will be no more of it.
            if read.is_err() || (line.last() != Some(&b'\n') && line.len() < LONGEST_LINE) {
                return Incoming::End;
            }
            let line = String::from_utf8_lossy(&line).trim().to_lowercase();
            match (line.strip_prefix(LENGTH), length) {
                (Some(told), _) => match told.trim().parse::<usize>() {
                    Ok(bytes) if bytes <= LARGEST => length = Some(bytes),
                    _ => return Incoming::Garbage(line),
                },
                (None, Some(bytes)) if line.is_empty() => return self.body(bytes).await,
                (None, None) => return Incoming::Garbage(line),
                (None, Some(_)) => {}
            }
        }
    }

    async fn body(&mut self, bytes: usize) -> Incoming {
        let mut body = vec![0; bytes];
        match self.0.read_exact(&mut body).await {
            Ok(_) => Incoming::Message(body),
            Err(_) => Incoming::End,
        }
    }
}

pub(super) fn exited(status: &str) -> BackendError {
    BackendError::Exited { backend: BackendId::from(ID), status: status.to_owned() }
}

#[cfg(test)]
mod tests;
