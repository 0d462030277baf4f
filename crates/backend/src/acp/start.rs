//! Starting the program, for the first time and again, and opening the session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ElicitationCapabilities, ElicitationFormCapabilities, Implementation,
    InitializeRequest, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
    ResumeSessionRequest, SetSessionConfigOptionRequest,
};
use serde::Serialize;
use serde_json::Value;

use super::about::{About, Continues, PROTOCOL};
use super::line::{Line, Unanswered};
use super::program::{AcpProgram, gone};
use super::spending::Spending;
use super::trouble::{NOT_FOUND, garbled, of_error, refusal, words};
use super::{Left, Shared, Talker};
use crate::process::Exit;
use crate::serving::{Presence, lock};
use crate::trouble::Kind;
use crate::turn::AgentProgram as _;
use crate::words::shorten;
use crate::{BackendError, ModelOffer, OpenRequest};

/// How long the program may take until it is ready; many at once on a small machine take long.
const READY: Duration = Duration::from_secs(120);

/// How many pages of sessions are looked through.
const PAGES: usize = 50;

impl AcpProgram {
    /// Takes the session for itself, and starts the program.
    pub(super) async fn enter_and_launch(&mut self) -> Result<(), BackendError> {
        if let Some(resume) = &self.request.resume {
            self.session = resume.as_str().to_owned();
            self.enter().await?;
        }
        let launched = self.launch().await;
        if launched.is_err() {
            self.shared.roster.leave(&self.held_as);
        } else if self.request.resume.is_none() {
            self.enter_anew().await?;
        }
        launched
    }

    async fn enter(&mut self) -> Result<(), BackendError> {
        self.enter_as(self.session.clone()).await?;
        let known = lock(&self.shared.left).get(&self.session).cloned();
        let Left { instructions, spending } = known.unwrap_or_default();
        self.instructions = instructions;
        self.decoder.spending = spending;
        Ok(())
    }

    /// A session that was just made is nobody else's and knows nothing, whatever it is called: some
    /// agents count theirs from one in every program.
    async fn enter_anew(&mut self) -> Result<(), BackendError> {
        lock(&self.shared.left).remove(&self.session);
        if self.enter_as(self.session.clone()).await.is_err() {
            self.enter_as(format!("{} {}", self.session, uuid::Uuid::new_v4())).await?;
        }
        Ok(())
    }

    async fn enter_as(&mut self, name: String) -> Result<(), BackendError> {
        let talker = Arc::new(Talker(Arc::clone(&self.presence)));
        self.shared.roster.enter(&name, &talker, self.shared.id.as_str()).await?;
        self.held_as = name;
        Ok(())
    }

    /// The models that can be asked for. No prompt is sent.
    pub(super) async fn models(
        shared: Arc<Shared>,
        request: OpenRequest,
    ) -> Result<Vec<ModelOffer>, BackendError> {
        let presence = Arc::new(Presence::new(&request.marker));
        let mut program = Self::new(shared, request, presence);
        program.launch().await?;
        let models = program.about.model().map(|(_, models)| models);
        if let Some(line) = program.line.take() {
            line.end(false).await;
        }
        Ok(models.unwrap_or_default())
    }

    /// Starts the program and opens the session. Some that start at the same time for the first
    /// time are in each other's way, so that one that ends at once is started again.
    pub(super) async fn launch(&mut self) -> Result<(), BackendError> {
        match self.launch_once().await {
            Err(BackendError::Exited { .. }) => self.launch_once().await,
            launched => launched,
        }
    }

    async fn launch_once(&mut self) -> Result<(), BackendError> {
        let shared = Arc::clone(&self.shared);
        let _place = shared.starts.acquire().await;
        let started = Line::start(&shared.guard, &shared.job(&self.request)).await;
        let mut line = started.map_err(|error| BackendError::Misconfigured(error.to_string()))?;
        let opened = tokio::time::timeout(READY, self.open_session(&mut line)).await;
        let problem = match opened {
            Ok(Ok(())) => {
                self.line = Some(line);
                return Ok(());
            }
            Ok(Err(problem)) => problem,
            Err(_) => NotOpened::Error(BackendError::Misconfigured(format!(
                "{}: the program did not answer within {} s; does it speak ACP?",
                shared.id,
                READY.as_secs()
            ))),
        };
        match problem {
            NotOpened::Gone => {
                let exit = line.exit().await;
                Err(self.why_it_ended(&exit))
            }
            NotOpened::Error(error) => {
                line.end(true).await;
                Err(error)
            }
        }
    }

