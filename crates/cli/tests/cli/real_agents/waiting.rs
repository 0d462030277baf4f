//! Real programs whose provider refuses everything for a while.

use std::time::{Duration, Instant};

use atomic_testing::agents::CLAUDE;
use atomic_testing::model::{ApiError, Chosen, Ending, Received, Reply, Script, Turn};
use serde_json::{Value, json};

use super::program::Program;
use super::{Stand, last_text};
use crate::env::eventually;
use crate::process::{Running, SOON};

const WORKERS: [&str; 4] = ["a", "b", "c", "d"];

/// Everything is refused with this time to wait.
fn refusing(seconds: u64) -> Script {
    let error = ApiError { status: 429, kind: None, message: None, retry_after: Some(seconds) };
    let refusal = Reply { ending: Ending::Error(error), ..Reply::default() };
    Script::new().with(Turn::default().user("Do part").reply(refusal))
}

/// Everything is answered, after a while in which a second request would be seen.
fn answering() -> Script {
    let done = Reply { delay: Duration::from_secs(2), ..Reply::say("Done.") };
    Script::new().with(Turn::default().user("Do part").reply(done))
}

/// Four workers of a program, whose run is waiting for the provider: all four were refused.
struct Waiting {
    stand: Stand,
    running: Running,
    refused: usize,
}

fn waiting(program: Program, seconds: u64) -> Waiting {
    let stand = Stand::of(&[program], refusing(seconds));
    let workers =
        WORKERS.map(|id| json!({ "type": "agent", "id": id, "prompt": format!("Do part {id}") }));
    let flow = json!({ "name": "parts", "nodes": [
        { "type": "parallel", "id": "all", "branches": workers },
    ] });
    std::fs::write(stand.env.outside("parts.json"), flow.to_string()).unwrap();
    let flow = stand.env.outside("parts.json").display().to_string();
    let run = stand.atomic(&["run", &flow, "Go", "--backend", program.name()]);
    let mut running = Running::start(long_window(run));
    // A program that does not tell how long it waits is stopped after two minutes.
    eventually("all workers wait", 2 * SOON, || {
        assert!(!running.has_ended(), "{}", stand.env.journal());
        stand.env.journal().matches(r#""type":"provider_waiting""#).count() >= WORKERS.len()
    });
    let refused = turns(&stand).len();
    Waiting { stand, running, refused }
}

/// The tests of this folder have a short window, which would end these waits.
fn long_window(mut command: std::process::Command) -> std::process::Command {
    command.env("ATOMIC_RETRY_WINDOW", "6h");
    command
}

fn facts(stand: &Stand, kind: &str) -> Vec<Value> {
    stand.env.facts().into_iter().filter(|fact| fact["type"] == kind).collect()
}

/// The requests for turns, in order.
fn turns(stand: &Stand) -> Vec<Received> {
    let mut requests = stand.server.requests();
    requests.retain(|request| matches!(request.chosen, Chosen::Turn { .. }));
    requests
}

/// When a request came, by the clock of the day, in milliseconds.
fn millis(request: &Received) -> i64 {
    let ago = i64::try_from(Instant::now().duration_since(request.at).as_millis()).unwrap();
    jiff::Timestamp::now().as_millisecond() - ago
}

/// The latest time that was recorded for the next try, in milliseconds.
fn until(stand: &Stand) -> i64 {
    let waits = facts(stand, "provider_waiting");
    let until = |fact: &Value| {
        let time: jiff::Timestamp = fact["until"].as_str().unwrap().parse().unwrap();
        time.as_millisecond()
    };
    waits.iter().map(until).max().unwrap()
}

/// One turn was tried at the recorded time, the others followed when it was answered, and no
/// attempt has failed.
fn went_on(stand: &Stand, refused: usize) {
    let until = until(stand);
    let requests = turns(stand).split_off(refused);
    let early: Vec<i64> =
        requests.iter().map(|it| millis(it) - until).filter(|ms| *ms < 0).collect();
    assert!(early.is_empty(), "requests before the recorded time, by milliseconds: {early:?}");
    let first = &requests[0];
    let tried = last_text(&first.body);
    let others = requests.iter().filter(|it| last_text(&it.body) != tried);
    let soonest = others.map(|it| it.at.duration_since(first.at)).min().unwrap();
    assert!(soonest >= Duration::from_secs(2), "another turn after {soonest:?}");
    let attempts = facts(stand, "step_started");
    assert!(attempts.iter().all(|fact| fact["attempt"] == 1), "{attempts:?}");
    assert_eq!(facts(stand, "step_failed").len() + facts(stand, "step_lost").len(), 0);
    assert_eq!(facts(stand, "provider_back").len(), 1);
    stand.has_no_processes();
}

fn killed_and_tried_now(program: Program) {
    let Waiting { stand, running, refused } = waiting(program, 600);
    eventually("the programs of the refused turns are gone", SOON, || nobody_works(&stand));
    running.kill();
    stand.server.replace(answering());
    let ended = crate::env::ran(long_window(stand.atomic(&["resume", "last", "--now"])));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let requests = turns(&stand).split_off(refused);
    assert!(requests.len() >= WORKERS.len(), "{requests:?}");
    let attempts = facts(&stand, "step_started");
    assert!(attempts.iter().all(|fact| fact["attempt"] == 1), "{attempts:?}");
    assert_eq!(facts(&stand, "step_failed").len() + facts(&stand, "step_lost").len(), 0);
    stand.has_no_processes();
}

/// Whether every program was ended that has worked for a refused turn.
fn nobody_works(stand: &Stand) -> bool {
    let marker = format!("TMPDIR={}", stand.env.outside("tmp").display());
    let own = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&marker)
            && !String::from_utf8_lossy(&line).contains("atomic")
    });
    own.count() == 0
}

fn seen_through(program: Program) {
    let Waiting { stand, running, refused } = waiting(program, 70);
    stand.server.replace(answering());
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    went_on(&stand, refused);
}

fn killed_and_resumed(program: Program) {
    let Waiting { stand, running, refused } = waiting(program, 70);
    running.kill();
    stand.server.replace(answering());
    let ended = crate::env::ran(long_window(stand.atomic(&["resume", "last"])));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    went_on(&stand, refused);
}

macro_rules! on_each_program {
    ($($check:ident)*) => {
        $(
            mod $check {
                #[test]
                fn claude() {
                    super::super::$check(super::super::Program::Claude(super::super::CLAUDE));
                }

                #[test]
                fn opencode() {
                    super::super::$check(super::super::Program::OpenCode);
                }

                #[test]
                fn copilot() {
                    super::super::$check(super::super::Program::Copilot);
                }
            }
        )*
    };
}

mod short {
    on_each_program! { killed_and_tried_now }
}

mod long {
    on_each_program! { seen_through killed_and_resumed }
}
