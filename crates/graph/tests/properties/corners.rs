//! Corners in which a run once went wrong.

use atomic_graph::{
    Branch, Count, FunctionId, Graph, Input, Kind, Node, OnError, Parallel, Reducer, Retry,
    StepResult, Strategy,
};
use serde_json::{Value, json};

use crate::table::{
    chosen, done, evaluated, failed, fan, gone, only, patched, play, returned, start, sub,
    unevaluated, work, wrote,
};

fn retry(attempts: u32, when: Option<&str>) -> Retry {
    Retry { attempts, when: when.map(FunctionId::from), ..Retry::default() }
}

fn race(id: &str, merge: Option<&str>) -> Node {
    let branch = |id: &str| Branch { id: id.into(), graph: only(work("w")) };
    Node::new(
        id,
        Kind::Parallel(Parallel {
            branches: vec![branch("l"), branch("r")],
            strategy: Strategy::Race,
            fail_fast: false,
            merge: merge.map(FunctionId::from),
        }),
    )
}

#[test]
fn a_change_from_outside_that_does_not_fit_changes_nothing() {
    let graph = only(work("a")).reducer("a", Reducer::Sum).reducer("b", Reducer::Sum);
    let (mut machine, _) = start(graph, json!({"a": 1, "b": 1}));
    assert!(machine.apply(patched(json!({"a": 1, "b": "x"}))).is_err());
    assert_eq!(machine.newest().to_value()["a"], 1);
}

#[test]
fn a_retry_that_had_to_be_thought_about_waits_for_a_place_to_run() {
    let mut graph = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a").retry(Retry { delay_ms: 7, ..retry(2, Some("worth-it")) }))
        .node(work("b"))
        .node(work("c"))
        .edge("s", "a")
        .edge("s", "b")
        .edge("s", "c");
    graph.max_concurrency = Some(1);
    let error = r#"{"code":"broken","message":"a#1 broke"}"#;
    let asked = format!("evaluate worth-it({error}) for a#1; start b#1");
    let table = vec![
        (done("s#1"), "start a#1"),
        (failed("a#1", 1), asked.as_str()),
        (evaluated("a#1", json!(true)), ""),
        (done("b#1"), "start a#1 again (Retried, 2) in 7 ms"),
        (returned("a#1", 2, StepResult::default()), "start c#1"),
        (done("c#1"), "finish"),
    ];
    play(graph, json!({}), "start s#1", table);
}

#[test]
fn a_function_that_fails_inside_a_fan_ends_it_only_after_its_other_items_are_gone() {
    let graph = only(fan("fan", 9, only(work("w")).reducer("made", Reducer::Call("f".into()))))
        .reducer("made", Reducer::Call("f".into()));
    let table = vec![
        (wrote("fan#1[0]/w#1", "made", json!(1)), "evaluate f(null, 1) for fan#1[0]/w#1"),
        (evaluated("fan#1[0]/w#1", json!([1])), "evaluate f(null, 1) for fan#1"),
        (unevaluated("fan#1"), "cancel fan#1[1]/w#1"),
        (gone("fan#1[1]/w#1"), "fail: the function broke"),
        (Input::Revived, "evaluate f(null, 1) for fan#1; start fan#1[1]/w#1 again (Revived, 2)"),
        (evaluated("fan#1", json!([1])), ""),
        // What the fan has changed meets the state around it.
        (returned("fan#1[1]/w#1", 2, StepResult::default()), "evaluate f(null, 1) for fan#1"),
        (evaluated("fan#1", json!([1])), "finish"),
    ];
    play(graph, json!({"list": [1, 2]}), "start fan#1[0]/w#1; start fan#1[1]/w#1", table);
}

#[test]
fn a_fan_with_a_failed_item_ends_only_when_all_that_finished_are_heard() {
    let graph = only(fan("fan", 9, only(work("w")))).reducer("made", Reducer::Call("f".into()));
    let table = vec![
        (failed("fan#1[0]/w#1", 1), ""),
        (wrote("fan#1[1]/w#1", "made", json!(1)), "evaluate f(null, 1) for fan#1[1]/w#1"),
        (wrote("fan#1[2]/w#1", "made", json!(2)), "evaluate f(null, 2) for fan#1[2]/w#1"),
        (evaluated("fan#1[1]/w#1", json!([1])), "evaluate f(null, 1) for fan#1"),
        (evaluated("fan#1[2]/w#1", json!([2])), ""),
        (evaluated("fan#1", json!([1])), "evaluate f([1], 2) for fan#1"),
        (
            evaluated("fan#1", json!([1, 2])),
            "fail: 1 of 3 items failed; the first: fan#1[0]/w#1 broke",
        ),
    ];
    let first = "start fan#1[0]/w#1; start fan#1[1]/w#1; start fan#1[2]/w#1";
    play(graph, json!({"list": [1, 2, 3]}), first, table);
}

