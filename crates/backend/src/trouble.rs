//! What went wrong, told apart by what can be done about it.

use std::time::Duration;

use atomic_event::{BackendId, Outage, StepError};
use serde_json::Value;

use crate::BackendError;
use crate::retry_time;
use crate::words::shorten;

/// How long trouble with a provider may last inside a turn. Afterwards the turn fails, and its caller
/// waits for the provider without a program.
pub const PROVIDER_PATIENCE: Duration = Duration::from_secs(120);

/// Maximum delay of a retry that is awaited inside a turn.
pub(crate) const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Long enough for a login to be renewed.
const A_MOMENT: Duration = Duration::from_secs(10);

/// Something that went wrong between the program and its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    /// The words of the error.
    pub(crate) words: String,
    /// The status, and when the provider accepts requests again, as far as the program says so.
    pub(crate) outage: Outage,
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

    /// How long the program may try again inside a turn, of the `most` that any trouble may last. Most
    /// kinds do not pass by waiting; a moment is left for a login that the program renews by itself.
    pub(crate) fn patience(self, most: Duration) -> Duration {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Unavailable => most,
            Self::Quota
            | Self::Login
            | Self::ContextOverflow
            | Self::Refused
            | Self::ModelUnknown
            | Self::ConversationGone
            | Self::Rejected => most.min(A_MOMENT),
        }
    }

    /// The code of the error it leads to.
    pub(crate) fn code(self) -> &'static str {
        Trouble::new(self, "").into_backend_error("").code()
    }
}

impl Trouble {
    /// Trouble of which only the words are known. They may name the time of the next try.
    pub(crate) fn new(kind: Kind, words: impl Into<String>) -> Self {
        let words = words.into();
        let retry_at_ms = retry_time::in_words(&words, now_ms());
        Self { kind, words, outage: Outage { status: None, retry_at_ms } }
    }

    /// Adds the status that the provider answered with.
    #[must_use]
    pub(crate) fn with_status(mut self, status: Option<u16>) -> Self {
        self.outage.status = status;
        self
    }

    /// Adds the time at which the provider accepts requests again, in milliseconds since 1970.
    #[must_use]
    pub(crate) fn with_retry_at(mut self, retry_at_ms: Option<i64>) -> Self {
        self.outage.retry_at_ms = retry_at_ms.or(self.outage.retry_at_ms);
        self
    }

