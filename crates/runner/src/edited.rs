//! A task list that a person edited while its run was paused: read once, checked like a plan, and
//! recorded as a change of the state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use atomic_event::{Event, TaskStatus};
use atomic_graph::task::{BLOCKER_KEYS, CONTENT_KEYS, Task};
use atomic_graph::{Graph, Kind, Node, Reducer};
use atomic_session::{SessionStatus, TaskRow};
use atomic_workflow::{Action, TaskFile};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::edited_rows::{Problem, Row, read_rows};
use crate::project::{Items, task_rows};
use crate::run::{Run, RunError};

/// The keys of a row of `tasks.json`; others that a person writes are taken as they are.
const OWN_KEYS: [&str; 6] = ["id", "content", "status", "activeForm", "blockedBy", "error"];

/// The keys that the engine keeps in the state and never writes to `tasks.json`. A person who could
/// write them would verify a task by hand, or take it for the work of another one.
const ENGINE_KEYS: [&str; 6] =
    ["verified", "attempts", "bugFixes", "mends", "errorCode", "errorDetail"];

/// Whether a person may write a key that is not Atomic's own word.
fn is_free(key: &str) -> bool {
    !OWN_KEYS.contains(&key) && !ENGINE_KEYS.contains(&key)
}

/// The changes that an edited list makes.
#[derive(Default)]
struct Edit {
    /// Rows with what is new in them.
    rows: Vec<Value>,
    changed: Vec<String>,
    added: Vec<String>,
    removed: Vec<String>,
    /// What was written and is not used, such as "`verified` of #2".
    unused: Vec<String>,
}

impl Run {
    /// Reads the task list of a run that was stopped in good order, when somebody has edited it
    /// since. The facts are to be recorded before anything else is done.
    ///
    /// The edits of a run that was cut off may be those of its own agents, so they are not used: they
    /// are kept aside when the list is written again.
    pub(crate) fn edits_while_paused(&mut self) -> Result<Vec<Event>, RunError> {
        match self.book.status {
            SessionStatus::Paused | SessionStatus::Waiting | SessionStatus::Failed => {}
            SessionStatus::Running | SessionStatus::Completed => return Ok(vec![]),
        }
        let state = self.machine.newest();
        let Some(list) = state.get("tasks").and_then(|list| list.as_array()) else {
            return Ok(vec![]);
        };
        let items = self.items();
        let base = task_rows(&Value::Array(list.clone()), &items);
        if base.is_empty() {
            return Ok(vec![]);
        }
        let Some(bytes) = self.session.edited_tasks()? else { return Ok(vec![]) };
        let path = self.paths.tasks.clone();
        let works = self.list_steps();
        if let Some(file) = works.task_file() {
            return Err(belongs_elsewhere(&path, file));
        }
        let refused = |problem: Problem| RunError::Refused(problem.told(&path));
        let known: BTreeSet<&str> = base.iter().map(|row| row.id.as_str()).collect();
        let rows = read_rows(&bytes, self.settings.limits.tasks, &known).map_err(refused)?;
        let before = Before { list, base: &base, items: &items };
        let edit = before.compare(&rows).map_err(refused)?;
        self.session.adopt_tasks(&bytes);
        let unused = edit.told_unused();
        if edit.rows.is_empty() {
            return Ok(unused.into_iter().collect());
        }
        let mut text = edit.told();
        if works == ListSteps::Over && edit.asks_for_work() {
            text += "; the steps that start tasks are over, so no step of this run does them";
        }
        let value = match self.machine.program().graph().reducers.get("tasks") {
            Some(Reducer::MergeById) => Value::Array(edit.rows),
            Some(Reducer::MergeBy(field)) if field == "id" => Value::Array(edit.rows),
            None | Some(Reducer::Replace | Reducer::Call(_)) => {
                Value::Array(merged(list, &edit.rows))
            }
            Some(_) => return Err(self.not_editable(&path)),
        };
        let patch = [("tasks".into(), value)].into();
        let reason = "tasks.json was edited while the run was paused".to_owned();
        let edited = [Event::StatePatched { patch, reason }, Event::Noted { text }];
        Ok(edited.into_iter().chain(unused).collect())
    }

