//! What is true of every run, whatever the graph and whatever happens: properties over random
//! graphs, the largest runs there can be, and the behaviours that workflows rely on, as tables.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod behaviour;
mod certificate;
mod corners;
mod coverage;
mod decisions;
mod dice;
mod ledger;
mod limits;
mod lists;
mod prefixes;
mod rules;
mod run;
mod runs;
mod scene;
mod script_views;
mod scripts;
mod seeds;
mod table;
mod tasks;
mod workers;
mod world;
