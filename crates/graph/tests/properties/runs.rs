//! Properties of runs of random graphs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atomic_graph::{Effect, Input, Kind, Machine, Node, StepError, StepId, StepResult, code};
use serde_json::{Value, json};

use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::ledger::{node_of, stops};
use crate::run::Run;
use crate::scene::{Scene, Sort, Style};
use crate::seeds;
use crate::world::World;

/// How often a failed run is given another chance.
const REVIVALS: u32 = 3;

/// Whatever happens, in whatever order: the machine takes every input that is possible and
/// refuses every other; the same inputs give the same effects, also to a machine that was saved
/// and restored; the run ends; what was done is not done again; the books always balance.
#[test]
fn every_run_ends_and_keeps_what_it_promises() {
    let coverage = seeds::all(&seeds::seeds(1_700), wild_run);
    eprintln!("{}", coverage.show());
    eprintln!(
        "{} inputs, {} completed, {} failed",
        coverage.inputs, coverage.completed, coverage.failed
    );
    let empty = if seeds::is_single() { vec![] } else { coverage.empty() };
    assert_eq!(empty, [], "sorts of nodes that never met these fates");
}

fn wild_run(seed: u64) -> Coverage {
    let mut dice = Dice::new(seed);
    let depth = dice.below(4) as u32;
    let scene = Scene::random(&mut dice, Style { depth, ..Style::WILD });
    let world = World::random(&mut dice);
    let mut run = Run::start(&scene, world);
    let mut twin = Machine::start(Arc::clone(&run.program), run.state.clone()).0;
    loop {
        if dice.chance(3) {
            refuses_what_cannot_have_happened(&mut run, &mut dice);
        }
        let input = if !run.has_ended() {
            run.next(&mut dice, true)
        } else if matches!(run.machine.outcome(), Some(Err(_))) && run.ledger.revived < REVIVALS {
            if dice.chance(30) { run.change(&mut dice) } else { Input::Revived }
        } else {
            break;
        };
        let effects = run.feed(input.clone());
        assert_eq!(twin.apply(input.clone()).unwrap(), effects, "the twin after {input:?}");
        if dice.chance(4) {
            twin = restored(&run.machine, &twin);
        }
    }
    restored(&run.machine, &twin);
    nothing_of_a_loser_is_left(&run);
    nothing_of_a_failure_is_left(&run);
    outputs_are_in_order(&run);

    let length = dice.below(run.history.len() + 1);
    let mut again = run.cut(&scene, length);
    again.lose_everything(&mut dice);
    again.finish(&mut dice, true);
    nothing_of_a_loser_is_left(&again);
    nothing_of_a_failure_is_left(&again);

    let mut coverage = run.coverage;
    match run.machine.outcome() {
        Some(Ok(())) => coverage.completed += 1,
        Some(Err(_)) | None => coverage.failed += 1,
    }
    coverage.add(&again.coverage);
    coverage
}

/// Two machines that were fed the same are the same, and so is one that is made from either.
fn restored(machine: &Machine, twin: &Machine) -> Machine {
    let text = |machine: &Machine| machine.snapshot().unwrap().to_string();
    let saved = text(machine);
    assert!(saved == text(twin), "the twin is another machine");
    let read = serde_json::from_str(&saved).unwrap();
    let restored = Machine::restore(Arc::clone(machine.program()), read).unwrap();
    assert!(saved == text(&restored), "it was not restored as it was");
    restored
}

fn refuses_what_cannot_have_happened(run: &mut Run, dice: &mut Dice) {
    let before = run.machine.snapshot().unwrap();
    let inputs = impossible(run, dice);
    for input in &inputs {
        assert!(run.machine.apply(input.clone()).is_err(), "{input:?} was taken");
    }
    let same = run.machine.snapshot().unwrap() == before;
    assert!(same, "one of these left something behind: {inputs:?}");
}