    async fn open_session(&mut self, line: &mut Line) -> Result<(), NotOpened> {
        let answer = self.ask(line, "initialize", self.introduction()).await;
        if let Some(other) = About::other_version(&answer) {
            return Err(NotOpened::Error(BackendError::Misconfigured(format!(
                "{}: the program speaks version {other} of ACP, and version {PROTOCOL} is spoken \
                 here; use another version of the program",
                self.shared.id
            ))));
        }
        let answer = answer.map_err(|no| self.not_opened(no))?;
        self.about = About::read(&answer);
        self.decoder.begin_program(self.about.who);
        let continued = match self.session.is_empty() {
            true => None,
            false => Some(self.continued(line).await),
        };
        let opened = match continued {
            None => self.made(line).await?,
            // It ended before it had kept anything: there is nothing to lose.
            Some(Err(NotOpened::Error(BackendError::ConversationGone { .. })))
                if !self.is_saved =>
            {
                self.made(line).await?
            }
            Some(continued) => continued?,
        };
        self.about.learn_options(&opened);
        self.set_up(line).await
    }

    async fn made(&mut self, line: &mut Line) -> Result<Value, NotOpened> {
        let wish = NewSessionRequest::new(self.request.workspace.clone());
        let answer = self.ask(line, "session/new", wish).await;
        let answer = answer.map_err(|no| self.not_opened(no))?;
        let Some(id) = answer.get("sessionId").and_then(Value::as_str) else {
            let line = shorten(&answer.to_string());
            let backend = self.shared.id.clone();
            return Err(NotOpened::Error(BackendError::Garbled { backend, line }));
        };
        id.clone_into(&mut self.session);
        self.decoder.spending = Spending::of_a_new_session();
        Ok(answer)
    }

    async fn continued(&mut self, line: &mut Line) -> Result<Value, NotOpened> {
        let (session, cwd) = (self.session.clone(), self.request.workspace.clone());
        let answer = match self.about.continues {
            Some(Continues::Resume) => {
                let wish = ResumeSessionRequest::new(session, cwd);
                self.ask(line, "session/resume", wish).await
            }
            Some(Continues::Load) => {
                let wish = LoadSessionRequest::new(session, cwd);
                self.ask(line, "session/load", wish).await
            }
            None => {
                // Whoever begins a new one hears why.
                self.shared.has_lost.store(true, Ordering::Relaxed);
                return Err(NotOpened::Error(gone(&self.shared.id, &self.session)));
            }
        };
        match answer {
            Err(Unanswered::Refused(error)) if self.is_unknown(line, &error).await => {
                Err(NotOpened::Error(gone(&self.shared.id, &self.session)))
            }
            answer => answer.map_err(|no| self.not_opened(no)),
        }
    }

