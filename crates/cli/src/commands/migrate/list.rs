//! The whole list: checked, in the shape of version 1.0, and as Ralph takes it.

use std::collections::{BTreeMap, BTreeSet};

use atomic_graph::check::nearest;
use serde_json::{Map, Value, json};

use super::source::{Listed, MOST_PROBLEMS, Problem};
use super::task::{Status, Task, bare, metadata, task};

/// The longest `content` of a task of Ralph, in characters.
const CONTENT: usize = 80;

/// Tasks that fit together.
pub(super) struct TaskList {
    pub(super) tasks: Vec<Task>,
    /// What is said about the list as a whole.
    about: Map<String, Value>,
}

impl TaskList {
    /// Understands what stands in a file; the error is everything that is wrong with it.
    pub(super) fn of(listed: Listed) -> Result<Self, Vec<Problem>> {
        let mut problems = vec![];
        if listed.entries.is_empty() {
            let remedy = "name a file with at least one feature or task";
            problems.push(Problem::new(
                1,
                "the list is empty; there is nothing to migrate",
                remedy,
            ));
        }
        let entries = listed.entries.into_iter();
        let mut tasks: Vec<Task> = entries.map(|entry| task(entry, &mut problems)).collect();
        number(&mut tasks);
        check_ids(&tasks, &mut problems);
        check_dependencies(&mut tasks, &mut problems);
        if problems.is_empty() {
            check_order(&tasks, &mut problems);
        }
        problems.sort_by_key(|problem| problem.line);
        if problems.is_empty() { Ok(Self { tasks, about: listed.about }) } else { Err(problems) }
    }

    /// What the list is called, when it says so.
    pub(super) fn title(&self) -> Option<&str> {
        let said = |about: &Map<String, Value>, key: &str| about.get(key)?.as_str().map(str::len);
        let key = ["title", "name", "project", "description"]
            .into_iter()
            .find(|key| said(&self.about, key).is_some_and(|length| length > 0))?;
        self.about.get(key)?.as_str()
    }

    /// How many tasks stand like this.
    pub(super) fn count(&self, status: Status) -> usize {
        self.tasks.iter().filter(|task| task.status == status).count()
    }

    /// The file of version 1.0.
    pub(super) fn file(&self, now: &str) -> Value {
        let tasks: Vec<Value> = self.tasks.iter().map(written).collect();
        let mut about = self.about.clone();
        about.shift_remove("version");
        let mut metadata = metadata(&mut about);
        metadata.extend(about);
        metadata.entry("createdAt").or_insert_with(|| now.into());
        metadata.insert("updatedAt".to_owned(), now.into());
        metadata.insert("source".to_owned(), "migrated".into());
        json!({"version": "1.0", "tasks": tasks, "metadata": metadata})
    }

    /// The rows as Ralph's planner would return them, with what is done already. Lower priorities
    /// come first.
    pub(super) fn rows(&self) -> Vec<Value> {
        let priority = |task: &&Task| {
            task.priority.as_ref().and_then(serde_json::Number::as_f64).unwrap_or(0.0)
        };
        let mut tasks: Vec<&Task> = self.tasks.iter().collect();
        tasks.sort_by(|one, other| priority(one).total_cmp(&priority(other)));
        let ids = ralph_ids(&self.tasks);
        tasks.into_iter().map(|task| row(task, &ids)).collect()
    }
}

/// Gives every task without an id the first number that is free, from its own place on.
fn number(tasks: &mut [Task]) {
    let taken: BTreeSet<String> =
        tasks.iter().map(|task| bare(&task.id).to_owned()).filter(|id| !id.is_empty()).collect();
    let mut free = 1;
    for (index, task) in tasks.iter_mut().enumerate() {
        if !bare(&task.id).is_empty() {
            continue;
        }
        // What was passed over once is taken for those that follow, too.
        free = free.max(index + 1);
        while taken.contains(&free.to_string()) {
            free += 1;
        }
        task.id = free.to_string();
        free += 1;
    }
}

fn check_ids(tasks: &[Task], problems: &mut Vec<Problem>) {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        let id = bare(&task.id);
        let Some(first) = known.get(id) else {
            known.insert(id, task.line);
            continue;
        };
        let message = format!("the id {} is used twice; first on line {first}", task.id);
        problems.push(Problem::new(task.line, message, "give one of them another id"));
    }
}

/// Every dependency must be there; it is written as the task itself writes its id.
fn check_dependencies(tasks: &mut [Task], problems: &mut Vec<Problem>) {
    let ids: BTreeMap<String, String> =
        tasks.iter().map(|task| (bare(&task.id).to_owned(), task.id.clone())).collect();
    for task in tasks {
        for dependency in &mut task.dependencies {
            if let Some(id) = ids.get(bare(&dependency.id)) {
                dependency.id.clone_from(id);
                continue;
            }
            let meant = || nearest(bare(&dependency.id), ids.keys().map(String::as_str));
            // Comparing with every id takes its time, and only the first problems are told.
            let is_told = problems.len() < MOST_PROBLEMS;
            let near = is_told.then(meant).flatten();
            let remedy = near.map_or_else(
                || "add it, or take the dependency out".to_owned(),
                |near| format!("did you mean \"{near}\"?"),
            );
            let message =
                format!("{} depends on {}, which is not in the list", task.id, dependency.id);
            problems.push(Problem::new(dependency.line, message, remedy));
        }
        let mut known = BTreeSet::new();
        task.dependencies.retain(|dependency| known.insert(dependency.id.clone()));
    }
}

