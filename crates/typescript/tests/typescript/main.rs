//! Files are read and run, seen from the outside.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails fails its test"
)]

mod bundles;
mod faults;
mod hostile;
mod metadata;
mod places;
mod scripts;
mod stage;
mod steps;
mod values;
