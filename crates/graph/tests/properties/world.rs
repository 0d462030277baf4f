//! The world around the machine: what becomes of every step, choice and function.
//!
//! An answer depends on the question and on the salt of the world, never on when it is given.

use atomic_graph::{
    Condition, Effect, FunctionId, Goto, Input, Machine, NodeId, Signal, StepError, StepId,
    StepResult,
};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::ledger::stops;

/// What the world is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) salt: u64,
    /// How many of a hundred attempts fail, and how many are lost.
    pub(crate) failing: u64,
    pub(crate) losing: u64,
    /// How many of a hundred functions fail.
    pub(crate) breaking: u64,
    /// Whether lists grow while they are worked on.
    pub(crate) growing: bool,
}

impl World {
    pub(crate) fn random(dice: &mut Dice) -> Self {
        Self {
            salt: dice.next(),
            failing: dice.pick(&[0, 5, 10, 25, 45]),
            losing: dice.pick(&[0, 5, 15]),
            breaking: dice.pick(&[0, 5, 15]),
            growing: true,
        }
    }

    /// What happens in the end to something that was to be done; `asked` is how often the same
    /// was asked before.
    pub(crate) fn answer(&self, machine: &Machine, effect: &Effect, asked: u32) -> Input {
        match effect {
            Effect::Start(start) => self.attempt(machine, &start.step, start.attempt),
            Effect::Cancel { step, attempt } => {
                let mut dice = self.dice(step, &["cancel", &attempt.to_string()]);
                if dice.chance(60) {
                    return Input::Cancelled { step: step.clone(), attempt: *attempt };
                }
                // It came to its end before it could be stopped.
                self.attempt(machine, step, *attempt)
            }
            Effect::Choose { step, options, targets } => {
                let mut dice = self.dice(step, &["choose", &asked.to_string()]);
                let step = step.clone();
                if dice.chance(self.breaking) {
                    return Input::Evaluated { step, result: Err(broken(&mut dice)) };
                }
                // Loops stop now and then; `otherwise` always holds, other conditions mostly.
                let nothing = match options.last() {
                    Some(Condition::Otherwise) => 0,
                    Some(_) if targets.is_empty() => 50,
                    Some(_) => 15,
                    None => 100,
                };
                let chosen =
                    (!dice.chance(nothing)).then(|| dice.below(options.len().max(1)) as u32);
                Input::Chosen { step, chosen }
            }
            Effect::Evaluate { step, call, args } => {
                let args: Vec<Value> = args.iter().map(|arg| Value::clone(arg)).collect();
                Input::Evaluated {
                    step: step.clone(),
                    result: self.function(step, (call, asked), &args),
                }
            }
            Effect::Rest { step, .. } => Input::Rested { step: step.clone() },
            Effect::Ask { step, .. } => {
                Input::Answered { step: step.clone(), answer: json!("yes") }
            }
            Effect::AskLost { step, attempt } => {
                let again = self.dice(step, &["lost", &attempt.to_string()]).chance(60);
                Input::Settled { step: step.clone(), again }
            }
            Effect::Limit { .. } | Effect::Finish(_) => panic!("{effect:?} has no answer"),
        }
    }

    fn dice(&self, step: &StepId, words: &[&str]) -> Dice {
        let words: Vec<&str> = [step.as_str()].into_iter().chain(words.iter().copied()).collect();
        Dice::of(self.salt, &words)
    }

    fn attempt(&self, machine: &Machine, step: &StepId, attempt: u32) -> Input {
        let mut dice = self.dice(step, &["start", &attempt.to_string()]);
        let step = step.clone();
        if dice.chance(self.failing) {
            return Input::Failed { step, attempt, error: broken(&mut dice) };
        }
        if dice.chance(self.losing) {
            return Input::Lost { step, attempt, progressed: dice.chance(50) };
        }
        let result = self.result(machine, &step, attempt, &mut dice);
        match machine.judge(&step, &result) {
            Ok(()) => Input::Finished { step, attempt, result },
            Err(error) => Input::Failed { step, attempt, error },
        }
    }

