//! Restrictions in the form of OpenCode's `permission`, and Claude Code's permission modes: ordered
//! decisions, of which the last one that fits a use of a tool holds.

use std::fmt;

use serde_json::{Map, Value};

use crate::normal::is_yes;
use crate::tools;

/// A decision about a permission, or about some uses of its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The permission's name, a tool's, or a pattern with `*` for the names of tools.
    pub key: String,
    /// Which uses: a pattern for the command, path, address or name; absent: all.
    pub uses: Option<String>,
    /// Whether they are allowed.
    pub allowed: bool,
}

/// OpenCode's permissions, with the tools that go by each.
const PERMISSIONS: &[(&str, &[&str])] = &[
    ("read", &["read", "notebookread"]),
    ("edit", &["edit", "write", "multiedit", "patch", "notebookedit"]),
    ("glob", &["glob"]),
    ("grep", &["grep"]),
    ("list", &["ls"]),
    ("bash", &["bash", "bashoutput", "bashinput", "killshell", "listshells", "monitor"]),
    ("task", &["task", "taskoutput", "taskstop", "listagents", "sendmessage"]),
    ("skill", &["skill", "slashcommand"]),
    ("lsp", &["lsp"]),
    ("question", &["question"]),
    ("webfetch", &["webfetch"]),
    ("websearch", &["websearch"]),
    ("codesearch", &["codesearch"]),
    ("todowrite", &["todowrite", "todoread", "taskcreate", "taskget", "tasklist", "taskupdate"]),
    ("todoread", &["todoread"]),
    ("plan_enter", &["enterplanmode"]),
    ("plan_exit", &["exitplanmode"]),
    (OUTSIDE, &[]),
    // Permissions for something that is not a use of a tool.
    ("doom_loop", &[]),
    ("model_override", &[]),
];

/// The permission for paths outside of the workspace. Backends know it by this name.
const OUTSIDE: &str = "external_directory";

/// Names of tools that go by the permission `edit` in OpenCode.
const EDITING: [&str; 4] = ["write", "patch", "multiedit", "apply_patch"];

/// The permissions of an agent that only reads, as in Claude Code's plan mode.
const READING: &[&str] = &[
    "read",
    "glob",
    "grep",
    "list",
    "lsp",
    "webfetch",
    "websearch",
    "codesearch",
    "task",
    "skill",
    "todowrite",
    "question",
    "plan_exit",
    "toolsearch",
];

impl Decision {
    fn new(key: &str, uses: Option<&str>, allowed: bool) -> Self {
        let uses = uses.filter(|uses| *uses != "*").map(str::to_owned);
        Self { key: key.to_lowercase(), uses, allowed }
    }

