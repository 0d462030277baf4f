//! A file with a list of features or tasks, and where in it everything stands.

use std::collections::BTreeMap;
use std::path::Path;

use atomic_files::{FileKind, Refusal};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::keys::repeated;
use crate::failure::Failure;
use crate::paint;

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// How many problems are told at once.
pub(super) const MOST_PROBLEMS: usize = 20;

/// The keys under which a list may stand.
const LISTS: [&str; 2] = ["features", "tasks"];

/// A file that was read.
pub(super) struct Source {
    path: String,
    text: String,
    /// Where every line ends, in bytes.
    line_ends: Vec<usize>,
}

/// Something that is wrong at a line.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) line: usize,
    /// Where on it, when that helps.
    column: Option<usize>,
    message: String,
    remedy: String,
}

/// What stands in a file.
pub(super) struct Listed {
    pub(super) entries: Vec<Entry>,
    /// What is said about the list as a whole.
    pub(super) about: Map<String, Value>,
}

/// One feature or task.
pub(super) struct Entry {
    /// Its place in the list, counted from 1.
    pub(super) number: usize,
    pub(super) line: usize,
    pub(super) fields: Map<String, Value>,
    /// Where the value of each key begins.
    lines: BTreeMap<String, usize>,
}

impl Entry {
    /// The line of a key's value.
    pub(super) fn line_of(&self, key: &str) -> usize {
        self.lines.get(key).copied().unwrap_or(self.line)
    }
}

impl Problem {
    pub(super) fn new(line: usize, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { line, column: None, message: message.into(), remedy: remedy.into() }
    }
}

