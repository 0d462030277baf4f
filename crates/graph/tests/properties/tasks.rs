//! Fans over tasks: lists that are edited, lists that cannot be worked on, and what is still ahead.

use std::collections::BTreeSet;

use atomic_graph::{Graph, Input, Kind, Machine, Node, OnError, Ready, Reducer};
use serde_json::json;

use crate::table::{done, fan, only, patched, play, start, sub, work, wrote};

/// A list that is replaced as a whole has the rows in it that nobody has edited.
#[test]
fn an_edit_runs_only_tasks_again_whose_rows_differ() {
    let row = |id: &str| json!({"id": id, "status": "pending"});
    let rows = |ids: &[&str]| json!(ids.iter().map(|id| row(id)).collect::<Vec<_>>());
    let graph = || only(by_tasks("fan", 1));
    let table = vec![
        (done("fan#1[a]/w#1"), "start fan#1[b]/w#1"),
        (patched(json!({"tasks": rows(&["c", "a", "b"])})), ""),
        (done("fan#1[b]/w#1"), "start fan#1[c]/w#1"),
        (done("fan#1[c]/w#1"), "finish"),
    ];
    play(graph(), json!({"tasks": rows(&["a", "b"])}), "start fan#1[a]/w#1", table);
}

fn by_tasks(id: &str, workers: u64) -> Node {
    let mut node = fan(id, workers, only(work("w")));
    if let Kind::Each(each) = &mut node.kind {
        (each.ready, each.over) = (Ready::Tasks, "tasks".into());
    }
    node
}

/// A run that came to its end with such tasks would say that it has completed.
#[test]
fn a_fan_with_tasks_that_nothing_can_start_fails_and_goes_on_once_they_are_corrected() {
    let tasks =
        json!([{"id": "a", "blockedBy": ["b"]}, {"id": "b", "blockedBy": ["a"]}, {"id": "c"}]);
    let stuck = "fail: node `fan`, key `tasks`: no task can be started; left are a (blocked by b), b \
         (blocked by a)\n  hint: correct what they wait for, or set their status to `pending`; tasks \
         in the session's tasks.json can be edited before `atomic resume`";
    let table = vec![
        (wrote("fan#1[c]/w#1", "tasks", json!([{"id": "c", "status": "completed"}])), stuck),
        (Input::Revived, stuck),
        (patched(json!({"tasks": [{"id": "a", "blockedBy": []}]})), ""),
        (Input::Revived, "start fan#1[a]/w#1"),
        (
            wrote("fan#1[a]/w#1", "tasks", json!([{"id": "a", "status": "completed"}])),
            "start fan#1[b]/w#1",
        ),
        (done("fan#1[b]/w#1"), "finish"),
    ];
    let graph = only(by_tasks("fan", 2)).reducer("tasks", Reducer::MergeById);
    play(graph, json!({ "tasks": tasks }), "start fan#1[c]/w#1", table);
}

#[test]
fn rows_that_cannot_be_understood_fail_the_fan_before_anything_is_started() {
    let table = [
        (json!([{"id": "a"}, {"id": 2}]), "task 2 has the id 2\n  hint: write \"2\", with quotes"),
        (json!([{"id": "a"}, {"id": "a"}]), "the id `a` is used twice"),
        (json!([{"id": "a", "blockedBy": "b"}, {"id": "b"}]), "`blockedBy` is \"b\", not a list"),
        (json!([{"id": "a", "status": "todo"}]), "task `a` has the status \"todo\""),
    ];
    for (tasks, problem) in table {
        let (_, shown) = start(only(by_tasks("fan", 2)), json!({ "tasks": tasks }));
        assert!(shown.starts_with("fail: node `fan`, key `tasks`: "), "{shown}");
        assert!(shown.contains(problem), "{shown}");
    }
}

/// Whoever edits a list has to know whether something still reads it.
#[test]
fn the_nodes_ahead_are_those_under_way_and_those_behind_them() {
    let ahead = |machine: &Machine| {
        let ids: BTreeSet<_> = machine.ahead().iter().map(|node| node.id.to_string()).collect();
        ids.into_iter().collect::<Vec<_>>().join(" ")
    };
    let inner = Graph::starting_at("x").node(work("x")).node(work("y")).edge("x", "y");
    let rounds = Kind::Loop { graph: inner.clone(), until: None, max_rounds: 2 };
    let graph = Graph::starting_at("a")
        .node(work("a"))
        .node(sub("sub", inner))
        .node(work("b").on_error(OnError::Goto("help".into())))
        .node(work("help"))
        .node(work("end"))
        .node(Node::new("rounds", rounds))
        .edge("a", "sub")
        .edge("sub", "b")
        .edge("b", "rounds")
        .edge("rounds", "end");
    let (mut machine, _) = start(graph, json!({}));
    let table = [
        ("a#1", "b end help rounds sub x y"),
        ("sub#1/x#1", "b end help rounds sub x y"),
        ("sub#1/y#1", "b end help rounds x y"),
        ("b#1", "end rounds x y"),
        ("rounds#1[1]/x#1", "end rounds x y"),
        ("rounds#1[1]/y#1", "end rounds x y"),
        ("rounds#1[2]/x#1", "end rounds x y"),
        ("rounds#1[2]/y#1", "end"),
    ];
    for (step, expected) in table {
        machine.apply(done(step)).unwrap();
        assert_eq!(ahead(&machine), expected, "after {step}");
    }
}
