//! The real machine against its certificate: an adversary that tries everything.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::any;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

use super::tests::{golden, launch};
use super::{Bound, certify};
use crate::{
    Condition, Count, Edge, Effect, Goto, Graph, Input, Kind, Machine, Node, NodeId, OnError,
    Patch, Program, State, StepError, StepId, StepResult,
};

/// A run at some point, and what it has cost so far.
#[derive(Clone)]
struct Run {
    machine: Machine,
    todo: VecDeque<Effect>,
    attempts: BTreeMap<StepId, u32>,
    launches: u64,
    running: u64,
    most_running: u64,
}

impl Run {
    fn start(graph: &Graph, state: Patch) -> Option<Self> {
        let program = Program::compile(graph.clone()).ok()?;
        let (machine, effects) = Machine::start(program, state);
        let (todo, attempts) = (VecDeque::new(), BTreeMap::new());
        let mut run = Self { machine, todo, attempts, launches: 0, running: 0, most_running: 0 };
        run.take(effects);
        Some(run)
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Start(start) = &effect {
                self.attempts.insert(start.step.clone(), start.attempt);
                if self.launches_agent(&start.step) {
                    self.launches += 1;
                    self.running += 1;
                }
            }
            self.todo.push_back(effect);
        }
        self.most_running = self.most_running.max(self.running);
    }

    fn launches_agent(&self, step: &StepId) -> bool {
        matches!(self.machine.node(step).unwrap().kind, Kind::Work { launch: true, .. })
    }

    fn apply(&mut self, input: Input) {
        if let Input::Finished { step, .. }
        | Input::Failed { step, .. }
        | Input::Cancelled { step, .. } = &input
            && self.launches_agent(step)
        {
            self.running -= 1;
        }
        let effects = self.machine.apply(input).unwrap();
        self.take(effects);
    }

    /// Every answer worth trying to what is asked next.
    fn answers(&self, effect: &Effect) -> Vec<Input> {
        match effect {
            Effect::Start(start) => self.results(&start.step, start.attempt),
            Effect::Choose { step, options, .. } => {
                let (step, all) = (step.clone(), u32::try_from(options.len()).unwrap());
                let last = options.iter().position(|when| *when == Condition::Otherwise);
                let last = last.map(|last| u32::try_from(last).unwrap());
                let chosen = (0..last.map_or(all, |last| last + 1)).map(Some);
                let chosen = chosen.chain(last.is_none().then_some(None));
                let input = |chosen| Input::Chosen { step: step.clone(), chosen };
                let mut all: Vec<Input> = chosen.map(input).collect();
                // A condition that fails is a failure of the decision.
                if matches!(self.machine.node(&step).unwrap().kind, Kind::Decision) {
                    let result = Err(StepError::new("bad", "it was made to fail"));
                    all.push(Input::Evaluated { step, result });
                }
                all
            }
            Effect::Evaluate { step, .. } => {
                let node = self.machine.node(step).unwrap();
                // Where a limit refused the visit, there is no attempt to be repeated.
                let attempt = self.attempts.get(step).copied().unwrap_or(u32::MAX);
                let mut remedies = vec![json!("skip"), json!("abort")];
                remedies
                    .extend(node.targets.iter().map(|to| json!({"action": "goto", "node": to})));
                if attempt < attempts(node) {
                    remedies = vec![json!("retry")];
                }
                let input = |value| Input::Evaluated { step: step.clone(), result: Ok(value) };
                remedies.into_iter().map(input).collect()
            }
            Effect::Cancel { step, attempt } => {
                vec![Input::Cancelled { step: step.clone(), attempt: *attempt }]
            }
            Effect::Rest { step, .. } => vec![Input::Rested { step: step.clone() }],
            Effect::Limit { .. }
            | Effect::Ask { .. }
            | Effect::AskLost { .. }
            | Effect::Finish(_) => vec![],
        }
    }

    /// Attempts fail as long as there is another one.
    fn results(&self, step: &StepId, attempt: u32) -> Vec<Input> {
        let node = self.machine.node(step).unwrap();
        let failed = Input::Failed {
            step: step.clone(),
            attempt,
            error: StepError::new("bad", "it was made to fail"),
        };
        if attempt < attempts(node) {
            return vec![failed];
        }
        let finished = |goto| Input::Finished {
            step: step.clone(),
            attempt,
            result: StepResult { goto, ..StepResult::default() },
        };
        let mut all = vec![finished(None)];
        if !node.targets.is_empty() {
            for chosen in 0..1u32 << node.targets.len() {
                let to = (0..).zip(&node.targets).filter(|(bit, _)| chosen >> bit & 1 == 1);
                let to: Vec<NodeId> = to.map(|(_, to)| to.clone()).collect();
                all.push(finished(Some(Goto::Many(to))));
            }
        }
        all.push(failed);
        all
    }
}

