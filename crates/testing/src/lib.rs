//! Doubles and suites, for tests only.

pub mod conformance;
