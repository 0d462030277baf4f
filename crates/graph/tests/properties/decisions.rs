//! Decisions see what everything else of their superstep has changed, as conditional edges do.

use atomic_graph::{Condition, Graph, Input, Kind, Node, OnError, Retry, StepError, StepId};
use serde_json::json;

use crate::table::{chosen, done, failed, play, start, work, wrote};

/// `begin` leads to the decision `look` and to `slow`, which has a conditional edge of its own.
fn beside(look: Node) -> Graph {
    Graph::starting_at("begin")
        .node(work("begin"))
        .node(look)
        .node(work("slow"))
        .node(work("a"))
        .node(work("b"))
        .node(work("c"))
        .edge("begin", "look")
        .edge("begin", "slow")
        .edge_when("look", "a", Condition::Call("one".into()))
        .edge_when("look", "b", Condition::Call("two".into()))
        .edge_when("slow", "c", Condition::Call("one".into()))
}

fn look() -> Node {
    Node::new("look", Kind::Decision)
}

fn broken(step: &str) -> Input {
    let result = Err(StepError::new("function", "it threw"));
    Input::Evaluated { step: StepId::new(step), result }
}

const BOTH: &str = "choose after look#1 of 2; choose after slow#1 of 1";

#[test]
fn a_decision_waits_for_the_steps_beside_it_and_sees_what_they_changed() {
    let (mut machine, _) = start(beside(look()), json!({"n": 1}));
    machine.apply(done("begin#1")).unwrap();
    machine.apply(wrote("slow#1", "n", json!(2))).unwrap();
    let [first, second] =
        ["look#1", "slow#1"].map(|step| machine.view(&StepId::new(step)).unwrap().to_value());
    assert_eq!((&first["n"], &first), (&json!(2), &second));
    let table = vec![
        (done("begin#1"), "start slow#1"),
        (done("slow#1"), BOTH),
        (chosen("look#1", Some(1)), ""),
        (chosen("slow#1", Some(0)), "start b#1; start c#1"),
        (done("c#1"), ""),
        (done("b#1"), "finish"),
    ];
    let machine = play(beside(look()), json!({}), "start begin#1", table);
    assert_eq!(machine.newest().to_value()["outputs"]["look"], "b");
}

/// What another one chose is no change of the superstep.
#[test]
fn a_choice_does_not_see_the_choice_beside_it() {
    let graph = Graph::starting_at("begin")
        .node(work("begin"))
        .node(look())
        .node(Node::new("other", Kind::Decision))
        .node(work("a"))
        .edge("begin", "look")
        .edge("begin", "other")
        .edge_when("look", "a", Condition::Otherwise)
        .edge_when("other", "a", Condition::Otherwise);
    let (mut machine, _) = start(graph, json!({}));
    machine.apply(done("begin#1")).unwrap();
    let before = machine.view(&StepId::new("other#1")).unwrap().to_value();
    machine.apply(chosen("look#1", Some(0))).unwrap();
    assert_eq!(machine.view(&StepId::new("other#1")).unwrap().to_value(), before);
    machine.apply(chosen("other#1", Some(0))).unwrap();
    let outputs = machine.view(&StepId::new("a#1")).unwrap().to_value()["outputs"].clone();
    assert_eq!((&outputs["look"], &outputs["other"]), (&json!("a"), &json!("a")));
}

/// A journal from before decisions waited has the choice before the end of the step beside it.
#[test]
fn a_choice_that_was_recorded_early_stays_as_it_was_recorded() {
    let table = vec![
        (done("begin#1"), "start slow#1"),
        (chosen("look#1", Some(0)), ""),
        (done("slow#1"), "choose after slow#1 of 1"),
        (chosen("slow#1", None), "start a#1"),
        (done("a#1"), "finish"),
    ];
    let machine = play(beside(look()), json!({}), "start begin#1", table);
    assert_eq!(machine.newest().to_value()["outputs"]["look"], "a");
    let table = vec![
        (done("begin#1"), "start slow#1"),
        (chosen("look#1", None), ""),
        (
            done("slow#1"),
            "fail: no condition of the decision `look` holds, and it has no `otherwise`",
        ),
        (Input::Revived, BOTH),
    ];
    play(beside(look()), json!({}), "start begin#1", table);
}

#[test]
fn a_decision_that_fails_keeps_to_its_rules_after_the_others_have_gone_on() {
    let begin = || vec![(done("begin#1"), "start slow#1"), (done("slow#1"), BOTH)];
    let none = "fail: no condition of the decision `look` holds, and it has no `otherwise`";
    // It fails the graph; where the other goes is known and stays known.
    let mut table = begin();
    table.extend([
        (chosen("slow#1", Some(0)), ""),
        (chosen("look#1", None), none),
        (Input::Revived, "choose after look#1 of 2"),
        (chosen("look#1", Some(0)), "start a#1; start c#1"),
    ]);
    play(beside(look()), json!({}), "start begin#1", table);
    // It is tried again, at once and after a rest, before and after the other is known.
    let twice = |delay_ms| Retry { attempts: 2, delay_ms, ..Retry::default() };
    let mut table = begin();
    table.extend([
        (broken("look#1"), ""),
        (chosen("slow#1", Some(0)), "choose after look#1 of 2"),
        (chosen("look#1", Some(0)), "start a#1; start c#1"),
    ]);
    play(beside(look().retry(twice(0))), json!({}), "start begin#1", table);
    let mut table = begin();
    table.extend([
        (chosen("slow#1", None), ""),
        (broken("look#1"), "rest look#1 for 5 ms"),
        (Input::Rested { step: StepId::new("look#1") }, "choose after look#1 of 2"),
        (chosen("look#1", Some(1)), "start b#1"),
    ]);
    play(beside(look().retry(twice(5))), json!({}), "start begin#1", table);
    // It is skipped, with changes, or goes elsewhere, whichever of the two is known first.
    let skip = OnError::SkipWith(crate::table::patch(json!({"n": 7})));
    for (rule, expected) in [(skip, "choose after look#1 of 2"), (OnError::Goto("b".into()), "")] {
        let next = if expected.is_empty() { "start b#1; start c#1" } else { expected };
        let node = || look().on_error(rule.clone());
        let mut table = begin();
        table.extend([(chosen("look#1", None), ""), (chosen("slow#1", Some(0)), next)]);
        play(beside(node()), json!({"n": 1}), "start begin#1", table);
        let mut table = begin();
        table.extend([(chosen("slow#1", Some(0)), ""), (chosen("look#1", None), next)]);
        let machine = play(beside(node()), json!({"n": 1}), "start begin#1", table);
        let n = machine.newest().to_value()["n"].clone();
        assert_eq!(n, if expected.is_empty() { json!(1) } else { json!(7) });
    }
}

#[test]
fn a_step_that_fails_beside_a_decision_lets_it_wait_for_another_chance() {
    for fail_fast in [false, true] {
        let mut graph = beside(look());
        graph.fail_fast = fail_fast;
        let table = vec![
            (done("begin#1"), "start slow#1"),
            (failed("slow#1", 1), "fail: slow#1 broke"),
            (Input::Revived, "start slow#1 again (Revived, 2)"),
            (crate::table::returned("slow#1", 2, atomic_graph::StepResult::default()), BOTH),
        ];
        let machine = play(graph, json!({}), "start begin#1", table);
        assert!(machine.awaits(&StepId::new("look#1")));
    }
}
