//! What happens when nodes fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use atomic_event::StepError;
use atomic_graph::{OnError, Retry};
use atomic_workflow::build::{Config, Draft, Remedy, graph, tool};
use atomic_workflow::{Json, Update};
use serde_json::json;

use crate::driver::{run, run_compiled};

/// A node that fails this many times.
fn flaky(id: &str, failures: u32) -> Draft<Json> {
    let tries = Arc::new(AtomicU32::new(0));
    tool(id, move |_| {
        let tried = tries.fetch_add(1, Ordering::SeqCst);
        if tried < failures {
            return Err(StepError::new("flaky", format!("failure {tried}")));
        }
        Ok(Update::new().output(tried))
    })
}

fn rescue() -> Draft<Json> {
    tool("rescue", |s| Update::new().put("caught", s.output("broken")["error"]["message"].clone()))
}

#[test]
fn a_failure_is_caught_with_the_error_in_sight() {
    let ran = run(
        graph().start(flaky("broken", 99)).then(flaky("never", 0)).catch(rescue()).end(),
        json!({}),
    );
    assert_eq!(ran.outcome, Ok(()));
    assert_eq!(ran.trace(), "broken#1 rescue#1");
    assert_eq!(ran.key("caught"), "failure 0");

    let named = graph().start(flaky("broken", 99)).then(rescue()).catch_at("rescue");
    assert_eq!(run(named, json!({})).key("caught"), "failure 0");

    let uncaught = run(graph().start(flaky("broken", 99)), json!({}));
    assert_eq!(uncaught.outcome.unwrap_err().message, "failure 0");
}

#[test]
fn a_node_is_tried_again_while_it_is_worth_it() {
    let retry = || Retry { attempts: 3, ..Retry::default() };
    let ran = run(graph().start(flaky("a", 2).retry(retry())), json!({}));
    assert_eq!(ran.output("a"), 2);
    let hopeless = flaky("a", 2).retry(retry()).retry_if(|error, _| error.message == "failure 9");
    assert_eq!(run(graph().start(hopeless), json!({})).trace(), "a#1");
}

#[test]
fn a_function_says_what_to_do_about_a_failure() {
    let skip = flaky("a", 9)
        .recover(|error, _| Remedy::Skip(Update::new().put("skipped", error.message.as_str())));
    let ran = run(graph().start(skip).then(flaky("z", 0)), json!({}));
    assert_eq!((ran.trace().as_str(), ran.key("skipped")), ("a#1 z#1", &json!("failure 0")));

    let again = flaky("a", 1).recover(|_, _| Remedy::Retry(Some(Duration::from_millis(1))));
    assert_eq!(run(graph().start(again), json!({})).output("a"), 1);

    let elsewhere = flaky("a", 9).recover(|_, _| Remedy::Goto("z".into())).may_go_to(["z"]);
    let ran = run(graph().start(elsewhere).then(flaky("b", 0)).then(flaky("z", 0)), json!({}));
    assert_eq!(ran.trace(), "a#1 z#1");

    let abort = flaky("a", 9).recover(|_, _| Ok(Remedy::Abort));
    assert_eq!(run(graph().start(abort), json!({})).outcome.unwrap_err().code, "flaky");

    let plain = flaky("a", 9).on_error(OnError::Skip);
    assert_eq!(run(graph().start(plain).then(flaky("z", 0)), json!({})).trace(), "a#1 z#1");
}

#[test]
fn a_function_can_go_elsewhere_and_a_cycle_ends() {
    let around = || {
        graph()
            .start(flaky("a", 0))
            .then(tool("back", |_| Update::new().goto("a")).may_go_to(["a"]))
    };
    let ran = run(around(), json!({"maxIterations": 3}));
    assert_eq!(ran.trace(), "a#1 back#1 a#2 back#2 a#3 back#3");
    assert_eq!(ran.outcome.unwrap_err().code, "ceiling");
    let config = Config { max_iterations: None, max_steps: Some(3), ..Config::new("test") };
    let ran = run_compiled(around().compile(config).unwrap(), json!({}));
    assert_eq!(ran.trace(), "a#1 back#1 a#2");

    let many = graph()
        .start(tool("a", |_| Update::new().goto_all(["b", "c"])).may_go_to(["b", "c"]))
        .then(flaky("b", 0))
        .then(flaky("c", 0));
    assert_eq!(run(many, json!({})).trace(), "a#1 b#1 c#1 c#2");
}

#[test]
fn a_function_that_only_changes_the_state_cannot_do_more() {
    let mapped = tool("a", |_| Update::<Json>::new().output(1));
    let inner = graph().start(mapped);
    let node = atomic_workflow::build::subgraph("sub", atomic_workflow::build::Inner::of(inner))
        .map(|_, _| Update::new().goto("a"));
    let ran = run(graph().start(node), json!({}));
    let message = ran.outcome.unwrap_err().message;
    assert!(message.contains("`sub`") && message.contains("only change the state"), "{message}");
}
