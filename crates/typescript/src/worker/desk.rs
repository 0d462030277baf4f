//! What the engine and the functions it gives to scripts both know: plain data, no values of the
//! engine, so that nothing here keeps one alive.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::dice::Dice;
use super::message::Message;
use super::script::{Notes, OpenCall, ScriptCall};
use super::{Log, Options};
use crate::bundle::Bundle;
use crate::fault::Place;
use crate::host::{Answer, Host, Underway};
use crate::text;
use crate::trouble::{self, Trouble};

/// Nobody reads a longer one.
const LONGEST_LINE: usize = 64 << 10;

/// In whose name something runs.
///
/// Every message to the worker is followed by all the jobs it causes, until none is left. So what
/// runs is always known to be caused by the message: after an `await` too, and without any help
/// of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Idle,
    Loading,
    Call,
    Perform(u64),
    Script(u64),
}

/// Something asked of the host.
struct Request {
    name: String,
    scope: Scope,
    /// Where it was made, as the engine says it.
    stack: String,
    /// Dropping it ends it.
    _underway: Underway,
}

/// Something to be done later.
struct Timer {
    scope: Scope,
    due: Instant,
    repeats: Option<Duration>,
}

pub(super) struct Desk {
    pub(super) bundle: Bundle,
    pub(super) scope: Cell<Scope>,
    pub(super) hosts: RefCell<BTreeMap<u64, Arc<dyn Host>>>,
    pub(super) scripts: RefCell<BTreeMap<u64, Notes>>,
    /// Rejections that nobody has handled yet, by the promise.
    pub(super) rejections: RefCell<HashMap<u64, Trouble>>,
    /// What the running jobs have waited for; the engine cannot say where they are themselves.
    pub(super) resumed: RefCell<Option<Place>>,
    /// The steps whose promises have settled.
    pub(super) finished: RefCell<Vec<u64>>,
    requests: RefCell<BTreeMap<u64, Request>>,
    timers: RefCell<BTreeMap<u64, Timer>>,
    last: Cell<u64>,
    sender: Sender<Message>,
    log: Option<Log>,
    loading: World,
    /// What steps and functions see of the real one: since when there is a worker, and its dice.
    real: (i64, RefCell<Dice>),
}

/// Milliseconds since 1970.
fn real_time() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Time and chance while the file is loaded.
struct World {
    now: Option<i64>,
    dice: RefCell<Dice>,
}

/// What was ended with a step: the numbers by which the engine knows them.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) requests: Vec<u64>,
    pub(super) timers: Vec<u64>,
}

impl Desk {
    pub(super) fn new(
        bundle: Bundle,
        options: &Options,
        sender: Sender<Message>,
        last: u64,
    ) -> Self {
        Self {
            bundle,
            scope: Cell::new(Scope::Idle),
            hosts: RefCell::default(),
            scripts: RefCell::default(),
            rejections: RefCell::default(),
            resumed: RefCell::default(),
            finished: RefCell::default(),
            requests: RefCell::default(),
            timers: RefCell::default(),
            last: Cell::new(last),
            sender,
            log: options.log.clone(),
            loading: World { now: options.now, dice: RefCell::new(Dice::new(options.seed)) },
            real: (real_time(), RefCell::new(Dice::unpredictable())),
        }
    }

    /// The last number that was given to something.
    pub(super) fn last(&self) -> u64 {
        self.last.get()
    }

