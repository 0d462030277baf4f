//! Agents that let us down, checks that disagree with them, and what is said about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::env::TestEnv;
use crate::scene::{CUT_OFF, Scene, TRIED, done, fail, gave_up, note, planner, run, say, worker};

/// The error of each task in `tasks.json`.
fn errors(env: &TestEnv) -> BTreeMap<String, String> {
    let text = fs::read_to_string(env.session().join("tasks.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let field = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (field(row, "id"), field(row, "error"))).collect()
}

/// When each fact of this kind about an item's worker was recorded, with the fact.
fn of_worker(env: &TestEnv, kind: &str, item: &str) -> Vec<Value> {
    let step = format!("[{item}]/worker");
    let about = |fact: &Value| fact["step"].as_str().is_some_and(|s| s.contains(&step));
    env.facts().into_iter().filter(|fact| fact["type"] == kind && about(fact)).collect()
}

fn starts(env: &TestEnv, item: &str) -> usize {
    of_worker(env, "step_started", item).len()
}

/// One task for each way to fail, side by side, and one that is fine.
#[test]
fn every_failure_of_an_agent_has_its_own_message_and_stops_nobody_else() {
    let ways = [
        ("#1", "hang", "the agent's turn took longer than 5 s and was stopped"),
        ("#2", "exit", "the program ended in the middle of a turn (exit status: 1)"),
        ("#3", "garbage", "cannot make sense of what the program sent: \"%&$ no protocol\""),
        ("#4", "silence", "worker ended its turn twice without saying anything"),
        ("#5", "rate_limit", "the provider limits the rate of requests"),
        ("#6", "overloaded", "the provider is overloaded"),
        ("#7", "context_overflow", "has outgrown the model's context"),
        ("#8", "login", "needs you to log in"),
    ];
    let more = [
        ("#9", "worker did not answer as it was asked to, twice: there is no report"),
        ("#10", "has no turn for the agent `worker` and the prompt \"Task #10: Make part 10"),
    ];
    let ids: Vec<String> = (1..=11).map(|n| format!("#{n}")).collect();
    let tasks: Vec<(&str, &[&str])> = ids.iter().map(|id| (id.as_str(), &[] as &[&str])).collect();
    let mut scene = Scene::of(&tasks);
    for (id, how, _) in ways {
        scene = scene.turn(worker(&format!("Task {id}:")).does([fail(how)]));
    }
    // The second prompt of a conversation does not name the task; it is for those who were silent.
    scene = scene.turn(worker("Task #9:").does([say("I am done!")]));
    let scene = scene
        .turn(worker("Task #11:").does([note(), done("fine")]))
        .turn(worker("there is no report in your answer").does([fail("silence")]));

    let env = TestEnv::new();
    // Trouble of the provider fails a turn only where nothing is waited for.
    let limits = ["--turn-timeout", "5s", "--max-attempts", "1", "--retry-window", "0"];
    let flags = [&limits[..], &["--workers", "11"]].concat();
    let ran = env.ralph(&scene.toml(), &flags);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(env.summary()["status"], "failed");
    let errors = errors(&env);
    let messages = ways.iter().map(|(id, _, message)| (*id, *message)).chain(more);
    for (id, message) in messages {
        assert!(errors[id].contains(message), "{id}: {}", errors[id]);
        assert!(ran.stderr.contains(message), "{id} {message}: {}", ran.stderr);
    }
    let distinct: BTreeSet<&String> = errors.values().collect();
    assert_eq!(distinct.len(), 11, "each has its own message: {errors:#?}");
    let mut expected: Vec<String> = (1..=10).map(|n| format!("#{n} failed")).collect();
    expected.push("#11 completed".to_owned());
    assert_eq!(env.tasks(), expected, "the others go on");

    // What passes by itself is waited for, longer each time; nothing else is.
    let failed = of_worker(&env, "step_failed", "#5");
    let at: Vec<i64> = failed.iter().map(|fact| millis(&fact["at"])).collect();
    assert_eq!(at.len(), 3, "{failed:?}");
    assert!(at[1] - at[0] >= 1_000 && at[2] - at[1] >= 4_000, "{at:?}");
    assert_eq!((starts(&env, "#5"), starts(&env, "#6"), starts(&env, "#2")), (3, 3, 1));
}

fn millis(at: &Value) -> i64 {
    at.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// A planner that lets us down ends the run, with the same words.
#[test]
fn a_planner_that_fails_fails_the_run() {
    for (how, message) in [("exit", "ended in the middle of a turn"), ("login", "log in")] {
        let env = TestEnv::new();
        let ran = env.ralph(&Scene::default().turn(planner().does([fail(how)])).toml(), &[]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
        assert_eq!(env.summary()["status"], "failed");
    }
}

#[test]
fn no_report_is_asked_for_once_more() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("there is no report in your answer").does([done("now with a report")]))
        .turn(worker("Task #1:").does([say("Oh, and I am done.")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(starts(&env, "#1"), 1, "in the same step");
}

#[test]
fn a_worker_that_claims_success_while_a_check_is_red_is_not_believed() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &[])])
        .turn(worker("Task #3:").does([done("fine")]))
        .turn(worker("Task #1").does([run("touch broken"), done("all tests pass, I swear")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--check", "test ! -e broken", "--workers", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // One attempt at the task, and three at the bug-fix, which count on the task.
    assert_eq!(starts(&env, "#1") + starts(&env, "#1-bug-1"), 4);
    let tasks = env.tasks();
    assert_eq!(tasks[..3], ["#1 failed", "#1-bug-1 failed", "#2 pending"], "{tasks:?}");
    let errors = errors(&env);
    assert!(errors["#1-bug-1"].contains("`test ! -e broken` fails"), "{errors:?}");
    assert!(ran.stderr.contains("#2 is blocked by #1"), "{}", ran.stderr);
    let believed = |fact: &Value| {
        fact["result"]["output"]["status"] == "completed"
            && fact["step"]
                .as_str()
                .is_some_and(|step| step.contains("[#1") && step.contains("settle"))
    };
    assert!(!env.facts().iter().any(believed), "at no time");
}

#[test]
fn a_worker_that_reports_failure_leads_to_a_bug_fix_task() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])])
        .turn(worker("Task #1:").without(TRIED).does([note(), gave_up("the parser is missing")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed", "#1-bug-1 completed", "#2 completed"]);
    let items: Vec<String> = env.ledger().iter().map(|step| item(step)).collect();
    assert_eq!(items, ["#1", "#1-bug-1", "#1", "#2"], "bug-fix, then again, then dependents");
    let mended = |fact: &Value| {
        let step = fact["step"].as_str().unwrap_or_default();
        fact["type"] == "step_finished" && step.contains("[#1-bug-1]/settle")
    };
    let mended = env.facts().into_iter().find(mended).unwrap();
    let again = &of_worker(&env, "step_started", "#1")[1];
    assert!(mended["seq"].as_u64() < again["seq"].as_u64(), "not before it is mended");
    let text = fs::read_to_string(env.session().join("tasks.json")).unwrap();
    assert!(text.contains("Fix: the parser is missing"), "{text}");
}

/// `#4` in a line of the ledger such as `<session>/select-ready-tasks#1[#4]/worker#1/1`.
fn item(step: &str) -> String {
    step.split_once('[').and_then(|(_, rest)| rest.split_once(']')).unwrap().0.to_owned()
}

#[test]
fn a_check_that_was_red_before_any_work_fails_no_task_until_it_was_green() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"]), ("#3", &["#2"])])
        .turn(worker("Task #2:").does([run("touch built"), done("built it")]))
        .turn(worker("Task #3:").does([run("rm -f built"), done("tidied up")]))
        .rest();
    let ran = env.ralph(&scene.toml(), &["--check", "test -e built", "--max-attempts", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed", "#3 failed"]);
}

#[test]
fn a_project_without_checks_is_told_so() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])]).rest();
    let ran = env.ralph(&scene.toml(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("No checks were found"), "{}", ran.stdout);

    let env = TestEnv::new();
    let ran = env.ralph(&scene.toml(), &["--check", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("No checks were found"), "{}", ran.stdout);
}

#[test]
fn what_the_user_says_on_resume_reaches_every_worker_started_from_then_on() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[]), ("#2", &["#1"])]);
    let failing = scene.clone().turn(worker("Task #2:").does([fail("login")])).rest();
    assert_eq!(env.ralph(&failing.toml(), &[]).code, Some(1));
    env.script(&scene.rest().toml());
    let ran = env.run(["resume", "last", "Mind the gap"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("User instruction: Mind the gap"), "{}", ran.stdout);

    let progress = fs::read_to_string(env.session().join("progress.txt")).unwrap();
    let logged = progress.lines().any(|line| line.starts_with("## User instruction"));
    assert!(logged && progress.contains("Mind the gap"), "{progress}");
    let log = fs::read_to_string(env.session().join("logs/agent-calls.jsonl")).unwrap();
    let told: Vec<(String, bool)> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|call| {
            let prompt = call["prompt"].as_str().unwrap();
            let subject = prompt.split([':', '.']).next().unwrap().to_owned();
            (subject, prompt.contains("Mind the gap"))
        })
        .collect();
    let subject = |text: &str, told: bool| (text.to_owned(), told);
    let expected = [
        subject("Plan the following work", false),
        subject("Task #1", false),
        subject("Task #2", false),
        subject("Task #2", true),
        subject("Review round 1", true),
    ];
    assert_eq!(told, expected, "and nothing is planned again");
    assert_eq!(env.ledger().iter().map(|step| item(step)).collect::<Vec<_>>(), ["#1", "#2"]);
}

/// A worker that was cut off is told so, with the task it was at.
#[test]
fn a_turn_cut_off_by_a_pause_goes_on_in_its_own_conversation() {
    let env = TestEnv::new();
    let scene = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1:").and(CUT_OFF).does([note(), done("the rest")]))
        .turn(worker("Task #1:").does([note(), fail("hang")]))
        .rest();
    let mut running = crate::process::Running::start(env.ralph_command(&scene.toml(), &[]));
    crate::env::eventually("the worker works", crate::process::SOON, || env.ledger().len() == 1);
    running.signal("INT");
    assert_eq!(running.end().code, Some(4));
    let ran = env.run(["resume", "last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let opened = of_worker(&env, "conversation_opened", "#1");
    assert_eq!(opened.len(), 2);
    assert_eq!(opened[0]["conversation"], opened[1]["conversation"]);
    assert_eq!(of_worker(&env, "step_started", "#1")[1]["how"], "continued");
}
