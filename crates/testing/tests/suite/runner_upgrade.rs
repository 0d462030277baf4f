//! A session goes on with another version of its workflow.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::Arc;

use atomic_event::{Intent, StepError, StepResult};
use atomic_graph::{Graph, Node, NodeId};
use atomic_runner::{Outcome, ResumeOptions, Run, RunError, Upgrade};
use atomic_session::Disk as _;
use atomic_workflow::{Action, Function, Functions, Host, Initial, StateShape, WorkCall, Workflow};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

fn node(id: &str) -> Node {
    Action::Function { call: id.into() }.node(id)
}

/// A chain of nodes; each adds its name to what the state has under `done`. `wait` waits for a file.
fn chain(ids: &[&str], shape: StateShape) -> Workflow {
    let mut graph = Graph::starting_at(ids[0]);
    let mut functions = Functions::default();
    for id in ids {
        graph = graph.node(node(id));
        let own = (*id).to_owned();
        let adds = Function::step(move |call| {
            let mut done: Vec<String> = call.get("done");
            done.push(own.clone());
            Ok(StepResult::default().set("done", done))
        });
        let waits = Function::work(|call: WorkCall, host: Arc<dyn Host>| async move {
            while host.request("exists", json!({"path": "go"})).await != Ok(json!(true)) {
                tokio::task::yield_now().await;
            }
            let done = call.state.get("done").cloned().unwrap_or_default();
            Ok(StepResult::default().set("seen", Value::clone(&done)))
        });
        functions = functions.with(id, if *id == "wait" { waits } else { adds });
    }
    for pair in ids.windows(2) {
        graph = graph.edge(NodeId::from(pair[0]), NodeId::from(pair[1]));
    }
    Workflow {
        name: "chain".into(),
        aliases: vec![],
        description: String::new(),
        sessions_dir: ".ralph/sessions".to_owned(),
        graph,
        functions,
        initial_state: Initial::made(|_| {
            [("done".into(), json!([])), ("old".into(), json!(1))].into()
        }),
        source: None,
        state_shape: shape,
    }
}

fn plain(ids: &[&str]) -> Workflow {
    chain(ids, StateShape::default())
}

/// A session that was paused while `wait` was under way.
fn paused() -> Stand {
    paused_in(plain(&["first", "wait", "last"]))
}

fn paused_in(workflow: Workflow) -> Stand {
    let mut stand = Stand::playing(json!({"turn": []}));
    stand.workflow = workflow;
    let outcome = on_one_thread(async {
        let (run, mut show) = stand.start().unwrap();
        let (wishes, intents) = mpsc::channel(1);
        let pause = async {
            while let Some(shown) = show.next().await {
                if let atomic_runner::Shown::Fact(fact) = shown
                    && matches!(&fact.event, atomic_event::Event::StepReported { .. })
                {
                    break;
                }
            }
            wishes.send(Intent::Pause { reason: "a test".to_owned() }).await.unwrap();
        };
        let (ended, ()) = tokio::join!(run.drive(intents), pause);
        ended.unwrap().outcome
    });
    assert_eq!(outcome, Outcome::Paused);
    stand
}

fn upgrade(stand: &Stand) -> Result<Run, RunError> {
    let options = ResumeOptions { upgrade: Some(Upgrade), ..ResumeOptions::default() };
    let find = |_: &str| Ok(stand.workflow.clone());
    let dir = stand.session().unwrap();
    Run::resume(stand.stage(), dir, options, find, |_| {}).map(|(run, _)| run)
}

