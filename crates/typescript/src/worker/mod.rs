//! A thread with an engine on it, and the handle that the rest of the program has.

mod desk;
mod dice;
mod engine;
mod message;
mod modules;
mod natives;
mod script;
mod tasks;
mod watch;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::bundle::Bundle;
use crate::host::Host;
use crate::trouble::{Trouble, TroubleKind};
use message::{Done, Message, Reply};
use watch::Pulse;

pub use script::{Delivery, OpenCall, Outcome, Progress, ScriptCall, Turn};

/// How often it is looked at whether an answer can still come.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How long something that is to end may take for it.
const LAST_MOMENTS: Duration = Duration::from_secs(1);

/// What one file may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory for all its values.
    pub memory: usize,
    /// Bytes of stack for its functions.
    pub stack: usize,
    /// Bytes of stack of the thread; well above the other.
    pub thread_stack: usize,
    /// How long it may run without a pause. Waiting does not count.
    pub stretch: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            stack: 1 << 20,
            thread_stack: 8 << 20,
            stretch: Duration::from_secs(5),
        }
    }
}

/// Hears what is said outside of any step: a level and a text.
pub type Log = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// How a worker is started.
#[derive(Clone, Default)]
pub struct Options {
    /// What it may use.
    pub limits: Limits,
    /// The same seed gives the same random numbers while the file is loaded.
    pub seed: u64,
    /// The time while the file is loaded, in milliseconds since 1970; without it, the real one.
    pub now: Option<i64>,
    /// Hears what is said outside of any step.
    pub log: Option<Log>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limits, seed, now, log: _ } = self;
        let mut shown = f.debug_struct("Options");
        shown.field("limits", limits).field("seed", seed).field("now", now).finish_non_exhaustive()
    }
}

/// What a function is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// A value.
    Value(Arc<Value>),
    /// An object of values that are kept apart, such as a state.
    Object(Vec<(String, Self)>),
    /// Such an object as part of another, made when it is looked at: most functions do not, and it
    /// may have grown with every step.
    Late(Arc<Vec<(String, Arc<Value>)>>),
    /// What a step knows about itself. [`Worker::perform`] adds `signal`, and what the SDK has
    /// for steps.
    Context(Arc<Value>),
}

/// What the file says that it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What `describe` of the SDK makes of it, with functions as `{"$fn": n}`. The same files and
    /// the same configuration always give the same numbers.
    pub descriptor: Value,
    /// A module of the SDK that a file of the workflow has imported, as it was named there. An import
    /// of types alone is not among them.
    pub imported_sdk: Option<String>,
}

/// A file that runs on a thread of its own. Cheap to clone; when the last one is dropped, all it
/// does is ended, and so is its thread.
#[derive(Clone)]
pub struct Worker(Arc<Handle>);

struct Handle {
    sender: Sender<Message>,
    stop: Arc<AtomicBool>,
    last: AtomicU64,
    pulse: Arc<Pulse>,
    /// How long it may run without a pause.
    stretch: Duration,
    /// Why the thread has ended.
    ended: Arc<OnceLock<Trouble>>,
    /// The thread, and what hears of its end.
    thread: Mutex<Option<(JoinHandle<()>, Receiver<()>)>>,
    thread_id: Option<thread::ThreadId>,
}

impl Worker {
    /// Starts a thread for the bundle. Nothing of it runs before [`Worker::load`].
    ///
    /// If there is no thread to be had, every use of the worker says so.
    #[must_use]
    pub fn start(bundle: &Bundle, options: &Options) -> Self {
        let (sender, receiver) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let pulse = Arc::new(Pulse::default());
        let ended = Arc::new(OnceLock::new());
        let start = engine::Start {
            bundle: bundle.clone(),
            options: options.clone(),
            sender: sender.clone(),
            stop: Arc::clone(&stop),
            pulse: Arc::clone(&pulse),
        };
        let told = Arc::clone(&ended);
        let (end, ending) = mpsc::channel::<()>();
        let spawned = thread::Builder::new()
            .name("atomic-script".to_owned())
            .stack_size(options.limits.thread_stack)
            .spawn(move || {
                let served = catch_unwind(AssertUnwindSafe(|| engine::serve(&start, &receiver)));
                let broken = |_| {
                    Trouble::new(TroubleKind::Gone, "the engine has failed; this is a bug of ours")
                };
                // Before the receiver goes, so that whoever sees it gone can ask why.
                let _ = told.set(served.unwrap_or_else(broken));
                drop((receiver, end));
            });
        let thread = match spawned {
            Ok(thread) => Some((thread, ending)),
            Err(e) => {
                let message = format!("there is no thread for the workflow: {e}");
                let _ = ended.set(Trouble::new(TroubleKind::Gone, message));
                None
            }
        };
        let thread_id = thread.as_ref().map(|(thread, _)| thread.thread().id());
        let last = AtomicU64::new(0);
        let thread = Mutex::new(thread);
        let stretch = options.limits.stretch;
        Self(Arc::new(Handle { sender, stop, last, pulse, stretch, ended, thread, thread_id }))
    }

