//! `prompt`: one turn of one agent, as `atomic -p` runs it.

use serde_json::json;

use crate::build::{Agent, Config, agent, graph};
use crate::{Initial, Json, Workflow};

/// The name of the workflow.
pub const NAME: &str = "prompt";

/// Builds the workflow; without a name, the agent is the program as it is.
#[expect(clippy::expect_used, reason = "it is the same but for a name, and tests build it")]
pub fn prompt(who: Option<&str>) -> Workflow {
    let turn = match who {
        Some(name) => Agent::new(name, "{prompt}"),
        None => Agent::new("assistant", "{prompt}").instructions(""),
    };
    let compiled = graph::<Json>()
        .start(agent("answer", turn.questions().helpers()).described("Answering"))
        .end()
        .compile(Config {
            max_iterations: None,
            ..Config::new(NAME).described("One turn of one agent")
        })
        .expect("the graph is in order");
    Workflow {
        initial_state: Initial::made(|launch| [("prompt".into(), json!(launch.prompt))].into()),
        ..compiled.into_workflow()
    }
}
