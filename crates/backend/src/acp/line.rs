//! The line to a running program: its own lines, moved by the protocol's crate.
//!
//! Updates, answers and requests are taken as they come, as JSON: the crate's own types leave out
//! what they do not know, and fail where they meet a word that is new.

use std::io;

use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, Lines, UntypedMessage};
use futures_util::{sink, stream};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use crate::guard::{Guard, Job};
use crate::process::{Exit, Process};

/// What the program says.
pub(super) enum News {
    /// Something to know.
    Noted { method: String, params: Value },
    /// Something it wants from us.
    Asked { method: String, params: Value, responder: Responder<Value> },
    /// What became of a prompt.
    Answered { number: u64, answer: Result<Value, Error> },
    /// It will say nothing more.
    Closed,
}

/// What comes next on the line.
pub(super) enum Next {
    News(Box<News>),
    /// A line was passed on; what it means comes later.
    Passed,
    /// Something that is not the protocol.
    Garbled(String),
    /// There are no more lines.
    Ended,
}

/// Why something that was asked for is not answered.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The program says no.
    Refused(Error),
    /// It said something that is not the protocol.
    Garbled(String),
    /// It is gone.
    Gone,
}

/// A running program, and the connection to it.
pub(super) struct Line {
    process: Process,
    connection: ConnectionTo<Agent>,
    /// The program's lines on their way to the crate; nothing when there are no more.
    incoming: Option<mpsc::UnboundedSender<io::Result<String>>>,
    news: mpsc::UnboundedReceiver<News>,
    /// For what is answered later.
    teller: mpsc::UnboundedSender<News>,
}

impl Line {
    /// Starts a program.
    pub(super) async fn start(guard: &Guard, job: &Job) -> io::Result<Self> {
        let process = Process::start(guard, job)?;
        let writer = process.writer();
        let outgoing = sink::unfold(writer, |writer, line: String| {
            if let Some(writer) = &writer {
                writer.write(line);
            }
            std::future::ready(Ok::<_, io::Error>(writer))
        });
        let (incoming, mut lines) = mpsc::unbounded_channel();
        let lines = stream::poll_fn(move |context| lines.poll_recv(context));
        let (teller, news) = mpsc::unbounded_channel();
        let (noting, asking, closing) = (teller.clone(), teller.clone(), teller.clone());
        let (give, given) = oneshot::channel();
        let connection = Client
            .v1()
            .on_receive_notification(
                async move |note: UntypedMessage, _| {
                    let (method, params) = note.into_parts();
                    let _ = noting.send(News::Noted { method, params });
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async move |wish: UntypedMessage, responder: Responder<Value>, _| {
                    let (method, params) = wish.into_parts();
                    let _ = asking.send(News::Asked { method, params, responder });
                    Ok(())
                },
                agent_client_protocol::on_receive_request!(),
            )
            .connect_with(Lines::new(outgoing, lines), async move |connection| {
                let _ = give.send(connection.clone());
                connection.incoming_closed().await;
                Ok(())
            });
        tokio::spawn(async move {
            let _ = connection.await;
            let _ = closing.send(News::Closed);
        });
        let connection = given.await.map_err(|_| io::Error::other("there is no connection"))?;
        Ok(Self { process, connection, incoming: Some(incoming), news, teller })
    }

    /// What comes next. Lines of the program are read only when the caller says so: one that is not
    /// listened to is left to wait.
    pub(super) async fn next(&mut self, may_read: bool) -> Next {
        let is_open = self.incoming.is_some();
        tokio::select! {
            biased;
            news = self.news.recv() => Next::News(Box::new(news.unwrap_or(News::Closed))),
            line = self.process.line(), if may_read && is_open => match line {
                Some(line) => self.pass_on(line),
                None => {
                    self.incoming = None;
                    Next::Ended
                }
            },
        }
    }

    fn pass_on(&mut self, line: String) -> Next {
        let text = line.trim();
        if text.is_empty() {
            return Next::Passed;
        }
        if !text.starts_with('{') || serde_json::from_str::<&RawValue>(text).is_err() {
            return Next::Garbled(line);
        }
        if let Some(incoming) = &self.incoming {
            let _ = incoming.send(Ok(text.to_owned()));
        }
        Next::Passed
    }

    /// Asks for something and waits for the answer; what comes in between is handed to `heard`.
    pub(super) async fn ask(
        &mut self,
        method: &str,
        params: impl Serialize,
        mut heard: impl FnMut(News),
    ) -> Result<Value, Unanswered> {
        let wish = UntypedMessage::new(method, params).map_err(Unanswered::Refused)?;
        let sent = self.connection.send_request(wish).block_task();
        let mut answer = std::pin::pin!(sent);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => {
                    // What was said before the answer has been said by now.
                    while let Ok(news) = self.news.try_recv() {
                        if matches!(news, News::Closed) {
                            // That is for whoever listens next.
                            let _ = self.teller.send(news);
                            break;
                        }
                        heard(news);
                    }
                    return answer.map_err(|error| match self.incoming {
                        None => Unanswered::Gone,
                        Some(_) => Unanswered::Refused(error),
                    });
                }
                next = self.next(true) => match next {
                    Next::News(news) => match *news {
                        News::Closed => return Err(Unanswered::Gone),
                        news @ (News::Noted { .. } | News::Asked { .. } | News::Answered { .. }) => {
                            heard(news);
                        }
                    },
                    Next::Passed | Next::Ended => {}
                    Next::Garbled(line) => return Err(Unanswered::Garbled(line)),
                },
            }
        }
    }

    /// Asks for something whose answer comes as news, after everything that is said before it.
    pub(super) fn prompt(&self, number: u64, params: impl Serialize) -> Result<(), Error> {
        let wish = UntypedMessage::new("session/prompt", params)?;
        let teller = self.teller.clone();
        self.connection.send_request(wish).on_receiving_result(async move |answer| {
            let _ = teller.send(News::Answered { number, answer });
            Ok(())
        })
    }

    /// Says something.
    pub(super) fn note(&self, method: &str, params: impl Serialize) {
        if let Ok(note) = UntypedMessage::new(method, params) {
            let _ = self.connection.send_notification(note);
        }
    }

    /// How the program ended.
    pub(super) async fn exit(self) -> Exit {
        self.process.exit().await
    }

    /// Ends the program and everything it started; with some time for last words, or without.
    pub(super) async fn end(self, at_once: bool) {
        if at_once { self.process.kill().await } else { self.process.end().await }
    }
}