/// Finds a circle of tasks that wait for each other: goes from every task to those it waits for,
/// and back when one has been seen to its end.
fn check_order(tasks: &[Task], problems: &mut Vec<Problem>) {
    let places: BTreeMap<&str, usize> =
        tasks.iter().enumerate().map(|(place, task)| (task.id.as_str(), place)).collect();
    let mut seen = vec![false; tasks.len()];
    let mut is_on_path = vec![false; tasks.len()];
    for start in 0..tasks.len() {
        if seen[start] {
            continue;
        }
        // Each with the number of its dependencies that were followed.
        let mut path = vec![(start, 0)];
        while let Some((place, followed)) = path.last_mut() {
            let place = *place;
            seen[place] = true;
            is_on_path[place] = true;
            let Some(dependency) = tasks[place].dependencies.get(*followed) else {
                is_on_path[place] = false;
                path.pop();
                continue;
            };
            *followed += 1;
            let Some(next) = places.get(dependency.id.as_str()).copied() else { continue };
            if is_on_path[next] {
                let circle = path.iter().map(|(place, _)| *place).skip_while(|at| *at != next);
                let ids = circle.chain([next]).map(|at| tasks[at].id.as_str());
                let ids = ids.collect::<Vec<_>>().join(" -> ");
                let message = format!("tasks wait for each other: {ids}");
                let line = first_dependency_line(&tasks[next]);
                let remedy = "take one of these dependencies out";
                problems.push(Problem::new(line, message, remedy));
                return;
            }
            if !seen[next] {
                path.push((next, 0));
            }
        }
    }
}

/// The line on which the dependencies of a task begin.
fn first_dependency_line(task: &Task) -> usize {
    task.dependencies.first().map_or(task.line, |dependency| dependency.line)
}

/// A task as the file has it.
fn written(task: &Task) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("id", task.id.as_str().into());
    put("name", task.name.as_str().into());
    if let Some(description) = &task.description {
        put("description", description.as_str().into());
    }
    put("status", task.status.word().into());
    if let Some(priority) = &task.priority {
        put("priority", priority.clone().into());
    }
    if !task.dependencies.is_empty() {
        put("dependencies", task.dependencies.iter().map(|other| other.id.as_str()).collect());
    }
    if !task.metadata.is_empty() {
        put("metadata", task.metadata.clone().into());
    }
    fields.into()
}

/// A task as Ralph has it, under the id it has there.
fn row(task: &Task, ids: &BTreeMap<&str, String>) -> Value {
    let id = |id: &str| ids.get(id).cloned().unwrap_or_else(|| plain_id(id));
    let line = task.name.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let content = shortened(line);
    let criteria = ["acceptanceCriteria", "acceptance_criteria", "steps"]
        .iter()
        .find_map(|key| task.metadata.get(*key)?.as_array());
    let criteria: Vec<String> = criteria.into_iter().flatten().map(words).collect();
    let blocked_by: Vec<String> = task.dependencies.iter().map(|other| id(&other.id)).collect();
    let said = |key: &str| task.metadata.get(key).filter(|value| !value.is_null()).map(words);
    json!({
        "id": id(&task.id),
        "description": description(task, &content, &id(&task.id)),
        "content": content,
        "activeForm": said("activeForm").unwrap_or_default(),
        "acceptanceCriteria": criteria,
        "blockedBy": blocked_by,
        "status": if task.status.is_done() { "completed" } else { "pending" },
        "error": said("error"),
    })
}

/// Everything that a task of Ralph has no other place for.
fn description(task: &Task, content: &str, id: &str) -> String {
    let name = Some(task.name.clone()).filter(|name| *name != content);
    let implemented = task.metadata.get("implementedAt").filter(|at| !at.is_null());
    let implemented = implemented.map(|at| format!("Implemented at: {}", words(at)));
    let own_id = Some(bare(&task.id)).filter(|own| id.strip_prefix('#') != Some(*own));
    let own_id = own_id.map(|own| format!("In the list its id is {own:?}"));
    let parts = [name, task.description.clone(), implemented, own_id];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// A text as it is, anything else as JSON.
fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The id of every task in Ralph. Where two would be the same, the one that had to be changed gets
/// a number.
fn ralph_ids(tasks: &[Task]) -> BTreeMap<&str, String> {
    let is_kept = |task: &Task| plain_id(&task.id).strip_prefix('#') == Some(bare(&task.id));
    let (kept, changed): (Vec<&Task>, Vec<&Task>) = tasks.iter().partition(|task| is_kept(task));
    let mut taken = BTreeSet::new();
    let mut ids = BTreeMap::new();
    for task in kept.into_iter().chain(changed) {
        let plain = plain_id(&task.id);
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let free = std::iter::once(plain.clone()).chain(numbered).find(|id| !taken.contains(id));
        let id = free.unwrap_or_default();
        taken.insert(id.clone());
        ids.insert(task.id.as_str(), id);
    }
    ids
}

/// An id that can be a part of a step's name.
fn plain_id(id: &str) -> String {
    let plain = |c: char| if c.is_control() || c == '/' { '-' } else { c };
    format!("#{}", bare(id).chars().map(plain).collect::<String>())
}

fn shortened(line: &str) -> String {
    if line.chars().count() <= CONTENT {
        return line.to_owned();
    }
    let cut: String = line.chars().take(CONTENT - 1).collect();
    format!("{}…", cut.trim_end())
}