fn attempts(node: &Node) -> u32 {
    let least = if matches!(node.on_error, OnError::Call(_)) { OnError::ATTEMPTS } else { 1 };
    node.retry.attempts.max(least)
}

/// The most launches and the most at once in any run; `None` when there are too many runs.
fn worst(run: Run, budget: u32) -> (Option<()>, u64, u64) {
    let (mut launches, mut at_once) = (0, 0);
    let mut open = vec![run];
    for _ in 0..budget {
        let Some(run) = open.pop() else { return (Some(()), launches, at_once) };
        launches = launches.max(run.launches);
        at_once = at_once.max(run.most_running);
        // Choices may be answered in any order, which decides who comes to a join first.
        let choices = run.todo.iter().take_while(|e| matches!(e, Effect::Choose { .. })).count();
        for first in 0..choices.max(1) {
            let mut run = run.clone();
            let Some(effect) = run.todo.remove(first) else { continue };
            for input in run.answers(&effect) {
                let mut next = run.clone();
                next.apply(input);
                open.push(next);
            }
        }
    }
    (None, launches, at_once)
}

/// Makes a small graph out of any bytes.
struct Maker<'b>(std::slice::Iter<'b, u8>);

impl Maker<'_> {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % limit
    }

    fn graph(&mut self, depth: u32) -> Graph {
        let size = 1 + self.below(if depth == 0 { 4 } else { 2 });
        let name = |node: usize| NodeId::from(format!("n{node}"));
        let mut graph = Graph::starting_at(name(0));
        for node in 0..size {
            graph.nodes.push(self.node(&format!("n{node}"), size, depth));
        }
        for node in 1..size {
            // Most of what is made here should be reachable.
            let when = (self.below(3) == 0).then(|| Condition::Call("c".into()));
            graph.edges.push(Edge { from: vec![name(self.below(node))], to: name(node), when });
        }
        for _ in 0..self.below(size + 1) {
            let mut from = vec![name(self.below(size))];
            if self.below(4) == 0 {
                let other = name(self.below(size));
                from.extend((other != from[0]).then_some(other));
            }
            let when = match self.below(5) {
                0 => Some(Condition::Otherwise),
                1 | 2 => Some(Condition::Call("c".into())),
                _ => None,
            };
            graph.edges.push(Edge { from, to: name(self.below(size)), when });
        }
        mend_decisions(&mut graph);
        graph.catch = (self.below(5) == 0).then(|| name(self.below(size)));
        graph.max_iterations = (self.below(4) > 0).then(|| Count::Fixed(1 + self.below(3) as u64));
        graph
    }

    fn node(&mut self, id: &str, size: usize, depth: u32) -> Node {
        let kinds = if depth == 0 && self.below(2) == 0 { 7 } else { 5 };
        let mut node = match self.below(kinds) {
            0 => Node::new(id, Kind::Decision),
            1 => Node::work(id, json!(1)),
            2..=4 => launch(id, 1 + u32::from(self.below(3) == 0)),
            5 => {
                let (isolated, input, output) = (false, None, None);
                let graph = self.graph(depth + 1);
                Node::new(id, Kind::Subgraph { graph, isolated, input, output })
            }
            _ => {
                let (until, max_rounds) = (None, 2);
                Node::new(id, Kind::Loop { graph: self.graph(depth + 1), until, max_rounds })
            }
        };
        let any = |maker: &mut Self| NodeId::from(format!("n{}", maker.below(size)));
        node.on_error = match self.below(8) {
            0 => OnError::Skip,
            1 => OnError::Goto(any(self)),
            2 => OnError::Call("f".into()),
            _ => OnError::Abort,
        };
        if self.below(5) == 0 {
            node.targets = vec![any(self)];
            let other = any(self);
            node.targets.extend((other != node.targets[0]).then_some(other));
        }
        node.max_visits = (self.below(4) == 0).then(|| Count::Fixed(1 + self.below(2) as u64));
        node
    }
}

/// Decisions need conditions, and edges that wait for several nodes must have none.
fn mend_decisions(graph: &mut Graph) {
    let decides = |node: &&Node| matches!(node.kind, Kind::Decision);
    let decisions = graph.nodes.iter().filter(decides).map(|node| node.id.clone());
    let decisions: Vec<NodeId> = decisions.collect();
    for edge in &mut graph.edges {
        if edge.from.len() > 1 {
            edge.from.retain(|from| !decisions.contains(from));
            edge.when = None;
        } else if decisions.contains(&edge.from[0]) && edge.when.is_none() {
            edge.when = Some(Condition::Call("c".into()));
        }
    }
    graph.edges.retain(|edge| !edge.from.is_empty());
    for node in &mut graph.nodes {
        let leads_on = graph.edges.iter().any(|edge| edge.from.contains(&node.id));
        if decisions.contains(&node.id) && !leads_on {
            node.kind = Kind::Work { action: json!(1), launch: false, asks: false };
        }
    }
}

