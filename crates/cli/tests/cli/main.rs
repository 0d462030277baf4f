//! The real binary, as a user runs it.

mod agents;
mod ceilings;
mod demo;
mod env;
mod plan;
mod process;
mod question;
mod scene;
