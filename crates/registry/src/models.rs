//! Whether a model is one that anybody has.

use atomic_graph::check::nearest;

use crate::normal::{Family, Model};

/// Words that stand for a model without being a family.
const WORDS: [&str; 4] = ["auto", "best", "default", "opusplan"];

/// What the names of vendors' models begin with.
const VENDORS: &[&str] = &[
    "claude",
    "gpt",
    "chatgpt",
    "codex",
    "gemini",
    "gemma",
    "grok",
    "deepseek",
    "qwen",
    "llama",
    "mistral",
    "codestral",
    "devstral",
    "magistral",
    "kimi",
    "glm",
    "minimax",
    "nova",
    "phi",
    "raptor",
    "command",
];

impl Model {
    /// Whether it looks like a model: of a family, of a vendor, or of a provider
    /// (`provider/model`). Whether an account has it, only its backend can tell.
    pub fn looks_known(&self) -> bool {
        // A path, an ARN, or a variable that is filled in elsewhere.
        let is_beyond_us = self.raw.contains(['/', ':', '$', '{']);
        self.family.is_some() || is_beyond_us || words(&self.raw).any(|word| is_known(&word))
    }

    /// What was probably meant by a model that nobody has.
    pub fn near(&self) -> Option<String> {
        let first = words(&self.raw).next()?;
        let known = families().chain(WORDS).chain(VENDORS.iter().copied());
        let meant = nearest(&first, known)?;
        let at = self.raw.to_lowercase().find(&first)?;
        let rest = self.raw.get(at + first.len()..)?;
        Some(format!("{meant}{rest}"))
    }
}

fn families() -> impl Iterator<Item = &'static str> {
    [Family::Opus, Family::Sonnet, Family::Haiku, Family::Inherit].into_iter().map(Family::name)
}

fn words(raw: &str) -> impl Iterator<Item = String> {
    let parts = raw.split(|c: char| !c.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase)
}

fn is_known(word: &str) -> bool {
    let mut chars = word.chars();
    // `o3`, `o4-mini`
    let is_numbered = chars.next() == Some('o') && chars.next().is_some_and(|c| c.is_ascii_digit());
    is_numbered || WORDS.contains(&word) || VENDORS.iter().any(|vendor| word.starts_with(vendor))
}

#[cfg(test)]
mod tests {
    use crate::Model;

    #[test]
    fn what_looks_like_no_model_is_told_with_what_was_meant() {
        let model = |raw: &str| Model::read(raw).unwrap();
        for raw in [
            "opus",
            "Inherit",
            "sonnet[1m]",
            "claude-opus-4-5",
            "GPT-5 (copilot)",
            "gpt-5.1-codex",
            "o3",
            "o4-mini",
            "Gemini 2.5 Pro",
            "qwen3-coder",
            "anthropic/whatever-1",
            "arn:aws:bedrock:x",
            "{env:MODEL}",
            "default",
        ] {
            assert!(model(raw).looks_known(), "{raw}");
        }
        for (raw, near) in [
            ("sonet", Some("sonnet")),
            ("opuss", Some("opus")),
            ("gtp-5", Some("gpt-5")),
            ("cluade-sonet-4", Some("claude-sonet-4")),
            ("the good one", None),
            ("ox", None),
        ] {
            assert!(!model(raw).looks_known(), "{raw}");
            assert_eq!(model(raw).near().as_deref(), near, "{raw}");
        }
    }
}
