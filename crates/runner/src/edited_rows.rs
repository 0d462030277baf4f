//! The rows of an edited task list, each with its lines, checked like a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use atomic_event::TaskStatus;
use atomic_graph::check::nearest;
use atomic_graph::task::{BLOCKER_KEYS, STATUS_WORDS, Task};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Something that is wrong on a line of the file.
#[derive(Debug)]
pub(crate) struct Problem {
    line: usize,
    message: String,
    hint: String,
}

impl Problem {
    pub(crate) fn new(line: usize, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { line, message: message.into(), hint: hint.into() }
    }

    /// The problem as it is shown.
    pub(crate) fn told(&self, path: &Path) -> String {
        let Self { line, message, hint } = self;
        format!("{}:{line}: {message}\n  hint: {hint}", path.display())
    }
}

/// A row of the file.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) content: String,
    /// The status, when the row has one.
    pub(crate) status: Option<TaskStatus>,
    pub(crate) active_form: Option<String>,
    pub(crate) blocked_by: Vec<String>,
    pub(crate) error: Option<String>,
    /// Everything it says.
    pub(crate) fields: Map<String, Value>,
    line: usize,
    lines: BTreeMap<String, usize>,
}

impl Row {
    /// The line of a key's value, or else of the row.
    pub(crate) fn line_of(&self, key: &str) -> usize {
        self.lines.get(key).copied().unwrap_or(self.line)
    }

    /// The key under which the row names a task that it waits for.
    fn blocker_key(&self, id: &str) -> &'static str {
        let [first, second] = BLOCKER_KEYS;
        let list = self.fields.get(first).and_then(Value::as_array).into_iter().flatten();
        if list.into_iter().any(|other| other == id) { first } else { second }
    }

    fn wrong(&self, key: &str, message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem::new(self.line_of(key), message, hint)
    }

    /// A text under a key; null and nothing are none.
    fn text(&self, key: &str) -> Result<Option<String>, Problem> {
        match self.fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => {
                Err(self.wrong(key, format!("`{key}` is {other}, not a text"), "write a text"))
            }
        }
    }
}

/// Reads and checks the rows of an edited list. `known` are the ids that it had before.
pub(crate) fn read_rows(
    bytes: &[u8],
    max_tasks: u32,
    known: &BTreeSet<&str>,
) -> Result<Vec<Row>, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Problem::new(line, "the file is not UTF-8", "save it as UTF-8")
    })?;
    let rows: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| {
        let words = error.to_string();
        let why = match error.is_data() {
            true => "the file holds something else",
            false => words.split(" at line ").next().unwrap_or_default(),
        };
        let message = format!("not a JSON list of tasks: {why}");
        Problem::new(error.line().max(1), message, "correct the file, then resume again")
    })?;
    let line = |part: &RawValue| {
        let at = part.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
        1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
    };
    let rows: Vec<Row> = rows.iter().map(|part| row(part, &line)).collect::<Result<_, _>>()?;
    if rows.is_empty() {
        let hint = "put the tasks back, or delete the file; Atomic writes it again";
        return Err(Problem::new(1, "the task list is empty", hint));
    }
    let grows = rows.iter().any(|row| !known.contains(row.id.as_str()));
    if grows && rows.len() > max_tasks as usize {
        let message = format!("the list has {} tasks; at most {max_tasks} are allowed", rows.len());
        return Err(Problem::new(1, message, "remove some of them"));
    }
    check_ids(&rows)?;
    check_order(&rows)?;
    Ok(rows)
}

fn row(part: &RawValue, line: &impl Fn(&RawValue) -> usize) -> Result<Row, Problem> {
    let here = line(part);
    let example = "write {\"id\": \"#9\", \"content\": \"what is to be done\"}";
    let unread = |_| Problem::new(here, "a task is not an object", example);
    let places: BTreeMap<String, &RawValue> = serde_json::from_str(part.get()).map_err(unread)?;
    let fields: Map<String, Value> = serde_json::from_str(part.get()).map_err(unread)?;
    let lines = places.iter().map(|(key, part)| (key.clone(), line(part))).collect();
    let mut row = Row {
        id: String::new(),
        content: String::new(),
        status: None,
        active_form: None,
        blocked_by: vec![],
        error: None,
        fields,
        line: here,
        lines,
    };
    let id = row.fields.get("id").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if id.is_empty() || id.chars().any(char::is_control) {
        return Err(row.wrong("id", "a task has no id", "give it an id such as \"#9\""));
    }
    row.id = id.to_owned();
    let whole = Value::Object(row.fields.clone());
    row.content = Task(&whole).content().map(str::trim).unwrap_or_default().to_owned();
    if row.content.is_empty() {
        let message = format!("task {} has no content", row.id);
        return Err(row.wrong("content", message, "say what is to be done under `content`"));
    }
    row.status = match Task(&whole).status() {
        Ok(status) => row.fields.get("status").filter(|word| !word.is_null()).map(|_| status),
        Err(word) => return Err(unknown_status(&row, word)),
    };
    row.active_form = row.text("activeForm")?;
    row.error = row.text("error")?;
    row.blocked_by = take_blockers(&mut row)?;
    if let Some(key) = row.fields.keys().find(|key| key.starts_with('$')) {
        return Err(row.wrong(key, format!("`{key}` is not a key of a task"), "remove it"));
    }
    Ok(row)
}