#[test]
fn a_visit_that_was_stopped_before_its_turn_is_entered_when_the_run_is_revived() {
    let mut graph = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a").max_visits(Count::Key("limit".into())))
        .node(sub("b", only(work("w"))))
        .edge("s", "a")
        .edge("s", "b");
    graph.fail_fast = true;
    let table = vec![
        (done("s#1"), "fail: node `a` has used all of its 0 visits"),
        (patched(json!({"limit": 1})), ""),
        (Input::Revived, "start a#1; start b#1/w#1"),
    ];
    play(graph, json!({"limit": 0}), "start s#1", table);
}

#[test]
fn what_fails_again_at_once_stops_the_others_also_in_a_revived_run() {
    let mut graph = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a").max_visits(Count::Key("limit".into())))
        .node(work("b"))
        .edge("s", "a")
        .edge("s", "b");
    graph.fail_fast = true;
    let refused = "fail: node `a` has used all of its 0 visits";
    let table = vec![(done("s#1"), refused), (Input::Revived, refused)];
    play(graph, json!({"limit": 0}), "start s#1", table);
}

#[test]
fn a_visit_whose_state_did_not_fit_is_counted_once() {
    let mut node = work("a").max_visits(Count::Key("limit".into()));
    node.input_schema = Some(json!({"required": ["x"]}));
    let (mut machine, shown) = start(only(node), json!({"limit": 1}));
    assert!(shown.starts_with("fail: the state does not fit the input schema of `a`"), "{shown}");
    machine.apply(patched(json!({"x": 1}))).unwrap();
    let effects = machine.apply(Input::Revived).unwrap();
    assert_eq!(crate::table::show(&effects), "start a#1");
}

#[test]
fn changes_that_do_not_fit_each_other_run_nothing_again() {
    let graph = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a"))
        .node(work("b"))
        .node(work("c"))
        .edge("s", "a")
        .edge("s", "b")
        .join(["a", "b"], "c")
        .reducer("first", Reducer::Sum)
        .reducer("n", Reducer::Sum);
    let both = StepResult::default().set("first", 5).set("n", 2);
    let table = vec![
        (done("s#1"), "start a#1; start b#1"),
        (wrote("a#1", "n", json!("text")), ""),
        (
            returned("b#1", 1, both),
            "fail: node `b`, key `n`: `sum` cannot combine a text with a number",
        ),
        (Input::Revived, "fail: node `b`, key `n`: `sum` cannot combine a text with a number"),
    ];
    let machine = play(graph, json!({"first": 1}), "start s#1", table);
    assert_eq!(machine.newest().to_value()["first"], 6, "applied once");
}

