//! JSON in Rust to values of the engine and back, by a direct walk.

use std::sync::Arc;

use rquickjs::atom::PredefinedAtom;
use rquickjs::function::This;
use rquickjs::object::{Accessor, Property};
use rquickjs::{Array, Ctx, Error, Exception, Function, Object, Result, String as JsString, Value};
use serde_json::{Map, Number, Value as Json};

use crate::tree::places::Step;

/// A state is never nested like this; a value that contains itself always is.
const DEEPEST: usize = 128;
/// As much of a path as anybody reads.
const LONGEST_PATH: usize = 16;

/// Makes a value of the engine.
///
/// # Errors
/// There is no memory for it, or it is nested too deeply.
pub(crate) fn to_js<'js>(ctx: &Ctx<'js>, value: &Json) -> Result<Value<'js>> {
    at_depth(ctx, value, 0)
}

fn at_depth<'js>(ctx: &Ctx<'js>, value: &Json, depth: usize) -> Result<Value<'js>> {
    if depth > 4 * DEEPEST {
        return Err(Exception::throw_range(ctx, "a value is nested too deeply"));
    }
    Ok(match value {
        Json::Null => Value::new_null(ctx.clone()),
        Json::Bool(value) => Value::new_bool(ctx.clone(), *value),
        Json::Number(number) => match number.as_i64().map(i32::try_from) {
            Some(Ok(small)) => Value::new_int(ctx.clone(), small),
            _ => Value::new_float(ctx.clone(), number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => JsString::from_str(ctx.clone(), text)?.into_value(),
        Json::Array(list) => {
            let array = Array::new(ctx.clone())?;
            for (index, one) in list.iter().enumerate() {
                array.set(index, at_depth(ctx, one, depth + 1)?)?;
            }
            array.into_value()
        }
        Json::Object(map) => {
            let object = Object::new(ctx.clone())?;
            for (key, one) in map {
                put(&object, key, at_depth(ctx, one, depth + 1)?)?;
            }
            object.into_value()
        }
    })
}

/// Sets a key of a fresh object.
pub(crate) fn put<'js>(object: &Object<'js>, key: &str, value: Value<'js>) -> Result<()> {
    if key == "__proto__" {
        // Setting it would give the object another prototype.
        return object.prop(key, Property::from(value).writable().enumerable().configurable());
    }
    object.set(key, value)
}

/// An object of values that are kept apart.
pub(crate) fn object<'js>(ctx: &Ctx<'js>, fields: &[(String, Arc<Json>)]) -> Result<Value<'js>> {
    let object = Object::new(ctx.clone())?;
    for (key, value) in fields {
        put(&object, key, to_js(ctx, value)?)?;
    }
    Ok(object.into_value())
}

/// Sets a key of a fresh object to one that is made when it is looked at for the first time. It is
/// like any other then, and can be set to something else before.
pub(crate) fn put_late<'js>(
    owner: &Object<'js>,
    key: &str,
    fields: &Arc<Vec<(String, Arc<Json>)>>,
) -> Result<()> {
    let (fields, name) = (Arc::clone(fields), key.to_owned());
    let settled = |value: Value<'js>| Property::from(value).writable().enumerable().configurable();
    let get = move |ctx: Ctx<'js>, owner: This<Object<'js>>| {
        let made = object(&ctx, &fields)?;
        owner.prop(name.as_str(), settled(made.clone()))?;
        Ok::<_, Error>(made)
    };
    let name = key.to_owned();
    let set = move |owner: This<Object<'js>>, value: Value<'js>| {
        owner.prop(name.as_str(), settled(value))
    };
    owner.prop(key, Accessor::new(get, set).enumerable().configurable())
}

/// The text of a string. Half a character, as left by cutting an emoji in two, is replaced.
pub(crate) fn text(string: &JsString<'_>) -> Result<String> {
    match string.to_string() {
        Err(Error::Utf8(_)) => {
            let prototype: Object<'_> =
                string.ctx().globals().get::<_, Object<'_>>("String")?.get("prototype")?;
            let well_formed: Function<'_> = prototype.get("toWellFormed")?;
            well_formed.call((This(string.clone()),))
        }
        read => read,
    }
}

/// A value that is not JSON, or an exception while it was looked at.
#[derive(Debug)]
pub(crate) enum ConvertError {
    /// The exception is pending in the engine.
    Js(Error),
    /// What it is, and where, from the inside out.
    NotJson(String, Vec<String>),
}

impl From<Error> for ConvertError {
    fn from(error: Error) -> Self {
        Self::Js(error)
    }
}

