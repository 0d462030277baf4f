//! Limits of the run: whatever the graph says about failures, they end it.

use atomic_graph::{
    Branch, Condition, Count, Graph, Input, Kind, Node, OnError, Parallel, Program, Retry,
    StepError, StepId, StepResult, Strategy,
};
use serde_json::{Value, json};

use crate::table::{
    chosen, done, failed, fan, gone, only, patched, play, returned, start, sub, work, wrote,
};

fn launch(id: &str) -> Node {
    Node::launch(id, Value::Null)
}

/// What a caller says when its own budget is used up.
fn spent(step: &str) -> Input {
    let error = StepError::new("ceiling", "all the money is gone");
    Input::Failed { step: StepId::new(step), attempt: 1, error }
}

fn parallel(id: &str, strategy: Strategy, branches: Vec<(&str, Graph)>) -> Node {
    let branch = |(id, graph): (&str, Graph)| Branch { id: id.into(), graph };
    let branches = branches.into_iter().map(branch).collect();
    Node::new(id, Kind::Parallel(Parallel { branches, strategy, fail_fast: false, merge: None }))
}

fn endless(id: &str, graph: Graph) -> Node {
    let until = Some(Condition::Call("never".into()));
    Node::new(id, Kind::Loop { graph, until, max_rounds: 0 })
}

fn two(first: Node, second: Node) -> Graph {
    let (from, to) = (first.id.clone(), second.id.clone());
    Graph::starting_at(from.clone()).node(first).node(second).edge(from, to)
}

const NO_STEPS: &str = "fail: the run has used all of its 3 steps";
const NO_LAUNCHES: &str =
    "fail: the run has used all of its 1 launches of an agent; resume with a higher --max-launches";

