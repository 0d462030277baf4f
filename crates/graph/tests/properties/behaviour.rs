//! What workflows rely on, as tables.

use atomic_graph::{
    Condition, Count, FunctionId, Goto, Graph, Input, Key, Node, OnError, Reducer, Retry, Signal,
    StepError, StepId, StepResult,
};
use serde_json::{Value, json};

use crate::table::{
    chosen, done, evaluated, failed, fan, only, patch, play, returned, show, start, work, wrote,
};

#[test]
fn a_run_begins_with_its_own_state_and_nothing_else() {
    let state = json!({"executionId": "1", "prompt": "build x"});
    let (mut machine, _) = start(only(work("a")), state.clone());
    let (other, _) = start(only(work("a")), state);
    let fresh = json!({"executionId": "1", "prompt": "build x", "outputs": {}});
    assert_eq!(machine.newest().to_value(), fresh);
    machine.apply(wrote("a#1", "prompt", json!("another"))).unwrap();
    assert_eq!(machine.newest().to_value()["prompt"], "another");
    assert_eq!(other.newest().to_value(), fresh);
}

#[test]
fn a_step_changes_the_keys_it_names_and_leaves_the_others() {
    let graph = Graph::starting_at("a").node(work("a")).node(work("b")).edge("a", "b");
    let table = vec![
        (returned("a#1", 1, StepResult::output("A").set("x", 2)), "start b#1"),
        (returned("b#1", 1, StepResult::output("B").set("z", 3)), "finish"),
    ];
    let machine = play(graph, json!({"x": 1, "y": 1}), "start a#1", table);
    let expected = json!({"x": 2, "y": 1, "z": 3, "outputs": {"a": "A", "b": "B"}});
    assert_eq!(machine.newest().to_value(), expected);
}

#[test]
fn of_if_and_else_one_is_taken() {
    let graph = || {
        Graph::starting_at("if")
            .node(work("if"))
            .node(work("then"))
            .node(work("else"))
            .node(work("end"))
            .edge_when("if", "then", Condition::Call("yes".into()))
            .edge_when("if", "else", Condition::Otherwise)
            .edge("then", "end")
            .edge("else", "end")
    };
    for (choice, taken) in [(0, "then"), (1, "else")] {
        let start = format!("start {taken}#1");
        let table = vec![
            (done("if#1"), "choose after if#1 of 2"),
            (chosen("if#1", Some(choice)), start.as_str()),
            (done(&format!("{taken}#1")), "start end#1"),
            (done("end#1"), "finish"),
        ];
        play(graph(), json!({}), "start if#1", table);
    }
}

#[test]
fn goto_leads_to_one_node_or_to_several_and_beats_edges() {
    let graph = || {
        Graph::starting_at("a")
            .node(work("a").may_go_to(["b", "c"]))
            .node(work("b"))
            .node(work("c"))
            .node(work("d"))
            .edge("a", "d")
    };
    let many = |nodes: &[&str]| Goto::Many(nodes.iter().map(|node| (*node).into()).collect());
    let table = [
        (None, "start d#1"),
        (Some(Goto::One("c".into())), "start c#1"),
        (Some(many(&["c", "b"])), "start b#1; start c#1"),
        (Some(many(&["b", "b"])), "start b#1"),
        (Some(many(&[])), "finish"),
    ];
    for (goto, expected) in table {
        let input = returned("a#1", 1, StepResult { goto, ..StepResult::default() });
        play(graph(), json!({}), "start a#1", vec![(input, expected)]);
    }
}

/// Every way a failure can be answered, once the attempts are used up.
#[test]
fn an_error_is_answered_as_the_node_says() {
    let graph = |on_error| {
        Graph::starting_at("a")
            .node(work("a").on_error(on_error).may_go_to(["rescue"]))
            .node(work("next"))
            .node(work("rescue"))
            .edge("a", "next")
    };
    let skip_with = OnError::SkipWith(patch(json!({"x": 2})));
    let table = [
        (OnError::Abort, "fail: a#1 broke", 1),
        (OnError::Skip, "start next#1", 1),
        (skip_with, "start next#1", 2),
        (OnError::Goto("rescue".into()), "start rescue#1", 1),
    ];
    for (on_error, expected, x) in table {
        let table = vec![(failed("a#1", 1), expected)];
        let machine = play(graph(on_error), json!({"x": 1}), "start a#1", table);
        assert_eq!(machine.newest().to_value()["x"], x);
    }

    let retry = "start a#1 again (Retried, 2)";
    let by_function = [
        (json!({"action": "retry"}), retry, 1),
        (json!("retry"), retry, 1),
        (json!({"action": "retry", "delay": 9}), "start a#1 again (Retried, 2) in 9 ms", 1),
        (json!({"action": "skip"}), "start next#1", 1),
        (json!({"action": "skip", "fallbackState": {"x": 3}}), "start next#1", 3),
        (json!({"action": "abort"}), "fail: a#1 broke", 1),
        (json!({"action": "goto", "nodeId": "rescue"}), "start rescue#1", 1),
        (
            json!({"action": "goto", "node": "next"}),
            "fail: `onError` goes to `next`, which is not declared",
            1,
        ),
    ];
    let asked = r#"evaluate f({"code":"broken","message":"a#1 broke"}) for a#1"#;
    for (value, expected, x) in by_function {
        let table = vec![(failed("a#1", 1), asked), (evaluated("a#1", value), expected)];
        let machine = play(graph(OnError::Call("f".into())), json!({"x": 1}), "start a#1", table);
        assert_eq!(machine.newest().to_value()["x"], x);
    }

    let (mut machine, _) = start(graph(OnError::Call("f".into())), json!({}));
    machine.apply(failed("a#1", 1)).unwrap();
    let nonsense = machine.apply(evaluated("a#1", json!({"action": "dance"}))).unwrap();
    let told = "fail: node `a`: `onError` returned {\"action\":\"dance\"}";
    assert!(show(&nonsense).starts_with(told), "{}", show(&nonsense));
}

