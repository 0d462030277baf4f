//! What the program's failures mean.

use atomic_event::{BackendId, Outage, Wait};

use super::ID;
use super::wire::{About, Failure};
use crate::trouble::{self, Kind, Trouble};
use crate::{BackendError, retry_time};

/// Answers break off.
pub(super) fn broken_off() -> BackendError {
    BackendError::Unavailable {
        backend: BackendId::from(ID),
        message: "its answers break off without a reason".to_owned(),
        outage: Outage::default(),
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
    let told = retry_time::in_headers(&error.data.response_headers, trouble::now_ms());
    Trouble::new(kind, words).with_status(status).with_retry_at(told)
}

/// The longest that the program waits by itself between two tries, in milliseconds, and then some.
const LONGEST_OWN_WAIT: u64 = 60_000;

/// The program tries again by itself.
pub(super) struct Retried {
    pub(super) trouble: Trouble,
    pub(super) wait: Wait,
}

/// Why the program tries again, and when.
pub(super) fn retry_of(about: &About) -> Retried {
    let status = &about.status;
    let now = jiff::Timestamp::now().as_millisecond();
    let delay_ms = u64::try_from(status.next.saturating_sub(now)).unwrap_or(0);
    // The program does not say which status the provider answered with. It never waits this long
    // unless it is told to.
    let said = trouble::kind(None, &status.message, "");
    let kind = if said != Kind::Rejected {
        said
    } else if delay_ms > LONGEST_OWN_WAIT {
        Kind::RateLimited
    } else {
        Kind::Unavailable
    };
    let wait =
        Wait { code: kind.code().to_owned(), attempt: status.attempt, delay_ms: Some(delay_ms) };
    let trouble = Trouble::new(kind, status.message.clone());
    // The words may name a later time than the program keeps to.
    let next = trouble.outage.retry_at_ms.map_or(status.next, |told| told.max(status.next));
    Retried { trouble: trouble.with_retry_at(Some(next)), wait }
}
