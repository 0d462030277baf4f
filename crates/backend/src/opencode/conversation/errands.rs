//! What a conversation has the server do, one after the other: what was sent first has to get there
//! first, and nobody waits for a server that does not answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::BackendError;
use crate::opencode::http::read;
use crate::opencode::server::Server;
use crate::opencode::talker::{News, Talker};
use crate::opencode::wire::{About, Event};

/// How often a session that should be idle is looked at before a prompt is sent.
const LOOKS: u32 = 20;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// Something the server is to do.
pub(super) enum Errand {
    /// Take a prompt; the session may still be busy with what was stopped before.
    Prompt {
        body: Value,
        is_busy: bool,
    },
    Abort,
    Answer {
        request: String,
        answers: Value,
    },
    Allow {
        request: String,
    },
    Summarise {
        body: Value,
    },
    /// Say again what may have been missed.
    Resync,
    /// Say whether the session has nothing to do.
    Look,
    /// Say when everything before is done.
    Reach {
        reply: oneshot::Sender<()>,
    },
}

/// Where errands are handed in.
pub(super) struct Errands(mpsc::UnboundedSender<Errand>);

struct Runner {
    server: Arc<Server>,
    session: String,
    talker: Arc<Talker>,
    folder: PathBuf,
}

impl Errands {
    pub(super) fn start(server: &Arc<Server>, session: &str, talker: &Arc<Talker>) -> Self {
        let (sender, errands) = mpsc::unbounded_channel();
        let runner = Runner {
            server: Arc::clone(server),
            session: session.to_owned(),
            talker: Arc::clone(talker),
            folder: talker.request.workspace.clone(),
        };
        tokio::spawn(runner.run(errands));
        Self(sender)
    }

    pub(super) fn run(&self, errand: Errand) {
        let _ = self.0.send(errand);
    }

    /// Stops what the session does, and waits for it.
    pub(super) async fn abort_and_wait(&self, limit: Duration) {
        let (reply, reached) = oneshot::channel();
        self.run(Errand::Abort);
        self.run(Errand::Reach { reply });
        let _ = timeout(limit, reached).await;
    }
}

impl Runner {
    async fn run(self, mut errands: mpsc::UnboundedReceiver<Errand>) {
        while let Some(errand) = errands.recv().await {
            self.errand(errand).await;
        }
    }

    async fn errand(&self, errand: Errand) {
        match errand {
            Errand::Prompt { body, is_busy } => {
                if let Err(error) = self.prompt(&body, is_busy).await {
                    self.tell(News::NotSent(error));
                }
            }
            Errand::Abort => _ = self.abort().await,
            Errand::Answer { request, answers } => {
                let body = json!({ "answers": answers });
                let _ = self.post(&format!("/question/{request}/reply"), &body).await;
            }
            Errand::Allow { request } => {
                let body = json!({ "reply": "once" });
                let _ = self.post(&format!("/permission/{request}/reply"), &body).await;
            }
            Errand::Summarise { body } => {
                // It takes as long as the model takes, and must not hold up what comes after.
                let (http, talker) = (self.server.http.clone(), Arc::clone(&self.talker));
                let path = self.path("summarize");
                tokio::spawn(async move {
                    let sent = http.request(Method::POST, &path).json(&body).send().await;
                    let made = read::<Value>(sent).await.map(drop);
                    let _ = talker.news.send(News::Summarised(made));
                });
            }
            Errand::Resync => _ = self.resync().await,
            Errand::Look => {
                // A server that does not answer is noticed otherwise.
                let is_idle = self.is_busy().await.is_ok_and(|busy| !busy);
                self.tell(News::Looked { is_idle });
            }
            Errand::Reach { reply } => _ = reply.send(()),
        }
    }

    fn path(&self, what: &str) -> String {
        format!("/session/{}/{what}", self.session)
    }

    fn tell(&self, news: News) {
        let _ = self.talker.news.send(news);
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, BackendError> {
        self.server.http.post(path, &self.folder, body).await
    }

    async fn abort(&self) -> Result<Value, BackendError> {
        self.post(&self.path("abort"), &json!({})).await
    }

    async fn is_busy(&self) -> Result<bool, BackendError> {
        let busy: Value = self.server.http.get("/session/status", &self.folder).await?;
        Ok(busy.get(&self.session).is_some())
    }

    /// A second prompt during a turn would be answered together with the first.
    async fn prompt(&self, body: &Value, is_busy: bool) -> Result<(), BackendError> {
        if is_busy {
            for _ in 0..LOOKS {
                if !self.is_busy().await? {
                    break;
                }
                self.abort().await?;
                tokio::time::sleep(LOOK).await;
            }
        }
        self.post(&self.path("prompt_async"), body).await.map(drop)
    }

    /// Tells again what the session holds, questions included, and that it is idle when it is.
    async fn resync(&self) -> Result<(), BackendError> {
        // The list of a session with structured answers cannot be read; its last message can.
        let mut messages = Value::Null;
        for limit in [20, 1] {
            let path = format!("{}?limit={limit}", self.path("message"));
            if let Ok(told) = self.server.http.get(&path, &self.folder).await {
                messages = told;
                break;
            }
        }
        for message in messages.as_array().into_iter().flatten() {
            self.say("message.updated", json!({ "info": message["info"] }));
            for part in message["parts"].as_array().into_iter().flatten() {
                self.say("message.part.updated", json!({ "part": part }));
            }
        }
        let open: Value = self.server.http.get("/question", &self.folder).await?;
        for question in open.as_array().into_iter().flatten() {
            if question["sessionID"] == json!(self.session) {
                self.say("question.asked", question.clone());
            }
        }
        if !self.is_busy().await? {
            self.say("session.idle", json!({}));
        }
        Ok(())
    }

    fn say(&self, kind: &'static str, mut about: Value) {
        about["sessionID"] = json!(self.session);
        if let Ok(about) = serde_json::from_value::<About>(about) {
            self.tell(News::Event(Box::new(Event { kind, about })));
        }
    }
}
