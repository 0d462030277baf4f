//! JSON that knows where everything stands: serde reads it, and one pass over the text finds the
//! places.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A value and where it begins.
#[derive(Debug)]
pub(super) struct Item {
    /// The byte it begins at.
    pub(super) at: usize,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Item>),
    Object(Vec<Entry>),
}

/// One key of an object and what it says. A key may come up more than once.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) at: usize,
    pub(super) key: String,
    pub(super) item: Item,
}

/// Why a text is not JSON, and at which byte.
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) message: String,
    /// Whether it may be JSON, but has more nesting than is read.
    pub(super) is_too_deep: bool,
}

/// Reads a text. Nesting is limited by serde, so nothing that walks the result runs out of stack.
pub(super) fn parse(text: &str) -> Result<Item, SyntaxError> {
    let mut root: Item = serde_json::from_str(text).map_err(|error| syntax_error(text, &error))?;
    place(&mut root, &mut beginnings(text));
    Ok(root)
}

fn syntax_error(text: &str, error: &serde_json::Error) -> SyntaxError {
    let before = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
    let at = before.sum::<usize>() + error.column().saturating_sub(1);
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let message = message[..end].to_owned();
    let is_too_deep = message == "recursion limit exceeded";
    SyntaxError { at: at.min(text.len()), message, is_too_deep }
}

/// Where every key and value begins, in the order of the text, which is known to be JSON.
fn beginnings(text: &str) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while matches!(bytes.get(at)?, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'}' | b']') {
            at += 1;
        }
        let start = at;
        at += match bytes[at] {
            b'{' | b'[' => 1,
            b'"' => text_length(&bytes[at..]),
            _ => bytes[at..]
                .iter()
                .take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
                .count()
                .max(1),
        };
        Some(start)
    })
}

/// The length of the text that `bytes` begins with, with its quotes.
fn text_length(bytes: &[u8]) -> usize {
    let mut escaped = true;
    let end = bytes.iter().position(|byte| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    });
    end.map_or(bytes.len(), |end| end + 1)
}

/// Gives every value its place; keys and values come in the order of the text.
fn place(item: &mut Item, beginnings: &mut impl Iterator<Item = usize>) {
    item.at = beginnings.next().unwrap_or_default();
    match &mut item.body {
        Body::List(items) => items.iter_mut().for_each(|item| place(item, beginnings)),
        Body::Object(entries) => {
            for entry in entries {
                entry.at = beginnings.next().unwrap_or_default();
                place(&mut entry.item, beginnings);
            }
        }
        Body::Null | Body::Bool(_) | Body::Number(_) | Body::Text(_) => {}
    }
}

impl Item {
    /// What it is, for a sentence.
    pub(super) fn kind(&self) -> &'static str {
        match &self.body {
            Body::Null => "null",
            Body::Bool(_) => "a boolean",
            Body::Number(_) => "a number",
            Body::Text(_) => "a text",
            Body::List(_) => "a list",
            Body::Object(entries) if entries.iter().any(|entry| entry.key == "$fn") => "a function",
            Body::Object(_) => "an object",
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Body::Text(text) = &self.body { Some(text) } else { None }
    }

    pub(super) fn as_list(&self) -> Option<&[Self]> {
        if let Body::List(items) = &self.body { Some(items) } else { None }
    }

    pub(super) fn as_object(&self) -> Option<&[Entry]> {
        if let Body::Object(entries) = &self.body { Some(entries) } else { None }
    }

    /// The value of a key, if this is an object that has it.
    pub(super) fn find(&self, key: &str) -> Option<&Self> {
        self.as_object()?.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    /// How many lists and objects are inside each other.
    pub(super) fn depth(&self) -> usize {
        match &self.body {
            Body::Null | Body::Bool(_) | Body::Number(_) | Body::Text(_) => 0,
            Body::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Body::Object(entries) => {
                1 + entries.iter().map(|entry| entry.item.depth()).max().unwrap_or(0)
            }
        }
    }

    /// The value without its places.
    pub(super) fn to_value(&self) -> Value {
        match &self.body {
            Body::Null => Value::Null,
            Body::Bool(flag) => Value::Bool(*flag),
            Body::Number(number) => Value::Number(number.clone()),
            Body::Text(text) => Value::String(text.clone()),
            Body::List(items) => items.iter().map(Self::to_value).collect(),
            Body::Object(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.item.to_value())).collect()
            }
        }
    }

    /// The way from here to what begins at `at`: `nodes[2].retry`.
    pub(super) fn way_to(&self, at: usize) -> String {
        let mut way = String::new();
        let mut item = self;
        while item.at != at {
            match &item.body {
                Body::List(items) => {
                    let next = items.partition_point(|inner| inner.at <= at);
                    let Some(number) = next.checked_sub(1) else { break };
                    way.push_str(&format!("[{number}]"));
                    item = &items[number];
                }
                Body::Object(entries) => {
                    let next = entries.partition_point(|entry| entry.at <= at);
                    let Some(entry) = next.checked_sub(1).map(|number| &entries[number]) else {
                        break;
                    };
                    if !way.is_empty() {
                        way.push('.');
                    }
                    way.push_str(&entry.key);
                    if entry.at == at {
                        break;
                    }
                    item = &entry.item;
                }
                Body::Null | Body::Bool(_) | Body::Number(_) | Body::Text(_) => break,
            }
        }
        way
    }
}

/// Turns bytes of a text into lines and columns, quickly also where one line is all there is.
pub(super) struct Ruler<'t> {
    text: &'t str,
    /// Where the lines begin.
    lines: Vec<usize>,
    /// How many characters there are before each block.
    blocks: Vec<usize>,
}

const BLOCK: usize = 1024;

impl<'t> Ruler<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        let chunks = text.as_bytes().chunks(BLOCK).map(characters);
        let sums = chunks.scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Self { text, lines, blocks: std::iter::once(0).chain(sums).collect() }
    }

    /// The line and column of a byte, both from 1.
    pub(super) fn position(&self, at: usize) -> (u32, u32) {
        let line = self.lines.partition_point(|begin| *begin <= at).max(1);
        let column = self.characters_before(at) - self.characters_before(self.lines[line - 1]) + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }

    fn characters_before(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        let block = at / BLOCK;
        self.blocks[block] + characters(&self.text.as_bytes()[block * BLOCK..at])
    }
}

/// Counts the bytes that begin a character.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = deserializer.deserialize_any(BodyVisitor)?;
        Ok(Self { at: 0, body })
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Body, E> {
        Ok(Body::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Body, E> {
        Ok(Body::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Body, E> {
        Ok(Body::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Body, E> {
        Ok(Body::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Body, E> {
        Ok(Number::from_f64(number).map_or(Body::Null, Body::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Body, E> {
        Ok(Body::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Body, E> {
        Ok(Body::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Body, A::Error> {
        let mut items = vec![];
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Body::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
        let mut entries = vec![];
        while let Some((key, item)) = map.next_entry()? {
            entries.push(Entry { at: 0, key, item });
        }
        Ok(Body::Object(entries))
    }
}
