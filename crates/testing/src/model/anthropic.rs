//! The Messages API of Anthropic.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::{Answer, End, Piece};
use super::asked::{Asked, Said, list_at, text_at};
use super::dialect::{Dialect, Spoken};
use super::script::{Action, ApiError, Break, Ending};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// Programs hand it back and never look into it.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

/// The dialect.
pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn converses(&self, method: &Method, path: &str) -> bool {
        method == Method::POST && path.ends_with("/v1/messages")
    }

    fn aside(&self, method: &Method, path: &str, size: usize) -> Option<Answer> {
        let value = match method.as_str() {
            "POST" if path.ends_with("/v1/messages/count_tokens") => {
                json!({ "input_tokens": tokens(size) })
            }
            "HEAD" => Value::Null,
            "GET" if matches!(path, "/" | "/api/hello") => json!({}),
            _ => return None,
        };
        Some(with_id(Answer::whole(200, JSON, value.to_string())))
    }

    fn read<'a>(&self, body: &'a Value, size: usize) -> Asked<'a> {
        let mut system = texts_of(body.get("system"));
        let mut messages = Vec::new();
        for message in list_at(body, "messages") {
            let content = message.get("content");
            match text_at(message, "role") {
                "system" => system.extend(texts_of(content)),
                role => messages.push(Said {
                    by_model: role == "assistant",
                    texts: texts_of(content),
                    results: results_of(content),
                }),
            }
        }
        Asked {
            model: text_at(body, "model"),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
            system,
            tools: list_at(body, "tools").iter().map(|tool| text_at(tool, "name")).collect(),
            messages,
            size,
        }
    }

    fn write(&self, spoken: &Spoken<'_>, asked: &Asked<'_>) -> Answer {
        let message = Message::new(spoken, asked);
        let answer = match (&spoken.reply.ending, asked.stream) {
            (Ending::Broken(how), stream) => message.broken(*how, stream),
            (Ending::Hang, true) => message.stream(Upto::BeforeTheEnd, End::Hang),
            (Ending::Hang, false) => Answer { end: End::Hang, ..half(&message.whole()) },
            (Ending::Finish | Ending::Error(_), true) => message.stream(Upto::End, End::Finish),
            (Ending::Finish | Ending::Error(_), false) => {
                Answer::whole(200, JSON, message.whole().to_string())
            }
        };
        with_id(answer)
    }

    fn refuse(&self, error: &ApiError) -> Answer {
        let kind = error.kind.as_deref().unwrap_or_else(|| kind_of(error.status));
        let said = error.message.clone();
        let said = said.unwrap_or_else(|| format!("The script answers with {}.", error.status));
        let body = json!({ "type": "error", "error": { "type": kind, "message": said } });
        let mut answer = with_id(Answer::whole(error.status, JSON, body.to_string()));
        if let Some(seconds) = error.retry_after {
            answer.headers.push(("retry-after", seconds.to_string()));
        }
        answer
    }
}

/// Anthropic's word for a status.
fn kind_of(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

/// How many tokens so many bytes may be.
fn tokens(size: usize) -> u64 {
    (size as u64 / 4).max(1)
}

fn new_id(kind: &str) -> String {
    format!("{kind}_{}", Uuid::new_v4().simple())
}

fn with_id(mut answer: Answer) -> Answer {
    answer.headers.push(("request-id", new_id("req")));
    answer
}

/// The texts of a content, which is a text or a list of blocks.
fn texts_of(content: Option<&Value>) -> Vec<&str> {
    let of_block = |block: &'_ Value| text_at(block, "type") == "text";
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(blocks)) => {
            blocks.iter().filter(|block| of_block(block)).map(|b| text_at(b, "text")).collect()
        }
        _ => Vec::new(),
    }
}

/// The texts of the results of tools in a content.
fn results_of(content: Option<&Value>) -> Vec<&str> {
    let blocks = content.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let results = blocks.iter().filter(|block| text_at(block, "type") == "tool_result");
    results.flat_map(|block| texts_of(block.get("content"))).collect()
}

