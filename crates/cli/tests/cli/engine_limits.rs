//! Limits of a run, and wishes of its user, reach everything that is under way.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::engine::{Project, tool, with};
use crate::env::{Ran, eventually};
use crate::process::{Running, SOON};

/// Goes round for ever without ever waiting for anybody.
fn restless() -> Value {
    json!({"nodes": [{"type": "loop", "id": "again", "maxIterations": 0,
        "until": {"key": "never", "equals": true}, "node": {"type": "clearContext", "id": "clear"}}]})
}

/// Runs a workflow that has to end by itself.
fn ends_soon(project: &Project, workflow: &Value, more: &[&str]) -> Ran {
    project.write("flow.json", &workflow.to_string());
    Running::start(project.command("flow.json", more)).end()
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

fn checkpoints(session: &Path) -> usize {
    fs::read_dir(session.join("checkpoints")).map_or(0, Iterator::count)
}

#[test]
fn a_loop_that_never_waits_ends_when_its_time_is_up() {
    let project = Project::new();
    let ran = ends_soon(&project, &restless(), &["--timeout", "1s"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert!(ran.stderr.contains("the run has used all of its 1 s"), "{}", ran.stderr);

    // Nothing is started here at all: only the condition is looked at again and again.
    let project = Project::new();
    let mut idle = restless();
    idle["state"] = json!({"items": []});
    idle["nodes"][0]["node"] =
        json!({"type": "each", "id": "all", "over": "items", "node": tool("do", "true")});
    let ran = ends_soon(&project, &idle, &["--timeout", "1s"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
}

#[test]
fn a_loop_that_never_waits_can_be_paused_and_goes_on_where_it_was() {
    let project = Project::new();
    project.write("flow.json", &restless().to_string());
    let mut running = Running::start(project.command("flow.json", &[]));
    eventually("it has gone round for a while", SOON, || {
        project.sessions().iter().any(|session| checkpoints(session) > 0)
    });
    running.signal("INT");
    let paused = running.end();
    assert_eq!(paused.code, Some(4), "{paused:?}");
    let rounds = |project: &Project| project.of_type("step_finished").len();
    let before = rounds(&project);
    let journal = project.session().join("journal.jsonl");

    let grown = size(&journal);
    let mut running = Running::start(project.env.atomic(["resume", "last"]));
    eventually("it goes on", SOON, || size(&journal) > grown + 100_000);
    running.signal("TERM");
    assert_eq!(running.end().code, Some(4));
    assert!(rounds(&project) > before);
    let mut steps: Vec<String> = project.story();
    steps.retain(|line| line.starts_with("finished"));
    let all = steps.len();
    steps.sort();
    steps.dedup();
    assert_eq!(steps.len(), all, "no round twice");
}

#[test]
fn the_time_of_a_run_stops_commands_and_begins_none() {
    let skipped = json!({"timeoutMs": 1_000, "nodes": [
        with(tool("a", "exec sleep 1000"), json!({"onError": "skip"})),
        tool("b", "touch ran"),
    ]});
    let items = json!({"timeoutMs": 1_000, "state": {"items": [1, 2, 3, 4]}, "nodes": [
        {"type": "each", "id": "all", "over": "items", "workers": 1,
            "node": tool("do", "exec sleep 1000")},
        tool("b", "touch ran"),
    ]});
    for workflow in [skipped, items] {
        let project = Project::new();
        let ran = ends_soon(&project, &workflow, &[]);
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert!(ran.stderr.contains("the run has used all of its 1 s"), "{}", ran.stderr);
        assert!(!project.env.work().join("ran").exists(), "{workflow}");
    }
}

#[test]
fn the_time_of_a_run_ends_the_rest_before_another_attempt() {
    let project = Project::new();
    let inner = json!({"nodes": [tool("breaks", "echo x >> ran; exit 3")]});
    let workflow = json!({"timeoutMs": 3_000, "nodes": [
        {"type": "subgraph", "id": "sub", "graph": inner,
            "retry": {"maxAttempts": 2, "backoffMs": 600_000}},
    ]});
    let ran = ends_soon(&project, &workflow, &[]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    assert_eq!(project.read("ran"), "x\n", "it is not tried again");
}

#[test]
fn the_time_of_a_run_is_kept_when_it_is_resumed() {
    let project = Project::new();
    let workflow = json!({"nodes": [tool("work", "echo x >> ran; exec sleep 1000")]});
    let ran = ends_soon(&project, &workflow, &["--timeout", "3s"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let again = Running::start(project.env.atomic(["resume", "last"])).end();
    assert_eq!(again.code, Some(5), "{again:?}");
    assert!(again.stderr.contains("the run has used all of its 3 s"), "{}", again.stderr);
    assert_eq!(project.read("ran"), "x\nx\n", "counted anew");
}

#[test]
fn a_time_below_a_second_is_told_in_milliseconds() {
    let project = Project::scripted("[[turn]]\ndo = [{ fail = \"hang\" }]\n");
    let agent = json!({"type": "agent", "id": "a", "prompt": "Work", "timeoutMs": 400});
    let ran = project.ends(&json!({"nodes": [agent]}), 1);
    assert!(ran.stderr.contains("took longer than 400 ms"), "{}", ran.stderr);
}

/// A command is no turn.
#[test]
fn a_command_may_take_longer_than_a_turn() {
    let project = Project::new();
    let ran = project
        .run(&json!({"nodes": [tool("slow", "sleep 1.5; touch done")]}), &["--turn-timeout", "1s"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(project.env.work().join("done").exists());
}

#[test]
fn what_is_left_out_of_a_long_output_is_said() {
    let project = Project::new();
    let long = "head -c 70000 /dev/zero | tr '\\0' x; echo; echo end";
    let exact = "head -c 65536 /dev/zero | tr '\\0' x";
    project.ends(&json!({"nodes": [tool("long", long), tool("exact", exact)]}), 0);
    let finished = project.of_type("step_finished");
    let output = |number: usize| finished[number]["result"]["output"].clone();
    // Long values are kept aside; then the fact holds where.
    let text = |value: Value| -> String {
        let hash = value["$blob"].as_str().unwrap_or_else(|| panic!("{value}"));
        let path = project.session().join("blobs").join(hash);
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    };
    let long = text(output(0));
    let (first, rest) = long.split_once('\n').unwrap();
    assert_eq!(first, format!("[the first {} bytes were left out]", 70_005 - 65_536));
    assert!(rest.starts_with('x') && rest.ends_with("\nend"), "{}", &rest[..100]);
    assert_eq!(text(output(1)).len(), 65_536);
}
