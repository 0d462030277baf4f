//! What a conversation has the server do, one after the other: what was sent first has to get there
//! first, and nobody waits for a server that does not answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atomic_event::BackendId;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::ID;
use super::http::read;
use super::server::Server;
use super::talker::{News, Talker};
use super::wire::{About, Event};
use crate::BackendError;

/// How often a session that should be idle is looked at before a prompt is sent.
const LOOKS: u32 = 50;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// How many messages of a session are told again: more than one turn misses.
const MESSAGES: u32 = 100;

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
        since: String,
        body: Value,
    },
    /// Take back everything that was said since then.
    Forget {
        since: String,
    },
    /// Say again what may have been missed since this message.
    Resync {
        since: String,
    },
    /// Say whether the session has nothing to do, in the turn of this prompt.
    Look {
        prompt: String,
    },
    /// Say when everything before is done.
    Reach {
        reply: oneshot::Sender<()>,
    },
}

/// Where errands are handed in.
pub(super) struct Errands(mpsc::UnboundedSender<Errand>);

#[derive(Clone)]
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
                    let prompt = body["messageID"].as_str().unwrap_or_default().to_owned();
                    self.tell(News::NotSent { prompt, error });
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
            Errand::Summarise { since, body } => {
                // It takes as long as the model takes, and must not hold up what comes after.
                let runner = self.clone();
                tokio::spawn(async move { runner.summarise(since, &body).await });
            }
            Errand::Forget { since } => _ = self.forget(&since).await,
            Errand::Resync { since } => _ = self.resync(&since).await,
            Errand::Look { prompt } => {
                // A server that does not answer is noticed otherwise.
                let is_idle = self.is_busy().await.is_ok_and(|busy| !busy);
                self.tell(News::Looked { prompt, is_idle });
            }
            Errand::Reach { reply } => _ = reply.send(()),
        }
    }

    fn path(&self, what: &str) -> String {
        format!("/session/{}/{what}", self.session)
    }

    /// Whoever has left for another server is not told of this one.
    fn tell(&self, news: News) {
        if self.server.is_talking(&self.session, &self.talker) {
            let _ = self.talker.news.send(news);
        }
    }

    async fn summarise(&self, since: String, body: &Value) {
        let request = self.server.http.request(Method::POST, &self.path("summarize"));
        let made = read::<Value>(request.json(body).send().await).await;
        self.tell(News::Summarised { since, result: made.map(drop) });
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

    /// Waits until nothing is under way any more.
    async fn settle(&self) -> Result<(), BackendError> {
        for _ in 0..LOOKS {
            if !self.is_busy().await? {
                return Ok(());
            }
            self.abort().await?;
            tokio::time::sleep(LOOK).await;
        }
        let status = "it does not stop what it was doing before".to_owned();
        Err(BackendError::Exited { backend: BackendId::from(ID), status })
    }

    async fn forget(&self, since: &str) -> Result<(), BackendError> {
        self.settle().await?;
        for _ in 0..MESSAGES {
            let last = self.get(&format!("{}?limit=1", self.path("message"))).await?;
            let id = last[0]["info"]["id"].as_str().unwrap_or_default();
            if id < since {
                break;
            }
            let path = format!("{}/{id}", self.path("message"));
            self.server.http.delete(&path, &self.folder).await?;
        }
        Ok(())
    }

    /// A second prompt during a turn would be answered together with the first.
    async fn prompt(&self, body: &Value, is_busy: bool) -> Result<(), BackendError> {
        if is_busy {
            self.settle().await?;
        }
        self.post(&self.path("prompt_async"), body).await.map(drop)
    }

    /// Tells again what the session and its helpers hold, what they ask, and that it is idle when it
    /// is. Helpers come first: what the session says of them is understood only then.
    async fn resync(&self, since: &str) -> Result<(), BackendError> {
        let messages = self.messages(&self.session, since).await;
        let mut sessions = vec![self.session.clone()];
        for helper in helpers(&messages) {
            let told = self.get(&format!("/session/{helper}")).await?;
            // From now on its events come to us.
            self.server.owner(&helper).await;
            self.say("session.created", &helper, json!({ "info": told }));
            self.say_messages(&helper, &self.messages(&helper, since).await);
            sessions.push(helper);
        }
        self.say_messages(&self.session, &messages);
        for (path, kind) in [("/question", "question.asked"), ("/permission", "permission.asked")] {
            let open = self.get(path).await?;
            for asked in list(&open) {
                let whose = asked["sessionID"].as_str().unwrap_or_default();
                if sessions.iter().any(|session| session == whose) {
                    self.say(kind, whose, asked.clone());
                }
            }
        }
        if !self.is_busy().await? {
            self.say("session.idle", &self.session, json!({}));
        }
        Ok(())
    }

    /// The messages of a session since one of them.
    async fn messages(&self, session: &str, since: &str) -> Vec<Value> {
        // The list of a session with structured answers cannot be read; its last message can.
        for limit in [MESSAGES, 1] {
            let path = format!("/session/{session}/message?limit={limit}");
            if let Ok(told) = self.get(&path).await {
                let is_new = |it: &&Value| it["info"]["id"].as_str().is_some_and(|id| id >= since);
                return list(&told).filter(is_new).cloned().collect();
            }
        }
        vec![]
    }

    fn say_messages(&self, session: &str, messages: &[Value]) {
        for message in messages {
            self.say("message.updated", session, json!({ "info": message["info"] }));
            for part in list(&message["parts"]) {
                self.say("message.part.updated", session, json!({ "part": part }));
            }
        }
    }

    async fn get(&self, path: &str) -> Result<Value, BackendError> {
        self.server.http.get(path, &self.folder).await
    }

    fn say(&self, kind: &'static str, session: &str, mut about: Value) {
        about["sessionID"] = json!(session);
        if let Ok(about) = serde_json::from_value::<About>(about) {
            self.tell(News::Event(Box::new(Event { kind, about })));
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The sessions of helpers that were started in these messages.
fn helpers(messages: &[Value]) -> Vec<String> {
    let parts = messages.iter().flat_map(|message| list(&message["parts"]));
    let sessions = parts.filter_map(|part| part["state"]["metadata"]["sessionId"].as_str());
    sessions.map(str::to_owned).collect()
}