/// How much of a stream is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Upto {
    End,
    BeforeTheEnd,
    Middle,
}

/// A reply on its way into the format.
struct Message<'a> {
    id: String,
    model: &'a str,
    /// What is in it, with the text that is streamed.
    blocks: Vec<(Value, String)>,
    stop: String,
    usage: Value,
    chunk: usize,
    pause: Duration,
}

impl<'a> Message<'a> {
    fn new(spoken: &Spoken<'_>, asked: &Asked<'a>) -> Self {
        let reply = &spoken.reply;
        let blocks: Vec<_> = spoken.parts.iter().map(block_of).collect();
        let calls = spoken.parts.iter().any(|part| matches!(part, Action::Call { .. }));
        let stop = if calls { "tool_use" } else { "end_turn" };
        let written = blocks.iter().map(|(_, text)| text.len()).sum();
        let usage = json!({
            "input_tokens": reply.usage.input.unwrap_or_else(|| tokens(asked.size)),
            "cache_creation_input_tokens": reply.usage.cache_write.unwrap_or(0),
            "cache_read_input_tokens": reply.usage.cache_read.unwrap_or(0),
            "output_tokens": reply.usage.output.unwrap_or_else(|| tokens(written)),
            "service_tier": "standard",
        });
        Self {
            id: new_id("msg"),
            model: asked.model,
            blocks,
            stop: reply.stop.clone().unwrap_or_else(|| stop.to_owned()),
            usage,
            chunk: reply.chunk.map_or(usize::MAX, usize::from),
            pause: reply.pause,
        }
    }

    /// The message around some content.
    fn around(&self, content: &Value, stop: &Value, usage: &Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": null,
            "usage": usage,
        })
    }

    /// The message as it is sent when it is not streamed.
    fn whole(&self) -> Value {
        let content = self.blocks.iter().map(|(block, _)| block.clone()).collect();
        self.around(&content, &json!(self.stop), &self.usage)
    }

    /// The message as a stream.
    fn stream(&self, upto: Upto, end: End) -> Answer {
        let mut events = Events::default();
        let mut usage = self.usage.clone();
        usage["output_tokens"] = json!(1);
        let message = self.around(&json!([]), &Value::Null, &usage);
        events.add("message_start", json!({ "message": message }));
        for (index, (block, text)) in self.blocks.iter().enumerate() {
            self.stream_block(&mut events, index, block, text);
        }
        match upto {
            Upto::End => {
                let delta = json!({ "stop_reason": self.stop, "stop_sequence": null });
                let usage = json!({ "output_tokens": self.usage["output_tokens"] });
                events.add("message_delta", json!({ "delta": delta, "usage": usage }));
                events.add("message_stop", json!({}));
            }
            Upto::BeforeTheEnd => {}
            Upto::Middle => {
                events.cut_in_half();
            }
        }
        let pieces = events.into_pieces();
        Answer { status: 200, headers: vec![("content-type", EVENTS.to_owned())], pieces, end }
    }

    fn stream_block(&self, events: &mut Events, index: usize, block: &Value, text: &str) {
        let (key, empty, delta) = match text_at(block, "type") {
            "text" => ("text", json!(""), "text_delta"),
            "thinking" => ("thinking", json!(""), "thinking_delta"),
            _ => ("input", json!({}), "input_json_delta"),
        };
        let mut start = block.clone();
        start[key] = empty;
        if key == "thinking" {
            start["signature"] = json!("");
        }
        let field = if key == "input" { "partial_json" } else { key };
        events.add("content_block_start", json!({ "index": index, "content_block": start }));
        for piece in in_pieces(text, self.chunk) {
            let delta = json!({ "type": delta, field: piece });
            events.pause(self.pause);
            events.add("content_block_delta", json!({ "index": index, "delta": delta }));
        }
        if key == "thinking" {
            let delta = json!({ "type": "signature_delta", "signature": SIGNATURE });
            events.add("content_block_delta", json!({ "index": index, "delta": delta }));
        }
        events.add("content_block_stop", json!({ "index": index }));
    }

    fn broken(&self, how: Break, stream: bool) -> Answer {
        let content = if stream { EVENTS } else { JSON };
        match (how, stream) {
            (Break::Close, _) => Answer { end: End::Close, ..Answer::whole(200, content, "") },
            (Break::Cut, true) => self.stream(Upto::Middle, End::Cut),
            (Break::Cut, false) => Answer { end: End::Cut, ..half(&self.whole()) },
            (Break::Garbage, true) => {
                Answer::whole(200, content, "%%%% not an event\n\u{fffd}:: {{{\n\n")
            }
            (Break::Garbage, false) => Answer::whole(200, content, "%%%% not JSON"),
            (Break::BadJson, true) => {
                let bad =
                    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\n\n";
                Answer::whole(200, content, bad)
            }
            (Break::BadJson, false) => half(&self.whole()),
            (Break::ErrorEvent, true) => {
                let mut answer = self.stream(Upto::Middle, End::Finish);
                let mut events = Events::default();
                events.add("error", json!({ "error": overloaded() }));
                answer.pieces.extend(events.into_pieces());
                answer
            }
            (Break::ErrorEvent, false) => {
                let body = json!({ "type": "error", "error": overloaded() });
                Answer::whole(529, content, body.to_string())
            }
            (Break::Empty, _) => Answer::whole(200, content, ""),
            (Break::Html, _) => {
                let page = "<!doctype html><title>Sign in</title><p>Sign in to use this network.";
                Answer::whole(200, "text/html", page)
            }
        }
    }
}

