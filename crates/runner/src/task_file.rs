//! A file of tasks that belongs to the project: a list, or an object with a list in it. What was
//! read in one shape is written back in the same shape, with everything else left as it is.

use std::path::{Path, PathBuf};

use atomic_event::StepResult;
use atomic_files::PROJECT_LIMIT;
use atomic_registry::project::ProjectFiles;
use serde_json::{Map, Value, json};

/// The path of a file of tasks in a project.
pub(crate) struct TaskPath {
    project: PathBuf,
    path: PathBuf,
}

impl TaskPath {
    /// The path of the file called `name`, from the project's folder.
    pub(crate) fn new(project: &Path, name: &str) -> Self {
        Self { project: project.to_owned(), path: project.join(name) }
    }

    fn display(&self) -> std::path::Display<'_> {
        self.path.display()
    }

    fn files(&self) -> std::io::Result<ProjectFiles> {
        ProjectFiles::of(&self.project, std::env::home_dir().as_deref())
    }
}

/// The tasks of a file, in our words.
pub(crate) fn tasks(path: &TaskPath) -> Result<Vec<Value>, String> {
    Ok(read(path)?.tasks)
}

/// The next task that can be done: put under `currentTask`, with the whole list under `tasks`.
/// `iteration` is how many were taken before it.
pub(crate) fn next(
    path: &TaskPath,
    selected: Option<&Value>,
    iteration: u64,
) -> Result<StepResult, String> {
    let tasks = read(path)?.tasks;
    let chosen = match selected {
        Some(Value::Null) => None,
        Some(task) => Some(task.clone()),
        None => ready(&tasks),
    };
    let done = chosen.is_none();
    let left = tasks.iter().filter(|task| !is_done(task)).count();
    if done && left > 0 && selected.is_none() {
        let waiting: Vec<&str> =
            tasks.iter().filter(|task| !is_done(task)).filter_map(|task| id(task)).collect();
        let waiting = waiting.join(", ");
        let path = path.display();
        return Err(format!("{path}: no task can be started; left are {waiting}"));
    }
    let mut result = StepResult::output(json!({ "task": chosen, "left": left }));
    if done {
        result = result.set("allTasksComplete", left == 0);
    } else {
        result = result.set("iteration", iteration + 1);
    }
    Ok(result
        .set("tasks", tasks)
        .set("shouldContinue", !done)
        .set("currentTask", chosen.unwrap_or_default())
        .set("tasksDone", done))
}

/// Marks a task as done, in the file too.
pub(crate) fn complete(path: &TaskPath, current: Option<&Value>) -> Result<StepResult, String> {
    let wanted = current.and_then(id).ok_or("there is no `currentTask` with an `id`")?.to_owned();
    let mut file = read(path)?;
    let row = file.rows().iter_mut().find(|row| id(row) == Some(&wanted));
    let Some(Value::Object(row)) = row else {
        let path = path.display();
        return Err(format!("{path}: the task {wanted} is not in it any more"));
    };
    let before = row.get("status").and_then(Value::as_str).unwrap_or_default();
    // A file that speaks of passing and failing goes on doing so.
    let word = if matches!(before, "failing" | "passing") { "passing" } else { "completed" };
    row.insert("status".to_owned(), word.into());
    let text = serde_json::to_string_pretty(&file.whole).map_err(|error| error.to_string())?;
    replace(path, &format!("{text}\n"))?;
    let tasks = file.rows().iter().map(normal).collect::<Vec<_>>();
    Ok(StepResult::output(json!({ "completed": wanted })).set("tasks", tasks))
}

/// A file of tasks as it is, and its tasks in our words.
struct TaskList {
    whole: Value,
    tasks: Vec<Value>,
}

