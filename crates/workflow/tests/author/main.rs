//! Workflows as authors write them in Rust, built and run.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test cannot set up is a failed test"
)]

mod builtin;
mod docs;
mod driver;
mod errors;
mod failures;
mod flow;
mod inside;
mod loops;
mod typed;
