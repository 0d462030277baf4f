//! What can go wrong with a backend, sorted by what the caller can do about it.

use std::path::PathBuf;

use atomic_event::{BackendId, ConversationId, Outage, StepError};

/// Why a conversation could not be opened or a turn not be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// The program is not installed.
    #[error("{backend}: the program {program} was not found; install it or add it to PATH")]
    NotInstalled {
        /// Which backend.
        backend: BackendId,
        /// What was looked for.
        program: PathBuf,
    },
    /// The program is too old.
    #[error("{backend}: {program} is version {found}, and {needed} or later is needed; update it")]
    TooOld {
        /// Which backend.
        backend: BackendId,
        /// The program.
        program: PathBuf,
        /// Its version.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// The program wants the user to log in.
    #[error("{backend} needs you to log in; run it once by hand and do so")]
    LoginNeeded {
        /// Which backend.
        backend: BackendId,
    },
    /// The provider asks us to wait.
    #[error("{backend}: the provider limits the rate of requests{}", status(*.outage))]
    RateLimited {
        /// Which backend.
        backend: BackendId,
        /// The status, and when requests are accepted again.
        outage: Outage,
    },
    /// What was paid for is used up.
    #[error("{backend}: the quota of this account is used up: {message}")]
    QuotaUsedUp {
        /// Which backend.
        backend: BackendId,
        /// What the provider says, such as when it is renewed.
        message: String,
        /// The status, and when the quota is renewed. Without that time waiting does not help.
        outage: Outage,
    },
    /// The provider cannot be reached, or fails.
    #[error("{backend}: the provider cannot be reached or is out of order: {message}")]
    Unavailable {
        /// Which backend.
        backend: BackendId,
        /// What happened.
        message: String,
        /// The status, unless the connection itself failed.
        outage: Outage,
    },
    /// The model will not do what it was asked to.
    #[error("{backend}: the model refuses the request: {message}")]
    Refused {
        /// Which backend.
        backend: BackendId,
        /// What it says.
        message: String,
    },
    /// There is no such model, or not for this account.
    #[error("{backend}: the model is not to be had: {message}; choose another one")]
    ModelUnknown {
        /// Which backend.
        backend: BackendId,
        /// What the provider says.
        message: String,
    },
    /// The provider does not take the request.
    #[error("{backend}: the provider does not take the request: {message}")]
    Rejected {
        /// Which backend.
        backend: BackendId,
        /// What it says.
        message: String,
    },
    /// The provider cannot keep up.
    #[error("{backend}: the provider is overloaded{}", status(*.outage))]
    Overloaded {
        /// Which backend.
        backend: BackendId,
        /// The status, and when requests are accepted again.
        outage: Outage,
    },
    /// The conversation no longer fits into the model.
    #[error("{backend}: the conversation has outgrown the model's context")]
    ContextOverflow {
        /// Which backend.
        backend: BackendId,
    },
    /// The program ended in the middle of a turn.
    #[error("{backend}: the program ended in the middle of a turn ({status})")]
    Exited {
        /// Which backend.
        backend: BackendId,
        /// How it ended.
        status: String,
    },
    /// The program sent something that is not its protocol.
    #[error("{backend}: cannot make sense of what the program sent: {line:?}")]
    Garbled {
        /// Which backend.
        backend: BackendId,
        /// What it sent, shortened.
        line: String,
    },
    /// The conversation to continue does not exist any more.
    #[error("{backend} does not know the conversation {conversation} any more")]
    ConversationGone {
        /// Which backend.
        backend: BackendId,
        /// Which conversation.
        conversation: ConversationId,
    },
    /// The backend is set up wrongly.
    #[error("{0}")]
    Misconfigured(String),
    /// The backend was asked for something that its state does not allow.
    #[error("{backend}: {problem}")]
    Misused {
        /// Which backend.
        backend: BackendId,
        /// What.
        problem: String,
    },
}

impl BackendError {
    /// The provider's trouble, where waiting for the provider can help. A quota that is used up
    /// comes back only where the provider says when.
    fn outage(&self) -> Option<Outage> {
        match self {
            Self::RateLimited { outage, .. }
            | Self::Overloaded { outage, .. }
            | Self::Unavailable { outage, .. } => Some(*outage),
            Self::QuotaUsedUp { outage, .. } => outage.retry_at_ms.map(|_| *outage),
            Self::NotInstalled { .. }
            | Self::TooOld { .. }
            | Self::LoginNeeded { .. }
            | Self::Refused { .. }
            | Self::ModelUnknown { .. }
            | Self::Rejected { .. }
            | Self::ContextOverflow { .. }
            | Self::Exited { .. }
            | Self::Garbled { .. }
            | Self::ConversationGone { .. }
            | Self::Misconfigured(_)
            | Self::Misused { .. } => None,
        }
    }

    /// A short, stable word for the kind of failure.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotInstalled { .. } => "not_installed",
            Self::TooOld { .. } => "too_old",
            Self::LoginNeeded { .. } => "login_needed",
            Self::QuotaUsedUp { .. } => "quota",
            Self::Unavailable { .. } => "unavailable",
            Self::Refused { .. } => "refused",
            Self::ModelUnknown { .. } => "model_unknown",
            Self::Rejected { .. } => "rejected",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::ContextOverflow { .. } => "context_overflow",
            Self::Exited { .. } => "exited",
            Self::Garbled { .. } => "garbled",
            Self::ConversationGone { .. } => "conversation_gone",
            Self::Misconfigured(_) => "misconfigured",
            Self::Misused { .. } => "misused",
        }
    }
}

impl From<BackendError> for StepError {
    fn from(error: BackendError) -> Self {
        Self { outage: error.outage(), ..Self::new(error.code(), error.to_string()) }
    }
}

fn status(outage: Outage) -> String {
    outage.status.map_or_else(String::new, |status| format!(" (status {status})"))
}
