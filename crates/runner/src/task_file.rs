//! A file of tasks that belongs to the project: a list, or an object with a list in it. What was
//! read in one shape is written back in the same shape and with the same words, with everything
//! else left as it is.

use std::path::{Path, PathBuf};

use atomic_event::{StepId, StepResult, TaskStatus};
use atomic_files::PROJECT_LIMIT;
use atomic_graph::task::{OddRow, Task, obstacle, odd_row, ready};
use atomic_registry::project::ProjectFiles;
use serde_json::{Map, Value, json};

use crate::book::LoopTask;

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

/// What a step of a task loop is to do with its file.
#[derive(Debug, Default)]
pub(crate) struct TaskRequest {
    /// The path of the file, from the project's folder.
    pub(crate) file: String,
    /// What the workflow's own selector picked, when it has one.
    pub(crate) selected: Option<Value>,
    /// The task that is being worked on.
    pub(crate) current: Option<Value>,
    /// The round of the loop, from 1.
    pub(crate) round: u64,
    /// Whether the loop ends after this round, whatever is left.
    pub(crate) is_last_round: bool,
    /// The time, as it is written into the file.
    pub(crate) at: String,
}

/// The tasks of a file, in our words. Nobody works on them: the loop asks between two rounds.
pub(crate) fn tasks(path: &TaskPath) -> Result<Vec<Value>, String> {
    let mut tasks = read(path)?.tasks;
    for task in &mut tasks {
        if Task(task).status() == Ok(TaskStatus::InProgress) {
            task["status"] = TaskStatus::Pending.word().into();
        }
    }
    Ok(tasks)
}

/// The next task that can be done: put under `currentTask`, with the whole list under `tasks`.
pub(crate) fn next(path: &TaskPath, request: &TaskRequest) -> Result<StepResult, String> {
    let tasks = tasks(path)?;
    let chosen = match &request.selected {
        Some(Value::Null) => None,
        Some(picked) => Some(find(&tasks, picked).ok_or_else(|| {
            format!("{}: `taskSelector` picked {picked}, which is not in it", path.display())
        })?),
        None => ready(&tasks).first().map(|task| task.0),
    };
    let left: Vec<&Value> = tasks.iter().filter(|task| !Task(task).is_done()).collect();
    if chosen.is_none() && !left.is_empty() && request.selected.is_none() {
        return Err(stuck(path, &tasks, &left));
    }
    let (done, left) = (chosen.is_none(), left.len());
    let chosen = chosen.cloned().map(|mut task| {
        task["status"] = TaskStatus::InProgress.word().into();
        task
    });
    let output = json!({ "task": chosen, "left": left, "file": request.file });
    // A round in which no task is taken is not counted.
    Ok(StepResult::output(output)
        .set("iteration", request.round.saturating_sub(u64::from(done)))
        .set("tasks", tasks)
        .set("shouldContinue", !done)
        .set("allTasksComplete", left == 0)
        .set("maxIterationsReached", false)
        .set("currentTask", chosen.unwrap_or_default())
        .set("tasksDone", done))
}

/// Why no task can be started.
fn stuck(path: &TaskPath, tasks: &[Value], left: &[&Value]) -> String {
    let why = |row: &&Value| {
        let task = Task(row);
        format!("{} ({})", task.id().unwrap_or_default(), obstacle(tasks, task))
    };
    let left: Vec<String> = left.iter().map(why).collect();
    format!(
        "{}: no task can be started; left are {}\n  hint: set the status of a failed task to \
         `pending` to have it done again",
        path.display(),
        left.join(", ")
    )
}

/// Marks a task as done, in the file too.
pub(crate) fn complete(path: &TaskPath, request: &TaskRequest) -> Result<StepResult, String> {
    let current = request.current.as_ref();
    let id = current.and_then(id).ok_or("there is no `currentTask` with an `id`")?.to_owned();
    let mut file = read(path)?;
    file.set_status(&id, TaskStatus::Completed, None)
        .ok_or_else(|| format!("{}: the task {id} is not in it any more", path.display()))?;
    file.write(path, &request.at)?;
    let tasks = file.rows().iter().map(normal).collect::<Vec<_>>();
    let left = tasks.iter().filter(|task| !Task(task).is_done()).count();
    let mut result = StepResult::output(json!({ "completed": id }))
        .set("allTasksComplete", left == 0)
        .set("tasks", tasks);
    if request.is_last_round {
        result = result.set("shouldContinue", false).set("maxIterationsReached", left > 0);
    }
    Ok(result)
}

