//! What every agent program can do for us.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use atomic_event::{
    AgentName, Answer, BackendId, ConversationId, Payer, QuestionId, StepError, TurnEvent, Usage,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::login::{Credential, Pay};
use crate::{BackendError, ToolRules};

/// A future that can be held behind `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The events of one turn, in order; [`TurnEvent::Ended`] is the last one.
pub type Turn = mpsc::Receiver<TurnEvent>;

/// A program that answers prompts and edits files.
///
/// Implementations hold configuration and what all conversations share. All of them pass
/// `atomic_testing::conformance::backend`.
pub trait Backend: Send + Sync {
    /// The name used in settings, facts and on the screen.
    fn id(&self) -> BackendId;

    /// Whether the program states what its turns cost.
    fn reports_cost(&self) -> bool;

    /// Whether the cost of turns with a model can be told, by the program or by the
    /// [price table](crate::prices). Where it cannot, a limit on money is refused.
    fn knows_price(&self, _model: Option<&str>) -> bool {
        self.reports_cost()
    }

    /// Whether a conversation that is continued knows what was said in it.
    fn remembers(&self) -> bool {
        true
    }

    /// The credentials for model calls with this model, the one that pays first, as far as they are
    /// known before the program is started. None where nothing is paid or nobody is logged in. The
    /// error says what is wrong with the user's settings.
    fn credentials(&self, _: &Place, _model: Option<&str>) -> Result<Vec<Credential>, String> {
        Ok(vec![])
    }

    /// Whether model calls need a credential that can be chosen.
    fn is_paid(&self) -> bool {
        false
    }

    /// The credential that was chosen; the others are withheld from the program.
    fn pay(&self) -> Option<Pay> {
        None
    }

    /// Whether the program reports, before the first prompt, that this credential pays. A login in a
    /// keychain is found by the program alone. Opening fails where it reports another one.
    fn reports_payer(&self, _: Pay) -> bool {
        false
    }

    /// The same backend with another choice among the credentials.
    fn with_pay(&self, _: Pay) -> Option<Arc<dyn Backend>> {
        None
    }

    /// Opens a conversation, or continues the one named in `request.resume`. When it returns, the
    /// conversation's id is known and nothing has been sent.
    fn open(
        &self,
        request: OpenRequest,
    ) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>>;

    /// The models that can be asked for in a place; none where any name will do.
    fn models(&self, _place: Place) -> BoxFuture<'_, Result<Vec<ModelOffer>, BackendError>> {
        Box::pin(async { Ok(vec![]) })
    }

    /// The MCP servers a conversation has in a place, and how they are.
    fn servers(&self, _place: Place) -> BoxFuture<'_, Result<Vec<ServerState>, BackendError>> {
        Box::pin(async { Ok(vec![]) })
    }

    /// Ends every program that [rests](Conversation::rest). When it returns, they are gone.
    fn end_resting(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Turns that share context.
///
/// Dropping a conversation ends whatever it started, as [`Conversation::close`] does, without
/// waiting for it.
pub trait Conversation: Send + Sync {
    /// The program's own id, by which the conversation can be continued later.
    fn id(&self) -> ConversationId;

    /// The payer that the program has reported since it was started, where that is another one than
    /// the first of [`Backend::credentials`].
    fn payer(&self) -> Option<Payer> {
        None
    }

    /// Sends one prompt. One turn at a time.
    fn send(&self, prompt: String) -> BoxFuture<'_, Result<Turn, BackendError>>;

    /// Answers a question the current turn asked.
    fn answer(
        &self,
        question: QuestionId,
        answer: Answer,
    ) -> BoxFuture<'_, Result<(), BackendError>>;

    /// Interrupts the current turn, if there is one; it then ends as
    /// [`Stop::Interrupted`](atomic_event::Stop::Interrupted).
    fn interrupt(&self) -> BoxFuture<'_, ()>;

    /// Lets the program summarise the conversation, so that it fills less of its window; returns what
    /// that has cost, where it is known.
    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>>;

    /// Uses another model from the next turn on.
    fn set_model(&self, _model: String) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    /// Ends the conversation. When it returns, every process it started is gone.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;

    /// Leaves the conversation for now: somebody may soon continue it. A program that is slow to
    /// start may be kept running for that until [`Backend::end_resting`].
    fn rest(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.close()
    }
}

/// Who is to be talked to, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The persona.
    pub agent: AgentName,
    /// The persona's prompt.
    pub system_prompt: String,
    /// The model, when one was chosen.
    pub model: Option<String>,
    /// The folder the agent works in.
    pub workspace: PathBuf,
    /// The conversation to continue.
    pub resume: Option<ConversationId>,
    /// Whether the agent may ask the user.
    pub questions: bool,
    /// What it may use.
    pub tools: ToolRules,
    /// What the final text has to be, as JSON Schema. The backend asks for it in the way its program
    /// knows; whether it got it is for the caller to check.
    pub schema: Option<Value>,
    /// The agents it may start as helpers, besides those its program finds itself.
    pub helpers: Vec<Persona>,
    /// What it takes over from the user and from the project.
    pub inherit: Inherit,
    /// Marks every process of this conversation: `ATOMIC_STEP=<run>/<step>/<attempt>`.
    pub marker: String,
}

impl OpenRequest {
    /// A new conversation with nothing special about it.
    pub fn new(agent: impl Into<AgentName>, workspace: PathBuf, marker: String) -> Self {
        Self {
            agent: agent.into(),
            system_prompt: String::new(),
            model: None,
            workspace,
            resume: None,
            questions: false,
            tools: ToolRules::default(),
            schema: None,
            helpers: vec![],
            inherit: Inherit::None,
            marker,
        }
    }
}

/// An agent that another one may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persona {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it is told to be.
    pub prompt: String,
    /// What it may use.
    pub tools: ToolRules,
    /// The model it wants.
    pub model: Option<String>,
}

/// What a conversation takes over from the settings of its program: hooks, MCP servers, agents,
/// rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inherit {
    /// Everything the program finds by itself.
    All,
    /// What belongs to the project, and nothing of the user's.
    Project,
    /// Nothing.
    #[default]
    None,
}

/// Where a conversation would take place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder the agent would work in.
    pub workspace: PathBuf,
    /// What it would take over from the user and from the project.
    pub inherit: Inherit,
}

/// An MCP server, as the program sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerState {
    /// What it is called.
    pub name: String,
    /// How it is, in the program's own word, such as `connected` or `failed`.
    pub status: String,
    /// What is wrong with it, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A model that can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelOffer {
    /// What to ask for.
    pub name: String,
    /// What the program says about it.
    pub about: String,
}
