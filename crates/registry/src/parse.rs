//! From the head of a file to an entity.

mod hooks;
mod tools;

pub(crate) use tools::restricts;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use crate::allowed::Tools;
use crate::entity::{Arguments, Entity, Kind, Origin, Prompt};
use crate::finding::Finding;
use crate::frontmatter::HeadLines;
use crate::keys::{KEPT, READ, spelled};
use crate::normal::{Model, is_yes};
use atomic_graph::check::{nearest, typed};

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

/// How many keys without a meaning are told one by one.
const TOLD: usize = 8;

/// The longest description that is taken from a prompt, in characters.
const MOST_WORDS: usize = 200;

/// What stands in a head, by keys in one spelling.
struct Head<'p> {
    path: &'p Path,
    place: Place<'p>,
    fields: Map<String, Value>,
}

/// Where an entity stands in its file.
#[derive(Clone, Copy)]
pub(crate) enum Place<'p> {
    /// Its keys are on these lines.
    Head(&'p HeadLines),
    /// Whoever called knows better.
    Unknown,
}

/// Understands an entity; `body` is only looked at for what the head does not say.
pub(crate) fn entity(
    found: Found,
    head: Map<String, Value>,
    place: Place<'_>,
    body: &str,
    findings: &mut Vec<Finding>,
) -> Option<Entity> {
    let path = found.origin.path.clone().unwrap_or_default();
    let mut head = Head::of(&path, place, head, findings);
    if head.is_set("disable", findings) {
        let finding = Finding::aside(&path, "it says `disable: true`");
        findings.push(head.at("disable", finding));
        return None;
    }
    let name = head.name(&found.name, findings)?;
    let description = head.text("description", findings).map(with_line_ends);
    let description = description.unwrap_or_else(|| match found.kind {
        Kind::Agent => format!("Agent: {name}"),
        Kind::Command | Kind::Skill => first_words(body).unwrap_or_else(|| {
            format!("{}: {name}", if found.kind == Kind::Skill { "Skill" } else { "Command" })
        }),
    });
    let tools = head.tools(found.kind, found.origin.provider, findings);
    let model = head.text("model", findings).and_then(|raw| Model::read(&raw));
    let arguments = Arguments {
        hint: head.text("argument-hint", findings).filter(|hint| !hint.is_empty()),
        required: head.required(findings),
    };
    let mut aliases = found.aliases;
    for alias in head.list("aliases", findings) {
        match self::name(&alias) {
            Ok(name) => {
                findings.extend(head.respelled("aliases", &alias, &name));
                aliases.push(name);
            }
            Err(NoName::LeadsAway(problem) | NoName::Unusable(problem)) => {
                findings.push(head.odd("aliases", problem, "choose another alias"));
            }
        }
    }
    let mut seen = BTreeSet::from([name.clone()]);
    aliases.retain(|alias| seen.insert(alias.clone()));
    let hidden = head.is_set("hidden", findings);
    head.fields.shift_remove("hidden");
    head.tell_unknown(findings);
    let more = head.fields;
    Some(Entity {
        kind: found.kind,
        name,
        aliases,
        description: description.into(),
        tools,
        model,
        arguments,
        hidden,
        more,
        origin: found.origin,
        prompt: found.prompt,
    })
}

/// Reads the restrictions of an agent, and nothing else.
pub(crate) fn restrictions(
    origin: &Origin,
    fields: Map<String, Value>,
    findings: &mut Vec<Finding>,
) -> Tools {
    let path = origin.path.clone().unwrap_or_default();
    let mut head = Head::of(&path, Place::Unknown, fields, findings);
    head.tools(Kind::Agent, origin.provider, findings)
}

impl<'p> Head<'p> {
    fn of(
        path: &'p Path,
        place: Place<'p>,
        fields: Map<String, Value>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let mut head = Self { path, place, fields: Map::new() };
        for (key, value) in fields {
            let spelled = spelled(&key);
            if head.fields.contains_key(&spelled) {
                let message =
                    format!("`{key}` is `{spelled}`, which is there twice; the last one holds");
                findings.push(head.odd(&spelled, message, "remove one of them"));
            }
            head.fields.insert(spelled, value);
        }
        head
    }

