//! The only crate that acts: it takes intents, carries out effects and records facts.
//!
//! Decide, record, do. One task owns a [`Run`]: it takes in what happened, lets the machine say
//! what follows, puts both on disk with one sync, and only then starts anything. What it starts
//! runs in tasks of its own that report back and never touch the run's state.
//!
//! Start reading at [`Run::drive`]; `record.rs` is the heart of it.

mod accepted;
mod awake;
mod backends;
mod begin;
mod book;
mod ceiling;
mod certificate;
mod commit;
mod edited;
mod edited_rows;
mod entities;
mod evaluate;
mod fork;
mod front;
mod gates;
mod keep;
mod lane;
mod payer;
mod perform;
mod place;
mod project;
mod prompt;
mod provider;
mod question;
mod record;
mod relocate;
mod resume;
mod run;
mod settings;
mod spent;
mod stage;
mod stop;
mod stream;
mod task_file;
mod timer;
mod upgrade;
mod verify;

pub use atomic_backend::Inherit;
pub use backends::{MakeBackend, OtherBackends};
pub use ceiling::SpentLimit;
pub use certificate::{planned, refuse_too_many};
pub use entities::{agent_of_role, helpers, tools_of, tools_of_turn};
pub use fork::{Fork, ForkRequest, ForkTools, SetKey, fork};
pub use front::{Show, Shown};
pub use gates::found_gates;
pub use keep::{digest_of, index_entry, told as restored_text};
pub use payer::{Unpaid, payer_of};
pub use perform::CHECK_TOOL;
pub use prompt::{PromptError, read_prompt};
pub use resume::{ResumeOptions, finished};
pub use run::{Ended, Outcome, Run, RunError, StartRequest};
pub use settings::{Budget, OnQuestion, ProgramSettings, Settings};
pub use stage::{Clock, Stage, SystemClock};
pub use stream::StreamMode;
pub use upgrade::{Upgrade, kept};
pub use verify::{EndedChecks, verified_line};
