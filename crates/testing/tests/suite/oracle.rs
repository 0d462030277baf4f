//! LangGraph as an oracle: the same random graphs, run there and here, visit the same nodes in the
//! same supersteps and end in the same state.

use std::collections::{BTreeMap, BTreeSet};

use atomic_graph::{Effect, Input, Machine, Program, Reducer, Start, State, StepResult};
use atomic_testing::langgraph;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::oracle_graphs::{Dice, Sample, holds, sample};

const SCRIPT: &str = include_str!("oracle.py");
const GRAPHS: u64 = 320;

/// What came of a graph.
#[derive(Debug, PartialEq, Deserialize)]
struct Run {
    state: Map<String, Value>,
    /// The nodes visited in each, by name.
    supersteps: Vec<Vec<String>>,
}

#[test]
fn random_graphs_run_as_they_do_in_langgraph() {
    let samples: Vec<Sample> = (0..GRAPHS).map(sample).collect();
    let input = serde_json::to_string(&samples).unwrap();
    let output = langgraph::run(SCRIPT, &[], &input).unwrap_or_else(|problem| panic!("{problem}"));
    let theirs: Vec<Run> = serde_json::from_str(&output).unwrap();
    assert_eq!(theirs.len(), samples.len());

    let mut seen = Seen::default();
    let mut differences = vec![];
    for (sample, theirs) in samples.iter().zip(&theirs) {
        let mut player = Player { sample, dice: Dice::new(sample.seed), seen: &mut seen };
        match player.play(theirs.supersteps.len()) {
            Ok(ours) if ours == *theirs => seen.look_at(sample, theirs),
            ours => differences.push(difference(sample, theirs, &ours)),
        }
    }
    let first = differences.first().map_or("", String::as_str);
    assert!(
        differences.is_empty(),
        "{} of {GRAPHS} differ; the first:\n{first}",
        differences.len()
    );
    println!("seen in {GRAPHS} graphs: {:#?}", seen.0);
    seen.assert_enough();
}

fn difference(sample: &Sample, theirs: &Run, ours: &Result<Run, String>) -> String {
    let shown = |name: &str, run: &Run| {
        let supersteps: Vec<String> = run.supersteps.iter().map(|step| step.join(" ")).collect();
        let state = Value::Object(run.state.clone());
        format!("{name}:\n  {}\n  {state}", supersteps.join("\n  "))
    };
    let ours = match ours {
        Ok(run) => shown("ours", run),
        Err(problem) => format!("ours: {problem}"),
    };
    format!("seed {}: {}\n{}\n{ours}", sample.seed, json!(sample), shown("LangGraph", theirs))
}

/// Runs a graph on our machine and does the work of its nodes.
struct Player<'a> {
    sample: &'a Sample,
    dice: Dice,
    seen: &'a mut Seen,
}

impl Player<'_> {
    /// Runs it for as many supersteps as it should take, and a few more to be shown.
    fn play(&mut self, enough: usize) -> Result<Run, String> {
        let program = Program::compile(self.sample.graph()).map_err(|e| format!("{e:?}"))?;
        let state = self.sample.state.clone();
        let state = state.into_iter().map(|(key, value)| (key.into(), value)).collect();
        let (mut machine, mut effects) = Machine::start(program, state);
        let mut supersteps = vec![];
        while machine.outcome().is_none() {
            let starts = only_starts(effects)?;
            let mut names: Vec<String> = starts.iter().map(|s| s.step.node().to_owned()).collect();
            names.sort();
            supersteps.push(names);
            if starts.is_empty() || supersteps.len() > enough + 3 {
                return Err(format!("it does not get to an end: {supersteps:?}"));
            }
            effects = self.work(&mut machine, starts)?;
            effects = self.choose(&mut machine, effects)?;
        }
        // LangGraph ends silently where an edge waits for a node that never ran.
        let is_ended = match &effects[..] {
            [Effect::Finish(Ok(()))] => true,
            [Effect::Finish(Err(error))] => error.code == "join",
            _ => false,
        };
        if !is_ended {
            return Err(format!("it ended with {effects:?}"));
        }
        Ok(Run { state: self.visible(&machine.newest()), supersteps })
    }

    /// Finishes the steps in any order. Until the last one is done nothing may follow, and what
    /// the others have written must not be seen.
    fn work(
        &mut self,
        machine: &mut Machine,
        mut starts: Vec<Start>,
    ) -> Result<Vec<Effect>, String> {
        self.dice.shuffle(&mut starts);
        let mut effects = vec![];
        for Start { step, attempt, .. } in starts {
            if !effects.is_empty() {
                return Err(format!("before `{step}` was done there came {effects:?}"));
            }
            let state = self.visible(&*machine.view(&step).ok_or("no view of a running step")?);
            let node = self.sample.node(step.node()).ok_or("a step of an unknown node")?;
            let mut result = StepResult::default();
            for (key, value) in node.patch(&state) {
                result = result.set(key, value);
            }
            let input = Input::Finished { step, attempt, result };
            effects = machine.apply(input).map_err(|e| e.to_string())?;
        }
        Ok(effects)
    }

    /// Evaluates the conditions, in any order. Until the last one is nothing may follow.
    fn choose(
        &mut self,
        machine: &mut Machine,
        mut effects: Vec<Effect>,
    ) -> Result<Vec<Effect>, String> {
        self.dice.shuffle(&mut effects);
        while let Some(Effect::Choose { .. }) = effects.first() {
            let Effect::Choose { step, options, .. } = effects.remove(0) else { continue };
            let state = self.visible(&*machine.view(&step).ok_or("no view of a finished step")?);
            let held = options.iter().map(|condition| holds(condition, &state));
            let held = held.collect::<Option<Vec<bool>>>().ok_or("a condition from nowhere")?;
            let chosen = held.iter().position(|held| *held);
            self.seen.note(if chosen.is_some() { "condition held" } else { "no condition held" });
            let chosen = chosen.map(|chosen| chosen as u32);
            let next = machine.apply(Input::Chosen { step, chosen }).map_err(|e| e.to_string())?;
            if !effects.is_empty() && !next.is_empty() {
                return Err(format!("with choices still open there came {next:?}"));
            }
            effects.extend(next);
        }
        Ok(effects)
    }

    /// What is there of the keys of the graph.
    fn visible(&self, state: &State) -> Map<String, Value> {
        let keys = self.sample.reducers.keys();
        keys.filter_map(|key| Some((key.clone(), Value::clone(state.get(key)?)))).collect()
    }
}

