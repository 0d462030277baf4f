//! The registry, from folders on disk to names.
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod conflicts;
mod hostile;
mod mutants;
mod names;
mod providers;
mod quirks;
mod settings;
mod settings_edit;
mod tree;