/// The task that a step of [`next`] has taken, when this is what one returned.
pub(crate) fn taken(step: &StepId, output: &Value) -> Option<LoopTask> {
    if !step.node().starts_with("next-task") {
        return None;
    }
    let file = output.get("file")?.as_str()?.to_owned();
    output.get("left")?.as_u64()?;
    let id = id(output.get("task")?)?.to_owned();
    Some(LoopTask { file, id, begun: false, error: None })
}

/// Whether this is what a step of [`complete`] returned.
pub(crate) fn is_completion(step: &StepId, output: &Value) -> bool {
    step.node().starts_with("complete-task") && output.get("completed").is_some()
}

/// Writes down how a task stands, unless the file says so or the task is done. A task that is not
/// in the file any more is nobody's.
pub(crate) fn mark(
    path: &TaskPath,
    id: &str,
    (status, error): (TaskStatus, Option<&str>),
    at: &str,
) -> Result<(), String> {
    let mut file = read(path)?;
    let row = file.tasks.iter().find(|row| Task(row).id() == Some(id));
    let Some(known) = row.and_then(|row| Task(row).status().ok()) else { return Ok(()) };
    if known == status || known == TaskStatus::Completed {
        return Ok(());
    }
    file.set_status(id, status, error);
    file.write(path, at)
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

    /// Whether the file uses the words of version 1.0: `passing`, `failing`, `name`.
    fn is_version_1(&mut self) -> bool {
        if self.whole.get("version").is_some() {
            return true;
        }
        let has = |rows: &[Value], words: [&str; 3]| {
            let word = |row: &Value| row.get("status").and_then(Value::as_str).map(str::to_owned);
            rows.iter().filter_map(word).any(|word| words.contains(&word.as_str()))
        };
        let is_named = |row: &Value| row.get("name").is_some() && row.get("content").is_none();
        let rows = self.rows();
        has(rows, ["passing", "failing", "skipped"])
            || !has(rows, ["completed", "failed", "blocked"]) && rows.iter().any(is_named)
    }

    /// Changes the status of a task, in the words of the file. Nothing when it is not there.
    fn set_status(&mut self, wanted: &str, status: TaskStatus, error: Option<&str>) -> Option<()> {
        let is_version_1 = self.is_version_1();
        let row = self.rows().iter_mut().find(|row| id(row) == Some(wanted))?.as_object_mut()?;
        let word = if is_version_1 { status.version_1_word() } else { status.word() };
        row.insert("status".to_owned(), word.into());
        // Version 1.0 has no place for an error but its `metadata`.
        let about = if is_version_1 {
            match (row.get_mut("metadata"), error) {
                (Some(Value::Object(metadata)), _) => Some(metadata),
                (None, Some(_)) => {
                    row.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
                }
                _ => None,
            }
        } else {
            Some(row)
        };
        if let Some(about) = about {
            match error {
                Some(error) => drop(about.insert("error".to_owned(), error.into())),
                None => drop(about.remove("error")),
            }
        }
        Some(())
    }

    fn write(&mut self, path: &TaskPath, at: &str) -> Result<(), String> {
        if let Some(Value::Object(metadata)) = self.whole.get_mut("metadata") {
            metadata.insert("updatedAt".to_owned(), at.into());
        }
        let text = serde_json::to_string_pretty(&self.whole).map_err(|error| error.to_string())?;
        replace(path, &format!("{text}\n"))
    }
}

