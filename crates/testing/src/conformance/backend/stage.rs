//! How a program is made to do what a scenario says.
#![expect(clippy::unimplemented, reason = "a stage that lacks something fails the check")]

use std::path::Path;

use atomic_backend::Backend;

use super::Scenario;
use crate::model::Received;

/// Sets up one program in one version.
///
/// A stage may keep one program for all checks, which then run at the same time: a check looks
/// only at what is about its own prompts, and nothing is said about the rest of a system prompt.
pub trait Stage: Send + Sync {
    /// The program, by which results are kept.
    fn program(&self) -> Program;

    /// A backend whose agent does what the scenario says. What it was made with lives as long as
    /// the stage: a conversation goes on when its backend is dropped.
    fn backend(&self, scenario: &Scenario) -> Box<dyn Backend>;

    /// What things are called in this program.
    fn words(&self) -> Words;

    /// Everything that models were sent so far, by other checks too.
    fn received(&self) -> Vec<Received> {
        vec![]
    }

    /// Puts into the settings of a project, as the program reads them, that there is an MCP server
    /// called [`SERVER`](Scenario::SERVER), which `command` starts.
    fn add_server(&self, _project: &Path, _command: &[String]) {
        unimplemented!("{} has no MCP servers on this stage", self.program().name)
    }
}

/// A program in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its backend.
    pub name: &'static str,
    /// The version.
    pub version: &'static str,
}

/// What things are called in a program. The names of tools are those that rules are written with
/// and, but for [`help`](Self::help), those on offer to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// The tool that runs a command.
    pub shell: &'static str,
    /// The tool that reads a file.
    pub read: &'static str,
    /// The tool that makes a file.
    pub write: &'static str,
    /// The tool that changes a file. A program may be able to withhold it only together with the one
    /// that makes a file.
    pub edit: &'static str,
    /// The tool that asks the user.
    pub ask: &'static str,
    /// The tool that starts a helper.
    pub help: &'static str,
    /// The tool [`SERVER_TOOL`](Scenario::SERVER_TOOL) of the server [`SERVER`](Scenario::SERVER).
    pub server_tool: &'static str,
    /// Two models that can be asked for by name.
    pub models: [&'static str; 2],
}
