//! What went wrong, told apart by what can be done about it.

use std::time::Duration;

use atomic_event::{BackendId, StepError};
use serde_json::Value;

use crate::BackendError;
use crate::words::shorten;

/// Long enough for a login to be renewed.
const A_MOMENT: Duration = Duration::from_secs(10);

/// Something that went wrong between the program and its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    /// What is said about it.
    pub(crate) words: String,
}

/// Kinds of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    RateLimited,
    Quota,
    Overloaded,
    Unavailable,
    Login,
    ContextOverflow,
    Refused,
    ModelUnknown,
    ConversationGone,
    Rejected,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::RateLimited,
        Self::Quota,
        Self::Overloaded,
        Self::Unavailable,
        Self::Login,
        Self::ContextOverflow,
        Self::Refused,
        Self::ModelUnknown,
        Self::ConversationGone,
        Self::Rejected,
    ];

    /// How long the program may try again. Most kinds do not pass by waiting; a moment is left for a
    /// login that the program renews by itself.
    pub(crate) fn patience(self, window: Duration) -> Duration {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Unavailable => window,
            Self::Quota
            | Self::Login
            | Self::ContextOverflow
            | Self::Refused
            | Self::ModelUnknown
            | Self::ConversationGone
            | Self::Rejected => window.min(A_MOMENT),
        }
    }

    /// The code of the error it leads to.
    pub(crate) fn code(self) -> &'static str {
        Trouble { kind: self, words: String::new() }.into_backend_error("").code()
    }
}

impl Trouble {
    /// As an error of this backend.
    pub(crate) fn into_error(self, backend: &str) -> StepError {
        self.into_backend_error(backend).into()
    }

    pub(crate) fn into_backend_error(self, backend: &str) -> BackendError {
        let (backend, message) = (BackendId::from(backend), shorten(&self.words));
        match self.kind {
            Kind::RateLimited => BackendError::RateLimited { backend, retry_after_secs: None },
            Kind::Quota => BackendError::QuotaUsedUp { backend, message },
            Kind::Overloaded => BackendError::Overloaded { backend },
            Kind::Unavailable => {
                // The program's own word for it helps nobody.
                let says_nothing = matches!(message.as_str(), "" | "unknown");
                let guess = "no connection, or it broke off".to_owned();
                let message = if says_nothing { guess } else { message };
                BackendError::Unavailable { backend, message }
            }
            Kind::Login => BackendError::LoginNeeded { backend },
            Kind::ContextOverflow => BackendError::ContextOverflow { backend },
            Kind::Refused => BackendError::Refused { backend, message },
            Kind::ModelUnknown => BackendError::ModelUnknown { backend, message },
            Kind::ConversationGone => {
                BackendError::ConversationGone { backend, conversation: message.into() }
            }
            Kind::Rejected => BackendError::Rejected { backend, message },
        }
    }
}

/// What a status and the words around it mean. The words decide where the status leaves it open.
pub(crate) fn kind(status: Option<u16>, words: &str, code: &str) -> Kind {
    // A limit of the rate alone is said to be just that, and no more.
    let said = format!("{words} {code}").to_lowercase();
    let said = said.replace("not your usage limit", "").replace("rate limit reached", "rate limit");
    let says = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if says(&["prompt is too long", "prompt_too_long", "context window", "maximum context"]) {
        return Kind::ContextOverflow;
    }
    if says(&["no conversation found"]) {
        return Kind::ConversationGone;
    }
    if says(&["usage limit", "limit reached", "credit balance", "quota", "billing"]) {
        return Kind::Quota;
    }
    match status {
        Some(429) => Kind::RateLimited,
        Some(529) => Kind::Overloaded,
        Some(401 | 403) => Kind::Login,
        Some(404) => Kind::ModelUnknown,
        Some(500..) => Kind::Unavailable,
        Some(_) => Kind::Rejected,
        None if says(&["not logged in", "/login", "authentication", "api key"]) => Kind::Login,
        None if says(&["overloaded"]) => Kind::Overloaded,
        None if says(&["rate_limit", "rate limit", "too many requests", "too_many_requests"]) => {
            Kind::RateLimited
        }
        None if says(&["model_not_found"]) => Kind::ModelUnknown,
        None if says(CONNECTION) => Kind::Unavailable,
        None => Kind::Rejected,
    }
}

/// How programs call it when nobody is at the other end, or nobody who speaks the language.
const CONNECTION: &[&str] = &[
    "econnrefused",
    "econnreset",
    "connection",
    "connect",
    "socket",
    "network",
    "timed out",
    "timeout",
    "fetch failed",
    "enotfound",
    "server_error",
    "parse json",
    "json parse",
    "malformed response",
    "unknown",
];

/// A text, or the text in the usual places of an object.
pub(crate) fn words_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let inner = ["message", "error", "type"].iter().find_map(|key| fields.get(*key));
            inner.map(words_of).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Trouble, kind};

    #[test]
    fn trouble_without_words_is_told_in_ours() {
        let told = |words: &str| {
            let trouble = Trouble { kind: Kind::Unavailable, words: words.to_owned() };
            trouble.into_backend_error("x").to_string()
        };
        for words in ["", "unknown"] {
            assert!(told(words).ends_with(": no connection, or it broke off"), "{}", told(words));
        }
        assert!(told("ECONNREFUSED").ends_with(": ECONNREFUSED"));
    }

    #[test]
    fn statuses_and_words_are_told_apart() {
        let table = [
            (Some(429), "rate_limit", Kind::RateLimited),
            (Some(429), "You have hit your usage limit", Kind::Quota),
            (Some(429), "Limiting requests (not your usage limit)", Kind::RateLimited),
            (Some(429), "Rate limit reached for requests", Kind::RateLimited),
            (None, "Rate limit reached", Kind::RateLimited),
            (Some(400), "Your credit balance is too low", Kind::Quota),
            (Some(400), "messages: bad thing", Kind::Rejected),
            (Some(400), "prompt is too long: 5 > 4", Kind::ContextOverflow),
            (Some(401), "invalid x-api-key", Kind::Login),
            (Some(403), "forbidden", Kind::Login),
            (Some(404), "model: claude-nope", Kind::ModelUnknown),
            (Some(500), "fake 500", Kind::Unavailable),
            (Some(529), "overloaded", Kind::Overloaded),
            (None, "Not logged in · Please run /login", Kind::Login),
            (None, "Unable to connect to API (ECONNREFUSED)", Kind::Unavailable),
            (None, "API Error: Failed to parse JSON", Kind::Unavailable),
            (None, "API returned an empty or malformed response (HTTP 200)", Kind::Unavailable),
            (None, "Too Many Requests", Kind::RateLimited),
            (None, "something else", Kind::Rejected),
        ];
        for (status, words, expected) in table {
            assert_eq!(kind(status, words, ""), expected, "{status:?} {words}");
        }
    }
}