    /// The names that a backend has for the tools it is about. Names and patterns for tools of MCP
    /// servers are the same everywhere.
    pub fn on(&self, backend: &str) -> Vec<String> {
        let is_pattern = self.key.contains('*');
        let known = |name: &str| {
            tools::on(backend, name).into_iter().map(|(own, _)| own).collect::<Vec<_>>()
        };
        let by_permission = |(name, tools): &(&str, &[&str])| match *name {
            OUTSIDE => vec![OUTSIDE.to_owned()],
            _ => tools.iter().flat_map(|tool| known(tool)).collect::<Vec<_>>(),
        };
        let mut names: Vec<String> = match (self.key.as_str(), is_pattern) {
            ("*", _) => vec![],
            (key, true) => {
                let fits = |(name, _): &&(&str, &[&str])| fits(key, name);
                PERMISSIONS.iter().filter(fits).flat_map(by_permission).collect()
            }
            (key, false) => match PERMISSIONS.iter().find(|(name, _)| *name == key) {
                Some(permission) => by_permission(permission),
                None => known(key),
            },
        };
        if is_pattern {
            names.push(self.key.clone());
        }
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// Whether it is about one of our tools.
    pub(crate) fn is_about(&self, tool: &str) -> bool {
        let by_permission = |(name, tools): &(&str, &[&str])| {
            tools.contains(&tool) && (*name == self.key || fits(&self.key, name))
        };
        fits(&self.key, tool) || PERMISSIONS.iter().any(by_permission)
    }

    /// Its key, when it is the name of nothing that is known.
    pub(crate) fn unknown(&self) -> Option<String> {
        let is_known = PERMISSIONS.iter().any(|(name, _)| *name == self.key);
        let is_open = self.key.contains('*') || is_known || READING.contains(&self.key.as_str());
        (!is_open).then(|| tools::unknown(&self.key)).flatten().map(|unknown| unknown.name)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.uses {
            Some(uses) => write!(f, "{}({uses})", self.key),
            None => f.write_str(&self.key),
        }
    }
}

/// The decisions that were read, and the problems. Whatever has a problem is denied.
#[derive(Debug, Default)]
pub(crate) struct Decided {
    pub(crate) layer: Vec<Decision>,
    pub(crate) problems: Vec<String>,
}

/// Reads OpenCode's `tools` and `permission` of one place. The former are older names for the
/// latter and come first, as in OpenCode.
pub(crate) fn read(switches: Option<&Map<String, Value>>, permission: Option<&Value>) -> Decided {
    let mut keys: Map<String, Value> = Map::new();
    let mut decided = Decided::default();
    for (tool, value) in switches.into_iter().flatten() {
        let tool = tool.trim().to_lowercase();
        let allowed = is_yes(value).unwrap_or_else(|| {
            let problem = format!("`{tool}: {}` is neither true nor false", short(value));
            decided.problems.push(problem);
            false
        });
        let key = if EDITING.contains(&tool.as_str()) { "edit".to_owned() } else { tool };
        keys.insert(key, Value::Bool(allowed));
    }
    match permission {
        None => {}
        Some(Value::Object(fields)) => {
            for (key, value) in fields {
                keys.insert(key.trim().to_lowercase(), value.clone());
            }
        }
        Some(value @ (Value::String(_) | Value::Bool(_))) => {
            keys.insert("*".to_owned(), value.clone());
        }
        Some(value) => {
            decided.problems.push(format!("`{}` does not say what is allowed", short(value)));
            keys.insert("*".to_owned(), Value::Bool(false));
        }
    }
    for (key, value) in &keys {
        decided.add(key, value);
    }
    decided
}

impl Decided {
    fn add(&mut self, key: &str, value: &Value) {
        let Value::Object(patterns) = value else {
            let allowed = self.action(key, value);
            self.push(key, None, allowed);
            return;
        };
        if patterns.is_empty() {
            self.problems.push(format!("`{key}` has no patterns"));
            self.push(key, None, false);
        }
        for (pattern, value) in patterns {
            // A pattern whose meaning is lost is lost as a whole: the others may depend on it.
            let known = self.problems.len();
            let allowed = self.action(&format!("{key}.{pattern}"), value);
            let is_lost = self.problems.len() > known;
            self.push(key, Some(pattern).filter(|_| !is_lost).map(String::as_str), allowed);
        }
    }

    /// In OpenCode a file is written by the permission to edit, so a word about `write` alone is
    /// not heard there. A prohibition counts all the same.
    fn push(&mut self, key: &str, uses: Option<&str>, allowed: bool) {
        match (EDITING.contains(&key), allowed) {
            (true, true) => {}
            (true, false) => self.layer.push(Decision::new("edit", uses, false)),
            (false, _) => self.layer.push(Decision::new(key, uses, allowed)),
        }
    }

