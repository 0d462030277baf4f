//! A run that is paused at any point goes on from there.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use atomic_event::{Answer, Event, Intent};
use atomic_runner::{OnQuestion, Outcome, Shown};
use atomic_testing::ralph_script::{ANSWER, Flaw, script};
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

/// Drives a new run, answers what it asks, and has it pause once it has shown `number` facts.
async fn paused_after(stand: &Stand, number: usize) -> Outcome {
    let (run, mut show) = stand.start().unwrap();
    let (wishes, intents) = mpsc::channel(4);
    let mut seen = 0;
    let driving = run.drive(intents);
    tokio::pin!(driving);
    loop {
        tokio::select! {
            biased;
            shown = show.next() => {
                let Some(Shown::Fact(fact)) = shown else { continue };
                if let Event::QuestionAsked { id, .. } = &fact.event {
                    let answer = Answer { chosen: vec![ANSWER.to_owned()] };
                    let _ = wishes.try_send(Intent::Answer { question: id.clone(), answer });
                }
                seen += 1;
                if seen == number {
                    let _ = wishes.try_send(Intent::Pause { reason: "a test".to_owned() });
                }
            }
            ended = &mut driving => return ended.unwrap().outcome,
        }
    }
}

#[test]
fn a_run_paused_after_any_fact_goes_on_to_the_same_end() {
    // Long enough for snapshots: one taken while pausing must not lose what is still to be done.
    let make = || {
        let mut stand = Stand::playing(script(Flaw::Reported, 4));
        stand.settings.on_question = OnQuestion::Ask;
        stand
    };
    let expected = on_one_thread(make().see_through()).unwrap();
    for number in (2..).step_by(3) {
        let stand = make();
        match on_one_thread(paused_after(&stand, number)) {
            Outcome::Paused => {}
            outcome @ (Outcome::Completed | Outcome::Failed { .. } | Outcome::Waiting(_)) => {
                assert!(number > 90, "{outcome:?} after {number} facts");
                break;
            }
        }
        let finale = on_one_thread(stand.see_through()).unwrap();
        assert_eq!(finale.differences(&expected), [""; 0], "paused after fact {number}");
        assert_eq!(stand.misdeeds(), [""; 0], "paused after fact {number}");
    }
}