    /// Whether the agent refuses to continue because it does not know the session. Some say just
    /// that something has failed; what they list tells.
    async fn is_unknown(&mut self, line: &mut Line, error: &agent_client_protocol::Error) -> bool {
        let kind = of_error(error).kind;
        if i32::from(error.code) == NOT_FOUND || kind == Kind::ConversationGone {
            return true;
        }
        if !self.about.lists || kind == Kind::Login {
            return false;
        }
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES {
            let mut wish = ListSessionsRequest::new();
            wish.cursor = cursor;
            let Ok(listed) = self.ask(line, "session/list", wish).await else { return false };
            let sessions = listed.get("sessions").and_then(Value::as_array);
            let is_it = |session: &Value| {
                session.get("sessionId").and_then(Value::as_str) == Some(&self.session)
            };
            if sessions.into_iter().flatten().any(is_it) {
                return false;
            }
            cursor = listed.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                return true;
            }
        }
        false
    }

    /// The model, and that nothing is asked.
    async fn set_up(&mut self, line: &mut Line) -> Result<(), NotOpened> {
        if let Some((id, value)) = self.about.allow_all()
            && self.request.tools.allow_everything()
        {
            let wish =
                SetSessionConfigOptionRequest::new(self.session.clone(), id.to_owned(), value);
            // One that does not take it asks, and is answered.
            if let Ok(told) = self.ask(line, "session/set_config_option", wish).await {
                self.about.learn_options(&told);
            }
        }
        match self.request.model.clone() {
            Some(model) => self.choose(line, model).await.map_err(NotOpened::Error),
            None => Ok(()),
        }
    }

    /// Chooses a model for the next turns.
    pub(super) async fn choose_model(&mut self, model: String) -> Result<(), BackendError> {
        let Some(mut line) = self.line.take() else { return Ok(()) };
        let chosen = tokio::time::timeout(READY, self.choose(&mut line, model)).await;
        // The process is kept. An answer that comes later is ignored.
        self.line = Some(line);
        chosen.unwrap_or_else(|_| Err(self.misused("the agent does not answer")))
    }

    async fn choose(&mut self, line: &mut Line, model: String) -> Result<(), BackendError> {
        let unknown = |message: String| BackendError::ModelUnknown {
            backend: self.shared.id.clone(),
            message,
        };
        let option = match self.about.model() {
            Some((_, offers))
                if !offers.is_empty() && !offers.iter().any(|offer| offer.name == model) =>
            {
                let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
                let names = shorten(&names.join(", "));
                return Err(unknown(format!("the agent has no `{model}`, but {names}")));
            }
            Some((option, _)) => option.to_owned(),
            // Not all that have such a setting list it.
            None => "model".to_owned(),
        };
        let wish = SetSessionConfigOptionRequest::new(self.session.clone(), option, model.as_str());
        match self.ask(line, "session/set_config_option", wish).await {
            Ok(told) => {
                self.about.learn_options(&told);
                self.request.model = Some(model);
                Ok(())
            }
            Err(Unanswered::Refused(error)) => {
                let backend = self.shared.id.clone();
                let message = format!("{model}: {}", words(&error));
                Err(BackendError::ModelUnknown { backend, message })
            }
            Err(Unanswered::Garbled(text)) => Err(garbled(self.shared.id.as_str(), &text)),
            Err(Unanswered::Gone) => Err(BackendError::Exited {
                backend: self.shared.id.clone(),
                status: "it ended when its model was chosen".to_owned(),
            }),
        }
    }

    /// Asks for something, and keeps of what comes in between what is about the session: what was
    /// said in it is told again when it is loaded, and is known.
    async fn ask(
        &mut self,
        line: &mut Line,
        method: &str,
        params: impl Serialize,
    ) -> Result<Value, Unanswered> {
        let about = &mut self.about;
        line.ask(method, params, |news| about.learn(&news)).await
    }

    /// Who we are, and what we can do for an agent: nothing it cannot do itself, but ask.
    fn introduction(&self) -> InitializeRequest {
        let mut capabilities = ClientCapabilities::new();
        if self.request.questions {
            let forms = ElicitationCapabilities::new().form(ElicitationFormCapabilities::new());
            capabilities = capabilities.elicitation(forms);
        }
        let us =
            Implementation::new("atomic", env!("CARGO_PKG_VERSION")).title("Atomic".to_owned());
        InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(capabilities)
            .client_info(us)
    }

    fn not_opened(&self, no: Unanswered) -> NotOpened {
        let backend = self.shared.id.as_str();
        match no {
            Unanswered::Gone => NotOpened::Gone,
            Unanswered::Garbled(line) => NotOpened::Error(garbled(backend, &line)),
            Unanswered::Refused(error) => NotOpened::Error(refusal(backend, &error)),
        }
    }

    /// Why a program that is gone is gone.
    pub(super) fn why_it_ended(&self, exit: &Exit) -> BackendError {
        let backend = self.shared.id.clone();
        if matches!(exit.code, Some(126 | 127)) {
            let program = self.shared.config.program.clone();
            return BackendError::NotInstalled { backend, program };
        }
        let mut status = exit.status.clone();
        if !exit.complaint.is_empty() {
            status = format!("{status}: {}", shorten(&exit.complaint));
        }
        BackendError::Exited { backend, status }
    }
}

/// Why a session could not be opened.
enum NotOpened {
    /// The program has ended.
    Gone,
    Error(BackendError),
}
