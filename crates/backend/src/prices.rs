//! List prices of models, for calls whose cost the program does not state.
//!
//! Source: the tables inside the pinned programs. Claude models: the model catalog in `claude`
//! 2.1.325 (`pricing_tiers`); all others: the models.dev snapshot in `opencode` 1.18.33, providers
//! `openai`, `google`, `xai` and `github-copilot`. Where that lists no price for the cache, the
//! price of input is used.

/// When the tables were read.
pub const AS_OF: &str = "2026-11-18";

/// US dollars per million tokens: input, output, cache read, cache write.
type Prices = [f64; 4];

/// What is paid for prompts of more than so many tokens.
type LongPrompt = Option<(u64, Prices)>;

/// The models, each name with `-` for `.`.
#[rustfmt::skip]
const MODELS: &[(&str, Prices, LongPrompt)] = &[
    ("claude-3-5-haiku", [0.8, 4.0, 0.08, 1.0], None),
    ("claude-haiku-4-5", [1.0, 5.0, 0.1, 1.25], None),
    ("claude-haiku-5-5", [0.1, 0.5, 0.01, 0.125], Some((100_000, [0.5, 2.5, 0.05, 0.625]))),
    ("claude-3-5-sonnet", [3.0, 15.0, 0.3, 3.75], None),
    ("claude-3-7-sonnet", [3.0, 15.0, 0.3, 3.75], None),
    ("claude-sonnet-4", [3.0, 15.0, 0.3, 3.75], None),
    ("claude-sonnet-4-5", [3.0, 15.0, 0.3, 3.75], None),
    ("claude-sonnet-4-6", [3.0, 15.0, 0.3, 3.75], None),
    ("claude-sonnet-5", [2.0, 10.0, 0.2, 2.5], None),
    ("claude-sonnet-5-5", [2.0, 10.0, 0.1, 2.5], None),
    ("claude-opus-4", [15.0, 75.0, 1.5, 18.75], None),
    ("claude-opus-4-1", [15.0, 75.0, 1.5, 18.75], None),
    ("claude-opus-4-5", [5.0, 25.0, 0.5, 6.25], None),
    ("claude-opus-4-6", [5.0, 25.0, 0.5, 6.25], None),
    ("claude-opus-4-7", [5.0, 25.0, 0.5, 6.25], None),
    ("claude-opus-4-8", [5.0, 25.0, 0.5, 6.25], None),
    ("claude-opus-5", [5.0, 25.0, 0.5, 6.25], None),
    ("claude-opus-5-5", [4.0, 20.0, 0.2, 5.0], None),
    ("claude-fable-5", [10.0, 50.0, 1.0, 12.5], None),
    ("claude-fable-5-1", [10.0, 50.0, 0.25, 12.5], None),
    ("claude-fable-5-2", [8.0, 40.0, 0.2, 10.0], None),
    ("claude-mythos-5", [10.0, 50.0, 1.0, 12.5], None),
    ("claude-mythos-5-1", [10.0, 50.0, 0.25, 12.5], None),
    ("claude-mythos-5-2", [8.0, 40.0, 0.2, 10.0], None),
    ("gpt-6-astra", [10.0, 50.0, 1.0, 12.5], Some((272_000, [20.0, 75.0, 2.0, 25.0]))),
    ("gpt-6-luna", [0.1, 0.5, 0.01, 0.125], Some((272_000, [0.2, 0.75, 0.02, 0.25]))),
    ("gpt-6-sol", [2.0, 10.0, 0.2, 2.5], Some((272_000, [4.0, 15.0, 0.4, 5.0]))),
    ("gpt-5-6", [4.0, 20.0, 0.4, 5.0], Some((272_000, [8.0, 30.0, 0.8, 10.0]))),
    ("gpt-5-6-luna", [0.2, 1.2, 0.02, 0.25], Some((272_000, [0.4, 1.8, 0.04, 0.5]))),
    ("gpt-5-6-sol", [4.0, 20.0, 0.4, 5.0], Some((272_000, [8.0, 30.0, 0.8, 10.0]))),
    ("gpt-5-6-terra", [2.0, 12.0, 0.2, 2.5], Some((272_000, [4.0, 18.0, 0.4, 5.0]))),
    ("gpt-5-5", [5.0, 30.0, 0.5, 5.0], Some((272_000, [10.0, 45.0, 1.0, 10.0]))),
    ("gpt-5-5-pro", [30.0, 180.0, 30.0, 30.0], Some((272_000, [60.0, 270.0, 60.0, 60.0]))),
    ("gpt-5-4", [2.5, 15.0, 0.25, 2.5], Some((272_000, [5.0, 22.5, 0.5, 5.0]))),
    ("gpt-5-4-mini", [0.75, 4.5, 0.075, 0.75], None),
    ("gpt-5-4-nano", [0.2, 1.25, 0.02, 0.2], None),
    ("gpt-5-3-codex", [1.75, 14.0, 0.175, 1.75], None),
    ("gpt-5-2", [1.75, 14.0, 0.175, 1.75], None),
    ("gpt-5-1", [1.25, 10.0, 0.125, 1.25], None),
    ("gpt-5", [1.25, 10.0, 0.125, 1.25], None),
    ("gpt-5-mini", [0.25, 2.0, 0.025, 0.25], None),
    ("gpt-5-nano", [0.05, 0.4, 0.005, 0.05], None),
    ("gpt-4-1", [2.0, 8.0, 0.5, 2.0], None),
    ("gpt-4-1-mini", [0.4, 1.6, 0.1, 0.4], None),
    ("gpt-4o", [2.5, 10.0, 1.25, 2.5], None),
    ("gpt-4o-mini", [0.15, 0.6, 0.075, 0.15], None),
    ("o3", [2.0, 8.0, 0.5, 2.0], None),
    ("o4-mini", [1.1, 4.4, 0.275, 1.1], None),
    ("gemini-2-5-pro", [1.25, 10.0, 0.125, 1.25], Some((200_000, [2.5, 15.0, 0.25, 2.5]))),
    ("gemini-2-5-flash", [0.3, 2.5, 0.03, 0.3], None),
    ("gemini-3-flash-preview", [0.5, 3.0, 0.05, 0.5], None),
    ("gemini-3-1-pro-preview", [2.0, 12.0, 0.2, 2.0], Some((200_000, [4.0, 18.0, 0.4, 4.0]))),
    ("gemini-3-5-flash", [1.5, 9.0, 0.15, 1.5], None),
    ("gemini-3-6-flash", [0.75, 3.75, 0.075, 0.75], None),
    ("gemini-3-7-flash", [0.75, 3.75, 0.075, 0.75], None),
    ("gemini-3-8-flash", [0.75, 3.75, 0.075, 0.75], None),
    ("grok-4-5", [2.0, 6.0, 0.5, 2.0], Some((200_000, [4.0, 12.0, 1.0, 4.0]))),
    ("grok-4-6", [2.0, 6.0, 0.5, 2.0], Some((200_000, [4.0, 12.0, 1.0, 4.0]))),
    ("grok-4-7", [2.0, 6.0, 0.5, 2.0], Some((200_000, [4.0, 12.0, 1.0, 4.0]))),
    ("kimi-k2-7-code", [0.95, 4.0, 0.19, 0.95], None),
    ("kimi-k3", [3.0, 15.0, 0.3, 3.0], None),
    ("mai-code-1-1-flash", [0.2, 1.2, 0.02, 0.2], None),
    ("mai-code-1-flash-picker", [0.75, 4.5, 0.075, 0.75], None),
];

