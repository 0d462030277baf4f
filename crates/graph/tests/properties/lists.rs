//! Fans whose list changes while they run.

use atomic_graph::{Graph, Input, Key, Kind, OnError, Reducer, State};
use serde_json::{Value, json};

use crate::table::{done, failed, fan, only, patch, patched, play, start, work, wrote};

fn rows(ids: &[&str]) -> Value {
    ids.iter().map(|id| json!({"id": id})).collect()
}

/// The fan's items as they run, one after the other; `when` changes the list.
fn names(list: &Value, when: &str, changed: &Value) -> Vec<String> {
    let (mut machine, mut shown) = start(only(fan("f", 1, only(work("w")))), json!({"list": list}));
    let mut ran = vec![];
    while let Some(step) = shown.strip_prefix("start ").map(str::to_owned) {
        let name = step.strip_prefix("f#1[").unwrap().strip_suffix("]/w#1").unwrap().to_owned();
        let changes = name == when;
        let input = if changes { wrote(&step, "list", changed.clone()) } else { done(&step) };
        shown = crate::table::show(&machine.apply(input).unwrap());
        ran.push(name);
    }
    assert_eq!(shown, "finish");
    ran
}

#[test]
fn every_item_with_an_id_runs_once_wherever_it_moves() {
    let table = [
        // One before it leaves the list.
        (rows(&["a", "b", "c"]), "a", rows(&["b", "c"]), vec!["a", "b", "c"]),
        // One comes in before it.
        (rows(&["a", "b"]), "a", rows(&["n", "a", "b"]), vec!["a", "n", "b"]),
        // They change places.
        (rows(&["a", "b", "c"]), "a", rows(&["c", "b", "a"]), vec!["a", "c", "b"]),
        // All is new.
        (rows(&["a", "b"]), "a", rows(&["x", "y"]), vec!["a", "x", "y"]),
        // What has run leaves and comes back.
        (rows(&["a", "b"]), "b", rows(&["b", "a", "c"]), vec!["a", "b", "c"]),
        // Two of the same name are two.
        (rows(&["a", "a", "b"]), "a", rows(&["n", "a", "a", "b"]), vec!["a", "n", "a~2", "b"]),
        (rows(&["a", "a", "b"]), "a~1", rows(&["n", "a", "a", "b"]), vec!["a", "a~1", "n", "b"]),
        // What has no id is known by its place.
        (json!([5, 6, 7]), "0", json!([6, 7]), vec!["0", "1"]),
        (json!([5, {"id": "a"}]), "0", json!([{"id": "a"}, 5, 6]), vec!["0", "a", "1", "2"]),
    ];
    for (list, when, changed, expected) in table {
        let ran = names(&list, when, &changed);
        assert_eq!(ran, expected, "{list} becomes {changed} after {when}");
    }
}

#[test]
fn a_failed_item_that_is_skipped_may_change_the_list() {
    let left = patch(json!({"list": rows(&["b", "c"])}));
    let body = only(work("w").on_error(OnError::SkipWith(left)));
    let table = vec![
        (failed("f#1[a]/w#1", 1), "start f#1[b]/w#1"),
        (done("f#1[b]/w#1"), "start f#1[c]/w#1"),
        (patched(json!({"list": rows(&["c", "d", "b"])})), ""),
        (done("f#1[c]/w#1"), "start f#1[d]/w#1"),
        (done("f#1[d]/w#1"), "finish"),
    ];
    let state = json!({"list": rows(&["a", "b", "c"])});
    play(only(fan("f", 1, body)), state, "start f#1[a]/w#1", table);
}

/// Read from its beginning for every item, it would take minutes.
#[test]
fn a_long_list_that_grows_is_read_once() {
    let graph = only(fan("f", 1, only(work("w")))).reducer("list", Reducer::Concat);
    let id = |n: u32| json!({"id": format!("i{n}")});
    let list: Vec<Value> = (0..20_000).map(id).collect();
    let (mut machine, _) = start(graph, json!({"list": list}));
    let mut length = list.len() as u32;
    for n in 0.. {
        let step = format!("f#1[i{n}]/w#1");
        let input = if n % 2_000 == 0 && n < 20_000 {
            length += 1;
            wrote(&step, "list", json!([id(length - 1)]))
        } else {
            done(&step)
        };
        let shown = crate::table::show(&machine.apply(input).unwrap());
        if shown == "finish" {
            assert_eq!((n + 1, length), (length, 20_010));
            break;
        }
        assert_eq!(shown, format!("start f#1[i{}]/w#1", n + 1));
    }
}

