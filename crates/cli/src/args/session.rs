//! Arguments that select a session.

use clap::{Args, Subcommand};

/// Where a session is looked for.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct SessionArgs {
    /// Newest session of all folders as `last` [default: of this repository]
    #[arg(long)]
    pub(crate) all: bool,
    /// Session in this copy of a project; to work in it, a new session is made from it
    #[arg(long)]
    pub(crate) here: bool,
}

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// What to do with them
    #[command(subcommand)]
    pub(crate) command: Option<SessionsCommand>,
}

/// What can be done with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List all sessions, newest first
    List,
    /// Show one session: its tasks, its questions, what happened
    Show {
        /// Session to show: its id, the beginning of it, `last`, or its folder
        session: String,
        #[command(flatten)]
        place: SessionArgs,
    },
    /// Delete a session and everything that Atomic keeps of it
    Rm {
        /// Session to delete: its id, the beginning of it, or its folder
        session: String,
        #[command(flatten)]
        place: SessionArgs,
    },
}
