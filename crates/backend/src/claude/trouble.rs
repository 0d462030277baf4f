//! Why a turn failed, from its result.

use super::wire::TurnResult;
use crate::trouble::{Kind, Trouble, kind};

/// Why a turn failed, from its result and the last trouble before it.
pub(super) fn of_result(result: &TurnResult, before: Option<Trouble>) -> Trouble {
    let words = result.words();
    let reason = result.terminal_reason.as_deref().unwrap_or_default();
    let refused = result.stop_reason.as_deref() == Some("refusal");
    let kind = match reason {
        "prompt_too_long" => Kind::ContextOverflow,
        _ if refused => Kind::Refused,
        _ => kind(result.api_error_status, &words, reason),
    };
    match (kind, before) {
        // The result does not always say what the retries before it were about.
        (Kind::Rejected, Some(before)) if result.api_error_status.is_none() => before,
        (kind, _) => Trouble::new(kind, words).with_status(result.api_error_status),
    }
}
