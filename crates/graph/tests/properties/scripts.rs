//! Scripts: what they call, what they are told, and that a run of one can be cut off anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atomic_graph::{
    Branch, Count, Effect, Evaluation, Graph, Input, Kind, Machine, Node, Program, Retry, Script,
    Start, StepError, StepId, StepResult,
};
use serde_json::{Value, json};

use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::seeds;
use crate::table::{evaluated, failed, gone, only, patch, play, returned, unevaluated, work};

fn script(max_calls: u64) -> Node {
    let body = |id: &str, graph| Branch { id: id.into(), graph };
    let inner = Graph::starting_at("x").node(work("x")).node(work("y")).edge("x", "y");
    let sub = Kind::Subgraph { graph: inner, isolated: true, input: None, output: None };
    let bodies = vec![
        body("agent", only(Node::launch("agent", Value::Null))),
        body("work", only(work("work"))),
        body("sub", only(Node::new("sub", sub))),
    ];
    let max_calls = Some(Count::Fixed(max_calls));
    Node::new("s", Kind::Script(Script { advance: "go".into(), bodies, max_calls }))
}

fn graph(node: Node) -> Graph {
    Graph::starting_at("s").node(node).node(work("end")).edge("s", "end")
}

fn call(key: &str) -> Value {
    json!({"key": key, "body": "work", "kind": "shell", "hash": "1", "call": {"n": key}})
}

fn calls(keys: &[&str]) -> Input {
    let calls: Vec<Value> = keys.iter().map(|key| call(key)).collect();
    evaluated("s#1", json!({"at": 7, "calls": calls}))
}

fn said(value: Value) -> Input {
    evaluated("s#1", value)
}

fn output(step: &str, attempt: u32, output: &str) -> Input {
    returned(step, attempt, StepResult::output(output))
}

const FIRST: &str = "evaluate go() for s#1";

fn keys(history: &[Evaluation]) -> Vec<String> {
    let told = |e: &Evaluation| e.delivery.as_ref().map_or("-".to_owned(), ToString::to_string);
    history.iter().map(|e| format!("{}>{}", told(e), e.calls.len())).collect()
}