impl ConvertError {
    fn below(mut self, step: impl FnOnce() -> String) -> Self {
        if let Self::NotJson(_, path) = &mut self
            && path.len() < LONGEST_PATH
        {
            path.push(step());
        }
        self
    }

    /// The way to what it is about.
    pub(crate) fn path(&self) -> Vec<Step> {
        let Self::NotJson(_, path) = self else { return Vec::new() };
        let step = |step: &String| match step.strip_prefix('.') {
            Some(key) => Step::Key(key.to_owned()),
            None => Step::Index(step.trim_matches(['[', ']']).parse().unwrap_or(usize::MAX)),
        };
        path.iter().rev().map(step).collect()
    }

    /// The sentence, if it is about the value; `whole` is what the value is called.
    pub(crate) fn sentence(&self, whole: &str) -> Option<String> {
        let Self::NotJson(what, path) = self else { return None };
        let path: String = path.iter().rev().map(String::as_str).collect();
        Some(format!("{what} (at {whole}{path})"))
    }
}

/// As much as the memory of an engine can hold of values that are not shared. What is more is a list
/// of holes, or the same value over and over.
const LARGEST: usize = 96 << 20;
const TOO_LARGE: &str = "a value is too large to be kept";
/// What a value without a text takes, roughly.
const VALUE: usize = 16;

/// Reads values of the engine.
pub(crate) struct Reader<'r, 'js> {
    /// Functions are kept here, and appear as `{"$fn": n}`; without it they are errors.
    pub(crate) functions: Option<&'r mut Vec<Function<'js>>>,
    /// `undefined` under a key of the whole value is `null`: that is how an update clears a field.
    pub(crate) clears: bool,
    /// `undefined` in a list is `null`, and not an error.
    pub(crate) gaps: bool,
    /// How many bytes may come yet.
    left: usize,
}

const GAP: &str = "`undefined` in a list cannot be kept; use null, or leave it out";

type Converted = std::result::Result<Option<Json>, ConvertError>;

impl<'r, 'js> Reader<'r, 'js> {
    pub(crate) fn new(functions: Option<&'r mut Vec<Function<'js>>>, clears: bool) -> Self {
        Self { functions, clears, gaps: false, left: LARGEST }
    }

    fn takes(&mut self, bytes: usize) -> std::result::Result<(), ConvertError> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => refuse(TOO_LARGE).map(drop)?,
        }
        Ok(())
    }

    /// Reads a value; nothing for `undefined`.
    ///
    /// # Errors
    /// It is not JSON, or looking at it throws.
    pub(crate) fn read(&mut self, value: &Value<'js>) -> Converted {
        self.at_depth(value, 0)
    }

    fn at_depth(&mut self, value: &Value<'js>, depth: usize) -> Converted {
        if depth > DEEPEST {
            let what = format!("a value is nested more than {DEEPEST} deep, or contains itself");
            return refuse(what);
        }
        self.takes(VALUE)?;
        if value.is_null() {
            return Ok(Some(Json::Null));
        }
        if let Some(value) = value.as_bool() {
            return Ok(Some(Json::Bool(value)));
        }
        if let Some(number) = value.as_int() {
            return Ok(Some(number.into()));
        }
        if let Some(number) = value.as_float() {
            return read_number(number);
        }
        if let Some(string) = value.as_string() {
            let text = text(string)?;
            self.takes(text.len())?;
            return Ok(Some(Json::String(text)));
        }
        if value.is_undefined() {
            return Ok(None);
        }
        if value.is_symbol() {
            return refuse("a Symbol cannot be kept; use a string");
        }
        if value.is_big_int() {
            return refuse("a BigInt cannot be kept; use a number or a string");
        }
        if let Some(function) = value.as_function() {
            return self.function(function);
        }
        if value.is_promise() {
            return refuse("a Promise is not a value; is an `await` missing?");
        }
        if let Some(array) = value.as_array() {
            return self.array(array, depth);
        }
        match value.as_object() {
            Some(object) => self.object(object, depth),
            None => Ok(None),
        }
    }

    fn function(&mut self, function: &Function<'js>) -> Converted {
        let Some(functions) = self.functions.as_deref_mut() else {
            return refuse("a function cannot be kept");
        };
        functions.push(function.clone());
        let mut found = Map::new();
        found.insert("$fn".to_owned(), (functions.len() - 1).into());
        if let Some(native) = function.get::<_, Option<String>>("__native")? {
            found.insert("native".to_owned(), native.into());
        }
        let args = function.get::<_, Value<'js>>("__args")?;
        if let Some(args) = self.at_depth(&args, 1)? {
            found.insert("args".to_owned(), args);
        }
        Ok(Some(Json::Object(found)))
    }

    fn array(&mut self, array: &Array<'js>, depth: usize) -> Converted {
        if array.len() > self.left / VALUE {
            return refuse(TOO_LARGE);
        }
        let mut list = Vec::with_capacity(array.len().min(1024));
        for (index, one) in array.iter::<Value<'js>>().enumerate() {
            let read = match self.at_depth(&one?, depth + 1) {
                Ok(None) if !self.gaps => refuse(GAP),
                read => read,
            };
            let read = read.map_err(|e| e.below(|| format!("[{index}]")))?;
            list.push(read.unwrap_or(Json::Null));
        }
        Ok(Some(Json::Array(list)))
    }

    fn object(&mut self, object: &Object<'js>, depth: usize) -> Converted {
        if object.is_error() {
            return Ok(Some(read_error(object)));
        }
        if let Some(to_json) = object.get::<_, Value<'js>>(PredefinedAtom::ToJSON)?.as_function() {
            if class_of(object)?.as_deref() == Some("Date") {
                return refuse("a Date cannot be kept; use toISOString() or getTime()");
            }
            let other: Value<'js> = to_json.call((This(object.clone()),))?;
            return self.at_depth(&other, depth + 1);
        }
        let mut map = Map::new();
        for property in object.props::<String, Value<'js>>() {
            let (key, one) = property?;
            self.takes(key.len())?;
            let read = self.at_depth(&one, depth + 1);
            match read.map_err(|e| e.below(|| format!(".{key}")))? {
                Some(read) => drop(map.insert(key, read)),
                None if self.clears && depth == 0 => drop(map.insert(key, Json::Null)),
                None => {}
            }
        }
        // Of a typed array the places are keys.
        if (map.is_empty() || map.contains_key("0"))
            && let Some(class) = class_without_json(object)?
        {
            return refuse(format!("a {class} cannot be kept; use an object or a list"));
        }
        Ok(Some(Json::Object(map)))
    }
}