#[test]
fn a_fan_over_what_is_no_list_fails_and_names_node_and_key() {
    let graph = || only(fan("f", 2, only(work("w"))));
    let table = [
        (json!({}), "fail: node `f`, key `list`: a list is needed, and nothing is there"),
        (json!({"list": 5}), "fail: node `f`, key `list`: a list is needed, not 5"),
        (json!({"list": null}), "fail: node `f`, key `list`: a list is needed, not null"),
    ];
    for (state, expected) in table {
        let (mut machine, shown) = start(graph(), state);
        assert_eq!(shown, expected);
        assert_eq!(machine.outcome().unwrap().clone().unwrap_err().code, "wrong_value");
        machine.apply(patched(json!({"list": [1]}))).unwrap();
        let effects = machine.apply(Input::Revived).unwrap();
        assert_eq!(crate::table::show(&effects), "start f#1[0]/w#1");
    }
    let skipped = only(fan("f", 2, only(work("w"))).on_error(OnError::Skip));
    assert_eq!(start(skipped, json!({})).1, "finish");
}

#[test]
fn a_list_that_stops_being_one_ends_the_fan_and_what_is_done_stays_done() {
    let table = vec![
        (
            wrote("f#1[a]/w#1", "list", json!("gone")),
            "fail: node `f`, key `list`: a list is needed, not \"gone\"",
        ),
        (patched(json!({"list": rows(&["a", "b"])})), ""),
        (Input::Revived, "start f#1[b]/w#1"),
        (done("f#1[b]/w#1"), "finish"),
    ];
    let state = json!({"list": rows(&["a", "b"])});
    play(only(fan("f", 1, only(work("w")))), state, "start f#1[a]/w#1", table);
}

#[test]
fn what_an_item_is_called_inside_is_nobodys_business_outside() {
    let inner = Graph::starting_at("w").node(work("w")).node(work("x")).edge("w", "x");
    let table = vec![
        (wrote("f#1[a]/w#1", "item", json!("changed")), "start f#1[a]/x#1"),
        (done("f#1[a]/x#1"), "start f#1[b]/w#1"),
        (done("f#1[b]/w#1"), "start f#1[b]/x#1"),
        (done("f#1[b]/x#1"), "finish"),
    ];
    let state = json!({"list": rows(&["a", "b"]), "item": "mine"});
    let machine = play(only(fan("f", 1, inner.clone())), state, "start f#1[a]/w#1", table);
    assert_eq!(machine.newest().to_value()["item"], "mine");

    let mut node = fan("f", 1, inner);
    if let Kind::Each(each) = &mut node.kind {
        each.item = Key::from("row");
    }
    let (mut machine, _) = start(only(node), json!({"list": rows(&["a"])}));
    machine.apply(wrote("f#1[a]/w#1", "row", json!(1))).unwrap();
    machine.apply(wrote("f#1[a]/x#1", "item", json!(2))).unwrap();
    assert_eq!(machine.newest().get("row"), None);
    assert_eq!(machine.newest().to_value()["item"], 2);
}

#[test]
fn numbers_are_compared_by_their_value() {
    let state =
        State::new(patch(json!({"n": 1, "list": [1, {"x": 2.0}], "t": "1", "big": u64::MAX})));
    let table = [
        ("n", json!(1.0), true),
        ("n", json!(1), true),
        ("n", json!(1.5), false),
        ("n", json!("1"), false),
        ("n", json!(true), false),
        ("list", json!([1.0, {"x": 2}]), true),
        ("list", json!([1.0, {"x": 2, "y": 1}]), false),
        ("list", json!([1]), false),
        ("t", json!(1), false),
        ("big", json!(u64::MAX), true),
        ("big", json!(u64::MAX - 1), false),
        ("none", json!(null), false),
    ];
    for (key, value, expected) in table {
        assert_eq!(state.equals(key, &value), expected, "{key} = {value}");
    }
}
