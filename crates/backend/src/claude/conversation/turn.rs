//! The turn under way, and the way of its events to whoever listens.

use std::collections::{BTreeMap, VecDeque};

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
    /// Why the program tries again, when it does.
    pub(super) trouble: Option<Trial>,
}

/// The program tries again and again.
pub(super) struct Trial {
    /// For how long it may.
    pub(super) until: Instant,
    pub(super) trouble: Trouble,
    /// Whether an answer has begun to come since.
    pub(super) is_streaming: bool,
}

/// Questions of one call, which are put to the user together.
pub(super) struct Asking {
    pub(super) request: String,
    pub(super) input: Value,
    pub(super) questions: Vec<Question>,
    /// By the place of the question.
    pub(super) answers: BTreeMap<usize, Answer>,
}

impl Asking {
    fn id(&self, place: usize) -> QuestionId {
        QuestionId::from(format!("{}/{place}", self.request))
    }

    /// The place of a question that is open.
    pub(super) fn place(&self, id: &QuestionId) -> Option<usize> {
        let is_it = |place: &usize| self.id(*place) == *id && !self.answers.contains_key(place);
        (0..self.questions.len()).find(is_it)
    }

    pub(super) fn events(&self) -> impl Iterator<Item = TurnEvent> {
        let last = self.questions.len().saturating_sub(1);
        let numbered = self.questions.iter().enumerate();
        numbered.map(move |(place, question)| TurnEvent::Asked {
            id: self.id(place),
            question: question.clone(),
            more: last - place,
        })
    }

    /// The call's input with the answers in it, when all are there.
    pub(super) fn answered(&self) -> Option<Value> {
        let answer = |(place, question): (usize, &Question)| {
            Some((question.question.clone(), json!(self.answers.get(&place)?.text())))
        };
        let answers: Option<serde_json::Map<String, Value>> =
            self.questions.iter().enumerate().map(answer).collect();
        let mut input = self.input.clone();
        input["answers"] = Value::Object(answers?);
        Some(json!({ "behavior": "allow", "updatedInput": input }))
    }
}

impl CurrentTurn {
    pub(super) fn deadline(&self) -> Option<Instant> {
        // An answer that comes is not cut short; if it breaks off, the next try is one too many.
        let trial = self.trouble.as_ref().filter(|trial| !trial.is_streaming);
        self.interrupted.or(trial.map(|trial| trial.until))
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