fn refuse(what: impl Into<String>) -> Converted {
    Err(ConvertError::NotJson(what.into(), Vec::new()))
}

fn read_number(number: f64) -> Converted {
    // -2^63, 2^63 and 2^64: a whole number between them is one in JSON, and so in a text that is
    // filled with it.
    const LEAST: f64 = i64::MIN as f64;
    const SIGNED: f64 = -LEAST;
    const UNSIGNED: f64 = 2.0 * SIGNED;
    if number.fract() == 0.0 && (LEAST..SIGNED).contains(&number) {
        return Ok(Some((number as i64).into()));
    }
    if number.fract() == 0.0 && (SIGNED..UNSIGNED).contains(&number) {
        return Ok(Some((number as u64).into()));
    }
    match Number::from_f64(number) {
        Some(number) => Ok(Some(Json::Number(number))),
        None if number.is_nan() => refuse("NaN cannot be kept; use a number or null"),
        None => refuse("Infinity cannot be kept; use a number or null"),
    }
}

/// What it says is not enumerable, so it would be `{}`.
fn read_error(error: &Object<'_>) -> Json {
    let part = |key: &str| error.get::<_, Option<String>>(key).ok().flatten();
    let mut map = Map::new();
    for key in ["name", "message", "code"] {
        if let Some(text) = part(key) {
            map.insert(key.to_owned(), text.into());
        }
    }
    Json::Object(map)
}

/// Things that would silently become `{}`.
fn class_without_json(object: &Object<'_>) -> Result<Option<String>> {
    const CLASSES: &[&str] = &[
        "Map",
        "Set",
        "WeakMap",
        "WeakSet",
        "WeakRef",
        "RegExp",
        "ArrayBuffer",
        "DataView",
        "SharedArrayBuffer",
    ];
    let is_typed_array = |name: &str| {
        name.strip_suffix("Array").is_some_and(|kind| kind.ends_with(|c: char| c.is_ascii_digit()))
            || name == "Uint8ClampedArray"
    };
    let is_lost = |name: &String| CLASSES.contains(&name.as_str()) || is_typed_array(name);
    Ok(class_of(object)?.filter(is_lost))
}

/// The name of an object's class.
fn class_of(object: &Object<'_>) -> Result<Option<String>> {
    let Some(class) = object.get::<_, Value<'_>>("constructor")?.into_object() else {
        return Ok(None);
    };
    let name = class.get::<_, Value<'_>>("name")?;
    name.as_string().map(text).transpose()
}
