//! One file per verb.

pub(crate) mod answer;
pub(crate) mod check;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod fork;
pub(crate) mod graph;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod migrate;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod show;

use std::path::PathBuf;

use atomic_session::Index;

use crate::failure::Failure;
use crate::{home, stage};

/// Finds a session's folder by id, the beginning of one, or `last`.
fn find_session(text: &str) -> Result<PathBuf, Failure> {
    let disk = stage::disk();
    let index = home::index(&disk).ok_or_else(|| {
        Failure::Failed("there is no home folder to look in; set HOME or ATOMIC_HOME".to_owned())
    })?;
    Ok(Index::find(&index, text)?.dir)
}
