//! The APIs of OpenAI, which other providers speak, too.

mod completions;
mod responses;

use serde_json::{Value, json};

use super::answer::Answer;
use super::script::ApiError;
use super::wire::{self, OVERLOADED, new_id};

pub(super) use completions::Completions;
pub(super) use responses::Responses;

/// When every answer was made, in seconds since 1970: programs want to be told and do not care.
const CREATED: u64 = 1_700_000_000;

/// OpenAI's type and code for a status.
fn words_of(status: u16) -> (&'static str, Option<&'static str>) {
    match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        402 => ("insufficient_quota", Some("insufficient_quota")),
        403 => ("request_forbidden", None),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", None),
        _ => ("server_error", None),
    }
}

/// The word of a script is both type and code, as in `insufficient_quota`.
fn refuse(error: &ApiError) -> Answer {
    let of_status = words_of(error.status);
    let (kind, code) = error.kind.as_deref().map_or(of_status, |word| (word, Some(word)));
    with_id(wire::refusal(error, &error_of(kind, code, &wire::sentence(error))))
}

fn error_of(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

fn overloaded() -> (u16, Value) {
    (503, error_of("server_error", None, OVERLOADED))
}

fn with_id(mut answer: Answer) -> Answer {
    answer.headers.push(("x-request-id".into(), new_id("req")));
    answer
}
