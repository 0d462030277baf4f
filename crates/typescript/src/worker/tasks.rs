//! What a worker does for each message.

use rquickjs::{Function, Module, Object, Promise, Value};
use serde_json::Value as Json;

use super::desk::Scope;
use super::engine::{Engine, Step, import};
use super::message::{Message, Start};
use super::script::{Delivery, Notes, OpenCall, Outcome, Progress, Turn};
use super::{Arg, Loaded};
use crate::convert::{self, ConvertError, Reader};
use crate::host::HostError;
use crate::trouble::{self, Frame, Trouble, TroubleKind};

impl<'js> Engine<'js> {
    /// Does what a message says.
    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Load { config, reply } => drop(reply.send(self.load(config.as_ref()))),
            Message::Call { function, args, reply } => {
                let result = self.ready().and_then(|()| self.call(function, &args));
                drop(reply.send(result));
            }
            Message::Perform { id, function, args, host, done } => {
                if let Err(trouble) = self.ready() {
                    return done.give(Err(trouble));
                }
                self.desk.hosts.borrow_mut().insert(id, host);
                self.steps.insert(id, Step { function, promise: None, done });
                self.perform(id, function, &args);
            }
            Message::Abort { id } => self.abort(id),
            Message::Answer { request, result } => self.answer(request, &result),
            Message::Start { id, start, reply } => {
                let result = self.ready().and_then(|()| self.start(id, &start));
                drop(reply.send(result));
            }
            Message::Deliver { id, delivery, now, reply } => {
                drop(reply.send(self.deliver(id, &delivery, now)));
            }
            Message::Forget { id } => {
                self.scripts.remove(&id);
                self.desk.scripts.borrow_mut().remove(&id);
            }
            Message::Stop => {}
        }
    }

    /// Loads the file again if that was done in an engine before this one.
    fn ready(&mut self) -> Result<(), Trouble> {
        let Some(config) = self.reload.clone() else { return Ok(()) };
        self.load(config.as_ref()).map(drop)
    }

    fn load(&mut self, config: Option<&Json>) -> Result<Loaded, Trouble> {
        let (result, unhandled) = self.run(Scope::Loading, |engine| {
            let exports = engine.evaluate()?;
            let described = match config {
                Some(config) => engine.describe(exports, config)?,
                None => exports,
            };
            let mut functions = Vec::new();
            let read = Reader::new(Some(&mut functions), false).read(&described);
            let read = engine.converted(read, "the workflow", Some("ATM716"))?;
            engine.functions = functions;
            engine.loaded = Some(config.cloned());
            engine.reload = None;
            let imported_sdk = engine.imported.borrow().clone();
            Ok(Loaded { descriptor: read, imported_sdk })
        });
        match unhandled {
            Some(unhandled) if result.is_ok() => Err(unhandled),
            _ => result,
        }
    }

    /// Runs the file itself.
    fn evaluate(&self) -> Result<Value<'js>, Trouble> {
        let entry = self.desk.bundle.entry().to_string_lossy().into_owned();
        let promise = Module::import(&self.ctx, entry).map_err(|error| self.trouble(error))?;
        let waits = "the file waits at its top for something that cannot come while it is loaded";
        self.settled(&promise, waits)
    }

    /// Lets the SDK make one description of whatever the file exports.
    fn describe(&mut self, exports: Value<'js>, config: &Json) -> Result<Value<'js>, Trouble> {
        let described: rquickjs::Result<Value<'js>> = (|| {
            let module: Object<'js> = import(&self.ctx, "atomic:describe")?;
            self.extend = module.get::<_, Option<Function<'js>>>("context")?;
            let describe: Function<'js> = module.get("describe")?;
            describe.call((exports, convert::to_js(&self.ctx, config)?))
        })();
        let described = described.map_err(|error| self.trouble(error))?;
        match described.as_promise() {
            None => Ok(described),
            Some(promise) => {
                let waits = "the workflow is a promise of something that cannot come while it is \
                             loaded";
                self.settled(promise, waits)
            }
        }
    }

    /// A pure function: its value is there when it returns.
    fn call(&mut self, function: u32, args: &[Arg]) -> Result<Json, Trouble> {
        let (result, unhandled) = self.run(Scope::Call, |engine| {
            let value = engine.invoke(function, args, None)?;
            let value = match value.as_promise() {
                None => value,
                Some(promise) => {
                    let waits = "this function waits for something, which only the `execute` of \
                                 a tool or custom node can";
                    engine.settled(promise, waits)?
                }
            };
            engine.returned(&value)
        });
        let result = match unhandled {
            Some(unhandled) if result.is_ok() => Err(unhandled),
            _ => result,
        };
        result.map_err(|trouble| self.returned_by(function, trouble))
    }

    fn perform(&mut self, id: u64, function: u32, args: &[Arg]) {
        let (result, unhandled) = self.run(Scope::Perform(id), |engine| {
            let value = engine.invoke(function, args, Some(id))?;
            let Some(promise) = value.as_promise() else {
                return engine.returned(&value).map(Some);
            };
            engine.watch(promise, id)?;
            if let Some(step) = engine.steps.get_mut(&id) {
                step.promise = Some(promise.clone());
            }
            Ok(None)
        });
        match result {
            Err(trouble) => self.finish(id, Err(trouble)),
            Ok(Some(value)) => {
                let result = unhandled.map_or(Ok(value), Err);
                self.finish(id, result);
            }
            Ok(None) => self.after(Scope::Perform(id), unhandled),
        }
    }

    /// Hears when the promise settles.
    fn watch(&self, promise: &Promise<'js>, id: u64) -> Result<(), Trouble> {
        let watch = self.boot.function("watch");
        let watched = watch.and_then(|watch| watch.call((promise.clone(), id as f64)));
        watched.map_err(|error| self.trouble(error))
    }

    /// What has to be done when something has run in the name of a step or of nobody.
    fn after(&mut self, scope: Scope, unhandled: Option<Trouble>) {
        if let Some(trouble) = unhandled {
            match scope {
                Scope::Perform(id) if self.steps.contains_key(&id) => self.finish(id, Err(trouble)),
                Scope::Idle
                | Scope::Loading
                | Scope::Call
                | Scope::Perform(_)
                | Scope::Script(_) => {
                    self.desk.say("error", &format!("nobody has handled this: {trouble}"));
                }
            }
        }
        let finished = std::mem::take(&mut *self.desk.finished.borrow_mut());
        for id in finished {
            // Nothing runs any more, and whoever is next is not to blame for it.
            if self.watch.trip().is_some() {
                break;
            }
            let Some(promise) = self.steps.get(&id).and_then(|step| step.promise.clone()) else {
                continue;
            };
            let (result, _) = self.run(Scope::Perform(id), |engine| {
                let value = engine.settled(&promise, "")?;
                engine.returned(&value)
            });
            self.finish(id, result);
        }
        self.desk.scope.set(Scope::Idle);
    }

    /// A step has ended, and with it everything that was under way for it.
    fn finish(&mut self, id: u64, result: Result<Json, Trouble>) {
        let Some(step) = self.steps.remove(&id) else { return };
        let result = result.and_then(|value| self.forgotten(id).map_or(Ok(value), Err));
        self.close(id);
        step.done.give(result.map_err(|trouble| self.returned_by(step.function, trouble)));
    }

    /// A step that returns ends what it still waits for, and nobody would ever know.
    fn forgotten(&self, id: u64) -> Option<Trouble> {
        let (name, at) = self.desk.under_way(id)?;
        let message = format!(
            "the function has returned before `{name}` had ended; await what it asks for, or stop \
             it with a `signal`"
        );
        let mut trouble = Trouble::new(TroubleKind::Refused, message);
        let frame = |at| Frame { function: "<request>".to_owned(), at };
        trouble.frames = at.map(frame).into_iter().collect();
        trouble.frame = trouble::code_frame(&self.desk.bundle, &trouble);
        Some(trouble)
    }

    fn close(&self, id: u64) {
        let ended = self.desk.close(id);
        let numbers = |all: Vec<u64>| all.into_iter().map(|one| one as f64).collect::<Vec<_>>();
        let forget = self.boot.function("forget");
        // It only clears tables, and if there is no memory for that the worker ends soon anyway.
        let _: rquickjs::Result<()> = forget.and_then(|forget| {
            forget.call((id as f64, numbers(ended.requests), numbers(ended.timers)))
        });
    }

    fn abort(&mut self, id: u64) {
        let Some(step) = self.steps.remove(&id) else { return };
        step.done.forget();
        // First, so that nothing new begins while the file hears of it.
        let ended = self.desk.close(id);
        drop(ended);
        let (_, unhandled) = self.run(Scope::Perform(id), |engine| {
            let abort = engine.boot.function("abort");
            let aborted: rquickjs::Result<()> = abort.and_then(|abort| abort.call((id as f64,)));
            aborted.map_err(|error| engine.trouble(error))
        });
        // What a stopped step complains about is no news.
        drop(unhandled);
        drop(step.promise);
        self.close(id);
        self.after(Scope::Idle, None);
    }

    fn answer(&mut self, request: u64, result: &Result<Json, HostError>) {
        let Some((scope, stack)) = self.desk.end_request(request) else { return };
        *self.desk.resumed.borrow_mut() = self.desk.place(&stack);
        let (outcome, unhandled) = self.run(scope, |engine| match result {
            Ok(value) => engine.settle(request, value),
            Err(error) => engine.reject(request, "HostError", (&error.code, &error.message), None),
        });
        let unhandled = unhandled.or(outcome.err());
        self.after(scope, unhandled);
    }

    pub(super) fn tick(&mut self, timer: u64, scope: Scope) {
        let (outcome, unhandled) = self.run(scope, |engine| {
            let tick = engine.boot.function("tick");
            let ticked: rquickjs::Result<()> = tick.and_then(|tick| tick.call((timer as f64,)));
            ticked.map_err(|error| engine.trouble(error))
        });
        let unhandled = unhandled.or(outcome.err());
        self.after(scope, unhandled);
    }

    fn settle(&self, number: u64, value: &Json) -> Result<(), Trouble> {
        let settled: rquickjs::Result<()> = (|| {
            let value = convert::to_js(&self.ctx, value)?;
            self.boot.function("settle")?.call((number as f64, value))
        })();
        settled.map_err(|error| self.trouble(error))
    }

    fn reject(
        &self,
        number: u64,
        name: &str,
        (code, message): (&str, &str),
        call: Option<&str>,
    ) -> Result<(), Trouble> {
        let fail = self.boot.function("fail");
        let failed: rquickjs::Result<()> = fail.and_then(|fail| match call {
            Some(call) => fail.call((number as f64, name, code, message, call)),
            None => fail.call((number as f64, name, code, message)),
        });
        failed.map_err(|error| self.trouble(error))
    }

    fn start(&mut self, id: u64, start: &Start) -> Result<Turn, Trouble> {
        self.desk.scripts.borrow_mut().insert(id, Notes::new(start.seed, start.now));
        let (result, unhandled) = self.run(Scope::Script(id), |engine| {
            let value = engine.invoke(start.function, &start.args, None)?;
            let Some(promise) = value.as_promise() else {
                return Ok(Some(Progress::Returned(engine.result_of_script(&value)?)));
            };
            engine.watch(promise, id)?;
            engine.scripts.insert(id, (promise.clone(), start.function));
            Ok(None)
        });
        let result = result.map_err(|trouble| self.returned_by(start.function, trouble));
        self.turn(id, result, unhandled)
    }

    fn deliver(&mut self, id: u64, delivery: &Delivery, now: i64) -> Result<Turn, Trouble> {
        let refused = |message: String| Err(Trouble::new(TroubleKind::Refused, message));
        let number = match self.desk.scripts.borrow_mut().get_mut(&id) {
            None => {
                return Err(Trouble::new(TroubleKind::Gone, "the script is not there any more"));
            }
            Some(notes) => {
                notes.now = now;
                notes.open.remove(&delivery.key)
            }
        };
        let Some((number, OpenCall { at: place, .. })) = number else {
            return refused(format!("the script does not wait for `{}`", delivery.key));
        };
        *self.desk.resumed.borrow_mut() = place;
        let key = Some(delivery.key.as_str());
        let (result, unhandled) = self.run(Scope::Script(id), |engine| {
            match &delivery.outcome {
                Outcome::Value(value) => engine.settle(number, value),
                Outcome::Failed { code, message } => {
                    engine.reject(number, "CallError", (code, message), key)
                }
                Outcome::Cancelled => {
                    let message = format!("`{}` was cancelled", delivery.key);
                    engine.reject(number, "CancelledError", ("cancelled", &message), key)
                }
            }
            .map(|()| None)
        });
        self.turn(id, result, unhandled)
    }

    /// What a script has done, and where it stands.
    fn turn(
        &mut self,
        id: u64,
        result: Result<Option<Progress>, Trouble>,
        unhandled: Option<Trouble>,
    ) -> Result<Turn, Trouble> {
        self.desk.finished.borrow_mut().clear();
        let progress = match (result, unhandled) {
            (Err(trouble), _) if self.is_over(&trouble) => return Err(trouble),
            (Err(trouble), _) | (Ok(_), Some(trouble)) => Progress::Threw(Box::new(trouble)),
            (Ok(Some(progress)), None) => progress,
            (Ok(None), None) => self.progress(id),
        };
        self.desk.scope.set(Scope::Idle);
        let mut scripts = self.desk.scripts.borrow_mut();
        match scripts.get_mut(&id) {
            Some(notes) => Ok(notes.take(progress)),
            None => Err(Trouble::new(TroubleKind::Refused, "there is no such script")),
        }
    }

    fn is_over(&self, trouble: &Trouble) -> bool {
        matches!(trouble.kind, TroubleKind::Interrupted | TroubleKind::Gone)
    }

    fn progress(&mut self, id: u64) -> Progress {
        let Some((promise, function)) = self.scripts.get(&id).cloned() else {
            return Progress::Stuck;
        };
        let (result, _) = self.run(Scope::Script(id), |engine| {
            let value = engine.settled(&promise, "")?;
            engine.result_of_script(&value)
        });
        match result {
            Ok(value) => Progress::Returned(value),
            Err(trouble) if trouble.kind == TroubleKind::Pending => {
                let scripts = self.desk.scripts.borrow();
                let is_open = scripts.get(&id).is_some_and(|notes| !notes.open.is_empty());
                if is_open { Progress::Waiting } else { Progress::Stuck }
            }
            Err(trouble) => Progress::Threw(Box::new(self.returned_by(function, trouble))),
        }
    }

    /// The value of a function.
    fn returned(&self, value: &Value<'js>) -> Result<Json, Trouble> {
        let read = Reader::new(None, true).read(value);
        self.converted(read, "the returned value", None)
    }

    /// The result of a script. `Promise.all` makes a list of `undefined` of steps that return
    /// nothing, and no node reads it.
    fn result_of_script(&self, value: &Value<'js>) -> Result<Json, Trouble> {
        let mut reader = Reader::new(None, true);
        reader.gaps = true;
        self.converted(reader.read(value), "the returned value", None)
    }

    fn converted(
        &self,
        read: Result<Option<Json>, ConvertError>,
        whole: &str,
        code: Option<&str>,
    ) -> Result<Json, Trouble> {
        match read {
            Ok(value) => Ok(value.unwrap_or_default()),
            Err(error) => {
                let sentence = error.sentence(whole);
                let path = error.path();
                if let ConvertError::Js(error) = error {
                    return Err(self.trouble(error));
                }
                let mut trouble = Trouble::new(TroubleKind::Thrown, sentence.unwrap_or_default());
                trouble.name = "TypeError".into();
                trouble.code = code.map(Into::into);
                trouble.about.path = path;
                Err(trouble)
            }
        }
    }
}