fn only_starts(effects: Vec<Effect>) -> Result<Vec<Start>, String> {
    let mut starts = vec![];
    for effect in effects {
        let Effect::Start(start) = effect else {
            return Err(format!("a superstep cannot begin with {effect:?}"));
        };
        starts.push(start);
    }
    Ok(starts)
}

/// How often what is to be compared has been seen, so that the comparison cannot become empty
/// without anybody noticing.
#[derive(Default)]
struct Seen(BTreeMap<String, usize>);

const WANTED: [&str; 11] = [
    "condition held",
    "no condition held",
    "condition beside an edge without one",
    "cycle taken",
    "unequal paths",
    "two led to the same node",
    "three nodes at once",
    "more than six supersteps",
    "join fired",
    "join fired twice",
    "join, one of them came twice",
];

impl Seen {
    fn note(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_insert(0) += 1;
    }

    fn assert_enough(&self) {
        let reducers = [
            Reducer::Concat,
            Reducer::Sum,
            Reducer::Max,
            Reducer::Min,
            Reducer::Merge,
            Reducer::Or,
            Reducer::And,
        ];
        let at_once = reducers.map(|reducer| format!("{reducer:?} by two at once"));
        let wanted = WANTED.map(str::to_owned);
        for what in wanted.iter().chain(&at_once).chain([&"Replace".to_owned()]) {
            let times = self.0.get(what).copied().unwrap_or(0);
            assert!(times >= 20, "`{what}` was seen {times} times only: {:#?}", self.0);
        }
    }

    fn look_at(&mut self, sample: &Sample, run: &Run) {
        if run.supersteps.len() > 6 {
            self.note("more than six supersteps");
        }
        let mut visits = BTreeMap::<&str, usize>::new();
        for step in &run.supersteps {
            self.look_at_superstep(sample, step);
            for node in step {
                *visits.entry(node).or_default() += 1;
            }
        }
        if visits.values().any(|visits| *visits > 1) {
            self.note(if sample.has_cycle() { "cycle taken" } else { "unequal paths" });
        }
        self.look_at_joins(sample, run);
    }

    fn look_at_superstep(&mut self, sample: &Sample, step: &[String]) {
        if step.len() >= 3 {
            self.note("three nodes at once");
        }
        let mut targets = BTreeSet::new();
        for link in &sample.edges {
            let [from] = &link.from[..] else { continue };
            if !step.contains(from) || link.when.is_some() {
                continue;
            }
            if !targets.insert(&link.to) {
                self.note("two led to the same node");
            }
            if sample.edges.iter().any(|other| other.from[0] == *from && other.when.is_some()) {
                self.note("condition beside an edge without one");
            }
        }
        for (key, reducer) in &sample.reducers {
            let writes = |node: &&String| {
                sample.node(node).is_some_and(|node| node.writes.contains_key(key))
            };
            match step.iter().filter(writes).count() {
                1 if *reducer == Reducer::Replace => self.note("Replace"),
                2.. => self.note(&format!("{reducer:?} by two at once")),
                _ => {}
            }
        }
    }

    fn look_at_joins(&mut self, sample: &Sample, run: &Run) {
        for link in sample.edges.iter().filter(|link| link.from.len() > 1) {
            let (mut arrived, mut twice, mut fired) = (BTreeSet::new(), false, 0);
            for step in &run.supersteps {
                for node in step.iter().filter(|node| link.from.contains(node)) {
                    twice |= !arrived.insert(node);
                }
                if arrived.len() == link.from.len() {
                    self.note("join fired");
                    if std::mem::take(&mut twice) {
                        self.note("join, one of them came twice");
                    }
                    arrived.clear();
                    fired += 1;
                }
            }
            if fired > 1 {
                self.note("join fired twice");
            }
        }
    }
}
