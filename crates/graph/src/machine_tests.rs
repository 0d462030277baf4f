//! What the machine does, as tables, and what always holds, as properties.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Effect, Input, Machine};
use crate::{
    Condition, Count, Each, FunctionId, Goto, Graph, Key, Kind, Node, OnError, OnLost, Patch,
    Program, Ready, Reducer, Retry, StepError, StepId, StepResult,
};

pub(super) fn work(id: &str) -> Node {
    Node::work(id, Value::Null)
}

pub(super) fn patch(value: Value) -> Patch {
    serde_json::from_value(value).unwrap()
}

pub(super) fn call(function: &str) -> Condition {
    Condition::Call(FunctionId::from(function))
}

pub(super) fn start(graph: Graph, state: Value) -> (Machine, String) {
    let program = Program::compile(graph).unwrap();
    let (machine, effects) = Machine::start(program, patch(state));
    let shown = show(&effects);
    (machine, shown)
}

/// Effects on one line, as a person would say them.
pub(super) fn show(effects: &[Effect]) -> String {
    let one = |effect: &Effect| match effect {
        Effect::Start(s) if s.attempt == 1 => format!("start {}", s.step),
        Effect::Start(s) => {
            let delay =
                if s.delay_ms == 0 { String::new() } else { format!(" in {} ms", s.delay_ms) };
            format!("start {} again ({:?}, attempt {}){delay}", s.step, s.how, s.attempt)
        }
        Effect::Choose { step, options, .. } => format!("choose after {step} of {}", options.len()),
        Effect::Cancel { step, .. } => format!("cancel {step}"),
        Effect::Evaluate { step, call, args } => {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            format!("evaluate {call}({}) for {step}", args.join(", "))
        }
        Effect::Limit { step, timeout_ms } => format!("limit {step} to {timeout_ms} ms"),
        Effect::Rest { step, delay_ms } => format!("rest {step} for {delay_ms} ms"),
        Effect::Ask { step, .. } => format!("ask for {step}"),
        Effect::AskLost { step, .. } => format!("ask about {step}"),
        Effect::Finish(Ok(())) => "finish".to_owned(),
        Effect::Finish(Err(error)) => format!("fail: {}", error.message),
    };
    effects.iter().map(one).collect::<Vec<_>>().join("; ")
}

pub(super) fn done_with(step: &str, result: StepResult) -> Input {
    Input::Finished { step: StepId::new(step), attempt: 1, result }
}

pub(super) fn done(step: &str) -> Input {
    done_with(step, StepResult::default())
}

pub(super) fn failed(step: &str, attempt: u32) -> Input {
    let error = StepError::new("broken", format!("{step} broke"));
    Input::Failed { step: StepId::new(step), attempt, error }
}

pub(super) fn lost(step: &str, attempt: u32, progressed: bool) -> Input {
    Input::Lost { step: StepId::new(step), attempt, progressed }
}

pub(super) fn chosen(step: &str, chosen: Option<u32>) -> Input {
    Input::Chosen { step: StepId::new(step), chosen }
}

/// Feeds a table of inputs; every line must give exactly its effects. A machine that is saved and
/// restored between any two lines must do the same.
pub(super) fn play(graph: Graph, state: Value, first: &str, table: Vec<(Input, &str)>) -> Machine {
    let (mut machine, shown) = start(graph, state);
    assert_eq!(shown, first);
    for (input, expected) in table {
        let program = Arc::clone(machine.program());
        let mut copy = Machine::restore(program, machine.snapshot().unwrap()).unwrap();
        let effects = machine.apply(input.clone()).unwrap();
        assert_eq!(show(&effects), expected, "after {input:?}");
        assert_eq!(copy.apply(input.clone()).unwrap(), effects, "restored, after {input:?}");
        assert_eq!(copy.snapshot().unwrap(), machine.snapshot().unwrap());
    }
    machine
}