impl Source {
    /// Reads a file, whatever stands in its place.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let place = path.display().to_string();
        let refused = |why: &str| Failure::Failed(format!("{place}: {why}"));
        let bytes = atomic_files::read(path, MOST_BYTES).map_err(|error| {
            match atomic_files::refusal(&error) {
                Some(Refusal::NotRegular(FileKind::Folder)) => {
                    refused("this is a folder; name the file in it")
                }
                Some(large @ Refusal::TooLarge { .. }) => {
                    refused(&format!("{large}; is it the right file?"))
                }
                Some(other) => refused(&other.to_string()),
                None if error.kind() == std::io::ErrorKind::NotFound => {
                    refused("there is no such file")
                }
                None => refused(&format!("it cannot be read: {error}")),
            }
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Failure::Failed(format!("{place}:{line}: it is not UTF-8; save it as UTF-8"))
        })?;
        let text = text.trim_start_matches('\u{feff}').to_owned();
        if text.trim().is_empty() {
            return Err(refused("it is empty; there is nothing to migrate"));
        }
        let line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Ok(Self { path: place, text, line_ends })
    }

    /// The path, as it was typed.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Everything that is wrong, as it is shown.
    pub(super) fn failure(&self, problems: &[Problem]) -> Failure {
        let show = |problem: &Problem| {
            let Problem { line, column, message, remedy } = problem;
            let column = column.map_or_else(String::new, |column| format!(":{column}"));
            format!("{}:{line}{column}: {message}\n  help: {remedy}", self.path)
        };
        let mut lines: Vec<String> = problems.iter().take(MOST_PROBLEMS).map(show).collect();
        if let Some(more) = problems.len().checked_sub(MOST_PROBLEMS).filter(|more| *more > 0) {
            lines.push(format!("… and {more} more"));
        }
        Failure::Failed(paint::printable(&lines.join("\n")))
    }

    /// The entries of the list, in whichever of the shapes it is.
    pub(super) fn listed(&self) -> Result<Listed, Vec<Problem>> {
        let root: &RawValue = serde_json::from_str(&self.text).map_err(|error| {
            let message = format!("this is not JSON: {}", words_of(&error));
            let problem = Problem::new(error.line(), message, "mend it, then try again");
            vec![Problem { column: Some(error.column()), ..problem }]
        })?;
        let repeated = repeated(self, root);
        if !repeated.is_empty() {
            return Err(repeated);
        }
        match kind(root) {
            "a list" => {
                let rows: Vec<&RawValue> =
                    parsed(root).map_err(|error| self.unread(root, &error))?;
                Ok(Listed { entries: self.entries(&rows)?, about: Map::new() })
            }
            "an object" => self.in_object(root),
            other => {
                let message = format!("this is {other}, not a list of features or tasks");
                let remedy = "name a file with a list, or an object with `features` or `tasks`";
                Err(vec![Problem::new(self.line(root), message, remedy)])
            }
        }
    }

    /// An object with a list in it, or a single feature.
    fn in_object(&self, root: &RawValue) -> Result<Listed, Vec<Problem>> {
        let places: BTreeMap<String, &RawValue> =
            parsed(root).map_err(|error| self.unread(root, &error))?;
        let mut about: Map<String, Value> =
            parsed(root).map_err(|error| self.unread(root, &error))?;
        let found: Vec<(&str, &RawValue)> =
            LISTS.iter().filter_map(|key| Some((*key, *places.get(*key)?))).collect();
        match found.as_slice() {
            [(key, list)] if kind(list) == "a list" => {
                self.check_version(places.get("version").copied())?;
                about.shift_remove(*key);
                let rows: Vec<&RawValue> =
                    parsed(list).map_err(|error| self.unread(list, &error))?;
                Ok(Listed { entries: self.entries(&rows)?, about })
            }
            [(key, other)] => {
                let message = format!("`{key}` is {}, not a list", kind(other));
                let remedy = format!("write a list behind `{key}`");
                Err(vec![Problem::new(self.line(other), message, remedy)])
            }
            [] if about.contains_key("description") => {
                Ok(Listed { entries: self.entries(&[root])?, about: Map::new() })
            }
            [] => {
                let remedy = "put the list under `features` or `tasks`, or let it stand alone";
                Err(vec![Problem::new(self.line(root), "there is no list in it", remedy)])
            }
            [_, ..] => {
                let message = "it has both `features` and `tasks`";
                Err(vec![Problem::new(self.line(root), message, "leave one of them out")])
            }
        }
    }

    /// What a later version means by its keys, nobody knows yet.
    fn check_version(&self, version: Option<&RawValue>) -> Result<(), Vec<Problem>> {
        let Some(version) = version.filter(|version| kind(version) != "null") else {
            return Ok(());
        };
        let major = version.get().trim_matches('"').trim_start_matches('v').split('.').next();
        if major.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major <= 1) {
            return Ok(());
        }
        let message = format!("this is a list of version {}; version 1 is read", version.get());
        let remedy = "use an atomic that knows it, or write the list as one of version 1.0";
        Err(vec![Problem::new(self.line(version), message, remedy)])
    }

    fn entries(&self, rows: &[&RawValue]) -> Result<Vec<Entry>, Vec<Problem>> {
        let (mut entries, mut problems) = (vec![], vec![]);
        for (index, row) in rows.iter().enumerate() {
            match self.entry(index + 1, row) {
                Ok(entry) => entries.push(entry),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(entries) } else { Err(problems) }
    }

    fn entry(&self, number: usize, row: &RawValue) -> Result<Entry, Problem> {
        let line = self.line(row);
        if kind(row) != "an object" {
            let message = format!("entry {number} is {}, not an object", kind(row));
            let remedy = "write {\"description\": \"what is to be done\"}";
            return Err(Problem::new(line, message, remedy));
        }
        let unread = |error: serde_json::Error| {
            let message = format!("entry {number} cannot be read: {}", words_of(&error));
            Problem::new(line + error.line().saturating_sub(1), message, "mend it, then try again")
        };
        let fields: Map<String, Value> = parsed(row).map_err(unread)?;
        let places: BTreeMap<String, &RawValue> = parsed(row).map_err(unread)?;
        let lines = places.into_iter().map(|(key, value)| (key, self.line(value))).collect();
        Ok(Entry { number, line, fields, lines })
    }

    fn unread(&self, part: &RawValue, error: &serde_json::Error) -> Vec<Problem> {
        let line = self.line(part) + error.line().saturating_sub(1);
        vec![Problem::new(line, words_of(error), "mend it, then try again")]
    }

    /// The line a part of the text begins at.
    pub(super) fn line(&self, part: &RawValue) -> usize {
        let at = part.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        1 + self.line_ends.partition_point(|end| *end < at)
    }
}

pub(super) fn parsed<'t, T: serde::Deserialize<'t>>(
    part: &'t RawValue,
) -> Result<T, serde_json::Error> {
    serde_json::from_str(part.get())
}

/// What it is, for a sentence.
pub(super) fn kind(part: &RawValue) -> &'static str {
    match part.get().as_bytes().first() {
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// What is wrong, without the place, which is told in our own way.
fn words_of(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}
