//! What a turn has cost, out of figures that count from the start of the program.

use atomic_event::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::wire::TurnResult;

/// What was spent when the last turn ended.
#[derive(Debug, Default)]
pub(super) struct Account {
    total: Spending,
    /// How much of its window the conversation fills.
    context: Option<u64>,
}

/// Everything all models have used.
#[derive(Clone, Copy, Debug, Default)]
struct Spending {
    input: u64,
    output: u64,
    cost: f64,
    window: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    #[serde(rename = "costUSD")]
    cost_usd: f64,
    context_window: Option<u64>,
}

impl Account {
    /// The conversation fills this much now.
    pub(super) fn context(&mut self, tokens: u64) {
        self.context = Some(tokens);
    }

    /// What the turn that has just ended has used; nothing when nothing was.
    ///
    /// Newer programs say it. Others say what was used since they were started, so that what was
    /// used before is taken off.
    pub(super) fn settle(&mut self, result: &TurnResult) -> Option<Usage> {
        let mut total = spending(&result.model_usage)?;
        total.cost = result.total_cost_usd.unwrap_or(total.cost);
        let turn = spending(&result.model_usage_since_last_result).unwrap_or_else(|| {
            let before = self.total;
            // Less than before: the count has begun anew, as after a cleared conversation.
            let anew = total.input < before.input || total.output < before.output;
            let before = if anew { Spending::default() } else { before };
            Spending {
                input: total.input - before.input,
                output: total.output - before.output,
                cost: (total.cost - before.cost).max(0.0),
                window: total.window,
            }
        });
        self.total = total;
        let nothing = turn.input == 0 && turn.output == 0 && turn.cost == 0.0;
        (!nothing).then_some(Usage {
            input_tokens: turn.input,
            output_tokens: turn.output,
            cost_usd: Some(turn.cost),
            context_tokens: self.context,
            context_window: turn.window,
        })
    }
}

/// The sum over all models; the window is that of the one that has read the most.
fn spending(models: &Value) -> Option<Spending> {
    let models = models.as_object()?;
    let mut sum = Spending::default();
    let mut most = 0;
    for usage in models.values() {
        let usage = ModelUsage::deserialize(usage).unwrap_or_default();
        let cached = [usage.cache_read_input_tokens, usage.cache_creation_input_tokens];
        let input = cached.into_iter().fold(usage.input_tokens, u64::saturating_add);
        sum.input = sum.input.saturating_add(input);
        sum.output = sum.output.saturating_add(usage.output_tokens);
        sum.cost += usage.cost_usd;
        if input >= most {
            (most, sum.window) = (input, usage.context_window.or(sum.window));
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Account, TurnResult};

    fn usage(input: u64, output: u64, cost: f64) -> Value {
        json!({ "m": { "inputTokens": input, "outputTokens": output, "costUSD": cost, "contextWindow": 9 } })
    }

    fn settle(account: &mut Account, total: Value, since: Value) -> Option<(u64, u64, u64)> {
        let total_cost_usd = total["m"]["costUSD"].as_f64();
        let result = TurnResult {
            model_usage: total,
            model_usage_since_last_result: since,
            total_cost_usd,
            ..TurnResult::default()
        };
        let usage = account.settle(&result)?;
        let cents = (usage.cost_usd.unwrap() * 100.0).round() as u64;
        Some((usage.input_tokens, usage.output_tokens, cents))
    }

    #[test]
    fn figures_that_grow_are_counted_once() {
        let mut account = Account::default();
        let mut turn = |total, since| settle(&mut account, total, since);
        assert_eq!(turn(usage(10, 1, 0.05), Value::Null), Some((10, 1, 5)));
        assert_eq!(turn(usage(30, 2, 0.15), Value::Null), Some((20, 1, 10)));
        assert_eq!(turn(usage(30, 2, 0.15), Value::Null), None);
        // The count begins anew.
        assert_eq!(turn(usage(5, 1, 0.02), Value::Null), Some((5, 1, 2)));
        // The program says it itself, as after a resume that goes on counting.
        assert_eq!(turn(usage(100, 50, 1.0), usage(7, 3, 0.04)), Some((7, 3, 4)));
    }

    #[test]
    fn what_is_not_told_is_not_zero() {
        assert_eq!(settle(&mut Account::default(), Value::Null, Value::Null), None);
    }
}