pub(super) fn sub(id: &str, graph: Graph) -> Node {
    Node::new(id, Kind::Subgraph { graph, isolated: false, input: None, output: None })
}

pub(super) fn fan(id: &str, over: &str, workers: u64, ready: Ready, graph: Graph) -> Node {
    let (over, item, workers) = (Key::from(over), Key::from("item"), Count::Fixed(workers));
    Node::new(
        id,
        Kind::Each(Each {
            over,
            item,
            graph,
            workers,
            ready,
            fail_fast: false,
            order: ready.order(),
        }),
    )
}

pub(super) fn single() -> Graph {
    Graph::starting_at("work").node(work("work"))
}

#[test]
fn nodes_follow_edges_and_conditions_are_chosen_by_the_caller() {
    let graph = Graph::starting_at("plan")
        .node(work("plan"))
        .node(work("work"))
        .node(work("review"))
        .edge("plan", "work")
        .edge("work", "review")
        .edge_when("review", "work", call("unhappy"));
    let table = vec![
        (done("plan#1"), "start work#1"),
        (done("work#1"), "start review#1"),
        (done("review#1"), "choose after review#1 of 1"),
        (chosen("review#1", Some(0)), "start work#2"),
        (done("work#2"), "start review#2"),
        (done("review#2"), "choose after review#2 of 1"),
        (chosen("review#2", None), "finish"),
    ];
    play(graph, json!({}), "start plan#1", table);
}

#[test]
fn goto_beats_edges() {
    let graph = Graph::starting_at("a")
        .node(work("a").may_go_to(["c"]))
        .node(work("b"))
        .node(work("c"))
        .edge("a", "b");
    let table = vec![
        (done_with("a#1", StepResult::default().goto("c")), "start c#1"),
        (done("c#1"), "finish"),
    ];
    play(graph, json!({}), "start a#1", table);
}

/// Two nodes of one superstep: whichever finishes first, changes are applied in graph order, and
/// a common target runs once.
#[test]
fn a_superstep_ends_together_and_merges_in_graph_order() {
    let graph = || {
        Graph::starting_at("a")
            .node(work("a"))
            .node(work("b"))
            .node(work("c"))
            .node(work("d"))
            .edge("a", "b")
            .edge("a", "c")
            .edge("b", "d")
            .edge("c", "d")
            .reducer("log", Reducer::Concat)
    };
    let b = || done_with("b#1", StepResult::default().set("log", json!(["b"])));
    let c = || done_with("c#1", StepResult::default().set("log", json!(["c"])));
    for (first, second) in [(b(), c()), (c(), b())] {
        let table = vec![
            (done("a#1"), "start b#1; start c#1"),
            (first, ""),
            (second, "start d#1"),
            (done("d#1"), "finish"),
        ];
        let machine = play(graph(), json!({"log": []}), "start a#1", table);
        assert_eq!(machine.newest().to_value()["log"], json!(["b", "c"]));
    }
}

#[test]
fn paths_of_unequal_length_run_their_target_twice_and_a_list_edge_waits() {
    let diamond = || {
        Graph::starting_at("a")
            .node(work("a"))
            .node(work("b"))
            .node(work("c"))
            .node(work("long"))
            .node(work("end"))
            .edge("a", "b")
            .edge("a", "c")
            .edge("c", "long")
    };
    let free = diamond().edge("b", "end").edge("long", "end");
    let table = vec![
        (done("a#1"), "start b#1; start c#1"),
        (done("b#1"), ""),
        (done("c#1"), "start long#1; start end#1"),
        (done("end#1"), ""),
        (done("long#1"), "start end#2"),
        (done("end#2"), "finish"),
    ];
    play(free, json!({}), "start a#1", table);

    let joined = diamond().join(["b", "long"], "end");
    let table = vec![
        (done("a#1"), "start b#1; start c#1"),
        (done("b#1"), ""),
        (done("c#1"), "start long#1"),
        (done("long#1"), "start end#1"),
        (done("end#1"), "finish"),
    ];
    play(joined, json!({}), "start a#1", table);
}

