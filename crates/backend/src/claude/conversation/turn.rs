//! The turn under way, and the way of its events to whoever listens.

use std::collections::VecDeque;

use atomic_event::{Answer, Question, QuestionId, StepError, TurnEvent};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Trouble;

/// The turn under way.
pub(super) struct CurrentTurn {
    pub(super) events: mpsc::Sender<TurnEvent>,
    /// Room for the end, set aside at the beginning, so that not reading cannot hold it up.
    pub(super) room_for_end: mpsc::OwnedPermit<TurnEvent>,
    /// What was sent, until the program has said anything since.
    pub(super) unheard: Option<String>,
    pub(super) question: Option<Asking>,
    /// By when it has to end, when it was interrupted.
    pub(super) interrupted: Option<Instant>,
    /// What to report in place of the interruption.
    pub(super) failure: Option<StepError>,
    /// Until when the program may try again, and why it does.
    pub(super) trouble: Option<(Instant, Trouble)>,
}

/// Questions of one call, put to the user one after the other.
pub(super) struct Asking {
    pub(super) request: String,
    pub(super) input: Value,
    pub(super) questions: Vec<Question>,
    pub(super) answers: Vec<Answer>,
}

impl Asking {
    pub(super) fn id(&self) -> QuestionId {
        QuestionId::from(format!("{}/{}", self.request, self.answers.len()))
    }

    pub(super) fn event(&self) -> Option<TurnEvent> {
        let question = self.questions.get(self.answers.len())?.clone();
        Some(TurnEvent::Asked { id: self.id(), question })
    }

    /// The call's input with the answers in it.
    pub(super) fn answered(&self) -> Value {
        let pairs = self.questions.iter().zip(&self.answers);
        let answers: serde_json::Map<String, Value> = pairs
            .map(|(question, answer)| (question.question.clone(), json!(answer.text())))
            .collect();
        let mut input = self.input.clone();
        input["answers"] = Value::Object(answers);
        json!({ "behavior": "allow", "updatedInput": input })
    }
}

impl CurrentTurn {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.interrupted.or(self.trouble.as_ref().map(|(until, _)| *until))
    }
}

/// Gives the receiver the next event, once it has room. With the end of the turn the turn is over,
/// before anybody can know: whoever sees the end may send the next prompt at once.
pub(super) async fn room(
    events: Option<&mpsc::Sender<TurnEvent>>,
    outbox: &mut VecDeque<TurnEvent>,
    turn: &mut Option<CurrentTurn>,
) {
    let Some(events) = events else { return std::future::pending().await };
    if outbox.front().is_some_and(is_end) {
        let ended = turn.take().zip(outbox.pop_front());
        outbox.clear();
        if let Some((turn, end)) = ended {
            turn.room_for_end.send(end);
        }
        return;
    }
    let Ok(place) = events.reserve().await else { return };
    if let Some(event) = outbox.pop_front() {
        place.send(event);
    }
}

pub(super) async fn closed(events: Option<&mpsc::Sender<TurnEvent>>) {
    match events {
        Some(events) => events.closed().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

pub(super) fn is_end(event: &TurnEvent) -> bool {
    matches!(event, TurnEvent::Ended(_))
}
