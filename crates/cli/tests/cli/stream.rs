//! What happens, as streams for other programs.

use serde_json::{Value, json};

use crate::engine::{Project, tool};
use crate::env::{Ran, TestEnv};
use crate::scene::{Scene, TRIED, gave_up, worker};

/// A bug that is mended.
fn scene() -> Scene {
    Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").without(TRIED).does([gave_up("the parser is missing")]))
        .rest()
}

fn streamed(env: &TestEnv, modes: &str) -> Vec<Value> {
    let ran = env.ralph(&scene().toml(), &["--check", "true", "--stream", modes]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    lines(&ran)
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn modes(lines: &[Value]) -> Vec<&str> {
    let mut modes: Vec<_> = lines.iter().map(|line| line["mode"].as_str().unwrap()).collect();
    modes.sort_unstable();
    modes.dedup();
    modes
}

#[test]
fn streams_come_as_they_were_asked_for_and_alone() {
    for order in [["updates", "values"], ["values", "updates"]] {
        let env = TestEnv::new();
        let lines = streamed(&env, &order.join(","));
        assert_eq!(modes(&lines), ["updates", "values"], "nothing else, not even a last word");
        let place = |line: &Value| order.iter().position(|mode| line["mode"] == *mode).unwrap();
        let told: Vec<_> =
            lines.iter().map(|line| (line["seq"].as_u64().unwrap(), place(line))).collect();
        assert!(told.is_sorted(), "{order:?}: {told:?}");
        let both = told.windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
        assert!(both >= 3, "steps that change the state are told in both: {both}");
    }
}

#[test]
fn the_last_values_are_what_the_files_say() {
    let env = TestEnv::new();
    let lines = streamed(&env, "values");
    assert_eq!(modes(&lines), ["values"]);
    let last = &lines.last().unwrap()["values"];
    let status = |task: &Value| {
        format!("{} {}", task["id"].as_str().unwrap(), task["status"].as_str().unwrap())
    };
    let tasks: Vec<String> = last["tasks"].as_array().unwrap().iter().map(status).collect();
    assert_eq!(tasks, env.tasks());
    assert_eq!(last["prompt"], "Build it");
    assert!(last["outputs"]["reviewer"].is_object(), "{last}");
}

#[test]
fn events_and_debugging_have_every_fact() {
    let env = TestEnv::new();
    let lines = streamed(&env, "events,debug");
    let mut facts = env.facts();
    for fact in &mut facts {
        fact.as_object_mut().unwrap().remove("crc");
    }
    for mode in ["events", "debug"] {
        let told = lines.iter().filter(|line| line["mode"] == mode);
        let told: Vec<_> = told.filter_map(|line| line.get("fact").cloned()).collect();
        assert_eq!(told, facts, "{mode}");
    }
    let events = lines.iter().filter(|line| line["mode"] == "events");
    for line in events {
        assert_eq!(line.as_object().unwrap().len(), 2, "a mode and a fact: {line}");
    }
    let begins = |line: &&Value| line["effects"][0]["effect"] == "start";
    assert!(lines.iter().filter(begins).count() >= 5);
}

#[test]
fn a_stream_is_taken_up_again_with_the_state_as_it_is() {
    let env = TestEnv::new();
    let first = streamed(&env, "values");
    let forked = env.run(["fork", "last@parse-tasks#1", "--run", "--stream", "values,updates"]);
    assert_eq!(forked.code, Some(0), "{forked:?}");
    let again = lines(&forked);
    let planned = |line: &&Value| line["values"]["tasks"].as_array().is_some_and(|t| t.len() == 2);
    assert_eq!(again[0]["values"], first.iter().find(planned).unwrap()["values"]);
    assert_eq!(modes(&again), ["updates", "values"]);
}

#[test]
fn what_is_no_stream_is_refused() {
    let env = TestEnv::new();
    let table: [(&[&str], &str); 3] = [
        (&["--stream", "valeus"], "valeus"),
        (&["--stream", "values,"], ""),
        (&["--stream", "values", "--json"], "cannot be used with"),
    ];
    for (flags, says) in table {
        let ran = env.ralph(&scene().toml(), flags);
        assert_eq!(ran.code, Some(2), "{flags:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{flags:?}: {}", ran.stderr);
    }
    assert!(!env.work().join(".ralph").exists(), "nothing was started");
    let plain = env.ralph(&scene().toml(), &["--check", "true", "--json"]);
    assert!(lines(&plain).iter().all(|line| line.get("mode").is_none()));
    assert_eq!(lines(&plain)[0]["type"], json!("session_created"));
}

#[test]
fn a_stream_without_facts_says_on_standard_error_why_the_run_ended() {
    let broken = json!({"nodes": [tool("build", "echo no compiler >&2; exit 3")]});
    for (modes, says) in [("values", 1), ("updates", 1), ("values,events", 0), ("debug", 0)] {
        let project = Project::new();
        let ran = project.run(&broken, &["--stream", modes]);
        assert_eq!(ran.code, Some(1), "{modes}: {ran:?}");
        assert_eq!(ran.stderr.matches("error: ").count(), says, "{modes}: {ran:?}");
        assert_eq!(ran.stderr.matches("no compiler").count(), says, "{modes}: {ran:?}");
        assert_eq!(ran.stderr.matches("atomic resume ").count(), says, "{modes}: {ran:?}");
        assert!(lines(&ran).iter().all(|line| line["mode"].is_string()), "{modes}: {ran:?}");
    }
    let asks = json!({"nodes": [
        {"type": "ask_user", "id": "ask", "question": "Which colour?", "options": ["Red", "Blue"]},
    ]});
    let project = Project::new();
    let ran = project.run(&asks, &["--stream", "values"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    for text in ["Which colour?", "2. Blue", "atomic answer "] {
        assert!(ran.stderr.contains(text), "{text}: {ran:?}");
    }
}

/// Whoever follows only the changes knows the state all the same.
#[test]
fn changes_made_because_of_a_failure_are_told() {
    let update = json!({"action": "skip", "stateUpdate": {"mood": "gloomy"}});
    let fails =
        |id: &str| json!({"type": "tool", "id": id, "command": "exit 3", "onError": update});
    let inner =
        json!({"type": "parallel", "id": "both", "branches": [fails("a"), tool("b", "true")]});
    for first in [fails("first"), inner] {
        let project = Project::new();
        let workflow =
            json!({"state": {"mood": "fine"}, "nodes": [first, tool("after", "exit 0")]});
        let ran = project.run(&workflow, &["--stream", "updates,values"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let lines = lines(&ran);
        let of = |mode: &'static str| lines.iter().filter(move |line| line["mode"] == mode);
        let told: Vec<_> = of("updates").map(|line| line["patch"]["mood"].clone()).collect();
        let told: Vec<_> = told.iter().filter(|mood| !mood.is_null()).collect();
        assert_eq!(told, ["gloomy"], "{}", ran.stdout);
        assert_eq!(of("values").next_back().unwrap()["values"]["mood"], "gloomy");
    }
}
