//! Workflows in TypeScript: from a file to a document and its functions.
//!
//! Reading a file ([`Authored::read`]) runs nothing of it. Running it ([`Authored::run`]) gives a
//! [`Document`](crate::descriptor::Document), which is read like one that somebody has written by hand;
//! its functions are those of the file, on a thread of their own for as long as the workflow is
//! held.

mod advance;
mod authored;
mod functions;
mod laid;
mod work;

pub use authored::{About, Authored, about, hash_of, shown};
