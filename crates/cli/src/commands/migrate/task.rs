//! From an entry of an old list to a task of the new one.

use atomic_graph::check::nearest;
use serde_json::{Map, Number, Value};

use super::source::{Entry, Problem};

/// A task, as version 1.0 of the file has it.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) line: usize,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) status: Status,
    pub(super) priority: Option<Number>,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) metadata: Map<String, Value>,
}

/// What must be done before.
#[derive(Debug)]
pub(super) struct Dependency {
    pub(super) id: String,
    /// The line on which it, or the list it is in, begins.
    pub(super) line: usize,
}

/// The keys of dependencies; what stands under either of them counts.
const DEPENDENCIES: [&str; 2] = ["dependencies", "blockedBy"];

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    InProgress,
    Passing,
    Failing,
    Skipped,
}

/// Every word for a status: those of version 1.0, and ours.
const STATUS_WORDS: [(&str, Status); 8] = [
    ("pending", Status::Pending),
    ("in_progress", Status::InProgress),
    ("passing", Status::Passing),
    ("failing", Status::Failing),
    ("skipped", Status::Skipped),
    ("completed", Status::Passing),
    ("failed", Status::Failing),
    // What blocks it stands with it.
    ("blocked", Status::Pending),
];

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Passing => "passing",
            Self::Failing => "failing",
            Self::Skipped => "skipped",
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_done(self) -> bool {
        match self {
            Self::Passing | Self::Skipped => true,
            Self::Pending | Self::InProgress | Self::Failing => false,
        }
    }
}

/// Understands one entry; what is wrong with it is added to the problems. An entry without an id
/// gets one later.
pub(super) fn task(mut entry: Entry, problems: &mut Vec<Problem>) -> Task {
    let id = id(&mut entry, problems);
    let status = status(&mut entry, problems);
    let dependencies: Vec<Dependency> =
        DEPENDENCIES.iter().flat_map(|key| dependencies(&mut entry, key, problems)).collect();
    let (name, description) = words(&mut entry, problems);
    // A word such as `high` is no number to sort by, but it is not lost either.
    let priority = match entry.fields.get("priority") {
        Some(Value::Number(number)) => Some(number.clone()),
        _ => None,
    };
    if priority.is_some() {
        entry.fields.shift_remove("priority");
    }
    let mut metadata = metadata(&mut entry.fields);
    metadata.extend(entry.fields);
    Task { line: entry.line, id, name, description, status, priority, dependencies, metadata }
}

/// Takes `metadata` out. What is no object there is not lost.
pub(super) fn metadata(fields: &mut Map<String, Value>) -> Map<String, Value> {
    match fields.shift_remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => Map::new(),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_))) => {
            [("metadata".to_owned(), other)].into_iter().collect()
        }
    }
}

fn id(entry: &mut Entry, problems: &mut Vec<Problem>) -> String {
    let given = entry.fields.shift_remove("id").unwrap_or_default();
    id_text(&given).unwrap_or_else(|| {
        let message = format!("entry {}: {given} is no id", entry.number);
        problems.push(Problem::new(
            entry.line_of("id"),
            message,
            "write a text or a number, or leave it out",
        ));
        String::new()
    })
}

/// An id as a text; nothing stands for none.
fn id_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What an id is compared by: `#1` and `1` are the same.
pub(super) fn bare(id: &str) -> &str {
    id.trim().trim_start_matches('#')
}

fn status(entry: &mut Entry, problems: &mut Vec<Problem>) -> Status {
    let (line, number) = (entry.line_of("status"), entry.number);
    let word = entry.fields.shift_remove("status").filter(|word| !word.is_null());
    let passes = entry.fields.shift_remove("passes").filter(|passes| !passes.is_null());
    let passes = passes.and_then(|passes| match passes {
        Value::Bool(passes) => Some(passes),
        other @ (Value::Null
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => {
            let message = format!("entry {number}: `passes: {other}` is neither true nor false");
            let remedy = "write true or false";
            problems.push(Problem::new(entry.line_of("passes"), message, remedy));
            None
        }
    });
    let Some(word) = word else {
        // Whether it was ever tried, nobody says.
        return if passes == Some(true) { Status::Passing } else { Status::Pending };
    };
    let text = word.as_str().unwrap_or_default().trim().to_lowercase().replace(['-', ' '], "_");
    let Some((_, status)) = STATUS_WORDS.iter().find(|(known, _)| *known == text) else {
        let known = || STATUS_WORDS.iter().map(|(known, _)| *known);
        let remedy = nearest(&text, known()).map_or_else(
            || format!("write one of: {}", known().collect::<Vec<_>>().join(", ")),
            |meant| format!("did you mean \"{meant}\"?"),
        );
        let message = format!("entry {number}: unknown status {word}");
        problems.push(Problem::new(line, message, remedy));
        return Status::Pending;
    };
    if passes.is_some_and(|passes| passes != (*status == Status::Passing)) {
        let message = format!("entry {number}: `passes` and `status` contradict each other");
        problems.push(Problem::new(line, message, "leave one of them out"));
    }
    *status
}

/// Takes out the dependencies that stand under a key.
fn dependencies(entry: &mut Entry, key: &str, problems: &mut Vec<Problem>) -> Vec<Dependency> {
    let line = entry.line_of(key);
    let given = entry.fields.shift_remove(key).unwrap_or_default();
    let dependency = |item: &Value| {
        let id = id_text(item).filter(|id| !id.is_empty())?;
        Some(Dependency { id, line })
    };
    let listed = match &given {
        Value::Null => Some(vec![]),
        Value::Array(items) => items.iter().map(dependency).collect::<Option<Vec<_>>>(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    };
    listed.unwrap_or_else(|| {
        let message = format!("entry {}: `{key}: {given}` is no list of ids", entry.number);
        problems.push(Problem::new(line, message, "write a list such as [\"1\", \"2\"]"));
        vec![]
    })
}

/// What is to be done, in short and at length.
fn words(entry: &mut Entry, problems: &mut Vec<Problem>) -> (String, Option<String>) {
    let description = text(entry, "description");
    let name = ["name", "title", "content"].iter().find_map(|key| text(entry, key));
    match (name, description) {
        (Some(name), description) => (name, description),
        (None, Some(description)) => {
            let category = entry.fields.get("category").and_then(Value::as_str);
            (description, category.map(|category| format!("Category: {category}")))
        }
        (None, None) => {
            let message = format!("entry {} has no description", entry.number);
            let remedy = "say what is to be done: {\"description\": \"…\"}";
            problems.push(Problem::new(entry.line, message, remedy));
            (String::new(), None)
        }
    }
}

/// Takes a text out, unless it says nothing.
fn text(entry: &mut Entry, key: &str) -> Option<String> {
    let text = entry.fields.get(key)?.as_str()?.trim().to_owned();
    entry.fields.shift_remove(key);
    (!text.is_empty()).then_some(text)
}
