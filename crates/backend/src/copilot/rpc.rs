//! Messages with their length in front, and calls that are answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// What the length of a message is called.
const LENGTH: &str = "content-length:";

/// The largest message that is taken.
const LARGEST: usize = 256 * 1024 * 1024;

/// The longest line in front of a message.
const LONGEST_LINE: usize = 4 * 1024;

/// Our side of the line.
#[derive(Debug)]
pub(super) struct Rpc {
    outgoing: mpsc::UnboundedSender<Value>,
    /// Calls that are not answered yet; none once nobody will answer any more.
    open: Mutex<Option<Calls>>,
    calls: AtomicU64,
}

type Calls = BTreeMap<u64, oneshot::Sender<Result<Value, String>>>;

impl Rpc {
    /// Writes what is said into the program's input, as soon as the program reads it.
    pub(super) fn new(stdin: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        let (outgoing, said) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, said));
        Self { outgoing, open: Mutex::new(Some(Calls::new())), calls: AtomicU64::new(1) }
    }

    fn say(&self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        // A program that is gone is noticed by its end.
        let _ = self.outgoing.send(message);
    }

    /// Calls a method and waits for its answer; without a limit as long as the program lives.
    pub(super) async fn call(
        &self,
        method: &str,
        params: Value,
        limit: Option<Duration>,
    ) -> Result<Value, BackendError> {
        let id = self.calls.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        match lock(&self.open).as_mut() {
            Some(open) => _ = open.insert(id, sender),
            None => return Err(exited(&format!("it ended before it was asked for {method}"))),
        }
        self.say(json!({ "id": id, "method": method, "params": params }));
        let answer = match limit {
            None => answer.await,
            Some(limit) => match timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => {
                    self.close(id);
                    return Err(exited(&format!("it did not answer {method} in time")));
                }
            },
        };
        match answer {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(message)) => {
                Err(BackendError::Rejected { backend: BackendId::from(ID), message })
            }
            Err(_) => Err(exited(&format!("it ended before it had answered {method}"))),
        }
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

    fn close(&self, id: u64) -> Option<oneshot::Sender<Result<Value, String>>> {
        lock(&self.open).as_mut()?.remove(&id)
    }

    /// Nobody will answer any more.
    pub(super) fn hang_up(&self) {
        *lock(&self.open) = None;
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
