//! The sessions of one editor.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CloseSessionResponse, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsResponse, LoadSessionRequest, LoadSessionResponse, McpServer, NewSessionRequest,
    NewSessionResponse, PromptCapabilities, PromptRequest, PromptResponse, ResumeSessionRequest,
    ResumeSessionResponse, SessionCapabilities, SessionCloseCapabilities, SessionId, SessionInfo,
    SessionListCapabilities, SessionResumeCapabilities,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Client, Error};
use atomic_acp::{Prompt, message, user_message};
use atomic_backend::guard;
use tokio::task::JoinSet;

use super::ask::Line;
use super::record::{self, Note, Record};
use super::seat::{Busy, Mind, Order, Seat};
use super::{commands, start, trouble, turn};
use crate::args::AcpArgs;

/// Everything that is open.
pub(super) struct Desk {
    pub(super) args: AcpArgs,
    seats: Mutex<BTreeMap<String, Arc<Seat>>>,
    /// Whether the client can show forms.
    has_forms: OnceLock<bool>,
    turns: Mutex<JoinSet<()>>,
}

impl Desk {
    pub(super) fn new(args: &AcpArgs) -> Self {
        Self {
            args: args.clone(),
            seats: Mutex::default(),
            has_forms: OnceLock::new(),
            turns: Mutex::default(),
        }
    }

