//! The program's own messages. Whatever is not known is passed over: new versions say more.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One event of the stream of all folders.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'a> {
    #[serde(borrow)]
    pub(super) payload: Payload<'a>,
}

/// What happened; how it is written depends on its type.
#[derive(Debug, Deserialize)]
pub(super) struct Payload<'a> {
    pub(super) r#type: &'a str,
    #[serde(borrow, default)]
    pub(super) properties: Option<&'a RawValue>,
}

/// Types of events that are read; most of the stream is something else.
const READ: [&str; 11] = [
    "session.created",
    "session.status",
    "session.idle",
    "session.error",
    "session.compacted",
    "message.updated",
    "message.part.updated",
    "message.part.delta",
    "todo.updated",
    "question.asked",
    "permission.asked",
];

impl Payload<'_> {
    /// The event, when it is one that matters.
    pub(super) fn event(&self) -> Option<Event> {
        let kind = READ.iter().find(|known| **known == self.r#type)?;
        let about = serde_json::from_str(self.properties?.get()).ok()?;
        Some(Event { kind, about })
    }
}

/// An event that matters.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: &'static str,
    pub(super) about: About,
}

/// Everything an event of any of the types can tell.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct About {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    /// Of a question or a permission.
    pub(super) id: String,
    /// A session or a message.
    pub(super) info: Info,
    pub(super) part: Part,
    #[serde(rename = "messageID")]
    pub(super) message: String,
    #[serde(rename = "partID")]
    pub(super) part_id: String,
    pub(super) delta: String,
    pub(super) status: Status,
    pub(super) error: Option<Failure>,
    pub(super) todos: Value,
    pub(super) questions: Value,
}

/// A session or a message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Info {
    pub(super) id: String,
    #[serde(rename = "parentID")]
    pub(super) parent: Option<String>,
    pub(super) title: String,
    pub(super) role: String,
    pub(super) agent: String,
    pub(super) finish: Option<String>,
    pub(super) error: Option<Failure>,
    /// The answer in the form that was asked for.
    pub(super) structured: Option<Value>,
    /// Of a message, whether it is a summary; of a session, something else.
    pub(super) summary: Value,
}

/// A part of a message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Part {
    pub(super) id: String,
    #[serde(rename = "messageID")]
    pub(super) message: String,
    pub(super) r#type: String,
    pub(super) text: String,
    pub(super) time: Times,
    pub(super) tool: String,
    #[serde(rename = "callID")]
    pub(super) call: String,
    pub(super) state: ToolState,
    pub(super) tokens: Tokens,
    pub(super) cost: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Times {
    pub(super) end: Option<Value>,
}

/// How far the use of a tool is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToolState {
    pub(super) status: String,
    pub(super) input: Value,
    pub(super) metadata: Metadata,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    /// With what the shell's command ended.
    pub(super) exit: Option<i64>,
    /// The helper's session.
    pub(super) session_id: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) reasoning: u64,
    pub(super) cache: Cache,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Cache {
    pub(super) read: u64,
    pub(super) write: u64,
}

impl Tokens {
    /// Everything the model has read.
    pub(super) fn read(&self) -> u64 {
        self.input.saturating_add(self.cache.read).saturating_add(self.cache.write)
    }

    /// Everything it has written.
    pub(super) fn written(&self) -> u64 {
        self.output.saturating_add(self.reasoning)
    }
}

/// Whether a session is busy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Status {
    pub(super) r#type: String,
    pub(super) attempt: u64,
    pub(super) message: String,
    /// When it tries again, in milliseconds since 1970.
    pub(super) next: i64,
}

/// An error of the program's own kinds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    pub(super) name: String,
    pub(super) data: FailureData,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct FailureData {
    pub(super) message: Value,
    pub(super) status_code: Option<u16>,
    pub(super) response_headers: Value,
    pub(super) response_body: Value,
}

/// A session, as the program tells it when it is asked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Session {
    pub(super) id: String,
    #[serde(rename = "parentID")]
    pub(super) parent: Option<String>,
    pub(super) agent: Option<String>,
}

/// A prompt.
#[derive(Debug, Serialize)]
pub(super) struct Prompt<'a> {
    #[serde(rename = "messageID")]
    pub(super) message: String,
    pub(super) parts: [PromptPart<'a>; 1],
    pub(super) agent: &'a str,
    pub(super) model: Model,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) system: &'a str,
    /// What is offered to the model, all of it: it replaces what was said before.
    pub(super) tools: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<Value>,
}

#[derive(Debug, Serialize)]
pub(super) struct PromptPart<'a> {
    pub(super) r#type: &'static str,
    pub(super) text: &'a str,
}

/// A model, with whose it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Model {
    #[serde(rename = "providerID")]
    pub(super) provider: String,
    #[serde(rename = "modelID")]
    pub(super) name: String,
}

impl Model {
    /// Reads `provider/model`; the model's name may have slashes of its own.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (provider, name) = text.split_once('/')?;
        let whole = !provider.is_empty() && !name.is_empty();
        whole.then(|| Self { provider: provider.to_owned(), name: name.to_owned() })
    }
}
