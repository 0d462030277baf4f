//! Events about the provider of a backend: waits for it, and who pays it. They belong to a backend,
//! not to a step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BackendId, Moment, PayerFound, StepId};

/// An event about the provider of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProviderEvent {
    /// A backend waits for its provider.
    ProviderWaiting(ProviderWaiting),
    /// The provider of a backend answers again.
    ProviderBack(ProviderBack),
    /// The payer of a backend was found out.
    PayerFound(PayerFound),
}

/// The provider of a backend refused a turn, or could not be reached. No step of the backend starts
/// before `until`.
///
/// Recorded once for every step that waits. The step stays open: its attempt has not failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderWaiting {
    /// The backend that waits.
    pub backend: BackendId,
    /// The code of the error, such as `rate_limited`.
    pub code: String,
    /// The HTTP status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The error for people.
    pub message: String,
    /// The first trouble since the backend last answered.
    pub since: Moment,
    /// When one turn is tried again.
    pub until: Moment,
    /// The step whose turn was refused.
    pub step: StepId,
}

/// The provider of a backend answers again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderBack {
    /// The backend that waited.
    pub backend: BackendId,
    /// The time since the first trouble, in milliseconds.
    pub waited_ms: u64,
}
