//! Limits of the whole run and of its tasks: time, money, tokens. What is met cannot be caught.

use atomic_event::{Spending, StepError, StepId};
use atomic_graph::code;

use crate::certificate::Basis;
use crate::perform::Order;
use crate::run::{Run, is_ceiling};
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
    budget: Option<Budget>,
    /// How many functions and conditions may still be evaluated then.
    last_words: u32,
    /// How many iterations were begun, those about to be recorded included.
    pub(crate) iterations: u64,
    /// What the certificate of launches rests on.
    pub(crate) basis: Basis,
}

/// A budget of the run, and its limit.
#[derive(Clone, Copy, Debug)]
enum Budget {
    Money(f64),
    Tokens(u64),
}

impl Budget {
    /// Says what was spent.
    fn told(self, spent: &Spending) -> String {
        match self {
            Self::Money(max) => {
                let told = money_told(spent, max);
                format!("stopped at the budget: {told}; resume with a higher --max-cost")
            }
            Self::Tokens(max) => {
                let used = spent.tokens;
                let over = used.saturating_sub(max);
                format!(
                    "stopped at the budget: used {used} of {max} tokens ({over} over); resume with \
                     a higher --max-tokens"
                )
            }
        }
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
        let known = spent.known_usd().unwrap_or(0.0);
        let money = limits.max_cost_usd.filter(|max| known >= *max).map(Budget::Money);
        let tokens = limits.max_tokens.filter(|max| spent.tokens >= *max).map(Budget::Tokens);
        if let Some(budget) = money.or(tokens) {
            self.ceilings.budget = Some(budget);
            self.exhaust(budget.told(&spent));
        } else if limits.limits_money() && spent.cost_unknown {
            let why = "a call of a model has no known price, so the limit on cost cannot hold; \
                       choose a model with a known price, or use --max-tokens";
            self.exhaust(why.to_owned());
        } else if limits.max_task_cost_usd.is_some() {
            self.check_task_budgets();
        }
    }

    /// Stops the steps of tasks that have spent their own budget. The run goes on.
    fn check_task_budgets(&mut self) {
        for (step, live) in &self.crew.live {
            if *live.stop.borrow() == Order::Work
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
        let spent = self.book.spent.by_task().get(task.as_str()).copied()?;
        if spent.known_usd()? < max {
            return None;
        }
        let item = item_of(&task).unwrap_or(task);
        let told = money_told(&spent, max);
        let message = format!(
            "task {item} was stopped at its budget: {told}; resume with a higher --max-task-cost"
        );
        Some(StepError::new(code::BUDGET, message))
    }

    /// An error as it is recorded: that of a budget states what was spent up to now, the last
    /// calls of turns that were stopped included.
    pub(crate) fn with_sum(&self, error: StepError) -> StepError {
        match self.ceilings.budget {
            Some(budget) if is_ceiling(&error) => {
                StepError { message: budget.told(&self.book.spent.total()), ..error }
            }
            Some(_) | None => error,
        }
    }
}

/// `spent $1.62 of $1.50 ($0.12 over)`.
fn money_told(spent: &Spending, max: f64) -> String {
    let known = spent.known_usd().unwrap_or(0.0);
    let mark = if spent.is_estimated() { " (estimated)" } else { "" };
    let over = usd((known - max).max(0.0));
    format!("spent {}{mark} of {} ({over} over)", usd(known), usd(max))
}

/// Dollars and cents; small sums with more digits.
fn usd(amount: f64) -> String {
    let is_whole_cents = ((amount * 100.0).round() / 100.0 - amount).abs() < 1e-9;
    if is_whole_cents || amount >= 1.0 { format!("${amount:.2}") } else { format!("${amount:.6}") }
}

#[cfg(test)]
mod tests {
    use atomic_event::Spending;

    use super::{Budget, usd};

    #[test]
    fn the_message_states_the_sum_and_how_much_is_too_much() {
        let spent = Spending { tokens: 620, cost_usd: Some(1.62), ..Spending::default() };
        assert_eq!(
            Budget::Money(1.5).told(&spent),
            "stopped at the budget: spent $1.62 of $1.50 ($0.12 over); resume with a higher \
             --max-cost"
        );
        assert_eq!(
            Budget::Tokens(500).told(&spent),
            "stopped at the budget: used 620 of 500 tokens (120 over); resume with a higher \
             --max-tokens"
        );
        let spent = Spending { estimated_usd: Some(0.5), ..spent };
        assert!(Budget::Money(1.5).told(&spent).contains("spent $2.12 (estimated) of $1.50"));
        assert_eq!(usd(0.000_6), "$0.000600");
    }
}
