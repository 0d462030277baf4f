//! Commands, skills and agents from the folders of every provider, the embedded ones, and
//! settings; each with where it comes from.

mod allowed;
pub mod arguments;
mod builtin;
mod discover;
mod entity;
mod files;
mod finding;
pub mod frontmatter;
mod inherit;
mod keys;
mod models;
mod names;
mod normal;
mod opencode;
mod parse;
mod permission;
mod places;
mod programs;
pub mod project;
mod registry;
pub mod settings;
pub mod tools;

pub use allowed::Tools;
pub use entity::{Arguments, Entity, Kind, Origin, Prompt, Provider, Scope};
pub use files::obstacle;
pub use finding::{Finding, Severity};
pub use names::{Class, Named, Names, Shadowed, Unknown, instead_of};
pub use normal::{Family, Model};
pub use permission::Decision;
pub use places::{Folders, OpenCodeEnvironment};
pub use programs::{ACP, AGENT_PROGRAMS, AgentProgram, ServersFile, agent_program};
pub use registry::{NotFound, Registry};