    /// A finding about what stands behind a key.
    pub(super) fn odd(&self, key: &str, message: impl Into<String>, remedy: &str) -> Finding {
        self.at(key, Finding::odd(self.path, message, remedy))
    }

    /// The same finding, on the line of a key.
    fn at(&self, key: &str, finding: Finding) -> Finding {
        let line = match self.place {
            Place::Head(lines) => lines.of(key),
            Place::Unknown => None,
        };
        Finding { line, ..finding }
    }

    /// Whether something is switched on.
    fn is_set(&self, key: &str, findings: &mut Vec<Finding>) -> bool {
        let Some(value) = self.fields.get(key).filter(|value| !value.is_null()) else {
            return false;
        };
        is_yes(value).unwrap_or_else(|| {
            let value = shortened(&value.to_string());
            let message = format!("`{key}: {value}` is neither true nor false and counts as false");
            findings.push(self.odd(key, message, "write true or false"));
            false
        })
    }

    /// Takes the name out; nothing where it leads away. What cannot be typed is called as its file.
    fn name(&mut self, file: &str, findings: &mut Vec<Finding>) -> Option<String> {
        let given = self.text("name", findings).unwrap_or_else(|| file.to_owned());
        let found = match name(&given) {
            Err(NoName::Unusable(problem)) if given != file => {
                let remedy = "choose another `name`";
                let Ok(name) = name(file) else {
                    let message = format!("{problem}, and neither is {:?}", shortened(file));
                    findings.push(self.at("name", Finding::skipped(self.path, message, remedy)));
                    return None;
                };
                let message = format!("{problem}: it is called as its file");
                findings.push(self.odd("name", message, remedy));
                return Some(name);
            }
            found => found,
        };
        let name = match found {
            Ok(name) => name,
            Err(NoName::LeadsAway(problem) | NoName::Unusable(problem)) => {
                let finding = Finding::skipped(self.path, problem, "choose another `name`");
                findings.push(self.at("name", finding));
                return None;
            }
        };
        findings.extend(self.respelled("name", &given, &name));
        Some(name)
    }

    /// What is said about a name that is typed otherwise than it was written.
    fn respelled(&self, key: &str, given: &str, name: &str) -> Option<Finding> {
        let given = given.trim();
        let message = format!("`{given}` cannot be typed as a name: it is called `{name}`");
        let remedy = format!("use letters, digits, `-` and `_` in `{key}`");
        (name != given.to_lowercase()).then(|| self.odd(key, message, &remedy))
    }