    /// The steps that start the tasks of the list.
    fn list_steps(&self) -> ListSteps {
        let mut found = ListSteps::None;
        if has_list_steps(self.machine.program().graph()) {
            found = ListSteps::Over;
        }
        for node in self.machine.ahead() {
            if is_fan(node) {
                return ListSteps::Fan;
            }
            if let Some(file) = task_file(node) {
                // Where a function says which file it is, only a round knows.
                let mut rounds = self.book.scopes.loop_tasks.values();
                let by_round = rounds.next().filter(|_| file.path_from.is_some());
                found = ListSteps::Loop(by_round.map_or(file.path, |task| task.file.clone()));
            }
        }
        found
    }

    fn not_editable(&self, path: &Path) -> RunError {
        RunError::Refused(format!(
            "{}: the workflow {} combines its tasks in a way that edits cannot be told to\n  \
             hint: undo the edit, or delete the file; Atomic writes it again",
            path.display(),
            self.created.workflow
        ))
    }
}

/// The steps that start the tasks of the list, of those that are under way or still to come.
#[derive(Debug, PartialEq)]
enum ListSteps {
    /// A fan over the list.
    Fan,
    /// A task loop, which reads this file of the project.
    Loop(String),
    /// None, although the workflow has such steps.
    Over,
    /// None. Functions may still read the list.
    None,
}

impl ListSteps {
    /// The file that is read instead of the list.
    fn task_file(&self) -> Option<&str> {
        if let Self::Loop(file) = self { Some(file) } else { None }
    }
}

fn is_fan(node: &Node) -> bool {
    matches!(&node.kind, Kind::Each(each) if each.over.as_str() == "tasks")
}

/// What a step of a task loop does with its file.
fn task_file(node: &Node) -> Option<TaskFile> {
    let Kind::Work { action, .. } = &node.kind else { return None };
    match Action::deserialize(action) {
        Ok(Action::TaskFile(file)) => Some(file),
        _ => None,
    }
}

fn has_list_steps(graph: &Graph) -> bool {
    let inside = |node: &Node| node.inner().iter().any(|(_, graph)| has_list_steps(graph));
    graph.nodes.iter().any(|node| is_fan(node) || task_file(node).is_some() || inside(node))
}

/// The list is made from the file of a task loop in every round, so an edit of it would be lost.
fn belongs_elsewhere(path: &Path, file: &str) -> RunError {
    RunError::Refused(format!(
        "{}: the task loop reads {file}, not this list\n  hint: edit {file}, and delete the list; \
         Atomic writes it again",
        path.display()
    ))
}

/// The task list before it was edited.
struct Before<'a> {
    /// The rows of the state.
    list: &'a [Value],
    /// The rows of the file.
    base: &'a [TaskRow],
    items: &'a Items,
}

