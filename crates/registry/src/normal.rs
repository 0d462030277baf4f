//! Models and switches in words that mean the same everywhere.

use serde_json::Value;

use crate::entity::Provider;

/// A model, as it was written and what is meant by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// As it was written: what its own backend is given.
    pub raw: String,
    /// What other backends make of it.
    pub family: Option<Family>,
}

/// The models every backend has an equivalent of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The largest.
    Opus,
    /// The one in the middle.
    Sonnet,
    /// The quickest.
    Haiku,
    /// Whatever the conversation around it uses.
    Inherit,
}

impl Family {
    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Opus => "opus",
            Self::Sonnet => "sonnet",
            Self::Haiku => "haiku",
            Self::Inherit => "inherit",
        }
    }
}

impl Model {
    /// Reads what stands behind `model`; nothing stands for no model.
    pub fn read(raw: &str) -> Option<Self> {
        let raw = raw.trim();
        let lower = raw.to_lowercase();
        let words = || lower.split(|c: char| !c.is_alphanumeric());
        let family = [Family::Opus, Family::Sonnet, Family::Haiku, Family::Inherit]
            .into_iter()
            .find(|family| words().any(|word| word == family.name()));
        (!raw.is_empty()).then(|| Self { raw: raw.to_owned(), family })
    }

    /// What a backend is told when this stands in a file of a provider; nothing where it has to
    /// choose itself. A name that only the provider's own backend understands is told to no other.
    pub fn on(&self, backend: &str, provider: Provider) -> Option<&str> {
        match self.family {
            Some(Family::Inherit) => None,
            // Elsewhere than in its terminal, Copilot's models go by titles: `GPT-5 (copilot)`.
            _ if backend == Provider::Copilot.name() && self.raw.contains(' ') => None,
            _ if backend == provider.name() => Some(&self.raw),
            // Which of their models is meant by a family, nobody knows; those of OpenCode are called
            // `provider/model`.
            _ if backend == Provider::Copilot.name() => {
                let is_family = |family: Family| self.raw.eq_ignore_ascii_case(family.name());
                let is_whole = provider == Provider::Atomic && !self.family.is_some_and(is_family);
                is_whole.then_some(self.raw.as_str())
            }
            _ if backend == Provider::OpenCode.name() => {
                let is_whole = provider == Provider::Atomic && self.raw.contains('/');
                is_whole.then_some(self.raw.as_str())
            }
            Some(family @ (Family::Opus | Family::Sonnet | Family::Haiku)) => Some(family.name()),
            // Ours are for every backend.
            None if provider == Provider::Atomic => Some(&self.raw),
            None => None,
        }
    }
}

/// Whether something is switched on, in whatever word; nothing where it is none of them.
pub(crate) fn is_yes(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(is_on) => Some(*is_on),
        Value::String(word) => match word.trim().to_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        },
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Family, Model};

    #[test]
    fn models_have_a_family_wherever_they_come_from() {
        for (raw, family) in [
            ("opus", Some(Family::Opus)),
            ("claude-opus-4-5-20251101", Some(Family::Opus)),
            ("anthropic/claude-sonnet-4-20250514", Some(Family::Sonnet)),
            ("Claude Sonnet 4.5 (copilot)", Some(Family::Sonnet)),
            ("sonnet[1m]", Some(Family::Sonnet)),
            ("us.anthropic.claude-3-5-haiku-20241022-v1:0", Some(Family::Haiku)),
            ("Inherit", Some(Family::Inherit)),
            ("gpt-5", None),
            ("magnum-opuscule", None),
        ] {
            let model = Model::read(raw).unwrap();
            assert_eq!((model.raw.as_str(), model.family), (raw, family));
        }
        assert_eq!(Model::read("  "), None);
    }
}
