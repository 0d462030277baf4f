//! What a run comes to does not depend on how many work at once, nor on who finishes first.

use atomic_graph::{
    Count, Graph, Input, ItemOrder, Kind, Machine, Patch, Ready, Reducer, StepId, StepResult,
};
use serde_json::{Value, json};

use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::run::Run;
use crate::runs::end;
use crate::scene::{Scene, Style};
use crate::seeds;
use crate::table::{fan, only, returned, start, work};
use crate::world::World;

/// Fans over a list with so many workers, everywhere in a graph.
fn with_workers(graph: &mut Graph, workers: u64) {
    for node in &mut graph.nodes {
        match &mut node.kind {
            Kind::Each(each) => {
                (each.over, each.ready) = ("list".into(), Ready::Once);
                (each.order, each.workers) = (ItemOrder::List, Count::Fixed(workers));
                with_workers(&mut each.graph, workers);
            }
            Kind::Subgraph { graph, .. } | Kind::Loop { graph, .. } => with_workers(graph, workers),
            Kind::Parallel(parallel) => {
                let branches = parallel.branches.iter_mut();
                branches.for_each(|branch| with_workers(&mut branch.graph, workers));
            }
            Kind::Work { .. } | Kind::Decision | Kind::Script(_) => {}
        }
    }
}

/// Random graphs with fans inside fans, retries, losses and functions that combine changes.
#[test]
fn neither_the_number_of_workers_nor_the_order_of_answers_matters() {
    seeds::all(&seeds::seeds(600), |seed| {
        let mut dice = Dice::new(seed);
        let depth = 1 + dice.below(3) as u32;
        let style = Style { depth, racing: false, limits: false, fans: true, rules: false };
        let scene = Scene::random(&mut dice, style);
        let world = World { growing: false, breaking: 0, failing: 0, ..World::random(&mut dice) };
        let ends = [(1, Some(1)), (1, None), (2, Some(3)), (3, None), (9, Some(2)), (9, None)].map(
            |(workers, at_once)| {
                let mut scene = scene.clone();
                with_workers(&mut scene.graph, workers);
                scene.graph.max_concurrency = at_once;
                let mut run = Run::start(&scene, world);
                run.finish(&mut dice, false);
                end(&run, false)
            },
        );
        for other in &ends[1..] {
            assert_eq!(ends[0], *other);
        }
        Coverage::default()
    });
}

/// What every item returns, whatever it sees: some of it is what is there already.
fn vote(item: &str) -> Value {
    match item {
        "a" | "b" | "d" => json!(["yes"]),
        _ => json!(["yes", "no"]),
    }
}

/// What an item hands back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Returned {
    /// Its changes.
    Changes,
    /// `{...state, last}`.
    Whole,
    /// `{...state, votes, …, last}`.
    WholeAndVotes,
}

/// Runs a fan over four items, each of which ends when `dice` say.
fn voted(workers: u64, at_once: Option<u32>, returns: Returned, dice: &mut Dice) -> Value {
    let mut graph = only(fan("ask", workers, only(work("vote"))))
        .reducer("votes", Reducer::Concat)
        .reducer("called", Reducer::Call("join".into()))
        .reducer("count", Reducer::Sum)
        .reducer("seen", Reducer::Merge);
    graph.max_concurrency = at_once;
    let list: Vec<Value> = ["a", "b", "c", "d"].iter().map(|id| json!({"id": id})).collect();
    let state =
        json!({"list": list, "votes": [], "called": [], "count": 0, "seen": {}, "last": ""});
    let (mut machine, _) = start(graph, state);
    while machine.outcome().is_none() {
        let running = machine.running();
        let (step, _) = dice.pick(&running);
        let item = step.item().unwrap();
        let mut result = StepResult::output(item.as_str())
            .set("votes", vote(&item))
            .set("called", vote(&item))
            .set("count", 1)
            .set("seen", json!({"last": item}))
            .set("last", item.as_str());
        if returns == Returned::Whole {
            result.patch = [("last".into(), json!(item))].into();
        }
        if returns != Returned::Changes {
            hand_back(&machine, &step, &mut result.patch);
        }
        finish(&mut machine, &step, result);
    }
    checked(&machine)
}

/// Adds everything else that a step has seen to what it returns.
fn hand_back(machine: &Machine, step: &StepId, patch: &mut Patch) {
    let seen = machine.view(step).unwrap().to_value();
    let Value::Object(mut seen) = seen else { panic!("{seen}") };
    seen.remove("outputs");
    for (key, value) in seen {
        patch.entry(key.into()).or_insert(value);
    }
}

fn finish(machine: &mut Machine, step: &StepId, result: StepResult) {
    let mut effects = machine.apply(returned(step.as_str(), 1, result)).unwrap();
    while let Some(effect) = effects.pop() {
        let atomic_graph::Effect::Evaluate { step, args, .. } = effect else { continue };
        effects.extend(machine.apply(joined(step, &args[0], &args[1])).unwrap());
    }
}

fn joined(step: StepId, old: &Value, more: &Value) -> Input {
    let [mut all, more] = [old, more].map(|list| list.as_array().unwrap().clone());
    all.extend(more);
    Input::Evaluated { step, result: Ok(all.into()) }
}

fn checked(machine: &Machine) -> Value {
    assert_eq!(machine.outcome(), Some(&Ok(())));
    machine.newest().to_value()
}