/// The tokens of one call, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallTokens {
    /// Read, apart from what has to do with the cache.
    pub(crate) input: u64,
    /// Written.
    pub(crate) output: u64,
    /// Read from the cache.
    pub(crate) cache_read: u64,
    /// Read and stored in the cache.
    pub(crate) cache_write: u64,
}

/// The price of a call in US dollars; nothing for a model that is not listed.
pub(crate) fn estimate(model: &str, tokens: CallTokens) -> Option<f64> {
    let (prices, long) = find(model)?;
    let CallTokens { input, output, cache_read, cache_write } = tokens;
    let prompt = input.saturating_add(cache_read).saturating_add(cache_write);
    let [input_price, output_price, read_price, write_price] = match long {
        Some((above, long)) if prompt > above => long,
        Some(_) | None => prices,
    };
    let millionths = input as f64 * input_price
        + output as f64 * output_price
        + cache_read as f64 * read_price
        + cache_write as f64 * write_price;
    Some(millionths / 1e6)
}

/// Whether the table has a price for a model.
pub fn is_listed(model: &str) -> bool {
    find(model).is_some()
}

fn find(model: &str) -> Option<(Prices, LongPrompt)> {
    let name = normal(model);
    let row = MODELS.iter().find(|(known, ..)| *known == name)?;
    Some((row.1, row.2))
}

