//! What was spent, from counts that mean different things. No IO.

use atomic_event::Usage;
use serde_json::Value;

use super::decode::Who;

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spending {
    /// Tokens of the session, read and written, at the end of the turn before.
    tokens: (u64, u64),
    /// How much of the window is filled, and how large it is.
    room: Option<(u64, u64)>,
    /// What the session has cost, and how much of that was told.
    cost: Option<f64>,
    told: Option<f64>,
}

impl Spending {
    /// A session of which nothing was spent yet.
    pub(super) fn of_a_new_session() -> Self {
        Self { told: Some(0.0), ..Self::default() }
    }

    pub(super) fn begin_program(&mut self, who: Who) {
        // It counts from its own start.
        if who == Who::Copilot {
            self.tokens = (0, 0);
        }
    }

    /// Takes in an update, in a turn or between two.
    pub(super) fn update(&mut self, update: &Value) {
        let number = |key: &str| update.get(key).and_then(Value::as_u64);
        if let (Some(used), Some(size)) = (number("used"), number("size")) {
            self.room = Some((used, size)).filter(|(used, _)| *used > 0).or(self.room);
        }
        let currency = update.pointer("/cost/currency").and_then(Value::as_str);
        if currency == Some("USD") {
            let amount = update.pointer("/cost/amount").and_then(Value::as_f64);
            self.cost = amount.filter(|amount| amount.is_finite()).or(self.cost);
        }
    }

    /// The part of the cost that was not reported yet. Of a session that was continued it is not known
    /// before the end of its first turn.
    pub(super) fn new_cost(&mut self) -> Option<Usage> {
        let (cost, told) = (self.cost?, self.told?);
        let new = (cost - told).max(0.0);
        self.told = Some(cost);
        (new > 0.0).then(|| Usage { cost_usd: Some(new), ..Usage::default() })
    }

    /// What a turn has spent, by what is told at its end.
    pub(super) fn turn(&mut self, who: Who, usage: &Value) -> Option<Usage> {
        let counted = tokens(usage);
        let (input_tokens, output_tokens) = match counted {
            None => (0, 0),
            // The last call of the model, and nothing of those before it.
            Some(counted) if who == Who::OpenCode => counted,
            Some(counted) => {
                let before = std::mem::replace(&mut self.tokens, counted);
                // Somebody has begun to count again.
                let is_less = counted.0 < before.0 || counted.1 < before.1;
                let before = if is_less { (0, 0) } else { before };
                (counted.0 - before.0, counted.1 - before.1)
            }
        };
        let cost_usd = self.cost.and_then(|cost| {
            // Of a session that was continued it is not known how much of it is new.
            let told = self.told.replace(cost)?;
            Some((cost - told).max(0.0))
        });
        let usage = Usage {
            input_tokens,
            output_tokens,
            cost_usd,
            context_tokens: self.room.map(|(used, _)| used),
            context_window: self.room.map(|(_, size)| size),
            ..Usage::default()
        };
        (counted.is_some() || self.room.is_some() || self.cost.is_some()).then_some(usage)
    }
}

/// Tokens read and written.
fn tokens(usage: &Value) -> Option<(u64, u64)> {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let (read, written) = (number("inputTokens")?, number("outputTokens")?);
    let total = number("totalTokens").unwrap_or_default();
    let thought = number("thoughtTokens").unwrap_or_default();
    // Some count what was thought as written, and what came from a cache as read; the sum tells.
    let is_apart = total >= read.saturating_add(written).saturating_add(thought);
    let written = if is_apart { written.saturating_add(thought) } else { written };
    Some((read.max(total.saturating_sub(written)), written))
}
