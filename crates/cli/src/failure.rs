//! What went wrong, decided once: the message and the exit code.

use std::process::ExitCode;

use atomic_backend::BackendError;
use atomic_runner::{Outcome, PromptError, RunError};
use atomic_session::{FindError, SessionError};
use atomic_workflow::builtin::NotFound;

use crate::paint;

/// Something that ends the program before or instead of a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// It makes sense, but it cannot be done.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// Prints it and says how to exit.
    pub(crate) fn report(&self) -> ExitCode {
        paint::complain(&self.to_string());
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
        }
    }
}

impl From<NotFound> for Failure {
    fn from(error: NotFound) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<PromptError> for Failure {
    fn from(error: PromptError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        if matches!(error, RunError::Unchecked(_) | RunError::Unpaid(_)) {
            return Self::Usage(error.to_string());
        }
        Self::Failed(error.to_string())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<FindError> for Failure {
    fn from(error: FindError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The exit code of a run.
pub(crate) fn exit_code(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::Completed => 0,
        Outcome::Failed { ceiling: false, .. } => 1,
        Outcome::Waiting(_) => 3,
        Outcome::Paused => 4,
        Outcome::Failed { ceiling: true, .. } => 5,
    }
}
