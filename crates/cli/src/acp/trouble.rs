//! What goes wrong, as the protocol has it.

use agent_client_protocol::Error;
use atomic_backend::BackendError;
use atomic_event::StepError;
use atomic_session::LockError;
use serde_json::json;

use crate::failure::Failure;

/// What the protocol calls something that is not there.
const NOT_FOUND: i32 = -32_002;
/// What it calls a login that is needed.
const LOGIN_NEEDED: i32 = -32_000;
const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;
const INTERNAL: i32 = -32_603;

/// There is no such session.
pub(super) fn unknown(session: &str) -> Error {
    let message = format!("there is no session `{session}`; atomic sessions lists those there are");
    Error::new(NOT_FOUND, message)
}

/// A session that is not open here.
pub(super) fn not_open(session: &str) -> Error {
    let message = format!("the session `{session}` is not open; open or load one first");
    Error::new(INVALID_PARAMS, message)
}

/// Something makes no sense.
pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::new(INVALID_PARAMS, message.into())
}

/// It is not the time for it.
pub(super) fn not_now(message: impl Into<String>) -> Error {
    Error::new(INVALID_REQUEST, message.into())
}

/// Somebody else may have it.
pub(super) fn of_lock(session: &str, error: &LockError) -> Error {
    match error {
        LockError::Held { holder } => not_now(format!(
            "the session `{session}` is still open ({holder}); close it there first"
        )),
        LockError::Io(error) => failed(format!("the session `{session}` cannot be kept: {error}")),
    }
}

/// It cannot be done.
pub(super) fn failed(message: impl Into<String>) -> Error {
    Error::new(INTERNAL, message.into())
}

/// The same of something we know.
pub(super) fn of_failure(failure: &Failure) -> Error {
    failed(failure.to_string())
}

/// The agent program could not be used.
pub(super) fn of_backend(error: BackendError) -> Error {
    of_step(&error.into())
}

/// A turn has failed.
pub(super) fn of_step(error: &StepError) -> Error {
    let code = if error.code == "login_needed" { LOGIN_NEEDED } else { INTERNAL };
    Error::new(code, error.message.clone()).data(json!({ "code": error.code }))
}
