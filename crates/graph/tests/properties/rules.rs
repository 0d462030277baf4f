//! Single rules that a run keeps, each in a table of its own.

use atomic_graph::{
    Branch, Condition, Count, Graph, Input, Kind, Node, Parallel, Ready, Reducer, StepId,
    StepResult, Strategy,
};
use serde_json::json;

use crate::table::{
    done, failed, fan, gone, only, patched, play, returned, show, start, sub, work, wrote,
};

/// Branches of one node each, which is called like its branch.
fn all_of(branches: &[&str]) -> Node {
    let branch = |id: &&str| Branch { id: (*id).into(), graph: only(work(id)) };
    let branches = branches.iter().map(branch).collect();
    let (strategy, fail_fast, merge) = (Strategy::All, false, None);
    Node::new("all", Kind::Parallel(Parallel { branches, strategy, fail_fast, merge }))
}

#[test]
fn a_fan_may_stop_with_the_first_item_that_fails() {
    for fail_fast in [true, false] {
        let mut node = fan("fan", 2, only(work("w")));
        if let Kind::Each(each) = &mut node.kind {
            each.fail_fast = fail_fast;
        }
        let first = "start fan#1[0]/w#1; start fan#1[1]/w#1";
        let table = if fail_fast {
            vec![
                (failed("fan#1[1]/w#1", 1), "cancel fan#1[0]/w#1"),
                (gone("fan#1[0]/w#1"), "fail: item `1` failed: fan#1[1]/w#1 broke"),
            ]
        } else {
            let failure = "fail: 1 of 3 items failed; the first: fan#1[1]/w#1 broke";
            vec![
                (failed("fan#1[1]/w#1", 1), "start fan#1[2]/w#1"),
                (done("fan#1[0]/w#1"), ""),
                (done("fan#1[2]/w#1"), failure),
            ]
        };
        play(only(node), json!({"list": [1, 2, 3]}), first, table);
    }
}

#[test]
fn a_graph_inside_another_may_stop_with_its_first_failure() {
    let mut inner = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a"))
        .node(work("b"))
        .edge("s", "a")
        .edge("s", "b");
    inner.fail_fast = true;
    let table = vec![
        (done("in#1/s#1"), "start in#1/a#1; start in#1/b#1"),
        (failed("in#1/a#1", 1), "cancel in#1/b#1"),
        (gone("in#1/b#1"), "fail: in#1/a#1 broke"),
    ];
    play(only(sub("in", inner)), json!({}), "start in#1/s#1", table);
}

#[test]
fn a_node_with_others_inside_has_its_time_again_when_the_run_is_revived() {
    let table = vec![
        (failed("x#1/w#1", 1), "fail: x#1/w#1 broke"),
        (Input::Revived, "limit x#1 to 5 ms; start x#1/w#1 again (Revived, 2)"),
        (Input::TimedOut { step: StepId::new("x#1") }, "cancel x#1/w#1"),
    ];
    let node = sub("x", only(work("w"))).timeout_ms(5);
    play(only(node), json!({}), "limit x#1 to 5 ms; start x#1/w#1", table);
}

#[test]
fn every_kind_of_node_may_say_what_it_has_to_see() {
    let looped = Kind::Loop { graph: only(work("w")), until: None, max_rounds: 1 };
    let nodes = [
        work("x"),
        Node::new("x", Kind::Decision),
        sub("x", only(work("w"))),
        Node::new("x", looped),
        fan("x", 1, only(work("w"))),
        Node::new("x", all_of(&["l"]).kind),
    ];
    for mut node in nodes {
        node.input_schema = Some(json!({"required": ["seen"]}));
        let decides = node.kind == Kind::Decision;
        let graph = only(node).node(work("y")).edge_when("x", "y", Condition::Otherwise);
        let (_, refused) = start(graph.clone(), json!({"list": [1]}));
        let unfit = "fail: the state does not fit the input schema of `x`";
        assert!(refused.starts_with(unfit), "{refused}");
        let (_, taken) = start(graph, json!({"list": [1], "seen": 1}));
        let begun = if decides { "choose after x#1" } else { "start x#1" };
        assert!(taken.starts_with(begun), "{taken}");
    }
}

#[test]
fn what_nodes_in_branches_return_is_seen_after_them() {
    let graph =
        Graph::starting_at("all").node(all_of(&["z", "a"])).node(work("b")).edge("all", "b");
    let said = |branch: &str| {
        let step = format!("all#1[{branch}]/{branch}#1");
        returned(&step, 1, StepResult::output(format!("said by {branch}")))
    };
    let table = vec![(said("a"), ""), (said("z"), "start b#1")];
    let first = "start all#1[z]/z#1; start all#1[a]/a#1";
    let machine = play(graph, json!({}), first, table);
    let view = machine.view(&StepId::new("b#1")).unwrap();
    let all = json!({"z": "said by z", "a": "said by a"});
    let seen = json!({"z": "said by z", "a": "said by a", "all": all});
    assert_eq!(view.to_value()["outputs"], seen);
    // Two objects are equal in whatever order; this one is in that of the branches.
    assert_eq!(view.output("all").unwrap().to_string(), all.to_string());
}