#[test]
fn a_node_that_is_skipped_on_error_does_not_hide_that_the_steps_are_used_up() {
    let inner = two(work("p"), work("q"));
    let mut graph = two(work("a"), sub("s", inner).on_error(OnError::Skip));
    graph.max_steps = Some(3);
    let table = vec![
        (done("a#1"), "start s#1/p#1"),
        (done("s#1/p#1"), NO_STEPS),
        (Input::Revived, "start s#1/q#1"),
        (done("s#1/q#1"), "finish"),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_run_that_has_used_up_its_steps_gets_as_many_again_when_it_is_revived() {
    let mut graph = only(work("a")).edge("a", "a");
    graph.max_steps = Some(3);
    let table = vec![
        (done("a#1"), "start a#2"),
        (done("a#2"), "start a#3"),
        (done("a#3"), NO_STEPS),
        (Input::Revived, "start a#4"),
        (done("a#4"), "start a#5"),
        (done("a#5"), "start a#6"),
        (done("a#6"), NO_STEPS),
    ];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn neither_rules_nor_a_recovery_node_hide_that_the_launches_are_used_up() {
    let rules =
        [OnError::Skip, OnError::Goto("after".into()), OnError::Call("f".into()), OnError::Abort];
    for rule in rules {
        let body = only(launch("w").on_error(OnError::Skip));
        let mut graph = two(endless("l", body).on_error(rule), work("after"));
        graph.catch = Some("after".into());
        let table = vec![
            (done("l#1[1]/w#1"), "choose after l#1 of 1"),
            (chosen("l#1", None), NO_LAUNCHES),
            (patched(json!({"maxLaunches": 2})), ""),
            (Input::Revived, "start l#1[2]/w#1"),
            (done("l#1[2]/w#1"), "choose after l#1 of 1"),
            (chosen("l#1", Some(0)), "start after#1"),
            (done("after#1"), "finish"),
        ];
        play(graph, json!({"maxLaunches": 1}), "start l#1[1]/w#1", table);
    }
}

#[test]
fn what_won_stays_won_and_the_run_has_failed_all_the_same() {
    let long = two(work("x"), work("y"));
    let any = parallel("any", Strategy::Any, vec![("l", long), ("r", only(work("w")))]);
    let mut graph = only(any);
    graph.max_steps = Some(3);
    let table = vec![
        (done("any#1[l]/x#1"), ""),
        (returned("any#1[r]/w#1", 1, StepResult::output("r")), NO_STEPS),
        (Input::Revived, "finish"),
    ];
    let machine = play(graph, json!({}), "start any#1[l]/x#1; start any#1[r]/w#1", table);
    assert_eq!(**machine.newest().output("any").unwrap(), json!({"r": "r"}));
}

#[test]
fn what_runs_when_a_limit_is_met_is_heard_and_nothing_is_started_after_it() {
    let long = || two(work("x"), work("y"));
    let all = parallel(
        "all",
        Strategy::All,
        vec![("l", two(launch("a"), launch("b"))), ("m", long()), ("r", long())],
    );
    let table = vec![
        (done("all#1[l]/a#1"), ""),
        (wrote("all#1[m]/x#1", "n", json!(7)), ""),
        // A failure beside it has no rule of its own any more either.
        (failed("all#1[r]/x#1", 1), NO_LAUNCHES),
        (patched(json!({"maxLaunches": 9})), ""),
        (
            Input::Revived,
            "start all#1[l]/b#1; start all#1[m]/y#1; start all#1[r]/x#1 again (Revived, 2)",
        ),
        (done("all#1[l]/b#1"), ""),
        (done("all#1[m]/y#1"), ""),
        (returned("all#1[r]/x#1", 2, StepResult::default()), "start all#1[r]/y#1"),
        (done("all#1[r]/y#1"), "finish"),
    ];
    let first = "start all#1[l]/a#1; start all#1[m]/x#1; start all#1[r]/x#1";
    let machine = play(only(all), json!({"maxLaunches": 1}), first, table);
    assert_eq!(machine.newest().to_value()["n"], 7);
}

#[test]
fn a_limit_that_the_caller_holds_cannot_be_caught() {
    let retry = Retry { attempts: 3, ..Retry::default() };
    let rules = [OnError::Skip, OnError::Goto("b".into()), OnError::Call("f".into())];
    for rule in rules {
        let inner = only(work("a").on_error(rule.clone()).retry(retry.clone()));
        let mut inner = inner.node(work("b")).edge("a", "b");
        inner.catch = Some("b".into());
        let node = sub("s", inner).on_error(OnError::Skip).retry(retry.clone());
        let table = vec![
            (spent("s#1/a#1"), "fail: all the money is gone"),
            (Input::Revived, "start s#1/a#1 again (Revived, 2)"),
            (returned("s#1/a#1", 2, StepResult::default()), "start s#1/b#1"),
            (done("s#1/b#1"), "finish"),
        ];
        play(only(node), json!({}), "start s#1/a#1", table);
    }
}

#[test]
fn a_fan_at_a_limit_starts_no_further_items_and_finds_them_when_it_is_revived() {
    let graph = only(fan("fan", 1, only(launch("w").on_error(OnError::Skip))));
    let table = vec![
        (done("fan#1[0]/w#1"), NO_LAUNCHES),
        (patched(json!({"maxLaunches": 9})), ""),
        (Input::Revived, "start fan#1[1]/w#1"),
        (done("fan#1[1]/w#1"), "start fan#1[2]/w#1"),
        (done("fan#1[2]/w#1"), "finish"),
    ];
    let state = json!({"list": [1, 2, 3], "maxLaunches": 1});
    let machine = play(graph, state, "start fan#1[0]/w#1", table);
    assert_eq!(machine.snapshot().unwrap()["frames"].as_object().unwrap().len(), 1);
}

#[test]
fn the_visits_of_one_node_are_its_own_matter() {
    let node = work("a").max_visits(Count::Fixed(1)).on_error(OnError::Goto("b".into()));
    let graph = only(node).node(work("b")).edge("a", "a");
    let table = vec![(done("a#1"), "start b#1"), (done("b#1"), "finish")];
    play(graph, json!({}), "start a#1", table);
}

#[test]
fn a_loop_that_starts_nothing_does_not_go_round_for_ever() {
    let idle = "fail: it went round without being able to start anything";
    let empty = only(endless("l", only(fan("fan", 1, only(work("w"))))));
    let table = vec![
        (chosen("l#1", None), "choose after l#1 of 1"),
        (chosen("l#1", None), idle),
        (Input::Revived, "choose after l#1 of 1"),
        (chosen("l#1", Some(0)), "finish"),
    ];
    play(empty, json!({"list": []}), "choose after l#1 of 1", table);

    let visited = launch("w").max_visits(Count::Fixed(1)).on_error(OnError::Skip);
    let table = vec![
        (done("l#1[1]/w#1"), "choose after l#1 of 1"),
        (chosen("l#1", None), "choose after l#1 of 1"),
        (chosen("l#1", None), "choose after l#1 of 1"),
        (chosen("l#1", None), idle),
    ];
    play(only(endless("l", only(visited))), json!({}), "start l#1[1]/w#1", table);

    // A loop whose rounds are counted ends by itself.
    let body = only(fan("fan", 1, only(work("w"))));
    let counted = Node::new("l", Kind::Loop { graph: body, until: None, max_rounds: 50 });
    assert_eq!(start(only(counted), json!({"list": []})).1, "finish");
}

#[test]
fn a_loop_in_which_something_is_started_now_and_then_goes_on() {
    let body = only(fan("fan", 1, only(work("w"))));
    let table = vec![
        (chosen("l#1", None), "choose after l#1 of 1"),
        (patched(json!({"list": [1]})), ""),
        (chosen("l#1", None), "fail: it went round without being able to start anything"),
        (Input::Revived, "choose after l#1 of 1"),
        (chosen("l#1", None), "start l#1[3]/fan#1[0]/w#1"),
        (wrote("l#1[3]/fan#1[0]/w#1", "list", json!([])), "choose after l#1 of 1"),
        (chosen("l#1", None), "choose after l#1 of 1"),
        (chosen("l#1", Some(0)), "finish"),
    ];
    play(only(endless("l", body)), json!({"list": []}), "choose after l#1 of 1", table);
}

/// What a limit reads must be a number: anything else would silently mean that there is none.
#[test]
fn a_limit_that_is_no_number_is_a_failure_that_names_node_and_key() {
    let visits = || work("a").max_visits(Count::Key("most".into()));
    let mut iterations = only(work("a"));
    iterations.max_iterations = Some(Count::Key("most".into()));
    let mut crowd = fan("a", 1, only(work("w")));
    if let Kind::Each(each) = &mut crowd.kind {
        each.workers = Count::Key("most".into());
    }
    for graph in [only(visits()), iterations, only(crowd)] {
        for wrong in [json!("two"), json!(-1), json!(1.5), json!([1]), json!(true)] {
            let expected =
                format!("fail: node `a`, key `most`: a whole number is needed, not {wrong}");
            let state = json!({"most": wrong, "list": [1]});
            let (mut machine, shown) = start(graph.clone(), state);
            assert_eq!(shown, expected);
            let code = machine.outcome().unwrap().clone().unwrap_err().code;
            assert_eq!(code, "wrong_value");
            // Set right, it goes on.
            machine.apply(patched(json!({"most": 2.0}))).unwrap();
            let effects = machine.apply(Input::Revived).unwrap();
            assert!(crate::table::show(&effects).starts_with("start a#1"), "{effects:?}");
        }
        // One that is not there is none.
        for absent in [json!({"list": [1]}), json!({"list": [1], "most": null})] {
            assert!(start(graph.clone(), absent).1.starts_with("start a#1"));
        }
    }
    let wrong = json!({"maxLaunches": "two"});
    let refused = "fail: node `a`, key `maxLaunches`: a whole number is needed, not \"two\"";
    assert_eq!(start(only(launch("a")), wrong).1, refused);
    assert_eq!(start(only(visits().on_error(OnError::Skip)), json!({"most": "x"})).1, "finish");
}

#[test]
fn a_whole_number_may_be_written_with_a_point() {
    let mut node = fan("fan", 1, only(work("w")));
    if let Kind::Each(each) = &mut node.kind {
        each.workers = Count::Key("most".into());
    }
    let state = json!({"list": [1, 2, 3], "most": 2.0});
    assert_eq!(start(only(node), state).1, "start fan#1[0]/w#1; start fan#1[1]/w#1");
}

#[test]
fn a_question_holds_no_place_among_those_that_run() {
    let ask = Node::question("ask", Value::Null);
    let branches = vec![("l", only(ask)), ("m", only(work("x"))), ("r", only(work("y")))];
    let mut graph = only(parallel("all", Strategy::All, branches));
    graph.max_concurrency = Some(1);
    let table = vec![
        (done("all#1[m]/x#1"), "start all#1[r]/y#1"),
        (done("all#1[l]/ask#1"), ""),
        (done("all#1[r]/y#1"), "finish"),
    ];
    play(graph.clone(), json!({}), "start all#1[l]/ask#1; start all#1[m]/x#1", table);
    let written = serde_json::to_value(Program::compile(graph).unwrap().graph()).unwrap();
    assert_eq!(written.to_string().matches("asks").count(), 1, "said only where it is so");
}

#[test]
fn a_question_that_is_stopped_gives_no_place_away_twice() {
    let ask = Node::question("ask", Value::Null);
    let branches = vec![("l", only(ask)), ("r", only(work("x")))];
    let mut graph = two(parallel("any", Strategy::Any, branches), work("end"));
    graph.max_concurrency = Some(1);
    let table = vec![
        (done("any#1[r]/x#1"), "cancel any#1[l]/ask#1"),
        (gone("any#1[l]/ask#1"), "start end#1"),
        (done("end#1"), "finish"),
    ];
    play(graph, json!({}), "start any#1[l]/ask#1; start any#1[r]/x#1", table);
}

#[test]
fn the_model_that_is_inherited_is_that_of_the_nearest_place_that_names_one() {
    let inherits = |mut node: Node| {
        node.model = Some("inherit".to_owned());
        node
    };
    let mut inner = only(inherits(work("a")));
    inner.model = Some("inherit".to_owned());
    let mut graph = only(inherits(sub("s", inner)));
    let step = StepId::new("s#1/a#1");
    assert_eq!(start(graph.clone(), json!({})).0.model(&step), None);
    graph.model = Some("large".to_owned());
    assert_eq!(start(graph.clone(), json!({})).0.model(&step), Some("large"));
    graph.nodes[0].model = Some("small".to_owned());
    assert_eq!(start(graph, json!({})).0.model(&step), Some("small"));
}
