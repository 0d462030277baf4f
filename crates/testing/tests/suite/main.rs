//! The suites that need real processes, in one binary so that they link once.

mod guard;
mod runner;
mod runner_stand;
mod script;
