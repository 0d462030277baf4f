//! The agent's own list of what it has to do.

use atomic_event::Todo;
use serde_json::Value;

/// Reads the agent's own list, which it keeps in a table.
pub(super) fn todos(told: &Value) -> Vec<Todo> {
    let rows = told.get("rows").and_then(Value::as_array).into_iter().flatten();
    let text = |row: &Value, key: &str| {
        row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let todo = |row: &Value| {
        let status = match text(row, "status").as_str() {
            "done" => "completed".to_owned(),
            other => other.to_owned(),
        };
        Todo { content: text(row, "title"), status }
    };
    rows.map(todo).collect()
}