/// An edge from a list that waits for a node that never ran is a failure; one that ran and went
/// elsewhere has left the edge on purpose.
#[test]
fn an_edge_that_waits_for_a_node_that_never_ran_is_a_failure() {
    let graph = || {
        let nodes = Graph::starting_at("a").node(work("a")).node(work("b").may_go_to(["e"]));
        let nodes = nodes.node(work("c")).node(work("d")).node(work("e"));
        nodes.edge_when("a", "b", call("is-left")).edge("a", "c").join(["b", "c"], "d")
    };
    let choose = |chosen| Input::Chosen { step: StepId::new("a#1"), chosen };
    let done = |step: &str| done_with(step, StepResult::default());

    let (mut machine, _) = start(graph(), json!({}));
    machine.apply(done("a#1")).unwrap();
    machine.apply(choose(None)).unwrap();
    let effects = machine.apply(done("c#1")).unwrap();
    let told =
        "fail: node `d` was never reached: its edge waits for `c` and `b`, and `b` never ran";
    assert_eq!(show(&effects), told);

    let (mut machine, _) = start(graph(), json!({}));
    machine.apply(done("a#1")).unwrap();
    machine.apply(choose(Some(0))).unwrap();
    machine.apply(done("c#1")).unwrap();
    let goto = Some(Goto::One("e".into()));
    machine.apply(done_with("b#1", StepResult { goto, ..StepResult::default() })).unwrap();
    assert_eq!(show(&machine.apply(done("e#1")).unwrap()), "finish");
}

#[test]
fn a_key_returned_unchanged_is_not_a_change() {
    let graph = Graph::starting_at("a").node(work("a")).reducer("log", Reducer::Concat);
    let result = StepResult::default().set("log", json!(["old"])).set("n", 2);
    let table = vec![(done_with("a#1", result), "finish")];
    let machine = play(graph, json!({"log": ["old"], "n": 1}), "start a#1", table);
    let state = machine.newest().to_value();
    assert_eq!((&state["log"], &state["n"]), (&json!(["old"]), &json!(2)));
}

#[test]
fn a_failed_attempt_is_tried_again_later_and_later_then_fails_the_run() {
    let retry =
        Retry { attempts: 3, delay_ms: 100, factor: 3.0, codes: vec!["broken".into()], when: None };
    let graph = || Graph::starting_at("a").node(work("a").retry(retry.clone()));
    let table = vec![
        (failed("a#1", 1), "start a#1 again (Retried, attempt 2) in 100 ms"),
        (failed("a#1", 2), "start a#1 again (Retried, attempt 3) in 300 ms"),
        (failed("a#1", 3), "fail: a#1 broke"),
    ];
    play(graph(), json!({}), "start a#1", table);

    let other = StepError::new("other", "not worth another attempt");
    let input = Input::Failed { step: StepId::new("a#1"), attempt: 1, error: other };
    let table = vec![(input, "fail: not worth another attempt")];
    play(graph(), json!({}), "start a#1", table);
}

#[test]
fn an_error_can_lead_elsewhere_and_is_the_output() {
    let graph = Graph::starting_at("a")
        .node(work("a").on_error(OnError::Goto("rescue".into())))
        .node(work("rescue"));
    let table = vec![(failed("a#1", 1), "start rescue#1"), (done("rescue#1"), "finish")];
    let machine = play(graph, json!({}), "start a#1", table);
    assert_eq!(machine.newest().output("a").unwrap()["error"]["code"], "broken");
}