/// Whether everything that could happen was tried, and so the numbers had to be met exactly.
fn compare(bytes: &[u8]) -> bool {
    let mut maker = Maker(bytes.iter());
    let mut graph = maker.graph(0);
    graph.max_steps = (maker.below(8) == 7).then(|| 1 + maker.below(6) as u64);
    let Some(run) = Run::start(&graph, Patch::new()) else { return false };
    let got = certify(&graph, &State::default());
    let (all, launches, at_once) = worst(run, 300);
    let shown = || format!("{got}\n{}", serde_json::to_string(&graph).unwrap());
    assert!(Bound::AtMost(launches) <= got.launches, "{launches}\n{}", shown());
    assert!(Bound::AtMost(at_once) <= got.at_once, "{at_once}\n{}", shown());
    let flat = graph.nodes.iter().all(|node| node.inner().is_empty());
    let exact = all.is_some() && flat && graph.max_steps.is_none();
    if exact {
        assert_eq!(Bound::AtMost(launches), got.launches, "{}", shown());
        assert_eq!(Bound::AtMost(at_once), got.at_once, "{}", shown());
    }
    exact
}

#[test]
fn no_run_costs_more_and_the_worst_costs_as_much() {
    let config = Config { cases: 400, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let exact = Cell::new(0);
    let bytes = proptest::collection::vec(any::<u8>(), 8..60);
    let result = runner.run(&bytes, |bytes| {
        exact.set(exact.get() + u32::from(compare(&bytes)));
        Ok(())
    });
    result.unwrap();
    assert!(exact.get() >= 100, "only {} graphs were tried to the end", exact.get());
}

/// Plays the golden graphs as badly as they can go. Whatever fails goes first, so that losers
/// have launched everything before a winner ends.
fn play(name: &str, run: &mut Run) {
    let mut settled = 0;
    loop {
        let is_urgent = |effect: &Effect| {
            let Effect::Start(start) = effect else { return true };
            start.attempt < attempts(run.machine.node(&start.step).unwrap())
        };
        let place = run.todo.iter().position(is_urgent).unwrap_or(0);
        let Some(effect) = run.todo.remove(place) else { return };
        let mut answers = run.answers(&effect);
        let input = if let Effect::Start(start) = &effect {
            settled += u32::from(start.step.node() == "settle");
            let fails = match (name, start.step.node()) {
                ("05-loop", "draft") => start.step.as_str().starts_with("loop#1[3]"),
                ("08-nested-fans", "end") => !start.step.as_str().contains('!'),
                _ => false,
            };
            let mut input = if fails { answers.pop() } else { Some(answers.remove(0)) };
            if let Some(Input::Finished { result, .. }) = &mut input {
                returned(&start.step, settled, result);
            }
            input
        } else if let Effect::Choose { step, .. } = &effect {
            let chosen = match step.as_str() {
                "loop#1" => None,
                "review#3" => Some(1),
                _ if step.node() == "worker" => Some(1),
                _ => Some(0),
            };
            Some(Input::Chosen { step: step.clone(), chosen })
        } else {
            answers.pop()
        };
        if let Some(input) = input {
            run.apply(input);
        }
        // What is no longer waited for needs no answer.
        let cancelled = |effect: &Effect| {
            if let Effect::Cancel { step, .. } = effect { Some(step.clone()) } else { None }
        };
        let cancelled: Vec<StepId> = run.todo.iter().filter_map(cancelled).collect();
        run.todo.retain(|effect| {
            let Effect::Start(start) = effect else { return true };
            !cancelled.contains(&start.step)
        });
    }
}

/// The plan is sent back once, the review finds something once, and two tasks are done twice.
fn returned(step: &StepId, settled: u32, result: &mut StepResult) {
    match step.as_str() {
        "parse-tasks#1" => result.goto = Some(Goto::One("planner".into())),
        "fixer#1" => result.goto = Some(Goto::One("fan".into())),
        _ if step.node() == "settle" => {
            let status = if settled <= 2 { "pending" } else { "completed" };
            let row = json!({"id": step.item(), "status": status, "n": settled});
            result.patch.insert("tasks".into(), json!([row]));
        }
        _ => {}
    }
}

#[test]
fn the_golden_graphs_can_go_as_badly_as_their_certificates_say() {
    for (name, golden) in golden() {
        let mut run = Run::start(&golden.graph, golden.state).unwrap();
        play(&name, &mut run);
        assert!(run.machine.outcome().is_some(), "{name} has not ended");
        let got = (Bound::AtMost(run.launches), Bound::AtMost(run.most_running));
        assert_eq!(got, (golden.launches, golden.at_once), "{name}");
    }
}
