//! What the built-in workflows are made of, which sessions on disk refer to.

use atomic_workflow::{Launch, builtin};
use serde_json::json;

#[test]
fn second_opinion_stays_what_stored_sessions_know() {
    let workflow = builtin::find("second-opinion").unwrap();
    let launch = Launch { prompt: "Why?".to_owned(), ..Launch::default() };
    let known = json!({
        "graph": workflow.graph,
        "functions": workflow.functions.ids().collect::<Vec<_>>(),
        "state": workflow.initial_state.state(&launch).unwrap(),
    });
    insta::assert_snapshot!("second_opinion", serde_json::to_string_pretty(&known).unwrap());
}