fn read(path: &TaskPath) -> Result<TaskList, String> {
    let place = path.display();
    let text = path.files().and_then(|files| files.read_text(&path.path, PROJECT_LIMIT));
    let text = text.map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            return format!(
                "{place}: the file of the task loop does not exist\n  hint: write its tasks there, \
                 or name another file as `tasksPath`"
            );
        }
        format!("{place}: {error}")
    })?;
    let whole: Value = serde_json::from_str(&text).map_err(|error| {
        format!("{place}:{}:{}: not JSON: {error}", error.line(), error.column())
    })?;
    let mut file = TaskList { whole, tasks: vec![] };
    let shaped = file.whole.is_array() || file.whole.get("tasks").is_some_and(Value::is_array);
    if !shaped {
        return Err(format!("{place}: neither a list of tasks nor an object with `tasks`"));
    }
    if let Some(OddRow { problem, hint }) = odd_row(file.rows()) {
        return Err(format!("{place}: {problem}\n  hint: {hint}"));
    }
    file.tasks = file.rows().iter().map(normal).collect();
    Ok(file)
}

/// A task in our words, with everything else it says.
fn normal(row: &Value) -> Value {
    let Some(fields) = row.as_object() else { return row.clone() };
    let mut task: Map<String, Value> = fields.clone();
    let known = Task(row);
    if let Some(content) = known.content() {
        task.insert("content".to_owned(), content.into());
    }
    let status = known.status().unwrap_or(TaskStatus::Pending);
    task.insert("status".to_owned(), status.word().into());
    if fields.contains_key("blockedBy") || fields.contains_key("dependencies") {
        task.insert("blockedBy".to_owned(), known.blockers().collect::<Vec<_>>().into());
    }
    Value::Object(task)
}

fn id(task: &Value) -> Option<&str> {
    Task(task).id()
}

fn find<'t>(tasks: &'t [Value], picked: &Value) -> Option<&'t Value> {
    tasks.iter().find(|task| id(task).is_some() && id(task) == id(picked))
}

