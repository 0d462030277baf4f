//! From the head of a file to an entity.

use std::path::Path;

use serde_json::{Map, Value};

use crate::entity::{Arguments, Entity, Kind, Origin, Prompt};
use crate::finding::Finding;
use crate::normal::{Model, Tools};
use atomic_graph::check::nearest;

/// A file that was found, before it is understood.
pub(crate) struct Found {
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
    /// What it is called when it does not say so itself.
    pub(crate) name: String,
    /// Other names it has because of where it is.
    pub(crate) aliases: Vec<String>,
    pub(crate) prompt: Prompt,
}

/// Keys that mean something to one of the providers and are kept for it.
const KEPT: &[&str] = &[
    "agent",
    "author",
    "background",
    "color",
    "compatibility",
    "context",
    "date",
    "disable",
    "disable-model-invocation",
    "disallowed-tools",
    "effort",
    "globs",
    "handoffs",
    "hooks",
    "icon",
    "infer",
    "initial-prompt",
    "isolation",
    "license",
    "max-steps",
    "max-tokens",
    "max-turns",
    "mcp-servers",
    "memory",
    "metadata",
    "mode",
    "permission",
    "permission-mode",
    "permissions",
    "paths",
    "reasoning-effort",
    "shell",
    "skills",
    "steps",
    "subtask",
    "tags",
    "target",
    "temperature",
    "title",
    "top-p",
    "user-invocable",
    "version",
    "when-to-use",
];

/// Keys that are read here.
const READ: &[&str] = &[
    "aliases",
    "allowed-tools",
    "argument-hint",
    "description",
    "hidden",
    "model",
    "name",
    "required-arguments",
    "tools",
];

/// What stands in a head, by keys in one spelling.
struct Head<'p> {
    path: &'p Path,
    fields: Map<String, Value>,
}

