//! Task lists: in the words of workflows and of version 1.0 files, and edited by people.

use std::fs;

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};
use crate::env::{Ran, TestEnv, eventually};
use crate::process::{Running, SOON};
use crate::scene::{Scene, done, note, review, reviewer, run, wait_for, worker};

fn rows(project: &Project) -> Vec<Value> {
    let text = fs::read_to_string(project.session().join("tasks.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The state at the end of a run that was streamed.
fn last_values(ran: &Ran) -> Value {
    let line = ran.stdout.lines().last().unwrap_or_else(|| panic!("{ran:?}"));
    serde_json::from_str::<Value>(line).unwrap()["values"].clone()
}

fn words() -> Value {
    json!([
        {"id": "a", "title": "First", "status": "passing"},
        {"id": "b", "title": "Second", "status": "failing", "error": "no way"},
        {"id": "c", "title": "Third", "status": "skipped"},
        {"id": "d", "name": "Fourth", "status": "blocked", "dependencies": ["b", "c"]},
    ])
}

#[test]
fn a_list_in_other_words_is_shown_as_it_is_meant() {
    let project = Project::new();
    let workflow = json!({"state": {"tasks": words()}, "nodes": [tool("work", "true")]});
    let ran = project.ends(&workflow, 0);
    for line in ["✓ a First", "✗ b Second — no way", "✓ c Third", "○ d Fourth › blocked by b"]
    {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    let seen: Vec<String> = rows(&project)
        .iter()
        .map(|row| format!("{} {} {}", row["content"], row["status"], row["activeForm"]))
        .collect();
    let expected = [
        r#""First" "completed" "First""#,
        r#""Second" "failed" "Second""#,
        r#""Third" "completed" "Third""#,
        r#""Fourth" "pending" "Fourth""#,
    ];
    assert_eq!(seen, expected);
    assert_eq!(project.env.summary()["tasks"], json!({"done": 2, "total": 4}));
}

fn fan(tasks: &Value) -> Value {
    json!({"state": {"tasks": tasks}, "nodes": [
        {"type": "each", "id": "fan", "over": "tasks", "ready": "tasks", "workers": 1,
         "nodes": [tool("work", "echo {item.id} >> order")]},
    ]})
}

#[test]
fn tasks_start_by_priority_once_what_they_wait_for_is_done_or_skipped() {
    let tasks = json!([
        {"id": "late", "title": "Late", "status": "pending", "priority": 9},
        {"id": "after", "title": "After", "status": "blocked", "blockedBy": ["skip", "pass"]},
        {"id": "skip", "title": "Skip", "status": "skipped"},
        {"id": "pass", "title": "Pass", "status": "passing"},
        {"id": "fail", "title": "Fail", "status": "failing"},
        {"id": "never", "title": "Never", "status": "pending", "blockedBy": ["fail"]},
        {"id": "early", "title": "Early", "status": "pending", "priority": -1},
    ]);
    let project = Project::new();
    project.ends(&fan(&tasks), 0);
    assert_eq!(project.read("order"), "early\nafter\nlate\n");

    let project = Project::new();
    let ran = project.ends(&fan(&json!([{"id": "a", "title": "A", "status": "todo"}])), 1);
    assert!(ran.stderr.contains("task `a` has the status \"todo\""), "{ran:?}");
}

fn task_file() -> Value {
    json!({"version": "1.0", "metadata": {"createdAt": "then", "updatedAt": "then"}, "tasks": [
        {"id": "a", "name": "First", "status": "pending", "metadata": {"mine": 1}},
        {"id": "b", "name": "Second", "status": "pending", "dependencies": ["a", "c"]},
        {"id": "c", "name": "Third", "status": "skipped"},
    ]})
}

/// Copies the file as it is while a task is done, and fails for `b` while there is a file `broken`.
fn looping(more: Value) -> Value {
    let command = "cp list.json seen-{currentTask.id}.json; \
        test ! -e broken || test {currentTask.id} != b";
    let work = tool("work", command);
    let node =
        json!({"type": "taskLoop", "id": "loop", "tasksPath": "list.json", "taskNodes": [work]});
    json!({"nodes": [with(node, more)]})
}

fn statuses(text: &str) -> String {
    let file: Value = serde_json::from_str(text).unwrap();
    let words = file["tasks"].as_array().unwrap().iter();
    words.map(|task| task["status"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_task_loop_keeps_the_words_of_the_file_from_start_to_end() {
    let project = Project::new();
    project.write("list.json", &task_file().to_string());
    let ran = project.run(&looping(json!({})), &["--stream", "values"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(statuses(&project.read("seen-a.json")), "in_progress pending skipped");
    assert_eq!(statuses(&project.read("seen-b.json")), "passing in_progress skipped");
    let end: Value = serde_json::from_str(&project.read("list.json")).unwrap();
    let mut wanted = task_file();
    wanted["tasks"][0]["status"] = "passing".into();
    wanted["tasks"][1]["status"] = "passing".into();
    assert!(end["metadata"]["updatedAt"].as_str().unwrap().starts_with("20"), "{end}");
    wanted["metadata"]["updatedAt"] = end["metadata"]["updatedAt"].clone();
    assert_eq!(end, wanted, "nothing else has changed");
    let state = last_values(&ran);
    assert_eq!(
        (&state["shouldContinue"], &state["allTasksComplete"], &state["maxIterationsReached"]),
        (&json!(false), &json!(true), &json!(false)),
        "{state}"
    );
    assert_eq!(state["iteration"], 2);
}

#[test]
fn a_task_that_fails_in_a_loop_says_so_in_the_file_until_it_is_done() {
    let project = Project::new();
    project.write("list.json", &task_file().to_string());
    project.write("broken", "");
    project.ends(&looping(json!({})), 1);
    let file: Value = serde_json::from_str(&project.read("list.json")).unwrap();
    assert_eq!(statuses(&file.to_string()), "passing failing skipped");
    assert!(file["tasks"][1]["metadata"]["error"].is_string(), "{file}");
    fs::remove_file(project.env.work().join("broken")).unwrap();
    let again = project.resume(&[]);
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(statuses(&project.read("seen-b.json")), "passing in_progress skipped");
    assert_eq!(statuses(&project.read("list.json")), "passing passing skipped");
}

#[test]
fn a_task_loop_says_why_it_ended() {
    let until = json!({"until": {"key": "iteration", "equals": 2}});
    let table = [
        (json!({"maxIterations": 1}), json!([false, false, true, 1]), "passing pending skipped"),
        (json!({"maxIterations": 2}), json!([false, true, false, 2]), "passing passing skipped"),
        (until, json!([false, false, false, 1]), "passing pending skipped"),
    ];
    for (more, flags, words) in table {
        let project = Project::new();
        project.write("list.json", &task_file().to_string());
        let ran = project.run(&looping(more.clone()), &["--stream", "values"]);
        assert_eq!(ran.code, Some(0), "{more}: {ran:?}");
        let state = last_values(&ran);
        let keys = ["shouldContinue", "allTasksComplete", "maxIterationsReached", "iteration"];
        let said: Vec<Value> = keys.iter().map(|key| state[key].clone()).collect();
        assert_eq!(Value::Array(said), flags, "{more}");
        assert_eq!(statuses(&project.read("list.json")), words, "{more}");
    }
}

#[test]
fn a_criteria_loop_says_why_it_ended() {
    let speak = "echo x >> said; test $(wc -l < said) -lt 2 && echo no || echo ALL GOOD";
    for (limit, flags) in [(3, json!([false, true, false, 2])), (1, json!([false, false, true, 1]))]
    {
        let project = Project::new();
        let workflow = json!({"nodes": [{"type": "criteriaLoop", "completionSignal": "ALL GOOD",
            "maxIterations": limit, "taskNodes": [tool("speak", speak)]}]});
        let ran = project.run(&workflow, &["--stream", "values"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let state = last_values(&ran);
        let keys = ["shouldContinue", "criteriaComplete", "maxIterationsReached", "iteration"];
        let said: Vec<Value> = keys.iter().map(|key| state[key].clone()).collect();
        assert_eq!(Value::Array(said), flags, "{limit}: {state}");
    }
}

/// A run with a task that waits for the file `go`, and three that are behind it, paused.
fn paused() -> TestEnv {
    let env = TestEnv::new();
    let tasks: [(&str, &[&str]); 4] =
        [("#1", &[]), ("#2", &["#1"]), ("#3", &["#1"]), ("#4", &["#2"])];
    let scene = Scene::of(&tasks)
        .turn(worker("Task #1:").does([note(), wait_for("go"), done("at last")]))
        .rest();
    let mut running = Running::start(env.ralph_command(&scene.toml(), &["--workers", "1"]));
    eventually("the worker works", SOON, || env.ledger().len() == 1);
    running.signal("INT");
    let ran = running.end();
    assert_eq!(ran.code, Some(4), "{ran:?}");
    env
}

fn list(env: &TestEnv) -> Vec<Value> {
    let text = fs::read_to_string(env.session().join("tasks.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn write_list(env: &TestEnv, list: &[Value]) {
    let text = serde_json::to_string_pretty(list).unwrap();
    fs::write(env.session().join("tasks.json"), text).unwrap();
}

fn of_type(env: &TestEnv, kind: &str) -> Vec<Value> {
    env.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
}

#[test]
fn an_edit_of_a_paused_run_counts_and_is_recorded() {
    let env = paused();
    let mut rows = list(&env);
    rows[1]["content"] = "Make another part".into();
    rows[1]["blockedBy"] = json!([]);
    rows.remove(2);
    rows[2]["status"] = "completed".into();
    rows.insert(
        2,
        json!({"id": "#9", "content": "Make the new part", "blockedBy": ["#2"],
        "description": "as told on paper"}),
    );
    write_list(&env, &rows);
    fs::write(env.work().join("go"), "").unwrap();
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = "note: tasks.json was edited while the run was paused: \
        changed #2, #4; added #9; removed #3";
    assert!(ran.stdout.contains(told), "{}", ran.stdout);
    assert_eq!(of_type(&env, "state_patched").len(), 1);
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed", "#9 completed", "#4 completed"]);
    assert_eq!(list(&env)[1]["content"], "Make another part");
    let worked = |id: &str| env.ledger().iter().filter(|line| line.contains(id)).count();
    assert_eq!((worked("#2"), worked("#9"), worked("#3"), worked("#4")), (1, 1, 0, 0));
    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    assert!(progress.contains("as told on paper"), "{progress}");
    assert!(!env.session().join("tasks.edited-1.json").exists(), "nothing was discarded");
}

#[test]
fn a_task_that_was_done_is_done_again_when_a_person_says_so() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #2:").does([note(), wait_for("go"), done("at last")]))
        .rest();
    let mut running = Running::start(env.ralph_command(&scene.toml(), &["--workers", "2"]));
    eventually("the second worker works", SOON, || env.ledger().len() == 2);
    running.signal("INT");
    assert_eq!(running.end().code, Some(4));
    let mut rows = list(&env);
    assert_eq!(rows[0]["status"], "completed");
    rows[0]["status"] = "pending".into();
    write_list(&env, &rows);
    fs::write(env.work().join("go"), "").unwrap();
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
    assert_eq!(env.ledger().iter().filter(|line| line.contains("[#1]")).count(), 2);
}

#[test]
fn an_edit_that_cannot_be_used_is_refused_with_its_line_and_changes_nothing() {
    let env = paused();
    // A run that was resumed in spite of its edit would end.
    fs::write(env.work().join("go"), "").unwrap();
    let path = env.session().join("tasks.json");
    let good = fs::read_to_string(&path).unwrap();
    let set = |place: usize, key: &str, value: Value| {
        let mut rows = list(&env);
        rows[place][key] = value;
        rows.iter().map(Value::to_string).collect::<Vec<_>>().join(",\n")
    };
    let table = [
        ("not JSON".to_owned(), "1: not a JSON list of tasks"),
        ("[\n{\"id\": \"#1\",,}]".to_owned(), "2: not a JSON list of tasks"),
        ("{}".to_owned(), "1: not a JSON list of tasks: the file holds something else"),
        ("[]".to_owned(), "1: the task list is empty"),
        (
            format!("[\n{}]", set(3, "dependencies", json!(["#7"]))),
            "5: task #4 is blocked by #7, which does not exist",
        ),
        (
            format!("[\n{}]", set(1, "dependencies", json!("#1"))),
            "3: task #2: `dependencies` is \"#1\", not a list of ids",
        ),
        (format!("[\n{}]", set(1, "status", json!("done"))), "3: task #2 has the status \"done\""),
        (
            format!("[\n{}]", set(1, "id", json!("#1"))),
            "3: the id #1 is used twice; first on line 2",
        ),
        (format!("[\n{}]", set(2, "content", json!(" "))), "4: task #3 has no content"),
        (
            format!("[\n{}]", set(3, "blockedBy", json!(["#7"]))),
            "5: task #4 is blocked by #7, which does not exist",
        ),
        (
            format!("[\n{}]", set(1, "blockedBy", json!(["#4"]))),
            "3: tasks wait for each other: #2 -> #4 -> #2",
        ),
        (format!("[\n{}]", set(1, "id", Value::Null)), "3: a task has no id"),
        (format!("[\n{}]", set(1, "status", json!("in_progress"))), "3: task #2 is `in_progress`"),
        (format!("[\n{}]", set(0, "status", json!("completed"))), "2: task #1 is under way"),
        (
            format!(
                "[{}]",
                list(&env)[1..]
                    .iter()
                    .map(|row| with(row.clone(), json!({"blockedBy": []})).to_string())
                    .collect::<Vec<_>>()
                    .join(",")
            ),
            "1: task #1 is under way and cannot be removed",
        ),
    ];
    let journal = fs::read(env.session().join("journal.jsonl")).unwrap();
    for (text, problem) in table {
        fs::write(&path, &text).unwrap();
        let ran = env.run(["resume", "last"]);
        assert_eq!(ran.code, Some(1), "{problem}: {ran:?}");
        let told = format!("{}:{problem}", path.display());
        assert!(ran.stderr.contains(&told), "{told}: {ran:?}");
        assert!(ran.stderr.contains("hint: "), "{problem}: {ran:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{problem}");
        assert_eq!(fs::read(env.session().join("journal.jsonl")).unwrap(), journal, "{problem}");
        fs::write(&path, &good).unwrap();
    }
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(of_type(&env, "state_patched").is_empty(), "nothing was edited in the end");
}

/// A worker that says in the task list that its task is done must not be believed, also when the
/// run is paused or killed before anything else is written.
#[test]
fn an_agents_edit_is_not_taken_for_one_of_a_paused_run() {
    for signal in ["INT", "KILL"] {
        let env = TestEnv::new();
        let edits = run("sed -i s/in_progress/completed/ .ralph/sessions/*/tasks.json");
        let scene = Scene::of(&[("#1", &[])])
            .turn(worker("Task #1:").does([edits, note(), wait_for("go"), done("at last")]))
            .rest();
        let mut running = Running::start(env.ralph_command(&scene.toml(), &[]));
        eventually("the worker works", SOON, || env.ledger().len() == 1);
        running.signal(signal);
        let first = running.end();
        fs::write(env.work().join("go"), "").unwrap();
        let second = env.run(["resume", "last"]);
        assert_eq!(second.code, Some(0), "{signal}: {second:?}");
        assert_eq!(env.ledger().len(), 2, "{signal}: the worker had to do its task");
        let kept = env.session().join("tasks.edited-1.json");
        assert!(fs::read_to_string(&kept).unwrap().contains("\"completed\""), "{signal}");
        let told = if signal == "INT" { &first } else { &second };
        let note = format!("the edit was not used and is kept as {}", kept.display());
        assert!(told.stdout.contains(&note), "{signal}: {told:?}");
        let last = format!("the edit was not used: {}", kept.display());
        assert!(second.stdout.contains(&last), "{signal}: {second:?}");
        assert_eq!(env.summary()["tasks"]["keptEdits"][0], kept.display().to_string(), "{signal}");
    }
}

#[test]
fn a_task_that_is_added_during_the_review_is_done() {
    let env = TestEnv::new();
    let waits = reviewer().does([note(), wait_for("go"), review(&[])]);
    let scene = Scene::of(&[("#1", &[])]).turn(waits).workers();
    let mut running = Running::start(env.ralph_command(&scene.toml(), &[]));
    eventually("the reviewer works", SOON, || env.ledger().len() == 2);
    running.signal("INT");
    assert_eq!(running.end().code, Some(4));
    let mut rows = list(&env);
    rows.push(json!({"id": "#2", "content": "Make one more", "status": "pending"}));
    write_list(&env, &rows);
    fs::write(env.work().join("go"), "").unwrap();
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
}