#[test]
fn what_was_completed_or_skipped_blocks_nothing_any_more() {
    let row =
        |id: &str, blockers: &[&str]| json!({"id": id, "status": "pending", "blockedBy": blockers});
    for (status, then) in [
        ("completed", "start fan#1[#2]/w#1"),
        ("skipped", "start fan#1[#2]/w#1"),
        ("failed", "finish"),
    ] {
        let mut node = fan("fan", 2, only(work("w")));
        if let Kind::Each(each) = &mut node.kind {
            (each.ready, each.over) = (Ready::Tasks, "tasks".into());
        }
        let graph = only(node).reducer("tasks", Reducer::MergeById);
        let settled = wrote("fan#1[#1]/w#1", "tasks", json!([{"id": "#1", "status": status}]));
        let state = json!({"tasks": [row("#1", &[]), row("#2", &["#1"])]});
        play(graph, state, "start fan#1[#1]/w#1", vec![(settled, then)]);
    }
}

#[test]
fn an_edited_list_of_tasks_holds_inside_the_fan_and_after_it() {
    let row =
        |id: &str, blockers: &[&str]| json!({"id": id, "status": "pending", "blockedBy": blockers});
    let mut node = fan("fan", 2, only(work("w")));
    if let Kind::Each(each) = &mut node.kind {
        (each.ready, each.over) = (Ready::Tasks, "tasks".into());
    }
    let settled = |id: &str, visit: u32| {
        let step = format!("fan#1[{id}]/w#{visit}");
        wrote(&step, "tasks", json!([{"id": id, "status": "completed"}]))
    };
    let edit = json!({"tasks": [
        {"id": "#3", "$removed": true},
        {"id": "#1", "status": "pending"},
        {"id": "#5", "status": "pending", "$after": "#1"},
    ]});
    let list = json!([row("#1", &[]), row("#2", &["#1"]), row("#3", &[]), row("#4", &["#2"])]);
    let graph = only(node).reducer("tasks", Reducer::MergeById);
    let table = vec![
        (settled("#1", 1), "start fan#1[#2]/w#1"),
        (settled("#3", 1), ""),
        // What is done is done again, and what is new is begun as soon as there is a worker.
        (patched(edit), "start fan#1[#1]/w#2"),
        (settled("#2", 1), "start fan#1[#5]/w#1"),
        (settled("#1", 2), "start fan#1[#4]/w#1"),
        (settled("#5", 1), ""),
        (settled("#4", 1), "finish"),
    ];
    let first = "start fan#1[#1]/w#1; start fan#1[#3]/w#1";
    let machine = play(graph, json!({ "tasks": list }), first, table);
    let tasks = machine.newest().to_value()["tasks"].clone();
    let ids: Vec<_> = tasks.as_array().unwrap().iter().map(|task| task["id"].clone()).collect();
    assert_eq!(ids, ["#1", "#5", "#2", "#4"], "{tasks}");
}

#[test]
fn a_change_from_outside_reaches_what_is_under_way_at_any_depth() {
    let inner = only(fan("fan", 1, only(work("w"))));
    let graph = only(sub("x", inner)).reducer("list", Reducer::Concat);
    let table = vec![
        (patched(json!({"list": ["late"], "told": 1})), ""),
        (done("x#1/fan#1[0]/w#1"), "start x#1/fan#1[1]/w#1"),
    ];
    let machine = play(graph, json!({"list": ["early"]}), "start x#1/fan#1[0]/w#1", table);
    let view = machine.view(&StepId::new("x#1/fan#1[1]/w#1")).unwrap().to_value();
    assert_eq!((&view["item"], &view["told"]), (&json!("late"), &json!(1)));
}

/// A number that is written down limits one chance; one that is in the state, the run.
#[test]
fn a_written_number_of_visits_is_granted_to_every_chance_of_a_run() {
    let graph = |limit| only(work("a").max_visits(limit)).edge("a", "a");
    let refused = "fail: node `a` has used all of its 2 visits";
    let before = || {
        let table = vec![(done("a#1"), "start a#2"), (done("a#2"), refused)];
        table.into_iter()
    };
    let after = [(Input::Revived, "start a#3"), (done("a#3"), "start a#4"), (done("a#4"), refused)];
    let table = before().chain(after).collect();
    play(graph(Count::Fixed(2)), json!({}), "start a#1", table);

    let table = before().chain([(Input::Revived, refused)]).collect();
    let mut machine =
        play(graph(Count::Key("most".into())), json!({"most": 2}), "start a#1", table);
    machine.apply(patched(json!({"most": 3}))).unwrap();
    assert_eq!(show(&machine.apply(Input::Revived).unwrap()), "start a#3");
}