#[test]
fn a_function_cannot_ask_for_what_a_ceiling_forbids() {
    let node = work("a").max_visits(Count::Fixed(1)).on_error(OnError::Call("f".into()));
    let graph = only(node).edge("a", "a");
    let refused = r#"{"code":"ceiling","message":"node `a` has used all of its 1 visits"}"#;
    let asked = format!("evaluate f({refused}) for a#2");
    let table = vec![
        (done("a#1"), asked.as_str()),
        (evaluated("a#2", json!("retry")), "fail: node `a` has used all of its 1 visits"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_node_whose_whole_result_did_not_fit_is_run_again_as_a_whole() {
    let looped = |max_rounds| Kind::Loop { graph: only(work("w")), until: None, max_rounds };
    let isolated =
        Kind::Subgraph { graph: only(work("w")), isolated: true, input: None, output: None };
    let branch = |id: &str| Branch { id: id.into(), graph: only(work("w")) };
    let parallel = Parallel {
        branches: vec![branch("l")],
        strategy: Strategy::All,
        fail_fast: false,
        merge: None,
    };
    let cases = [
        (sub("x", only(work("w"))).kind, "x#1/w#1", "x#1!2/w#1"),
        (isolated, "x#1/w#1", "x#1!2/w#1"),
        (looped(1), "x#1[1]/w#1", "x#1!2[1]/w#1"),
        (fan("x", 1, only(work("w"))).kind, "x#1[0]/w#1", "x#1!2[0]/w#1"),
        (Kind::Parallel(parallel), "x#1[l]/w#1", "x#1!2[l]/w#1"),
    ];
    for (kind, first, second) in cases {
        let mut node = Node::new("x", kind);
        node.output_schema = Some(json!({"type": "boolean"}));
        let (mut machine, _) = start(only(node), json!({"list": [1]}));
        let effects = machine.apply(done(first)).unwrap();
        let shown = crate::table::show(&effects);
        assert!(shown.starts_with("fail: what `x` returned does not fit"), "{shown}");
        let effects = machine.apply(Input::Revived).unwrap();
        assert_eq!(crate::table::show(&effects), format!("start {second}"));
    }
}

#[test]
fn a_race_that_was_won_stays_won_when_the_run_is_revived() {
    let graph = only(race("race", Some("merge"))).reducer("log", Reducer::Concat);
    let table = vec![
        (
            returned("race#1[l]/w#1", 1, StepResult::output("l").set("log", json!(["l"]))),
            "cancel race#1[r]/w#1",
        ),
        (gone("race#1[r]/w#1"), r#"evaluate merge({"l":"l"}) for race#1"#),
        (unevaluated("race#1"), "fail: the function broke"),
        (Input::Revived, r#"evaluate merge({"l":"l"}) for race#1"#),
        (evaluated("race#1", Value::Null), "finish"),
    ];
    let first = "start race#1[l]/w#1; start race#1[r]/w#1";
    let machine = play(graph, json!({"log": []}), first, table);
    assert_eq!(machine.newest().to_value()["log"], json!(["l"]));
}

#[test]
fn a_race_whose_result_did_not_fit_is_run_again_with_all_who_took_part() {
    let mut node = race("race", None);
    node.output_schema = Some(json!({"type": "boolean"}));
    let (mut machine, _) = start(only(node), json!({}));
    machine.apply(done("race#1[l]/w#1")).unwrap();
    let effects = machine.apply(gone("race#1[r]/w#1")).unwrap();
    assert!(crate::table::show(&effects).starts_with("fail: what `race` returned does not fit"));
    let effects = machine.apply(Input::Revived).unwrap();
    let both = "start race#1!2[l]/w#1; start race#1!2[r]/w#1";
    assert_eq!(crate::table::show(&effects), both);
}

#[test]
fn items_of_the_same_name_are_told_apart_and_keep_their_order() {
    let list = json!([{"id": "a~2"}, {"id": "a"}, {"id": "a"}, {"id": "b"}]);
    let (mut machine, shown) = start(only(fan("fan", 9, only(work("w")))), json!({"list": list}));
    let names = ["a~2", "a", "a~2~2", "b"].map(|name| format!("fan#1[{name}]/w#1"));
    assert_eq!(shown, names.clone().map(|name| format!("start {name}")).join("; "));
    for name in names.iter().rev() {
        machine.apply(done(name)).unwrap();
    }
    let outputs = machine.newest().output("fan").unwrap().as_object().unwrap().clone();
    assert_eq!(outputs.keys().collect::<Vec<_>>(), ["a~2", "a", "a~2~2", "b"]);
}

#[test]
fn failed_items_of_a_revived_run_wait_for_a_worker() {
    let graph = only(fan("fan", 1, only(work("w"))));
    let table = vec![
        (failed("fan#1[0]/w#1", 1), "start fan#1[1]/w#1"),
        (failed("fan#1[1]/w#1", 1), "fail: 2 of 2 items failed; the first: fan#1[0]/w#1 broke"),
        (Input::Revived, "start fan#1[0]/w#1 again (Revived, 2)"),
        (failed("fan#1[0]/w#1", 2), "start fan#1[1]/w#1 again (Revived, 2)"),
        (
            returned("fan#1[1]/w#1", 2, StepResult::default()),
            "fail: 1 of 2 items failed; the first: fan#1[0]/w#1 broke",
        ),
    ];
    play(graph, json!({"list": [1, 2]}), "start fan#1[0]/w#1", table);
}

#[test]
fn a_run_that_could_start_nothing_goes_on_from_there_when_it_may() {
    let limited =
        |id: &str| work(id).max_visits(Count::Key("limit".into())).on_error(OnError::Skip);
    let graph = Graph::starting_at("s")
        .node(work("s"))
        .node(limited("a"))
        .node(limited("b"))
        .node(limited("c"))
        .edge("s", "a")
        .edge("s", "b")
        .join(["a", "b"], "c")
        .edge("c", "a")
        .edge("c", "b");
    let table = vec![
        (done("s#1"), "fail: it went round without being able to start anything"),
        (patched(json!({"limit": 9})), ""),
        (Input::Revived, "start c#3"),
        (done("c#3"), "start a#4; start b#4"),
    ];
    play(graph, json!({"limit": 0}), "start s#1", table);
}

#[test]
fn a_failure_inside_an_item_is_named_whatever_it_was() {
    let graph = only(fan("fan", 9, only(work("w")).reducer("made", Reducer::Call("f".into()))));
    let table = vec![
        (wrote("fan#1[0]/w#1", "made", json!(1)), "evaluate f(null, 1) for fan#1[0]/w#1"),
        (unevaluated("fan#1[0]/w#1"), "fail: 1 of 1 items failed; the first: the function broke"),
        (Input::Revived, "evaluate f(null, 1) for fan#1[0]/w#1"),
        (evaluated("fan#1[0]/w#1", json!(2)), "finish"),
    ];
    play(graph, json!({"list": [1]}), "start fan#1[0]/w#1", table);
}

#[test]
fn nothing_is_kept_of_a_node_that_a_revived_run_goes_past() {
    let graph =
        Graph::starting_at("x").node(sub("x", only(work("w"))).on_revive("y")).node(work("y"));
    let table = vec![(failed("x#1/w#1", 1), "fail: x#1/w#1 broke"), (Input::Revived, "start y#1")];
    let machine = play(graph, json!({}), "start x#1/w#1", table);
    assert_eq!(machine.snapshot().unwrap()["frames"].as_object().unwrap().len(), 1);
}

#[test]
fn stopped_choices_and_rests_are_not_waited_for() {
    let rested = sub("r", only(work("w"))).retry(Retry { delay_ms: 5, ..retry(2, None) });
    let mut graph = Graph::starting_at("s")
        .node(work("s"))
        .node(Node::new("d", Kind::Decision))
        .node(rested)
        .node(work("f"))
        .node(work("g"))
        .edge("s", "d")
        .edge("s", "r")
        .edge("s", "f")
        .edge_when("d", "g", atomic_graph::Condition::Otherwise);
    graph.fail_fast = true;
    let table = vec![
        (done("s#1"), "start r#1/w#1; start f#1"),
        (failed("r#1/w#1", 1), "rest r#1 for 5 ms"),
        (failed("f#1", 1), "fail: f#1 broke"),
        (Input::Revived, "start r#1!2/w#1; start f#1 again (Revived, 2)"),
        (done("r#1!2/w#1"), ""),
        (returned("f#1", 2, StepResult::default()), "choose after d#1 of 1"),
        (chosen("d#1", Some(0)), "start g#1"),
    ];
    let machine = play(graph, json!({}), "start s#1", table);
    assert!(!machine.awaits(&atomic_graph::StepId::new("d#1")));
}

#[test]
fn a_node_that_failed_and_was_skipped_has_changed_nothing() {
    let body = Graph::starting_at("w").node(work("w")).node(work("x")).edge("w", "x");
    let graph = Graph::starting_at("s")
        .node(fan("s", 1, body).on_error(OnError::Skip))
        .node(work("after"))
        .edge("s", "after");
    let table = vec![
        (wrote("s#1[0]/w#1", "n", json!(2)), "start s#1[0]/x#1"),
        (done("s#1[0]/x#1"), "start s#1[1]/w#1"),
        (failed("s#1[1]/w#1", 1), "start after#1"),
    ];
    let machine = play(graph, json!({"n": 1, "list": [1, 2]}), "start s#1[0]/w#1", table);
    assert_eq!(machine.newest().to_value()["n"], 1);
}
