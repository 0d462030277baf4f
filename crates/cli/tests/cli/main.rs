//! The real binary, as a user runs it.

mod demo;
mod env;
