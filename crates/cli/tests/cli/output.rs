//! What is printed: plain lines, facts for other programs, and what becomes of a reader that is
//! slow or goes away.

use std::io::{BufRead as _, BufReader};

use serde_json::Value;

use crate::env::{Ran, TestEnv, eventually};
use crate::process::{Running, SOON};
use crate::scene::{
    CUT_OFF, Scene, TRIED, done, fail, gave_up, note, review, reviewer, say, wait_for, worker,
};

/// A bug that is mended and a finding that is fixed.
fn eventful() -> Scene {
    Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").without(TRIED).does([gave_up("the parser is missing")]))
        .turn(reviewer().and("Review round 1").does([review(&["It leaks"])]))
        .rest()
}

/// The output without what differs from run to run.
fn filtered(env: &TestEnv, text: &str) -> String {
    let session = env.session();
    let id = session.file_name().unwrap().to_str().unwrap();
    let text = text.replace(env.work().to_str().unwrap(), "WORK").replace(id, "SESSION");
    let line = |line: &str| match line.strip_prefix('[').and_then(|rest| rest.split_once("s] ")) {
        Some((_, rest)) => format!("[TIME] {rest}"),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn in_a_pipe_what_happens_is_told_in_plain_lines() {
    let env = TestEnv::new();
    let ran = env.ralph(&eventful().toml(), &["--check", "true", "--workers", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stderr, "");
    assert!(!ran.stdout.contains('\u{1b}'), "no control sequences");
    insta::assert_snapshot!(filtered(&env, &ran.stdout));
}

#[test]
fn a_failed_run_says_what_is_left_and_how_to_go_on() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").does([fail("login")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--check", "true"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let shown = format!("{}\n--- stderr\n{}", ran.stdout, ran.stderr);
    insta::assert_snapshot!(filtered(&env, &shown));
}

/// The facts among the lines, and the typing.
fn facts_and_typing(ran: &Ran) -> (Vec<Value>, Vec<Value>) {
    let lines = ran.stdout.lines();
    let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.into_iter().partition(|line| line.get("seq").is_some())
}

/// The facts as they are in the journal, without the seal of each line.
fn journal(env: &TestEnv) -> Vec<Value> {
    let mut facts = env.facts();
    for fact in &mut facts {
        fact.as_object_mut().unwrap().remove("crc");
    }
    facts
}

#[test]
fn for_programs_every_fact_is_one_line_of_json() {
    let env = TestEnv::new();
    let ran = env.ralph(&eventful().toml(), &["--check", "true", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (facts, typing) = facts_and_typing(&ran);
    assert_eq!(typing, [Value::Null; 0], "only facts");
    let numbers: Vec<u64> = facts.iter().map(|fact| fact["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(facts, journal(&env), "the same as on disk");
    assert_eq!(facts[0]["type"], "session_created");
    assert_eq!(facts.last().unwrap()["ending"]["kind"], "completed");
}

#[test]
fn typing_is_shown_when_it_is_asked_for_and_never_kept() {
    let env = TestEnv::new();
    let ran = env.ralph(&eventful().toml(), &["--check", "true", "--json", "--deltas"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (facts, typing) = facts_and_typing(&ran);
    assert_eq!(facts, journal(&env));
    let typed: String = typing.iter().map(|delta| delta["text"].as_str().unwrap()).collect();
    assert!(typing.iter().all(|delta| delta["delta"] == "typed"), "{typing:?}");
    assert!(typed.contains("the parser is missing"), "{typed}");

    let alone = env.run(["resume", "last", "--deltas"]);
    assert_eq!(alone.code, Some(2), "{alone:?}");
}

/// More than fits into any pipe, from several workers.
fn talkative() -> Scene {
    let long = "All work and no play makes a dull agent. ".repeat(200);
    let tasks: Vec<String> = (1..=8).map(|n| format!("#{n}")).collect();
    let tasks: Vec<(&str, &[&str])> =
        tasks.iter().map(|id| (id.as_str(), &[] as &[&str])).collect();
    let talk = || say(&long);
    let talks = [talk(), talk(), talk(), talk(), talk(), done("said enough")];
    Scene::of(&tasks).turn(worker("Task ").does(talks)).rest()
}

#[test]
fn a_slow_reader_does_not_hold_up_the_run() {
    for flags in [&["--json", "--deltas"] as &[&str], &["--json"]] {
        let env = TestEnv::new();
        let mut running = Running::start(env.ralph_command(&talkative().toml(), flags));
        eventually("the run is over", SOON, || {
            let sessions = env.work().join(".ralph/sessions");
            let completed = |path: std::path::PathBuf| {
                std::fs::read_to_string(path.join("session.json"))
                    .is_ok_and(|text| text.contains("\"status\": \"completed\""))
            };
            let found = std::fs::read_dir(&sessions).into_iter().flatten().flatten();
            found.map(|entry| entry.path()).any(completed)
        });
        assert!(!running.has_ended(), "its output did not fit into the pipe");
        let ran = running.read_to_the_end();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let (facts, _) = facts_and_typing(&ran);
        assert_eq!(facts, journal(&env), "and no fact is lost");
    }
}

#[test]
fn a_reader_that_goes_away_pauses_the_run() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &[])])
        .turn(worker("Task #1:").does([note(), wait_for("go"), say("hello?"), done("told you")]))
        .turn(worker("Task #2:").without(CUT_OFF).does([note(), fail("hang")]))
        .rest();
    for flags in [&["--workers", "2"] as &[&str], &["--workers", "2", "--json"]] {
        let env = if flags.len() == 2 { &env } else { &TestEnv::new() };
        let mut running = Running::start(env.ralph_command(&scene.toml(), flags));
        let mut reader = BufReader::new(running.child().stdout.take().unwrap());
        reader.read_line(&mut String::new()).unwrap();
        eventually("both work", SOON, || env.ledger().len() == 2);
        drop(reader);
        std::fs::write(env.work().join("go"), "").unwrap();
        let ran = running.end();
        assert_eq!(ran.code, Some(4), "{flags:?}: {ran:?}");
        assert_eq!(env.summary()["status"], "paused");
        let resumed = env.run(["resume", "last"]);
        assert_eq!(resumed.code, Some(0), "{flags:?}: {resumed:?}");
        assert_eq!(env.tasks(), ["#1 completed", "#2 completed"]);
    }
}
