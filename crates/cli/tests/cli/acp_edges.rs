//! `atomic acp` at its edges: sessions that two want, turns that come to nothing, editors that break.

use std::fs::{self, File};
use std::io::Write as _;

use serde_json::{Value, json};

use crate::acp::Raw;
use crate::env::{TestEnv, eventually};
use crate::process::{Nonce, SOON};
use crate::scene::{Scene, Turn, agent, ask, done, fail, run, say, wait_for, worker};

fn assistant() -> Turn {
    agent("assistant")
}

fn load(env: &TestEnv, session: &str) -> Value {
    json!({"sessionId": session, "cwd": env.work(), "mcpServers": []})
}

/// Sends a prompt and waits for its answer, with everything that was said until then.
fn answered(raw: &mut Raw, id: u32, session: &str, text: &str) -> (Value, String) {
    raw.prompt(id, session, text);
    let said = std::cell::RefCell::new(String::new());
    let answer = raw.hear(|heard| {
        let chunk = &heard["params"]["update"]["content"]["text"];
        said.borrow_mut().push_str(chunk.as_str().unwrap_or_default());
        heard["id"] == id && heard.get("method").is_none()
    });
    (answer, said.into_inner())
}

fn cancel(raw: &mut Raw, session: &str) {
    let params = json!({"sessionId": session});
    let told = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
    raw.write(&told.to_string());
}

/// Answers the next question; nothing is no answer.
fn choose(raw: &mut Raw, option: Option<&str>) {
    let asked = raw.hear(|heard| heard["method"] == "session/request_permission");
    let outcome = match option {
        Some(option) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}});
    raw.write(&answer.to_string());
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
fn commands_that_wait_for_a_program_can_be_cancelled() {
    let env = TestEnv::new();
    let task = Nonce::new();
    let script = env.outside("hangs.sh");
    fs::write(&script, task.scatter_and_hang()).unwrap();
    let hangs = format!("acp:sh '{}'", script.display());
    let mut raw = Raw::start_as_it_is(env.atomic(["acp", "--backend", &hangs]));
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "/model list");
    task.sleeps(4);
    cancel(&mut raw, &session);
    let answer = raw.hear(|heard| heard["id"] == 3);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    task.is_gone();
    raw.prompt(4, &session, "/model list");
    task.sleeps(4);
    raw.close_input();
    assert_eq!(raw.process.end().code, Some(0));
    task.is_gone();
}

#[test]
fn what_the_agent_has_to_be_told_is_kept_until_it_was() {
    let env = TestEnv::new();
    let told = || assistant().and("You asked: Which?").and("asked debugger: look here");
    let script = Scene::default()
        .turn(agent("debugger").does([say("It was the cache.")]))
        .turn(assistant().and("Ask").does([ask("Which?", &["Red", "Blue"])]))
        .turn(told().and("The user's answer: Fail").does([fail("exit")]))
        .turn(told().and("The user's answer: Wait").does([say("Waiting."), wait_for("never")]))
        .turn(told().and("The user's answer: Green").does([say("Green it is.")]))
        .turn(assistant().without("You asked").without("debugger").does([say("Hello.")]))
        .toml();
    let mut raw = Raw::start(&env, &script);
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "Ask");
    choose(&mut raw, None);
    raw.hear(|heard| heard["id"] == 3 && heard.get("method").is_none());
    let (answer, _) = answered(&mut raw, 4, &session, "/debugger look here");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let (failed, _) = answered(&mut raw, 5, &session, "Fail");
    assert_eq!(failed["error"]["data"]["code"], "exited", "{failed}");
    raw.prompt(6, &session, "Wait");
    raw.hear(|heard| heard.to_string().contains("Waiting."));
    cancel(&mut raw, &session);
    let answer = raw.hear(|heard| heard["id"] == 6);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    let (_, said) = answered(&mut raw, 7, &session, "Green");
    assert_eq!(said, "Green it is.");
    let (_, said) = answered(&mut raw, 8, &session, "Hi");
    assert_eq!(said, "Hello.");
}

