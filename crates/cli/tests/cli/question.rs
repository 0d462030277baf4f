//! Questions: with nobody there, after a crash, by policy, and answered from elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::env::{Ran, TestEnv, eventually, ran};
use crate::process::{Running, SOON};
use crate::scene::{CUT_OFF, Scene, Turn, agent, ask, done, note, run, say, wait_for, worker};

const LABELS: [&str; 2] = ["Red (Recommended)", "Blue"];

/// A worker that asks which colour it is to be, and notes what it was told.
fn asks(labels: &[&str]) -> [Turn; 2] {
    let told = "echo \"told in $ATOMIC_STEP\" >> \"$LEDGER\"";
    [
        worker("The user's answer: Blue")
            .and("Task #1:")
            .and(CUT_OFF)
            .does([run(told), done("ok")]),
        worker("Task #1:").does([ask("Which colour?", labels), run(told), done("it is {answer}")]),
    ]
}

/// The first task asks; the second needs time, the third waits for the second.
fn scene(second: Turn) -> Scene {
    let [told, asking] = asks(&LABELS);
    Scene::of(&[("#1", &[]), ("#2", &[]), ("#3", &["#2"])])
        .turn(told)
        .turn(asking)
        .turn(second)
        .rest()
}

fn quick() -> Turn {
    worker("Task #2:").does([note(), done("quick")])
}

fn of_type(env: &TestEnv, kind: &str) -> Vec<Value> {
    env.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
}