    fn result(
        &self,
        machine: &Machine,
        step: &StepId,
        attempt: u32,
        dice: &mut Dice,
    ) -> StepResult {
        let name = format!("{step}@{attempt}");
        let mut result = StepResult::output(json!({"by": name}));
        if dice.chance(10) {
            result.output = json!(name);
        }
        result = result.set("log", json!([name]));
        for (key, value) in [
            ("n", json!(dice.below(5))),
            ("top", json!(dice.below(50))),
            ("low", json!(dice.below(50))),
            ("object", json!({format!("k{}", dice.below(3)): name})),
            ("rows", json!([{"name": format!("r{}", dice.below(3)), "by": name}])),
            ("either", json!(true)),
            ("both", json!(false)),
            ("maybe", if dice.chance(50) { Value::Null } else { json!(name) }),
            ("made", json!(name)),
        ] {
            if dice.chance(25) {
                result = result.set(key, value);
            }
        }
        // Replaced by two at once a value ends the run, so mostly by one node alone.
        let last = if dice.chance(8) { "last".to_owned() } else { format!("last {}", step.node()) };
        if dice.chance(25) {
            result = result.set(last.as_str(), json!(name));
        }
        if self.breaking > 0 && dice.chance(3) {
            result = result.set("n", "not a number");
        }
        if self.breaking > 0 && dice.chance(6) {
            let value = if dice.chance(30) { json!("text") } else { json!(1) };
            result = result.set("odd", value);
        }
        result = self.with_items(step, result, dice);
        if dice.chance(15) {
            let node = machine.node(step).unwrap();
            let stray = NodeId::from(if dice.chance(50) { "nowhere" } else { node.id.as_str() });
            let targets = if node.targets.is_empty() { &[stray][..] } else { &node.targets };
            result.goto = Some(match dice.below(3) {
                0 => Goto::Many(targets.to_vec()),
                _ => Goto::One(dice.pick(targets)),
            });
        }
        if dice.chance(8) {
            let kind = dice.pick(&[Signal::HUMAN, Signal::HUMAN, "checkpoint"]).to_owned();
            result.signals = vec![Signal { kind, message: None, data: Value::Null }];
        }
        result
    }

    /// Inside a fan: tasks are settled, put off or added to, and lists grow.
    fn with_items(&self, step: &StepId, result: StepResult, dice: &mut Dice) -> StepResult {
        let Some(item) = step.item() else { return result };
        // What has grown has a longer name, and what has a long name does not grow: it must end.
        let way: String = stops(step).iter().filter_map(|stop| stop.inside).collect();
        if self.growing && way.len() < 8 && dice.chance(4) {
            return result.set("list", json!([{"id": format!("{way}g{}", dice.below(1_000))}]));
        }
        if !item.starts_with('#') {
            return result;
        }
        let bug = format!("{item}-bug");
        let rows = match dice.below(10) {
            0 if self.growing && item.len() < 9 => json!([
                {"id": item, "blockedBy": [bug], "tries": dice.below(9)},
                {"id": bug, "status": "pending", "$after": item},
            ]),
            1 => return result,
            2 => json!([{"id": item, "tries": dice.below(9)}]),
            _ => json!([{"id": item, "status": dice.pick(&["completed", "skipped", "failed"])}]),
        };
        result.set("tasks", rows)
    }

    fn function(
        &self,
        step: &StepId,
        (call, asked): (&FunctionId, u32),
        args: &[Value],
    ) -> Result<Value, StepError> {
        let change = args.get(1).filter(|_| call.as_str() == "reduce").map(ToString::to_string);
        let words = [call.as_str(), &asked.to_string(), &change.unwrap_or_default()];
        let mut dice = self.dice(step, &words);
        if dice.chance(self.breaking) {
            return Err(broken(&mut dice));
        }
        let nonsense = dice.chance(self.breaking);
        Ok(match call.as_str() {
            "reduce" => {
                let mut list = args[0].as_array().unwrap().clone();
                list.push(args[1].clone());
                list.into()
            }
            "input" | "output" | "merge" | "retry" | "on_error" if nonsense => json!([1]),
            // Where nothing breaks, what goes in has all that is gone through inside.
            "input" => dice.pick(&[
                match self.breaking {
                    0 => json!({"made": [], "list": [], "tasks": []}),
                    _ => json!({"made": []}),
                },
                json!({"made": [], "n": 3, "list": [1, 2], "tasks": []}),
            ]),
            "output" | "merge" => dice.pick(&[
                Value::Null,
                json!({"n": 1}),
                json!({"log": [format!("{call} of {step}")], "made": format!("{call} of {step}")}),
            ]),
            "retry" => json!(dice.chance(70)),
            "on_error" => dice.pick(&[
                json!("retry"),
                json!({"action": "retry", "delayMs": 5}),
                json!("skip"),
                json!({"action": "skip", "stateUpdate": {"log": ["function"]}}),
                json!({"action": "abort"}),
                json!({"action": "goto", "node": "nowhere"}),
                json!({"action": "goto", "node": step.node()}),
            ]),
            other => panic!("there is no function `{other}`"),
        })
    }
}

fn broken(dice: &mut Dice) -> StepError {
    let code = dice.pick(&["broken", "broken", "timeout", "flaky"]);
    StepError::new(code, format!("it was {code}"))
}