#[test]
fn no_vote_is_lost_and_no_order_is_another_one() {
    let votes = json!(["yes", "yes", "yes", "no", "yes"]);
    let all = (votes, json!(4), json!({"last": "d"}));
    let cases = [
        (Returned::Changes, all.clone()),
        (Returned::Whole, (json!([]), json!(0), json!({}))),
        (Returned::WholeAndVotes, all),
    ];
    for (returns, (votes, count, seen)) in cases {
        let mut dice = Dice::new(7);
        for (workers, at_once) in [(1, None), (2, None), (3, Some(2)), (4, Some(3)), (4, None)] {
            for _ in 0..40 {
                let state = voted(workers, at_once, returns, &mut dice);
                let got = (&state["votes"], &state["called"], &state["count"], &state["seen"]);
                assert_eq!(
                    got,
                    (&votes, &votes, &count, &seen),
                    "{returns:?} {workers} {at_once:?}"
                );
                assert_eq!(state["last"], "d");
            }
        }
    }
}

/// Tasks that wait for each other see the changes of those they waited for, and no others.
#[test]
fn a_task_sees_what_it_waited_for_however_many_work() {
    let mut dice = Dice::new(7);
    for workers in [1, 2, 3, 4] {
        for _ in 0..40 {
            let mut node = fan("do", workers, only(work("vote")));
            let Kind::Each(each) = &mut node.kind else { panic!("a fan") };
            (each.ready, each.order) = (Ready::Tasks, Ready::Tasks.order());
            let graph = only(node)
                .reducer("list", Reducer::MergeById)
                .reducer("votes", Reducer::Concat)
                .reducer("called", Reducer::Call("join".into()))
                .reducer("seen", Reducer::Merge);
            let list = json!([{"id": "d", "blockedBy": ["b", "c"]}, {"id": "c"},
                {"id": "b", "blockedBy": ["a"]}, {"id": "a"}, {"id": "e"}]);
            let state = json!({"list": list, "votes": [], "called": [], "seen": {}});
            let (mut machine, _) = start(graph, state);
            while machine.outcome().is_none() {
                let running = machine.running();
                let (step, _) = dice.pick(&running);
                let item = step.item().unwrap();
                let view = machine.view(&step).unwrap();
                let mut result = StepResult::output(item.as_str())
                    .set("votes", json!(["yes"]))
                    .set("called", json!([item]))
                    .set("seen", json!({item.as_str(): view.get("votes").unwrap().as_ref()}))
                    .set("list", json!([{"id": item, "status": "completed"}]));
                if item == "a" || item == "c" || item == "e" {
                    hand_back(&machine, &step, &mut result.patch);
                }
                assert!(item != "d" || view.get("called").unwrap().as_array().unwrap().len() > 2);
                finish(&mut machine, &step, result);
            }
            let state = checked(&machine);
            let seen = json!({"a": [], "b": ["yes"], "c": [], "d": ["yes", "yes", "yes"], "e": []});
            assert_eq!(state["seen"], seen, "{workers}");
            assert_eq!(state["votes"], json!(["yes", "yes", "yes", "yes", "yes"]), "{workers}");
            assert_eq!(state["called"], json!(["a", "b", "c", "d", "e"]), "{workers}");
        }
    }
}

#[test]
fn a_task_that_runs_again_sees_its_own_changes() {
    let mut node = fan("do", 2, only(work("w")));
    let Kind::Each(each) = &mut node.kind else { panic!("a fan") };
    (each.ready, each.order) = (Ready::Tasks, Ready::Tasks.order());
    let graph = only(node).reducer("list", Reducer::MergeById);
    let (mut machine, _) = start(graph, json!({"list": [{"id": "a"}, {"id": "b"}], "note": ""}));
    let ended = |status: &str| json!([{"id": "a", "status": status, "round": status}]);
    let first = StepResult::default().set("note", "mine").set("list", ended("blocked"));
    machine.apply(returned("do#1[a]/w#1", 1, first)).unwrap();
    let notes = [("do#1[a]/w#2", "mine"), ("do#1[b]/w#1", "")];
    for (step, note) in notes {
        assert_eq!(**machine.view(&StepId::new(step)).unwrap().get("note").unwrap(), json!(note));
    }
}

/// The list itself keeps the order in which items were added to it, by whose places they are
/// called.
#[test]
fn a_list_that_grows_keeps_its_order() {
    let graph = only(fan("f", 2, only(work("w")))).reducer("list", Reducer::Concat);
    let (mut machine, _) = start(graph, json!({"list": [1, 2]}));
    for (step, more) in [("f#1[1]/w#1", json!([4])), ("f#1[0]/w#1", json!([3]))] {
        machine.apply(crate::table::wrote(step, "list", more)).unwrap();
    }
    for step in ["f#1[2]/w#1", "f#1[3]/w#1"] {
        machine.apply(crate::table::done(step)).unwrap();
    }
    assert_eq!(checked(&machine)["list"], json!([1, 2, 4, 3]));
}

/// A graph from before there was a choice does not name the order, and keeps the one it had.
#[test]
fn a_graph_that_does_not_say_has_the_changes_in_the_order_of_the_ends() {
    let graph = only(fan("f", 2, only(work("w")))).reducer("log", Reducer::Concat);
    let mut before = serde_json::to_value(&graph).unwrap();
    let each = &mut before["nodes"][0]["kind"];
    assert_eq!(each.as_object_mut().unwrap().remove("order"), Some(json!("list")));
    let before: Graph = serde_json::from_value(before).unwrap();
    for (graph, expected) in [(graph, json!(["a", "b"])), (before, json!(["b", "a"]))] {
        let (mut machine, _) = start(graph, json!({"list": [1, 2], "log": []}));
        for (step, name) in [("f#1[1]/w#1", "b"), ("f#1[0]/w#1", "a")] {
            machine.apply(crate::table::wrote(step, "log", json!([name]))).unwrap();
        }
        assert_eq!(checked(&machine)["log"], expected);
    }
}
