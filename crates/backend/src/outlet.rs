//! The way of a turn's events to whoever listens. Nobody who is slow to listen holds up a program.

use std::collections::VecDeque;

use atomic_event::{StepError, Stop, TurnEvent};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Turn;

/// How many events may wait for a slow listener before they wait here.
const EVENTS: usize = 64;

/// How many may wait here; a program that says more can be left to wait itself.
const WAITING: usize = 256;

/// Where a turn's events go.
pub(crate) struct Outlet {
    events: mpsc::Sender<TurnEvent>,
    /// Room for the end, set aside at the beginning, so that not reading cannot hold it up.
    room_for_end: mpsc::OwnedPermit<TurnEvent>,
    waiting: VecDeque<TurnEvent>,
    end: Option<Stop>,
}

impl Outlet {
    /// A way, and the listener's end of it.
    pub(crate) fn open() -> Option<(Self, Turn)> {
        let (events, turn) = mpsc::channel(EVENTS);
        let room_for_end = events.clone().try_reserve_owned().ok()?;
        Some((Self { events, room_for_end, waiting: VecDeque::new(), end: None }, turn))
    }

    pub(crate) fn push(&mut self, event: TurnEvent) {
        if self.end.is_none() {
            self.waiting.push_back(event);
        }
    }

    /// The turn is over; what waits is told first.
    pub(crate) fn end(&mut self, stop: Stop) {
        self.end.get_or_insert(stop);
    }

    /// Tells the end at once, and what waits as far as there is room.
    pub(crate) fn close(mut self, stop: Stop) {
        for event in self.waiting.drain(..) {
            // Whoever has not read so far need not know.
            let _ = self.events.try_send(event);
        }
        self.room_for_end.send(TurnEvent::Ended(self.end.unwrap_or(stop)));
    }

    /// Whether more may come.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING
    }

    /// Whom to ask whether anybody listens.
    pub(crate) fn listener(&self) -> mpsc::Sender<TurnEvent> {
        self.events.clone()
    }

    /// Ready when something can be told.
    async fn listener_has_room(events: mpsc::Sender<TurnEvent>, has_something: bool) {
        if !has_something {
            return std::future::pending().await;
        }
        // Closed or not: what is told then shows it.
        let _ = events.reserve().await;
    }
}

/// Tells the listener the next event, once it has room. With the end of the turn the outlet is gone,
/// before anybody can know: whoever sees the end may send the next prompt at once.
pub(crate) async fn tell(outlet: &mut Option<Outlet>) {
    let Some(open) = outlet else { return std::future::pending().await };
    let is_last = open.waiting.is_empty();
    if is_last && open.end.is_some() {
        if let Some(Outlet { room_for_end, end: Some(stop), .. }) = outlet.take() {
            room_for_end.send(TurnEvent::Ended(stop));
        }
        return;
    }
    Outlet::listener_has_room(open.events.clone(), !is_last).await;
    if let Some(event) = open.waiting.pop_front()
        && let Err(mpsc::error::TrySendError::Full(event)) = open.events.try_send(event)
    {
        open.waiting.push_front(event);
    }
}

/// The end of a turn as it is told: in place of an interruption of ours, why we did so; and whatever
/// an interrupted turn fails with is its interruption.
pub(crate) fn told_end(stop: Stop, failure: Option<StepError>, was_interrupted: bool) -> Stop {
    match (stop, failure) {
        (Stop::Interrupted | Stop::Failed(_), Some(failure)) => Stop::Failed(failure),
        (Stop::Failed(_), None) if was_interrupted => Stop::Interrupted,
        (stop, _) => stop,
    }
}

/// Ready when nobody listens any more.
pub(crate) async fn deserted(events: Option<mpsc::Sender<TurnEvent>>) {
    match events {
        Some(events) => events.closed().await,
        None => std::future::pending().await,
    }
}

/// Ready at a time; never without one.
pub(crate) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
