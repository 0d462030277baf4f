//! What every implementation of a trait has to pass.
//!
//! A suite is a set of checks that panic with what is wrong. It knows nothing of the
//! implementation: the test hands it a way to set one up.

pub mod backend;
