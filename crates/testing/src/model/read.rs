//! Reading scripts.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::time::Duration;

use hyper::header::{HeaderName, HeaderValue};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
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
    let mismatch = message.strip_prefix("invalid type: ");
    if let Some(rest) = mismatch.or_else(|| message.strip_prefix("invalid value: "))
        && let Some((found, expected)) = rest.split_once(", expected ")
    {
        return format!("this is {}; write {} instead", in_words(found), kind(expected));
    }
    if message.starts_with("duplicate key") {
        return "this key is given twice; remove one of them".to_owned();
    }
    if message.contains(';') {
        return message.to_owned();
    }
    format!("this is not TOML: {}; correct it", message.replace('\n', ", "))
}

/// What was found, as part of a sentence.
fn in_words(found: &str) -> String {
    match found.split_once(' ') {
        Some(("integer" | "float", value)) => format!("the number {}", value.trim_matches('`')),
        Some(("string", value)) => format!("the text {value}"),
        Some(("boolean", value)) => value.to_owned(),
        _ if found == "map" => "a table".to_owned(),
        _ if found == "sequence" => "a list".to_owned(),
        _ => found.to_owned(),
    }
}

/// What is wanted, as part of a sentence.
fn kind(expected: &str) -> String {
    match expected {
        "a sequence" => "a list, `[…]`,".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "u16" | "u64" | "usize" => "a whole number, not negative,".to_owned(),
        _ if expected.starts_with("struct ") => "a table, `{ … }`,".to_owned(),
        _ => expected.to_owned(),
    }
}

/// Reads a table and checks it while the reader still knows where it is.
fn checked<'de, D, R, T>(reader: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    R: Deserialize<'de>,
    T: TryFrom<R, Error = &'static str>,
{
    struct Checked<R, T>(PhantomData<(R, T)>);

    impl<'de, R, T> Visitor<'de> for Checked<R, T>
    where
        R: Deserialize<'de>,
        T: TryFrom<R, Error = &'static str>,
    {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table, `{ … }`,")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            R::deserialize(MapAccessDeserializer::new(map))?.try_into().map_err(A::Error::custom)
        }
    }

    reader.deserialize_map(Checked(PhantomData))
}

impl<'de> Deserialize<'de> for Reply {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        checked::<D, RawReply, Self>(reader)
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        checked::<D, RawAction, Self>(reader)
    }
}

impl<'de> Deserialize<'de> for ApiError {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        checked::<D, RawError, Self>(reader)
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
#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RawReply {
    r#do: Vec<Action>,
    stop: Option<String>,
    usage: Usage,
    delay_ms: u64,
    chunk: Option<usize>,
    pause_ms: u64,
    headers: BTreeMap<String, String>,
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
        if raw.headers.iter().any(|(name, value)| !is_header(name, value)) {
            return Err("a header has a name or a value that HTTP does not allow; correct it");
        }
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
            headers: raw.headers,
            ending,
        })
    }
}

fn is_header(name: &str, value: &str) -> bool {
    HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok()
}

/// One entry of `do`, as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAction {
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
struct RawError {
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
