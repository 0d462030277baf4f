//! Attempts that are cut off again and again.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a helper that fails fails its test")]

use atomic_event::Event;
use atomic_runner::{Outcome, Shown};
use atomic_testing::ralph_script::{Flaw, script};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

const WORKER: &str = "select-ready-tasks#1[#1]/worker#1";

/// The scripted Ralph, except that the worker of task `#1` does this and then hangs.
fn hanging_after(actions: Value) -> Stand {
    let mut script = script(Flaw::Reported, 0);
    let mut actions = actions;
    actions.as_array_mut().unwrap().push(json!({"fail": "hang"}));
    let turn = json!({"agent": "worker", "prompt": ["Task #1:"], "do": actions});
    script["turn"].as_array_mut().unwrap().insert(0, turn);
    let mut stand = Stand::playing(script);
    stand.settings.workers = Some(1);
    stand
}

/// Drives the run, in a process that is killed when it shows something about the worker of `#1`
/// that `is_it` knows.
async fn killed_when(stand: &Stand, is_it: impl Fn(&Event) -> bool) {
    let (run, mut show) = match stand.session() {
        None => stand.start().unwrap(),
        Some(dir) => stand.resume(&dir).unwrap(),
    };
    let (_wishes, intents) = mpsc::channel(1);
    let driving = run.drive(intents);
    tokio::pin!(driving);
    loop {
        tokio::select! {
            biased;
            shown = show.next() => match shown {
                Some(Shown::Fact(fact)) if is_it(&fact.event) => break,
                Some(Shown::Fact(_) | Shown::Delta(_) | Shown::Streamed { .. }) => {}
                None => panic!("it never came to that"),
            },
            ended = &mut driving => panic!("it ended: {ended:?}"),
        }
    }
    // Everything of the process ends with it.
    stand.disk.kill();
}

fn opened(event: &Event) -> bool {
    matches!(event, Event::ConversationOpened { step, .. } if step.as_str() == WORKER)
}

fn reported(event: &Event) -> bool {
    matches!(event, Event::StepReported { step, .. } if step.as_str() == WORKER)
}

#[test]
fn five_lost_attempts_that_got_nowhere_end_the_task() {
    let stand = hanging_after(json!([]));
    for _ in 0..5 {
        on_one_thread(killed_when(&stand, opened));
    }
    let outcome = on_one_thread(async {
        loop {
            match stand.live().await.unwrap() {
                Outcome::Waiting(_) => {}
                outcome @ (Outcome::Completed | Outcome::Failed { .. } | Outcome::Paused) => {
                    return outcome;
                }
            }
        }
    });
    let Outcome::Failed { error, ceiling: false } = outcome else { panic!("{outcome:?}") };
    let expected = "2 of 3 tasks are not done: \
        #1 failed: it was cut off 5 times without getting anywhere; #3 is blocked by #1";
    assert_eq!(error.message, expected);
    assert_eq!(stand.misdeeds(), [""; 0]);
    let attempts = stand.ledger.opened().iter().filter(|(step, _)| step == WORKER).count();
    assert_eq!(attempts, 5);
    let tasks = stand.finale().tasks;
    assert_eq!(tasks, ["#1 Failed []", "#2 Completed []", "#3 Pending [\"#1\"]"]);
}

#[test]
fn lost_attempts_that_got_somewhere_do_not_count() {
    let stand = hanging_after(json!([{"say": "Half way"}]));
    for _ in 0..7 {
        on_one_thread(killed_when(&stand, reported));
    }
    let facts = stand.facts();
    let lost: Vec<_> =
        facts.iter().filter(|f| f["type"] == "step_lost" && f["step"] == WORKER).collect();
    assert_eq!(lost.len(), 6);
    assert!(lost.iter().all(|fact| fact["progressed"] == true), "{lost:?}");
    assert!(facts.iter().all(|fact| fact["type"] != "step_failed"));
    let sent = stand.ledger.sent();
    let prompts: Vec<_> = sent.iter().filter(|(step, _)| step == WORKER).map(|(_, p)| p).collect();
    assert!(prompts[0].starts_with("Task #1:"), "{}", prompts[0]);
    for again in &prompts[1..] {
        assert!(again.contains("Your turn was cut off"), "{again}");
    }
}
