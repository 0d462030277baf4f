//! One program and one model for all scenarios of a stage.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, ModelOffer, OpenRequest};
use atomic_backend::{Place, ServerState};
use atomic_event::BackendId;
use uuid::Uuid;

use crate::model::{ModelServer, Received, Script};

/// A model that plays many scripts; which one is meant is in what an agent is told to be.
#[derive(Debug)]
pub struct SharedModel {
    server: ModelServer,
    script: Mutex<Script>,
}

impl SharedModel {
    /// Starts it with what is said whatever is told, such as summaries.
    ///
    /// # Errors
    /// When the system gives it no port or no thread.
    pub fn start(always: Script) -> io::Result<Self> {
        Ok(Self { server: ModelServer::start(always.clone())?, script: Mutex::new(always) })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Everything it was sent.
    pub fn received(&self) -> Vec<Received> {
        self.server.requests()
    }

    /// A backend whose agents, and their helpers, play this script besides.
    pub fn playing(&self, script: Script, backend: Arc<dyn Backend>) -> Box<dyn Backend> {
        let tag = format!("(Scene {}.)", Uuid::new_v4());
        let mut all = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        all.turns.extend(script.turns.into_iter().map(|turn| turn.system(&tag)));
        self.server.replace(all.clone());
        Box::new(Tagged { backend, tag })
    }
}

/// A backend that puts a tag into everything an agent is told to be.
struct Tagged {
    backend: Arc<dyn Backend>,
    tag: String,
}

impl Tagged {
    fn tag(&self, prompt: &mut String) {
        prompt.push('\n');
        prompt.push_str(&self.tag);
    }
}

impl Backend for Tagged {
    fn id(&self) -> BackendId {
        self.backend.id()
    }

    fn reports_cost(&self) -> bool {
        self.backend.reports_cost()
    }

    fn knows_price(&self, model: Option<&str>) -> bool {
        self.backend.knows_price(model)
    }

    fn remembers(&self) -> bool {
        self.backend.remembers()
    }

    fn open(
        &self,
        mut request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        self.tag(&mut request.system_prompt);
        for helper in &mut request.helpers {
            self.tag(&mut helper.prompt);
        }
        self.backend.open(request)
    }

    fn models(&self, place: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        self.backend.models(place)
    }

    fn servers(&self, place: Place) -> BoxFuture<'_, Result<Vec<ServerState>, BackendError>> {
        self.backend.servers(place)
    }

    fn end_resting(&self) -> BoxFuture<'_, ()> {
        self.backend.end_resting()
    }
}
