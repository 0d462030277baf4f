//! The launch certificate against real runs: none ever costs more, and on the golden graphs one
//! costs exactly as much.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use atomic_graph::certificate::{Bound, certify};
use atomic_graph::{
    Condition, Effect, Goto, Graph, Input, Key, Kind, Machine, Patch, Program, State, StepError,
    StepId, StepResult,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::ledger::about;
use crate::run::Run;
use crate::scene::{Scene, Style};
use crate::seeds;
use crate::world::World;

#[test]
fn no_run_launches_more_than_its_certificate_says() {
    let bounded = AtomicU32::new(0);
    seeds::all(&seeds::seeds(600), |seed| {
        let mut dice = Dice::new(seed);
        let style = Style { depth: dice.below(4) as u32, ..Style::WILD };
        let scene = Scene::random(&mut dice, style);
        // Failures make runs longer as long as they are not all of it.
        let failing = dice.pick(&[10, 30, 60]);
        let world = World { growing: false, failing, ..World::random(&mut dice) };
        let mut run = Run::start(&scene, world);
        run.finish(&mut dice, true);
        let certificate = certify(&scene.graph, &State::new(scene.state.clone()));
        if certificate.rests_on.is_disjoint(&changed(&run)) {
            let counts = certificate.launches < Bound::Unbounded && run.ledger.launches > 0;
            bounded.fetch_add(u32::from(counts), Ordering::Relaxed);
            let launches = Bound::AtMost(run.ledger.launches - run.ledger.relaunches);
            assert!(launches <= certificate.launches, "{launches}, but {certificate}");
            let at_once = Bound::AtMost(run.ledger.most_at_once);
            assert!(at_once <= certificate.at_once, "{at_once}, but {certificate}");
        }
        Coverage::default()
    });
    let bounded = bounded.into_inner();
    assert!(bounded > 100 || seeds::is_single(), "only {bounded} runs had a limit to keep");
}

/// The keys that the run has changed.
fn changed(run: &Run) -> BTreeSet<Key> {
    let keys = run.history.iter().flat_map(|(input, _)| {
        if let Input::Finished { result: StepResult { patch, .. }, .. } | Input::Patched { patch } =
            input
        {
            return patch.keys().cloned().collect();
        }
        if let Input::Evaluated { result: Ok(Value::Object(fields)), .. } = input {
            return fields.keys().map(|key| Key::from(key.as_str())).collect();
        }
        vec![]
    });
    keys.collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Golden {
    graph: Graph,
    state: Patch,
    launches: u64,
    at_once: u64,
}

/// How often the adversary begins anew, and how many runs it then tries.
const CLIMBS: u32 = 10;
const STEPS: u32 = 400;

#[test]
fn an_adversary_reaches_the_certificates_of_the_golden_graphs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden-graphs");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        let golden: Golden =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let launches = worst(&golden, golden.launches, |played| played.launches);
        assert_eq!(launches, golden.launches, "launches of {}", file.display());
        let at_once = worst(&golden, golden.at_once, |played| played.at_once);
        assert_eq!(at_once, golden.at_once, "at once of {}", file.display());
    }
}

/// What a run has cost.
struct Played {
    launches: u64,
    at_once: u64,
    /// What could have gone otherwise, and in how many ways.
    forks: BTreeMap<String, usize>,
}

/// Climbs to the dearest run there is: changes one thing, and keeps it unless the run gets
/// cheaper. It stops at `goal`, and one step beyond is a failure of the certificate.
fn worst(golden: &Golden, goal: u64, cost: impl Fn(&Played) -> u64) -> u64 {
    let program = Program::compile(golden.graph.clone()).unwrap();
    let mut dice = Dice::new(1);
    let mut most = 0;
    // A climb may end on a lower top: then begin another.
    for _ in 0..CLIMBS {
        let mut best: (u64, BTreeMap<String, usize>) = (0, BTreeMap::new());
        let mut forks = BTreeMap::new();
        for _ in 0..STEPS {
            let mut ways = best.1.clone();
            for _ in 0..(1 + dice.below(3)).min(forks.len()) {
                let places: Vec<(&String, &usize)> = forks.iter().collect();
                let (place, options) = dice.pick(&places);
                ways.insert(place.clone(), dice.below(*options));
            }
            let played = play(&program, &golden.state, &ways);
            let cost = cost(&played);
            assert!(cost <= goal, "{cost} is more than {goal}, by {ways:?}");
            most = most.max(cost);
            if most == goal {
                return most;
            }
            if cost >= best.0 {
                best = (cost, ways);
                forks = played.forks;
            }
        }
    }
    most
}

