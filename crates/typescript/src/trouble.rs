//! What went wrong while something ran, in words and places of the TypeScript file.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use rquickjs::{CaughtError, Ctx, Error, Object, Value};

use crate::bundle::Bundle;
use crate::convert;
use crate::fault::{Fault, Place};
use crate::text;
use crate::tree::calls;
use crate::tree::places::Step;

/// Who is to blame, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TroubleKind {
    /// The file threw something.
    Thrown,
    /// It did not come to an end; all that was under way in the worker has ended with it.
    Interrupted,
    /// It wanted more memory than it may have.
    Memory,
    /// It called itself too deeply.
    Stack,
    /// A promise was given where nobody can wait for one.
    Pending,
    /// It, or the caller, did something that is not allowed here.
    Refused,
    /// It has ended with something else: the worker, or another that did not come to an end.
    Gone,
}

/// A function that was running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its name.
    pub function: String,
    /// Where in the file.
    pub at: Place,
}

/// What went wrong while something ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Who is to blame.
    pub kind: TroubleKind,
    /// The name of the error, such as `TypeError`.
    pub name: Box<str>,
    /// What it says.
    pub message: String,
    /// The `code` of the error, if it has one.
    pub code: Option<Box<str>>,
    /// What was running, the innermost first; only files of the user.
    pub frames: Box<[Frame]>,
    /// The lines around the first frame; empty if there is none.
    pub frame: Box<str>,
    /// What it was caused by.
    pub cause: Option<Box<Self>>,
    /// What it is about.
    pub about: Box<About>,
}

/// What trouble is about, besides a place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// The way to the part of a value, if it is about a value.
    pub path: Vec<Step>,
    /// The keys of the calls of a script whose failures it is, or was made of.
    pub calls: Vec<String>,
}

impl Trouble {
    /// Trouble that no file has thrown.
    pub(crate) fn new(kind: TroubleKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            name: "Error".into(),
            message: message.into(),
            code: None,
            frames: Box::default(),
            frame: Box::default(),
            cause: None,
            about: Box::default(),
        }
    }

    /// Where it happened, if it happened in a file of the user.
    #[must_use]
    pub fn at(&self) -> Option<&Place> {
        self.frames.first().map(|frame| &frame.at)
    }

    /// The same as a fault of the file, for what happens while it is loaded.
    #[must_use]
    pub fn into_fault(self, entry: &Path) -> Fault {
        let code = match self.kind {
            TroubleKind::Interrupted | TroubleKind::Memory | TroubleKind::Stack => "ATM714",
            TroubleKind::Thrown
            | TroubleKind::Pending
            | TroubleKind::Refused
            | TroubleKind::Gone => "ATM713",
        };
        let own = self.code.clone().filter(|code| code.starts_with("ATM"));
        let message = match own {
            Some(_) => self.message.clone(),
            None => self.headline(),
        };
        let mut fault = Fault::about(code, entry, message);
        if let Some(own) = own {
            fault.code = Cow::Owned(own.into());
        }
        if let Some(place) = self.at() {
            fault.at = place.clone();
        }
        fault.help = self.cause.map(|cause| format!("caused by {}", cause.headline()));
        fault.frame = self.frame.into();
        fault
    }

    /// Name and message in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        match (self.kind, &*self.name) {
            (TroubleKind::Thrown | TroubleKind::Stack, name) if !name.is_empty() => {
                format!("{name}: {}", self.message)
            }
            _ => self.message.clone(),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.headline())?;
        for frame in &self.frames {
            write!(f, "\n    at {} ({})", frame.function, frame.at)?;
        }
        if !self.frame.is_empty() {
            write!(f, "\n{}", self.frame)?;
        }
        if let Some(cause) = &self.cause {
            write!(f, "\ncaused by {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Trouble {}

/// `    at name (file:line:column)` or `    at file:line:column`. Modules of the SDK have no places,
/// only names.
fn parse_frame(line: &str) -> Option<(&str, &str, u32, u32)> {
    let line = line.trim().strip_prefix("at ")?;
    // Files have absolute paths, in which there may be brackets, too.
    let (function, place) = match line.find(" (/").or_else(|| line.rfind(" (")) {
        Some(at) if line.ends_with(')') => (&line[..at], &line[at + 2..line.len() - 1]),
        _ => ("<module>", line),
    };
    if place == "<null>" {
        return Some((function, "", 0, 0));
    }
    let (rest, column) = place.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some((function, file, line.parse().ok()?, column.parse().ok()?))
}

/// The frames of a stack that are in files of the bundle, in their own places.
pub(crate) fn frames(bundle: &Bundle, stack: &str) -> impl Iterator<Item = Frame> {
    let mut called: Option<&str> = None;
    stack.lines().filter_map(parse_frame).filter_map(move |(function, file, line, column)| {
        let name = called.replace(function);
        let source = bundle.source(Path::new(file))?;
        let module = source.module.as_ref()?;
        let (line, column) =
            module.map.original(&source.text, line, column).unwrap_or((line, column));
        let exact =
            name.and_then(|name| calls::refine(&module.calls, &source.text, (line, column), name));
        let (line, column) = exact.unwrap_or((line, column));
        let at = Place { file: PathBuf::from(file), line, column };
        Some(Frame { function: function.to_owned(), at })
    })
}

/// Causes of causes of causes help nobody, and may go round.
const DEEPEST_CAUSE: u8 = 4;

/// Nobody reads more of a message, and it is kept in the journal.
const LONGEST_MESSAGE: usize = 8 << 10;
/// The same for names and codes.
const LONGEST_NAME: usize = 200;

/// What was thrown.
pub(crate) fn from_value<'js>(ctx: &Ctx<'js>, bundle: &Bundle, value: &Value<'js>) -> Trouble {
    at_depth(ctx, bundle, value, 0)
}

fn at_depth<'js>(ctx: &Ctx<'js>, bundle: &Bundle, value: &Value<'js>, depth: u8) -> Trouble {
    if value.is_null() {
        // That is what the engine throws when there is no room for an error.
        // A file can do so too, and when it is seen there is memory again.
        let message = "null was thrown: by the file itself, or because there was no memory left";
        return Trouble::new(TroubleKind::Memory, message);
    }
    let Some(error) = value.as_object().filter(|object| object.is_error()) else {
        let mut trouble =
            Trouble::new(TroubleKind::Thrown, text::cut(describe(ctx, value), LONGEST_MESSAGE));
        trouble.name = "Thrown".into();
        return trouble;
    };
    let part = |key: &str| {
        let value = error.get::<_, Value<'js>>(key).ok()?;
        value.as_string().and_then(|text| convert::text(text).ok())
    };
    let short = |key: &str| part(key).map(|text| text::cut(text, LONGEST_NAME));
    let name = short("name").unwrap_or_else(|| "Error".to_owned());
    let message = text::cut(part("message").unwrap_or_default(), LONGEST_MESSAGE);
    let mut trouble = Trouble::new(kind_of(&name, &message), message);
    trouble.name = name.into();
    trouble.code = short("code").map(Into::into);
    let mut all = frames(bundle, &part("stack").unwrap_or_default()).collect::<Vec<_>>();
    if let Some(frame) = own_place(error) {
        all.insert(0, frame);
    }
    trouble.frames = all.into();
    if depth == 0 {
        trouble.about.calls = failed_calls(value);
    }
    let _ = ctx.catch();
    trouble.frame = code_frame(bundle, &trouble);
    if depth < DEEPEST_CAUSE
        && let Some(cause) = cause(error)
    {
        trouble.cause = Some(Box::new(at_depth(ctx, bundle, &cause, depth + 1)));
    }
    trouble
}