    /// Takes a value out that must be a text. Numbers are taken for texts, lists are put together.
    fn text(&mut self, key: &str, findings: &mut Vec<Finding>) -> Option<String> {
        let value = self.fields.shift_remove(key)?;
        let text = match &value {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Array(items) if key == "model" && items.len() > 1 => {
                let first = plain(&items[0]);
                let message = format!("`model` names several; `{first}` is meant");
                findings.push(self.odd(key, message, "write one"));
                first
            }
            Value::Array(items) => {
                let all = items.iter().map(plain).collect::<Vec<_>>().join(", ");
                // `argument-hint: [message]` is meant as it is written.
                if key == "argument-hint" { format!("[{all}]") } else { all }
            }
            Value::Object(_) => {
                let message = format!("`{key}` is no text and is left out");
                findings.push(self.odd(key, message, "write a text"));
                return None;
            }
        };
        let text = text.trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Takes a list of names out; a text with commas is one too.
    pub(super) fn list(&mut self, key: &str, findings: &mut Vec<Finding>) -> Vec<String> {
        match self.fields.shift_remove(key) {
            None | Some(Value::Null) => vec![],
            Some(Value::String(text)) => {
                let text = text.trim().trim_start_matches('[').trim_end_matches(']');
                let names = text.split(',').map(|name| name.trim().to_owned());
                names.filter(|name| !name.is_empty()).collect()
            }
            Some(Value::Array(items)) => items.iter().map(plain).collect(),
            Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Object(_))) => {
                let message = format!("`{key}: {other}` is no list and is left out");
                findings.push(self.odd(key, message, "write a list"));
                vec![]
            }
        }
    }

    /// Takes the names of what must be typed out: `[a, b]`, `a, b`, `a b` or `<a> <b>`.
    fn required(&mut self, findings: &mut Vec<Finding>) -> Vec<String> {
        let key = "required-arguments";
        let given = match self.fields.get(key) {
            Some(Value::String(text)) if !text.contains(',') => {
                let text = text.trim();
                let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
                let inner = inner.filter(|inner| !inner.contains(['[', ']']));
                let given = groups(inner.unwrap_or(text));
                self.fields.shift_remove(key);
                given
            }
            Some(_) | None => self.list(key, findings),
        };
        // What is in brackets may be left out.
        let given = given.into_iter().filter(|name| !name.starts_with('['));
        let bare = given.map(|name| name.trim_matches(['<', '>']).trim().to_owned());
        bare.filter(|name| !name.is_empty()).collect()
    }

    fn tell_unknown(&self, findings: &mut Vec<Finding>) {
        let is_known = |key: &str| KEPT.contains(&key) || READ.contains(&key);
        let unknown: Vec<&String> = self.fields.keys().filter(|key| !is_known(key)).collect();
        if let Some(more) = unknown.len().checked_sub(TOLD).filter(|more| *more > 0) {
            let message = format!("{more} more keys mean nothing here");
            findings.push(self.odd(unknown[TOLD], message, "remove them"));
        }
        for key in unknown.into_iter().take(TOLD) {
            let meant = nearest(key, READ.iter().chain(KEPT).copied());
            let message = format!("`{}` means nothing here", shortened(key));
            let remedy = meant.map_or_else(
                || "remove it, unless another program reads it".to_owned(),
                |meant| format!("did you mean `{meant}`?"),
            );
            findings.push(self.odd(key, message, &remedy));
        }
    }
}

/// Words between blanks; what is in angle or square brackets is one of them.
fn groups(text: &str) -> Vec<String> {
    let (mut depth, mut groups) = (0_usize, vec![String::new()]);
    for c in text.chars() {
        match c {
            '<' | '[' => depth += 1,
            '>' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && c.is_whitespace() {
            groups.push(String::new());
        } else if let Some(group) = groups.last_mut() {
            group.push(c);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

/// Why something cannot be a name.
#[derive(Debug)]
pub(crate) enum NoName {
    /// It leads out of its folder: nobody writes that by mistake.
    LeadsAway(String),
    /// There is nothing in it that can be typed, or too much.
    Unusable(String),
}

/// A name as it is typed.
pub(crate) fn name(given: &str) -> Result<String, NoName> {
    let given = given.trim();
    if given.contains('\\') || given.contains("..") {
        return Err(NoName::LeadsAway(format!("{:?} is no name", shortened(given))));
    }
    let unusable = || NoName::Unusable(format!("{:?} is no name", shortened(given)));
    typed(given).ok_or_else(unusable)
}

/// As much of a text as fits into a message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Descriptions that were generated have `\\n` in them where a line ends.
fn with_line_ends(text: String) -> String {
    let is_generated = ["\\n\\n", "\\n<", "\\n-"].iter().any(|sign| text.contains(sign));
    if is_generated { text.replace("\\n", "\n") } else { text }
}

/// The first words of a text that says something.
pub(crate) fn first_words(body: &str) -> Option<String> {
    let lines = body.lines().map(|line| line.trim().trim_start_matches('#').trim());
    let line = lines.into_iter().find(|line| line.chars().any(char::is_alphanumeric))?;
    let Some((end, _)) = line.char_indices().nth(MOST_WORDS) else { return Some(line.to_owned()) };
    let cut = &line[..end];
    // In the middle of a word, unless it is all of it.
    let whole = cut.rsplit_once(char::is_whitespace).map_or(cut, |(whole, _)| whole.trim_end());
    Some(format!("{whole}…"))
}
