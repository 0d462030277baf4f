//! Running a graph in memory: every step ends as soon as it is started.

use std::collections::VecDeque;
use std::sync::Arc;

use atomic_graph::{Effect, Input, Machine, Program, Start, StepError, StepId};

use crate::graphs::Setting;
use crate::measure::cpu_micros;
use crate::text;

/// What it costs to run a graph, in microseconds of CPU.
pub(crate) struct Cost {
    /// To check and index it, for each of its steps.
    pub(crate) compile: f64,
    /// To run it, for each of its steps.
    pub(crate) step: f64,
}

/// Runs something once.
pub(crate) fn cost_of(setting: Setting) -> Result<Cost, String> {
    let Setting { graph, state, steps, shares, result, fails_first } = setting;
    let problems = |list: Vec<atomic_graph::Problem>| list.iter().map(text).collect::<String>();
    let mut program = None;
    let compile = cpu_micros(|| {
        program = Some(Program::compile(graph).map_err(problems)?);
        Ok(())
    })?;
    let program = program.ok_or("there is no program")?;
    let run = cpu_micros(|| {
        let (machine, effects) = Machine::start(Arc::clone(&program), state);
        let (queue, choices) = (VecDeque::new(), VecDeque::new());
        let mut driver =
            Driver { machine, queue, choices, result, fails_first, ended: 0, cancelled: 0 };
        driver.take(effects);
        driver.drive()?;
        let ended = driver.ended;
        if ended == steps { Ok(()) } else { Err(format!("{ended} steps instead of {steps}")) }
    })?;
    Ok(Cost { compile: compile / shares as f64, step: run / shares as f64 })
}

struct Driver {
    machine: Machine,
    queue: VecDeque<Effect>,
    /// What is decided when there is nothing else to do.
    choices: VecDeque<Effect>,
    result: fn(usize) -> atomic_graph::StepResult,
    fails_first: bool,
    /// How many attempts have come to an end.
    ended: usize,
    cancelled: usize,
}

impl Driver {
    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Cancel { .. } = effect {
                // What is to be stopped is stopped before it can finish.
                self.queue.push_front(effect);
            } else if let Effect::Choose { .. } = effect {
                self.choices.push_back(effect);
            } else {
                self.queue.push_back(effect);
            }
        }
    }

    fn drive(&mut self) -> Result<(), String> {
        while let Some(effect) = self.queue.pop_front().or_else(|| self.choices.pop_front()) {
            let input = match effect {
                Effect::Start(start) => match self.end_of(start) {
                    Some(input) => input,
                    None => continue,
                },
                Effect::Cancel { step, attempt } => {
                    self.cancelled += 1;
                    self.ended += 1;
                    Input::Cancelled { step, attempt }
                }
                Effect::Choose { step, .. } if self.is_over(&step) => continue,
                Effect::Choose { step, options, .. } => {
                    let view = self.machine.view(&step).unwrap_or_default();
                    let n = view.get("n").and_then(|n| n.as_u64());
                    let goes_on = n < view.get("limit").and_then(|limit| limit.as_u64());
                    let chosen = (goes_on && !options.is_empty()).then_some(0);
                    Input::Chosen { step, chosen }
                }
                Effect::Finish(Err(_)) if self.fails_first => Input::Revived,
                Effect::Finish(outcome) => return outcome.map_err(|error| error.message),
                Effect::Evaluate { .. }
                | Effect::Limit { .. }
                | Effect::Rest { .. }
                | Effect::Ask { .. }
                | Effect::AskLost { .. } => return Err("nothing but work was expected".to_owned()),
            };
            let effects = self.machine.apply(input).map_err(text)?;
            self.take(effects);
        }
        Err("the run stopped before its end".to_owned())
    }

    /// Whether a step was stopped. Where none was, nobody asks the machine.
    fn is_over(&self, step: &StepId) -> bool {
        self.cancelled > 0 && !self.machine.awaits(step)
    }

    /// How a step ends; nothing when it was stopped before.
    fn end_of(&mut self, start: Start) -> Option<Input> {
        if self.is_over(&start.step) {
            return None;
        }
        let Start { step, attempt, .. } = start;
        self.ended += 1;
        if self.fails_first && attempt == 1 {
            let error = StepError::new("bench", "the first attempt fails");
            return Some(Input::Failed { step, attempt, error });
        }
        Some(Input::Finished { step, attempt, result: (self.result)(self.ended) })
    }
}