/// Inputs that cannot have happened now.
fn impossible(run: &Run, dice: &mut Dice) -> Vec<Input> {
    let error = || StepError::new("broken", "it broke");
    let unknown = || StepId::new("nowhere#1");
    let mut inputs = vec![
        Input::Chosen { step: unknown(), chosen: None },
        Input::TimedOut { step: unknown() },
        Input::Patched { patch: [("n".into(), json!(1)), ("top".into(), json!("x"))].into() },
    ];
    if !matches!(run.machine.outcome(), Some(Err(_))) {
        inputs.push(Input::Revived);
    }
    let open: Vec<(&StepId, &Effect)> = run.open.iter().collect();
    let finished: Vec<&StepId> = run.ledger.finished.keys().collect();
    let mut subjects: Vec<(StepId, Option<&Effect>)> = vec![(unknown(), None)];
    if !open.is_empty() {
        let (step, effect) = dice.pick(&open);
        subjects.push((step.clone(), Some(effect)));
    }
    if !finished.is_empty() {
        let step = dice.pick(&finished);
        if !run.machine.awaits(step) {
            subjects.push((step.clone(), None));
        }
    }
    for (step, effect) in subjects {
        let attempt = run.ledger.running.get(&step).copied();
        let wrong = attempt.map_or(1, |attempt| attempt + 1);
        let result = StepResult::default();
        let s = || step.clone();
        inputs.push(Input::Finished { step: s(), attempt: wrong, result });
        inputs.push(Input::Failed { step: s(), attempt: wrong, error: error() });
        inputs.push(Input::Lost { step: s(), attempt: wrong, progressed: true });
        inputs.push(Input::Cancelled { step: s(), attempt: wrong });
        if matches!(effect, Some(Effect::Start(_))) {
            inputs.push(Input::Cancelled { step: s(), attempt: attempt.unwrap() });
        }
        if !matches!(effect, Some(Effect::Rest { .. })) {
            inputs.push(Input::Rested { step: s() });
        }
        if !matches!(effect, Some(Effect::AskLost { .. })) {
            inputs.push(Input::Settled { step: s(), again: dice.chance(50) });
        }
        if !matches!(effect, Some(Effect::Ask { .. })) {
            inputs.push(Input::Answered { step: s(), answer: Value::Null });
        }
        if !matches!(effect, Some(Effect::Choose { .. })) {
            inputs.push(Input::Chosen { step: s(), chosen: Some(0) });
        }
        if !matches!(effect, Some(Effect::Evaluate { .. })) {
            inputs.push(Input::Evaluated { step: s(), result: Ok(Value::Null) });
        }
        if !run.machine.limited().iter().any(|(limited, _)| *limited == step) {
            inputs.push(Input::TimedOut { step: s() });
        }
    }
    inputs
}

/// The steps whose changes are in the state at the end.
fn logged(run: &Run) -> Vec<StepId> {
    let Some(Ok(())) = run.machine.outcome() else { return vec![] };
    let state = run.machine.newest();
    let entries = ["log", "made"].map(|key| {
        let list = state.get(key).unwrap().as_array().unwrap().clone();
        let mut entries: Vec<String> = list
            .iter()
            .map(|e| e.as_str().unwrap().to_owned())
            .filter(|e| e.contains('@'))
            .collect();
        entries.sort();
        let count = entries.len();
        entries.dedup();
        assert_eq!(entries.len(), count, "`{key}` was changed twice by the same step: {entries:?}");
        entries
    });
    let names: BTreeSet<String> = entries.into_iter().flatten().collect();
    let by_name: BTreeMap<String, &StepId> =
        run.ledger.finished.keys().map(|step| (step.to_string(), step)).collect();
    names.iter().map(|name| by_name[name.rsplit_once('@').unwrap().0].clone()).collect()
}

/// No change of a race's loser, or of an attempt that failed as a whole, is in the state at the
/// end, and nothing is in it twice.
fn nothing_of_a_loser_is_left(run: &Run) {
    let mut ways: BTreeMap<(String, String), (String, Option<String>)> = BTreeMap::new();
    for step in logged(run) {
        for stop in stops(&step) {
            let place = (stop.scope.to_owned(), stop.visit.to_owned());
            let winners = [Sort::Race, Sort::Any].contains(&Sort::of(node_of(stop.visit)));
            let inside = stop.inside.filter(|_| winners).map(str::to_owned);
            let way = (stop.attempt.to_owned(), inside);
            let known = ways.entry(place).or_insert_with(|| way.clone());
            assert_eq!(*known, way, "both have changed the state at {step}");
        }
    }
}

/// A node that failed, and past which the graph went on, has changed nothing. Only the last visit
/// to a node can be told from its output, and only one that was entered.
fn nothing_of_a_failure_is_left(run: &Run) {
    let logged = logged(run);
    let state = run.machine.newest();
    // The output of a loop or a sub-graph may be the error of a node inside it.
    let is_told = |node: &&Node| matches!(node.kind, Kind::Each(_) | Kind::Parallel(_));
    for node in run.program.graph().nodes.iter().filter(is_told) {
        let error = state.output(node.id.as_str()).and_then(|output| output.get("error"));
        let Some(error) = error.map(ToString::to_string) else { continue };
        // Such a visit may have failed before anything of it was heard of.
        if [code::CEILING, "input schema"].iter().any(|unheard| error.contains(unheard)) {
            continue;
        }
        let visits = run
            .ledger
            .seen
            .iter()
            .filter(|(scope, visit)| scope.is_empty() && node_of(visit) == node.id.as_str());
        let number = |visit: &str| visit.rsplit_once('#').unwrap().1.parse::<u32>().unwrap();
        let last = visits.map(|(_, visit)| visit).max_by_key(|visit| number(visit));
        let Some(last) = last else { continue };
        let left = logged.iter().find(|step| stops(step)[0].visit == last);
        assert_eq!(left, None, "{last} failed with {error}");
    }
}