fn seconds(fact: &Value) -> i64 {
    fact["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second()
}

/// Runs `atomic` when it is an hour later than it is.
fn an_hour_later<const N: usize>(env: &TestEnv, args: [&str; N]) -> Ran {
    let mut command = env.atomic(args);
    command.env("ATOMIC_TEST_CLOCK_AHEAD", "3600");
    ran(command)
}

/// The answer was recorded once, delivered once, and the one who had asked went on.
fn answered_once(env: &TestEnv, live: bool) {
    let answered = of_type(env, "question_answered");
    assert_eq!(answered.len(), 1, "{answered:?}");
    assert_eq!(answered[0]["answer"]["chosen"][0], "Blue");
    assert_eq!(answered[0]["by"], "person");
    let delivered = of_type(env, "answer_delivered");
    assert_eq!(delivered.len(), 1, "{delivered:?}");
    assert_eq!(delivered[0]["live"], live);
    let told: Vec<_> = env.ledger().into_iter().filter(|line| line.starts_with("told")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(env.tasks(), ["#1 completed", "#2 completed", "#3 completed"]);
    assert_eq!(env.summary()["status"], "completed");
}

/// The worker that asked goes on where it was, in its own conversation.
fn went_on_in_its_conversation(env: &TestEnv) {
    let of_asker = |fact: &Value| fact["step"].as_str().unwrap().contains("[#1]/worker");
    let mut started = of_type(env, "step_started");
    started.retain(of_asker);
    let how: Vec<_> = started.iter().map(|fact| fact["how"].as_str().unwrap()).collect();
    assert_eq!(how, ["first", "continued"]);
    let mut opened = of_type(env, "conversation_opened");
    opened.retain(of_asker);
    assert_eq!(opened.len(), 2);
    assert_eq!(opened[0]["conversation"], opened[1]["conversation"]);
}

#[test]
fn with_nobody_there_siblings_go_on_and_the_session_waits() {
    let env = TestEnv::new();
    let waiting = env.ralph(&scene(quick()).toml(), &["--check", "true", "--workers", "2"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    assert!(waiting.stdout.contains("Which colour?"), "{}", waiting.stdout);
    assert!(waiting.stdout.contains("Answer with: atomic answer "), "{}", waiting.stdout);
    assert_eq!(env.summary()["status"], "waiting");
    assert_eq!(env.tasks(), ["#1 in_progress", "#2 completed", "#3 completed"]);
    let shown = env.run(["sessions", "show", "last"]);
    assert!(shown.stdout.contains("1. Red (Recommended)"), "{}", shown.stdout);

    // Resumed without an answer it waits again, and asks nothing twice.
    assert_eq!(env.run(["resume", "last"]).code, Some(3));

    let answered = an_hour_later(&env, ["answer", "last", "Blue"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.stdout.contains("Continue with: atomic resume "), "{}", answered.stdout);
    let resumed = an_hour_later(&env, ["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    answered_once(&env, false);
    went_on_in_its_conversation(&env);
    let (asked, answered) = (of_type(&env, "question_asked"), of_type(&env, "question_answered"));
    assert_eq!(asked.len(), 1);
    assert!(seconds(&answered[0]) - seconds(&asked[0]) >= 3_600);
}

#[test]
fn a_question_survives_the_death_of_the_one_who_put_it() {
    let env = TestEnv::new();
    let busy = worker("Task #2:").without(CUT_OFF).does([note(), wait_for("go"), done("at last")]);
    let running = Running::start(env.ralph_command(&scene(busy).toml(), &["--workers", "2"]));
    eventually("it asks while a sibling works", SOON, || {
        env.ledger().len() == 1 && asked(&env.work().join(".ralph/sessions"))
    });
    running.kill();
    assert!(env.run(["sessions"]).stdout.contains("interrupted"));

    let answered = an_hour_later(&env, ["answer", "last", "q1", "2"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let resumed = an_hour_later(&env, ["resume", "last"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    answered_once(&env, false);
    went_on_in_its_conversation(&env);
}

/// Whether some session's journal has a question.
pub(crate) fn asked(sessions: &Path) -> bool {
    questions(sessions) > 0
}

/// How many questions there are in the journals of all sessions.
pub(crate) fn questions(sessions: &Path) -> usize {
    let of_session = |session: &PathBuf| {
        let journal = fs::read_to_string(session.join("journal.jsonl")).unwrap_or_default();
        journal.matches("\"type\":\"question_asked\"").count()
    };
    folders(sessions).iter().map(of_session).sum()
}

/// Whether a journal shows that the one who asked has used a tool since the answer was delivered.
pub(crate) fn acted_on_answer(sessions: &Path) -> bool {
    let acted = |session: &PathBuf| {
        let journal = fs::read_to_string(session.join("journal.jsonl")).unwrap_or_default();
        let rest = journal.split_once("\"type\":\"answer_delivered\"").map(|(_, rest)| rest);
        rest.is_some_and(|rest| rest.contains("\"kind\":\"tool_used\""))
    };
    folders(sessions).iter().any(acted)
}

fn folders(sessions: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(sessions).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

#[test]
fn an_answer_is_taken_up_by_the_session_that_runs() {
    let env = TestEnv::new();
    let busy = worker("Task #2:").does([wait_for("go"), done("at last")]);
    let running = Running::start(env.ralph_command(&scene(busy).toml(), &["--workers", "2"]));
    eventually("it asks", SOON, || asked(&env.work().join(".ralph/sessions")));

    let answered = env.run(["answer", "last", "Blue"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.stdout.contains("is running and takes the answer up"), "{answered:?}");
    eventually("the answer is delivered", SOON, || !of_type(&env, "answer_delivered").is_empty());
    fs::write(env.work().join("go"), "").unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    answered_once(&env, true);
}

#[test]
fn an_answer_can_resume_the_session_at_once() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&scene(quick()).toml(), &["--workers", "2"]).code, Some(3));
    let ended = env.run(["answer", "last", "--resume", "blue"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    answered_once(&env, false);
}

#[test]
fn an_answer_that_does_not_fit_is_not_recorded() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&scene(quick()).toml(), &["--workers", "2"]).code, Some(3));
    let before = env.facts();
    for wrong in ["Green", "3", " "] {
        let refused = env.run(["answer", "last", wrong]);
        assert_eq!(refused.code, Some(2), "{wrong}: {refused:?}");
        for label in LABELS {
            assert!(refused.stderr.contains(label), "{wrong}: {}", refused.stderr);
        }
    }
    assert_eq!(fs::read_dir(env.session().join("inbox")).unwrap().count(), 0);
    assert_eq!(env.facts(), before);
    assert_eq!(env.summary()["status"], "waiting");
}

#[test]
fn without_an_open_question_there_is_nothing_to_answer() {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&Scene::of(&[("#1", &[])]).rest().toml(), &[]).code, Some(0));
    let refused = env.run(["answer", "last", "Blue"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("no open question"), "{}", refused.stderr);
}

#[test]
fn a_policy_takes_the_recommended_option_and_says_so() {
    let env = TestEnv::new();
    let ended = env.ralph(&scene(quick()).toml(), &["--on-question", "recommended"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("by policy, nobody was asked"), "{}", ended.stdout);
    let answered = of_type(&env, "question_answered");
    assert_eq!(answered.len(), 1);
    assert_eq!(answered[0]["by"], "policy");
    assert_eq!(answered[0]["answer"]["chosen"][0], "Red (Recommended)");
    assert_eq!(of_type(&env, "answer_delivered").len(), 1);
}

#[test]
fn without_a_recommended_option_the_policy_waits() {
    let env = TestEnv::new();
    let [told, asking] = asks(&["Red", "Blue"]);
    let scene = Scene::of(&[("#1", &[])]).turn(told).turn(asking).rest();
    let waiting = env.ralph(&scene.toml(), &["--on-question", "recommended"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    assert!(of_type(&env, "question_answered").is_empty(), "an answer is never made up");
}

/// What was chosen for a run is left as it is when the run is resumed without a word about it.
#[test]
fn the_policy_of_a_run_holds_when_it_is_resumed() {
    let env = TestEnv::new();
    let [_, asking] = asks(&LABELS);
    let plan = Scene::of(&[("#1", &[])]);
    let login = plan.clone().turn(worker("Task #1:").does([crate::scene::fail("login")]));
    let failed = env.ralph(&login.toml(), &["--on-question", "recommended"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    env.script(&plan.turn(asking).rest().toml());
    let ended = env.run(["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(of_type(&env, "question_answered")[0]["by"], "policy");
}

#[test]
fn the_policy_fail_fails_the_step_that_asks() {
    let env = TestEnv::new();
    let flags = ["--on-question", "fail", "--max-attempts", "1"];
    let ended = env.ralph(&scene(quick()).toml(), &flags);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("it asked a question"), "{}", ended.stderr);
    assert_eq!(env.tasks(), ["#1 failed", "#2 completed", "#3 completed"]);
    assert!(of_type(&env, "question_answered").is_empty());
}

/// A workflow of another shape, with a question of its own, goes the same way.
fn second_opinion(env: &TestEnv, more: &[&str]) -> Ran {
    let scene = Scene::default()
        .turn(agent("answerer").does([say("Use a queue.")]))
        .turn(agent("critic").does([say("Queues hide load.")]));
    let script = env.script(&scene.toml());
    let mut command = env.atomic(["run", "second-opinion", "Queue or not?", "--script"]);
    command.arg(script).args(more);
    ran(command)
}

fn second_opinion_facts(env: &TestEnv) -> Vec<Value> {
    let session = folders(&env.work().join(".atomic/sessions")).remove(0);
    let journal = fs::read_to_string(session.join("journal.jsonl")).unwrap();
    journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn another_workflow_asks_and_waits_the_same_way() {
    let env = TestEnv::new();
    let waiting = second_opinion(&env, &[]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    assert!(waiting.stdout.contains("The objections are: Queues hide load."), "{waiting:?}");
    let ended = env.run(["answer", "last", "--resume", "Keep the first answer"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("Use a queue."), "{}", ended.stdout);
    let count =
        |kind: &str| second_opinion_facts(&env).iter().filter(|fact| fact["type"] == kind).count();
    let counts = ["question_asked", "question_answered", "answer_delivered"].map(count);
    assert_eq!(counts, [1, 1, 1]);
}

#[test]
fn another_workflow_obeys_the_policies() {
    let env = TestEnv::new();
    let ended = second_opinion(&env, &["--on-question", "recommended"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("Objections to keep in mind"), "{}", ended.stdout);

    let env = TestEnv::new();
    let ended = second_opinion(&env, &["--on-question", "fail"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("it asks a question"), "{}", ended.stderr);
}
