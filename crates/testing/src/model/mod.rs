//! A model that says what a script tells it to, for real agent programs without an account.
//!
//! [`ModelServer`] listens on the loopback and speaks the APIs of providers – Anthropic's Messages,
//! OpenAI's chat completions and its Responses –, so that real programs can be run against it. Which reply it gives depends on nothing but the content of the
//! request: any number of programs can use one server, and neither a restart of the server nor
//! one of the program changes what is said.
//!
//! ```
//! use atomic_testing::model::{ModelServer, Reply, Script, Turn};
//! use serde_json::json;
//!
//! let write = json!({ "file_path": "{workspace}/hello.txt", "content": "Hello\n" });
//! let script = Script::new().with(
//!     Turn::default()
//!         .user("Write a greeting")
//!         .reply(Reply::call("Write", write))
//!         .reply(Reply::say("Written.")),
//! );
//! let server = ModelServer::start(script)?;
//! assert!(server.url().starts_with("http://127.0.0.1:"));
//! // Run a program with ANTHROPIC_BASE_URL=<server.url()>, then:
//! assert!(server.unmatched().is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The file format of scripts is described in `docs/model-server.md`.
//!
//! An API is a module like `anthropic` that implements `dialect::Dialect`; what all of them write
//! alike is in `wire`, and scripts and matching know nothing of how requests are written.

mod answer;
mod anthropic;
mod asked;
mod choose;
mod dialect;
mod fill;
mod openai;
mod read;
mod record;
mod script;
mod server;
mod wire;

pub use read::ScriptError;
pub use record::{Chosen, Received};
pub use script::{Action, ApiError, Break, Ending, Reply, Script, Turn, Usage};
pub use server::ModelServer;
