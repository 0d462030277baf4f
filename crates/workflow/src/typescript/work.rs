//! Functions that take their time: their requests go to the host of the step.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use atomic_typescript::{Answer, Arg, HostError, Performance, Trouble, Underway, Worker};
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable};
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use crate::{Host, LogLevel};

type Request = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A function under way. Whoever waits for it also carries its requests on; dropping it ends all.
pub(super) struct Doing {
    shared: Arc<Shared>,
    requests: FuturesUnordered<Request>,
    _performance: Performance,
}

/// What the thread of the file and whoever waits have in common.
#[derive(Default)]
struct Shared(Mutex<Board>);

#[derive(Default)]
struct Board {
    /// Requests that nobody has taken up yet.
    arrived: Vec<Request>,
    result: Option<Result<Value, Trouble>>,
    waker: Option<Waker>,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Board)) {
        let mut board = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut board);
        if let Some(waker) = board.waker.take() {
            drop(board);
            waker.wake();
        }
    }
}

/// Begins a function.
pub(super) fn begin(worker: &Worker, function: u32, args: Vec<Arg>, host: Arc<dyn Host>) -> Doing {
    let shared = Arc::new(Shared::default());
    let told = Arc::clone(&shared);
    let hands = Arc::new(Hands { host, shared: Arc::clone(&shared) });
    let performance = worker.perform(function, args, hands, move |result| {
        told.change(|board| board.result = Some(result));
    });
    Doing { shared, requests: FuturesUnordered::new(), _performance: performance }
}

impl Future for Doing {
    type Output = Result<Value, Trouble>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = Arc::clone(&self.shared);
        {
            let mut board = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            board.waker = Some(context.waker().clone());
            self.requests.extend(board.arrived.drain(..));
        }
        while let Poll::Ready(Some(())) = self.requests.poll_next_unpin(context) {}
        let mut board = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        board.result.take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// What a file can ask for, passed on to the host of the step.
struct Hands {
    host: Arc<dyn Host>,
    shared: Arc<Shared>,
}

impl atomic_typescript::Host for Hands {
    fn request(&self, name: &str, args: Value, answer: Answer) -> Underway {
        let (handle, registration) = AbortHandle::new_pair();
        let asked = Abortable::new(self.host.request(name, args), registration);
        let request: Request = Box::pin(async move {
            // Whoever gave it up does not want to hear of it.
            if let Ok(result) = asked.await {
                answer.give(result.map_err(HostError::new));
            }
        });
        self.shared.change(|board| board.arrived.push(request));
        Box::new(EndsOnDrop(handle))
    }

    fn log(&self, level: &str, text: &str) {
        self.host.log(LogLevel::called(level), text);
    }
}

struct EndsOnDrop(AbortHandle);

impl Drop for EndsOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
