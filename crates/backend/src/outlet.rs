//! The way of a turn's events to whoever listens. Nobody who is slow to listen holds up a program.

use std::collections::VecDeque;

use atomic_event::{Stop, TurnEvent};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Turn;

/// How many events may wait for a slow listener before they wait here.
const EVENTS: usize = 64;

/// How many may wait here; a program that says more can be left to wait itself.
const WAITING: usize = 256;

/// Maximum number of waiting events of a program that serves others as well and cannot be left waiting.
const MAX_WAITING: usize = 16 * WAITING;

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

    /// Adds an event. A consumer that is far behind misses pieces of text and of thoughts: the whole
    /// text comes with its end. Returns whether there was room for an event that must not be missed.
    pub(crate) fn push(&mut self, event: TurnEvent) -> bool {
        let is_piece = matches!(event, TurnEvent::Typed { .. } | TurnEvent::Thought { .. });
        if self.end.is_some() || is_piece && !self.has_room() {
            return true;
        }
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        self.waiting.push_back(event);
        true
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
