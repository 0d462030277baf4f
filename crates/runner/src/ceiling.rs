//! Ceilings of the whole run: time, money, tokens. What is met cannot be caught.

use atomic_event::StepError;
use atomic_graph::code;

use crate::certificate::Basis;
use crate::perform::Order;
use crate::run::Run;
use crate::timer::TimerKind;

/// How many functions and conditions are still evaluated once a ceiling was met: enough for a
/// workflow to note what has become of its tasks, and not for ever.
const LAST_WORDS: u32 = 1_000;

/// What is counted against the ceilings of the whole run.
#[derive(Debug, Default)]
pub(crate) struct Ceilings {
    /// The one that was met, if one was.
    pub(crate) exhausted: Option<String>,
    /// How many functions and conditions may still be evaluated then.
    last_words: u32,
    /// How many iterations were begun, those about to be recorded included.
    pub(crate) iterations: u64,
    /// What the certificate of launches rests on.
    pub(crate) basis: Basis,
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
        let spent = self.book.spent;
        let money = self.settings.max_cost_usd.filter(|max| spent.cost_usd.unwrap_or(0.0) >= *max);
        let tokens = self.settings.max_tokens.filter(|max| spent.tokens >= *max);
        if let Some(max) = money {
            let why = format!("the run has spent all of its ${max}");
            self.exhaust(format!("{why}; resume with a higher --max-cost"));
        } else if let Some(max) = tokens {
            let why = format!("the run has used all of its {max} tokens");
            self.exhaust(format!("{why}; resume with a higher --max-tokens"));
        } else if self.settings.max_cost_usd.is_some() && spent.cost_unknown {
            let why = "a turn did not say what it cost, so the ceiling in money cannot hold";
            self.exhaust(why.to_owned());
        }
    }
}