/// A model's name without its provider, its date and what is chosen with it:
/// `anthropic/claude-haiku-4.5`, `us.anthropic.claude-haiku-4-5-20251001-v1:0` and
/// `claude-haiku-4-5[1m]` are all `claude-haiku-4-5`.
fn normal(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let name = name.split(['[', '@', ':']).next().unwrap_or_default();
    let name = name.rsplit_once("anthropic.").map_or(name, |(_, name)| name);
    let name = name.strip_suffix("-latest").unwrap_or(name).replace('.', "-");
    let is_extra = |part: &str| {
        let digits = part.strip_prefix('v').unwrap_or(part);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number && (part.len() == 8 || digits != part)
    };
    let mut parts: Vec<&str> = name.split('-').collect();
    while parts.last().is_some_and(|part| is_extra(part)) {
        parts.pop();
    }
    // `gpt-5-2025-08-07`.
    let is_date = |part: &&str, length: usize| {
        part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if let [.., year, month, day] = parts.as_slice()
        && is_date(year, 4)
        && is_date(month, 2)
        && is_date(day, 2)
    {
        parts.truncate(parts.len() - 3);
    }
    if parts.len() > 3 && parts.last() == Some(&"0") && parts[0] == "claude" {
        // `claude-sonnet-4-0` is another name of `claude-sonnet-4`.
        parts.pop();
    }
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::{CallTokens, estimate, is_listed};

    #[test]
    fn models_are_found_under_the_names_programs_give_them() {
        let names = [
            "claude-haiku-4-5",
            "claude-haiku-4.5",
            "claude-haiku-4-5-20251001",
            "anthropic/claude-haiku-4-5",
            "us.anthropic.claude-haiku-4-5-20251001-v1:0",
            "claude-opus-4-8[1m]",
            "claude-sonnet-4-20250514",
            "claude-sonnet-4-0",
            "github-copilot/gpt-5.4-mini",
            "gpt-5-2025-08-07",
        ];
        for name in names {
            assert!(is_listed(name), "{name}");
        }
        for name in ["plain-1", "gpt-5-mega", "claude", "", "scripted"] {
            assert!(!is_listed(name), "{name}");
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let price = |input, output, cache_read, cache_write| {
            let tokens = CallTokens { input, output, cache_read, cache_write };
            estimate("claude-opus-5-5", tokens).unwrap()
        };
        let million = 1_000_000;
        assert!((price(million, 0, 0, 0) - 4.0).abs() < 1e-9);
        assert!((price(0, million, 0, 0) - 20.0).abs() < 1e-9);
        assert!((price(0, 0, million, 0) - 0.2).abs() < 1e-9);
        assert!((price(0, 0, 0, million) - 5.0).abs() < 1e-9);
        let long = CallTokens { input: 300_000, ..CallTokens::default() };
        assert!((estimate("gpt-5.4", long).unwrap() - 1.5).abs() < 1e-9);
        assert_eq!(estimate("plain-1", long), None);
    }
}