impl Before<'_> {
    fn compare(&self, rows: &[Row]) -> Result<Edit, Problem> {
        let mut edit = Edit::default();
        let kept: BTreeMap<&str, &Row> = rows.iter().map(|row| (row.id.as_str(), row)).collect();
        for known in self.base.iter().filter(|known| !kept.contains_key(known.id.as_str())) {
            if self.is_under_way(&known.id) {
                let message = format!("task {} is under way and cannot be removed", known.id);
                return Err(Problem::new(
                    1,
                    message,
                    "put it back; it goes on when the run is resumed",
                ));
            }
            edit.rows.push(json!({"id": known.id, "$removed": true}));
            edit.removed.push(known.id.clone());
        }
        let mut previous: Option<&str> = None;
        for row in rows {
            let known = self.base.iter().find(|known| known.id == row.id);
            let state = self.list.iter().find(|state| Task(state).id() == Some(&row.id));
            let unused = ENGINE_KEYS.iter().filter(|key| {
                let written = row.fields.get(**key);
                written.is_some() && written != state.and_then(|state| state.get(**key))
            });
            edit.unused.extend(unused.map(|key| format!("`{key}` of {}", row.id)));
            if let (Some(known), Some(state)) = (known, state) {
                let fields = self.changes(row, known, state, &edit.removed)?;
                if fields.len() > 1 {
                    edit.rows.push(Value::Object(fields));
                    edit.changed.push(row.id.clone());
                }
            } else {
                edit.rows.push(Value::Object(self.addition(row, previous)?));
                edit.added.push(row.id.clone());
            }
            previous = Some(&row.id);
        }
        Ok(edit)
    }

    fn is_under_way(&self, id: &str) -> bool {
        self.items.running.contains(id) || self.items.failed.contains_key(id)
    }

    /// What a row says that was not said before, with its id.
    fn changes(
        &self,
        row: &Row,
        known: &TaskRow,
        state: &Value,
        removed: &[String],
    ) -> Result<Map<String, Value>, Problem> {
        let mut fields = Map::from_iter([("id".to_owned(), Value::from(row.id.as_str()))]);
        let mut set = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
        if row.content != known.content {
            set(key_in(state, &CONTENT_KEYS), row.content.as_str().into());
        }
        let follows = known.active_form == known.content;
        let active_form = match &row.active_form {
            Some(text) if *text != known.active_form || !follows => text,
            _ if follows => &row.content,
            _ => &known.active_form,
        };
        if *active_form != known.active_form {
            set("activeForm", active_form.as_str().into());
        }
        let error = row.error.as_deref();
        if let Some(status) = row.status.filter(|status| *status != known.status) {
            self.may_become(row, status)?;
            if !self.is_under_way(&row.id) {
                set("status", self.word(status).into());
                let stays = status == TaskStatus::Failed || error != known.error.as_deref();
                set("error", error.filter(|_| stays).into());
                // What was verified was the work before.
                if state.get("verified").is_some_and(|verified| !verified.is_null()) {
                    set("verified", Value::Null);
                }
            }
        } else if error != known.error.as_deref() {
            set("error", error.into());
        }
        // The file leaves out what is done; the state keeps it, for the order of the display.
        let declared: Vec<&str> = Task(state).blockers().collect();
        let is_kept = |id: &&str| !removed.iter().any(|gone| gone == id);
        let stripped =
            declared.iter().filter(|id| !known.blocked_by.iter().any(|open| open == **id));
        let wanted: Vec<&str> = stripped
            .copied()
            .filter(is_kept)
            .chain(row.blocked_by.iter().map(String::as_str))
            .collect();
        let as_set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        if as_set(&wanted) != as_set(&declared) {
            // Both keys count, so the other one must not say what it said before.
            let used = key_in(state, &BLOCKER_KEYS);
            let others = BLOCKER_KEYS.iter().filter(|key| **key != used);
            let stale = others.filter(|key| state.get(**key).is_some());
            stale.for_each(|key| set(key, Value::Null));
            set(used, wanted.into());
        }
        let more = row.fields.iter().filter(|(key, _)| is_free(key));
        for (key, value) in more.filter(|(key, value)| state.get(*key) != Some(*value)) {
            set(key, value.clone());
        }
        Ok(fields)
    }

    fn addition(&self, row: &Row, previous: Option<&str>) -> Result<Map<String, Value>, Problem> {
        let status = row.status.unwrap_or(TaskStatus::Pending);
        self.may_become(row, status)?;
        let first = self.list.first().unwrap_or(&Value::Null);
        let active_form = row.active_form.as_ref().unwrap_or(&row.content);
        let mut fields = row.fields.clone();
        fields.retain(|key, _| is_free(key));
        fields.insert("id".to_owned(), row.id.as_str().into());
        fields.insert(key_in(first, &CONTENT_KEYS).to_owned(), row.content.as_str().into());
        fields.insert("activeForm".to_owned(), active_form.as_str().into());
        fields.insert("status".to_owned(), self.word(status).into());
        let blockers: Vec<&str> = row.blocked_by.iter().map(String::as_str).collect();
        fields.insert(key_in(first, &BLOCKER_KEYS).to_owned(), blockers.into());
        if let Some(error) = &row.error {
            fields.insert("error".to_owned(), error.as_str().into());
        }
        // Null is the top of the list.
        fields.insert("$after".to_owned(), previous.into());
        Ok(fields)
    }

    /// Refuses a status that a person cannot give a task.
    fn may_become(&self, row: &Row, status: TaskStatus) -> Result<(), Problem> {
        let id = &row.id;
        if self.is_under_way(id) {
            if status == TaskStatus::Pending {
                // That is what becomes of it.
                return Ok(());
            }
            let message = format!("task {id} is under way; its status cannot be changed");
            let hint = "put the status back; the task goes on when the run is resumed";
            return Err(Problem::new(row.line_of("status"), message, hint));
        }
        if status == TaskStatus::InProgress {
            let message = format!("task {id} is `in_progress`, and nobody works on it");
            return Err(Problem::new(row.line_of("status"), message, "write `pending`"));
        }
        Ok(())
    }

    /// A status in the words of the list.
    fn word(&self, status: TaskStatus) -> &'static str {
        let words = self.list.iter().filter_map(|row| row.get("status")?.as_str());
        let is_version_1 =
            words.into_iter().any(|word| matches!(word, "passing" | "failing" | "skipped"));
        if is_version_1 { status.version_1_word() } else { status.word() }
    }
}

