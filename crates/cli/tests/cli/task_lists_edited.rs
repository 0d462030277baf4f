//! Task lists that are edited between two runs, and lists that nothing can work on.

use std::fs;

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};

fn rows(project: &Project) -> Vec<Value> {
    let text = fs::read_to_string(project.session().join("tasks.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn edit(project: &Project, change: impl FnOnce(&mut Vec<Value>)) {
    let mut rows = rows(project);
    change(&mut rows);
    let text = serde_json::to_string_pretty(&rows).unwrap();
    fs::write(project.session().join("tasks.json"), text).unwrap();
}

/// Workflow that writes each task into the file `order`, and fails for `b` until the file `go` exists.
fn fan(tasks: &Value, then: &str) -> Value {
    let work = "id={item.id}; echo \"$id\" >> order; test -e go || test \"$id\" != b";
    json!({"state": {"tasks": tasks}, "nodes": [
        {"type": "each", "id": "fan", "over": "tasks", "ready": "tasks", "workers": 1,
         "nodes": [tool("work", work)]},
        tool("then", then),
    ]})
}

/// The loop makes the list anew from its file in every round, so that an edit would be lost.
#[test]
fn an_edit_of_a_task_loops_list_is_refused_and_names_its_file() {
    let project = Project::new();
    project.write("list.json", r#"[{"id": "a", "content": "A"}, {"id": "b", "content": "B"}]"#);
    let work = tool("work", "test -e go || test {currentTask.id} != b");
    project.ends(
        &json!({"nodes": [
            {"type": "taskLoop", "id": "loop", "tasksPath": "list.json", "taskNodes": [work]},
        ]}),
        1,
    );
    let list = rows(&project);
    assert_eq!((&list[0]["status"], &list[1]["status"]), (&json!("completed"), &json!("failed")));
    assert!(list[1]["error"].is_string(), "{list:?}");
    let path = project.session().join("tasks.json");
    edit(&project, |rows| rows.push(json!({"id": "c", "content": "C"})));
    let refused = project.resume(&[]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told = format!("{}: the task loop reads list.json, not this list", path.display());
    assert!(refused.stderr.contains(&told), "{refused:?}");
    fs::remove_file(path).unwrap();
    project.write("go", "");
    let ran = project.resume(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_task_that_is_added_when_nothing_starts_tasks_any_more_is_said_to_stay_undone() {
    let project = Project::new();
    project.write("go", "");
    project.ends(&fan(&json!([{"id": "a", "title": "A"}]), "test -e deploy"), 1);
    edit(&project, |rows| rows.push(json!({"id": "n", "content": "N"})));
    project.write("deploy", "");
    let ran = project.resume(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = "added n; the steps that start tasks are over, so no step of this run does them";
    assert!(ran.stdout.contains(told), "{ran:?}");
    assert_eq!(project.read("order"), "a\n");
}

#[test]
fn edited_rows_keep_their_place_and_what_they_wait_for_and_nothing_else_runs_again() {
    let project = Project::new();
    let tasks = json!([{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]);
    project.ends(&fan(&tasks, "true"), 1);
    assert_eq!(project.read("order"), "a\nb\n");
    let later = |on: &str| json!({"id": "d", "name": "D", "dependencies": [on]});
    edit(&project, |rows| rows.push(later("nope")));
    let refused = project.resume(&[]);
    assert!(
        refused.stderr.contains("task d is blocked by nope, which does not exist"),
        "{refused:?}"
    );
    edit(&project, |rows| {
        rows.pop();
        rows.insert(0, json!({"id": "c", "content": "C"}));
        rows.insert(1, later("c"));
    });
    project.write("go", "");
    let ran = project.resume(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let order = project.read("order");
    let mut done: Vec<&str> = order.lines().collect();
    done.sort_unstable();
    assert_eq!(done, ["a", "b", "b", "c"], "a was done before, and d waits for c: {order}");
    let list = rows(&project);
    let ids: Vec<&str> = list.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["c", "d", "a", "b"]);
    assert_eq!(list[1]["blockedBy"], json!(["c"]));
}

#[test]
fn tasks_that_nothing_can_start_fail_the_run_until_they_are_corrected() {
    let project = Project::new();
    project.write("go", "");
    let tasks = json!([
        {"id": "a", "title": "A", "blockedBy": ["b"]},
        {"id": "b", "title": "B", "dependencies": ["a"]},
        {"id": "c", "title": "C", "status": "in_progress"},
        {"id": "d", "title": "D"},
    ]);
    let ran = project.ends(&fan(&tasks, "true"), 1);
    let told = "node `fan`, key `tasks`: no task can be started; left are a (blocked by b), b \
                (blocked by a), c (in progress, but not under way)";
    assert!(ran.stderr.contains(told), "{ran:?}");
    assert_eq!(project.read("order"), "d\n");
    edit(&project, |rows| {
        rows[0]["blockedBy"] = json!([]);
        rows[1]["blockedBy"] = json!([]);
        rows[2]["status"] = "pending".into();
    });
    let ran = project.resume(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(project.read("order"), "d\na\nb\nc\n");
}

/// Each loop counts its own rounds, and two at once would replace what the other has counted.
#[test]
fn the_iteration_of_a_loop_is_its_own() {
    let criteria = |id: &str| {
        json!({"type": "criteriaLoop", "id": id, "completionSignal": "OK", "maxIterations": 3,
            "taskNodes": [tool(&format!("say-{id}"), "echo no")]})
    };
    let project = Project::new();
    project.write("list.json", r#"[{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]"#);
    let tasks = json!({"type": "taskLoop", "id": "two", "tasksPath": "list.json",
        "taskNodes": [tool("work", "echo {iteration} >> rounds")]});
    let until = with(tasks, json!({"until": {"key": "iteration", "equals": 2}}));
    project.ends(&json!({"nodes": [criteria("one"), until]}), 0);
    assert_eq!(project.read("rounds"), "1\n");

    let at_once = json!({"nodes": [
        {"type": "parallel", "id": "both", "branches": [criteria("one"), criteria("two")]},
    ]});
    project.write("both.json", &at_once.to_string());
    let checked = project.env.run(["check", "both.json"]);
    assert!(checked.stdout.contains("and may replace `iteration`"), "{checked:?}");
}