#[test]
fn a_retry_waits_longer_each_time_and_a_predicate_may_refuse_it() {
    let retry = |when: Option<&str>| Retry {
        attempts: 4,
        delay_ms: 10,
        factor: 3.0,
        codes: vec![],
        when: when.map(FunctionId::from),
    };
    let table = vec![
        (failed("a#1", 1), "start a#1 again (Retried, 2) in 10 ms"),
        (failed("a#1", 2), "start a#1 again (Retried, 3) in 30 ms"),
        (failed("a#1", 3), "start a#1 again (Retried, 4) in 90 ms"),
        (failed("a#1", 4), "fail: a#1 broke"),
    ];
    play(only(work("a").retry(retry(None))), json!({}), "start a#1", table);

    let asked = r#"evaluate f({"code":"broken","message":"a#1 broke"}) for a#1"#;
    let table = vec![
        (failed("a#1", 1), asked),
        (evaluated("a#1", json!(true)), "start a#1 again (Retried, 2) in 10 ms"),
        (failed("a#1", 2), asked),
        (evaluated("a#1", json!(false)), "fail: a#1 broke"),
    ];
    play(only(work("a").retry(retry(Some("f")))), json!({}), "start a#1", table);
}

#[test]
fn a_recovery_node_takes_over_and_its_own_failure_is_final() {
    let mut graph = Graph::starting_at("a")
        .node(work("a"))
        .node(work("b"))
        .node(work("recover"))
        .edge("a", "b");
    graph.catch = Some("recover".into());
    let table = vec![(failed("a#1", 1), "start recover#1"), (done("recover#1"), "finish")];
    let machine = play(graph.clone(), json!({}), "start a#1", table);
    let error = json!({"code": "broken", "message": "a#1 broke"});
    assert_eq!(machine.newest().output("a").unwrap()["error"], error);

    let table = vec![
        (done("a#1"), "start b#1"),
        (failed("b#1", 1), "start recover#1"),
        (failed("recover#1", 1), "fail: recover#1 broke"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_question_pauses_its_step_and_nothing_else() {
    let asking = || {
        let signal = Signal {
            kind: Signal::HUMAN.to_owned(),
            message: Some("which one?".to_owned()),
            data: Value::Null,
        };
        StepResult { signals: vec![signal], ..StepResult::output("asked") }
    };
    let answered = |step: &str| Input::Answered { step: StepId::new(step), answer: json!("this") };
    let body = Graph::starting_at("w").node(work("w")).node(work("x")).edge("w", "x");
    let table = vec![
        (returned("fan#1[0]/w#1", 1, asking()), "ask for fan#1[0]/w#1"),
        (done("fan#1[1]/w#1"), "start fan#1[1]/x#1"),
        (done("fan#1[1]/x#1"), ""),
        (answered("fan#1[0]/w#1"), "start fan#1[0]/x#1"),
    ];
    let list = json!({"list": [1, 2]});
    let first = "start fan#1[0]/w#1; start fan#1[1]/w#1";
    let machine = play(only(fan("fan", 2, body)), list, first, table);
    let view = machine.view(&StepId::new("fan#1[0]/x#1")).unwrap();
    assert_eq!(**view.output("w").unwrap(), json!({"result": "asked", "answer": "this"}));
}

#[test]
fn a_node_that_leads_to_itself_ends_at_its_limit() {
    let mut graph = only(work("a")).edge("a", "a");
    graph.max_iterations = Some(Count::Fixed(2));
    let table = vec![
        (done("a#1"), "start a#2"),
        (done("a#2"), "fail: node `a` has used all of its 2 iterations"),
    ];
    play(graph, json!({}), "start a#1", table);

    let visits = only(work("a").max_visits(Count::Fixed(2))).edge("a", "a");
    let table = vec![
        (done("a#1"), "start a#2"),
        (done("a#2"), "fail: node `a` has used all of its 2 visits"),
    ];
    play(visits, json!({}), "start a#1", table);
}

#[test]
fn schemas_say_what_a_node_may_see_and_return() {
    let mut seeing = work("a");
    seeing.input_schema = Some(json!({"properties": {"n": {"type": "integer"}}}));
    let (_, shown) = start(only(seeing.clone()), json!({"n": "x"}));
    assert!(shown.starts_with("fail: the state does not fit the input schema of `a`: at `/n`"));
    let (_, shown) = start(only(seeing), json!({"n": 1}));
    assert_eq!(shown, "start a#1");

    let mut returning = work("a");
    returning.output_schema = Some(json!({"type": "string"}));
    let (machine, _) = start(only(returning), json!({}));
    let judge = |output: Value| machine.judge(&StepId::new("a#1"), &StepResult::output(output));
    assert_eq!(judge(json!("x")), Ok(()));
    assert_eq!(judge(json!(1)).unwrap_err().code, "output_schema");
}

/// Two nodes of one superstep change the same key, the later one first.
#[test]
fn each_reducer_combines_in_graph_order_whoever_comes_first() {
    let row = |id: &str, n: u32| json!({"id": id, "n": n});
    let table = [
        (Reducer::Concat, json!([0]), json!([1]), json!([2]), json!([0, 1, 2])),
        (Reducer::Concat, json!([0]), json!(1), json!([2]), json!([0, 1, 2])),
        (
            Reducer::Merge,
            json!({"a": 0}),
            json!({"b": 1}),
            json!({"b": 2}),
            json!({"a": 0, "b": 2}),
        ),
        (
            Reducer::MergeById,
            json!([row("a", 0)]),
            json!([row("b", 1)]),
            json!([row("a", 2)]),
            json!([row("a", 2), row("b", 1)]),
        ),
        (
            Reducer::MergeBy("n".to_owned()),
            json!([row("a", 0)]),
            json!([row("b", 0)]),
            json!([row("c", 1)]),
            json!([row("b", 0), row("c", 1)]),
        ),
        (Reducer::Max, json!(2), json!(5), json!(3), json!(5)),
        (Reducer::Min, json!(2), json!(5), json!(1), json!(1)),
        (Reducer::Sum, json!(1), json!(5), json!(3), json!(9)),
        (Reducer::Or, json!(false), json!(true), json!(null), json!(true)),
        (Reducer::And, json!(true), json!(false), json!(null), json!(false)),
        (Reducer::IfDefined, json!(1), json!(2), json!(null), json!(2)),
    ];
    for (reducer, old, first, second, expected) in table {
        let graph = Graph::starting_at("s")
            .node(work("s"))
            .node(work("a"))
            .node(work("b"))
            .edge("s", "a")
            .edge("s", "b")
            .reducer("k", reducer.clone());
        let change = |step: &str, value: Value| {
            let boolean = matches!(reducer, Reducer::Or | Reducer::And);
            if value.is_null() && boolean { done(step) } else { wrote(step, "k", value) }
        };
        let table = vec![
            (done("s#1"), "start a#1; start b#1"),
            (change("b#1", second), ""),
            (change("a#1", first), "finish"),
        ];
        let machine = play(graph, json!({"k": old}), "start s#1", table);
        assert_eq!(machine.newest().to_value()["k"], expected, "{reducer:?}");
    }
}

#[test]
fn a_function_reduces_change_by_change() {
    let graph = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a"))
        .node(work("b"))
        .edge("s", "a")
        .edge("s", "b")
        .reducer("k", Reducer::Call("f".into()));
    let table = vec![
        (done("s#1"), "start a#1; start b#1"),
        (wrote("b#1", "k", json!("b")), ""),
        (wrote("a#1", "k", json!("a")), r#"evaluate f(0, "a") for a#1"#),
        (evaluated("a#1", json!(1)), r#"evaluate f(1, "b") for b#1"#),
        (evaluated("b#1", json!(2)), "finish"),
    ];
    let machine = play(graph, json!({"k": 0}), "start s#1", table);
    assert_eq!(machine.newest().to_value()["k"], 2);
}

#[test]
fn what_has_no_time_left_has_failed_with_that_code() {
    let node = work("a").timeout_ms(5).retry(Retry {
        attempts: 2,
        codes: vec!["timeout".to_owned()],
        ..Retry::default()
    });
    let late = |attempt| Input::Failed {
        step: StepId::new("a#1"),
        attempt,
        error: StepError::new("timeout", "it took longer than 5 ms"),
    };
    let table = vec![
        (late(1), "start a#1 again (Retried, 2)"),
        (late(2), "fail: it took longer than 5 ms"),
    ];
    play(only(node), json!({}), "start a#1", table);
}

#[test]
fn a_state_key_may_hold_a_limit() {
    let node = |id: &str| Node::work(id, Value::Null);
    let graph = only(node("a").max_visits(Count::Key(Key::from("most")))).edge("a", "a");
    let table = vec![(done("a#1"), "fail: node `a` has used all of its 1 visits")];
    play(graph, json!({"most": 1}), "start a#1", table);
}
