//! The words every part of Atomic shares: what people ask for and what happened.
//!
//! [`Intent`]s go in, [`Event`]s come out; both are plain data. An event is on disk before it is
//! acted on and is shown by every front end. A [`Delta`] is only shown. There is no third kind,
//! and no other crate may define its own copy of these types.

mod certified;
mod check;
mod delta;
mod envelope;
mod event;
mod id;
mod intent;
mod payer;
mod provider;
mod question;
mod spending;
mod turn;

pub use atomic_graph::task::TaskStatus;
pub use atomic_graph::{How, Key, NodeId, Outage, Patch, StepError, StepId, StepResult};
pub use certified::Certified;
pub use check::{CheckResult, Checked, CheckedBefore, ProjectRead, TestFile, Verified};
pub use delta::Delta;
pub use envelope::{Envelope, FORMAT, UnreadableFact, journal_schema};
pub use event::{
    Answered, Created, Ending, Event, Forked, Moment, Origin, Resumed, RunStopped, Source, Started,
    Timer, Upgraded, Why,
};
pub use id::{AgentName, BackendId, ConversationId, QuestionId, SessionId, WorkflowName};
pub use intent::Intent;
pub use payer::{Payer, PayerFound, PayerKind};
pub use provider::{ProviderBack, ProviderEvent, ProviderWaiting};
pub use question::{Answer, AnsweredBy, Choice, Question};
pub use spending::{Spending, TurnSpending, dollars};
pub use turn::{
    Helper, HelperState, Report, Stop, Todo, ToolCall, ToolUse, TurnEvent, Usage, Wait,
};