#[test]
fn a_lost_attempt_is_no_failure_but_five_without_progress_are() {
    let graph = || Graph::starting_at("a").node(work("a"));
    let again = |attempt: u32| format!("start a#1 again (Continued, attempt {attempt})");
    let (two, three, four, five, six) = (again(2), again(3), again(4), again(5), again(6));
    let table = vec![
        (lost("a#1", 1, false), two.as_str()),
        (lost("a#1", 2, false), &three),
        (lost("a#1", 3, true), &four),
        (lost("a#1", 4, false), &five),
        (lost("a#1", 5, false), &six),
    ];
    let mut machine = play(graph(), json!({}), "start a#1", table);
    for attempt in 6..8 {
        machine.apply(lost("a#1", attempt, false)).unwrap();
    }
    let last = machine.apply(lost("a#1", 8, false)).unwrap();
    assert_eq!(show(&last), "fail: it was cut off 5 times without getting anywhere");
}

#[test]
fn a_lost_step_with_side_effects_is_put_to_the_user() {
    let graph = || Graph::starting_at("a").node(work("a").on_lost(OnLost::Ask));
    let settled = |again| Input::Settled { step: StepId::new("a#1"), again };
    let table = vec![
        (lost("a#1", 1, true), "ask about a#1"),
        (settled(true), "start a#1 again (RunAgain, attempt 2)"),
        (lost("a#1", 2, true), "ask about a#1"),
        (settled(false), "fail: it was cut off and not run again"),
    ];
    play(graph(), json!({}), "start a#1", table);
}

#[test]
fn a_loop_runs_until_its_condition_or_its_limit() {
    let looped = |until: Option<Condition>, max_rounds: u32| {
        let graph = single();
        Graph::starting_at("loop")
            .node(Node::new("loop", Kind::Loop { graph, until, max_rounds }))
            .node(work("after"))
            .edge("loop", "after")
    };
    let table = vec![
        (done("loop#1[1]/work#1"), "choose after loop#1 of 1"),
        (chosen("loop#1", None), "start loop#1[2]/work#1"),
        (done("loop#1[2]/work#1"), "choose after loop#1 of 1"),
        (chosen("loop#1", Some(0)), "start after#1"),
    ];
    play(looped(Some(call("enough")), 0), json!({}), "start loop#1[1]/work#1", table);

    let table = vec![
        (done("loop#1[1]/work#1"), "start loop#1[2]/work#1"),
        (done("loop#1[2]/work#1"), "start after#1"),
    ];
    play(looped(None, 2), json!({}), "start loop#1[1]/work#1", table);
}

#[test]
fn a_subgraph_hands_its_changes_up_unless_it_is_isolated() {
    for (isolated, expected) in [
        (false, (json!(2), Value::Null)),
        (true, (json!(1), json!({"n": 2, "outputs": {"work": null}}))),
    ] {
        let kind = Kind::Subgraph { graph: single(), isolated, input: None, output: None };
        let graph = Graph::starting_at("sub").node(Node::new("sub", kind));
        let table = vec![(done_with("sub#1/work#1", StepResult::default().set("n", 2)), "finish")];
        let machine = play(graph, json!({"n": 1}), "start sub#1/work#1", table);
        let state = machine.newest().to_value();
        assert_eq!((state["n"].clone(), state["outputs"]["sub"].clone()), expected);
    }
}

#[test]
fn a_fan_runs_every_item_once_and_a_failure_leaves_its_siblings_alone() {
    let graph = || Graph::starting_at("fan").node(fan("fan", "list", 2, Ready::Once, single()));
    let table = vec![
        (failed("fan#1[0]/work#1", 1), "start fan#1[c]/work#1"),
        (done("fan#1[b]/work#1"), ""),
        (done("fan#1[c]/work#1"), "fail: 1 of 3 items failed; the first: fan#1[0]/work#1 broke"),
        (Input::Revived, "start fan#1[0]/work#1 again (Revived, attempt 2)"),
        (
            Input::Finished {
                step: StepId::new("fan#1[0]/work#1"),
                attempt: 2,
                result: StepResult::output("ok"),
            },
            "finish",
        ),
    ];
    let list = json!({"list": ["a", {"id": "b"}, {"id": "c"}]});
    let first = "start fan#1[0]/work#1; start fan#1[b]/work#1";
    let machine = play(graph(), list, first, table);
    let outputs = json!({"0": "ok", "b": null, "c": null});
    assert_eq!(**machine.newest().output("fan").unwrap(), outputs);
}

