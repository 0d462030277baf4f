//! What went wrong, from errors and from words. No IO.

use agent_client_protocol::Error;
use serde_json::Value;

use crate::BackendError;
use crate::trouble::{Kind, Trouble, kind};
use crate::words::shorten;

/// The user has to log in.
pub(super) const LOGIN_NEEDED: i32 = -32000;

/// There is no such thing, such as a session.
pub(super) const NOT_FOUND: i32 = -32002;

/// What an agent says no with.
pub(super) fn of_error(error: &Error) -> Trouble {
    if i32::from(error.code) == LOGIN_NEEDED {
        return Trouble::new(Kind::Login, error.message.clone());
    }
    let mut trouble = of_words(&words(error));
    trouble.kind = told_kind(error).unwrap_or(trouble.kind);
    trouble
}

/// The kind of trouble, where the agent tells it by our own code, as `atomic acp` does.
fn told_kind(error: &Error) -> Option<Kind> {
    let code = error.data.as_ref()?.get("code")?.as_str()?;
    Kind::ALL.into_iter().find(|kind| kind.code() == code)
}

/// The words of an error, with what it says besides, where that is a text.
pub(super) fn words(error: &Error) -> String {
    let message = error.message.trim_start_matches("Internal error: ");
    let told =
        |data: &Value| Some(data.as_str().or_else(|| data.get("details")?.as_str())?.to_owned());
    let details = error.data.as_ref().and_then(told);
    match details {
        Some(details) if !message.contains(&details) => format!("{message}: {details}"),
        _ => message.to_owned(),
    }
}

/// What words mean. A status may be among them.
pub(super) fn of_words(words: &str) -> Trouble {
    let lower = words.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let status = status(words);
    let mut kind = kind(status, words, "");
    if kind == Kind::Rejected {
        // What only agents say.
        let sayings: [(Kind, &[&str]); 3] = [
            (Kind::ContextOverflow, &["prompt budget", "context length", "context exceeds"]),
            (Kind::Unavailable, &["failed to get response", "retried"]),
            (Kind::Login, &["api key", "api-key", "unauthorized", "log in"]),
        ];
        let meant = sayings.into_iter().find(|(_, parts)| says(parts));
        kind = meant.map_or(kind, |(meant, _)| meant);
    }
    Trouble::new(kind, words).with_status(status)
}

/// The model will not do it.
pub(super) fn refused(words: &str) -> Trouble {
    Trouble::new(Kind::Refused, words)
}

/// A status of HTTP: `(HTTP 404)`, or the first word, or what the last error was.
fn status(words: &str) -> Option<u16> {
    let number = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|status| (400..600).contains(status))
    };
    let after = |mark: &str| words.split_once(mark).and_then(|(_, rest)| number(rest));
    after("(HTTP ").or_else(|| after("Last error: ")).or_else(|| number(words))
}

/// What could not be asked for, as an error of this backend.
pub(super) fn refusal(backend: &str, error: &Error) -> BackendError {
    of_error(error).into_backend_error(backend)
}

/// A line that is not the protocol.
pub(super) fn garbled(backend: &str, line: &str) -> BackendError {
    BackendError::Garbled { backend: backend.into(), line: shorten(line) }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::Error;
    use serde_json::json;

    use super::{of_error, of_words};
    use crate::trouble::Kind;

    #[test]
    fn words_of_agents_are_told_apart() {
        for (words, kind) in [
            ("400 scripted failure 400", Kind::Rejected),
            (
                "Authentication failed with provider at http://x/v1 (HTTP 401).\n  Check",
                Kind::Login,
            ),
            ("Model 'm' not found on provider at http://x/v1 (HTTP 404).", Kind::ModelUnknown),
            ("429 Rate limit reached for requests.", Kind::RateLimited),
            ("429 You exceeded your current quota.", Kind::Quota),
            ("400 This model's maximum context length is 128000 tokens.", Kind::ContextOverflow),
            ("Request exceeds the model's prompt budget after reserving", Kind::ContextOverflow),
            ("Failed to get response from the AI model; retried 5 times", Kind::Unavailable),
            (
                "Failed to get response; retried 5 times Last error: 529 Overloaded",
                Kind::Overloaded,
            ),
            ("Failed to get response; retried 5 times Last error: 500 x", Kind::Unavailable),
            ("Session too large to compact - context exceeds model limit", Kind::ContextOverflow),
            ("Incorrect API key provided", Kind::Login),
            ("invalid x-api-key", Kind::Login),
            ("something else", Kind::Rejected),
        ] {
            assert_eq!(of_words(words).kind, kind, "{words}");
        }
    }

    #[test]
    fn errors_of_agents_are_told_apart() {
        assert_eq!(of_error(&Error::new(-32000, "Authentication required")).kind, Kind::Login);
        let error = Error::new(-32603, "Internal error: Incorrect API key provided");
        assert_eq!(of_error(&error.data(json!({ "service": "session" }))).kind, Kind::Login);
        let error = Error::new(-32603, "Internal error").data(json!({ "details": "Overloaded" }));
        assert_eq!(of_error(&error).kind, Kind::Overloaded);
        // One of us says what it is, whatever the words are.
        for (code, kind) in [
            ("rate_limited", Kind::RateLimited),
            ("context_overflow", Kind::ContextOverflow),
            ("conversation_gone", Kind::ConversationGone),
            ("its own", Kind::Rejected),
        ] {
            let error = Error::new(-32603, "it went wrong").data(json!({ "code": code }));
            assert_eq!(of_error(&error).kind, kind, "{code}");
        }
    }
}
