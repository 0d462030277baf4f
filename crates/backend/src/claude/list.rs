//! The agent's own list of what it means to do, from the tools it keeps it with.

use atomic_event::Todo;
use serde::Deserialize;
use serde_json::Value;

/// The list, in its order. It outlives a turn, as the program's own does.
#[derive(Debug, Default)]
pub(super) struct OwnList(Vec<(String, Todo)>);

/// What a tool of the list returns: an entry that was made, one that was changed, or all.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Returned {
    task: Option<Entry>,
    tasks: Option<Vec<Entry>>,
    task_id: Option<String>,
    status_change: Change,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Entry {
    id: String,
    subject: String,
    status: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Change {
    to: Option<String>,
}

impl OwnList {
    /// Whether this tool is about the list.
    pub(super) fn is_about(tool: &str) -> bool {
        matches!(tool, "TaskCreate" | "TaskUpdate" | "TaskList")
    }

    /// Takes in what such a tool returned; the list, when that has changed it.
    pub(super) fn learn(&mut self, returned: &Value) -> Option<Vec<Todo>> {
        // Errors are texts.
        let Returned { task, tasks, task_id, status_change } =
            Returned::deserialize(returned).ok()?;
        let before = self.items();
        if let Some(all) = tasks {
            self.0 = all.into_iter().map(Entry::todo).collect();
        }
        if let Some(entry) = task {
            self.0.push(entry.todo());
        }
        if let (Some(id), Some(status)) = (task_id, status_change.to) {
            if status == "deleted" {
                self.0.retain(|(known, _)| *known != id);
            } else if let Some((_, todo)) = self.0.iter_mut().find(|(known, _)| *known == id) {
                todo.status = status;
            }
        }
        Some(self.items()).filter(|items| *items != before)
    }

    fn items(&self) -> Vec<Todo> {
        self.0.iter().map(|(_, todo)| todo.clone()).collect()
    }
}

impl Entry {
    fn todo(self) -> (String, Todo) {
        let status = self.status.unwrap_or_else(|| "pending".to_owned());
        (self.id, Todo { content: self.subject, status })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::OwnList;

    #[test]
    fn entries_are_made_changed_and_taken_away() {
        let mut list = OwnList::default();
        let mut told = |returned: Value| {
            let items = list.learn(&returned)?;
            let line = |todo: &atomic_event::Todo| format!("{} {}", todo.content, todo.status);
            Some(items.iter().map(line).collect::<Vec<_>>().join(", "))
        };
        let made = |id: &str, subject: &str| json!({ "task": { "id": id, "subject": subject } });
        let changed =
            |to: &str| json!({ "success": true, "taskId": "1", "statusChange": { "to": to } });
        assert_eq!(told(made("1", "a")).as_deref(), Some("a pending"));
        assert_eq!(told(made("2", "b")).as_deref(), Some("a pending, b pending"));
        assert_eq!(told(changed("completed")).as_deref(), Some("a completed, b pending"));
        assert_eq!(told(changed("completed")), None);
        assert_eq!(told(json!("Error: no such task")), None);
        assert_eq!(told(changed("deleted")).as_deref(), Some("b pending"));
        let all = json!({ "tasks": [{ "id": "9", "subject": "c", "status": "in_progress" }] });
        assert_eq!(told(all).as_deref(), Some("c in_progress"));
    }
}