    /// Says who we are and what we can do.
    pub(super) fn introduce(&self, asked: &InitializeRequest) -> InitializeResponse {
        let forms = asked.client_capabilities.elicitation.as_ref();
        let _ = self.has_forms.set(forms.is_some_and(|forms| forms.form.is_some()));
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let able = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().embedded_context(true))
            .session_capabilities(sessions);
        let itself =
            Implementation::new("atomic", env!("CARGO_PKG_VERSION")).title("Atomic".to_owned());
        InitializeResponse::new(ProtocolVersion::V1).agent_info(itself).agent_capabilities(able)
    }

    fn line(&self, connection: &ConnectionTo<Client>, session: &SessionId) -> Line {
        let forms = self.has_forms.get().copied().unwrap_or(false);
        Line::new(connection.clone(), session.clone(), forms)
    }

    fn seat(&self, session: &SessionId) -> Option<Arc<Seat>> {
        self.seats.lock().ok()?.get(session.0.as_ref()).cloned()
    }

    fn put(&self, seat: Seat) {
        if let Ok(mut seats) = self.seats.lock() {
            seats.insert(seat.id.clone(), Arc::new(seat));
        }
    }

    /// Opens a session in a folder.
    pub(super) fn open(
        &self,
        asked: &NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        if let Err(error) = usable(&asked.cwd) {
            return responder.respond_with_error(error);
        }
        let id = uuid::Uuid::new_v4().to_string();
        let mind = Mind { notices: notices(&asked.mcp_servers), ..Mind::default() };
        // Nobody else knows the name yet. Where nothing can be kept, that is said below.
        let lock = Record::of(&id).lock().ok().flatten();
        let seat = Seat::new(&id, &asked.cwd, mind, lock);
        seat.note(Note::Opened { cwd: asked.cwd.clone() });
        self.put(seat);
        let session = SessionId::new(id);
        responder.respond(NewSessionResponse::new(session.clone()))?;
        self.line(connection, &session).show(commands::available(&asked.cwd));
        Ok(())
    }

    /// Opens a session again, and shows what was said in it.
    pub(super) fn load(
        &self,
        asked: &LoadSessionRequest,
        connection: &ConnectionTo<Client>,
    ) -> Result<LoadSessionResponse, Error> {
        let session = &asked.session_id;
        let notes = self.reopen(session, &asked.cwd, &asked.mcp_servers)?;
        let last = record::last_run(&notes).filter(|dir| start::can_go_on(dir));
        // The user is told below, and so means it.
        if let Some(mut mind) =
            self.seat(session).as_ref().and_then(|seat| seat.mind.try_lock().ok())
        {
            mind.unfinished.clone_from(&last);
        }
        let line = self.line(connection, session);
        for note in &notes {
            match note {
                Note::Prompted { text } => line.show(user_message(text)),
                Note::Said { text } => line.show(message(text)),
                Note::Opened { .. }
                | Note::Conversed { .. }
                | Note::Cleared
                | Note::Ran { .. }
                | Note::Unknown => {}
            }
        }
        if let Some(how) = last.and_then(|dir| start::how_it_stands(&dir)) {
            line.say(&how);
        }
        line.show(commands::available(&asked.cwd));
        Ok(LoadSessionResponse::new())
    }

    /// The same without showing anything.
    pub(super) fn resume(
        &self,
        asked: &ResumeSessionRequest,
        connection: &ConnectionTo<Client>,
    ) -> Result<ResumeSessionResponse, Error> {
        self.reopen(&asked.session_id, &asked.cwd, &asked.mcp_servers)?;
        self.line(connection, &asked.session_id).show(commands::available(&asked.cwd));
        Ok(ResumeSessionResponse::new())
    }

    /// Opens a session again: one that was opened by an editor, or any other of Atomic's.
    fn reopen(
        &self,
        session: &SessionId,
        folder: &Path,
        servers: &[McpServer],
    ) -> Result<Vec<Note>, Error> {
        usable(folder)?;
        let id = session.0.as_ref();
        if !record::is_id(id) {
            return Err(trouble::unknown(id));
        }
        let record = Record::of(id);
        if !record.exists() && !start::is_known(id, folder) {
            return Err(trouble::unknown(id));
        }
        let lock = match self.seat(session) {
            Some(seat) => {
                seat.can_be_loaded(folder)?;
                None
            }
            None => record.lock().map_err(|error| trouble::of_lock(id, &error))?,
        };
        let notes = match record.read().filter(|notes| !notes.is_empty()) {
            Some(notes) => notes,
            None => {
                let notes =
                    start::notes_of_session(id, folder).ok_or_else(|| trouble::unknown(id))?;
                for note in &notes {
                    record.add(note.clone()).map_err(|e| trouble::failed(e.to_string()))?;
                }
                notes
            }
        };
        if self.seat(session).is_some() {
            return Ok(notes);
        }
        // Whatever a killed program may have left; but a run of that name may be at work elsewhere.
        if !start::is_held(id, folder) {
            guard::end_survivors(id).map_err(|error| trouble::failed(error.to_string()))?;
        }
        let last = record::last_run(&notes);
        let is_titled = notes.iter().any(|note| matches!(note, Note::Prompted { .. }));
        let mut mind = Mind { notices: notices(servers), last, is_titled, ..Mind::default() };
        mind.chat.continue_from(&notes);
        self.put(Seat::new(id, folder, mind, lock));
        Ok(notes)
    }

    /// The sessions that can be loaded, the newest first.
    pub(super) fn list(&self, folder: Option<&Path>) -> ListSessionsResponse {
        let kept = record::all();
        let kept = kept.into_iter().filter(|kept| folder.is_none_or(|folder| kept.cwd == folder));
        let sessions = kept.map(|kept| {
            SessionInfo::new(kept.id, kept.cwd)
                .title(kept.title)
                .updated_at(kept.updated.to_string())
        });
        ListSessionsResponse::new(sessions.collect())
    }

    /// Answers a prompt. The answer comes later; other messages are taken in meanwhile.
    pub(super) fn prompt(
        self: &Arc<Self>,
        asked: &PromptRequest,
        responder: Responder<PromptResponse>,
        connection: &ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(seat) = self.seat(&asked.session_id) else {
            return responder.respond_with_error(trouble::not_open(&asked.session_id.0));
        };
        let orders = match seat.begin() {
            Ok(orders) => orders,
            Err(why) => return responder.respond_with_error(trouble::not_now(why)),
        };
        let prompt = Prompt::read(&asked.prompt);
        let line = self.line(connection, &asked.session_id);
        let desk = Arc::clone(self);
        self.spawn(async move {
            let busy = Busy(&seat);
            let cancellation = responder.cancellation();
            let cancelled = async {
                cancellation.cancelled().await;
                seat.tell(Order::Cancel);
                std::future::pending().await
            };
            let answered = tokio::select! {
                answered = turn::answer(&desk, &seat, &line, (prompt, orders)) => answered,
                never = cancelled => never,
            };
            // The next prompt may come as soon as this one is answered.
            drop(busy);
            let _ = responder.respond_with_result(answered.map(PromptResponse::new));
        });
        Ok(())
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Ok(mut turns) = self.turns.lock() {
            while turns.try_join_next().is_some() {}
            turns.spawn(work);
        }
    }

    pub(super) fn cancel(&self, session: &SessionId) {
        if let Some(seat) = self.seat(session) {
            seat.tell(Order::Cancel);
        }
    }

    /// Closes a session; it can be loaded again.
    pub(super) fn leave(
        &self,
        session: &SessionId,
        responder: Responder<CloseSessionResponse>,
    ) -> Result<(), Error> {
        let seat = self.seats.lock().ok().and_then(|mut seats| seats.remove(session.0.as_ref()));
        let Some(seat) = seat else {
            return responder.respond_with_error(trouble::not_open(&session.0));
        };
        seat.tell(Order::Cancel);
        self.spawn(async move {
            seat.mind.lock().await.chat.close().await;
            // Whoever hears the answer may open it.
            drop(seat);
            let _ = responder.respond(CloseSessionResponse::new());
        });
        Ok(())
    }

    /// Ends everything: runs are paused and saved, and every program is gone when this returns.
    pub(super) async fn close(&self) {
        let seats: Vec<Arc<Seat>> =
            self.seats.lock().map(|seats| seats.values().cloned().collect()).unwrap_or_default();
        for seat in &seats {
            seat.tell(Order::Close);
        }
        let turns = self.turns.lock().map(|mut turns| std::mem::take(&mut *turns));
        turns.unwrap_or_default().join_all().await;
        for seat in seats {
            seat.mind.lock().await.chat.close().await;
        }
    }
}

fn usable(folder: &Path) -> Result<(), Error> {
    if !folder.is_absolute() {
        return Err(trouble::wrong(format!("{} is no absolute path", folder.display())));
    }
    if !folder.is_dir() {
        return Err(trouble::wrong(format!("there is no folder {}", folder.display())));
    }
    Ok(())
}

/// What the editor offers and we do not pass on.
fn notices(servers: &[McpServer]) -> Vec<String> {
    if servers.is_empty() {
        return vec![];
    }
    let name = |server: &McpServer| {
        let told = serde_json::to_value(server).unwrap_or_default();
        told.get("name").and_then(|name| name.as_str()).unwrap_or("another").to_owned()
    };
    let names: Vec<String> = servers.iter().map(name).collect();
    vec![format!(
        "Note: the MCP servers of the editor are not passed on to agents ({}). Agents have those \
         that are set up for their program.",
        names.join(", ")
    )]
}