/// Puts a file in another's place, whole.
fn replace(path: &TaskPath, text: &str) -> Result<(), String> {
    let written = path.files().and_then(|files| files.replace(&path.path, text.as_bytes()));
    written.map_err(|error| format!("{}: cannot be written: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use atomic_event::TaskStatus;
    use serde_json::{Value, json};

    use super::{TaskPath, TaskRequest, complete, mark, next};

    fn at(time: &str) -> TaskRequest {
        TaskRequest { at: time.to_owned(), ..TaskRequest::default() }
    }

    #[test]
    fn tasks_are_taken_in_order_and_the_file_keeps_its_shape_and_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        let shapes = [
            json!([
                {"id": "b", "content": "two", "status": "pending", "blockedBy": ["a"]},
                {"id": "a", "title": "one", "status": "blocked", "extra": 1},
            ]),
            json!({"version": "1.0", "metadata": {"updatedAt": "then", "source": "x"}, "tasks": [
                {"id": "b", "name": "two", "status": "pending", "dependencies": ["a", "c"]},
                {"id": "a", "name": "one", "status": "pending", "priority": -1},
                {"id": "c", "name": "three", "status": "skipped"},
            ]}),
        ];
        for shape in shapes {
            std::fs::write(&path, shape.to_string()).unwrap();
            let tasks = TaskPath::new(folder.path(), "tasks.json");
            let mut wanted = shape.clone();
            let is_list = shape.is_array();
            let said = || -> Value {
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
            };
            for (place, content) in [(1, "one"), (0, "two")] {
                let result = next(&tasks, &at("now")).unwrap();
                let current = &result.patch["currentTask"];
                assert_eq!(current["content"], content);
                assert_eq!(current["status"], "in_progress");
                let id = current["id"].as_str().unwrap();
                mark(&tasks, id, (TaskStatus::InProgress, None), "now").unwrap();
                if !is_list {
                    wanted["metadata"]["updatedAt"] = "now".into();
                }
                let rows = if is_list { &mut wanted } else { &mut wanted["tasks"] };
                rows[place]["status"] = "in_progress".into();
                assert_eq!(said(), wanted);
                let request = TaskRequest { current: Some(current.clone()), ..at("now") };
                complete(&tasks, &request).unwrap();
                let rows = if is_list { &mut wanted } else { &mut wanted["tasks"] };
                rows[place]["status"] = if is_list { "completed" } else { "passing" }.into();
                assert_eq!(said(), wanted);
            }
            let result = next(&tasks, &at("now")).unwrap();
            assert_eq!(result.patch["tasksDone"], true);
            assert_eq!(result.patch["allTasksComplete"], true);
        }
    }

    #[test]
    fn a_failure_is_written_in_the_words_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        let table = [
            (
                json!([{"id": "a", "content": "one", "status": "in_progress"}]),
                json!([{"id": "a", "content": "one", "status": "failed", "error": "no"}]),
            ),
            (
                json!({"tasks": [{"id": "a", "name": "one", "status": "in_progress"}]}),
                json!({"tasks": [{"id": "a", "name": "one", "status": "failing",
                    "metadata": {"error": "no"}}]}),
            ),
        ];
        for (before, after) in table {
            std::fs::write(&path, before.to_string()).unwrap();
            let tasks = TaskPath::new(folder.path(), "tasks.json");
            mark(&tasks, "a", (TaskStatus::Failed, Some("no")), "now").unwrap();
            let said: Value =
                serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            assert_eq!(said, after);
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
            (r#"[{"id": 1}]"#, "{}: task 1 has the id 1"),
            (r#"[{"id": "a", "status": "done"}]"#, "{}: task `a` has the status \"done\""),
            (r#"[{"id": "a"}, {"id": "a"}]"#, "{}: the id `a` is used twice"),
            (
                r#"[{"id": "a"}, {"id": "b", "dependencies": "a"}]"#,
                "{}: task `b`: `dependencies` is \"a\", not a list of ids",
            ),
            (
                r#"[{"id": "a", "blockedBy": ["gone"]}]"#,
                "{}: no task can be started; left are a (blocked by gone, which is not in the list)",
            ),
            (
                r#"[{"id": "a", "blockedBy": ["a"]}, {"id": "b", "status": "failing"}]"#,
                "{}: no task can be started; left are a (blocked by a), b (failed)",
            ),
        ];
        for (text, expected) in table {
            std::fs::write(&path, text).unwrap();
            let tasks = TaskPath::new(folder.path(), "tasks.json");
            let problem = next(&tasks, &at("now")).unwrap_err();
            assert_eq!(problem.lines().next().unwrap(), expected.replace("{}", &place));
        }
        std::fs::remove_file(&path).unwrap();
        let problem = next(&TaskPath::new(folder.path(), "tasks.json"), &at("now")).unwrap_err();
        let expected = format!("{place}: the file of the task loop does not exist");
        assert_eq!(problem.lines().next().unwrap(), expected);
    }

    #[test]
    fn the_iteration_is_the_number_of_the_round_also_where_there_is_nothing_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tasks.json");
        let done = r#"[{"id": "a", "status": "completed"}]"#;
        let table =
            [("[]", 1, 0), (r#"[{"id": "a"}]"#, 1, 1), (r#"[{"id": "a"}]"#, 3, 3), (done, 3, 2)];
        for (text, round, iteration) in table {
            std::fs::write(&path, text).unwrap();
            let request = TaskRequest { round, ..at("now") };
            let result = next(&TaskPath::new(folder.path(), "tasks.json"), &request).unwrap();
            assert_eq!(result.patch["iteration"], iteration, "{text} {round}");
        }
    }

    /// Both keys count: an empty `blockedBy` beside `dependencies` does not let a task begin early.
    #[test]
    fn a_task_waits_for_what_is_under_either_key() {
        let folder = tempfile::tempdir().unwrap();
        let rows = json!([{"id": "b", "blockedBy": [], "dependencies": ["a"]}, {"id": "a"}]);
        std::fs::write(folder.path().join("tasks.json"), rows.to_string()).unwrap();
        let result = next(&TaskPath::new(folder.path(), "tasks.json"), &at("now")).unwrap();
        assert_eq!(result.patch["currentTask"]["id"], "a");
        assert_eq!(result.patch["tasks"][0]["blockedBy"], json!(["a"]));
    }
}
