//! The functions that Rust gives to the SDK: `__raw` of `sdk/boot.ts`.

use std::rc::Rc;

use rquickjs::{Array, Ctx, Exception, Function, IntoJs as _, Object, Result, Value};

use super::desk::{Desk, Scope};
use super::script::ScriptCall;
use crate::convert::{ConvertError, Reader};
use crate::fault::Place;

/// Makes the object.
pub(super) fn make<'js>(ctx: &Ctx<'js>, desk: &Rc<Desk>) -> Result<Object<'js>> {
    let raw = Object::new(ctx.clone())?;
    add_calls(ctx, &raw, desk)?;
    add_timers(ctx, &raw, desk)?;
    let own = Rc::clone(desk);
    let log = move |level: String, text: String| own.say(&level, &text);
    raw.set("log", Function::new(ctx.clone(), log)?)?;
    let own = Rc::clone(desk);
    let place = move |ctx: Ctx<'js>, stack: String| -> Result<Value<'js>> {
        match own.place(&stack) {
            Some(place) => place_to_js(&ctx, &place),
            None => Ok(Value::new_null(ctx)),
        }
    };
    raw.set("place", Function::new(ctx.clone(), place)?)?;
    let own = Rc::clone(desk);
    let scope = move |ctx: Ctx<'js>| scope_to_js(&ctx, own.scope.get());
    raw.set("scope", Function::new(ctx.clone(), scope)?)?;
    let own = Rc::clone(desk);
    raw.set("now", Function::new(ctx.clone(), move || own.now() as f64)?)?;
    let own = Rc::clone(desk);
    raw.set("origin", Function::new(ctx.clone(), move || own.origin() as f64)?)?;
    let own = Rc::clone(desk);
    raw.set("random", Function::new(ctx.clone(), move || own.roll())?)?;
    let own = Rc::clone(desk);
    let finished = move |id: f64| own.finished.borrow_mut().push(id as u64);
    raw.set("finished", Function::new(ctx.clone(), finished)?)?;
    Ok(raw)
}

fn add_calls<'js>(ctx: &Ctx<'js>, raw: &Object<'js>, desk: &Rc<Desk>) -> Result<()> {
    let own = Rc::clone(desk);
    let request = move |ctx: Ctx<'js>, name: String, args: Value<'js>, stack: String| {
        let args = read(&ctx, &args, &name)?;
        let begun = own.request(&name, args, stack);
        begun.map(|id| id as f64).map_err(|why| Exception::throw_message(&ctx, &why))
    };
    raw.set("request", Function::new(ctx.clone(), request)?)?;
    let own = Rc::clone(desk);
    let end = move |id: f64| {
        own.end_request(id as u64);
    };
    raw.set("endRequest", Function::new(ctx.clone(), end)?)?;
    let own = Rc::clone(desk);
    let call = move |ctx: Ctx<'js>, key: String, kind: String, args: Value<'js>, stack: String| {
        let args = read(&ctx, &args, &kind)?;
        let at = own.place(&stack);
        let begun = own.call(ScriptCall { key, kind, args, at });
        begun.map(|id| id as f64).map_err(|why| Exception::throw_message(&ctx, &why))
    };
    raw.set("call", Function::new(ctx.clone(), call)?)?;
    let own = Rc::clone(desk);
    let cancel = move |keys: Vec<String>| own.cancel(keys);
    raw.set("cancel", Function::new(ctx.clone(), cancel)?)
}

fn add_timers<'js>(ctx: &Ctx<'js>, raw: &Object<'js>, desk: &Rc<Desk>) -> Result<()> {
    let own = Rc::clone(desk);
    let start = move |ctx: Ctx<'js>, ms: f64, repeats: bool| -> Result<f64> {
        let started = own.start_timer(ms, repeats);
        started.map(|id| id as f64).map_err(|why| Exception::throw_message(&ctx, &why))
    };
    raw.set("startTimer", Function::new(ctx.clone(), start)?)?;
    let own = Rc::clone(desk);
    raw.set("endTimer", Function::new(ctx.clone(), move |id: f64| own.end_timer(id as u64))?)
}

/// What is given to a request or a call.
fn read<'js>(ctx: &Ctx<'js>, args: &Value<'js>, name: &str) -> Result<serde_json::Value> {
    let read = Reader::new(None, false).read(args);
    read.map(Option::unwrap_or_default).map_err(|error| {
        let sentence = error.sentence(&format!("what is given to `{name}`"));
        match (error, sentence) {
            (ConvertError::Js(error), _) => error,
            (_, sentence) => Exception::throw_type(ctx, &sentence.unwrap_or_default()),
        }
    })
}

fn place_to_js<'js>(ctx: &Ctx<'js>, place: &Place) -> Result<Value<'js>> {
    let array = Array::new(ctx.clone())?;
    array.set(0, place.file.to_string_lossy().as_ref())?;
    array.set(1, place.line)?;
    array.set(2, place.column)?;
    array.into_js(ctx)
}

fn scope_to_js<'js>(ctx: &Ctx<'js>, scope: Scope) -> Result<Object<'js>> {
    let (kind, id) = match scope {
        Scope::Idle => ("idle", 0),
        Scope::Loading => ("load", 0),
        Scope::Call => ("call", 0),
        Scope::Perform(id) => ("perform", id),
        Scope::Script(id) => ("script", id),
    };
    let object = Object::new(ctx.clone())?;
    object.set("kind", kind)?;
    object.set("id", id as f64)?;
    Ok(object)
}
