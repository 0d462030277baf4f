//! The thread of a worker: one engine, and everything that runs in it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

use rquickjs::function::Args;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Function, Module, Object, Promise, Runtime, Value};

use super::desk::{Desk, Scope};
use super::message::{Done, Message};
use super::modules::{Codes, Names, SdkImport};
use super::watch::{Pulse, Trip, Watch};
use super::{Arg, Options, natives};
use crate::bundle::Bundle;
use crate::convert;
use crate::fault::Place;
use crate::sdk;
use crate::trouble::{self, Frame, Trouble, TroubleKind};

/// What a worker is started with.
pub(super) struct Start {
    pub(super) bundle: Bundle,
    pub(super) options: Options,
    pub(super) sender: Sender<Message>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) pulse: Arc<Pulse>,
}

/// What one engine leaves to the next.
#[derive(Default)]
struct Legacy {
    /// What the file was loaded with, if it was.
    loaded: Option<Option<serde_json::Value>>,
    /// The last number that was given to something: a late answer must not find another.
    last: u64,
}

/// Why an engine has ended.
enum End {
    /// Nothing more is to be done.
    Over(Trouble),
    /// Something did not come to an end; the next engine goes on.
    Next(Legacy),
}

/// Serves messages until it is told to stop or cannot go on; says why.
pub(super) fn serve(start: &Start, receiver: &Receiver<Message>) -> Trouble {
    let mut legacy = Legacy::default();
    loop {
        match try_serve(start, receiver, legacy) {
            Ok(End::Over(trouble)) => return trouble,
            Ok(End::Next(next)) => legacy = next,
            Err(error) => {
                let message = format!("the engine cannot be started: {error}");
                return Trouble::new(TroubleKind::Gone, message);
            }
        }
    }
}

/// How many bytes there are before it is looked for circles that nobody holds, for the first time.
/// The SDK alone is more than what the engine would begin with.
const FIRST_SWEEP: usize = 1 << 20;

fn try_serve(start: &Start, receiver: &Receiver<Message>, legacy: Legacy) -> rquickjs::Result<End> {
    let Start { bundle, options, sender, stop, pulse } = start;
    let (stop, pulse) = (Arc::clone(stop), Arc::clone(pulse));
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(options.limits.memory);
    runtime.set_max_stack_size(options.limits.stack);
    runtime.set_gc_threshold(FIRST_SWEEP);
    let watch = Rc::new(Watch::new(options.limits.stretch, stop, pulse));
    let seen = Rc::clone(&watch);
    runtime.set_interrupt_handler(Some(Box::new(move || seen.is_enough())));
    let imported = SdkImport::default();
    runtime.set_loader(Names(bundle.clone(), Rc::clone(&imported)), Codes(bundle.clone()));
    let desk = Rc::new(Desk::new(bundle.clone(), options, sender.clone(), legacy.last));
    let tracked = Rc::clone(&desk);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(
        move |ctx, promise, reason, is_handled| {
            let key = identity(&promise);
            if is_handled {
                tracked.rejections.borrow_mut().remove(&key);
            } else {
                let trouble = trouble::from_value(&ctx, &tracked.bundle, &reason);
                tracked.rejections.borrow_mut().insert(key, trouble);
            }
        },
    )));
    // Never one of chosen parts: those have crashed.
    let context = Context::full(&runtime)?;
    // One stay for the whole life: all values have the same lifetime, and none outlives it.
    Ok(context.with(|ctx| match Engine::boot(ctx.clone(), desk, watch) {
        Ok(mut engine) => {
            engine.imported = imported;
            engine.reload = legacy.loaded;
            engine.serve(receiver)
        }
        Err((desk, error)) => End::Over(trouble::from_error(&ctx, &desk.bundle, error)),
    }))
}

/// Tells live objects apart.
fn identity(value: &Value<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The functions of `sdk/boot.ts` that are called from here.
pub(super) struct Boot<'js>(Object<'js>);

impl<'js> Boot<'js> {
    pub(super) fn function(&self, name: &str) -> rquickjs::Result<Function<'js>> {
        self.0.get(name)
    }
}

/// A step that has not ended.
pub(super) struct Step<'js> {
    /// Which function of the file does it.
    pub(super) function: u32,
    /// Nothing before the function has returned.
    pub(super) promise: Option<Promise<'js>>,
    pub(super) done: Done,
}

pub(super) struct Engine<'js> {
    pub(super) ctx: Ctx<'js>,
    pub(super) desk: Rc<Desk>,
    pub(super) boot: Boot<'js>,
    pub(super) functions: Vec<Function<'js>>,
    pub(super) steps: BTreeMap<u64, Step<'js>>,
    /// Scripts that have not ended, and the functions they are.
    pub(super) scripts: BTreeMap<u64, (Promise<'js>, u32)>,
    /// What makes the context of a step, if the SDK has something to add to it.
    pub(super) extend: Option<Function<'js>>,
    /// What the file was loaded with in an engine before this one, and is not in this one yet.
    pub(super) reload: Option<Option<serde_json::Value>>,
    /// What it was loaded with in this one.
    pub(super) loaded: Option<Option<serde_json::Value>>,
    /// The module of the SDK that a file has imported.
    pub(super) imported: SdkImport,
    pub(super) watch: Rc<Watch>,
}