#[test]
fn calls_are_made_and_what_they_return_is_told_one_at_a_time() {
    let table = vec![
        (calls(&["a", "b"]), "start s#1[a]/work#1; start s#1[b]/work#1"),
        (output("s#1[b]/work#1", 1, "B"), r#"evaluate go({"key":"b","value":"B"}) for s#1"#),
        // It waits until the one before it was heard.
        (output("s#1[a]/work#1", 1, "A"), ""),
        (calls(&["c"]), r#"evaluate go({"key":"a","value":"A"}) for s#1; start s#1[c]/work#1"#),
        (said(json!({})), ""),
        (output("s#1[c]/work#1", 1, "C"), r#"evaluate go({"key":"c","value":"C"}) for s#1"#),
        (said(json!({"done": {"output": "all", "patch": {"n": 3}}})), "start end#1"),
        (output("end#1", 1, ""), "finish"),
    ];
    let machine = play(graph(script(9)), json!({"n": 1}), FIRST, table);
    let state = machine.newest().to_value();
    assert_eq!((&state["n"], &state["outputs"]["s"]), (&json!(3), &json!("all")));
    assert_eq!(state.get("call"), None);
}

#[test]
fn a_body_sees_its_call_and_its_input_and_changes_nothing_around_it() {
    let node = graph(script(9));
    let (mut machine, _) = crate::table::start(node, json!({"n": 1}));
    let step = StepId::new("s#1");
    assert_eq!(keys(machine.script_history(&step).unwrap()), [""; 0]);
    let sub = json!({"key": "w/1", "body": "sub", "kind": "workflow", "hash": "h", "call": {"x": 1},
                     "input": {"n": 2}});
    machine.apply(said(json!({"at": 5, "calls": [sub]}))).unwrap();
    let inner = StepId::new("s#1[w%2F1]/sub#1/x#1");
    let view = machine.view(&inner).unwrap();
    assert_eq!(
        (view.get("n").unwrap().as_ref(), view.get("call").unwrap().as_ref()),
        (&json!(2), &json!({"x": 1}))
    );
    let result = StepResult::output("X").set("n", 9);
    machine.apply(Input::Finished { step: inner, attempt: 1, result }).unwrap();
    let effects = machine.apply(output("s#1[w%2F1]/sub#1/y#1", 1, "Y")).unwrap();
    let Effect::Evaluate { args, .. } = &effects[0] else { panic!("{effects:?}") };
    assert_eq!(*args[0], json!({"key": "w/1", "value": {"n": 9, "outputs": {"x": "X", "y": "Y"}}}));
    assert_eq!(machine.newest().to_value()["n"], 1);
    let history = machine.script_history(&step).unwrap();
    assert_eq!((history[0].at, history[0].calls[0].kind.as_str()), (5, "workflow"));
}

#[test]
fn a_failure_is_told_and_the_script_goes_on() {
    let table = vec![
        (calls(&["a"]), "start s#1[a]/work#1"),
        (
            failed("s#1[a]/work#1", 1),
            r#"evaluate go({"key":"a","error":{"code":"broken","message":"s#1[a]/work#1 broke"}}) for s#1"#,
        ),
        (said(json!({"done": {"output": 1}})), "start end#1"),
    ];
    play(graph(script(9)), json!({}), FIRST, table);
}

#[test]
fn what_is_cancelled_is_gone_before_it_is_told_and_what_still_runs_before_the_end() {
    let table = vec![
        (calls(&["a", "b", "c"]), "start s#1[a]/work#1; start s#1[b]/work#1; start s#1[c]/work#1"),
        (output("s#1[a]/work#1", 1, "A"), r#"evaluate go({"key":"a","value":"A"}) for s#1"#),
        (said(json!({"cancel": ["b", "a", "nobody"]})), "cancel s#1[b]/work#1"),
        (gone("s#1[b]/work#1"), r#"evaluate go({"key":"b","cancelled":true}) for s#1"#),
        (said(json!({"done": {"output": 1}})), "cancel s#1[c]/work#1"),
        (gone("s#1[c]/work#1"), "start end#1"),
    ];
    play(graph(script(9)), json!({}), FIRST, table);
}

#[test]
fn what_a_script_may_not_say_fails_it() {
    let table = [
        (
            json!({}),
            "fail: the script waits for something that never comes: nothing that it called is under way",
        ),
        (
            json!({"calls": [{"key": "a", "body": "none"}]}),
            "fail: the script called `none`, which there is not",
        ),
        (
            json!({"calls": [call("a"), call("a")]}),
            "fail: the script made two calls with the key `a`",
        ),
        (
            json!({"calls": [call("a"), call("b"), call("c")]}),
            "fail: the script `s` has used all of its 2 calls",
        ),
        (json!({"failed": {"code": "mine", "message": "no"}}), "fail: no"),
        (
            json!({"calls": 1}),
            "fail: the script said something that cannot be understood: invalid type: integer `1`, expected a sequence",
        ),
        (
            json!({"done": {"patch": {"n": "x"}}}),
            "fail: node `s`, key `n`: a number cannot be added to a text",
        ),
    ];
    for (value, expected) in table {
        let graph = graph(script(2)).reducer("n", atomic_graph::Reducer::Sum);
        let (mut machine, _) = crate::table::start(graph, json!({"n": 1}));
        let shown = crate::table::show(&machine.apply(said(value)).unwrap());
        if expected.contains("key `n`") {
            assert!(shown.starts_with("fail: node `s`, key `n`"), "{shown}");
        } else {
            assert_eq!(shown, expected);
        }
    }
}

#[test]
fn a_script_out_of_time_is_stopped_and_another_attempt_begins_anew() {
    let retry = Retry { attempts: 2, ..Retry::default() };
    let node = script(9).timeout_ms(50).retry(retry);
    let first = "limit s#1 to 50 ms; evaluate go() for s#1";
    let table = vec![
        (calls(&["a"]), "start s#1[a]/work#1"),
        (Input::TimedOut { step: StepId::new("s#1") }, "cancel s#1[a]/work#1"),
        (gone("s#1[a]/work#1"), first),
        (calls(&["a"]), "start s#1!2[a]/work#1"),
        (output("s#1!2[a]/work#1", 1, "A"), r#"evaluate go({"key":"a","value":"A"}) for s#1"#),
        (said(json!({"done": {}})), "start end#1"),
    ];
    play(graph(node), json!({}), first, table);
}

/// Another chance: the failed call is tried again, what has finished since is told again, and what
/// was only called because of the failure is dropped; called again, it has another name.
#[test]
fn a_revived_script_goes_back_to_the_failure_that_ended_it() {
    let told_a = r#"evaluate go({"key":"a","value":"A"}) for s#1"#;
    let told_b = r#"evaluate go({"key":"b","error":{"code":"broken","message":"s#1[b]/work#1 broke"}}) for s#1"#;
    let table = vec![
        (calls(&["a", "b"]), "start s#1[a]/work#1; start s#1[b]/work#1"),
        (failed("s#1[b]/work#1", 1), told_b),
        (calls(&["c"]), "start s#1[c]/work#1"),
        (output("s#1[a]/work#1", 1, "A"), told_a),
        (said(json!({})), ""),
        (output("s#1[c]/work#1", 1, "C"), r#"evaluate go({"key":"c","value":"C"}) for s#1"#),
        (said(json!({"failed": {"code": "mine", "message": "no"}, "cause": ["b"]})), "fail: no"),
        (Input::Revived, told_a),
        (calls(&["c"]), "start s#1[c]/work#2; start s#1[b]/work#1 again (Revived, 2)"),
        (output("s#1[b]/work#1", 2, "B"), r#"evaluate go({"key":"b","value":"B"}) for s#1"#),
        (said(json!({"done": {}})), "cancel s#1[c]/work#2"),
        (Input::Cancelled { step: StepId::new("s#1[c]/work#2"), attempt: 1 }, "start end#1"),
    ];
    play(graph(script(9)), json!({}), FIRST, table);
}

/// What was called beside a failure, after it but not because of it, is not called again: it has
/// returned.
#[test]
fn what_was_called_beside_the_failure_has_returned() {
    let told_b = r#"evaluate go({"key":"b","value":"B"}) for s#1"#;
    let told_c = r#"evaluate go({"key":"c","value":"C"}) for s#1"#;
    let other = json!({"key": "d", "body": "work", "kind": "shell", "hash": "2"});
    let failing = json!({"failed": {"code": "mine", "message": "no"}, "cause": ["a"]});
    let mut table = vec![
        (calls(&["a", "b"]), "start s#1[a]/work#1; start s#1[b]/work#1"),
        (
            failed("s#1[a]/work#1", 1),
            r#"evaluate go({"key":"a","error":{"code":"broken","message":"s#1[a]/work#1 broke"}}) for s#1"#,
        ),
        (said(json!({})), ""),
        (output("s#1[b]/work#1", 1, "B"), told_b),
        (calls(&["c", "d"]), "start s#1[c]/work#1; start s#1[d]/work#1"),
        (output("s#1[c]/work#1", 1, "C"), told_c),
        (said(json!({})), ""),
        (output("s#1[d]/work#1", 1, "D"), r#"evaluate go({"key":"d","value":"D"}) for s#1"#),
        (said(failing), "fail: no"),
        (Input::Revived, told_b),
    ];
    table.extend([
        // One of them is another call now.
        (
            said(json!({"calls": [call("c"), other]})),
            r#"evaluate go({"key":"c","value":"C"}) for s#1; start s#1[d]/work#2; start s#1[a]/work#1 again (Revived, 2)"#,
        ),
        (said(json!({"done": {}})), "cancel s#1[a]/work#1; cancel s#1[d]/work#2"),
    ]);
    play(graph(script(9)), json!({}), FIRST, table);
}

#[test]
fn a_script_that_failed_by_itself_is_asked_again_what_it_said_last() {
    let told = r#"evaluate go({"key":"a","value":"A"}) for s#1"#;
    for fails in [
        said(json!({"failed": {"code": "mine", "message": "no"}})),
        said(json!({})),
        unevaluated("s#1"),
    ] {
        let (mut machine, _) = crate::table::start(graph(script(9)), json!({}));
        let mut apply = |input| crate::table::show(&machine.apply(input).unwrap());
        apply(calls(&["a"]));
        assert_eq!(apply(output("s#1[a]/work#1", 1, "A")), told);
        assert!(apply(fails).starts_with("fail: "));
        assert_eq!(apply(Input::Revived), told);
        assert_eq!(apply(said(json!({"done": {}}))), "start end#1");
    }
}

/// A failure that was dealt with is no reason to do again what came after it.
#[test]
fn a_failure_that_was_caught_stays_caught() {
    let told_a = r#"evaluate go({"key":"a","error":{"code":"broken","message":"s#1[a]/work#1 broke"}}) for s#1"#;
    let told_c = r#"evaluate go({"key":"c","value":"C"}) for s#1"#;
    for fails in [
        said(json!({"failed": {"code": "mine", "message": "no"}})),
        said(json!({"failed": {"code": "mine", "message": "no"}, "cause": ["b", "nobody"]})),
        said(json!({})),
        unevaluated("s#1"),
    ] {
        let (mut machine, _) = crate::table::start(graph(script(9)), json!({}));
        let mut apply = |input| crate::table::show(&machine.apply(input).unwrap());
        apply(calls(&["a"]));
        assert_eq!(apply(failed("s#1[a]/work#1", 1)), told_a);
        assert_eq!(apply(calls(&["b"])), "start s#1[b]/work#1");
        apply(output("s#1[b]/work#1", 1, "B"));
        assert_eq!(apply(calls(&["c"])), "start s#1[c]/work#1");
        assert_eq!(apply(output("s#1[c]/work#1", 1, "C")), told_c);
        assert!(apply(fails).starts_with("fail: "));
        assert_eq!(apply(Input::Revived), told_c);
        assert_eq!(apply(said(json!({"done": {}}))), "start end#1");
    }
}

/// Where a script that ended for a reason of its own has first stopped what it had called, that is
/// where it is asked again: what it stopped may be wanted now.
#[test]
fn a_script_that_stopped_its_calls_because_it_failed_is_asked_before_that() {
    let told_a = r#"evaluate go({"key":"a","value":"A"}) for s#1"#;
    let table = vec![
        (calls(&["a", "b"]), "start s#1[a]/work#1; start s#1[b]/work#1"),
        (output("s#1[a]/work#1", 1, "A"), told_a),
        (said(json!({"cancel": ["b"]})), "cancel s#1[b]/work#1"),
        (gone("s#1[b]/work#1"), r#"evaluate go({"key":"b","cancelled":true}) for s#1"#),
        (said(json!({"failed": {"code": "mine", "message": "no"}})), "fail: no"),
        (Input::Revived, told_a),
        (said(json!({})), "start s#1[b]/work#1 again (Revived, 2)"),
        (output("s#1[b]/work#1", 2, "B"), r#"evaluate go({"key":"b","value":"B"}) for s#1"#),
        (said(json!({"done": {}})), "start end#1"),
    ];
    play(graph(script(9)), json!({}), FIRST, table);
    // Not where something was called in between: it would be called twice.
    let told_b = r#"evaluate go({"key":"b","cancelled":true}) for s#1"#;
    let table = vec![
        (calls(&["a", "b"]), "start s#1[a]/work#1; start s#1[b]/work#1"),
        (output("s#1[a]/work#1", 1, "A"), told_a),
        (
            said(json!({"cancel": ["b"], "calls": [call("c")]})),
            "cancel s#1[b]/work#1; start s#1[c]/work#1",
        ),
        (output("s#1[c]/work#1", 1, "C"), r#"evaluate go({"key":"c","value":"C"}) for s#1"#),
        (said(json!({})), ""),
        (gone("s#1[b]/work#1"), told_b),
        (said(json!({"failed": {"code": "mine", "message": "no"}})), "fail: no"),
        (Input::Revived, told_b),
        (said(json!({"done": {}})), "start end#1"),
    ];
    play(graph(script(9)), json!({}), FIRST, table);
}

/// A program of a script, as a tree.
#[derive(Clone, Debug)]
enum Plan {
    Call(String, &'static str),
    Row(Vec<Self>),
    All(Vec<Self>),
    Race(Vec<Self>),
    Try(Box<Self>),
}

/// What a plan has come to.
enum Came {
    Open,
    To(Value),
    Failed(String),
}

impl Plan {
    fn random(dice: &mut Dice, depth: u32, racing: bool, number: &mut u32) -> Self {
        let several = |dice: &mut Dice, number: &mut u32| -> Vec<Self> {
            (0..dice.below(3) + 1).map(|_| Self::random(dice, depth - 1, racing, number)).collect()
        };
        match if depth == 0 { 0 } else { dice.below(if racing { 6 } else { 5 }) } {
            1 => Self::Row(several(dice, number)),
            2 | 3 => Self::All(several(dice, number)),
            4 => Self::Try(Box::new(Self::random(dice, depth - 1, racing, number))),
            5 => Self::Race(several(dice, number)),
            _ => {
                *number += 1;
                Self::Call(format!("c/{number}"), dice.pick(&["agent", "work", "sub"]))
            }
        }
    }

    /// Runs it as far as it goes with what is known; `wanted` are the calls that are waited for.
    fn run(&self, told: &[&Value], wanted: &mut BTreeMap<String, &'static str>) -> Came {
        match self {
            Self::Call(key, body) => match told.iter().find(|told| told["key"] == **key) {
                Some(told) if told.get("value").is_some() => Came::To(json!([key])),
                Some(_) => Came::Failed(key.clone()),
                None => {
                    wanted.insert(key.clone(), body);
                    Came::Open
                }
            },
            Self::Row(plans) => {
                let mut all = vec![];
                for plan in plans {
                    match plan.run(told, wanted) {
                        Came::To(value) => all.push(value),
                        other @ (Came::Open | Came::Failed(_)) => return other,
                    }
                }
                Came::To(json!(all))
            }
            Self::All(plans) => {
                let came: Vec<Came> = plans.iter().map(|plan| plan.run(told, wanted)).collect();
                if came.iter().any(|came| matches!(came, Came::Open)) {
                    return Came::Open;
                }
                let mut all = vec![];
                for came in came {
                    match came {
                        Came::To(value) => all.push(value),
                        other @ (Came::Open | Came::Failed(_)) => return other,
                    }
                }
                Came::To(json!(all))
            }
            Self::Race(plans) => {
                // Whoever was over after the fewest deliveries.
                for known in 0..=told.len() {
                    for plan in plans {
                        match plan.run(&told[..known], &mut BTreeMap::new()) {
                            Came::Open => {}
                            over @ (Came::To(_) | Came::Failed(_)) => return over,
                        }
                    }
                }
                plans.iter().for_each(|plan| drop(plan.run(told, wanted)));
                Came::Open
            }
            Self::Try(plan) => match plan.run(told, wanted) {
                Came::Failed(_) => Came::To(json!("caught")),
                other @ (Came::Open | Came::To(_)) => other,
            },
        }
    }
}

/// What the script says, from nothing but its history: a live one could be lost at any time.
fn advance(plan: &Plan, history: &[Evaluation], delivery: Option<&Value>, at: i64) -> Value {
    let mut told: Vec<&Value> = vec![];
    let mut called: BTreeSet<String> = BTreeSet::new();
    let mut stopped: BTreeSet<String> = BTreeSet::new();
    let steps = history.iter().map(|evaluation| (evaluation.delivery.as_deref(), Some(evaluation)));
    for (number, (delivery, recorded)) in steps.chain([(delivery, None)]).enumerate() {
        told.extend(delivery);
        let mut wanted = BTreeMap::new();
        let came = plan.run(&told, &mut wanted);
        let new: Vec<(&String, &&str)> =
            wanted.iter().filter(|(key, _)| !called.contains(*key)).collect();
        let over = |key: &&String| told.iter().any(|told| told["key"] == ***key);
        let cancel: Vec<String> = called
            .iter()
            .filter(|key| !wanted.contains_key(*key) && !over(key) && !stopped.contains(*key))
            .cloned()
            .collect();
        let calls: Vec<Value> = new
            .iter()
            .map(|(key, body)| json!({"key": key, "body": body, "kind": body, "hash": format!("h{key}")}))
            .collect();
        let keys: Vec<String> = new.iter().map(|(key, _)| (*key).clone()).collect();
        let value = match came {
            Came::To(output) => json!({"at": at, "done": {"output": output}}),
            Came::Failed(key) => {
                json!({"at": at, "failed": {"code": "script", "message": key}, "cause": [key]})
            }
            Came::Open => json!({"at": at, "calls": calls, "cancel": cancel}),
        };
        let Some(recorded) = recorded else { return value };
        let again: Vec<&String> = recorded.calls.iter().map(|call| &call.key).collect();
        assert_eq!(again, keys.iter().collect::<Vec<_>>(), "evaluation {number} is another one");
        assert_eq!(recorded.cancel, cancel, "evaluation {number} stops others");
        called.extend(keys);
        stopped.extend(cancel);
    }
    panic!("the last one is not recorded")
}

/// A run of a script, with everything that was to be done and what came of it.
struct Run {
    machine: Machine,
    open: BTreeMap<StepId, Effect>,
    journal: Vec<(Input, Vec<Effect>)>,
    first: Vec<Effect>,
    finished: BTreeSet<StepId>,
    /// Calls that had returned, and not because of the failure that ended the script.
    settled: BTreeSet<String>,
    failing: u64,
    salt: u64,
    /// Nothing fails from now on.
    healed: bool,
}

impl Run {
    fn start(program: &Arc<Program>, salt: u64, failing: u64) -> Self {
        let (machine, first) = Machine::start(Arc::clone(program), patch(json!({"n": 0})));
        let mut run = Self {
            machine,
            open: BTreeMap::new(),
            journal: vec![],
            first: first.clone(),
            finished: BTreeSet::new(),
            settled: BTreeSet::new(),
            failing,
            salt,
            healed: false,
        };
        run.take(&first);
        run
    }

    fn take(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Start(start) = effect {
                assert!(!self.finished.contains(&start.step), "{} is run twice", start.step);
                let again = self.settled.iter().find(|call| start.step.as_str().starts_with(*call));
                assert_eq!(again, None, "{} was called before", start.step);
            }
            if let Effect::Start(Start { step, .. })
            | Effect::Evaluate { step, .. }
            | Effect::Cancel { step, .. } = effect
            {
                self.open.insert(step.clone(), effect.clone());
            }
        }
        let machine = &self.machine;
        self.open.retain(|step, _| machine.awaits(step));
    }

    fn feed(&mut self, input: Input) {
        if let Input::Finished { step, .. } = &input {
            self.finished.insert(step.clone());
        }
        let effects = self.machine.apply(input.clone()).unwrap();
        if let Input::Finished { step, .. }
        | Input::Failed { step, .. }
        | Input::Cancelled { step, .. }
        | Input::Evaluated { step, .. } = &input
        {
            self.open.remove(step);
        }
        self.take(&effects);
        self.journal.push((input, effects));
    }

    fn answer(&self, plan: &Plan, step: &StepId) -> Input {
        match &self.open[step] {
            Effect::Start(Start { step, attempt, .. }) => {
                let fails = Dice::of(self.salt, &[step.as_str()]).chance(self.failing);
                if fails && !self.healed && !step.as_str().starts_with("end") {
                    return failed(step.as_str(), *attempt);
                }
                output(step.as_str(), *attempt, step.as_str())
            }
            Effect::Cancel { step, attempt } => {
                Input::Cancelled { step: step.clone(), attempt: *attempt }
            }
            Effect::Evaluate { step, args, .. } => {
                let history = self.machine.script_history(step).unwrap();
                let at = history.len() as i64;
                let value = advance(plan, history, args.first().map(AsRef::as_ref), at);
                Input::Evaluated { step: step.clone(), result: Ok(value) }
            }
            other @ (Effect::Choose { .. }
            | Effect::Limit { .. }
            | Effect::Rest { .. }
            | Effect::Ask { .. }
            | Effect::AskLost { .. }
            | Effect::Finish(_)) => panic!("{other:?} is not expected"),
        }
    }

    fn finish(&mut self, plan: &Plan, dice: &mut Dice) {
        while self.machine.outcome().is_none() {
            let steps: Vec<&StepId> = self.open.keys().collect();
            assert!(!steps.is_empty(), "nothing is to be done, and it has not ended");
            let step = dice.pick(&steps).clone();
            let input = self.answer(plan, &step);
            self.settle(&input);
            self.feed(input);
        }
    }

    /// Remembers what must not be called again if this is the end of the script.
    fn settle(&mut self, input: &Input) {
        let Input::Evaluated { step, result: Ok(value) } = input else { return };
        let Some(cause) = value["cause"][0].as_str() else { return };
        let mut because = BTreeSet::from([cause]);
        let mut returned = vec![];
        for evaluation in self.machine.script_history(step).unwrap() {
            let Some(told) = evaluation.delivery.as_deref() else { continue };
            let key = told["key"].as_str().unwrap();
            if because.contains(key) {
                because.extend(evaluation.calls.iter().map(|call| call.key.as_str()));
            } else if told.get("value").is_some() {
                returned.push(key);
            }
        }
        let call = |key: &str| format!("s#1[{}]/", key.replace('/', "%2F"));
        self.settled = returned.into_iter().map(call).collect();
    }

    /// How it ended.
    fn end(&self) -> (Option<Result<(), StepError>>, Value) {
        (self.machine.outcome().cloned(), self.machine.newest().to_value()["outputs"]["s"].clone())
    }
}

fn with_plan(seed: u64, racing: bool) -> (Arc<Program>, Plan, Dice) {
    let mut dice = Dice::new(seed);
    let depth = dice.below(4) as u32;
    let plan = Plan::random(&mut dice, depth, racing, &mut 0);
    (Program::compile(graph(script(1000))).unwrap(), plan, dice)
}

/// Cut after every input, from the journal and from a snapshot, and carried on with the rest of it,
/// a run does and says exactly the same.
#[test]
fn a_script_that_is_cut_off_anywhere_does_the_same_again() {
    seeds::all(&seeds::seeds(150), |seed| {
        let (program, plan, mut dice) = with_plan(seed, true);
        let failing = dice.pick(&[0, 20, 50]);
        let mut whole = Run::start(&program, dice.next(), failing);
        whole.finish(&plan, &mut dice);
        let mut again = Run::start(&program, whole.salt, failing);
        assert_eq!(again.first, whole.first);
        for (number, (input, effects)) in whole.journal.iter().enumerate() {
            let saved = again.machine.snapshot().unwrap();
            let mut restored = Machine::restore(Arc::clone(&program), saved).unwrap();
            for (input, effects) in &whole.journal[number..] {
                assert_eq!(
                    restored.apply(input.clone()).unwrap(),
                    *effects,
                    "restored at {number}"
                );
            }
            assert_eq!(restored.outcome(), whole.machine.outcome());
            again.feed(input.clone());
            assert_eq!(again.journal[number].1, *effects);
        }
        assert_eq!(again.end(), whole.end());
        Coverage::default()
    });
}

/// Where nothing races, the order of finishing makes no difference, also not when everything that
/// was under way was lost in between.
#[test]
fn the_order_in_which_calls_end_makes_no_difference() {
    seeds::all(&seeds::seeds(150), |seed| {
        let (program, plan, mut dice) = with_plan(seed, false);
        let (salt, failing) = (dice.next(), dice.pick(&[0, 20, 50]));
        let mut first = Run::start(&program, salt, failing);
        first.finish(&plan, &mut dice);
        for _ in 0..3 {
            let mut other = Run::start(&program, salt, failing);
            for _ in 0..dice.below(first.journal.len()) {
                let steps: Vec<StepId> = other.open.keys().cloned().collect();
                if steps.is_empty() {
                    break;
                }
                let input = other.answer(&plan, &dice.pick(&steps));
                other.feed(input);
            }
            for (step, attempt) in other.machine.running() {
                other.feed(Input::Lost { step, attempt, progressed: true });
            }
            other.finish(&plan, &mut dice);
            assert_eq!(other.end().1, first.end().1);
        }
        Coverage::default()
    });
}

/// A failed script that is given other chances completes once nothing fails any more, and nothing
/// that finished is run twice.
#[test]
fn a_failed_script_completes_when_it_is_revived() {
    let mut revived = 0;
    for seed in seeds::seeds(300) {
        let (program, plan, mut dice) = with_plan(seed, true);
        let mut run = Run::start(&program, dice.next(), 40);
        run.finish(&plan, &mut dice);
        let mut chances = 0;
        while run.machine.outcome().is_some_and(Result::is_err) {
            run.healed = dice.chance(70);
            run.feed(Input::Revived);
            run.finish(&plan, &mut dice);
            (chances, revived) = (chances + 1, revived + 1);
            assert!(chances < 100, "seed {seed} never gets anywhere");
        }
    }
    assert!(revived > 50, "{revived} were revived");
}

/// Another version of the graph, in which everything has another number.
#[test]
fn a_script_goes_on_in_another_version_of_its_graph() {
    let (mut machine, _) = crate::table::start(graph(script(9)), json!({"n": 1}));
    machine.apply(calls(&["a", "b"])).unwrap();
    machine.apply(output("s#1[a]/work#1", 1, "A")).unwrap();
    let mut node = script(9);
    if let Kind::Script(script) = &mut node.kind {
        script.bodies.reverse();
        script.advance = "other".into();
    }
    let other = Graph::starting_at("s").node(work("new")).node(work("end")).node(node);
    let other = other.edge("s", "new").edge("new", "end");
    let program = Program::compile(other).unwrap();
    let asked = Effect::Evaluate { step: StepId::new("s#1"), call: "go".into(), args: vec![] };
    machine.upgrade(Arc::clone(&program), &patch(json!({"n": 2}))).unwrap();
    let Effect::Evaluate { call, .. } = machine.renewed(asked) else { panic!() };
    assert_eq!(call.as_str(), "other");
    let saved = machine.snapshot().unwrap();
    let mut machine = Machine::restore(program, saved).unwrap();
    let mut apply = |input| crate::table::show(&machine.apply(input).unwrap());
    assert_eq!(apply(said(json!({}))), "");
    let told = r#"evaluate other({"key":"b","value":"B"}) for s#1"#;
    assert_eq!(apply(output("s#1[b]/work#1", 1, "B")), told);
    assert_eq!(apply(said(json!({"done": {}}))), "start new#1");
    assert_eq!(apply(output("new#1", 1, "")), "start end#1");
    assert_eq!(machine.newest().to_value()["n"], 2);

    // A call that is under way needs its body.
    let (mut machine, _) = crate::table::start(graph(script(9)), json!({}));
    machine.apply(calls(&["a"])).unwrap();
    let mut node = script(9);
    if let Kind::Script(script) = &mut node.kind {
        script.bodies.remove(1);
    }
    let program = Program::compile(graph(node)).unwrap();
    assert_eq!(machine.upgrade(program, &patch(json!({}))), Err(vec!["s[work]/work".to_owned()]));
}