#[test]
fn the_outputs_of_a_fan_are_in_the_order_of_its_list() {
    let graph = Graph::starting_at("fan").node(fan("fan", "list", 9, Ready::Once, single()));
    let items = ["#10", "#2", "#1"];
    let list: Vec<Value> = items.iter().map(|id| json!({"id": id})).collect();
    let (mut machine, _) = start(graph, json!({"list": list}));
    for id in ["#1", "#10", "#2"] {
        machine.apply(done(&format!("fan#1[{id}]/work#1"))).unwrap();
    }
    let outputs = machine.newest().output("fan").unwrap().as_object().unwrap().clone();
    assert_eq!(outputs.keys().collect::<Vec<_>>(), items);
}

fn task(id: &str, blocked_by: &[&str]) -> Value {
    json!({"id": id, "status": "pending", "blockedBy": blocked_by})
}

fn task_graph(workers: u64) -> Graph {
    Graph::starting_at("fan")
        .node(fan("fan", "tasks", workers, Ready::Tasks, single()))
        .node(work("after"))
        .edge("fan", "after")
        .reducer("tasks", Reducer::MergeById)
}

fn settle_task(step: &str, rows: Value) -> Input {
    done_with(step, StepResult::default().set("tasks", rows))
}

#[test]
fn tasks_start_as_soon_as_nothing_blocks_them() {
    let tasks = json!({"tasks": [task("#1", &[]), task("#2", &["#1"]), task("#3", &[]), task("#4", &["#2", "#3"])]});
    let completed = |id: &str| json!([{"id": id, "status": "completed"}]);
    let table = vec![
        (settle_task("fan#1[#1]/work#1", completed("#1")), "start fan#1[#2]/work#1"),
        (settle_task("fan#1[#2]/work#1", completed("#2")), ""),
        (settle_task("fan#1[#3]/work#1", completed("#3")), "start fan#1[#4]/work#1"),
        (settle_task("fan#1[#4]/work#1", completed("#4")), "start after#1"),
    ];
    play(task_graph(2), tasks, "start fan#1[#1]/work#1; start fan#1[#3]/work#1", table);
}

#[test]
fn a_task_runs_again_after_a_new_one_that_was_put_before_it() {
    let tasks = json!({"tasks": [task("#1", &[]), task("#2", &["#1"])]});
    let bug = json!([
        {"id": "#1", "blockedBy": ["#1-bug-1"]},
        {"id": "#1-bug-1", "status": "pending", "$after": "#1"},
    ]);
    let completed = |id: &str| json!([{"id": id, "status": "completed"}]);
    let table = vec![
        (settle_task("fan#1[#1]/work#1", bug), "start fan#1[#1-bug-1]/work#1"),
        (settle_task("fan#1[#1-bug-1]/work#1", completed("#1-bug-1")), "start fan#1[#1]/work#2"),
        (settle_task("fan#1[#1]/work#2", completed("#1")), "start fan#1[#2]/work#1"),
        // A task whose row comes back as it was is not run for ever.
        (done("fan#1[#2]/work#1"), "start after#1"),
    ];
    let machine = play(task_graph(4), tasks, "start fan#1[#1]/work#1", table);
    let state = machine.newest().to_value();
    let ids: Vec<_> = state["tasks"].as_array().unwrap().iter().map(|t| t["id"].clone()).collect();
    assert_eq!(ids, ["#1", "#1-bug-1", "#2"]);
}

