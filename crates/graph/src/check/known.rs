//! Names from outside the graph, and which of them an author probably meant.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{FunctionId, Key, NodeId, Patch};

/// What a caller knows besides the graph. A table that is absent is not checked against.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The agents, with their aliases.
    pub agents: Option<BTreeSet<String>>,
    /// The skills, with their aliases.
    pub skills: Option<BTreeSet<String>>,
    /// The commands, with their aliases.
    pub commands: Option<BTreeSet<String>>,
    /// The workflows, with their aliases.
    pub workflows: Option<BTreeSet<String>>,
    /// Whether a model is one that anybody has.
    pub models: Option<JudgeModel>,
    /// The functions.
    pub functions: Option<BTreeSet<FunctionId>>,
    /// The state a run begins with.
    pub state: Option<Patch>,
    /// The keys of that state for one prompt, where a function makes it: for another prompt it may
    /// make others.
    pub keys: Option<BTreeSet<Key>>,
    /// The graphs whose limit was not written by their author, by the nodes around them. Where the
    /// outermost graph is among them, no limit that is looked up in the state was written either.
    pub default_limits: BTreeSet<Vec<NodeId>>,
}

/// Says of a model that nobody has which one was probably meant. Nobody can list all models.
pub type JudgeModel = fn(&str) -> Result<(), Option<String>>;

/// Something a node's action refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// What it is.
    pub kind: UseKind,
    /// Its name.
    pub name: String,
}

impl Use {
    /// A use of the `name` of this kind.
    pub fn new(kind: UseKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

/// What an action refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseKind {
    /// An agent.
    Agent,
    /// A skill.
    Skill,
    /// A command.
    Command,
    /// A workflow.
    Workflow,
    /// A model.
    Model,
    /// A function.
    Function,
    /// A function that only writes a text.
    TextFunction,
    /// A key of the state that the action changes whenever it succeeds.
    Writes,
    /// A key of the state that the action may change.
    MayWrite,
    /// A key of the state that the action may change together with one that it writes.
    Provides,
    /// A node whose output the action is given.
    Output {
        /// Whether the action fails without it.
        is_needed: bool,
    },
    /// A key of the state that a text is filled with, with its path.
    Template {
        /// Whether the text is a shell command.
        in_command: bool,
    },
    /// A template of a command whose value would be run as code; the name is its key.
    UnsafeTemplate {
        /// The place, for a sentence: "inside `$(…)`".
        place: &'static str,
        /// Replacement to suggest; `{key}` stands for the template.
        hint: &'static str,
        /// Whether it counts even when nothing is known to set the key.
        always: bool,
    },
}

/// Says what an action refers to; only the caller can read actions.
pub type Uses<'u> = dyn Fn(&Value) -> Vec<Use> + 'u;

/// For callers whose actions refer to nothing that could be checked.
pub fn no_uses(_: &Value) -> Vec<Use> {
    vec![]
}

/// The longest name, in bytes: it has to fit into the name of a file.
const LONGEST_NAME: usize = 200;

/// A name as it is typed, in lower case: letters, digits, `-`, `_`, `.`, and `:` between the parts
/// of a path. Nothing where it leads away, or where nothing in it can be typed.
pub fn typed(given: &str) -> Option<String> {
    let given = given.trim();
    let leads_away = given.contains('\\') || given.contains("..");
    if leads_away || given.len() > LONGEST_NAME || given.chars().any(char::is_control) {
        return None;
    }
    // People write a command as it is called: `/commit`.
    let given = given.trim_matches('/');
    let typed = |c: char| match c {
        '/' => ':',
        '-' | '_' | '.' | ':' => c,
        _ if c.is_alphanumeric() => c,
        _ => '-',
    };
    let name: String = given.to_lowercase().chars().map(typed).collect();
    let name = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    name.chars().any(char::is_alphanumeric).then_some(name)
}

/// Longer names are compared only as a whole.
const COMPARED: usize = 64;

/// The known name that was probably meant: the same in other case, one with few letters changed,
/// left out, added or swapped, or one of which the other is the beginning.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.to_lowercase().chars().collect();
    let scored = known.filter_map(|candidate| Some((likeness(&wanted, candidate)?, candidate)));
    scored.min().map(|(_, candidate)| candidate)
}

/// How unlike a candidate is, less being closer; `None` when it cannot have been meant.
fn likeness(wanted: &[char], candidate: &str) -> Option<usize> {
    if wanted.is_empty() || candidate.is_empty() {
        return None;
    }
    let known: Vec<char> = candidate.to_lowercase().chars().take(COMPARED + 1).collect();
    let (longer, shorter) = (wanted.len().max(known.len()), wanted.len().min(known.len()));
    let allowed = (wanted.len() / 3).min(3);
    if wanted == known {
        return Some(0);
    }
    if longer > COMPARED {
        return None;
    }
    let difference = longer - shorter;
    if difference <= allowed
        && let Some(distance) = distance(wanted, &known, allowed)
    {
        return Some(distance);
    }
    let begins = shorter >= 3 && wanted[..shorter] == known[..shorter];
    begins.then_some(allowed + difference)
}

/// How many letters have to be changed, left out, added, or swapped with the next, if no more
/// than `allowed`.
fn distance(a: &[char], b: &[char], allowed: usize) -> Option<usize> {
    let mut before_last = vec![];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: usize = before_last[j - 2];
                least = least.min(swapped + 1);
            }
            row.push(least);
        }
        // A swap looks back two rows.
        let is_lost = |row: &[usize]| row.iter().all(|distance| *distance > allowed);
        if is_lost(&row) && is_lost(&last) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    Some(last[b.len()]).filter(|distance| *distance <= allowed)
}