impl TaskList {
    fn rows(&mut self) -> &mut [Value] {
        match &mut self.whole {
            Value::Array(rows) => rows,
            Value::Object(fields) => match fields.get_mut("tasks") {
                Some(Value::Array(rows)) => rows,
                _ => &mut [],
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &mut [],
        }
    }
}

fn read(path: &TaskPath) -> Result<TaskList, String> {
    let place = path.display();
    let text = path.files().and_then(|files| files.read_text(&path.path, PROJECT_LIMIT));
    let text = text.map_err(|error| format!("{place}: {error}"))?;
    let whole: Value = serde_json::from_str(&text).map_err(|error| {
        format!("{place}:{}:{}: not JSON: {error}", error.line(), error.column())
    })?;
    let mut file = TaskList { whole, tasks: vec![] };
    let shaped = file.whole.is_array() || file.whole.get("tasks").is_some_and(Value::is_array);
    if !shaped {
        return Err(format!("{place}: neither a list of tasks nor an object with `tasks`"));
    }
    file.tasks = file.rows().iter().map(normal).collect();
    if let Some(number) = file.tasks.iter().position(|task| id(task).is_none()) {
        return Err(format!("{place}: task {} has no `id`", number + 1));
    }
    Ok(file)
}

/// A task in our words, with everything else it says.
fn normal(row: &Value) -> Value {
    let Some(fields) = row.as_object() else { return row.clone() };
    let mut task: Map<String, Value> = fields.clone();
    let text = |keys: &[&str]| {
        keys.iter().find_map(|key| fields.get(*key)).and_then(Value::as_str).map(str::to_owned)
    };
    if let Some(content) = text(&["content", "title", "name"]) {
        task.insert("content".to_owned(), content.into());
    }
    let status = match text(&["status"]).as_deref() {
        Some("passing" | "skipped" | "completed") => "completed",
        Some("failed") => "failed",
        Some("in_progress") => "in_progress",
        _ => "pending",
    };
    task.insert("status".to_owned(), status.into());
    if let Some(blockers) = fields.get("blockedBy").or_else(|| fields.get("dependencies")) {
        task.insert("blockedBy".to_owned(), blockers.clone());
    }
    Value::Object(task)
}

fn id(task: &Value) -> Option<&str> {
    task.get("id").and_then(Value::as_str)
}

fn is_done(task: &Value) -> bool {
    task.get("status").and_then(Value::as_str) == Some("completed")
}

/// The first task that is not done and waits for nothing; lower `priority` first.
fn ready(tasks: &[Value]) -> Option<Value> {
    let done: Vec<&str> = tasks.iter().filter(|task| is_done(task)).filter_map(id).collect();
    let free = |task: &&Value| {
        let blockers = task.get("blockedBy").and_then(Value::as_array).into_iter().flatten();
        let open = task.get("status").and_then(Value::as_str);
        matches!(open, Some("pending" | "in_progress"))
            && blockers.filter_map(Value::as_str).all(|blocker| done.contains(&blocker))
    };
    let priority = |task: &&Value| task.get("priority").and_then(Value::as_i64).unwrap_or(0);
    tasks.iter().filter(free).min_by_key(priority).cloned()
}

/// Puts a file in another's place, whole.
fn replace(path: &TaskPath, text: &str) -> Result<(), String> {
    let written = path.files().and_then(|files| files.replace(&path.path, text.as_bytes()));
    written.map_err(|error| format!("{}: cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{TaskPath, complete, next};

    #[test]
    fn tasks_are_taken_in_order_and_the_file_keeps_its_shape() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        let shapes = [
            json!([
                {"id": "b", "content": "two", "status": "pending", "blockedBy": ["a"]},
                {"id": "a", "title": "one", "status": "blocked", "extra": 1},
            ]),
            json!({"version": "1.0", "source": "x", "tasks": [
                {"id": "b", "name": "two", "status": "failing", "dependencies": ["a"]},
                {"id": "a", "name": "one", "status": "failing", "metadata": {}},
                {"id": "c", "name": "three", "status": "skipped"},
            ]}),
        ];
        for shape in shapes {
            std::fs::write(&path, shape.to_string()).unwrap();
            let tasks = TaskPath::new(folder.path(), "tasks.json");
            for expected in ["one", "two"] {
                let result = next(&tasks, None, 0).unwrap();
                assert_eq!(result.patch["currentTask"]["content"], expected);
                assert_eq!(result.patch["tasksDone"], false);
                complete(&tasks, result.patch.get("currentTask")).unwrap();
            }
            let result = next(&tasks, None, 0).unwrap();
            assert_eq!(result.patch["tasksDone"], true);
            let after: Value =
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let word = if shape.is_array() { "completed" } else { "passing" };
            let mut wanted = shape.clone();
            let rows = if shape.is_array() { &mut wanted } else { &mut wanted["tasks"] };
            rows[0]["status"] = word.into();
            rows[1]["status"] = word.into();
            assert_eq!(after, wanted);
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        let place = path.display().to_string();
        let table = [
            ("[", "{}:1:1: not JSON: EOF while parsing a list at line 1 column 1"),
            ("{}", "{}: neither a list of tasks nor an object with `tasks`"),
            ("[{}]", "{}: task 1 has no `id`"),
            (r#"[{"id": "a", "blockedBy": ["a"]}]"#, "{}: no task can be started; left are a"),
        ];
        for (text, expected) in table {
            std::fs::write(&path, text).unwrap();
            let tasks = TaskPath::new(folder.path(), "tasks.json");
            assert_eq!(next(&tasks, None, 0).unwrap_err(), expected.replace("{}", &place));
        }
    }
}
