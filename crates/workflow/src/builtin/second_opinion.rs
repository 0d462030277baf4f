//! `second-opinion`: an agent answers, another one objects, the user picks, and the pick is kept.

use atomic_event::{AgentName, Choice, Question, StepError, StepResult};
use atomic_graph::Graph;
use serde_json::json;

use crate::{Action, AgentAction, Asking, Call, Function, Functions, Text, Workflow};

const KEEP: &str = "Keep the first answer";
const REVISE: &str = "Take the objections into account (Recommended)";

/// Builds the workflow.
pub(super) fn second_opinion() -> Workflow {
    let answer = agent("answerer", "Answer in a few paragraphs:\n\n{prompt}", false);
    let object = agent(
        "critic",
        "Somebody was asked:\n\n{prompt}\n\nand answered:\n\n{outputs.answer}\n\n\
         Name the strongest objections, or say that there are none.",
        true,
    );
    let option = |label: &str| Choice { label: label.to_owned(), description: String::new() };
    let choose = Action::Ask(Asking {
        question: Question {
            question: "The objections are: {outputs.object}\nWhich answer do you want?".to_owned(),
            header: "Answer".to_owned(),
            options: vec![option(REVISE), option(KEEP)],
            ..Question::default()
        },
    });
    let keep = Action::Function { call: "second-opinion/keep".into() };
    let graph = Graph::starting_at("answer")
        .node(answer.node("answer", "Answering"))
        .node(object.node("object", "Looking for objections"))
        .node(choose.node("choose", "Waiting for your choice"))
        .node(keep.node("keep", "Keeping the answer"))
        .edge("answer", "object")
        .edge("object", "choose")
        .edge("choose", "keep");
    Workflow {
        name: "second-opinion".into(),
        aliases: vec![],
        description: "One agent answers, another objects, you pick".to_owned(),
        sessions_dir: ".atomic/sessions".to_owned(),
        graph,
        functions: Functions::default().with("second-opinion/keep", Function::Step(keep_answer)),
        initial_state: |launch| [("prompt".into(), json!(launch.prompt))].into(),
    }
}

fn agent(name: &str, prompt: &str, fresh: bool) -> Action {
    Action::Agent(AgentAction {
        agent: AgentName::from(name),
        instructions: Some(
            "You answer questions briefly and honestly. Change no files.".to_owned(),
        ),
        prompt: Text::Template(prompt.to_owned()),
        parse: None,
        fresh,
        questions: true,
        iteration: false,
    })
}

/// The text the user picked becomes the output of the run.
fn keep_answer(call: &Call<'_>) -> Result<StepResult, StepError> {
    let text = |node: &str| call.output(node).as_str().unwrap_or_default().to_owned();
    let (answer, objections) = (text("answer"), text("object"));
    let kept = if text("choose") == KEEP {
        answer
    } else {
        format!("{answer}\n\nObjections to keep in mind:\n\n{objections}")
    };
    Ok(StepResult::output(kept))
}