fn finished(stand: &Stand) -> Vec<String> {
    let facts = stand.facts();
    let of_kind = facts.iter().filter(|fact| fact["type"] == "step_finished");
    of_kind.map(|fact| fact["step"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_under_way_goes_on_in_the_new_graph_and_so_it_is_read_again() {
    let mut stand = paused();
    // The nodes have other numbers, and there is one more behind.
    stand.workflow = plain(&["before", "first", "wait", "between", "last"]);
    stand.workflow.graph.start = "first".into();
    stand.workflow.graph.edges.retain(|edge| edge.from[0].as_str() != "before");
    stand.workflow.graph.nodes.rotate_left(1);
    stand.workflow.graph = stand.workflow.graph.clone().edge("last", "before");
    on_one_thread(async {
        let run = upgrade(&stand).unwrap();
        let (wishes, intents) = mpsc::channel(1);
        wishes.send(Intent::Pause { reason: "again".to_owned() }).await.unwrap();
        assert_eq!(run.drive(intents).await.unwrap().outcome, Outcome::Paused);
    });
    // Without an upgrade it goes on with what it was upgraded to, whatever the workflow is now.
    let functions = stand.workflow.functions.clone();
    stand.workflow = Workflow { functions, ..plain(&["other"]) };
    std::fs::write(stand.work().join("go"), "").unwrap();
    assert_eq!(on_one_thread(stand.live()).unwrap(), Outcome::Completed);
    assert_eq!(finished(&stand), ["first#1", "wait#1", "between#1", "last#1", "before#1"]);
    let kept =
        atomic_runner::kept(Arc::new(stand.disk.clone()), &stand.session().unwrap()).unwrap();
    let graph: Graph = serde_json::from_value(kept.graph).unwrap();
    assert_eq!(graph.nodes.len(), 5);

    // The same from every beginning of the journal.
    let journal = stand.journal();
    let upgraded = (1..=journal.len()).filter(|end| journal[end - 1] == b'\n');
    for end in
        upgraded.filter(|end| String::from_utf8_lossy(&journal[..*end]).contains("\"upgraded\""))
    {
        let again = stand.with_journal(&journal[..end]);
        match on_one_thread(again.live()) {
            Ok(outcome) => assert_eq!(outcome, Outcome::Completed),
            Err(error) => assert!(error.to_string().contains("is completed"), "{error}"),
        }
        assert_eq!(finished(&again), finished(&stand));
        assert!(again.disk.read(&again.session().unwrap().join("journal.jsonl"), u64::MAX).is_ok());
    }
}

#[test]
fn an_upgrade_without_what_is_under_way_is_refused_and_changes_nothing() {
    let mut stand = paused();
    let before = stand.journal();
    stand.workflow = plain(&["first", "last"]);
    let refused = upgrade(&stand).err().unwrap().to_string();
    assert_eq!(
        refused,
        "the session cannot be upgraded: these nodes are under way and are not in the workflow any \
         more, or are of another kind: wait"
    );
    assert_eq!(stand.journal(), before);
}

#[test]
fn the_state_is_migrated_and_without_a_migration_another_version_is_refused() {
    let mut stand = paused();
    let ids = ["first", "wait", "last"];
    stand.workflow = chain(&ids, StateShape { version: 2, migrate: None });
    let refused = upgrade(&stand).err().unwrap().to_string();
    assert_eq!(
        refused,
        "the session cannot be upgraded: its state has the version 0, the workflow's has 2, and \
         the workflow has no `migrateState` to bring it there"
    );
    let fails = |_: Value, from: u64| Err(StepError::new("x", format!("not from {from}")));
    stand.workflow = chain(&ids, StateShape { version: 2, migrate: Some(Arc::new(fails)) });
    let refused = upgrade(&stand).err().unwrap().to_string();
    assert_eq!(refused, "the session cannot be upgraded: `migrateState` failed: not from 0");

    let migrate = |mut old: Value, _: u64| {
        old["done"] = json!(["migrated", old["done"][0]]);
        old["new"] = json!(true);
        old.as_object_mut().unwrap().shift_remove("old");
        Ok(old)
    };
    stand.workflow = chain(&ids, StateShape { version: 2, migrate: Some(Arc::new(migrate)) });
    std::fs::write(stand.work().join("go"), "").unwrap();
    on_one_thread(async {
        let (_wishes, intents) = mpsc::channel(1);
        let ended = upgrade(&stand).unwrap().drive(intents).await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed);
    });
    let facts = stand.facts();
    let resumed = facts.iter().find(|fact| fact["type"] == "session_resumed").unwrap();
    let state = json!({"done": ["migrated", "first"], "new": true, "old": null});
    assert_eq!(resumed["upgraded"]["state"], state);
    assert_eq!((&resumed["upgraded"]["from"], &resumed["upgraded"]["to"]), (&json!(0), &json!(2)));
    let seen =
        facts.iter().find(|fact| fact["step"] == "wait#1" && fact["type"] == "step_finished");
    assert_eq!(seen.unwrap()["result"]["patch"]["seen"], json!(["migrated", "first"]));
}

/// The migration gets the edited list and not the one before.
#[test]
fn a_task_list_that_was_edited_while_paused_is_migrated() {
    let with_tasks = |shape: StateShape| {
        let task = json!({"id": "#1", "content": "Build it", "status": "pending"});
        let state =
            move |_: &_| [("done".into(), json!([])), ("tasks".into(), json!([task]))].into();
        Workflow { initial_state: Initial::made(state), ..chain(&["first", "wait", "last"], shape) }
    };
    let mut stand = paused_in(with_tasks(StateShape::default()));
    let path = stand.session().unwrap().join("tasks.json");
    let list = String::from_utf8(stand.disk.read(&path, u64::MAX).unwrap()).unwrap();
    stand.disk.replace(&path, list.replace("Build it", "Paint it").as_bytes()).unwrap();
    let migrate = |mut old: Value, _: u64| {
        old["tasks"][0]["priority"] = json!(1);
        Ok(old)
    };
    stand.workflow = with_tasks(StateShape { version: 2, migrate: Some(Arc::new(migrate)) });
    std::fs::write(stand.work().join("go"), "").unwrap();
    on_one_thread(async {
        let (_wishes, intents) = mpsc::channel(1);
        let ended = upgrade(&stand).unwrap().drive(intents).await.unwrap();
        assert_eq!(ended.outcome, Outcome::Completed);
    });
    let facts = stand.facts();
    let resumed = facts.iter().find(|fact| fact["type"] == "session_resumed").unwrap();
    let task = &resumed["upgraded"]["state"]["tasks"][0];
    assert_eq!((&task["content"], &task["priority"]), (&json!("Paint it"), &json!(1)));
    let list = String::from_utf8(stand.disk.read(&path, u64::MAX).unwrap()).unwrap();
    assert!(list.contains("Paint it"), "{list}");
}
