//! A run that is paused at any point goes on from there.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::Arc;
use std::time::Duration;

use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, OpenRequest, Turn};
use atomic_event::{
    Answer, BackendId, ConversationId, Event, Intent, QuestionId, Report, StepError, Stop,
    TurnEvent, Usage,
};
use atomic_runner::{OnQuestion, Outcome, ResumeOptions, Run, Shown, Stage};
use atomic_session::Disk as _;
use atomic_testing::ralph_script::{ANSWER, Flaw, script};
use atomic_workflow::builtin;
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
        let opened = stand.ledger.opened().len();
        assert_eq!(stand.ledger.closed(), opened, "closed, paused after fact {number}");
        let finale = on_one_thread(stand.see_through()).unwrap();
        assert_eq!(finale.differences(&expected), [""; 0], "paused after fact {number}");
        assert_eq!(stand.misdeeds(), [""; 0], "paused after fact {number}");
    }
}

/// An agent that has a lot to say and says it all at once, so that the end of its turn is there
/// before anybody has taken in its beginning.
struct Wordy;

impl Backend for Wordy {
    fn id(&self) -> BackendId {
        BackendId::from("wordy")
    }

    fn reports_cost(&self) -> bool {
        false
    }

    fn open(&self, _: OpenRequest) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async { Ok(Box::new(Self) as Box<dyn Conversation>) })
    }
}

impl Conversation for Wordy {
    fn id(&self) -> ConversationId {
        ConversationId::from("wordy")
    }

    fn send(&self, _: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(async {
            let (events, turn) = mpsc::channel(10);
            for _ in 0..9 {
                let said = Report::Said { text: "x".repeat(10_000) };
                events.try_send(TurnEvent::Reported(said)).unwrap();
            }
            let end = Stop::Done { text: "done".to_owned() };
            events.try_send(TurnEvent::Ended(end)).unwrap();
            Ok(turn)
        })
    }

    fn answer(&self, _: QuestionId, _: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async { Ok(None) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// What finishes in the moment of a pause is recorded, and what follows from it is found again on
/// resume, also when the journal has grown enough for a snapshot just then.
#[test]
fn what_follows_from_a_step_that_finishes_while_pausing_is_not_lost() {
    let mut stand = Stand::new();
    stand.workflow = builtin::find("second-opinion").unwrap();
    let stage = || Stage { backend: Arc::new(Wordy), ..stand.stage() };
    let dir = on_one_thread(async {
        let (run, mut show) = Run::start(stage(), stand.request()).unwrap();
        let (wishes, intents) = mpsc::channel(1);
        let driving = run.drive(intents);
        tokio::pin!(driving);
        loop {
            tokio::select! {
                biased;
                shown = show.next() => if is_opened(shown.as_ref()) {
                    let _ = wishes.try_send(Intent::Pause { reason: "a test".to_owned() });
                },
                ended = &mut driving => {
                    let ended = ended.unwrap();
                    assert_eq!(ended.outcome, Outcome::Paused);
                    return ended.dir;
                }
            }
        }
    });
    let kinds = |kind: &str| {
        let journal =
            String::from_utf8(stand.disk.read(&dir.join("journal.jsonl"), u64::MAX).unwrap());
        journal.unwrap().matches(&format!("\"type\":\"{kind}\"")).count()
    };
    assert_eq!((kinds("step_finished"), kinds("step_started")), (1, 1), "not the moment meant");
    let outcome = on_one_thread(async {
        let find = |_: &str| Ok(stand.workflow.clone());
        let options = ResumeOptions::default();
        let (run, _show) = Run::resume(stage(), dir.clone(), options, find, |_| {}).unwrap();
        let (_wishes, intents) = mpsc::channel(1);
        let driving = tokio::time::timeout(Duration::from_secs(120), run.drive(intents));
        driving.await.expect("it goes on").unwrap().outcome
    });
    assert!(matches!(outcome, Outcome::Waiting(_)), "{outcome:?}");
    assert_eq!(kinds("step_finished"), 2);
}

fn is_opened(shown: Option<&Shown>) -> bool {
    let Some(Shown::Fact(fact)) = shown else { return false };
    matches!(fact.event, Event::ConversationOpened { .. })
}