    /// How long its thread has worked for the file so far. Waiting does not count, and neither
    /// does the way there and back.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.0.pulse.busy()
    }

    /// Runs the file, and has it described with this configuration. Waits until that is done.
    ///
    /// # Errors
    /// It throws, does not end, or cannot be described.
    pub fn load(&self, config: &Value) -> Result<Loaded, Trouble> {
        let config = Some(config.clone());
        self.ask(|reply| Message::Load { config, reply })
    }

    /// Runs the file, and gives what it exports as it is, in the order of the names.
    ///
    /// # Errors
    /// It throws, does not end, or exports something that is not JSON.
    pub fn load_exports(&self) -> Result<Loaded, Trouble> {
        self.ask(|reply| Message::Load { config: None, reply })
    }

    /// Calls a function that has its value when it returns, and waits for that.
    ///
    /// # Errors
    /// It throws, does not end, waits for something, or its value is not JSON.
    pub fn call(&self, function: u32, args: Vec<Arg>) -> Result<Value, Trouble> {
        self.ask(|reply| Message::Call { function, args, reply })
    }

    /// Calls a function that may wait for what `host` does for it.
    ///
    /// `done` is called once, on the thread of the engine, so it must not wait for anything; or
    /// never, if what is returned is dropped before.
    pub fn perform(
        &self,
        function: u32,
        args: Vec<Arg>,
        host: Arc<dyn Host>,
        done: impl FnOnce(Result<Value, Trouble>) + Send + 'static,
    ) -> Performance {
        let id = self.next();
        let done = Done::new(Box::new(done));
        let message = Message::Perform { id, function, args, host, done };
        if let Err(mpsc::SendError(Message::Perform { done, .. })) = self.0.sender.send(message) {
            done.give(Err(self.gone()));
        }
        Performance { id, sender: self.0.sender.clone() }
    }

    /// Runs a script until it waits. `seed` and `now` are all it sees of chance and of time.
    ///
    /// # Errors
    /// It does not come to an end, or the worker has ended. That it throws is no error, but in
    /// the turn.
    pub fn start_script(
        &self,
        function: u32,
        args: Vec<Arg>,
        seed: u64,
        now: i64,
    ) -> Result<(Script, Turn), Trouble> {
        let id = self.next();
        let script = Script { id, worker: self.clone() };
        let start = message::Start { function, args, seed, now };
        let turn = self.ask(|reply| Message::Start { id, start, reply })?;
        Ok((script, turn))
    }

    fn next(&self) -> u64 {
        self.0.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, Trouble> {
        if self.0.thread_id == Some(thread::current().id()) {
            let message = "the thread of a worker cannot wait for itself";
            return Err(Trouble::new(TroubleKind::Refused, message));
        }
        let (reply, answer) = mpsc::sync_channel(1);
        if self.0.sender.send(message(reply)).is_err() {
            return Err(self.gone());
        }
        loop {
            match answer.recv_timeout(LOOK_AGAIN) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
                Err(RecvTimeoutError::Timeout) if self.is_stuck() => return Err(self.stuck()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Whether it runs something that the engine does not interrupt.
    fn is_stuck(&self) -> bool {
        self.0.pulse.running() > self.0.stretch + LAST_MOMENTS
    }

    fn stuck(&self) -> Trouble {
        let seconds = self.0.stretch.as_secs_f64();
        let message = format!(
            "it has run for more than {seconds} s in one call of the language itself, which cannot \
             be interrupted; is this a list of far too many entries?"
        );
        Trouble::new(TroubleKind::Interrupted, message)
    }

    fn gone(&self) -> Trouble {
        let Some(reason) = self.0.ended.get() else {
            return Trouble::new(TroubleKind::Gone, "the worker has ended");
        };
        if reason.kind == TroubleKind::Gone {
            return reason.clone();
        }
        let message = format!("the worker has ended: {}", reason.headline());
        let mut trouble = Trouble::new(TroubleKind::Gone, message);
        trouble.cause = Some(Box::new(reason.clone()));
        trouble
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("ended", &self.0.ended.get()).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.sender.send(Message::Stop);
        // A callback may hold the last one, and a thread cannot wait for itself.
        if self.thread_id == Some(thread::current().id()) {
            return;
        }
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((thread, ending)) = thread else { return };
        // It is told to stop, and does so at once, unless it is in a call that cannot be interrupted:
        // then it is left, and ends with the process.
        if ending.recv_timeout(LAST_MOMENTS) != Err(RecvTimeoutError::Timeout) {
            let _ = thread.join();
        }
    }
}

/// A step under way. Dropping it stops the step: its `signal` fires, and all that was asked of
/// the host for it is ended.
#[derive(Debug)]
pub struct Performance {
    id: u64,
    sender: Sender<Message>,
}

impl Drop for Performance {
    fn drop(&mut self) {
        // Unknown to the worker if it has ended by itself.
        let _ = self.sender.send(Message::Abort { id: self.id });
    }
}

/// A script that has been started. Dropping it forgets the script.
#[derive(Debug)]
pub struct Script {
    id: u64,
    worker: Worker,
}

impl Script {
    /// Tells the script what has come of a call, and runs it until it waits again. `now` is the
    /// time from here on.
    ///
    /// # Errors
    /// It does not wait for this call, does not come to an end, or the worker has ended.
    pub fn deliver(&self, delivery: Delivery, now: i64) -> Result<Turn, Trouble> {
        let id = self.id;
        self.worker.ask(|reply| Message::Deliver { id, delivery, now, reply })
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.worker.0.sender.send(Message::Forget { id: self.id });
    }
}