#[test]
fn a_subgraph_inside_a_fan_inside_a_loop_keeps_its_place_in_the_name() {
    let inner = Graph::starting_at("sub").node(sub("sub", single()));
    let fanned = Graph::starting_at("fan").node(fan("fan", "list", 9, Ready::Once, inner));
    let kind = Kind::Loop { graph: fanned, until: None, max_rounds: 2 };
    let graph = Graph::starting_at("loop").node(Node::new("loop", kind));
    let table = vec![
        (done("loop#1[1]/fan#1[x%2Fy]/sub#1/work#1"), "start loop#1[2]/fan#1[x/y]/sub#1/work#1"),
        (done("loop#1[2]/fan#1[x%2Fy]/sub#1/work#1"), "finish"),
    ];
    let list = json!({"list": [{"id": "x/y"}]});
    play(graph, list, "start loop#1[1]/fan#1[x/y]/sub#1/work#1", table);
}

#[test]
fn ceilings_refuse_visits_and_a_run_that_can_start_nothing_ends() {
    let graph = Graph::starting_at("a")
        .node(work("a").max_visits(Count::Key("limit".into())))
        .edge("a", "a");
    let table = vec![
        (done("a#1"), "start a#2"),
        (done("a#2"), "fail: node `a` has used all of its 2 visits"),
        (Input::Patched { patch: patch(json!({"limit": 3})) }, ""),
        (Input::Revived, "start a#3"),
        (done("a#3"), "fail: node `a` has used all of its 3 visits"),
    ];
    play(graph, json!({"limit": 2}), "start a#1", table);

    let none = || Count::Key(Key::from("none"));
    let round = Graph::starting_at("a")
        .node(work("a").max_visits(none()).on_error(OnError::Goto("b".into())))
        .node(work("b").max_visits(none()).on_error(OnError::Goto("a".into())));
    let (_, shown) = start(round, json!({"none": 0}));
    assert_eq!(shown, "fail: it went round without being able to start anything");

    let mut steps =
        Graph::starting_at("a").node(work("a").on_error(OnError::Goto("a".into()))).edge("a", "a");
    steps.max_steps = Some(1);
    let table = vec![(done("a#1"), "fail: the run has used all of its 1 steps")];
    play(steps, json!({}), "start a#1", table);
}

#[test]
fn no_more_steps_run_at_once_than_allowed() {
    let mut graph = Graph::starting_at("fan").node(fan("fan", "list", 9, Ready::Once, single()));
    graph.max_concurrency = Some(1);
    let table = vec![
        (done("fan#1[0]/work#1"), "start fan#1[1]/work#1"),
        (done("fan#1[1]/work#1"), "finish"),
    ];
    play(graph, json!({"list": [1, 2]}), "start fan#1[0]/work#1", table);
}