/// A key in the spelling that counts: `allowedTools` and `allowed_tools` are `allowed-tools`.
fn spelled(key: &str) -> String {
    let mut spelled = String::with_capacity(key.len() + 2);
    let mut after_lower = false;
    for c in key.trim().chars() {
        if c.is_uppercase() && after_lower {
            spelled.push('-');
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        if c == '_' || c == ' ' {
            spelled.push('-');
        } else {
            spelled.extend(c.to_lowercase());
        }
    }
    spelled
}

/// Understands an entity; `body` is only looked at for what the head does not say.
pub(crate) fn entity(
    found: Found,
    head: Map<String, Value>,
    body: &str,
    findings: &mut Vec<Finding>,
) -> Option<Entity> {
    let path = found.origin.path.clone().unwrap_or_default();
    let mut head = Head {
        path: &path,
        fields: head.into_iter().map(|(key, value)| (spelled(&key), value)).collect(),
    };
    if head.fields.get("disable") == Some(&Value::Bool(true)) {
        findings.push(Finding::aside(&path, "it says `disable: true`"));
        return None;
    }
    let given = head.text("name", findings).unwrap_or_else(|| found.name.clone());
    let name = match name(&given) {
        Ok(name) => name,
        Err(problem) => {
            findings.push(Finding::skipped(&path, problem, "choose another `name`"));
            return None;
        }
    };
    if name != given.trim().to_lowercase() {
        let message =
            format!("`{}` cannot be typed as a name: it is called `{name}`", given.trim());
        findings.push(Finding::odd(&path, message, "use letters, digits, `-` and `_` in `name`"));
    }
    let description = head.text("description", findings).unwrap_or_else(|| match found.kind {
        Kind::Agent => format!("Agent: {name}"),
        Kind::Command | Kind::Skill => first_words(body).unwrap_or_else(|| {
            format!("{}: {name}", if found.kind == Kind::Skill { "Skill" } else { "Command" })
        }),
    });
    let tools = head.tools(findings);
    let model = head.text("model", findings).and_then(|raw| Model::read(&raw));
    let arguments = Arguments {
        hint: head.text("argument-hint", findings).filter(|hint| !hint.is_empty()),
        required: head.list("required-arguments", findings),
    };
    let mut aliases = found.aliases;
    for alias in head.list("aliases", findings) {
        match self::name(&alias) {
            Ok(alias) => aliases.push(alias),
            Err(problem) => findings.push(Finding::odd(&path, problem, "choose another alias")),
        }
    }
    aliases.retain(|alias| *alias != name);
    aliases.dedup();
    let hidden = head.fields.remove("hidden") == Some(Value::Bool(true));
    head.tell_unknown(findings);
    let more = head.fields;
    Some(Entity {
        kind: found.kind,
        name,
        aliases,
        description,
        tools,
        model,
        arguments,
        hidden,
        more,
        origin: found.origin,
        prompt: found.prompt,
    })
}

impl Head<'_> {
    /// Takes a value out that must be a text. Numbers are taken for texts, lists are put together.
    fn text(&mut self, key: &str, findings: &mut Vec<Finding>) -> Option<String> {
        let value = self.fields.remove(key)?;
        let text = match &value {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Array(items) => {
                // `argument-hint: [message]` is meant as it is written.
                let items: Vec<String> = items.iter().map(plain).collect();
                let all = items.join(if key == "argument-hint" { "] [" } else { ", " });
                if key == "argument-hint" { format!("[{all}]") } else { all }
            }
            Value::Object(_) => {
                let message = format!("`{key}` is no text and is left out");
                findings.push(Finding::odd(self.path, message, "write a text"));
                return None;
            }
        };
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Takes a list of names out; a text with commas is one too.
    fn list(&mut self, key: &str, findings: &mut Vec<Finding>) -> Vec<String> {
        match self.fields.remove(key) {
            None | Some(Value::Null) => vec![],
            Some(Value::String(text)) => {
                let text = text.trim().trim_start_matches('[').trim_end_matches(']');
                let names = text.split(',').map(|name| name.trim().to_owned());
                names.filter(|name| !name.is_empty()).collect()
            }
            Some(Value::Array(items)) => items.iter().map(plain).collect(),
            Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_))) => {
                let message = format!("`{key}: {other}` is no list and is left out");
                findings.push(Finding::odd(self.path, message, "write a list"));
                vec![]
            }
        }
    }

    fn tools(&mut self, findings: &mut Vec<Finding>) -> Tools {
        let allowed = self.fields.remove("allowed-tools");
        let Some(value) = self.fields.remove("tools").or(allowed) else { return Tools::default() };
        Tools::read(&value).unwrap_or_else(|problem| {
            // Whoever restricts something must not end up with everything.
            let message = format!("`tools` cannot be read, so it may use none: {problem}");
            let remedy = "write a list of names, such as `tools: Read, Edit`";
            findings.push(Finding::odd(self.path, message, remedy));
            Tools { only: Some(vec![]), without: vec![] }
        })
    }

    fn tell_unknown(&self, findings: &mut Vec<Finding>) {
        for key in self.fields.keys() {
            if KEPT.contains(&key.as_str()) || READ.contains(&key.as_str()) {
                continue;
            }
            let meant = nearest(key, READ.iter().chain(KEPT).copied());
            let message = format!("`{key}` means nothing here");
            let remedy = meant.map_or_else(
                || "remove it, unless another program reads it".to_owned(),
                |meant| format!("did you mean `{meant}`?"),
            );
            findings.push(Finding::odd(self.path, message, &remedy));
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

/// A name as it is typed; the error says why it cannot be one.
pub(crate) fn name(given: &str) -> Result<String, String> {
    let given = given.trim();
    let leads_away = given.contains(['/', '\\']) || given.contains("..");
    if given.is_empty() || leads_away || given.chars().any(char::is_control) {
        return Err(format!("{given:?} is no name"));
    }
    let typed = |c: char| {
        if c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':') { c } else { '-' }
    };
    let name: String = given.to_lowercase().chars().map(typed).collect();
    let name = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if name.chars().any(char::is_alphanumeric) {
        Ok(name)
    } else {
        Err(format!("{given:?} is no name"))
    }
}

/// The first line of a text that says something.
fn first_words(body: &str) -> Option<String> {
    let lines = body.lines().map(|line| line.trim().trim_start_matches('#').trim());
    lines.filter(|line| line.chars().any(char::is_alphanumeric)).map(str::to_owned).next()
}
