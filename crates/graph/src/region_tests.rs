//! Branches, races, time limits, failures beside each other, and functions in between, as tables.

use serde_json::{Value, json};

use super::tests::{
    chosen, done, done_with, failed, fan, lost, patch, play, single, start, sub, work,
};
use super::{Input, Machine};
use crate::{
    Branch, Condition, Goto, Graph, Kind, Node, NodeId, OnError, Parallel, Program, Ready, Reducer,
    Retry, Signal, StepError, StepId, StepResult, Strategy,
};

fn parallel(id: &str, strategy: Strategy, branches: &[&str]) -> Node {
    let branches =
        branches.iter().map(|id| Branch { id: NodeId::from(*id), graph: single() }).collect();
    let (fail_fast, merge) = (false, None);
    Node::new(id, Kind::Parallel(Parallel { branches, strategy, fail_fast, merge }))
}

fn with_parallel(node: Node) -> Graph {
    Graph::starting_at("par").node(node).node(work("end")).edge("par", "end")
}

fn parallel_mut(node: &mut Node) -> &mut Parallel {
    let Kind::Parallel(parallel) = &mut node.kind else { panic!("no parallel") };
    parallel
}

fn gone(step: &str) -> Input {
    Input::Cancelled { step: StepId::new(step), attempt: 1 }
}

fn evaluated(step: &str, value: Value) -> Input {
    Input::Evaluated { step: StepId::new(step), result: Ok(value) }
}

fn again(step: &str, attempt: u32) -> Input {
    Input::Finished { step: StepId::new(step), attempt, result: StepResult::default() }
}

fn wrote(step: &str, key: &str, value: Value) -> Input {
    done_with(step, StepResult::output(step).set(key, value))
}

fn state(machine: &Machine) -> Value {
    machine.newest().to_value()
}

#[test]
fn all_branches_run_at_once_and_their_changes_meet_in_order_of_definition() {
    let graph =
        with_parallel(parallel("par", Strategy::All, &["a", "b"])).reducer("log", Reducer::Concat);
    let table = vec![
        (wrote("par#1[b]/work#1", "log", json!([2])), ""),
        (wrote("par#1[a]/work#1", "log", json!([1])), "start end#1"),
        (done("end#1"), "finish"),
    ];
    let machine = play(graph, json!({}), "start par#1[a]/work#1; start par#1[b]/work#1", table);
    let end = state(&machine);
    assert_eq!(end["log"], json!([1, 2]));
    let outputs = json!({"a": "par#1[a]/work#1", "b": "par#1[b]/work#1"});
    assert_eq!(end["outputs"]["par"], outputs);
}

#[test]
fn branches_that_replace_the_same_value_fail_whoever_was_first_and_lose_nothing() {
    let graph = || with_parallel(parallel("par", Strategy::All, &["a", "b"]));
    let first = "start par#1[a]/work#1; start par#1[b]/work#1";
    let told = "fail: node `par`: the branches `a` and `b` ran at once and both replaced `x`, so that \
                one value would be lost: give `x` a reducer that combines values, or let them write \
                to different keys, and resume with --upgrade";
    for order in [["a", "b"], ["b", "a"]] {
        let [one, other] = order.map(|name| format!("par#1[{name}]/work#1"));
        let table = vec![
            (wrote(&one, "x", json!(1)), ""),
            (wrote(&other, "x", json!(1)), told),
            // They are done, and are not run again: with the same graph it fails again.
            (Input::Revived, told),
        ];
        play(graph(), json!({}), first, table);
    }
    // In a race only one of them counts, and with a reducer both do.
    let mut graph = graph();
    graph = graph.reducer("x", Reducer::Sum);
    let table = vec![
        (wrote("par#1[a]/work#1", "x", json!(1)), ""),
        (wrote("par#1[b]/work#1", "x", json!(1)), "start end#1"),
    ];
    let machine = play(graph, json!({}), first, table);
    assert_eq!(state(&machine)["x"], json!(2));
}