#[test]
fn a_failed_run_goes_where_its_node_says_when_it_is_revived() {
    let graph = Graph::starting_at("a")
        .node(work("a").on_revive("reopen"))
        .node(work("reopen"))
        .edge("reopen", "a");
    let table = vec![
        (failed("a#1", 1), "fail: a#1 broke"),
        (Input::Revived, "start reopen#1"),
        (done("reopen#1"), "start a#2"),
        (done("a#2"), "finish"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_run_with_two_failures_at_once_goes_on_from_both() {
    let graph = Graph::starting_at("a")
        .node(work("a"))
        .node(work("b").on_revive("c"))
        .node(work("d"))
        .node(work("c"))
        .edge("a", "b")
        .edge("a", "d");
    let table = vec![
        (done("a#1"), "start b#1; start d#1"),
        (failed("b#1", 1), ""),
        (failed("d#1", 1), "fail: b#1 broke"),
        (Input::Revived, "start d#1 again (Revived, attempt 2)"),
        (
            Input::Finished { step: StepId::new("d#1"), attempt: 2, result: StepResult::default() },
            "start c#1",
        ),
        (done("c#1"), "finish"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_change_from_outside_reaches_items_under_way_and_is_not_applied_twice() {
    let body =
        Graph::starting_at("work").node(work("work")).node(work("next")).edge("work", "next");
    let graph = Graph::starting_at("fan")
        .node(fan("fan", "list", 1, Ready::Once, body))
        .reducer("told", Reducer::Concat);
    let told = || Input::Patched { patch: patch(json!({"told": ["x"]})) };
    let table = vec![(told(), ""), (done("fan#1[0]/work#1"), "start fan#1[0]/next#1")];
    let list = json!({"list": [1]});
    let mut machine = play(graph, list, "start fan#1[0]/work#1", table);
    let view = machine.view(&StepId::new("fan#1[0]/next#1")).unwrap();
    assert_eq!(**view.get("told").unwrap(), json!(["x"]));
    drop(view);
    machine.apply(done("fan#1[0]/next#1")).unwrap();
    assert_eq!(machine.newest().to_value()["told"], json!(["x"]));
}

#[test]
fn what_cannot_have_happened_is_refused() {
    let (mut machine, _) = start(Graph::starting_at("a").node(work("a")), json!({}));
    for input in [done("b#1"), failed("a#1", 2), chosen("a#1", None), Input::Revived] {
        let wrong = matches!(input, Input::Chosen { .. });
        assert!(wrong || machine.apply(input.clone()).is_err(), "{input:?}");
    }
}

#[test]
fn a_result_that_does_not_fit_is_judged_before_it_is_recorded() {
    let graph = Graph::starting_at("a").node(work("a")).reducer("n", Reducer::Sum);
    let (machine, _) = start(graph, json!({"n": 1}));
    let judge = |result: StepResult| machine.judge(&StepId::new("a#1"), &result);
    assert_eq!(judge(StepResult::default().set("n", 1)), Ok(()));
    let wrong = judge(StepResult::default().set("n", "x")).unwrap_err();
    assert_eq!(wrong.message, "node `a`, key `n`: `sum` cannot combine a number with a text");
    let nowhere = judge(StepResult::default().goto("z")).unwrap_err();
    assert_eq!(nowhere.message, "`a#1` went to `z`, which is not in its graph");
}

/// A graph with everything in it; steps answer by their name alone.
fn everything() -> Graph {
    let body = Graph::starting_at("work")
        .node(work("work").retry(Retry { attempts: 2, ..Retry::default() }))
        .node(sub("check", single()).on_error(OnError::Skip))
        .edge("work", "check");
    let rounds = Kind::Loop { graph: single(), until: Some(call("enough")), max_rounds: 3 };
    Graph::starting_at("plan")
        .node(work("plan"))
        .node(fan("fan", "tasks", 2, Ready::Tasks, body))
        .node(fan("each", "list", 3, Ready::Once, single()))
        .node(Node::new("rounds", rounds))
        .node(work("end"))
        .edge("plan", "fan")
        .edge("plan", "each")
        .edge("plan", "rounds")
        .join(["fan", "each", "rounds"], "end")
        .reducer("tasks", Reducer::MergeById)
        .reducer("count", Reducer::Sum)
        .reducer("log", Reducer::Concat)
}

/// Carries out an effect the way a caller would: the answer depends on nothing but the effect.
fn answer(effect: &Effect, flaky: bool) -> Option<Input> {
    match effect {
        Effect::Start(s) => {
            let (step, attempt) = (s.step.clone(), s.attempt);
            let may_fail = step.as_str().starts_with("fan#1") && !step.as_str().contains("check");
            if flaky && may_fail && attempt == 1 {
                return Some(failed(step.as_str(), 1));
            }
            let mut result = StepResult::output(step.as_str()).set("count", 1);
            if let Some(item) = step.item().filter(|_| step.as_str().contains("fan#1")) {
                result = result.set("tasks", json!([{"id": item, "status": "completed"}]));
            }
            Some(Input::Finished { step, attempt, result })
        }
        Effect::Choose { step, .. } => Some(chosen(step.as_str(), None)),
        Effect::Cancel { .. }
        | Effect::Evaluate { .. }
        | Effect::Limit { .. }
        | Effect::Rest { .. }
        | Effect::Ask { .. }
        | Effect::AskLost { .. }
        | Effect::Finish(_) => None,
    }
}

/// Runs to the end, answering open effects in the order `picks` says; now and then the machine
/// is replaced by its own snapshot, or by a new one fed the same inputs.
fn run(picks: &[u8], flaky: bool) -> (Vec<String>, Value) {
    let tasks =
        json!([task("#1", &[]), task("#2", &["#1"]), task("#3", &[]), task("#4", &["#2", "#3"])]);
    let state = json!({"tasks": tasks, "list": [1, 2, 3, 4], "count": 0});
    let program = Program::compile(everything()).unwrap();
    let (mut machine, mut open) = Machine::start(Arc::clone(&program), patch(state.clone()));
    let mut history = vec![];
    let mut started = vec![];
    for turn in 0usize.. {
        started.extend(open.iter().filter_map(|effect| {
            let Effect::Start(s) = effect else { return None };
            Some(format!("{}@{}", s.step, s.attempt))
        }));
        started.dedup();
        if let Some(Effect::Finish(outcome)) = open.last() {
            assert_eq!(*outcome, Ok(()));
            assert_eq!(open.len(), 1, "nothing is open when the run ends");
            break;
        }
        let pick = usize::from(picks[turn % picks.len()]);
        let effect = open.remove(pick % open.len());
        let input = answer(&effect, flaky).unwrap();
        history.push(input.clone());
        open.extend(machine.apply(input).unwrap());
        match pick % 5 {
            0 => {
                let snapshot = machine.snapshot().unwrap();
                machine = Machine::restore(Arc::clone(&program), snapshot).unwrap();
            }
            1 => {
                let (mut again, _) = Machine::start(Arc::clone(&program), patch(state.clone()));
                for input in &history {
                    again.apply(input.clone()).unwrap();
                }
                assert_eq!(again.snapshot().unwrap(), machine.snapshot().unwrap());
                machine = again;
            }
            _ => {}
        }
    }
    started.sort_unstable();
    started.dedup();
    let mut end = machine.newest().to_value();
    end["outputs"] = Value::Null;
    (started, end)
}

proptest! {
    /// Whatever finishes first, and whenever the run is taken up again, the same steps run, each
    /// once, and the end is the same.
    #[test]
    fn any_order_of_finishing_gives_the_same_run(
        picks in prop::collection::vec(any::<u8>(), 1..40),
        flaky in any::<bool>(),
    ) {
        prop_assert_eq!(run(&picks, flaky), run(&[2], flaky));
    }

    /// Nonsense is refused or harmless, never a panic.
    #[test]
    fn no_input_makes_the_machine_panic(
        inputs in prop::collection::vec((0u8..8, 0usize..12, 0u32..4), 0..60),
    ) {
        let steps = ["plan#1", "end#1", "rounds#1", "rounds#1[1]/work#1", "fan#1", "each#1[0]/work#1",
            "fan#1[#1]/work#1", "fan#1[#1]/check#1/work#1", "fan#1[#3]/work#1", "each#1[1]/work#1",
            "each#1[2]/work#1", "x"];
        let program = Program::compile(everything()).unwrap();
        let state = json!({"tasks": [task("#1", &[]), task("#3", &[])], "list": [1, 2, 3]});
        let (mut machine, _) = Machine::start(program, patch(state));
        for (kind, step, number) in inputs {
            let step = steps[step];
            let input = match kind {
                0 | 1 => Input::Finished { step: StepId::new(step), attempt: number, result: StepResult::default() },
                2 => failed(step, number),
                3 => lost(step, number, false),
                4 => chosen(step, Some(number)),
                5 => Input::Settled { step: StepId::new(step), again: number > 1 },
                6 => Input::Revived,
                _ => Input::Patched { patch: patch(json!({"tasks": []})) },
            };
            let _ = machine.apply(input);
        }
        let program = Arc::clone(machine.program());
        Machine::restore(program, machine.snapshot().unwrap()).unwrap();
    }
}