/// The output of a fan is in the order of its list.
fn outputs_are_in_order(run: &Run) {
    let Some(Ok(())) = run.machine.outcome() else { return };
    let state = run.machine.newest();
    for node in &run.program.graph().nodes {
        let Kind::Each(each) = &node.kind else { continue };
        let Some(outputs) = state.output(node.id.as_str()).and_then(|o| o.as_object()) else {
            continue;
        };
        let list = state.get(each.over.as_str()).unwrap();
        // Items of the same name are told apart by their place.
        let mut names: Vec<String> = vec![];
        for (place, item) in list.as_array().unwrap().iter().enumerate() {
            let mut name = item["id"].as_str().map_or(place.to_string(), str::to_owned);
            while names.contains(&name) {
                name = format!("{name}~{place}");
            }
            names.push(name);
        }
        // What came from outside while it ran may be elsewhere in the list around the fan.
        let from_outside = |key: &&String| key.starts_with('o');
        let order: Vec<usize> = outputs
            .keys()
            .filter(|key| !from_outside(key))
            .filter_map(|key| names.iter().position(|name| name == key))
            .collect();
        assert!(order.is_sorted(), "{:?} of {names:?}", outputs.keys());
        // And so may its name be: twice the same is told apart by the place.
        let first = |key: &String| key.split('~').next().unwrap_or_default().to_owned();
        let known = |key: &String| {
            names.contains(key)
                || key == "error"
                || (from_outside(&key) && names.contains(&first(key)))
        };
        assert!(outputs.keys().all(known), "{outputs:?} of {names:?}");
    }
}

/// Where nothing depends on what comes first, the order in which answers come changes neither
/// what is started nor the end.
#[test]
fn the_order_of_answers_does_not_matter() {
    seeds::all(&seeds::seeds(600), |seed| {
        let mut dice = Dice::new(seed);
        let fans = dice.chance(60);
        let style =
            Style { depth: dice.below(4) as u32, racing: false, limits: false, fans, rules: true };
        let scene = Scene::random(&mut dice, style);
        let world = World { growing: false, breaking: 0, ..World::random(&mut dice) };
        let ends = [(); 2].map(|()| {
            let mut run = Run::start(&scene, world);
            run.finish(&mut dice, false);
            end(&run, fans)
        });
        assert_eq!(ends[0], ends[1]);
        Coverage::default()
    });
}

/// What was started, how it ended, and with what.
pub(crate) type End = (Vec<String>, Option<Result<(), StepError>>, Value);

pub(crate) fn end(run: &Run, fans: bool) -> End {
    let starts =
        run.starts().iter().map(|s| format!("{}@{} {:?}", s.step, s.attempt, s.how)).collect();
    let mut outcome = run.machine.outcome().cloned();
    if let Some(Err(error)) = &mut outcome
        && [code::INPUT_SCHEMA, code::OUTPUT_SCHEMA].contains(&error.code.as_str())
    {
        // It shows a value, in the order in which it came about.
        error.message.clear();
    }
    if outcome.as_ref().is_some_and(Result::is_err) {
        return (starts, outcome, Value::Null);
    }
    let mut state = run.machine.newest().to_value();
    if fans {
        forget_order(&mut state);
    }
    (starts, outcome, state)
}

/// Items hand their changes up in the order in which they finish, so only what does not depend on
/// that is the same.
fn forget_order(value: &mut Value) {
    if let Value::Object(fields) = value {
        let ordered = ["maybe", "object", "rows", "odd"];
        fields.retain(|key, _| !ordered.contains(&key.as_str()) && !key.starts_with("last"));
        fields.values_mut().for_each(forget_order);
    }
    if let Value::Array(list) = value {
        list.iter_mut().for_each(forget_order);
        list.sort_by_key(ToString::to_string);
    }
}

/// In a run without failures every step changes the state, once.
#[test]
fn nothing_is_lost_where_nothing_fails() {
    seeds::all(&seeds::seeds(600), |seed| {
        let mut dice = Dice::new(seed);
        let style = Style {
            depth: dice.below(4) as u32,
            racing: false,
            limits: false,
            fans: true,
            rules: false,
        };
        let scene = Scene::random(&mut dice, style);
        let world = World { failing: 0, breaking: 0, ..World::random(&mut dice) };
        let mut run = Run::start(&scene, world);
        run.finish(&mut dice, false);
        if let Some(Err(error)) = run.machine.outcome() {
            let known = [
                code::CEILING,
                code::NO_ROUTE,
                code::JOIN,
                code::LOST,
                code::NO_SUCH_NODE,
                code::FAN,
            ];
            let replaced = error.message.contains("both replaced `last`");
            assert!(known.contains(&error.code.as_str()) || replaced, "{error:?}");
            return Coverage::default();
        }
        let logged: BTreeSet<StepId> = logged(&run).into_iter().collect();
        let keeps_to_itself = |step: &StepId| {
            stops(step).iter().any(|stop| Sort::of(node_of(stop.visit)) == Sort::Subgraph)
        };
        for (step, result) in &run.ledger.finished {
            let wrote = result.patch.contains_key("log");
            assert!(!wrote || keeps_to_itself(step) || logged.contains(step), "{step} is missing");
        }
        Coverage::default()
    });
}
