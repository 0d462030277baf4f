//! Models and tools in words that mean the same everywhere.

use std::fmt;

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
            _ if backend == provider.name() => Some(&self.raw),
            Some(family @ (Family::Opus | Family::Sonnet | Family::Haiku)) => Some(family.name()),
            // Ours are for every backend.
            None if provider == Provider::Atomic => Some(&self.raw),
            None => None,
        }
    }
}

/// What an entity may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// Only these, when there is such a list. A rule stands in parentheses: `bash(git:*)`.
    pub only: Option<Vec<String>>,
    /// None of these.
    pub without: Vec<String>,
}

impl Tools {
    /// Reads what stands behind `tools`; the error says what cannot be one.
    pub fn read(value: &Value) -> Result<Self, String> {
        match value {
            Value::Null => Ok(Self::default()),
            Value::String(text) => Ok(Self::only(split(text))),
            Value::Array(items) => {
                let mut names = vec![];
                for item in items {
                    let Value::String(text) = item else {
                        return Err(format!("{item} is no name of a tool"));
                    };
                    names.extend(split(text));
                }
                Ok(Self::only(names))
            }
            Value::Object(fields) => {
                let (mut only, mut without) = (vec![], vec![]);
                for (name, allowed) in fields {
                    match allowed {
                        Value::Bool(true) => only.push(name.clone()),
                        Value::Bool(false) => without.push(lower(name)),
                        Value::Null
                        | Value::Number(_)
                        | Value::String(_)
                        | Value::Array(_)
                        | Value::Object(_) => {
                            return Err(format!("`{name}: {allowed}` is neither true nor false"));
                        }
                    }
                }
                let only = if only.is_empty() { None } else { Self::only(only).only };
                Ok(Self { only, without })
            }
            Value::Bool(_) | Value::Number(_) => Err(format!("{value} is no list of tools")),
        }
    }

    fn only(names: Vec<String>) -> Self {
        let mut only: Vec<String> = vec![];
        for name in names {
            let name = lower(&name);
            if matches!(name.as_str(), "*" | "all") {
                return Self::default();
            }
            if !only.contains(&name) {
                only.push(name);
            }
        }
        Self { only: Some(only), without: vec![] }
    }
}

impl fmt::Display for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.only, self.without.as_slice()) {
            (Some(only), _) if only.is_empty() => f.write_str("none"),
            (Some(only), _) => f.write_str(&only.join(", ")),
            (None, []) => f.write_str("all"),
            (None, without) => write!(f, "all but {}", without.join(", ")),
        }
    }
}

/// A tool in lower case; the rule in parentheses stays as it is.
fn lower(tool: &str) -> String {
    let tool = tool.trim();
    match tool.find('(') {
        Some(rule) => format!("{}{}", tool[..rule].trim_end().to_lowercase(), &tool[rule..]),
        None => tool.to_lowercase(),
    }
}

/// Names between commas, or between spaces where there are no commas; both count only outside of
/// parentheses.
fn split(text: &str) -> Vec<String> {
    let text = text.trim();
    let text =
        text.strip_prefix('[').map_or(text, |inner| inner.strip_suffix(']').unwrap_or(inner));
    let parts = |is_end: fn(char) -> bool| {
        let (mut depth, mut parts) = (0_usize, vec![String::new()]);
        for c in text.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 && is_end(c) {
                parts.push(String::new());
            } else if let Some(part) = parts.last_mut() {
                part.push(c);
            }
        }
        let clean = |part: &String| part.trim().trim_matches(['"', '\'']).to_owned();
        parts.iter().map(clean).filter(|part| !part.is_empty()).collect::<Vec<_>>()
    };
    let by_comma = parts(|c| c == ',' || c == '\n');
    if by_comma.len() > 1 { by_comma } else { parts(char::is_whitespace) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Family, Model, Tools};

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

    #[test]
    fn tools_are_one_list_however_they_are_written() {
        for (value, shown) in [
            (json!(null), "all"),
            (json!("*"), "all"),
            (json!(["all"]), "all"),
            (json!([]), "none"),
            (json!(""), "none"),
            (json!("Read, Write"), "read, write"),
            (json!("Read Write"), "read, write"),
            (json!("Bash(git:*), Edit"), "bash(git:*), edit"),
            (json!("Bash(npm run test, npm run lint)"), "bash(npm run test, npm run lint)"),
            (json!("[Read, Grep"), "read, grep"),
            (json!(["Read", "read", "Bash(Git:*)"]), "read, bash(Git:*)"),
            (json!(["Read, Write"]), "read, write"),
            (json!({"bash": true, "write": false}), "bash"),
            (json!({"write": false, "Edit": false}), "all but write, edit"),
            (json!("mcp__github__create_issue"), "mcp__github__create_issue"),
        ] {
            assert_eq!(
                Tools::read(&value).map(|tools| tools.to_string()),
                Ok(shown.to_owned()),
                "{value}"
            );
        }
        let wrong: [(Value, &str); 3] = [
            (json!(7), "7 is no list of tools"),
            (json!([7]), "7 is no name of a tool"),
            (json!({"bash": "ask"}), "`bash: \"ask\"` is neither true nor false"),
        ];
        for (value, message) in wrong {
            assert_eq!(Tools::read(&value), Err(message.to_owned()));
        }
    }
}
