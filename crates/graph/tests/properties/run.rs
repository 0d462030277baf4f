//! A run: the machine, and a caller that carries out what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use atomic_graph::{Effect, Input, Machine, Patch, Program, Start, StepId};

use crate::coverage::{Coverage, Fate};
use crate::dice::Dice;
use crate::ledger::{Ledger, about};
use crate::scene::{Scene, Sort};
use crate::world::World;

/// More inputs than any run of these graphs can take.
const ENDLESS: usize = 100_000;

/// A run under way, with everything that happened in it.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) program: Arc<Program>,
    pub(crate) state: Patch,
    pub(crate) machine: Machine,
    pub(crate) world: World,
    /// What is to be done, by the step it is about.
    pub(crate) open: BTreeMap<StepId, Effect>,
    /// How often something was asked about each step.
    asked: BTreeMap<StepId, u32>,
    pub(crate) ledger: Ledger,
    pub(crate) coverage: Coverage,
    /// What was to be done at first, and then after each input.
    pub(crate) first: Vec<Effect>,
    pub(crate) history: Vec<(Input, Vec<Effect>)>,
}

impl Run {
    pub(crate) fn start(scene: &Scene, world: World) -> Self {
        let program = Program::compile(scene.graph.clone()).unwrap();
        let state = scene.state.clone();
        let (machine, first) = Machine::start(Arc::clone(&program), state.clone());
        let max_launches = state.get("maxLaunches").and_then(serde_json::Value::as_u64);
        let ledger = Ledger::new(&scene.graph, max_launches);
        let mut run = Self {
            program,
            state,
            machine,
            world,
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            ledger,
            coverage: Coverage::new(&scene.graph),
            first: first.clone(),
            history: vec![],
        };
        run.take(&first);
        run
    }

    /// A new run that has come as far as the first `length` inputs of this one.
    pub(crate) fn cut(&self, scene: &Scene, length: usize) -> Self {
        let mut run = Self::start(scene, self.world);
        for (input, effects) in &self.history[..length] {
            assert_eq!(run.feed(input.clone()), *effects, "replayed: {input:?}");
        }
        run
    }

    /// Gives the machine something that did happen.
    pub(crate) fn feed(&mut self, input: Input) -> Vec<Effect> {
        self.coverage.sees(&self.ledger, &input);
        let effects = match self.machine.apply(input.clone()) {
            Ok(effects) => effects,
            Err(misfit) => panic!("{input:?} was refused: {misfit}"),
        };
        self.ledger.took(&input);
        if let Some(step) = answered(&input) {
            let effect = self.open.remove(step);
            // How often changes are combined depends on the order in which they come.
            let reduces = |effect: &Effect| matches!(effect, Effect::Evaluate { call, .. } if call.as_str() == "reduce");
            let failed = matches!(input, Input::Evaluated { result: Err(_), .. });
            if failed || !effect.as_ref().is_some_and(reduces) {
                *self.asked.entry(step.clone()).or_default() += 1;
            }
        }
        self.take(&effects);
        self.coverage.learns(&self.machine, &input, &effects);
        self.history.push((input, effects.clone()));
        assert!(self.history.len() < ENDLESS, "it does not end");
        effects
    }

    /// Takes on what is to be done, and drops what nobody waits for any more.
    fn take(&mut self, effects: &[Effect]) {
        self.ledger.told(&self.machine, effects);
        for effect in effects {
            let Some(step) = about(effect) else { continue };
            if !matches!(effect, Effect::Limit { .. }) {
                assert!(self.machine.awaits(step), "{effect:?} is not waited for");
                self.open.insert(step.clone(), effect.clone());
            }
        }
        let (machine, coverage) = (&self.machine, &mut self.coverage);
        self.open.retain(|step, effect| {
            let waits = machine.awaits(step);
            let live = matches!(effect, Effect::Start(_) | Effect::Cancel { .. });
            assert!(waits || !live, "{step} runs and nobody waits for it");
            if !waits && matches!(effect, Effect::Choose { .. }) && is_decision(step) {
                coverage.count(Sort::Decision, Fate::Cancelled);
            }
            waits
        });
        self.choices_see_all_changes(effects);
        let finish = effects.iter().filter(|effect| matches!(effect, Effect::Finish(_))).count();
        assert!(finish <= 1, "it ended {finish} times");
        match self.machine.outcome() {
            Some(outcome) => {
                if finish > 0 {
                    assert_eq!(effects.last(), Some(&Effect::Finish(outcome.clone())));
                }
                assert_eq!(self.open, [].into(), "something is open at the end");
                assert_eq!(self.machine.limited(), [], "something is limited at the end");
            }
            None => {
                assert_eq!(finish, 0, "it ended without an end");
                assert!(!self.open.is_empty(), "nothing is open, and it has not ended");
            }
        }
    }