#[test]
fn nodes_of_one_superstep_that_replace_the_same_value_fail_whoever_was_first() {
    let nodes = ["split", "one", "two"];
    let graph = || {
        let graph = Graph::starting_at("split");
        let graph = nodes.iter().fold(graph, |graph, id| graph.node(work(id)));
        graph.edge("split", "one").edge("split", "two")
    };
    let told = "fail: the nodes `one` and `two` ran at once and both replaced `x`, so that \
                one value would be lost: give `x` a reducer that combines values, or let them write \
                to different keys, and resume with --upgrade";
    for [first, last] in [["one#1", "two#1"], ["two#1", "one#1"]] {
        let table = vec![
            (wrote("split#1", "x", json!(0)), "start one#1; start two#1"),
            (wrote(first, "x", json!(1)), ""),
            (wrote(last, "x", json!(2)), told),
            (Input::Revived, told),
        ];
        let machine = play(graph(), json!({}), "start split#1", table);
        assert_eq!(state(&machine)["x"], json!(0));
    }
}

#[test]
fn the_losers_of_a_race_are_gone_before_the_join_and_change_nothing() {
    let graph = with_parallel(parallel("par", Strategy::Race, &["a", "b", "c"]));
    let table = vec![
        (
            wrote("par#1[b]/work#1", "x", json!("b")),
            "cancel par#1[a]/work#1; cancel par#1[c]/work#1",
        ),
        (gone("par#1[a]/work#1"), ""),
        // It had finished before it could be stopped: too late all the same.
        (wrote("par#1[c]/work#1", "x", json!("c")), "start end#1"),
        (done("end#1"), "finish"),
    ];
    let first = "start par#1[a]/work#1; start par#1[b]/work#1; start par#1[c]/work#1";
    let machine = play(graph, json!({}), first, table);
    assert_eq!(state(&machine)["x"], json!("b"));
    assert_eq!(state(&machine)["outputs"]["par"], json!({"b": "par#1[b]/work#1"}));
    assert!(machine.running().is_empty());
}

#[test]
fn the_first_to_settle_wins_a_race_even_by_failing_but_any_waits_for_a_success() {
    let race = with_parallel(parallel("par", Strategy::Race, &["a", "b"]));
    let table = vec![
        (failed("par#1[a]/work#1", 1), "cancel par#1[b]/work#1"),
        (gone("par#1[b]/work#1"), "fail: branch `a` failed: par#1[a]/work#1 broke"),
    ];
    let first = "start par#1[a]/work#1; start par#1[b]/work#1";
    play(race, json!({}), first, table);

    let any = || with_parallel(parallel("par", Strategy::Any, &["a", "b"]));
    let table = vec![
        (failed("par#1[a]/work#1", 1), ""),
        (done("par#1[b]/work#1"), "start end#1"),
        (done("end#1"), "finish"),
    ];
    play(any(), json!({}), first, table);
    let table = vec![
        (failed("par#1[a]/work#1", 1), ""),
        (
            failed("par#1[b]/work#1", 1),
            "fail: 2 of 2 branches failed; the first: par#1[a]/work#1 broke",
        ),
    ];
    play(any(), json!({}), first, table);
}

#[test]
fn siblings_of_a_failed_branch_go_on_unless_it_is_to_fail_fast() {
    let slow = with_parallel(parallel("par", Strategy::All, &["a", "b"]));
    let first = "start par#1[a]/work#1; start par#1[b]/work#1";
    let table = vec![
        (failed("par#1[a]/work#1", 1), ""),
        (done("par#1[b]/work#1"), "fail: 1 of 2 branches failed; the first: par#1[a]/work#1 broke"),
        (Input::Revived, "start par#1[a]/work#1 again (Revived, attempt 2)"),
        (again("par#1[a]/work#1", 2), "start end#1"),
    ];
    play(slow, json!({}), first, table);

    let mut node = parallel("par", Strategy::All, &["a", "b"]);
    parallel_mut(&mut node).fail_fast = true;
    let table = vec![
        (failed("par#1[a]/work#1", 1), "cancel par#1[b]/work#1"),
        (gone("par#1[b]/work#1"), "fail: branch `a` failed: par#1[a]/work#1 broke"),
        // What was stopped is tried again too; its turn was not its own fault.
        (
            Input::Revived,
            "start par#1[a]/work#1 again (Revived, attempt 2); \
             start par#1[b]/work#1 again (Revived, attempt 2)",
        ),
        (again("par#1[b]/work#1", 2), ""),
        (again("par#1[a]/work#1", 2), "start end#1"),
    ];
    play(with_parallel(node), json!({}), first, table);
}

