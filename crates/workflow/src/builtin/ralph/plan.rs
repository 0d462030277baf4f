//! From the planner's answer to a task list: read leniently, checked strictly.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::task::{Status, Task};
use crate::find_json;

/// The longest `content`, in characters.
const CONTENT: usize = 80;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(default)]
    id: Option<Value>,
    #[serde(alias = "title", default)]
    content: String,
    #[serde(default)]
    active_form: String,
    #[serde(default)]
    blocked_by: Vec<Value>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    acceptance_criteria: Vec<String>,
}

/// Reads a plan; the error is for the planner as much as for the user.
pub(super) fn read_plan(text: &str, max_tasks: u32) -> Result<Vec<Task>, String> {
    let list = find_json(text, looks_like_a_plan)
        .or_else(|| find_json(text, |value| value.as_array().is_some_and(Vec::is_empty)))
        .ok_or("no JSON array of tasks was found in the answer")?;
    checked(list, max_tasks)
}

/// The tasks of a list, all of them still to be done.
pub(super) fn checked(list: Value, max_tasks: u32) -> Result<Vec<Task>, String> {
    let rows: Vec<Row> = serde_json::from_value(list)
        .map_err(|error| format!("the task list has the wrong shape: {error}"))?;
    if rows.is_empty() {
        return Err("the task list is empty".to_owned());
    }
    if rows.len() > max_tasks as usize {
        return Err(format!("the list has {} tasks; at most {max_tasks} are allowed", rows.len()));
    }
    let tasks = rows.into_iter().map(task).collect::<Result<Vec<_>, _>>()?;
    check_ids(&tasks)?;
    check_order(&tasks)?;
    Ok(tasks)
}

fn looks_like_a_plan(value: &Value) -> bool {
    value.as_array().is_some_and(|rows| !rows.is_empty() && rows.iter().all(Value::is_object))
}

fn task(row: Row) -> Result<Task, String> {
    let id = row.id.as_ref().and_then(id_text).ok_or("a task has no id")?;
    let content = row.content.trim().to_owned();
    if content.is_empty() {
        return Err(format!("task {id} has no content"));
    }
    if content.chars().count() > CONTENT {
        return Err(format!("the content of task {id} is longer than {CONTENT} characters"));
    }
    let blocked_by = row.blocked_by.iter().map(|blocker| {
        id_text(blocker).ok_or_else(|| format!("task {id}: {blocker} in blockedBy is no id"))
    });
    Ok(Task {
        blocked_by: blocked_by.collect::<Result<_, _>>()?,
        active_form: if row.active_form.is_empty() { content.clone() } else { row.active_form },
        id,
        content,
        status: Status::Pending,
        description: row.description,
        acceptance_criteria: row.acceptance_criteria,
        ..Task::default()
    })
}

/// `"#1"`, `"1"` and `1` are the same id.
fn id_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    if text.is_empty() || text.chars().any(|c| c.is_control() || c == '/') {
        return None;
    }
    Some(if text.starts_with('#') { text } else { format!("#{text}") })
}

fn check_ids(tasks: &[Task]) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for task in tasks {
        if !known.insert(task.id.as_str()) {
            return Err(format!("the id {} is used twice", task.id));
        }
    }
    for task in tasks {
        if let Some(unknown) = task.blocked_by.iter().find(|id| !known.contains(id.as_str())) {
            return Err(format!("task {} is blocked by {unknown}, which does not exist", task.id));
        }
    }
    Ok(())
}

/// Finds a circle of tasks that wait for each other, and prints it.
fn check_order(tasks: &[Task]) -> Result<(), String> {
    let mut left: BTreeMap<&str, BTreeSet<&str>> = tasks
        .iter()
        .map(|task| (task.id.as_str(), task.blocked_by.iter().map(String::as_str).collect()))
        .collect();
    loop {
        let free: Vec<&str> =
            left.iter().filter(|(_, by)| by.is_empty()).map(|(id, _)| *id).collect();
        if free.is_empty() {
            break;
        }
        for id in &free {
            left.remove(id);
        }
        for blockers in left.values_mut() {
            for id in &free {
                blockers.remove(id);
            }
        }
    }
    let Some(start) = left.keys().next().copied() else { return Ok(()) };
    // Every task that is left waits for another one that is left, so walking on finds a circle.
    let mut path = vec![start];
    let mut next = start;
    while let Some(blocker) = left.get(next).and_then(|blockers| blockers.first().copied()) {
        if let Some(first) = path.iter().position(|id| *id == blocker) {
            path.push(blocker);
            return Err(format!("tasks wait for each other: {}", path[first..].join(" -> ")));
        }
        path.push(blocker);
        next = blocker;
    }
    Err(format!("tasks wait for each other: {}", path.join(" -> ")))
}

