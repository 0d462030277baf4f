//! What a script can ask for: the only way out of the engine.

use std::any::Any;
use std::fmt;

use serde_json::Value;

/// Why a request has failed; in the script it is an error with this code and message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HostError {
    /// A word for programs, such as `not-found`; may be empty.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

impl HostError {
    /// An error with a message only.
    pub fn new(message: impl Into<String>) -> Self {
        Self { code: String::new(), message: message.into() }
    }
}

impl From<String> for HostError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// What is under way for a request. Dropping it ends that.
pub type Underway = Box<dyn Any + Send>;

/// Does what a script asks for.
pub trait Host: Send + Sync {
    /// Begins what is asked for, such as `shell`, and says later what has come of it.
    ///
    /// It is called on the thread of the engine, which stands still meanwhile: it must not wait
    /// for anything, and not call the worker.
    fn request(&self, name: &str, args: Value, answer: Answer) -> Underway;

    /// Something a script has to say: `debug`, `info`, `warn` or `error`.
    fn log(&self, level: &str, text: &str);
}

/// What somebody waits for, once.
pub struct Answer(Option<Give>);

type Give = Box<dyn FnOnce(Result<Value, HostError>) + Send>;

impl Answer {
    pub(crate) fn new(give: impl FnOnce(Result<Value, HostError>) + Send + 'static) -> Self {
        Self(Some(Box::new(give)))
    }

    /// Gives it, from any thread.
    pub fn give(mut self, result: Result<Value, HostError>) {
        if let Some(give) = self.0.take() {
            give(result);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some(give) = self.0.take() {
            give(Err(HostError::new("the request was given up")));
        }
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}
