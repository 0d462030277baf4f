//! `second-opinion`: an agent answers, another one objects, the user picks, and the pick is kept.

use atomic_event::{Choice, Question};
use serde_json::json;

use crate::build::{Agent, Config, agent, ask_user, graph, tool};
use crate::{Initial, Json, Update, View, Workflow};

const KEEP: &str = "Keep the first answer";
const REVISE: &str = "Take the objections into account (Recommended)";

/// Builds the workflow.
#[expect(clippy::expect_used, reason = "it is always the same, and tests build it")]
pub(super) fn second_opinion() -> Workflow {
    let answerer = who("answerer", "Answer in a few paragraphs:\n\n{prompt}");
    let critic = who(
        "critic",
        "Somebody was asked:\n\n{prompt}\n\nand answered:\n\n{outputs.answer}\n\n\
         Name the strongest objections, or say that there are none.",
    );
    let compiled = graph::<Json>()
        .start(agent("answer", answerer).described("Answering"))
        .then(agent("object", critic.fresh()).described("Looking for objections"))
        .then(ask_user("choose", which_answer()).described("Waiting for your choice"))
        .then(
            tool("keep", keep_answer)
                .function_id("second-opinion/keep")
                .described("Keeping the answer"),
        )
        .end()
        .compile(Config {
            max_iterations: None,
            ..Config::new("second-opinion")
                .described("One agent answers, another objects, you pick")
        })
        .expect("the graph is in order");
    Workflow {
        initial_state: Initial::made(|launch| [("prompt".into(), json!(launch.prompt))].into()),
        ..compiled.into_workflow()
    }
}

fn who(name: &str, prompt: &str) -> Agent<Json> {
    Agent::new(name, prompt)
        .instructions("You answer questions briefly and honestly. Change no files.")
        .questions()
}

fn which_answer() -> Question {
    let option = |label: &str| Choice { label: label.to_owned(), description: String::new() };
    Question {
        question: "The objections are: {outputs.object}\nWhich answer do you want?".to_owned(),
        header: "Answer".to_owned(),
        options: vec![option(REVISE), option(KEEP)],
        ..Question::default()
    }
}

/// The text the user picked becomes the output of the run.
fn keep_answer(s: &View<'_, Json>) -> Update<Json> {
    let text = |node: &str| s.output(node).as_str().unwrap_or_default().to_owned();
    let (answer, objections) = (text("answer"), text("object"));
    let kept = if text("choose") == KEEP {
        answer
    } else {
        format!("{answer}\n\nObjections to keep in mind:\n\n{objections}")
    };
    Update::new().output(kept)
}