#[test]
fn what_runs_beside_a_failure_is_stopped_in_a_graph_that_fails_fast() {
    let graph = Graph {
        fail_fast: true,
        ..Graph::starting_at("s")
            .node(work("s"))
            .node(work("a"))
            .node(work("b"))
            .edge("s", "a")
            .edge("s", "b")
    };
    let table = vec![
        (done("s#1"), "start a#1; start b#1"),
        (failed("b#1", 1), "cancel a#1"),
        (gone("a#1"), "fail: b#1 broke"),
    ];
    play(graph, json!({}), "start s#1", table);
}

#[test]
fn a_merge_makes_further_changes_from_the_outputs() {
    let mut node = parallel("par", Strategy::All, &["a", "b"]);
    parallel_mut(&mut node).merge = Some("merge".into());
    let table = vec![
        (done_with("par#1[b]/work#1", StepResult::output(2)), ""),
        (
            done_with("par#1[a]/work#1", StepResult::output(1)),
            r#"evaluate merge({"a":1,"b":2}) for par#1"#,
        ),
        (evaluated("par#1", json!({"sum": 3})), "start end#1"),
    ];
    let machine =
        play(with_parallel(node), json!({}), "start par#1[a]/work#1; start par#1[b]/work#1", table);
    assert_eq!(state(&machine)["sum"], 3);
}

#[test]
fn a_region_that_takes_too_long_is_stopped_and_tried_again_from_its_start() {
    let inner = Graph::starting_at("a").node(work("a")).node(work("b")).edge("a", "b");
    let retry = Retry { attempts: 2, delay_ms: 50, ..Retry::default() };
    let node = sub("sub", inner).timeout_ms(100).retry(retry);
    let graph = Graph::starting_at("sub").node(node);
    let late = || Input::TimedOut { step: StepId::new("sub#1") };
    let rested = Input::Rested { step: StepId::new("sub#1") };
    let table = vec![
        (done("sub#1/a#1"), "start sub#1/b#1"),
        (late(), "cancel sub#1/b#1"),
        (gone("sub#1/b#1"), "rest sub#1 for 50 ms"),
        (rested, "limit sub#1 to 100 ms; start sub#1!2/a#1"),
        (late(), "cancel sub#1!2/a#1"),
        (gone("sub#1!2/a#1"), "fail: it took longer than 100 ms"),
    ];
    let machine = play(graph, json!({}), "limit sub#1 to 100 ms; start sub#1/a#1", table);
    assert!(machine.limited().is_empty());
}

#[test]
fn functions_combine_changes_one_after_the_other_in_graph_order() {
    let graph = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a"))
        .node(work("b"))
        .edge("s", "a")
        .edge("s", "b")
        .reducer("x", Reducer::Call("add".into()));
    let table = vec![
        (done("s#1"), "start a#1; start b#1"),
        (wrote("b#1", "x", json!(2)), ""),
        (wrote("a#1", "x", json!(1)), "evaluate add(0, 1) for a#1"),
        (evaluated("a#1", json!(1)), "evaluate add(1, 2) for b#1"),
        (evaluated("b#1", json!(3)), "finish"),
    ];
    let machine = play(graph, json!({"x": 0}), "start s#1", table);
    assert_eq!(state(&machine)["x"], 3);
    assert_eq!(state(&machine)["outputs"], json!({"s": null, "a": "a#1", "b": "b#1"}));
}

