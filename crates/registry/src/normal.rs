//! Models and tools in words that mean the same everywhere.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::entity::Provider;
use crate::tools;

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
            // Whoever begins to restrict something does not mean everything.
            Value::Null => Err("nothing stands behind it".to_owned()),
            Value::String(text) => Self::of_text(text),
            Value::Array(items) => Self::of_list(items),
            Value::Object(fields) => Self::of_switches(fields),
            Value::Bool(_) | Value::Number(_) => Err(format!("{value} is no list of tools")),
        }
    }

    /// Nothing at all.
    pub(crate) fn none() -> Self {
        Self { only: Some(vec![]), without: vec![] }
    }

    /// The same without those that another list names.
    pub(crate) fn except(mut self, other: Self) -> Self {
        let Some(names) = other.only else { return Self::none() };
        self.without.extend(names);
        self.without_forbidden()
    }

    /// Takes out of the list what is forbidden. Without a rule, a tool is forbidden whatever rule
    /// allows some of it.
    fn without_forbidden(mut self) -> Self {
        if self.without.is_empty() {
            return self;
        }
        let taken: BTreeSet<String> = self.without.iter().map(|name| whole(name)).collect();
        if let Some(only) = &mut self.only {
            only.retain(|name| !taken.contains(&whole(name)) && !taken.contains(&tool(name)));
        }
        self
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let names = split(text)?;
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        match words.as_slice() {
            [all, ..] if !text.contains(',') && all.eq_ignore_ascii_case("all") => {
                match &words[1..] {
                    [] | ["tools"] => Ok(Self::default()),
                    _ => Err(format!("`{text}` is a sentence")),
                }
            }
            [none] if none.eq_ignore_ascii_case("none") => Ok(Self::none()),
            _ => Ok(Self::only(names)),
        }
    }

    fn of_list(items: &[Value]) -> Result<Self, String> {
        let mut names = vec![];
        let mut switches = Map::new();
        for item in items {
            match item {
                Value::Null => {}
                Value::String(text) => names.push(text.clone()),
                Value::Object(fields) => {
                    for (name, value) in fields {
                        let rule = value.as_str().filter(|_| name.contains('('));
                        match rule {
                            // `- Bash(git add: x)` has a colon in it.
                            Some(rule) => names.push(format!("{name}: {rule}")),
                            None => _ = switches.insert(name.clone(), value.clone()),
                        }
                    }
                }
                Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                    return Err(format!("{item} is no name of a tool"));
                }
            }
        }
        // A comma in a rule parts what belongs together, so they are put together first.
        let names = split(&names.join(", "))?;
        if !switches.is_empty() {
            switches.extend(names.into_iter().map(|name| (name, Value::Bool(true))));
            return Self::of_switches(&switches);
        }
        Ok(Self::only(names))
    }

    fn of_switches(fields: &Map<String, Value>) -> Result<Self, String> {
        let (mut on, mut without) = (vec![], vec![]);
        for (name, allowed) in fields {
            match is_yes(allowed) {
                Some(true) => on.push(name.clone()),
                Some(false) => without.push(lower(name)),
                None => return Err(format!("`{name}: {allowed}` is neither true nor false")),
            }
        }
        let everything_off = without.iter().any(|name| name == "*");
        let only = if on.is_empty() && !everything_off { None } else { Self::only(on).only };
        without.retain(|name| name != "*");
        Ok(Self { only, without }.without_forbidden())
    }

    fn only(names: Vec<String>) -> Self {
        let mut only: Vec<String> = vec![];
        let mut seen = BTreeSet::new();
        for name in names {
            let name = lower(&name);
            if matches!(name.as_str(), "*" | "all") {
                return Self::default();
            }
            if seen.insert(name.clone()) {
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
            (Some(only), without) => {
                f.write_str(&only.join(", "))?;
                // Of what is not in the list nothing has to be said.
                let named: BTreeSet<String> = only.iter().map(|name| tool(name)).collect();
                let but = without.iter().filter(|name| named.contains(&tool(name)));
                let but: Vec<&str> = but.map(String::as_str).collect();
                if but.is_empty() { Ok(()) } else { write!(f, " but {}", but.join(", ")) }
            }
            (None, []) => f.write_str("all"),
            (None, without) => write!(f, "all but {}", without.join(", ")),
        }
    }
}

/// A tool by the name we have for it, without its rule.
fn tool(name: &str) -> String {
    let bare = name.split_once('(').map_or(name, |(bare, _)| bare).trim();
    tools::find(bare).map_or_else(|| bare.to_owned(), |tool| tool.name.to_owned())
}

/// The same with its rule.
fn whole(name: &str) -> String {
    let rule = name.find('(').map_or("", |at| &name[at..]);
    format!("{}{rule}", tool(name))
}

/// A tool in lower case; the rule in parentheses stays as it is.
fn lower(tool: &str) -> String {
    let tool = tool.trim();
    match tool.find('(') {
        Some(rule) => format!("{}{}", tool[..rule].trim_end().to_lowercase(), &tool[rule..]),
        None => tool.to_lowercase(),
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

/// Names between commas, or between spaces where there are no commas; both count only outside of
/// parentheses. The error names a parenthesis that nobody closed.
fn split(text: &str) -> Result<Vec<String>, String> {
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
        if depth > 0 {
            return Err(format!("a parenthesis in `{text}` is not closed"));
        }
        // Lists that were put on one line still have their dashes.
        let clean = |part: &String| {
            let part = part.trim();
            let part = part.strip_prefix("- ").unwrap_or(part);
            part.trim_matches(['"', '\'', '`']).to_owned()
        };
        let is_name = |part: &String| !part.is_empty() && part != "-";
        Ok(parts.iter().map(clean).filter(is_name).collect::<Vec<_>>())
    };
    let by_comma = parts(|c| matches!(c, ',' | ';' | '\n'))?;
    if by_comma.len() > 1 { Ok(by_comma) } else { parts(char::is_whitespace) }
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
            (json!({"*": false}), "none"),
            (json!({"*": false, "read": "yes"}), "read"),
            (json!({"*": true, "write": false}), "all but write"),
            (json!(["Bash(a", "b)", "Read"]), "bash(a, b), read"),
            (json!([{"Bash(git add": "*)"}, null]), "bash(git add: *)"),
            (json!([{"bash": true}, {"write": false}]), "bash"),
            (json!([{"bash": true}, "Read, bash"]), "bash, read"),
            (json!("All tools"), "all"),
            (json!("None"), "none"),
            (json!("- Read - Edit"), "read, edit"),
            (json!("mcp__github__create_issue"), "mcp__github__create_issue"),
        ] {
            assert_eq!(
                Tools::read(&value).map(|tools| tools.to_string()),
                Ok(shown.to_owned()),
                "{value}"
            );
        }
        let wrong: [(Value, &str); 6] = [
            (json!(null), "nothing stands behind it"),
            (json!("All tools except Bash"), "`All tools except Bash` is a sentence"),
            (json!("Bash(git"), "a parenthesis in `Bash(git` is not closed"),
            (json!(7), "7 is no list of tools"),
            (json!([7]), "7 is no name of a tool"),
            (json!({"bash": "ask"}), "`bash: \"ask\"` is neither true nor false"),
        ];
        for (value, message) in wrong {
            assert_eq!(Tools::read(&value), Err(message.to_owned()));
        }
    }
}
