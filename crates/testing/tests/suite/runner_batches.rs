//! A run that never waits for anybody is recorded batch by batch, and can be stopped between two
//! of them.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeMap;
use std::time::Duration;

use atomic_event::{Intent, Question, StepResult};
use atomic_graph::{Branch, Graph, Kind, Node, Parallel, Reducer, Strategy};
use atomic_runner::{OnQuestion, Outcome, Shown};
use atomic_session::Disk as _;
use atomic_testing::ralph_script::{Flaw, script};
use atomic_workflow::{Action, Asking, Call, Function, Functions, Initial, Workflow};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

/// How often each of the two branches goes round.
const ROUNDS: u64 = 700;

fn workflow(graph: Graph, functions: Functions) -> Workflow {
    Workflow {
        name: "batches".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph,
        functions,
        initial_state: Initial::made(|_| {
            [("left", 0), ("right", 0)].map(|(k, v)| (k.into(), json!(v))).into()
        }),
        source: None,
        state_shape: atomic_workflow::StateShape::default(),
    }
}

/// Counts, and goes round until it is enough.
fn counts(key: &'static str) -> Function {
    Function::step(move |call: &Call<'_>| {
        let result = StepResult::default().set(key, 1);
        Ok(if call.get::<u64>(key) + 1 < ROUNDS { result.goto(key) } else { result })
    })
}

/// Two branches of functions beside each other.
fn counting() -> Workflow {
    let branch = |id: &str| {
        let node = Action::Function { call: id.into() }.node(id).may_go_to([id]);
        Branch { id: id.into(), graph: Graph::starting_at(id).node(node) }
    };
    let both = Kind::Parallel(Parallel {
        branches: vec![branch("left"), branch("right")],
        strategy: Strategy::All,
        fail_fast: false,
        merge: None,
    });
    let graph = Graph::starting_at("both").node(Node::new("both", both));
    let graph = graph.reducer("left", Reducer::Sum).reducer("right", Reducer::Sum);
    workflow(
        graph,
        Functions::default().with("left", counts("left")).with("right", counts("right")),
    )
}

fn stand(workflow: Workflow) -> Stand {
    let mut stand = Stand::playing(script(Flaw::Reported, 0));
    stand.workflow = workflow;
    stand
}

/// How often each step finished.
fn finished(stand: &Stand) -> BTreeMap<String, usize> {
    let mut finished = BTreeMap::new();
    for fact in stand.facts() {
        if fact["type"] == "step_finished" {
            *finished.entry(fact["step"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    finished
}

/// Drives the run and has it pause once so many facts were shown.
async fn paused_after(stand: &Stand, number: usize) -> Outcome {
    let (run, mut show) = match stand.session() {
        Some(dir) => stand.resume(&dir).unwrap(),
        None => stand.start().unwrap(),
    };
    let (wishes, intents) = mpsc::channel(4);
    let driving = run.drive(intents);
    tokio::pin!(driving);
    let mut seen = 0;
    loop {
        tokio::select! {
            biased;
            shown = show.next() => if let Some(Shown::Fact(_)) = shown {
                seen += 1;
                if seen == number {
                    wishes.try_send(Intent::Pause { reason: "a test".to_owned() }).unwrap();
                }
            },
            ended = &mut driving => return ended.unwrap().outcome,
        }
    }
}

#[test]
fn stopped_between_two_batches_it_goes_on_with_what_was_pending() {
    let whole = stand(counting());
    assert_eq!(on_one_thread(whole.live()).unwrap(), Outcome::Completed);
    let expected = finished(&whole);
    assert_eq!(expected.len() as u64, 2 * ROUNDS);

    let stopped = stand(counting());
    let mut times = 0;
    while on_one_thread(paused_after(&stopped, 600)) == Outcome::Paused {
        times += 1;
    }
    assert!(times >= 2, "it was stopped only {times} times");
    assert_eq!(finished(&stopped), expected, "each step once, whenever it was stopped");
    let folder = stopped.session().unwrap().join("checkpoints");
    let pending = |name: &String| {
        let bytes = stopped.disk.read(&folder.join(name), u64::MAX).unwrap();
        let snapshot: Value = serde_json::from_slice(&bytes).unwrap();
        snapshot["payload"]["pending"].as_array().map_or(0, Vec::len)
    };
    let names = stopped.disk.list(&folder).unwrap();
    assert!(names.iter().any(|name| pending(name) > 0), "not the moment meant: {names:?}");
}

/// Somebody is there to answer and does not, until the run has used its time.
#[test]
fn the_time_of_a_run_ends_a_question() {
    let question = Question { question: "Go on?".to_owned(), ..Question::default() };
    let ask = Action::Ask(Asking { question }).node("ask");
    let mut stand = stand(workflow(Graph::starting_at("ask").node(ask), Functions::default()));
    stand.settings.on_question = OnQuestion::Ask;
    stand.settings.timeout_secs = Some(1);
    let outcome = on_one_thread(async {
        let (run, _show) = stand.start().unwrap();
        let (_wishes, intents) = mpsc::channel(1);
        let driving = tokio::time::timeout(Duration::from_secs(120), run.drive(intents));
        driving.await.expect("it ends").unwrap().outcome
    });
    assert!(matches!(outcome, Outcome::Failed { ceiling: true, .. }), "{outcome:?}");
    let last = stand.facts().pop().unwrap();
    assert_eq!(last["type"], "run_finished", "{last}");
}
