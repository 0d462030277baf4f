//! Doubles and suites, for tests only.

pub mod agents;
pub mod clock;
pub mod conformance;
pub mod langgraph;
pub mod ledger;
pub mod model;
pub mod ralph_script;
pub mod sample;
