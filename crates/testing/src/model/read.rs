//! Reading scripts.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::de::{Deserialize as _, Deserializer, Error as _};
use serde_json::Value;

use super::script::{Action, ApiError, Break, Ending, Reply, Script, Usage};

/// What is wrong with a script, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The problem and its remedy.
    pub problem: String,
}

impl Script {
    /// Reads a script from TOML.
    ///
    /// # Errors
    /// When it is not TOML, or not a script: the place, what is wrong, and the remedy.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let (line, column) = position(text, offset);
            ScriptError { line, column, problem: plain(error.message()) }
        })
    }
}

/// The line and the column of a byte, both from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before.get(start..).unwrap_or_default().chars().count() + 1)
}

/// The reader's message in the words of somebody who writes scripts, with a remedy.
fn plain(message: &str) -> String {
    let message = message.trim();
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return match rest.split_once(", expected ") {
            Some((name, known)) => {
                let known = known.trim_start_matches("one of ");
                format!("there is no key {name} here; use {known}, or remove it")
            }
            None => format!("there is no key {rest} here; remove it"),
        };
    }
    if let Some(rest) = message.strip_prefix("unknown variant ")
        && let Some((name, known)) = rest.split_once(", expected ")
    {
        let known = known.trim_start_matches("one of ");
        return format!("{name} is not known here; use one of {known}");
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return format!("the key {name} is missing; add it");
    }
    if let Some(rest) = message.strip_prefix("invalid type: ")
        && let Some((found, expected)) = rest.split_once(", expected ")
    {
        return format!("this is {}; write {} instead", article(found), kind(expected));
    }
    if let Some(rest) = message.strip_prefix("duplicate key") {
        return format!("the key{rest} is given twice; remove one of them");
    }
    if message.contains(';') {
        return message.to_owned();
    }
    format!("this is not TOML: {}; correct it", message.replace('\n', ", "))
}

/// What was found, as part of a sentence.
fn article(found: &str) -> String {
    match found.split_once(' ') {
        Some(("integer" | "floating" | "offset", _)) => format!("the number or date {found}"),
        Some((word, value)) => format!("the {word} {value}"),
        None if found == "map" => "a table".to_owned(),
        None if found == "sequence" => "a list".to_owned(),
        None => format!("a {found}"),
    }
}

/// What is wanted, as part of a sentence.
fn kind(expected: &str) -> String {
    match expected {
        "a sequence" => "a list, `[…]`".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        _ if expected.starts_with('u') || expected.starts_with("a nonzero") => {
            "a whole number".to_owned()
        }
        _ if expected.starts_with("struct ") => "a table, `{ … }`".to_owned(),
        _ => expected.to_owned(),
    }
}

/// The replies of a turn: at least one.
pub(super) fn replies<'de, D: Deserializer<'de>>(reader: D) -> Result<Vec<Reply>, D::Error> {
    let replies = Vec::<Reply>::deserialize(reader)?;
    if replies.is_empty() {
        return Err(D::Error::custom("the turn has no reply; add a `[[turn.reply]]`"));
    }
    Ok(replies)
}

/// One `[[turn.reply]]`, as it is written.
#[derive(serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
pub(super) struct RawReply {
    r#do: Vec<Action>,
    stop: Option<String>,
    usage: Usage,
    delay_ms: u64,
    chunk: Option<usize>,
    pause_ms: u64,
    hang: bool,
    error: Option<ApiError>,
    broken: Option<Break>,
}

impl TryFrom<RawReply> for Reply {
    type Error = &'static str;

    fn try_from(raw: RawReply) -> Result<Self, &'static str> {
        let is_empty = raw.r#do.is_empty() && raw.stop.is_none();
        let ending = match (raw.hang, raw.error, raw.broken) {
            (false, None, None) if is_empty => {
                return Err("the reply is empty; add `do`, `stop`, `error`, `broken` or `hang`");
            }
            (false, None, None) => Ending::Finish,
            (true, None, None) => Ending::Hang,
            (false, Some(_), None) if !is_empty => {
                return Err("a reply with `error` says nothing; remove its `do` and `stop`");
            }
            (false, Some(error), None) => Ending::Error(error),
            (false, None, Some(how)) => Ending::Broken(how),
            _ => return Err("`hang`, `error` and `broken` exclude each other; keep one of them"),
        };
        let chunk = raw.chunk.map(|size| {
            NonZeroUsize::new(size).ok_or("`chunk` is 0; give the characters of a piece")
        });
        Ok(Self {
            actions: raw.r#do,
            stop: raw.stop,
            usage: raw.usage,
            delay: Duration::from_millis(raw.delay_ms),
            chunk: chunk.transpose()?,
            pause: Duration::from_millis(raw.pause_ms),
            ending,
        })
    }
}

/// One entry of `do`, as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAction {
    say: Option<String>,
    think: Option<String>,
    call: Option<RawCall>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    tool: String,
    #[serde(default = "nothing")]
    input: Value,
}

/// What a tool without parameters is called with.
fn nothing() -> Value {
    Value::Object(serde_json::Map::new())
}

impl TryFrom<RawAction> for Action {
    type Error = &'static str;

    fn try_from(raw: RawAction) -> Result<Self, &'static str> {
        match (raw.say, raw.think, raw.call) {
            (Some(text), None, None) => Ok(Self::Say(text)),
            (None, Some(text), None) => Ok(Self::Think(text)),
            (None, None, Some(RawCall { tool, input })) if input.is_object() => {
                Ok(Self::Call { tool, input })
            }
            (None, None, Some(_)) => {
                Err("the `input` of a call is a table; write `input = { key = … }`")
            }
            (None, None, None) => Err("an entry of `do` is empty; write `say`, `think` or `call`"),
            _ => Err("an entry of `do` does several things; give each its own entry"),
        }
    }
}

/// An `error`, as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawError {
    status: u16,
    kind: Option<String>,
    message: Option<String>,
    retry_after: Option<u64>,
}

impl TryFrom<RawError> for ApiError {
    type Error = &'static str;

    fn try_from(raw: RawError) -> Result<Self, &'static str> {
        let RawError { status, kind, message, retry_after } = raw;
        if !(400..600).contains(&status) {
            return Err("the `status` of an error is not from 400 to 599; use 429, say");
        }
        Ok(Self { status, kind, message, retry_after })
    }
}