    /// Where to go is asked when nothing of the superstep runs any more, and all that is asked sees
    /// the same.
    fn choices_see_all_changes(&self, effects: &[Effect]) {
        let mut views = BTreeMap::new();
        for effect in effects {
            let Effect::Choose { step, targets, .. } = effect else { continue };
            if targets.is_empty() {
                continue;
            }
            let scope = step.as_str().rsplit_once('/').map_or("", |(scope, _)| scope);
            let inside = |running: &StepId| {
                let rest = running.as_str().strip_prefix(scope);
                rest.is_some_and(|rest| scope.is_empty() || rest.starts_with('/'))
            };
            let running = self.machine.running().into_iter().find(|(step, _)| inside(step));
            assert_eq!(running, None, "it runs while {step} chooses");
            let view = self.machine.view(step).unwrap().to_value();
            let seen = views.entry(scope).or_insert_with(|| view.clone());
            assert_eq!(*seen, view, "{step} sees something else than another choice");
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.machine.outcome().is_some()
    }

    /// What happens next, in the order that `dice` say.
    pub(crate) fn next(&self, dice: &mut Dice, meddling: bool) -> Input {
        let limited = self.machine.limited();
        if meddling && !limited.is_empty() && dice.chance(6) {
            return Input::TimedOut { step: dice.pick(&limited).0 };
        }
        if meddling && dice.chance(3) {
            return self.change(dice);
        }
        let steps: Vec<&StepId> = self.open.keys().collect();
        let step = dice.pick(&steps);
        let asked = self.asked.get(step).copied().unwrap_or(0);
        self.world.answer(&self.machine, &self.open[step], asked)
    }

    /// A change from outside.
    pub(crate) fn change(&self, dice: &mut Dice) -> Input {
        let patch = match dice.below(5) {
            0 => serde_json::json!({"top": 7, "told": "x"}),
            1 => serde_json::json!({"list": [{"id": format!("o{}", dice.below(9))}]}),
            2 => serde_json::json!({"tasks": [{"id": "#o", "status": "pending"}]}),
            3 if self.state.contains_key("maxLaunches") => {
                serde_json::json!({"maxLaunches": self.machine.launches() + 3})
            }
            _ => serde_json::json!({"maybe": "x"}),
        };
        Input::Patched { patch: serde_json::from_value(patch).unwrap() }
    }

    /// Answers whatever is open until the run has ended.
    pub(crate) fn finish(&mut self, dice: &mut Dice, meddling: bool) {
        while !self.has_ended() {
            let input = self.next(dice, meddling);
            self.feed(input);
        }
    }

    /// The run was cut off: everything that ran is lost, and choices are made again.
    pub(crate) fn lose_everything(&mut self, dice: &mut Dice) {
        let mut lost: Vec<(StepId, u32)> = self.machine.running();
        while !lost.is_empty() {
            let (step, attempt) = lost.swap_remove(dice.below(lost.len()));
            // What was lost before may have led to this being gone or started anew.
            if self.ledger.running.get(&step) == Some(&attempt) {
                self.feed(Input::Lost { step, attempt, progressed: dice.chance(50) });
            }
        }
    }

    /// The steps that were started, with their attempts, in order of names.
    pub(crate) fn starts(&self) -> Vec<Start> {
        let effects = self.history.iter().flat_map(|(_, effects)| effects).chain(&self.first);
        let mut starts: Vec<Start> = effects
            .filter_map(|effect| if let Effect::Start(s) = effect { Some(s.clone()) } else { None })
            .collect();
        starts.sort_by(|a, b| (&a.step, a.attempt).cmp(&(&b.step, b.attempt)));
        starts
    }
}

fn is_decision(step: &StepId) -> bool {
    Sort::of(step.node()) == Sort::Decision
}

/// The step about which nothing is open any more after this.
fn answered(input: &Input) -> Option<&StepId> {
    match input {
        Input::Finished { step, .. }
        | Input::Failed { step, .. }
        | Input::Lost { step, .. }
        | Input::Cancelled { step, .. }
        | Input::Rested { step }
        | Input::Settled { step, .. }
        | Input::Answered { step, .. }
        | Input::Chosen { step, .. }
        | Input::Evaluated { step, .. } => Some(step),
        Input::TimedOut { .. } | Input::Patched { .. } | Input::Revived => None,
    }
}
