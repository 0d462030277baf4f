//! `prompt`: one turn of one agent, as `atomic -p` runs it.

use serde_json::json;

use crate::build::{Agent, Config, Draft, agent, command, graph, skill};
use crate::{EntryKind, Initial, Json, Workflow};

/// The name of the workflow.
pub const NAME: &str = "prompt";

/// Builds the workflow; without a name, the agent is the program as it is.
pub fn prompt(who: Option<&str>) -> Workflow {
    let turn = match who {
        Some(name) => Agent::new(name, "{prompt}"),
        None => Agent::new("assistant", "{prompt}").instructions(""),
    };
    with(agent("answer", turn.questions().helpers()))
}

/// The same with the prompt of a skill or command, which is given what is typed.
pub fn entry(kind: EntryKind, name: &str) -> Workflow {
    with(match kind {
        EntryKind::Skill => skill("answer", name, "{prompt}"),
        EntryKind::Command => command("answer", name, "{prompt}"),
    })
}

#[expect(clippy::expect_used, reason = "it is the same but for its node, and tests build it")]
fn with(node: Draft<Json>) -> Workflow {
    let compiled = graph::<Json>()
        .start(node.described("Answering"))
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
