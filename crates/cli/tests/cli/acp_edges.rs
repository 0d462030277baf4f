//! `atomic acp` at its edges: sessions that two want, turns that come to nothing, editors that break.

use std::fs;

use serde_json::{Value, json};

use crate::acp::Raw;
use crate::env::{TestEnv, eventually};
use crate::process::SOON;
use crate::scene::{Scene, Turn, agent, done, run, say, wait_for, worker};

fn assistant() -> Turn {
    agent("assistant")
}

fn load(env: &TestEnv, session: &str) -> Value {
    json!({"sessionId": session, "cwd": env.work(), "mcpServers": []})
}

#[test]
fn a_session_is_open_in_one_process_at_a_time() {
    let env = TestEnv::new();
    let waits = assistant().does([run("touch begun"), wait_for("now"), say("Now.")]);
    let script = Scene::default().turn(waits).toml();
    let mut first = Raw::start(&env, &script);
    first.initialize();
    let session = first.open(&env);
    first.prompt(3, &session, "Wait");
    eventually("it waits", SOON, || env.work().join("begun").exists());
    let mut second = Raw::start(&env, &script);
    second.initialize();
    for method in ["session/load", "session/resume"] {
        let refused = second.ask(3, method, &load(&env, &session));
        assert_eq!(refused["error"]["code"], -32_600, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("still open"), "{refused}");
    }
    fs::write(env.work().join("now"), "").unwrap();
    let answer = first.hear(|heard| heard["id"] == 3);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    first.ask(4, "session/close", &json!({"sessionId": session}));
    let loaded = second.ask(5, "session/load", &load(&env, &session));
    assert!(loaded.get("result").is_some(), "{loaded}");
    assert!(first.ask(6, "session/load", &load(&env, &session)).get("error").is_some());
    second.process.kill();
    let loaded = first.ask(7, "session/load", &load(&env, &session));
    assert!(loaded.get("result").is_some(), "{loaded}");
}

#[test]
fn a_run_that_is_loaded_while_another_process_has_it_goes_on_there() {
    let env = TestEnv::new();
    let waits = "touch begun; while [ ! -e now ]; do sleep 0.02; done; touch after";
    let waits = worker("Task #1").does([run(waits), done("made")]);
    let script = Scene::of(&[("#1", &[])]).turn(waits).rest().toml();
    let mut first = Raw::start(&env, &script);
    first.initialize();
    let session = first.open(&env);
    first.prompt(3, &session, "/ralph Build it");
    eventually("it waits", SOON, || env.work().join("begun").exists());
    let mut second = Raw::start(&env, &script);
    second.initialize();
    let run = env.session();
    let run = run.file_name().unwrap().to_str().unwrap();
    let loaded = second.ask(3, "session/load", &load(&env, run));
    assert!(loaded.get("result").is_some(), "{loaded}");
    fs::write(env.work().join("now"), "").unwrap();
    let answer = first.hear(|heard| heard["id"] == 3);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(env.summary()["status"], "completed");
    assert!(env.work().join("after").exists());
}

#[test]
fn a_prompt_is_cancelled_by_its_number_too() {
    let env = TestEnv::new();
    let waits = assistant().does([say("Waiting."), wait_for("never")]);
    let mut raw = Raw::start(&env, &Scene::default().turn(waits).toml());
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "Wait");
    raw.hear(|heard| heard.to_string().contains("Waiting."));
    let cancel = json!({"jsonrpc": "2.0", "method": "$/cancel_request",
        "params": {"requestId": 3}});
    raw.write(&cancel.to_string());
    let answer = raw.hear(|heard| heard["id"] == 3);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
}

#[test]
fn an_open_session_stays_in_its_folder() {
    let env = TestEnv::new();
    let mut raw = Raw::start(&env, &Scene::default().turn(assistant()).toml());
    raw.initialize();
    let session = raw.open(&env);
    let elsewhere = env.work().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let asked = json!({"sessionId": session, "cwd": elsewhere, "mcpServers": []});
    let refused = raw.ask(3, "session/load", &asked);
    assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    let loaded = raw.ask(4, "session/load", &load(&env, &session));
    assert!(loaded.get("result").is_some(), "{loaded}");
}