#[cfg(test)]
mod tests {
    use super::{check_ids, check_order, read_plan};

    #[test]
    fn plans_are_read_leniently_and_checked_strictly() {
        let long = format!(r#"[{{"id": "1", "content": "{}"}}]"#, "x".repeat(81));
        let table = [
            (
                "Sure!\n```json\n[{\"id\":\"#1\",\"content\":\"a\"},{\"id\":2,\"title\":\"b\",\"blockedBy\":[1]}]\n```",
                "#1 a; #2 b (#1)",
            ),
            ("I cannot do that", "! no JSON array of tasks was found in the answer"),
            ("[]", "! the task list is empty"),
            (r#"[{"content":"a"}]"#, "! a task has no id"),
            (r#"[{"id":"1","content":" "}]"#, "! task #1 has no content"),
            (
                r##"[{"id":"1","content":"a"},{"id":"#1","content":"b"}]"##,
                "! the id #1 is used twice",
            ),
            (
                r#"[{"id":"1","content":"a","blockedBy":["9"]}]"#,
                "! task #1 is blocked by #9, which does not exist",
            ),
            (
                r#"[{"id":"1","content":"a","blockedBy":["2"]},{"id":"2","content":"b","blockedBy":["3"]},{"id":"3","content":"c","blockedBy":["2"]}]"#,
                "! tasks wait for each other: #2 -> #3 -> #2",
            ),
            (
                r#"[{"id":"1","content":"a","blockedBy":["1"]}]"#,
                "! tasks wait for each other: #1 -> #1",
            ),
            (
                r#"[{"id":"1","content":5}]"#,
                "! the task list has the wrong shape: invalid type: integer `5`, expected a string",
            ),
            (&long, "! the content of task #1 is longer than 80 characters"),
            (
                r#"[{"id":1,"content":"a"},{"id":2,"content":"a"},{"id":3,"content":"a"},{"id":4,"content":"a"}]"#,
                "! the list has 4 tasks; at most 3 are allowed",
            ),
        ];
        for (text, expected) in table {
            let shown = match read_plan(text, 3) {
                Ok(tasks) => tasks
                    .iter()
                    .map(|t| match t.blocked_by.is_empty() {
                        true => format!("{} {}", t.id, t.content),
                        false => format!("{} {} ({})", t.id, t.content, t.blocked_by.join(",")),
                    })
                    .collect::<Vec<_>>()
                    .join("; "),
                Err(problem) => format!("! {problem}"),
            };
            assert_eq!(shown, expected, "{text}");
        }
    }

    proptest::proptest! {
        /// Whatever is accepted can be worked through: ids are unique, and there is an order.
        #[test]
        fn an_accepted_plan_has_an_order(
            edges in proptest::collection::vec((1u8..7, 1u8..7), 0..10),
        ) {
            let rows: Vec<_> = (1u8..7)
                .map(|id| {
                    let by: Vec<u8> =
                        edges.iter().filter(|(from, _)| *from == id).map(|(_, to)| *to).collect();
                    serde_json::json!({"id": id, "content": "c", "blockedBy": by})
                })
                .collect();
            if let Ok(tasks) = read_plan(&serde_json::to_string(&rows).unwrap(), 200) {
                let mut done = std::collections::BTreeSet::new();
                for _ in 0..tasks.len() {
                    let free = tasks.iter().find(|t| {
                        !done.contains(&t.id) && t.blocked_by.iter().all(|b| done.contains(b))
                    });
                    proptest::prop_assert!(free.is_some());
                    done.insert(free.unwrap().id.clone());
                }
                proptest::prop_assert!(check_ids(&tasks).is_ok() && check_order(&tasks).is_ok());
            }
        }
    }
}