#[test]
fn functions_combine_changes_from_inside_a_fan_in_the_order_they_come() {
    let graph = Graph::starting_at("fan")
        .node(fan("fan", "list", 2, Ready::Once, single()))
        .reducer("x", Reducer::Call("add".into()));
    let first = "start fan#1[0]/work#1; start fan#1[1]/work#1";
    let table = vec![
        (wrote("fan#1[1]/work#1", "x", json!(2)), "evaluate add(null, 2) for fan#1[1]/work#1"),
        (wrote("fan#1[0]/work#1", "x", json!(1)), "evaluate add(null, 1) for fan#1[0]/work#1"),
        (evaluated("fan#1[0]/work#1", json!(1)), "evaluate add(null, 1) for fan#1"),
        // The second item waits until the first one's change is in.
        (evaluated("fan#1[1]/work#1", json!(2)), ""),
        (evaluated("fan#1", json!(1)), "evaluate add(1, 2) for fan#1"),
        (evaluated("fan#1", json!(3)), "evaluate add(null, 1) for fan#1"),
        (evaluated("fan#1", json!(1)), "evaluate add(1, 2) for fan#1"),
        (evaluated("fan#1", json!(3)), "finish"),
    ];
    let machine = play(graph, json!({"list": [0, 1]}), first, table);
    assert_eq!(state(&machine)["x"], 3);
}

#[test]
fn a_subgraph_sees_and_gives_back_what_its_mappers_say() {
    let kind = Kind::Subgraph {
        graph: single(),
        isolated: true,
        input: Some("in".into()),
        output: Some("out".into()),
    };
    let graph = Graph::starting_at("sub").node(Node::new("sub", kind));
    let (mut machine, first) = start(graph, json!({"topic": "t", "secret": 1}));
    assert_eq!(first, "evaluate in() for sub#1");
    machine.apply(evaluated("sub#1", json!({"prompt": "t"}))).unwrap();
    let view = machine.view(&StepId::new("sub#1/work#1")).unwrap();
    assert_eq!(view.to_value(), json!({"prompt": "t", "outputs": {}}));
    let effects = machine.apply(wrote("sub#1/work#1", "words", json!(2))).unwrap();
    let ended = r#"{"outputs":{"work":"sub#1/work#1"},"prompt":"t","words":2}"#;
    let shown = super::tests::show(&effects);
    assert!(shown.starts_with("evaluate out({") && shown.ends_with("}) for sub#1"), "{shown}");
    let super::Effect::Evaluate { args, .. } = &effects[0] else { panic!("{shown}") };
    assert_eq!(*args[0], serde_json::from_str::<Value>(ended).unwrap());
    machine.apply(evaluated("sub#1", json!({"count": 2}))).unwrap();
    assert_eq!(
        state(&machine),
        json!({"topic": "t", "secret": 1, "count": 2, "outputs": {"sub": {"count": 2}}})
    );
}

/// `{...state, c}` of a function changes `c` alone, wherever a function makes changes.
#[test]
fn a_function_that_hands_the_whole_state_back_changes_only_what_is_new() {
    let begins = json!({"votes": ["yes"], "count": 1.0});
    let whole = json!({"votes": ["yes"], "count": 1, "c": 1});
    let remedy = json!({"action": "skip", "stateUpdate": whole});
    let kind =
        Kind::Subgraph { graph: single(), isolated: true, input: None, output: Some("out".into()) };
    let mut merging = parallel("at", Strategy::All, &["a"]);
    parallel_mut(&mut merging).merge = Some("out".into());
    let failing = work("at").on_error(OnError::Call("out".into()));
    let failed = || Input::Failed {
        step: StepId::new("at#1"),
        attempt: 1,
        error: StepError::new("red", "it failed"),
    };
    let table = [
        (Node::new("at", kind), done("at#1/work#1"), whole.clone()),
        (merging, done("at#1[a]/work#1"), whole),
        (failing, failed(), remedy),
    ];
    for (node, ends, value) in table {
        let graph = Graph::starting_at("at")
            .node(node)
            .reducer("votes", Reducer::Concat)
            .reducer("count", Reducer::Sum);
        let (mut machine, _) = start(graph, begins.clone());
        machine.apply(ends).unwrap();
        machine.apply(evaluated("at#1", value)).unwrap();
        let end = state(&machine);
        let got = ["votes", "count", "c"].map(|key| end[key].clone());
        assert_eq!(got, [json!(["yes"]), json!(1.0), json!(1)]);
    }
}