impl Edit {
    /// What is not used of an edit.
    fn told_unused(&self) -> Option<Event> {
        let names = self.unused.join(", ");
        let text = format!("tasks.json: only Atomic writes {names}; the edit is not used");
        (!self.unused.is_empty()).then_some(Event::Noted { text })
    }

    /// Whether there is something to do in it that was not there before.
    fn asks_for_work(&self) -> bool {
        let is_open = |row: &&Value| {
            row.get("status").is_some() && Task(row).status() == Ok(TaskStatus::Pending)
        };
        self.rows.iter().any(|row| is_open(&row))
    }

    /// What was edited, for people.
    fn told(&self) -> String {
        let parts =
            [("changed", &self.changed), ("added", &self.added), ("removed", &self.removed)];
        let parts = parts.iter().filter(|(_, ids)| !ids.is_empty());
        let parts: Vec<String> =
            parts.map(|(word, ids)| format!("{word} {}", ids.join(", "))).collect();
        format!("tasks.json was edited while the run was paused: {}", parts.join("; "))
    }
}

/// The first of several keys for the same thing that a row uses, or else the first of all.
fn key_in<'k>(row: &Value, keys: &[&'k str]) -> &'k str {
    keys.iter().find(|key| row.get(**key).is_some()).or(keys.first()).copied().unwrap_or_default()
}

/// A list with the rows of an edit in it.
fn merged(list: &[Value], edits: &[Value]) -> Vec<Value> {
    let mut list = list.to_vec();
    for edit in edits {
        let place = |list: &[Value], id: Option<&str>| {
            list.iter().position(|row| id.is_some() && Task(row).id() == id)
        };
        let known = place(&list, Task(edit).id());
        let Some(fields) = edit.as_object() else { continue };
        match known {
            Some(known) if fields.contains_key("$removed") => drop(list.remove(known)),
            Some(known) => {
                if let Some(row) = list[known].as_object_mut() {
                    row.extend(fields.clone());
                }
            }
            None => {
                let mut row = fields.clone();
                let at = match row.remove("$after") {
                    Some(Value::Null) => 0,
                    after => place(&list, after.as_ref().and_then(Value::as_str))
                        .map_or(list.len(), |after| after + 1),
                };
                list.insert(at, Value::Object(row));
            }
        }
    }
    list
}
