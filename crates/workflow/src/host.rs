//! What work that takes time may ask of the world outside. The runner carries it out.

use std::pin::Pin;

use serde_json::Value;

/// What becomes of a request; the error is a sentence. Dropping it ends the request.
pub type HostFuture = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

/// The world outside, as one step sees it. Everything that is asked is recorded for that step.
pub trait Host: Send + Sync {
    /// Asks for something: `shell`, `readFile`, `writeFile`, `exists`, `glob`, `fetch`, `env`.
    fn request(&self, name: &str, args: Value) -> HostFuture;

    /// Says something.
    fn log(&self, level: LogLevel, text: &str);
}

/// How important something is that is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// For whoever looks for a mistake.
    Debug,
    /// Worth a look.
    Info,
    /// Something is odd; it is recorded.
    Warn,
    /// Something is wrong; it is recorded.
    Error,
}

impl LogLevel {
    /// The level of this name; one that is not known is [`Info`](Self::Info).
    pub fn called(name: &str) -> Self {
        match name {
            "debug" | "trace" => Self::Debug,
            "warn" | "warning" => Self::Warn,
            "error" => Self::Error,
            _ => Self::Info,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}