#[test]
fn an_answer_outlives_the_next_question_that_gets_none() {
    let env = TestEnv::new();
    let asks = [ask("Which?", &["Red", "Blue"]), ask("How many?", &["One", "Two"])];
    let told = assistant()
        .and("You asked: Which?\nThe user has answered: Blue")
        .and("You asked: How many?")
        .and("The user's answer: Three");
    let script = Scene::default()
        .turn(told.does([say("Three in blue.")]))
        .turn(assistant().does(asks))
        .toml();
    let mut raw = Raw::start(&env, &script);
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "Go");
    choose(&mut raw, Some("1"));
    choose(&mut raw, None);
    raw.hear(|heard| heard["id"] == 3 && heard.get("method").is_none());
    let (_, said) = answered(&mut raw, 4, &session, "Three");
    assert_eq!(said, "Three in blue.");
}

#[test]
fn a_run_that_cannot_be_taken_up_yet_is_still_meant_by_the_next_message() {
    let env = TestEnv::new();
    let task = Nonce::new();
    let hangs = worker("Task #1").does([run(&task.scatter_and_hang())]);
    let scene = Scene::of(&[("#1", &[])]);
    let mut raw = Raw::start(&env, &scene.clone().turn(hangs).toml());
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "/ralph Build it");
    task.sleeps(4);
    raw.close_input();
    assert_eq!(raw.process.end().code, Some(0));
    let mut raw = Raw::start(&env, &scene.rest().toml());
    raw.initialize();
    raw.ask(3, "session/load", &load(&env, &session));
    let held = File::options().write(true).open(env.session().join("lock")).unwrap();
    held.lock().unwrap();
    let (failed, _) = answered(&mut raw, 4, &session, "Go on");
    assert_eq!(failed["error"]["code"], -32_603, "{failed}");
    drop(held);
    let (answer, _) = answered(&mut raw, 5, &session, "Go on");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    eventually("it is completed", SOON, || env.summary()["status"] == "completed");
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

#[test]
fn a_connection_that_breaks_is_a_failure() {
    let env = TestEnv::new();
    let mut raw = Raw::start(&env, &Scene::default().turn(assistant()).toml());
    raw.initialize();
    let Raw { process, input, output } = raw;
    drop(output);
    // It stays open, so that its end is not what ends us.
    let mut input = input.unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}});
    writeln!(input, "{list}").unwrap();
    assert_eq!(process.end().code, Some(1));
}

/// In an editor as on the command line: nothing is begun with a worker that cannot work.
#[test]
fn a_replacement_that_cannot_do_the_roles_work_is_refused_in_an_editor() {
    let env = TestEnv::new();
    let file = env.outside("home/.atomic/agents/worker.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "---\ntools: Read\n---\nYou look.\n").unwrap();
    let mut raw = Raw::start(&env, &Scene::of(&[("#1", &[])]).rest().toml());
    raw.initialize();
    let session = raw.open(&env);
    let (answer, said) = answered(&mut raw, 3, &session, "/ralph Build it");
    let told = format!("{answer}{said}");
    assert!(told.contains("its tools do not include edit and bash"), "{told}");
    assert!(!env.work().join(".ralph/sessions").exists(), "nothing is begun");
}

#[test]
fn removed_flags_are_told_wherever_they_stand_behind_ralph() {
    let env = TestEnv::new();
    let script = Scene::of(&[("#1", &[])]).rest().toml();
    let mut raw = Raw::start(&env, &script);
    raw.initialize();
    let session = raw.open(&env);
    let table = [
        ("/ralph Build it --yolo", "--yolo is gone: "),
        ("/ralph Build it --max-iterations 5", "--max-iterations is gone: "),
        ("/loop Build it --completion-promise=DONE now", "--completion-promise is gone: "),
        ("/ralph --max-cost 3 Build it", "/ralph has no argument --max-cost. "),
    ];
    for (id, (text, says)) in (3u32..).zip(table) {
        let (_, said) = answered(&mut raw, id, &session, text);
        assert!(said.contains(says), "{text}: {said}");
    }
    assert!(!env.work().join(".ralph").exists(), "nothing was started");
    let (_, said) = answered(&mut raw, 9, &session, "/ralph \"Remove --yolo from the docs\"");
    assert!(!said.contains("is gone"), "{said}");
    assert_eq!(env.summary()["prompt"], "Remove --yolo from the docs");
}
