//! Speaking with the person in front of the editor.

use std::sync::Mutex;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ContentBlock, RequestPermissionOutcome, RequestPermissionRequest, SessionId,
    SessionNotification, SessionUpdate,
};
use atomic_acp::{Choices, Form, message};
use atomic_event::{Answer, Question};

/// The way to a session's client.
pub(super) struct Line {
    connection: ConnectionTo<Client>,
    session: SessionId,
    /// Whether the client can show forms.
    has_forms: bool,
    /// What was said as an answer.
    said: Mutex<String>,
}

/// What came of a question.
pub(super) enum Put {
    Answered(Answer),
    /// The client cannot show it.
    Impossible,
    /// Nobody gave an answer.
    Left,
}

impl Line {
    pub(super) fn new(connection: ConnectionTo<Client>, session: SessionId, forms: bool) -> Self {
        Self { connection, session, has_forms: forms, said: Mutex::default() }
    }

    /// Passes on what has happened. Who does not listen any more misses it.
    pub(super) fn show(&self, update: SessionUpdate) {
        if let SessionUpdate::AgentMessageChunk(chunk) = &update
            && let ContentBlock::Text(text) = &chunk.content
            && let Ok(mut said) = self.said.lock()
        {
            said.push_str(&text.text);
        }
        let told = SessionNotification::new(self.session.clone(), update);
        let _ = self.connection.send_notification(told);
    }

    pub(super) fn show_all(&self, updates: Vec<SessionUpdate>) {
        updates.into_iter().for_each(|update| self.show(update));
    }

    /// Says something of our own.
    pub(super) fn say(&self, text: &str) {
        self.show(message(text));
    }

    /// Everything that was said.
    pub(super) fn said(&self) -> String {
        self.said.lock().map(|said| said.trim().to_owned()).unwrap_or_default()
    }

    /// Puts a question. Dropping this takes it back.
    pub(super) async fn ask(&self, id: &str, question: &Question) -> Put {
        let answer = if self.has_forms {
            let form = Form(question);
            let sent = self.connection.send_request(form.request(&self.session));
            sent.block_task().await.ok().and_then(|response| form.answer(&response))
        } else if let Some(choices) = Choices::of(question) {
            let sent = self.connection.send_request(choices.request(&self.session, id));
            sent.block_task().await.ok().and_then(|response| choices.answer(&response))
        } else {
            return Put::Impossible;
        };
        answer.map_or(Put::Left, Put::Answered)
    }

    /// Asks for a permission; the name of the option that was chosen.
    pub(super) async fn permit(
        &self,
        ask: impl FnOnce(SessionId) -> RequestPermissionRequest,
    ) -> Option<String> {
        let sent = self.connection.send_request(ask(self.session.clone()));
        let outcome = sent.block_task().await.ok()?.outcome;
        let RequestPermissionOutcome::Selected(chosen) = outcome else { return None };
        Some(chosen.option_id.to_string())
    }
}
