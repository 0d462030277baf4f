//! What the machine costs by itself: CPU per step, which must not grow with the number of steps.

use std::collections::VecDeque;

use atomic_graph::{
    Condition, Count, Each, Effect, Graph, Input, Key, Kind, Machine, Node, Patch, Program, Ready,
    StepResult,
};
use serde_json::{Value, json};

use crate::measure::{best_and_median, cpu_micros, peak_mib};
use crate::{Scale, row_of_its_own, say, text};

/// A graph of `n` steps and the state it begins with.
type Case = fn(n: usize) -> (Graph, Patch);

const CASES: [(&str, Case); 4] = [
    ("linear", linear),
    ("cycle, 10 KB state", cycle),
    ("loop, 10 KB state", rounds),
    ("fan", fan),
];

/// CPU per step in microseconds, of a case at a size.
pub(crate) struct Measured {
    pub(crate) case: &'static str,
    pub(crate) steps: usize,
    pub(crate) micros: f64,
}

pub(crate) fn measure(scale: Scale) -> Result<Vec<Measured>, String> {
    say("\nIn memory: CPU per step (the machine alone)\n");
    say("| case | steps | best, µs | median, µs | peak RSS, MiB |");
    say("|---|---:|---:|---:|---:|");
    let mut all = vec![];
    for (case, _) in CASES {
        for steps in scale.sizes {
            let numbers = [steps, scale.repeats].map(|number| number.to_string());
            let row =
                row_of_its_own(&[&["memory".to_owned(), case.to_owned()], &numbers[..]].concat())?;
            let best = row.split('|').nth(3).map(str::trim).unwrap_or_default();
            all.push(Measured { case, steps, micros: best.parse().map_err(text)? });
        }
    }
    Ok(all)
}

/// Measures one case at one size.
pub(crate) fn row(name: &str, steps: usize, repeats: usize) -> Result<(), String> {
    let known = CASES.into_iter().find(|(case, _)| *case == name);
    let (case, build) = known.ok_or_else(|| format!("there is no case {name}"))?;
    let micros = (0..repeats).map(|_| cpu_per_step(build, steps));
    let (best, median) = best_and_median(micros.collect::<Result<_, _>>()?);
    say(&format!("| {case} | {steps} | {best:.2} | {median:.2} | {:.0} |", peak_mib()));
    Ok(())
}

fn cpu_per_step(build: Case, steps: usize) -> Result<f64, String> {
    let (graph, state) = build(steps);
    let problems = |list: Vec<atomic_graph::Problem>| list.iter().map(text).collect::<String>();
    let program = Program::compile(graph).map_err(problems)?;
    let micros = cpu_micros(|| {
        let (mut machine, effects) = Machine::start(program, state);
        let done = finish_all(&mut machine, effects, |_| StepResult::output("ok"))?;
        if done == steps { Ok(()) } else { Err(format!("{done} steps instead of {steps}")) }
    })?;
    Ok(micros / steps as f64)
}

/// Finishes every step as soon as it is started, until the run is over; says how many there were.
fn finish_all(
    machine: &mut Machine,
    effects: Vec<Effect>,
    result: impl Fn(usize) -> StepResult,
) -> Result<usize, String> {
    let mut queue = VecDeque::from(effects);
    let mut done = 0;
    while let Some(effect) = queue.pop_front() {
        let input = match effect {
            Effect::Start(start) => {
                done += 1;
                let result = result(done).set("n", done);
                Input::Finished { step: start.step, attempt: start.attempt, result }
            }
            Effect::Choose { step, options, .. } => {
                let view = machine.view(&step).unwrap_or_default();
                let n = view.get("n").and_then(|n| n.as_u64());
                let goes_on = n < view.get("limit").and_then(|limit| limit.as_u64());
                let chosen = (goes_on && !options.is_empty()).then_some(0);
                Input::Chosen { step, chosen }
            }
            Effect::AskLost { .. } => return Err("nothing was lost".to_owned()),
            Effect::Finish(outcome) => return outcome.map(|()| done).map_err(|e| e.message),
        };
        queue.extend(machine.apply(input).map_err(text)?);
    }
    Err("the run stopped before its end".to_owned())
}

fn work(id: &str) -> Node {
    Node::work(id, Value::Null)
}

fn linear(n: usize) -> (Graph, Patch) {
    let mut graph = Graph::starting_at("node-0");
    for place in 0..n {
        graph = graph.node(work(&format!("node-{place}")));
    }
    for place in 1..n {
        graph = graph.edge(format!("node-{}", place - 1), format!("node-{place}"));
    }
    (graph, Patch::new())
}

/// One node that follows itself.
fn cycle(n: usize) -> (Graph, Patch) {
    let again = Condition::Call("again".into());
    let graph = Graph::starting_at("work").node(work("work")).edge_when("work", "work", again);
    (graph, ten_kilobytes(n))
}

/// A node that holds a graph and runs it again and again.
fn rounds(n: usize) -> (Graph, Patch) {
    let inside = Graph::starting_at("work").node(work("work"));
    let max_rounds = u32::try_from(n).unwrap_or(u32::MAX);
    let kind = Kind::Loop { graph: inside, until: None, max_rounds };
    (Graph::starting_at("loop").node(Node::new("loop", kind)), ten_kilobytes(n))
}

fn ten_kilobytes(limit: usize) -> Patch {
    [("text".into(), json!("x".repeat(10_000))), ("limit".into(), json!(limit))].into()
}

/// All items at once.
fn fan(n: usize) -> (Graph, Patch) {
    let kind = Kind::Each(Each {
        over: Key::from("items"),
        item: Key::from("item"),
        graph: Graph::starting_at("work").node(work("work")),
        workers: Count::Fixed(n as u64),
        ready: Ready::Once,
    });
    let items: Vec<Value> = (0..n).map(|id| json!({"id": id.to_string()})).collect();
    (
        Graph::starting_at("fan").node(Node::new("fan", kind)),
        [("items".into(), items.into())].into(),
    )
}
