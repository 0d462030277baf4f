//! A run that was cut off anywhere and taken up again comes to the same end as one that was not.

use std::collections::BTreeMap;

use atomic_graph::{Effect, Graph, Input, OnLost, Retry, Start, StepId, StepResult};

use crate::coverage::Coverage;
use crate::dice::Dice;
use crate::run::Run;
use crate::runs::{End, end};
use crate::scene::{Scene, Style};
use crate::seeds;
use crate::table::{done, failed, lost, only, play, returned, work};
use crate::world::World;

/// How often each run is cut off.
const CUTS: usize = 3;

/// A run in a world that does not remember what was lost: an answer depends on how often a step
/// has failed and was asked about, not on the number of its attempt.
struct Forgetful {
    run: Run,
    failures: BTreeMap<StepId, u32>,
    asked: BTreeMap<StepId, u32>,
}

impl Forgetful {
    fn start(scene: &Scene, world: World) -> Self {
        let run = Run::start(scene, world);
        Self { run, failures: BTreeMap::new(), asked: BTreeMap::new() }
    }

    /// A new run that has come as far as the first `length` inputs of this one.
    fn cut(&self, scene: &Scene, length: usize) -> Self {
        let mut cut = Self::start(scene, self.run.world);
        for (input, effects) in &self.run.history[..length] {
            let fed = cut.feed(input.clone());
            assert_eq!(fed, *effects, "replayed: {input:?}");
        }
        cut
    }

    fn feed(&mut self, input: Input) -> Vec<Effect> {
        match &input {
            Input::Failed { step, .. } => {
                *self.failures.entry(step.clone()).or_default() += 1;
            }
            Input::Chosen { step, .. } | Input::Evaluated { step, .. } => {
                // How often changes are combined depends on the order in which they come.
                let reduces = |effect: &Effect| matches!(effect, Effect::Evaluate { call, .. } if call.as_str() == "reduce");
                if !self.run.open.get(step).is_some_and(reduces) {
                    *self.asked.entry(step.clone()).or_default() += 1;
                }
            }
            Input::Finished { .. }
            | Input::Lost { .. }
            | Input::Cancelled { .. }
            | Input::TimedOut { .. }
            | Input::Rested { .. }
            | Input::Settled { .. }
            | Input::Answered { .. }
            | Input::Patched { .. }
            | Input::Revived => {}
        }
        self.run.feed(input)
    }

    fn answer(&self, step: &StepId) -> Input {
        let failures = self.failures.get(step).copied().unwrap_or(0);
        let asked = self.asked.get(step).copied().unwrap_or(0);
        let Run { machine, world, open, .. } = &self.run;
        match &open[step] {
            Effect::Start(start) => {
                let known = Start { attempt: failures + 1, ..start.clone() };
                let mut answer = world.answer(machine, &Effect::Start(known), asked);
                if let Input::Finished { attempt, .. } | Input::Failed { attempt, .. } = &mut answer
                {
                    *attempt = start.attempt;
                }
                answer
            }
            // Whoever would not have it run again wants another end.
            Effect::AskLost { step, .. } => Input::Settled { step: step.clone(), again: true },
            other @ (Effect::Cancel { .. }
            | Effect::Choose { .. }
            | Effect::Evaluate { .. }
            | Effect::Limit { .. }
            | Effect::Rest { .. }
            | Effect::Ask { .. }
            | Effect::Finish(_)) => world.answer(machine, other, asked),
        }
    }

    fn finish(mut self, dice: &mut Dice) -> Self {
        while !self.run.has_ended() {
            let steps: Vec<&StepId> = self.run.open.keys().collect();
            let step = dice.pick(&steps).clone();
            let input = self.answer(&step);
            self.feed(input);
        }
        self
    }

    /// How it ended, and everything that was started, however often.
    fn end(&self, fans: bool) -> End {
        let (starts, outcome, state) = end(&self.run, fans);
        let step = |start: &String| start.rsplit_once('@').unwrap().0.to_owned();
        let mut steps: Vec<String> = starts.iter().map(step).collect();
        steps.dedup();
        (steps, outcome, state)
    }
}

/// Where nothing depends on what comes first and nothing counts what was lost, every beginning of
/// a history leads to the end that the whole one has.
#[test]
fn any_prefix_of_a_history_leads_to_the_same_end() {
    seeds::all(&seeds::seeds(450), |seed| {
        let mut dice = Dice::new(seed);
        let fans = dice.chance(60);
        let style =
            Style { depth: dice.below(4) as u32, racing: false, limits: false, fans, rules: true };
        let scene = Scene::random(&mut dice, style);
        let world = World { growing: false, breaking: 0, losing: 0, ..World::random(&mut dice) };
        let whole = Forgetful::start(&scene, world).finish(&mut dice);
        let expected = whole.end(fans);
        for _ in 0..CUTS {
            let length = dice.below(whole.run.history.len() + 1);
            let mut again = whole.cut(&scene, length);
            again.run.lose_everything(&mut dice);
            let again = again.finish(&mut dice);
            assert_eq!(again.end(fans), expected, "cut after {length}");
        }
        Coverage::default()
    });
}

#[test]
fn a_join_remembers_who_came_by_before_another_was_lost() {
    let graph = Graph::starting_at("s")
        .node(work("s"))
        .node(work("a"))
        .node(work("b"))
        .node(work("c"))
        .node(work("end"))
        .edge("s", "a")
        .edge("s", "b")
        .edge("b", "c")
        .join(["a", "c"], "end");
    let table = vec![
        (done("s#1"), "start a#1; start b#1"),
        (done("a#1"), ""),
        (done("b#1"), "start c#1"),
        (lost("c#1", 1), "start c#1 again (Continued, 2)"),
        (returned("c#1", 2, StepResult::default()), "start end#1"),
        (done("end#1"), "finish"),
    ];
    play(graph, serde_json::json!({}), "start s#1", table);
}

#[test]
fn what_was_lost_is_not_counted_as_a_failure() {
    for (on_lost, how) in [(OnLost::Continue, "Continued"), (OnLost::RunAgain, "RunAgain")] {
        let retry = Retry { attempts: 2, ..Retry::default() };
        let again = format!("start a#1 again ({how}, 2)");
        let table = vec![
            (lost("a#1", 1), again.as_str()),
            (failed("a#1", 2), "start a#1 again (Retried, 3)"),
            (failed("a#1", 3), "fail: a#1 broke"),
        ];
        let node = work("a").retry(retry).on_lost(on_lost);
        play(only(node), serde_json::json!({}), "start a#1", table);
    }
}