/// Something that is no error.
fn describe<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    if let Some(text) = value.as_string() {
        return convert::text(text).unwrap_or_default();
    }
    let json = ctx.json_stringify(value.clone()).ok().flatten();
    let json = json.and_then(|json| convert::text(&json).ok());
    let _ = ctx.catch();
    json.unwrap_or_else(|| value.type_name().to_owned())
}

fn kind_of(name: &str, message: &str) -> TroubleKind {
    match (name, message) {
        ("InternalError", "out of memory") => TroubleKind::Memory,
        ("RangeError", "Maximum call stack size exceeded") => TroubleKind::Stack,
        _ => TroubleKind::Thrown,
    }
}

/// `$at`, by which the SDK says where a mistake is when its stack does not.
fn own_place(error: &Object<'_>) -> Option<Frame> {
    let (file, line, column) = {
        let at = error.get::<_, Value<'_>>("$at").ok()?.into_array()?;
        (at.get::<String>(0).ok()?, at.get::<u32>(1).ok()?, at.get::<u32>(2).ok()?)
    };
    let at = Place { file: PathBuf::from(file), line, column };
    Some(Frame { function: "<module>".to_owned(), at })
}

fn cause<'js>(error: &Object<'js>) -> Option<Value<'js>> {
    let given = error.get::<_, Value<'js>>("cause").ok()?;
    if !given.is_undefined() {
        return Some(given);
    }
    // Of `Promise.any`.
    error.get::<_, Value<'js>>("errors").ok()?.into_array()?.get(0).ok()
}

/// How many errors are looked at for what an error was made of.
const MOST_ERRORS: usize = 1000;

/// The calls whose failures an error is: its own, or those of what it was made of. Causes may go
/// round.
fn failed_calls(value: &Value<'_>) -> Vec<String> {
    let mut calls = BTreeSet::new();
    let mut left = VecDeque::from([value.clone()]);
    let mut seen = 0;
    while let Some(value) = left.pop_front().filter(|_| seen < MOST_ERRORS) {
        seen += 1;
        let Some(error) = value.as_object() else { continue };
        let part = |key: &str| error.get::<_, Value<'_>>(key).ok();
        if let Some(own) = part("$call").as_ref().and_then(Value::as_string) {
            calls.extend(convert::text(own).ok());
            continue;
        }
        left.extend(part("cause"));
        if let Some(several) = part("errors").and_then(Value::into_array) {
            left.extend(several.iter().take(MOST_ERRORS).flatten());
        }
    }
    calls.into_iter().collect()
}

pub(crate) fn code_frame(bundle: &Bundle, trouble: &Trouble) -> Box<str> {
    let Some(at) = trouble.at() else { return Box::default() };
    let Some(source) = bundle.text(&at.file) else { return Box::default() };
    let length = text::word_length(source, at.line, at.column);
    text::frame(source, at.line, at.column, length).into()
}

/// What the engine has caught.
pub(crate) fn from_error<'js>(ctx: &Ctx<'js>, bundle: &Bundle, error: Error) -> Trouble {
    match CaughtError::from_error(ctx, error) {
        CaughtError::Exception(exception) => {
            from_value(ctx, bundle, exception.as_object().as_value())
        }
        CaughtError::Value(value) => from_value(ctx, bundle, &value),
        CaughtError::Error(error) => Trouble::new(TroubleKind::Thrown, error.to_string()),
    }
}
