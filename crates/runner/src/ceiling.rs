//! Limits of the whole run and of its tasks: time, money, tokens. What is met cannot be caught.

use atomic_event::{Spending, StepError, StepId, dollars};
use atomic_graph::code;

use crate::certificate::Basis;
use crate::perform::Order;
use crate::run::{Run, is_ceiling};
use crate::settings::Budget;
use crate::spent::{item_of, task_of};
use crate::timer::TimerKind;

/// How many functions and conditions are still evaluated once a ceiling was met: enough for a
/// workflow to note what has become of its tasks, and not for ever.
const LAST_WORDS: u32 = 1_000;

/// What is counted against the ceilings of the whole run.
#[derive(Debug, Default)]
pub(crate) struct Ceilings {
    /// The one that was met, if one was.
    pub(crate) exhausted: Option<String>,
    /// Whether that was a budget, so that the message states what was spent in the end.
    budget: Option<SpentLimit>,
    /// How many functions and conditions may still be evaluated then.
    last_words: u32,
    /// How many iterations were begun, those about to be recorded included.
    pub(crate) iterations: u64,
    /// What the certificate of launches rests on.
    pub(crate) basis: Basis,
}

/// A limit of the run on what is spent that was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpentLimit {
    /// On money, in US dollars.
    Money(f64),
    /// On tokens.
    Tokens(u64),
}

impl SpentLimit {
    /// The limit that was reached, if one was.
    pub fn reached(limits: &Budget, spent: &Spending) -> Option<Self> {
        let money = limits.max_cost_usd.filter(|max| spent.has_reached(*max)).map(Self::Money);
        money.or(limits.max_tokens.filter(|max| spent.tokens >= *max).map(Self::Tokens))
    }

    /// States what was spent, as in `spent $1.62 of $1.50 ($0.12 over)`.
    pub fn told(self, spent: &Spending) -> String {
        match self {
            Self::Money(max) => money_told(spent, max),
            Self::Tokens(max) => {
                let over = spent.tokens.saturating_sub(max);
                format!("used {} of {max} tokens ({over} over)", spent.tokens)
            }
        }
    }

    /// The option that sets it.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Money(_) => "--max-cost",
            Self::Tokens(_) => "--max-tokens",
        }
    }

    fn message(self, spent: &Spending) -> String {
        let (told, flag) = (self.told(spent), self.flag());
        format!("stopped at the budget: {told}; resume with a higher {flag}")
    }
}

impl Ceilings {
    /// Why something is not done: a ceiling was met. What takes no time still has its last words.
    pub(crate) fn refusal(&mut self, takes_no_time: bool) -> Option<StepError> {
        let reason = self.exhausted.as_ref()?;
        if takes_no_time && self.last_words > 0 {
            self.last_words -= 1;
            return None;
        }
        Some(StepError::new(code::CEILING, reason.clone()))
    }
}

impl Run {
    /// A ceiling of the whole run is met: what runs is stopped, what would start is refused.
    pub(crate) fn exhaust(&mut self, reason: String) {
        for live in self.crew.live.values() {
            let _ = live.stop.send(Order::Ceiling(reason.clone()));
        }
        self.ceilings.exhausted = Some(reason);
        self.ceilings.last_words = LAST_WORDS;
        self.timers.end_rests();
        // Nobody is waited for any longer, either.
        for (step, _) in self.machine.running() {
            if self.is_ask_node(&step) {
                self.timers.set(step, TimerKind::Answer, 0);
            } else if self.asleep(&step).is_some() {
                self.timers.set(step, TimerKind::Sleep, 0);
            }
        }
    }

    pub(crate) fn check_budget(&mut self) {
        if self.ceilings.exhausted.is_some() {
            return;
        }
        let spent = self.book.spent.total();
        let limits = self.settings.budget;
        if let Some(reached) = SpentLimit::reached(&limits, &spent) {
            self.ceilings.budget = Some(reached);
            self.exhaust(reached.message(&spent));
        } else if limits.limits_money() && spent.cost_unknown {
            let why = "a call of a model has no known price, so the limit on cost cannot hold; \
                       choose a model with a known price, or use --max-tokens";
            self.exhaust(why.to_owned());
        } else if limits.max_task_cost_usd.is_some() {
            self.check_task_budgets();
        }
    }

    /// Stops the agents of tasks that have spent their own budget. The run goes on.
    fn check_task_budgets(&mut self) {
        for (step, live) in &self.crew.live {
            // A check or a command costs nothing, and its result may complete work that is paid for.
            if self.book.open.get(step).is_some_and(|open| open.agent)
                && *live.stop.borrow() == Order::Work
                && let Some(error) = self.task_refusal(step)
            {
                let _ = live.stop.send(Order::TaskBudget(error.message));
            }
        }
    }

    /// Why a step is not started or is stopped: its task has spent its own budget.
    pub(crate) fn task_refusal(&self, step: &StepId) -> Option<StepError> {
        let max = self.settings.budget.max_task_cost_usd?;
        let task = task_of(step, &self.book.loops, &self.book.scopes.loop_tasks)?;
        let spent = self.book.spent.of_task(&task);
        spent.has_reached(max).then(|| task_error(task, &spent, max))
    }

    /// An error as it is recorded: that of a budget states what was spent up to now, the last
    /// calls of turns that were stopped included.
    pub(crate) fn with_sum(&self, step: Option<&StepId>, error: StepError) -> StepError {
        if error.code == code::BUDGET
            && let Some(stated) = step.and_then(|step| self.task_refusal(step))
        {
            return stated;
        }
        match self.ceilings.budget {
            Some(budget) if is_ceiling(&error) => {
                StepError { message: budget.message(&self.book.spent.total()), ..error }
            }
            Some(_) | None => error,
        }
    }
}

fn task_error(task: String, spent: &Spending, max: f64) -> StepError {
    let item = item_of(&task).unwrap_or(task);
    let told = money_told(spent, max);
    let message = format!(
        "task {item} was stopped at its budget: {told}; resume with a higher --max-task-cost"
    );
    StepError::new(code::BUDGET, message)
}

/// `spent $1.62 of $1.50 ($0.12 over)`.
fn money_told(spent: &Spending, max: f64) -> String {
    let known = spent.known_usd().unwrap_or(0.0);
    let mark = if spent.is_estimated() { " (estimated)" } else { "" };
    let over = dollars((known - max).max(0.0));
    format!("spent {}{mark} of {} ({over} over)", dollars(known), dollars(max))
}

#[cfg(test)]
mod tests {
    use atomic_event::Spending;

    use super::SpentLimit;

    #[test]
    fn the_message_states_the_sum_and_how_much_is_too_much() {
        let spent = Spending { tokens: 620, cost_usd: Some(1.62), ..Spending::default() };
        assert_eq!(
            SpentLimit::Money(1.5).message(&spent),
            "stopped at the budget: spent $1.62 of $1.50 ($0.12 over); resume with a higher \
             --max-cost"
        );
        assert_eq!(
            SpentLimit::Tokens(500).message(&spent),
            "stopped at the budget: used 620 of 500 tokens (120 over); resume with a higher \
             --max-tokens"
        );
        let spent = Spending { estimated_usd: Some(0.5), ..spent };
        assert!(
            SpentLimit::Money(1.5).message(&spent).contains("spent $2.12 (estimated) of $1.50")
        );
    }
}
