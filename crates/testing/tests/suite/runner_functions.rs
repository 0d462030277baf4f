//! Functions of a workflow, and signals: each result is a fact, so any beginning of the journal
//! leads to the same end.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;

use atomic_event::{StepError, StepResult};
use atomic_graph::{
    Branch, Condition, Graph, Kind, Node, OnError, Parallel, Reducer, Retry, Signal, Strategy,
};
use atomic_runner::Outcome;
use atomic_testing::ralph_script::{Flaw, script};
use atomic_workflow::{Action, Function, Functions, Initial, Workflow};
use serde_json::{Value, json};

use crate::runner_stand::{Stand, on_one_thread};

fn calls(id: &str) -> Node {
    Action::Function { call: id.into() }.node(id)
}

fn one(id: &str) -> Graph {
    Graph::starting_at(id).node(calls(id))
}

/// Everything a function can be asked for, and a step that asks the user when it is done.
fn workflow() -> Workflow {
    let retry = Retry { attempts: 3, when: Some("worth".into()), ..Retry::default() };
    let branch = |id: &str, inner: &str| Branch { id: id.into(), graph: one(inner) };
    let both = Kind::Parallel(Parallel {
        branches: vec![branch("left", "a"), branch("right", "b")],
        strategy: Strategy::All,
        fail_fast: false,
        merge: Some("merge".into()),
    });
    let inner = Kind::Subgraph {
        graph: one("double"),
        isolated: true,
        input: Some("input".into()),
        output: Some("output".into()),
    };
    let graph = Graph::starting_at("flaky")
        .node(calls("flaky").retry(retry).on_error(OnError::Call("rescue".into())))
        .node(Node::new("both", both))
        .node(Node::new("inner", inner))
        .node(Node::new("enough", Kind::Decision))
        .node(calls("more"))
        .node(calls("ask"))
        .edge("flaky", "both")
        .edge("both", "inner")
        .edge("inner", "enough")
        .edge_when("enough", "ask", Condition::Call("enough".into()))
        .edge_when("enough", "more", Condition::Otherwise)
        .edge("more", "enough")
        .reducer("sum", Reducer::Call("add".into()));
    Workflow {
        name: "functions".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph,
        functions: functions(),
        initial_state: Initial::made(|_| [("sum".into(), json!(0))].into()),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    }
}

fn functions() -> Functions {
    let adds = |n: u64| Function::step(move |_| Ok(StepResult::output(n).set("sum", n)));
    let ask = |_: &atomic_workflow::Call<'_>| {
        let message = Some("Is the sum right?".to_owned());
        let data = json!({"options": [{"label": "Blue"}, {"label": "Red"}]});
        let signal = Signal { kind: Signal::HUMAN.to_owned(), message, data };
        Ok(StepResult { signals: vec![signal], ..StepResult::output("asked") })
    };
    Functions::default()
        .with("flaky", Function::step(|_| Err(StepError::new("flaky", "it always fails"))))
        .with("worth", Function::value(|_, args| Ok(json!(args[0]["code"] == "flaky"))))
        .with(
            "rescue",
            Function::value(|_, _| Ok(json!({"action": "skip", "stateUpdate": {"sum": 1}}))),
        )
        .with("a", adds(10))
        .with("b", adds(20))
        .with("merge", Function::value(|_, args| Ok(json!({"merged": args[0].as_ref()}))))
        .with("input", Function::value(|call, _| Ok(json!({"n": call.get::<u64>("sum")}))))
        .with(
            "double",
            Function::step(|call| Ok(StepResult::default().set("n", call.get::<u64>("n") * 2))),
        )
        .with("output", Function::value(|_, args| Ok(json!({"doubled": args[0]["n"]}))))
        .with("enough", Function::holds(|call| call.get::<u64>("sum") >= 40))
        .with("more", adds(5))
        .with("ask", Function::step(ask))
        .with(
            "add",
            Function::value(|_, args| {
                Ok(json!(args[0].as_u64().unwrap_or(0) + args[1].as_u64().unwrap_or(0)))
            }),
        )
}

fn stand() -> Stand {
    let mut stand = Stand::playing(script(Flaw::Reported, 0));
    stand.workflow = workflow();
    stand
}

/// The patches and outputs of all finished steps, and how it ended.
fn story(stand: &Stand) -> (BTreeMap<String, Value>, String) {
    let facts = stand.facts();
    let finished = facts.iter().filter(|fact| fact["type"] == "step_finished");
    let results = finished.map(|f| (f["step"].as_str().unwrap().to_owned(), f["result"].clone()));
    (results.collect(), facts.last().unwrap()["ending"].to_string())
}

async fn to_the_end(stand: &Stand) -> Outcome {
    loop {
        let outcome = stand.live().await.unwrap();
        if !matches!(outcome, Outcome::Waiting(_)) {
            return outcome;
        }
    }
}

#[test]
fn what_functions_return_is_a_fact_and_any_beginning_leads_to_the_same_end() {
    let whole = stand();
    assert_eq!(on_one_thread(to_the_end(&whole)), Outcome::Completed);
    let facts = whole.facts();
    let evaluated: Vec<String> = facts
        .iter()
        .filter(|fact| fact["type"] == "function_evaluated")
        .map(|fact| format!("{} {} = {}", fact["step"], fact["call"], fact["value"]))
        .collect();
    let expected = [
        r#""flaky#1" "worth" = true"#,
        r#""flaky#1" "worth" = true"#,
        r#""flaky#1" "rescue" = {"action":"skip","stateUpdate":{"sum":1}}"#,
        r#""flaky#1" "add" = 1"#,
        r#""both#1[left]/a#1" "add" = 11"#,
        r#""both#1[right]/b#1" "add" = 21"#,
        r#""both#1" "add" = 11"#,
        r#""both#1" "add" = 31"#,
        r#""both#1" "merge" = {"merged":{"left":10,"right":20}}"#,
        r#""both#1" "add" = 11"#,
        r#""both#1" "add" = 31"#,
        r#""inner#1" "input" = {"n":31}"#,
        r#""inner#1" "output" = {"doubled":62}"#,
        r#""more#1" "add" = 36"#,
        r#""more#2" "add" = 41"#,
    ];
    assert_eq!(evaluated, expected);
    let asked = facts.iter().find(|fact| fact["type"] == "question_asked").unwrap();
    assert_eq!(asked["question"]["question"], "Is the sum right?");

    let journal = String::from_utf8(whole.journal()).unwrap();
    let lines: Vec<&str> = journal.lines().collect();
    for cut in 1..lines.len() {
        let beginning = format!("{}\n", lines[..cut].join("\n"));
        let again = whole.with_journal(beginning.as_bytes());
        assert_eq!(on_one_thread(to_the_end(&again)), Outcome::Completed, "cut after {cut}");
        assert_eq!(story(&again), story(&whole), "cut after {cut}");
    }
}
