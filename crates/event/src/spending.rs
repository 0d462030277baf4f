//! Sums of what was spent.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Tokens and money, summed over several reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    /// Tokens, read and written.
    #[serde(default)]
    pub tokens: u64,
    /// The cost that programs stated, in US dollars; absent when none did.
    #[serde(default)]
    pub cost_usd: Option<f64>,
    /// The cost by the price table, in US dollars; absent when nothing was estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_usd: Option<f64>,
    /// Whether some part has neither.
    #[serde(default)]
    pub cost_unknown: bool,
}

impl Spending {
    /// What one report states.
    pub fn of(usage: &Usage) -> Self {
        Self {
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            cost_usd: usage.cost_usd,
            estimated_usd: usage.estimated_usd.filter(|_| usage.cost_usd.is_none()),
            cost_unknown: usage.cost_usd.is_none() && usage.estimated_usd.is_none(),
        }
    }

    /// The known part of the cost, stated and estimated; absent when nothing is known.
    pub fn known_usd(&self) -> Option<f64> {
        [self.cost_usd, self.estimated_usd].into_iter().flatten().reduce(|one, other| one + other)
    }

    /// The whole cost; absent when a part of it is unknown.
    pub fn usd(&self) -> Option<f64> {
        self.known_usd().filter(|_| !self.cost_unknown)
    }

    /// Whether the known part of the cost has reached a limit. Sums of prices are not exact: $0.10 and
    /// $0.70 are a little less than $0.80.
    pub fn has_reached(&self, max_usd: f64) -> bool {
        self.known_usd().unwrap_or(0.0) >= max_usd - 1e-9
    }

    /// Whether a part of the cost is an estimate.
    pub fn is_estimated(&self) -> bool {
        self.estimated_usd.is_some_and(|usd| usd > 0.0)
    }
}

/// An amount in dollars and cents, as in `$1.62`; small amounts have more digits.
pub fn dollars(amount: f64) -> String {
    let is_whole_cents = ((amount * 100.0).round() / 100.0 - amount).abs() < 1e-9;
    match amount {
        _ if amount >= 1.0 || (is_whole_cents && (amount == 0.0 || amount >= 0.01)) => {
            format!("${amount:.2}")
        }
        _ if amount >= 1e-6 => format!("${amount:.6}"),
        _ => format!("${amount:e}"),
    }
}

impl AddAssign for Spending {
    fn add_assign(&mut self, other: Self) {
        let sum = |one: Option<f64>, other: Option<f64>| {
            [one, other].into_iter().flatten().reduce(|one, other| one + other)
        };
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost_usd = sum(self.cost_usd, other.cost_usd);
        self.estimated_usd = sum(self.estimated_usd, other.estimated_usd);
        self.cost_unknown = self.cost_unknown || other.cost_unknown;
    }
}

/// What one conversation or step has spent: the turns that are over, and the calls of the turn
/// under way, which the program's total for the turn replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnSpending {
    over: Spending,
    calls: Spending,
}

impl TurnSpending {
    /// Takes in a report.
    pub fn add(&mut self, usage: &Usage) {
        if usage.is_total {
            self.calls = Spending::default();
            self.over += Spending::of(usage);
        } else {
            self.calls += Spending::of(usage);
        }
    }

    /// A turn begins: calls of an earlier turn whose total was never stated stay as reported.
    pub fn begin_turn(&mut self) {
        self.over += std::mem::take(&mut self.calls);
    }

    /// Everything together.
    pub fn total(&self) -> Spending {
        let mut total = self.over;
        total += self.calls;
        total
    }
}

#[cfg(test)]
mod tests {
    use super::{Spending, TurnSpending, dollars};
    use crate::Usage;

    #[test]
    fn a_limit_is_reached_although_sums_are_not_exact() {
        let mut spent = Spending { cost_usd: Some(0.1), ..Spending::default() };
        spent += Spending { estimated_usd: Some(0.7), ..Spending::default() };
        assert!(spent.has_reached(0.8) && !spent.has_reached(0.81));
        assert!(!Spending::default().has_reached(0.01));
    }

    #[test]
    fn small_amounts_have_more_digits() {
        let table = [
            (0.0, "$0.00"),
            (1.623, "$1.62"),
            (0.5, "$0.50"),
            (0.000_6, "$0.000600"),
            (1e-9, "$1e-9"),
        ];
        for (amount, told) in table {
            assert_eq!(dollars(amount), told);
        }
    }

    fn call(tokens: u64, estimated_usd: Option<f64>) -> Usage {
        Usage { input_tokens: tokens, estimated_usd, ..Usage::default() }
    }

    #[test]
    fn the_total_of_a_turn_replaces_its_calls_and_no_others() {
        let mut spent = TurnSpending::default();
        spent.add(&call(10, Some(0.5)));
        // The program died: nothing corrects this call.
        spent.begin_turn();
        spent.add(&call(20, Some(1.0)));
        spent.add(&call(30, None));
        assert!(spent.total().cost_unknown);
        let total = Usage { cost_usd: Some(0.25), is_total: true, ..call(45, None) };
        spent.add(&total);
        let sum = spent.total();
        assert_eq!((sum.tokens, sum.usd(), sum.is_estimated()), (55, Some(0.75), true));
    }

    #[test]
    fn an_unknown_cost_is_not_zero() {
        let unknown = Spending::of(&call(10, None));
        assert_eq!((unknown.usd(), unknown.known_usd()), (None, None));
    }
}