fn unknown_status(row: &Row, word: &Value) -> Problem {
    let known = || STATUS_WORDS.iter().map(|(word, _)| *word).take(4);
    let hint = nearest(word.as_str().unwrap_or_default(), known()).map_or_else(
        || format!("write one of {}", known().collect::<Vec<_>>().join(", ")),
        |meant| format!("did you mean \"{meant}\"?"),
    );
    row.wrong("status", format!("task {} has the status {word}", row.id), hint)
}

/// The ids of the tasks that a row waits for, under either of their keys. The second is taken out of
/// the row, because the list is shown and kept under the first.
fn take_blockers(row: &mut Row) -> Result<Vec<String>, Problem> {
    let mut blockers: Vec<String> = vec![];
    for key in BLOCKER_KEYS {
        let Some(list) = row.fields.get(key).filter(|list| !list.is_null()) else { continue };
        let ids = list.as_array().map(|ids| ids.iter().map(Value::as_str).collect());
        let Some(Some(ids)) = ids else {
            let message = format!("task {}: `{key}` is {list}, not a list of ids", row.id);
            return Err(row.wrong(key, message, "write a list such as [\"#1\"]"));
        };
        let ids: Vec<&str> = ids;
        for id in ids {
            if !blockers.iter().any(|known| known == id) {
                blockers.push(id.to_owned());
            }
        }
    }
    BLOCKER_KEYS.iter().skip(1).for_each(|key| drop(row.fields.shift_remove(*key)));
    Ok(blockers)
}

fn check_ids(rows: &[Row]) -> Result<(), Problem> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows {
        if let Some(first) = known.insert(&row.id, row.line) {
            let message = format!("the id {} is used twice; first on line {first}", row.id);
            return Err(row.wrong("id", message, "give one of the tasks another id"));
        }
    }
    for row in rows {
        let unknown = row.blocked_by.iter().find(|id| !known.contains_key(id.as_str()));
        if let Some(unknown) = unknown {
            let message = format!("task {} is blocked by {unknown}, which does not exist", row.id);
            let key = row.blocker_key(unknown);
            let hint = nearest(unknown, known.keys().copied()).map_or_else(
                || format!("remove it from `{key}`, or add the task"),
                |meant| format!("did you mean \"{meant}\"?"),
            );
            return Err(row.wrong(key, message, hint));
        }
    }
    Ok(())
}

/// Finds tasks that wait for each other.
fn check_order(rows: &[Row]) -> Result<(), Problem> {
    let mut left: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
    loop {
        let waits = |row: &Row| row.blocked_by.iter().any(|id| left.contains_key(id.as_str()));
        let free: Vec<&str> =
            left.values().filter(|row| !waits(row)).map(|row| row.id.as_str()).collect();
        if free.is_empty() {
            break;
        }
        for id in free {
            left.remove(id);
        }
    }
    // Every task that is left waits for another one that is left, so walking on finds a circle.
    let Some(mut row) = left.values().next().copied() else { return Ok(()) };
    let mut path: Vec<&Row> = vec![];
    while !path.iter().any(|passed| passed.id == row.id) {
        path.push(row);
        let next = row.blocked_by.iter().find_map(|id| left.get(id.as_str()));
        let Some(next) = next else { return Ok(()) };
        row = next;
    }
    let circle = path.iter().skip_while(|passed| passed.id != row.id);
    let mut ids: Vec<&str> = circle.map(|row| row.id.as_str()).collect();
    ids.push(&row.id);
    let message = format!("tasks wait for each other: {}", ids.join(" -> "));
    let key = ids.get(1).map_or(BLOCKER_KEYS[0], |next| row.blocker_key(next));
    Err(row.wrong(key, message, format!("remove one of them from `{key}`")))
}