#[test]
fn a_decision_takes_the_first_condition_that_holds_and_fails_without_one() {
    let graph = |retry| {
        let node = Node::new("which", Kind::Decision).retry(retry);
        Graph::starting_at("which")
            .node(node)
            .node(work("a"))
            .node(work("b"))
            .edge_when("which", "a", Condition::Call("one".into()))
            .edge_when("which", "b", Condition::Call("two".into()))
    };
    let table = vec![(chosen("which#1", Some(1)), "start b#1"), (done("b#1"), "finish")];
    let machine = play(graph(Retry::default()), json!({}), "choose after which#1 of 2", table);
    assert_eq!(state(&machine)["outputs"]["which"], "b");

    let none = "fail: no condition of the decision `which` holds, and it has no `otherwise`";
    let table = vec![(chosen("which#1", None), none)];
    play(graph(Retry::default()), json!({}), "choose after which#1 of 2", table);

    let broken = || Input::Evaluated {
        step: StepId::new("which#1"),
        result: Err(StepError::new("function", "it threw")),
    };
    let twice = Retry { attempts: 2, ..Retry::default() };
    let table = vec![
        (broken(), "choose after which#1 of 2"),
        (broken(), "fail: it threw"),
        (Input::Revived, "choose after which#1 of 2"),
        (chosen("which#1", Some(0)), "start a#1"),
    ];
    play(graph(twice), json!({}), "choose after which#1 of 2", table);
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_the_graph_and_runs_nothing_again() {
    let graph = Graph::starting_at("a").node(work("a")).node(work("b")).edge_when(
        "a",
        "b",
        Condition::Call("f".into()),
    );
    let broken = Input::Evaluated {
        step: StepId::new("a#1"),
        result: Err(StepError::new("function", "it threw")),
    };
    let table = vec![
        (done("a#1"), "choose after a#1 of 1"),
        (broken, "fail: it threw"),
        (Input::Revived, "choose after a#1 of 1"),
        (chosen("a#1", Some(0)), "start b#1"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn goto_may_name_several_nodes() {
    let graph = Graph::starting_at("a")
        .node(work("a").may_go_to(["b", "c"]))
        .node(work("b"))
        .node(work("c"));
    let goto = Some(Goto::Many(vec!["b".into(), "c".into()]));
    let result = StepResult { goto, ..StepResult::default() };
    let table = vec![(done_with("a#1", result), "start b#1; start c#1")];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_failure_is_caught_and_what_catches_it_sees_the_error() {
    let graph = Graph {
        catch: Some("rescue".into()),
        ..Graph::starting_at("a")
            .node(work("a"))
            .node(work("b"))
            .node(work("rescue"))
            .edge("a", "b")
    };
    let table = vec![
        (failed("a#1", 1), "start rescue#1"),
        // What catches is not caught by itself.
        (failed("rescue#1", 1), "fail: rescue#1 broke"),
    ];
    let machine = play(graph, json!({}), "start a#1", table);
    assert_eq!(state(&machine)["outputs"]["a"]["error"]["message"], "a#1 broke");
}

#[test]
fn a_function_says_what_to_do_about_a_failure() {
    let graph = || {
        let node = work("a").on_error(OnError::Call("f".into())).may_go_to(["c"]);
        Graph::starting_at("a").node(node).node(work("b")).node(work("c")).edge("a", "b")
    };
    let asked = r#"evaluate f({"code":"broken","message":"a#1 broke"}) for a#1"#;
    let cases = [
        (json!("skip"), "start b#1"),
        (json!({"action": "skip", "stateUpdate": {"x": 1}}), "start b#1"),
        (json!({"action": "goto", "node": "c"}), "start c#1"),
        (json!({"action": "abort"}), "fail: a#1 broke"),
        (json!({"action": "retry", "delayMs": 7}), "start a#1 again (Retried, attempt 2) in 7 ms"),
        (
            json!({"action": "goto", "node": "x"}),
            "fail: `onError` goes to `x`, which is not declared",
        ),
    ];
    for (answer, expected) in cases {
        let table = vec![(failed("a#1", 1), asked), (evaluated("a#1", answer), expected)];
        play(graph(), json!({}), "start a#1", table);
    }
}

#[test]
fn a_predicate_says_whether_a_failure_is_worth_another_attempt() {
    let retry = Retry { attempts: 3, delay_ms: 10, when: Some("worth".into()), ..Retry::default() };
    let graph = Graph::starting_at("a").node(work("a").retry(retry));
    let asked = r#"evaluate worth({"code":"broken","message":"a#1 broke"}) for a#1"#;
    let table = vec![
        (failed("a#1", 1), asked),
        (evaluated("a#1", json!(true)), "start a#1 again (Retried, attempt 2) in 10 ms"),
        (failed("a#1", 2), asked),
        (evaluated("a#1", json!(false)), "fail: a#1 broke"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_signal_for_a_person_holds_the_step_until_it_is_answered() {
    let graph = Graph::starting_at("a").node(work("a")).node(work("b")).edge("a", "b");
    let signal = Signal { kind: Signal::HUMAN.to_owned(), message: None, data: Value::Null };
    let result = StepResult { signals: vec![signal], ..StepResult::output("draft") };
    let answered = Input::Answered { step: StepId::new("a#1"), answer: json!("fine") };
    let table = vec![(done_with("a#1", result), "ask for a#1"), (answered, "start b#1")];
    let machine = play(graph, json!({}), "start a#1", table);
    assert_eq!(state(&machine)["outputs"]["a"], json!({"result": "draft", "answer": "fine"}));
}

#[test]
fn schemas_refuse_what_does_not_fit() {
    let mut node = work("a");
    node.input_schema = Some(json!({"required": ["n"]}));
    node.output_schema = Some(json!({"type": "string"}));
    let graph = || Graph::starting_at("a").node(node.clone());
    let missing = "fail: the state does not fit the input schema of `a`: \
                   \"n\" is a required property";
    play(graph(), json!({}), missing, vec![]);
    let (machine, _) = start(graph(), json!({"n": 1}));
    let error = machine.judge(&StepId::new("a#1"), &StepResult::output(1)).unwrap_err();
    assert_eq!(error.code, "output_schema");
    assert_eq!(
        error.message,
        "what `a` returned does not fit its output schema: 1 is not of type \"string\""
    );
    machine.judge(&StepId::new("a#1"), &StepResult::output("x")).unwrap();
}

#[test]
fn the_launch_that_is_one_too_many_is_refused_and_can_be_allowed_later() {
    let skipped = Node::launch("b", Value::Null).on_error(OnError::Skip);
    let graph = Graph::starting_at("a")
        .node(Node::launch("a", Value::Null))
        .node(skipped)
        .node(work("c"))
        .edge("a", "b")
        .edge("b", "c");
    let more = Input::Patched { patch: patch(json!({"maxLaunches": 2})) };
    let table = vec![
        (
            done("a#1"),
            "fail: the run has used all of its 1 launches of an agent; resume with a higher --max-launches",
        ),
        (more, ""),
        (Input::Revived, "start b#1"),
        (done("b#1"), "start c#1"),
    ];
    let machine = play(graph, json!({"maxLaunches": 1}), "start a#1", table);
    assert_eq!(machine.launches(), 2);
}

#[test]
fn a_cycle_ends_at_the_limit_of_its_graph() {
    let graph = Graph {
        max_iterations: Some(crate::Count::Fixed(2)),
        ..Graph::starting_at("a").node(work("a").on_error(OnError::Skip)).edge("a", "a")
    };
    let table = vec![
        (done("a#1"), "start a#2"),
        (done("a#2"), "fail: node `a` has used all of its 2 iterations"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn the_model_is_the_nodes_own_or_that_of_the_nearest_around_it() {
    let mut inner = Graph::starting_at("x").node(work("x")).node(work("y")).edge("x", "y");
    inner.nodes[0].model = Some("own".to_owned());
    let mut node = sub("sub", inner);
    node.model = Some("around".to_owned());
    let graph = Graph {
        model: Some("outermost".to_owned()),
        ..Graph::starting_at("a").node(work("a")).node(node).edge("a", "sub")
    };
    let (mut machine, _) = start(graph, json!({}));
    let model =
        |machine: &Machine, step: &str| machine.model(&StepId::new(step)).map(str::to_owned);
    assert_eq!(model(&machine, "a#1").as_deref(), Some("outermost"));
    machine.apply(done("a#1")).unwrap();
    assert_eq!(model(&machine, "sub#1/x#1").as_deref(), Some("own"));
    machine.apply(done("sub#1/x#1")).unwrap();
    assert_eq!(model(&machine, "sub#1/y#1").as_deref(), Some("around"));
}

#[test]
fn a_lost_step_that_was_being_stopped_is_simply_gone() {
    let graph = with_parallel(parallel("par", Strategy::Race, &["a", "b"]));
    let table = vec![
        (done("par#1[a]/work#1"), "cancel par#1[b]/work#1"),
        (lost("par#1[b]/work#1", 1, true), "start end#1"),
    ];
    play(graph, json!({}), "start par#1[a]/work#1; start par#1[b]/work#1", table);
}

#[test]
fn two_nodes_of_one_superstep_always_add_to_a_list_in_order() {
    for order in [["a", "b"], ["b", "a"]] {
        let graph = Graph::starting_at("s")
            .node(work("s"))
            .node(work("a"))
            .node(work("b"))
            .edge("s", "a")
            .edge("s", "b")
            .reducer("list", Reducer::Concat);
        let program = Program::compile(graph).unwrap();
        let (mut machine, _) = Machine::start(program, patch(json!({})));
        machine.apply(done("s#1")).unwrap();
        for node in order {
            let value = if node == "a" { json!([1]) } else { json!([2]) };
            machine.apply(wrote(&format!("{node}#1"), "list", value)).unwrap();
        }
        assert_eq!(state(&machine)["list"], json!([1, 2]));
    }
}

#[test]
fn a_join_behind_a_thousand_branches_runs_once() {
    let names: Vec<String> = (0..1_000).map(|n| format!("n{n:04}")).collect();
    let mut graph = Graph::starting_at("s").node(work("s"));
    for name in &names {
        graph = graph.node(work(name)).edge("s", name.as_str());
    }
    graph = graph.node(work("join"));
    let from = names.iter().map(|name| NodeId::from(name.as_str())).collect();
    graph.edges.push(crate::Edge { from, to: "join".into(), when: None });
    let (mut machine, _) = start(graph, json!({}));
    let started = machine.apply(done("s#1")).unwrap();
    assert_eq!(started.len(), 1_000);
    let mut after = vec![];
    for name in &names {
        after.extend(machine.apply(done(&format!("{name}#1"))).unwrap());
    }
    assert_eq!(super::tests::show(&after), "start join#1");
    let end = machine.apply(done("join#1")).unwrap();
    assert_eq!(super::tests::show(&end), "finish");
}

#[test]
fn what_nodes_inside_return_is_seen_by_until_and_by_those_that_come_after() {
    let until = Some(Condition::Says { node: "work".into(), text: "done".into() });
    let rounds = Kind::Loop { graph: single(), until, max_rounds: 5 };
    let graph = Graph::starting_at("loop")
        .node(Node::new("loop", rounds))
        .node(work("after"))
        .edge("loop", "after");
    let (mut machine, _) = start(graph, json!({}));
    machine.apply(done_with("loop#1[1]/work#1", StepResult::output("not yet"))).unwrap();
    let view = machine.view(&StepId::new("loop#1")).unwrap();
    assert_eq!(view.output("work").map(AsRef::as_ref), Some(&json!("not yet")));
    machine.apply(chosen("loop#1", None)).unwrap();
    machine.apply(done_with("loop#1[2]/work#1", StepResult::output("done"))).unwrap();
    machine.apply(chosen("loop#1", Some(0))).unwrap();
    let view = machine.view(&StepId::new("after#1")).unwrap();
    assert_eq!(view.to_value()["outputs"], json!({"work": "done", "loop": "done"}));
}