    /// Returns the time until the next retry, where the program states it.
    pub(crate) fn retry_in(&self, now_ms: i64) -> Option<Duration> {
        let left = self.outage.retry_at_ms?.saturating_sub(now_ms);
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    /// As an error of this backend.
    pub(crate) fn into_error(self, backend: &str) -> StepError {
        self.into_error_at(backend, now_ms())
    }

    /// The same at a time, in milliseconds since 1970.
    pub(crate) fn into_error_at(self, backend: &str, now_ms: i64) -> StepError {
        self.into_backend_error_at(backend, now_ms).into()
    }

    pub(crate) fn into_backend_error(self, backend: &str) -> BackendError {
        self.into_backend_error_at(backend, now_ms())
    }

    fn into_backend_error_at(self, backend: &str, now_ms: i64) -> BackendError {
        let (backend, message) = (BackendId::from(backend), shorten(&self.words));
        // A time that is over was that of a try that has failed since.
        let retry_at_ms = self.outage.retry_at_ms.filter(|at| *at > now_ms);
        let outage = Outage { retry_at_ms, ..self.outage };
        match self.kind {
            Kind::RateLimited => BackendError::RateLimited { backend, outage },
            Kind::Quota => BackendError::QuotaUsedUp { backend, message, outage },
            Kind::Overloaded => BackendError::Overloaded { backend, outage },
            Kind::Unavailable => {
                // The program's own word for it helps nobody.
                let says_nothing = matches!(message.as_str(), "" | "unknown");
                let guess = "no connection, or it broke off".to_owned();
                let message = if says_nothing { guess } else { message };
                BackendError::Unavailable { backend, message, outage }
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

/// The time, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// What a status and the words around it mean. The words decide where the status leaves it open; that of a
/// server with trouble does not, whatever it says about quotas.
pub(crate) fn kind(status: Option<u16>, words: &str, code: &str) -> Kind {
    match status {
        Some(529) => return Kind::Overloaded,
        Some(500..) => return Kind::Unavailable,
        _ => {}
    }
    // A limit of the rate alone is said to be just that, and no more.
    let said = format!("{words} {code}").to_lowercase();
    let said = said.replace("not your usage limit", "").replace("rate limit reached", "rate limit");
    let says = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if status == Some(413) || says(OVERFLOW) {
        return Kind::ContextOverflow;
    }
    if says(&["no conversation found"]) {
        return Kind::ConversationGone;
    }
    if matches!(status, None | Some(400 | 402 | 403 | 429)) && says(QUOTA) {
        return Kind::Quota;
    }
    match status {
        Some(429) => Kind::RateLimited,
        Some(401 | 403) => Kind::Login,
        Some(404) => Kind::ModelUnknown,
        Some(_) => Kind::Rejected,
        None if says(&["not logged in", "/login", "authentication", "api key"]) => Kind::Login,
        None if says(&["overloaded"]) => Kind::Overloaded,
        None if says(&["rate_limit", "rate limit", "too many requests", "too_many_requests"]) => {
            Kind::RateLimited
        }
        None if says(&["model_not_found"]) => Kind::ModelUnknown,
        None if says(CONNECTION) || says_nothing(words, code) => Kind::Unavailable,
        None => Kind::Rejected,
    }
}

/// Words and codes for a conversation that no longer fits into the model.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt as too long",
    "prompt_too_long",
    "context window",
    "maximum context",
    "context_length_exceeded",
];

/// Words and codes for a limit of the account.
const QUOTA: &[&str] =
    &["usage limit", "limit reached", "regain access", "credit balance", "quota", "billing"];

/// Whether a program has no words for what happened. A broken connection is the usual cause.
fn says_nothing(words: &str, code: &str) -> bool {
    let is_unknown = |text: &str| text.trim().eq_ignore_ascii_case("unknown");
    is_unknown(words) || words.trim().is_empty() && is_unknown(code)
}

/// Words for a connection that failed or broke off, and for an answer that was not the provider's. A bare
/// `connect` or `timeout` is not among them: a rejected parameter can have that name.
const CONNECTION: &[&str] = &[
    "econnaborted",
    "econnrefused",
    "econnreset",
    "ehostunreach",
    "enetunreach",
    "enotfound",
    "epipe",
    "etimedout",
    "eai_again",
    "unable to connect",
    "cannot connect",
    "could not connect",
    "failed to connect",
    "connect error",
    "error trying to connect",
    "connect timeout",
    "connection aborted",
    "connection closed",
    "connection error",
    "connection failed",
    "connection lost",
    "connection refused",
    "connection reset",
    "connection timed out",
    "connection timeout",
    "connection to the api",
    "connection was",
    "connection_failed",
    "body from connection",
    "no connection",
    "socket connection",
    "socket hang up",
    "network connection",
    "network error",
    "network is unreachable",
    "operation timed out",
    "request timed out",
    "request timeout",
    "gateway timeout",
    "stream timed out",
    "fetch failed",
    "server_error",
    "parse json",
    "json parse",
    "malformed response",
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
    use atomic_event::Outage;

    use super::{Kind, Trouble, kind, now_ms};

    #[test]
    fn trouble_without_words_is_told_in_ours() {
        let told = |words: &str| {
            let trouble = Trouble::new(Kind::Unavailable, words);
            trouble.into_backend_error("x").to_string()
        };
        for words in ["", "unknown"] {
            assert!(told(words).ends_with(": no connection, or it broke off"), "{}", told(words));
        }
        assert!(told("ECONNREFUSED").ends_with(": ECONNREFUSED"));
    }

    #[test]
    fn waiting_helps_where_the_provider_says_until_when() {
        let error = |kind, words: &str, at| {
            Trouble::new(kind, words)
                .with_status(Some(429))
                .with_retry_at(at)
                .into_error("x")
                .outage
        };
        let outage = |retry_at_ms| Some(Outage { status: Some(429), retry_at_ms });
        let (past, later) = (now_ms() - 1_000, now_ms() + 3_600_000);
        assert_eq!(error(Kind::RateLimited, "", Some(later)), outage(Some(later)));
        assert_eq!(error(Kind::RateLimited, "", Some(past)), outage(None));
        assert_eq!(error(Kind::RateLimited, "", None), outage(None));
        assert_eq!(error(Kind::Quota, "", Some(later)), outage(Some(later)));
        assert_eq!(error(Kind::Quota, "", Some(past)), None);
        assert_eq!(
            error(Kind::Quota, "usage limit reached|4000000000", None),
            outage(Some(4_000_000_000_000))
        );
        assert_eq!(error(Kind::Quota, "You exceeded your quota", None), None);
        assert_eq!(error(Kind::Rejected, "", Some(later)), None);
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
            (Some(400), "context_length_exceeded", Kind::ContextOverflow),
            (Some(413), "Request exceeds the maximum size", Kind::ContextOverflow),
            (None, "The provider rejected the prompt as too long", Kind::ContextOverflow),
            (Some(400), "You will regain access on 2026-12-01 at 00:00 UTC", Kind::Quota),
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
            (Some(503), "quota service is unavailable", Kind::Unavailable),
            (Some(500), "maximum context cache exhausted", Kind::Unavailable),
            (Some(529), "billing is overloaded", Kind::Overloaded),
            (Some(402), "billing", Kind::Quota),
            (Some(401), "no quota for this key", Kind::Login),
            (Some(404), "quota of an unknown model", Kind::ModelUnknown),
            (None, "You exceeded your current quota", Kind::Quota),
            (None, "unknown parameter: `connect`", Kind::Rejected),
            (None, "invalid value for timeout", Kind::Rejected),
            (None, "Unknown", Kind::Unavailable),
            (None, "Request timed out.", Kind::Unavailable),
        ];
        for (status, words, expected) in table {
            assert_eq!(kind(status, words, ""), expected, "{status:?} {words}");
        }
    }
}
