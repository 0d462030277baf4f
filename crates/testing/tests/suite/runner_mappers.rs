//! Functions that make changes out of what a step returned, and fail.

use atomic_event::StepError;
use atomic_graph::Graph;
use atomic_runner::Outcome;
use atomic_testing::ralph_script::{Flaw, script};
use atomic_workflow::{Action, Function, Functions, Initial, Shell, Text, Workflow};
use serde_json::{Value, json};

use crate::runner_stand::{Stand, on_one_thread};

fn mapped_by(map: Function) -> Stand {
    let command = Text::Verbatim("echo said".to_owned());
    let node = Action::Shell(Shell { command, map: Some("map".into()) }).node("say");
    let mut stand = Stand::playing(script(Flaw::Reported, 0));
    stand.workflow = Workflow {
        name: "mapped".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph: Graph::starting_at("say").node(node),
        functions: Functions::default().with("map", map),
        initial_state: Initial::made(|_| [].into()),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    };
    stand
}

fn of_type(stand: &Stand, kind: &str) -> Vec<Value> {
    stand.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
}

#[test]
fn a_mapper_that_fails_fails_its_step() {
    let fails = Function::value(|_, _| Err(StepError::new("odd", "it cannot be mapped")));
    let nonsense = Function::value(|_, args| Ok(json!([args[0].as_ref()])));
    let table = [
        (fails, "odd", "it cannot be mapped"),
        (
            nonsense,
            "function",
            "node `say`: `outputMapper` returned [\"said\"], not an object of changes",
        ),
    ];
    for (map, code, message) in table {
        let stand = mapped_by(map);
        let outcome = on_one_thread(stand.live()).unwrap();
        let error = StepError::new(code, message);
        assert_eq!(outcome, Outcome::Failed { error, ceiling: false });
        assert_eq!(of_type(&stand, "step_failed").len(), 1);
        assert_eq!(of_type(&stand, "step_finished"), Vec::<Value>::new());
    }

    let stand = mapped_by(Function::value(|_, args| Ok(json!({"heard": args[0].as_ref()}))));
    assert_eq!(on_one_thread(stand.live()).unwrap(), Outcome::Completed);
    assert_eq!(of_type(&stand, "step_finished")[0]["result"]["patch"], json!({"heard": "said"}));
}
