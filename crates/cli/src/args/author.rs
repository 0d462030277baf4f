//! What can be typed by those who write workflows, or run what others wrote.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// What to make
    #[command(subcommand)]
    pub(crate) what: New,
}

/// What can be made.
#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// A workflow in TypeScript, and what an editor needs to help with it
    Workflow(NewWorkflowArgs),
}

/// Arguments of `new workflow`.
#[derive(Debug, Args)]
pub(crate) struct NewWorkflowArgs {
    /// What it will be called: letters, digits, `-` and `_`
    pub(crate) name: String,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Form::Graph)]
    pub(crate) form: Form,
    /// For all of your projects: in ~/.atomic/workflows
    #[arg(long, alias = "global")]
    pub(crate) user: bool,
    /// Replace a built-in workflow of this name
    #[arg(long)]
    pub(crate) force: bool,
}

/// How a workflow is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Form {
    /// Nodes and edges
    Graph,
    /// A chain of calls: start, then, if, loop
    Builder,
    /// An async function with ordinary `if`, `for` and `try`
    Script,
}

/// Arguments of `trust`.
#[derive(Debug, Args)]
#[command(after_help = TRUST_EXAMPLES)]
pub(crate) struct TrustArgs {
    /// Folder whose repository to trust as it is now, or one workflow file
    #[arg(value_name = "FOLDER|FILE", required_unless_present = "list")]
    pub(crate) path: Option<PathBuf>,
    /// Take trust back
    #[arg(long, conflicts_with = "list")]
    pub(crate) withdraw: bool,
    /// List trusted repositories
    #[arg(long, conflicts_with = "path")]
    pub(crate) list: bool,
}

const TRUST_EXAMPLES: &str = "\
A repository is asked about again when a definition in it changes. To trust everything below a \
folder: atomic config set --user trusted_folders ~/work

Examples:
  atomic trust .
  atomic trust . --withdraw
  atomic trust --list";

/// Arguments of `test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Workflow files to test, each with its script beside it: `review.script.toml` for `review.ts`
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Another script, for all of them
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Keep the folders the tests ran in
    #[arg(long)]
    pub(crate) keep: bool,
    /// Run the code of the files although nobody has trusted it
    #[arg(long)]
    pub(crate) trust: bool,
}