/// Runs once, the way that `ways` say, and where they say nothing, as dearly as one can guess.
fn play(program: &Arc<Program>, state: &Patch, ways: &BTreeMap<String, usize>) -> Played {
    let (mut machine, effects) = Machine::start(Arc::clone(program), state.clone());
    let mut open: BTreeMap<StepId, Effect> = BTreeMap::new();
    let mut played = Played { launches: 0, at_once: 0, forks: BTreeMap::new() };
    let mut asked: BTreeMap<StepId, u32> = BTreeMap::new();
    let mut effects = effects;
    for _ in 0..300 {
        for effect in effects {
            let limit = matches!(effect, Effect::Limit { .. });
            if let Some(step) = about(&effect).filter(|_| !limit) {
                open.insert(step.clone(), effect);
            }
        }
        open.retain(|step, _| machine.awaits(step));
        let launched = |step: &StepId| {
            matches!(machine.node(step).map(|n| &n.kind), Some(Kind::Work { launch: true, .. }))
        };
        let running = machine.running();
        let at_once = running.iter().filter(|(step, _)| launched(step)).count() as u64;
        played.at_once = played.at_once.max(at_once);
        played.launches = machine.launches();
        // What costs is kept running until nothing else can be done. Of two that race, the one
        // that has more attempts left goes on first.
        let rank = |step: &&StepId| {
            let attempts = machine.node(step).map_or(0, |node| node.retry.attempts);
            let attempt = running.iter().find(|(other, _)| other == *step).map_or(0, |(_, n)| *n);
            (launched(step), attempts <= attempt)
        };
        let Some(step) = open.keys().min_by_key(rank).cloned() else { break };
        let effect = open.remove(&step).unwrap();
        let count = asked.entry(step.clone()).or_default();
        *count += 1;
        let mut fork = |options: usize, usual: usize| {
            let place = format!("{step} {count}");
            let way = ways.get(&place).copied().unwrap_or(usual);
            played.forks.insert(place, options);
            way.min(options - 1)
        };
        let input = carry_out(&machine, &effect, &mut fork);
        effects = machine.apply(input).unwrap();
    }
    played
}

/// Every way something can go has a number; `fork` picks one of so many, usually the second.
fn carry_out(
    machine: &Machine,
    effect: &Effect,
    fork: &mut dyn FnMut(usize, usize) -> usize,
) -> Input {
    match effect {
        Effect::Start(start) => {
            let (step, attempt) = (start.step.clone(), start.attempt);
            let node = machine.node(&step).unwrap();
            let retries = attempt < node.retry.attempts;
            let mut ways = vec![Some(StepResult::default()), None];
            for target in &node.targets {
                ways.push(Some(StepResult::default().goto(target.clone())));
            }
            if node.targets.len() > 1 {
                let goto = Some(Goto::Many(node.targets.clone()));
                ways.push(Some(StepResult { goto, ..StepResult::default() }));
            }
            // A task that stays pending runs again once its row is another.
            if let Some(item) = step.item().filter(|item| item.starts_with('#')) {
                let row = json!([{"id": item, "n": step.as_str()}]);
                ways.push(Some(StepResult::default().set("tasks", row)));
                let row = json!([{"id": item, "status": "completed"}]);
                ways.push(Some(StepResult::default().set("tasks", row)));
            }
            match ways.swap_remove(fork(ways.len(), usize::from(retries))) {
                Some(result) => Input::Finished { step, attempt, result },
                None => {
                    let error = StepError::new("broken", "it broke");
                    Input::Failed { step, attempt, error }
                }
            }
        }
        Effect::Cancel { step, attempt } => {
            Input::Cancelled { step: step.clone(), attempt: *attempt }
        }
        Effect::Choose { step, options, .. } => {
            // One more than there are: none of them holds.
            let otherwise = options.last() == Some(&Condition::Otherwise);
            let way = fork(options.len() + usize::from(!otherwise), 0);
            let chosen = (way < options.len()).then_some(way as u32);
            Input::Chosen { step: step.clone(), chosen }
        }
        Effect::Evaluate { step, .. } => {
            let values = [json!("retry"), json!(true), json!("skip"), json!("abort")];
            let value = values[fork(values.len(), 0)].clone();
            Input::Evaluated { step: step.clone(), result: Ok(value) }
        }
        Effect::Rest { step, .. } => Input::Rested { step: step.clone() },
        Effect::Ask { step, .. } => Input::Answered { step: step.clone(), answer: Value::Null },
        Effect::AskLost { step, .. } => Input::Settled { step: step.clone(), again: true },
        Effect::Limit { .. } | Effect::Finish(_) => panic!("{effect:?} has no answer"),
    }
}
