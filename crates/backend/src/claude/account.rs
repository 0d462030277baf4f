//! What a turn has cost: an estimate after each call of a model, and the program's own figures at
//! the end of the turn, which count from the start of the program.

use std::collections::BTreeSet;

use atomic_event::Usage;
use serde::Deserialize;
use serde_json::Value;

use super::wire::{Message, TokenCounts, TurnResult};
use crate::prices::{CallTokens, estimate};

/// The model whose prices 2.1.197 and 2.1.325 use for a model that they do not know: measured with a made up
/// name, 1,000 tokens read and 100 written cost $0.006.
const PRICED_AS_UNKNOWN: &str = "claude-opus-5-5";

/// What was spent when the last turn ended, and the call under way.
#[derive(Debug, Default)]
pub(super) struct Account {
    total: Spending,
    /// How much of its window the conversation fills.
    context: Option<u64>,
    /// The agent's own call whose answer is not complete.
    call: Option<Call>,
    /// The calls of helpers in this turn, by the ids of their messages.
    helper_calls: BTreeSet<String>,
}

/// One call of a model.
#[derive(Clone, Debug, Default)]
struct Call {
    model: String,
    counts: TokenCounts,
}

impl Call {
    fn usage(&self) -> Usage {
        let counts = self.counts;
        let tokens = CallTokens {
            input: counts.input_tokens,
            output: counts.output_tokens,
            cache_read: counts.cache_read_input_tokens,
            cache_write: counts.cache_creation_input_tokens,
        };
        Usage {
            input_tokens: counts.all() - counts.output_tokens,
            output_tokens: counts.output_tokens,
            estimated_usd: estimate(&self.model, tokens)
                .or_else(|| estimate(PRICED_AS_UNKNOWN, tokens)),
            ..Usage::default()
        }
    }
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
    /// Forgets the calls of the turn before.
    pub(super) fn begin_turn(&mut self) {
        self.call = None;
        self.helper_calls.clear();
    }

    /// The model begins to answer the agent; what it has read is known.
    pub(super) fn call_began(&mut self, message: &Message) {
        let counts = message.usage.unwrap_or_default();
        self.call = Some(Call { model: message.model.clone(), counts });
    }

    /// More is known of the call. Returns its usage when the answer is complete: 2.1.325 sends such
    /// an event without a reason to stop for a call that was interrupted.
    pub(super) fn call_counted(&mut self, counts: TokenCounts, is_complete: bool) -> Option<Usage> {
        let call = self.call.as_mut()?;
        call.counts = call.counts.or_more(counts);
        if !is_complete {
            return None;
        }
        let call = self.call.take()?;
        self.context = Some(call.counts.all());
        let (context_tokens, context_window) = (self.context, self.total.window);
        Some(Usage { context_tokens, context_window, ..call.usage() })
    }

    /// A part of an answer to a helper. Its figures are those of the start of the answer, so that
    /// what was written is estimated from its length, at four bytes to a token.
    pub(super) fn helper_spoke(&mut self, message: &Message) -> Option<Usage> {
        let is_new = self.helper_calls.insert(message.id.clone());
        let mut counts = message.usage.filter(|_| is_new).unwrap_or_default();
        let written: usize = message.content.as_array().into_iter().flatten().map(length).sum();
        counts.output_tokens = counts.output_tokens.max(written as u64 / 4);
        let usage = Call { model: message.model.clone(), counts }.usage();
        (usage.input_tokens > 0 || usage.output_tokens > 0).then_some(usage)
    }

    /// A helper has handed its work in; the call with its last words is in no line of its own.
    pub(super) fn helper_ended(&mut self, told: &Value) -> Option<Usage> {
        told.get("agentId")?;
        let counts = TokenCounts::deserialize(told.get("usage")?).ok()?;
        let model = told.get("resolvedModel").and_then(Value::as_str).unwrap_or_default();
        let usage = Call { model: model.to_owned(), counts }.usage();
        (usage.input_tokens > 0 || usage.output_tokens > 0).then_some(usage)
    }

    /// The conversation fills this much now.
    pub(super) fn context(&mut self, tokens: u64) {
        self.context = Some(tokens);
    }

    /// What the turn that has just ended has used; nothing when nothing was.
    ///
    /// Newer programs say it. Others say what was used since they were started, so that what was
    /// used before is taken off.
    /// The program does not count a call that was interrupted, which is paid all the same.
    pub(super) fn settle(&mut self, result: &TurnResult, is_interrupted: bool) -> Vec<Usage> {
        let cut = self.call.take().filter(|_| is_interrupted).map(|call| call.usage());
        self.helper_calls.clear();
        self.turn_total(result).into_iter().chain(cut).collect()
    }

    fn turn_total(&mut self, result: &TurnResult) -> Option<Usage> {
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
            is_total: true,
            context_tokens: self.context,
            context_window: turn.window,
            ..Usage::default()
        })
    }
}

/// How many bytes the model has written for a part of its answer.
fn length(block: &Value) -> usize {
    let text = |key: &str| block.get(key).and_then(Value::as_str).map_or(0, str::len);
    let input = block.get("input").map_or(0, |input| input.to_string().len());
    text("text") + text("thinking") + text("name") + input
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
        let usage = account.settle(&result, false).pop()?;
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