fn overloaded() -> Value {
    json!({ "type": "overloaded_error", "message": "The script says it is overloaded." })
}

/// The first half of a value.
fn half(value: &Value) -> Answer {
    let mut bytes = value.to_string().into_bytes();
    bytes.truncate(bytes.len() / 2);
    Answer::whole(200, JSON, bytes)
}

/// A part of a reply as a block, and the text that is streamed of it.
fn block_of(part: &Action) -> (Value, String) {
    match part {
        Action::Say(text) => (json!({ "type": "text", "text": text }), text.clone()),
        Action::Think(text) => {
            let block = json!({ "type": "thinking", "thinking": text, "signature": SIGNATURE });
            (block, text.clone())
        }
        Action::Call { tool, input } => {
            let id = new_id("toolu");
            let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
            (block, input.to_string())
        }
    }
}

/// A text in pieces of so many characters.
fn in_pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

/// Events of a stream, in as few pieces as the pauses between them allow.
#[derive(Default)]
struct Events {
    /// Each event, and how long it is waited for.
    written: Vec<(Duration, String)>,
    /// Whether there was a delta: there is a pause between two of them.
    had_delta: bool,
    pause: Duration,
}

impl Events {
    /// Waits so long before the next event, unless it is the first delta.
    fn pause(&mut self, pause: Duration) {
        if mem::replace(&mut self.had_delta, true) {
            self.pause = pause;
        }
    }

    fn add(&mut self, kind: &str, fields: Value) {
        let mut data = json!({ "type": kind });
        if let (Some(data), Value::Object(fields)) = (data.as_object_mut(), fields) {
            data.extend(fields);
        }
        let event = format!("event: {kind}\ndata: {data}\n\n");
        self.written.push((mem::take(&mut self.pause), event));
    }

    /// Keeps the first half, at least one event and not all.
    fn cut_in_half(&mut self) {
        self.written.truncate(self.written.len().div_ceil(2));
    }

    fn into_pieces(self) -> VecDeque<Piece> {
        let mut pieces: VecDeque<(Duration, String)> = VecDeque::new();
        for (after, event) in self.written {
            match pieces.back_mut() {
                Some((_, text)) if after.is_zero() => text.push_str(&event),
                _ => pieces.push_back((after, event)),
            }
        }
        let piece = |(after, text): (_, String)| Piece { after, bytes: text.into() };
        pieces.into_iter().map(piece).collect()
    }
}