    fn next(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// Asks the host of the step that runs.
    ///
    /// # Errors
    /// No step runs, in a sentence.
    pub(super) fn request(&self, name: &str, args: Value, stack: String) -> Result<u64, String> {
        let scope = self.scope.get();
        let why = match scope {
            Scope::Perform(id) => {
                let host = self.hosts.borrow().get(&id).cloned();
                if let Some(host) = host {
                    return Ok(self.begin(&*host, name, args, stack));
                }
                "the step that asks for it has ended"
            }
            Scope::Loading => "a file that is being loaded may only describe; do it in a step",
            Scope::Call | Scope::Idle => {
                "only steps may do it: the `execute` of a tool or custom node"
            }
            Scope::Script(_) => "a script has it as a function of its `ctx`",
        };
        Err(format!("`{name}` is not possible here: {why}"))
    }

    fn begin(&self, host: &dyn Host, name: &str, args: Value, stack: String) -> u64 {
        let request = self.next();
        let sender = self.sender.clone();
        let answer = Answer::new(move |result| {
            // There is nobody to tell when the worker has ended.
            let _ = sender.send(Message::Answer { request, result });
        });
        let underway = host.request(name, args, answer);
        let (name, scope) = (name.to_owned(), self.scope.get());
        let begun = Request { name, scope, stack, _underway: underway };
        self.requests.borrow_mut().insert(request, begun);
        request
    }

    /// Takes a request away, and ends it if it is still under way.
    pub(super) fn end_request(&self, request: u64) -> Option<(Scope, String)> {
        // Dropped when nothing is borrowed any more: it may be anybody's code.
        let ended = self.requests.borrow_mut().remove(&request);
        ended.map(|ended| (ended.scope, ended.stack))
    }

    /// The request that a step has made first of those that are under way, and where.
    pub(super) fn under_way(&self, step: u64) -> Option<(String, Option<Place>)> {
        let requests = self.requests.borrow();
        let first = requests.values().find(|one| one.scope == Scope::Perform(step))?;
        Some((first.name.clone(), self.place(&first.stack)))
    }

    /// Writes down what a script wants.
    ///
    /// # Errors
    /// No script runs, or it has used the key before, in a sentence.
    pub(super) fn call(&self, call: ScriptCall) -> Result<u64, String> {
        let Scope::Script(id) = self.scope.get() else {
            return Err("`ctx` of a script is used outside of the script".to_owned());
        };
        let mut scripts = self.scripts.borrow_mut();
        let Some(notes) = scripts.get_mut(&id) else {
            return Err("the script has ended".to_owned());
        };
        if !notes.used.insert(call.key.clone()) {
            return Err(format!("the key `{}` is used by another call of this script", call.key));
        }
        let number = self.next();
        let ScriptCall { key, kind, at, .. } = &call;
        let open = OpenCall { key: key.clone(), kind: kind.clone(), at: at.clone() };
        notes.open.insert(key.clone(), (number, open));
        notes.calls.push(call);
        Ok(number)
    }

    /// Writes down what a script wants no more.
    pub(super) fn cancel(&self, keys: Vec<String>) {
        if let Scope::Script(id) = self.scope.get()
            && let Some(notes) = self.scripts.borrow_mut().get_mut(&id)
        {
            let open = keys.into_iter().filter(|key| notes.open.contains_key(key));
            let open: Vec<String> = open.collect();
            notes.stopped.extend(open.iter().cloned());
            notes.cancelled.extend(open);
        }
    }

    /// Starts a timer.
    ///
    /// # Errors
    /// There are none here, in a sentence.
    pub(super) fn start_timer(&self, ms: f64, repeats: bool) -> Result<u64, String> {
        let scope = self.scope.get();
        let why = match scope {
            Scope::Perform(id) if self.hosts.borrow().contains_key(&id) => {
                // A month is enough, and keeps the sum from overflowing.
                let ms = ms.clamp(0.0, 31.0 * 86_400_000.0);
                let time = Duration::from_micros((ms * 1000.0) as u64);
                let id = self.next();
                // One that repeats at once would leave no room for anything else.
                let repeats = repeats.then(|| time.max(Duration::from_millis(1)));
                let timer = Timer { scope, due: Instant::now() + time, repeats };
                self.timers.borrow_mut().insert(id, timer);
                return Ok(id);
            }
            Scope::Perform(_) => "the step has ended",
            Scope::Script(_) => {
                "a script waits with `await ctx.sleep(ms)`, which outlives a restart"
            }
            Scope::Loading => "a file that is being loaded cannot wait",
            Scope::Call | Scope::Idle => "only steps can wait",
        };
        Err(format!("there are no timers here: {why}"))
    }

    pub(super) fn end_timer(&self, id: u64) {
        self.timers.borrow_mut().remove(&id);
    }

    /// How long until a timer is due.
    pub(super) fn until_timer(&self) -> Option<Duration> {
        let timers = self.timers.borrow();
        let next = timers.values().map(|timer| timer.due).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Takes the timer that has been due longest.
    pub(super) fn take_due(&self) -> Option<(u64, Scope)> {
        let now = Instant::now();
        let mut timers = self.timers.borrow_mut();
        let due = timers.iter().filter(|(_, timer)| timer.due <= now);
        let (id, timer) = due.min_by_key(|(id, timer)| (timer.due, **id))?;
        let (id, scope, repeats) = (*id, timer.scope, timer.repeats);
        match repeats {
            None => drop(timers.remove(&id)),
            Some(time) => {
                if let Some(timer) = timers.get_mut(&id) {
                    timer.due = now + time;
                }
            }
        }
        Some((id, scope))
    }

    /// A step has ended: so does all that was under way for it.
    pub(super) fn close(&self, step: u64) -> Ended {
        let host = self.hosts.borrow_mut().remove(&step);
        let scope = Scope::Perform(step);
        let of_step = |number: &u64, is: bool| is.then_some(*number);
        let requests: Vec<u64> = {
            let all = self.requests.borrow();
            all.iter().filter_map(|(id, one)| of_step(id, one.scope == scope)).collect()
        };
        for request in &requests {
            self.end_request(*request);
        }
        let timers: Vec<u64> = {
            let all = self.timers.borrow();
            all.iter().filter_map(|(id, one)| of_step(id, one.scope == scope)).collect()
        };
        for timer in &timers {
            self.end_timer(*timer);
        }
        drop(host);
        Ended { requests, timers }
    }

    /// Says something in the name of what runs.
    pub(super) fn say(&self, level: &str, text: &str) {
        let text = &*text::cut(text.to_owned(), LONGEST_LINE);
        match self.scope.get() {
            Scope::Perform(id) => {
                let host = self.hosts.borrow().get(&id).cloned();
                match host {
                    Some(host) => host.log(level, text),
                    None => self.say_to_all(level, text),
                }
            }
            Scope::Script(id) => {
                if let Some(notes) = self.scripts.borrow_mut().get_mut(&id) {
                    notes.say(level, text);
                }
            }
            Scope::Idle | Scope::Loading | Scope::Call => self.say_to_all(level, text),
        }
    }

    fn say_to_all(&self, level: &str, text: &str) {
        if let Some(log) = &self.log {
            log(level, text);
        }
    }

    /// The time, in milliseconds since 1970, as what runs sees it.
    pub(super) fn now(&self) -> i64 {
        let given = match self.scope.get() {
            Scope::Script(id) => self.scripts.borrow().get(&id).map(|notes| notes.now),
            Scope::Loading => self.loading.now,
            Scope::Idle | Scope::Call | Scope::Perform(_) => None,
        };
        given.unwrap_or_else(real_time)
    }

    /// The time that what runs counts from.
    pub(super) fn origin(&self) -> i64 {
        let given = match self.scope.get() {
            Scope::Script(id) => self.scripts.borrow().get(&id).map(|notes| notes.began),
            Scope::Loading => self.loading.now,
            Scope::Idle | Scope::Call | Scope::Perform(_) => None,
        };
        given.unwrap_or(self.real.0)
    }

    /// A random number, as what runs sees it.
    pub(super) fn roll(&self) -> f64 {
        match self.scope.get() {
            Scope::Script(id) => {
                let mut scripts = self.scripts.borrow_mut();
                scripts.get_mut(&id).map_or(0.0, |notes| notes.dice.roll())
            }
            Scope::Loading | Scope::Idle => self.loading.dice.borrow_mut().roll(),
            Scope::Call | Scope::Perform(_) => self.real.1.borrow_mut().roll(),
        }
    }

    /// The place of the nearest frame of a file.
    pub(super) fn place(&self, stack: &str) -> Option<Place> {
        trouble::frames(&self.bundle, stack).next().map(|frame| frame.at)
    }
}
