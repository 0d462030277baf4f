//! Read TypeScript files and run them, away from everything.
//!
//! Nothing here knows what a workflow is. A file and its imports are read once ([`Bundle`]), and
//! run on a thread of their own ([`Worker`]) in an engine that has no files, no network and no
//! processes: what they may do is what a [`Host`] does for them.

mod bundle;
mod convert;
mod fault;
mod host;
mod resolve;
mod sdk;
mod text;
mod tree;
mod trouble;
mod worker;

/// What editors and `tsc` need to know of the SDK.
pub const TYPES: &str = include_str!("../sdk/atomic.d.ts");

/// How editors and `tsc` read workflow files.
pub const TSCONFIG: &str = include_str!("../sdk/tsconfig.json");

pub use bundle::Bundle;
pub use fault::{Fault, Place};
pub use host::{Answer, Host, HostError, Underway};
pub use tree::metadata::{Form, Metadata, NamedCall, metadata};
pub use tree::places::{Anchor, Located, Step, locate};
pub use trouble::{About, Frame, Trouble, TroubleKind};
pub use worker::{
    Arg, Delivery, Limits, Loaded, Log, OpenCall, Options, Outcome, Performance, Progress, Script,
    ScriptCall, Turn, Worker,
};
