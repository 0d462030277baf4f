//! What the program's failures mean.

use atomic_event::BackendId;

use super::ID;
use super::wire::Failure;
use crate::BackendError;
use crate::trouble::{self, Kind, Trouble};

/// Answers break off.
pub(super) fn broken_off() -> BackendError {
    BackendError::Unavailable {
        backend: BackendId::from(ID),
        message: "its answers break off without a reason".to_owned(),
    }
}

/// A turn ended without an answer.
pub(super) fn nothing_done() -> BackendError {
    let status = "it ended the turn without an answer".to_owned();
    BackendError::Exited { backend: BackendId::from(ID), status }
}

/// What an error of the program means.
pub(super) fn trouble_of(error: &Failure) -> Trouble {
    let words = trouble::words_of(&error.data.message);
    let body = error.data.response_body.as_str().unwrap_or_default();
    let status = error.data.status_code;
    let kind = match error.name.as_str() {
        "ContextOverflowError" => Kind::ContextOverflow,
        "ContentFilterError" => Kind::Refused,
        "ProviderAuthError" => Kind::Login,
        _ if words.contains("Model not found") || words.contains("Provider not found") => {
            Kind::ModelUnknown
        }
        _ if status.is_none() && words.contains("parsing failed") => Kind::Unavailable,
        _ => trouble::kind(status, &words, body),
    };
    Trouble { kind, words }
}
