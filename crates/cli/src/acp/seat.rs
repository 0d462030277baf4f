//! A session with an editor.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use agent_client_protocol::Error;
use atomic_event::Spending;
use atomic_session::Lock;
use tokio::sync::{Mutex as Held, watch};

use super::chat::Chat;
use super::record::{Note, Record};
use super::trouble;
use crate::paint;
use crate::trust::Answered;

/// What a turn under way is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    GoOn,
    /// The user has had enough.
    Cancel,
    /// Nobody listens any more.
    Close,
}

/// How a turn hears that it is to end.
#[derive(Clone, Debug)]
pub(super) struct Orders(watch::Receiver<Order>);

impl Orders {
    /// Waits until the turn is to end.
    pub(super) async fn stop(&mut self) {
        // Without anybody who could say so, it is to end as well.
        let _ = self.0.wait_for(|order| *order != Order::GoOn).await;
    }

    /// Why it is to end.
    pub(super) fn why(&self) -> &'static str {
        match *self.0.borrow() {
            Order::Close => "the editor is gone",
            Order::Cancel | Order::GoOn => "cancelled in the editor",
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        *self.0.borrow() != Order::GoOn
    }
}

/// A session.
pub(super) struct Seat {
    pub(super) id: String,
    pub(super) folder: PathBuf,
    record: Record,
    /// No other process has the session open as long as this is held.
    _lock: Option<Box<dyn Lock>>,
    under_way: Mutex<Option<UnderWay>>,
    /// The answer to the question whether the project is trusted.
    answer: Mutex<Option<Answered>>,
    /// What a turn needs and changes; there is one at a time.
    pub(super) mind: Held<Mind>,
}

/// A turn under way.
struct UnderWay {
    orders: watch::Sender<Order>,
    /// The workflow that runs, if one does.
    workflow: Option<String>,
}

/// What a session knows from turn to turn.
#[derive(Default)]
pub(super) struct Mind {
    pub(super) chat: Chat,
    /// How many turns there were.
    pub(super) turns: u64,
    /// Whether the session has a title.
    pub(super) is_titled: bool,
    /// What to say at the beginning of the next turn.
    pub(super) notices: Vec<String>,
    /// The folder of a run that the next message continues.
    pub(super) unfinished: Option<PathBuf>,
    /// The folder of the last run.
    pub(super) last: Option<PathBuf>,
    /// What was spent in this process.
    pub(super) spent: Spending,
}

/// A turn is under way until this is dropped, whatever becomes of it.
pub(super) struct Busy<'s>(pub(super) &'s Seat);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        if let Ok(mut under_way) = self.0.under_way.lock() {
            *under_way = None;
        }
    }
}

impl Seat {
    pub(super) fn new(id: &str, folder: &Path, mind: Mind, lock: Option<Box<dyn Lock>>) -> Self {
        Self {
            id: id.to_owned(),
            folder: folder.to_owned(),
            record: Record::of(id),
            _lock: lock,
            under_way: Mutex::default(),
            answer: Mutex::default(),
            mind: Held::new(mind),
        }
    }

    /// Whether it can be shown again, as one in this folder.
    pub(super) fn can_be_loaded(&self, folder: &Path) -> Result<(), Error> {
        if self.folder != folder {
            return Err(trouble::wrong(format!(
                "the session is open in {}; close it before it is loaded in another folder",
                self.folder.display()
            )));
        }
        match self.mind.try_lock() {
            Ok(_) => Ok(()),
            Err(_) => Err(trouble::not_now("a prompt is under way in this session")),
        }
    }

    /// The answer to the question whether the project is trusted, if it was asked.
    pub(super) fn answer(&self) -> Option<Answered> {
        self.answer.lock().ok().and_then(|answer| answer.clone())
    }

    pub(super) fn set_answer(&self, given: Answered) {
        if let Ok(mut answer) = self.answer.lock() {
            *answer = Some(given);
        }
    }

    /// Begins a turn; the error says why there cannot be one now.
    pub(super) fn begin(&self) -> Result<Orders, String> {
        let Ok(mut under_way) = self.under_way.lock() else {
            return Err("the session is broken".to_owned());
        };
        match under_way.as_ref() {
            Some(UnderWay { workflow: Some(name), .. }) => {
                Err(format!("A workflow is already active ({name})."))
            }
            Some(_) => Err("a prompt is under way in this session; wait for its end, or cancel \
                            it"
            .to_owned()),
            None => {
                let (orders, told) = watch::channel(Order::GoOn);
                *under_way = Some(UnderWay { orders, workflow: None });
                Ok(Orders(told))
            }
        }
    }

    /// The turn under way is a run of a workflow.
    pub(super) fn runs(&self, workflow: &str) {
        if let Ok(mut under_way) = self.under_way.lock()
            && let Some(under_way) = under_way.as_mut()
        {
            under_way.workflow = Some(workflow.to_owned());
        }
    }

    /// Tells the turn under way, if there is one.
    pub(super) fn tell(&self, order: Order) {
        if let Ok(under_way) = self.under_way.lock()
            && let Some(under_way) = under_way.as_ref()
        {
            under_way.orders.send_replace(order);
        }
    }

    /// Keeps something that happened. Without that the session goes on, but cannot be loaded.
    pub(super) fn note(&self, note: Note) {
        if let Err(error) = self.record.add(note) {
            paint::warn(&format!("the session {} cannot be kept: {error}", self.id));
        }
    }
}
