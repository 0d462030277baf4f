//! Building workflows in Rust.
//!
//! ```
//! use atomic_workflow::build::{Agent, Config, graph, says, subagent, text, tool, when};
//! use atomic_workflow::{StateKeys, Update};
//!
//! #[derive(StateKeys)]
//! struct Plan {
//!     prompt: String,
//!     #[state(reducer = "sum")]
//!     rounds: u32,
//! }
//!
//! let compiled = graph::<Plan>()
//!     .start(subagent("plan", Agent::new("planner", text(|s| s.get(Plan::PROMPT)))))
//!     .if_(says("plan", "nothing to do"))
//!     .then(tool("stop", |_| Update::new().output("nothing was done")))
//!     .else_()
//!     .loop_(
//!         [subagent("work", Agent::new("worker", "Do the next step of {outputs.plan}"))
//!             .map(|_, _| Update::new().set(Plan::ROUNDS, 1))],
//!         when(|s| Ok(s.get(Plan::ROUNDS)? >= 3)),
//!         10,
//!     )
//!     .endif()
//!     .end()
//!     .compile(Config::new("plan-and-work"))?;
//! assert_eq!(compiled.graph.start.as_str(), "plan");
//! # Ok::<(), atomic_workflow::build::BuildErrors>(())
//! ```
//!
//! The builder only writes down what it is told. [`Builder::compile`] makes a graph of it, gives
//! every closure an id made of its node and what it is for (`plan/task`), and reports everything
//! that is wrong, all at once.
//!
//! | file | what is there |
//! |---|---|
//! | `builder` | the calls |
//! | `draft` | a node before it has its place, texts, conditions |
//! | `nodes`, `regions`, `loops` | what a node can do; what can be inside it |
//! | `templates` | pieces that many workflows have in common |
//! | `outline` | from calls to nested sequences |
//! | `lower`, `compile` | from nested sequences to a graph and functions |

mod builder;
mod compile;
mod draft;
mod error;
mod loops;
mod lower;
mod nodes;
mod outline;
mod regions;
mod templates;

pub use builder::{Builder, If, graph};
pub use compile::{Compiled, Config};
pub use draft::{Draft, Remedy, When, Words, equals, not, says, text, verbatim, when};
pub use error::{BuildError, BuildErrors, codes};
pub use loops::{CriteriaLoop, TaskLoop, criteria_loop, repeat, task_loop};
pub use nodes::{
    Agent, agent, ask_user, clear_context, command, context_monitor, custom, decision, shell,
    skill, subagent, tool, wait,
};
pub use regions::{Body, Branches, Fan, Inner, each, parallel, parallel_subagent, subgraph};
pub use templates::{MapReduce, ReviewCycle, map_reduce, review_cycle, sequential};
