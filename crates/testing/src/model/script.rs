//! What the model is to say, and when.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// A list of turns; the first that fits a request is used.
///
/// Read from TOML with [`Script::parse`], or built.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// What is said to a request that no turn fits; a sentence that says so if there is none.
    pub default: Option<String>,
    /// The turns, in order.
    #[serde(rename = "turn")]
    pub turns: Vec<Turn>,
}

/// When something is said, and what.
///
/// Everything that is given must fit; a turn without conditions fits every request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// What the turn is called where requests are listed.
    #[serde(default)]
    pub name: Option<String>,
    /// All of these are in what the model is told to be: the system prompt, or a message of the
    /// role `system`.
    #[serde(default)]
    pub system: Vec<String>,
    /// All of these are in the last text of the user.
    #[serde(default)]
    pub user: Vec<String>,
    /// None of these is in the last text of the user.
    #[serde(default)]
    pub absent: Vec<String>,
    /// This is in the name of the model.
    #[serde(default)]
    pub model: Option<String>,
    /// All of these tools are offered.
    #[serde(default)]
    pub tools: Vec<String>,
    /// No tool is offered.
    #[serde(default)]
    pub no_tools: bool,
    /// Each of these is in some text of the user.
    #[serde(default)]
    pub history: Vec<String>,
    /// All of these are in the newest results of tools.
    #[serde(default)]
    pub result: Vec<String>,
    /// The step the first reply is for; the turn fits no earlier one.
    #[serde(default)]
    pub step: usize,
    /// Whether the reply is to be streamed.
    #[serde(default)]
    pub stream: Option<bool>,
    /// What is said, by step: by how often the model spoke since the last text of the user.
    #[serde(rename = "reply", deserialize_with = "super::read::replies")]
    pub replies: Vec<Reply>,
}

/// What is said at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// What it consists of.
    pub actions: Vec<Action>,
    /// Why the model stopped, in the words of any API; without it, what follows from the actions.
    pub stop: Option<String>,
    /// What it cost; what is not given is estimated.
    pub usage: Usage,
    /// How long the server waits before it answers.
    pub delay: Duration,
    /// How many characters a piece of a streamed text has; without it, all of them.
    pub chunk: Option<NonZeroUsize>,
    /// How long the server waits between two pieces.
    pub pause: Duration,
    /// Headers of the HTTP response. `{epoch+70}`, `{date+70}` and `{time+70}` in a value are replaced by
    /// the time in 70 seconds: in seconds since 1970, as a date of HTTP, and by RFC 3339.
    pub headers: BTreeMap<String, String>,
    /// How it ends.
    pub ending: Ending,
}

/// A part of a reply. `{workspace}`, `{user}` and `{result}` in texts are replaced.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Says a text.
    Say(String),
    /// Thinks a text.
    Think(String),
    /// Calls a tool.
    Call {
        /// The tool's name.
        tool: String,
        /// What it is called with.
        input: Value,
    },
}

/// How many tokens a reply cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Read, without what came from the cache.
    pub input: Option<u64>,
    /// Written.
    pub output: Option<u64>,
    /// Read from the cache.
    pub cache_read: Option<u64>,
    /// Put into the cache.
    pub cache_write: Option<u64>,
}

/// How a reply ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Ending {
    /// In good order.
    #[default]
    Finish,
    /// Never, after everything but the end was sent.
    Hang,
    /// It does not begin: the request is refused.
    Error(ApiError),
    /// The connection, or what is sent over it, is broken.
    Broken(Break),
}

/// How a provider says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status, 400 to 599.
    pub status: u16,
    /// The provider's word for it; without it, the one that belongs to the status.
    pub kind: Option<String>,
    /// The sentence.
    pub message: Option<String>,
    /// In how many seconds the program should try again.
    pub retry_after: Option<u64>,
}

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Break {
    /// The connection is closed without an answer.
    Close,
    /// The connection is closed in the middle of the answer.
    Cut,
    /// What is sent is not in the format of the API.
    Garbage,
    /// The format is right, and the JSON in it is not.
    BadJson,
    /// The stream says that something went wrong.
    ErrorEvent,
    /// The answer ends in good order and does not say why the model stopped.
    NoFinish,
    /// The answer is empty.
    Empty,
    /// The answer is a page of something in between.
    Html,
}

impl Script {
    /// A script without turns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a turn after the others.
    #[must_use]
    pub fn with(mut self, turn: Turn) -> Self {
        self.turns.push(turn);
        self
    }
}

impl Turn {
    /// Wants a text in the last text of the user.
    #[must_use]
    pub fn user(mut self, text: &str) -> Self {
        self.user.push(text.to_owned());
        self
    }

    /// Wants a text in what the model is told to be.
    #[must_use]
    pub fn system(mut self, text: &str) -> Self {
        self.system.push(text.to_owned());
        self
    }

    /// Adds the reply of the next step.
    #[must_use]
    pub fn reply(mut self, reply: Reply) -> Self {
        self.replies.push(reply);
        self
    }
}

impl Reply {
    /// A text.
    pub fn say(text: &str) -> Self {
        Self::default().and(Action::Say(text.to_owned()))
    }

    /// A call of a tool.
    pub fn call(tool: &str, input: Value) -> Self {
        Self::default().and(Action::Call { tool: tool.to_owned(), input })
    }

    /// A refusal with the word and the sentence that belong to the status.
    pub fn error(status: u16) -> Self {
        let error = ApiError { status, kind: None, message: None, retry_after: None };
        Self { ending: Ending::Error(error), ..Self::default() }
    }

    /// A text that is broken like this.
    pub fn broken(how: Break) -> Self {
        Self { ending: Ending::Broken(how), ..Self::say("This reply is broken.") }
    }

    /// Adds a header to the HTTP response.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a part.
    #[must_use]
    pub fn and(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Whether it may be said again when the script has nothing more to say.
    pub(super) fn is_repeatable(&self) -> bool {
        let is_text = |action: &Action| matches!(action, Action::Say(_));
        let calls = |action: &Action| matches!(action, Action::Call { .. });
        self.ending == Ending::Finish
            && self.actions.iter().any(is_text)
            && !self.actions.iter().any(calls)
    }
}
