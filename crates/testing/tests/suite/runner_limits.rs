//! A limit of the run that is met in the middle of a turn.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::sync::{Arc, Mutex};

use atomic_backend::{Backend, BackendError, BoxFuture, Conversation, OpenRequest, Turn};
use atomic_event::{
    Answer, BackendId, ConversationId, QuestionId, Report, StepError, Stop, TurnEvent, Usage,
};
use atomic_runner::{Outcome, Run, Stage};
use atomic_session::Disk as _;
use atomic_workflow::builtin;
use tokio::sync::mpsc;

use crate::runner_stand::{Stand, on_one_thread};

/// An agent whose turn says what it has spent, and ends only when it is interrupted: it was done just
/// then, or it was not.
struct Late {
    is_done: bool,
    turn: Mutex<Option<mpsc::Sender<TurnEvent>>>,
}

fn late(is_done: bool) -> Late {
    Late { is_done, turn: Mutex::default() }
}

fn spent() -> TurnEvent {
    let usage = Usage { input_tokens: 1_000, ..Usage::default() };
    TurnEvent::Reported(Report::Spent(usage))
}

impl Backend for Late {
    fn id(&self) -> BackendId {
        BackendId::from("late")
    }

    fn reports_cost(&self) -> bool {
        false
    }

    fn open(&self, _: OpenRequest) -> BoxFuture<'_, Result<Box<dyn Conversation>, BackendError>> {
        Box::pin(async { Ok(Box::new(late(self.is_done)) as Box<dyn Conversation>) })
    }
}

impl Conversation for Late {
    fn id(&self) -> ConversationId {
        ConversationId::from("late")
    }

    fn send(&self, _: String) -> BoxFuture<'_, Result<Turn, BackendError>> {
        Box::pin(async {
            let (events, turn) = mpsc::channel(10);
            events.try_send(spent()).unwrap();
            *self.turn.lock().unwrap() = Some(events);
            Ok(turn)
        })
    }

    fn answer(&self, _: QuestionId, _: Answer) -> BoxFuture<'_, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn interrupt(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let Some(events) = self.turn.lock().unwrap().take() else { return };
            let done = Stop::Done { text: "done".to_owned() };
            let end = if self.is_done { done } else { Stop::Interrupted };
            events.try_send(spent()).unwrap();
            events.try_send(TurnEvent::Ended(end)).unwrap();
        })
    }

    fn compact(&self) -> BoxFuture<'_, Result<Option<Usage>, StepError>> {
        Box::pin(async { Ok(None) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// The end of a run whose limit is met in its first turn, how many steps finished, and how many
/// reports of spending there are.
fn limited(workflow: &str, is_done: bool) -> (Outcome, usize, usize) {
    let mut stand = Stand::new();
    stand.workflow = builtin::find(workflow).unwrap();
    stand.settings.budget.max_tokens = Some(10);
    let stage = Stage { backend: Arc::new(late(is_done)), ..stand.stage() };
    let ended = on_one_thread(async {
        let (run, _show) = Run::start(stage, stand.request()).unwrap();
        let (_wishes, intents) = mpsc::channel(1);
        run.drive(intents).await.unwrap()
    });
    let journal = stand.disk.read(&ended.dir.join("journal.jsonl"), u64::MAX).unwrap();
    let journal = String::from_utf8(journal).unwrap();
    let count = |part: &str| journal.matches(part).count();
    (ended.outcome, count("\"type\":\"step_finished\""), count("\"kind\":\"spent\""))
}

#[test]
fn a_turn_that_is_done_when_a_limit_is_met_is_kept() {
    assert_eq!(limited("prompt", true), (Outcome::Completed, 1, 2), "nothing comes next");
    let (outcome, finished, spent) = limited("second-opinion", true);
    assert!(matches!(outcome, Outcome::Failed { ceiling: true, .. }), "{outcome:?}");
    assert_eq!((finished, spent), (1, 2), "the limit is for what comes next");
}

#[test]
fn a_turn_that_a_limit_stops_is_not_kept_and_what_it_cost_counts() {
    let (outcome, finished, spent) = limited("prompt", false);
    assert!(matches!(outcome, Outcome::Failed { ceiling: true, .. }), "{outcome:?}");
    assert_eq!((finished, spent), (0, 2));
}