impl<'js> Engine<'js> {
    fn boot(ctx: Ctx<'js>, desk: Rc<Desk>, watch: Rc<Watch>) -> Result<Self, (Rc<Desk>, Error)> {
        let booted = (|| {
            sdk::prepare().map_err(|why| Error::new_loading_message("atomic:boot", why))?;
            ctx.globals().set("__raw", natives::make(&ctx, &desk)?)?;
            let boot: Object<'js> = import(&ctx, "atomic:boot")?;
            ctx.globals().remove("__raw")?;
            Ok(Boot(boot))
        })();
        match booted {
            Ok(boot) => Ok(Self {
                ctx,
                desk,
                boot,
                functions: Vec::new(),
                steps: BTreeMap::new(),
                scripts: BTreeMap::new(),
                extend: None,
                reload: None,
                loaded: None,
                imported: SdkImport::default(),
                watch,
            }),
            Err(error) => Err((desk, error)),
        }
    }

    fn serve(&mut self, receiver: &Receiver<Message>) -> End {
        let reason = loop {
            let received = match self.desk.until_timer() {
                None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(time) => receiver.recv_timeout(time),
            };
            match received {
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    break Trouble::new(TroubleKind::Gone, "the worker was stopped");
                }
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
            }
            while let Some((timer, scope)) = self.desk.take_due() {
                self.tick(timer, scope);
                if self.watch.trip().is_some() {
                    break;
                }
            }
            match self.watch.trip() {
                None => {}
                Some(Trip::Stopped) => {
                    break Trouble::new(TroubleKind::Gone, "the worker was stopped");
                }
                Some(Trip::Time) => {
                    let message = "another step of the workflow did not come to an end, and what \
                                   was under way beside it has ended with it; there is nothing \
                                   wrong with this one";
                    self.end(&Trouble::new(TroubleKind::Gone, message));
                    let loaded = self.loaded.take().or_else(|| self.reload.take());
                    return End::Next(Legacy { loaded, last: self.desk.last() });
                }
            }
        };
        self.end(&reason);
        End::Over(reason)
    }

    /// Nothing more will run: whoever waits is told.
    fn end(&mut self, reason: &Trouble) {
        self.scripts.clear();
        self.functions.clear();
        self.extend = None;
        for (id, step) in std::mem::take(&mut self.steps) {
            self.desk.close(id);
            drop(step.promise);
            step.done.give(Err(reason.clone()));
        }
    }

    /// Runs something in the name of `scope`, and all that it causes.
    ///
    /// The second part is a rejection that nobody has handled.
    pub(super) fn run<T>(
        &mut self,
        scope: Scope,
        work: impl FnOnce(&mut Self) -> Result<T, Trouble>,
    ) -> (Result<T, Trouble>, Option<Trouble>) {
        self.watch.arm();
        self.desk.scope.set(scope);
        let result = work(self);
        self.drain();
        self.watch.disarm();
        let rejections = std::mem::take(&mut *self.desk.rejections.borrow_mut());
        let unhandled = rejections.into_values().min_by(|a, b| a.message.cmp(&b.message));
        let resumed = self.desk.resumed.borrow_mut().take();
        if self.watch.trip().is_some() {
            let seen = result.err().or(unhandled).or_else(|| self.rejection_of(scope));
            let trouble = self.interrupted(seen).map(|trouble| self.placed(trouble, resumed));
            let stopped = || Trouble::new(TroubleKind::Gone, "the worker was stopped");
            return (Err(trouble.unwrap_or_else(stopped)), None);
        }
        (result, unhandled)
    }

    /// Every job there is. Each is short, but there may be no end of them.
    pub(super) fn drain(&self) {
        while !self.watch.is_enough() && self.ctx.execute_pending_job() {}
    }

    /// Why nothing runs any more; `seen` is what the file saw of it.
    fn interrupted(&self, seen: Option<Trouble>) -> Option<Trouble> {
        let mut trouble = match self.watch.trip()? {
            Trip::Stopped => Trouble::new(TroubleKind::Gone, "the worker was stopped"),
            Trip::Time => {
                let seconds = self.watch.limit().as_secs_f64();
                let message =
                    format!("it ran for {seconds} s without a pause; is this an endless loop?");
                Trouble::new(TroubleKind::Interrupted, message)
            }
        };
        if let Some(seen) = seen {
            trouble.frames = seen.frames;
            trouble.frame = seen.frame;
        }
        Some(trouble)
    }

    /// After an `await` the place of a loop is lost; what was waited for is next to it.
    fn placed(&self, mut trouble: Trouble, resumed: Option<Place>) -> Trouble {
        if let Some(at) = resumed.filter(|_| trouble.frames.is_empty()) {
            trouble.message.push_str(" (it went on after this)");
            trouble.frames = [Frame { function: "<after await>".to_owned(), at }].into();
            trouble.frame = trouble::code_frame(&self.desk.bundle, &trouble);
        }
        trouble
    }

    /// What the promise of a step or a script was rejected with.
    fn rejection_of(&self, scope: Scope) -> Option<Trouble> {
        let promise = match scope {
            Scope::Perform(id) => self.steps.get(&id)?.promise.as_ref()?,
            Scope::Script(id) => &self.scripts.get(&id)?.0,
            Scope::Idle | Scope::Loading | Scope::Call => return None,
        };
        self.rejection(promise)
    }

    fn rejection(&self, promise: &Promise<'js>) -> Option<Trouble> {
        if promise.state() != PromiseState::Rejected {
            return None;
        }
        let result = promise.result::<Value<'js>>()?;
        result.err().map(|error| self.trouble(error))
    }

    pub(super) fn trouble(&self, error: Error) -> Trouble {
        trouble::from_error(&self.ctx, &self.desk.bundle, error)
    }

    /// Says where the function was written, where the file itself was in no line when it happened:
    /// what it returned cannot be kept, or is not what it should be.
    pub(super) fn returned_by(&self, function: u32, mut trouble: Trouble) -> Trouble {
        if trouble.frames.is_empty() && trouble.kind != TroubleKind::Gone {
            trouble.frames = self.written(function).into_iter().collect();
            trouble.frame = trouble::code_frame(&self.desk.bundle, &trouble);
        }
        trouble
    }

    /// Where a function of the file begins.
    fn written(&self, function: u32) -> Option<Frame> {
        let ours = self.functions.get(function as usize)?;
        let function = ours.get::<_, Option<Function<'js>>>("__of").ok().flatten();
        let function = function.as_ref().unwrap_or(ours);
        let number = |key: &str| function.get::<_, u32>(key).ok();
        let file = function.get::<_, String>("fileName").ok()?;
        let name = function.get::<_, String>("name").unwrap_or_default();
        let name = if name.is_empty() { "<anonymous>" } else { &name };
        let (line, column) = (number("lineNumber")?, number("columnNumber")?);
        let stack = format!("at {name} ({file}:{line}:{column})");
        trouble::frames(&self.desk.bundle, &stack).next()
    }

    /// We take care of what becomes of a promise: it is not one that nobody handles.
    pub(super) fn adopt(&self, promise: &Promise<'js>) {
        self.desk.rejections.borrow_mut().remove(&identity(promise.as_value()));
    }

    /// What a promise has come to by now.
    ///
    /// # Errors
    /// It was rejected, or has not settled.
    pub(super) fn settled(
        &self,
        promise: &Promise<'js>,
        waits: &str,
    ) -> Result<Value<'js>, Trouble> {
        self.drain();
        self.adopt(promise);
        match promise.result::<Value<'js>>() {
            Some(result) => result.map_err(|error| self.trouble(error)),
            None => Err(Trouble::new(TroubleKind::Pending, waits)),
        }
    }

    /// Calls a function of the file.
    pub(super) fn invoke(
        &self,
        function: u32,
        args: &[Arg],
        step: Option<u64>,
    ) -> Result<Value<'js>, Trouble> {
        let Some(function) = self.functions.get(function as usize) else {
            let message = format!("there is no function {function}");
            return Err(Trouble::new(TroubleKind::Refused, message));
        };
        let call = || {
            let mut given = Args::new(self.ctx.clone(), args.len());
            for arg in args {
                given.push_arg(self.argument(arg, step)?)?;
            }
            function.call_arg(given)
        };
        call().map_err(|error| self.trouble(error))
    }

    fn argument(&self, arg: &Arg, step: Option<u64>) -> rquickjs::Result<Value<'js>> {
        match arg {
            Arg::Value(value) => convert::to_js(&self.ctx, value),
            Arg::Object(fields) => {
                let object = Object::new(self.ctx.clone())?;
                for (key, value) in fields {
                    match value {
                        Arg::Late(late) => convert::put_late(&object, key, late)?,
                        Arg::Value(_) | Arg::Object(_) | Arg::Context(_) => {
                            convert::put(&object, key, self.argument(value, step)?)?;
                        }
                    }
                }
                Ok(object.into_value())
            }
            Arg::Late(fields) => convert::object(&self.ctx, fields),
            Arg::Context(fields) => {
                let fields = convert::to_js(&self.ctx, fields)?;
                let Some(step) = step else { return Ok(fields) };
                let make = self.boot.function("context")?;
                make.call((step as f64, fields, self.extend.clone()))
            }
        }
    }
}

/// The exports of a module of the SDK.
pub(super) fn import<'js>(ctx: &Ctx<'js>, name: &str) -> rquickjs::Result<Object<'js>> {
    Module::import(ctx, name)?.finish()
}