    /// Returns whether a value allows. Agents work without permission prompts, so `ask` allows, as
    /// with OpenCode's own `--auto`.
    fn action(&mut self, key: &str, value: &Value) -> bool {
        let word = value.as_str().map(|word| word.trim().to_lowercase());
        match word.as_deref() {
            Some("allow" | "ask") => true,
            Some("deny") => false,
            _ => is_yes(value).unwrap_or_else(|| {
                let value = short(value);
                self.problems.push(format!("`{key}: {value}` is not allow, ask or deny"));
                false
            }),
        }
    }
}

/// A permission mode of Claude Code.
pub(crate) enum Mode {
    /// A mode that does not restrict, because agents work without permission prompts.
    Free,
    /// A mode that allows only reading, which needs no permission.
    Reading(Vec<Decision>),
    /// A mode that is not known.
    Unknown,
}

/// Reads `permissionMode`.
pub(crate) fn mode(text: &str) -> Mode {
    match text.trim().to_lowercase().as_str() {
        "default" | "manual" | "acceptedits" | "bypasspermissions" | "auto" => Mode::Free,
        "plan" | "dontask" => Mode::Reading(reading()),
        _ => Mode::Unknown,
    }
}

/// Only these agents as helpers; `*` stands for all of them.
pub(crate) fn helpers(names: impl Iterator<Item = String>) -> Vec<Decision> {
    let allowed = names.map(|name| Decision::new("task", Some(&name), true));
    std::iter::once(Decision::new("task", None, false)).chain(allowed).collect()
}

/// Returns the layer that denies every tool.
pub(crate) fn nothing() -> Vec<Decision> {
    vec![Decision::new("*", None, false)]
}

/// Only what reads.
pub(crate) fn reading() -> Vec<Decision> {
    let allowed = READING.iter().map(|key| Decision::new(key, None, true));
    std::iter::once(Decision::new("*", None, false)).chain(allowed).collect()
}

/// The rules that OpenCode has for its own agents. Settings for one of them come after these.
pub(crate) fn native(agent: &str) -> Vec<Decision> {
    let deny = |key: &str| Decision::new(key, None, false);
    let allow = |key: &str| Decision::new(key, None, true);
    match agent {
        "plan" => vec![deny("edit"), Decision::new("edit", Some(".opencode/plans/*.md"), true)],
        "general" => vec![deny("todowrite")],
        "explore" => {
            let reads = ["grep", "glob", "list", "bash", "webfetch", "websearch", "read"];
            std::iter::once(deny("*")).chain(reads.map(allow)).collect()
        }
        "compaction" | "title" | "summary" => vec![deny("*")],
        _ => vec![],
    }
}

/// Whether some use of one of our tools is allowed.
pub(crate) fn may_use(layer: &[Decision], tool: &str) -> bool {
    for decision in layer.iter().rev().filter(|decision| decision.is_about(tool)) {
        if decision.allowed {
            return true;
        }
        if decision.uses.is_none() {
            return false;
        }
    }
    true
}

/// A layer in a few words: `all but edit, bash(rm *)`, or `read, grep`.
pub(crate) fn shown(layer: &[Decision]) -> String {
    if layer == reading() {
        return "what only reads".to_owned();
    }
    let general = layer.iter().rposition(|it| it.key == "*" && it.uses.is_none());
    let (is_closed, rest) = match general {
        Some(at) => (!layer[at].allowed, &layer[at + 1..]),
        None => (false, layer),
    };
    // A decision about all uses of something makes those before it meaningless.
    let mut left: Vec<&Decision> = vec![];
    for decision in rest {
        if decision.uses.is_none() {
            left.retain(|it| it.key != decision.key);
        }
        left.push(decision);
    }
    let of = |allowed: bool| {
        let some = left.iter().filter(|it| it.allowed == allowed);
        some.map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let is_special = |it: &&&Decision| it.allowed && it.uses.is_some();
    match (is_closed, of(true), of(false)) {
        (true, allowed, _) if allowed.is_empty() => "none".to_owned(),
        (true, allowed, denied) if denied.is_empty() => allowed,
        (true, allowed, denied) => format!("{allowed} but {denied}"),
        (false, _, denied) if denied.is_empty() => "all".to_owned(),
        (false, _, denied) => {
            let again: Vec<String> =
                left.iter().filter(is_special).map(ToString::to_string).collect();
            let again = match again.is_empty() {
                true => String::new(),
                false => format!(", except {}", again.join(", ")),
            };
            format!("all but {denied}{again}")
        }
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Whether a name fits a pattern with `*` in it.
fn fits(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    let parts: Vec<&str> = pattern.split('*').collect();
    let [first, .., last] = parts.as_slice() else { return pattern == name };
    let Some(behind) = rest.strip_prefix(first) else { return false };
    rest = behind;
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
