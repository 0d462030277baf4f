//! One file per verb.

pub(crate) mod answer;
pub(crate) mod check;
pub(crate) mod config;
mod copied;
pub(crate) mod demo;
pub(crate) mod doctor;
mod find;
pub(crate) mod fork;
pub(crate) mod graph;
mod here;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod mcp;
pub(crate) mod migrate;
pub(crate) mod models;
pub(crate) mod new;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod show;
pub(crate) mod test;
pub(crate) mod trust;
pub(crate) mod turn;

pub(crate) use find::{FoundSession, find_session, find_session_in, working_folder};
use find::{is_listed, known_sessions, require_folder, tell_folder};
