//! The Messages API of Anthropic.

use hyper::Method;
use serde_json::{Value, json};

use super::answer::Answer;
use super::asked::{Asked, Said, is_streamed, list_at, text_at, texts_of};
use super::dialect::{Dialect, Spoken};
use super::script::{Action, ApiError};
use super::wire::{self, Cost, Events, Format, JSON, OVERLOADED, SEAL, Words, new_id};

/// The dialect.
pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn converses(&self, method: &Method, path: &str) -> bool {
        method == Method::POST && path.ends_with("/v1/messages")
    }

    fn aside(&self, method: &Method, path: &str, size: usize) -> Option<Answer> {
        let value = match method.as_str() {
            "POST" if path.ends_with("/v1/messages/count_tokens") => {
                json!({ "input_tokens": wire::tokens(size) })
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
            stream: is_streamed(body),
            system,
            tools: list_at(body, "tools").iter().map(|tool| text_at(tool, "name")).collect(),
            messages,
            size,
        }
    }

    fn write(&self, spoken: &Spoken<'_>, asked: &Asked<'_>) -> Answer {
        let message = Message::new(spoken, asked);
        with_id(wire::send(&message, &spoken.reply, asked.stream))
    }

    fn refuse(&self, error: &ApiError) -> Answer {
        let kind = error.kind.as_deref().unwrap_or_else(|| kind_of(error.status));
        with_id(wire::refusal(error, &error_of(kind, &wire::sentence(error))))
    }
}

fn error_of(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message } })
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

fn with_id(mut answer: Answer) -> Answer {
    answer.headers.push(("request-id".into(), new_id("req")));
    answer
}

/// The texts of the results of tools in a content.
fn results_of(content: Option<&Value>) -> Vec<&str> {
    let blocks = content.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let results = blocks.iter().filter(|block| text_at(block, "type") == "tool_result");
    results.flat_map(|block| texts_of(block.get("content"))).collect()
}

/// A reply on its way into the format.
struct Message<'a> {
    id: String,
    model: &'a str,
    /// What is in it, with the text that is streamed.
    blocks: Vec<(Value, String)>,
    stop: String,
    usage: Value,
}

impl<'a> Message<'a> {
    fn new(spoken: &Spoken<'_>, asked: &Asked<'a>) -> Self {
        let cost = Cost::new(spoken, asked);
        let usage = json!({
            "input_tokens": cost.input,
            "cache_creation_input_tokens": cost.cache_write,
            "cache_read_input_tokens": cost.cache_read,
            "output_tokens": cost.output,
            "service_tier": "standard",
        });
        let with_text = |part| (block_of(part), wire::text_of(part).into_owned());
        Self {
            id: new_id("msg"),
            model: asked.model,
            blocks: spoken.parts.iter().map(with_text).collect(),
            stop: wire::stop(spoken, Words::Anthropic),
            usage,
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
}

impl Format for Message<'_> {
    fn whole(&self, with_end: bool) -> Value {
        let content = self.blocks.iter().map(|(block, _)| block.clone()).collect();
        let stop = if with_end { json!(self.stop) } else { Value::Null };
        self.around(&content, &stop, &self.usage)
    }

    fn begin(&self, events: &mut Events) {
        let mut usage = self.usage.clone();
        usage["output_tokens"] = json!(1);
        let message = self.around(&json!([]), &Value::Null, &usage);
        events.add("message_start", json!({ "message": message }));
        for (index, (block, text)) in self.blocks.iter().enumerate() {
            stream_block(events, index, block, text);
        }
    }

    fn end(&self, events: &mut Events) {
        let delta = json!({ "stop_reason": self.stop, "stop_sequence": null });
        let usage = json!({ "output_tokens": self.usage["output_tokens"] });
        events.add("message_delta", json!({ "delta": delta, "usage": usage }));
        events.add("message_stop", json!({}));
    }

    fn overloaded(&self, events: &mut Events) {
        events.add("error", error_of("overloaded_error", OVERLOADED));
    }

    fn overloaded_at_once(&self) -> (u16, Value) {
        (529, error_of("overloaded_error", OVERLOADED))
    }
}

fn stream_block(events: &mut Events, index: usize, block: &Value, text: &str) {
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
    events.add_pieces(text, |events, piece| {
        let delta = json!({ "type": delta, field: piece });
        events.add("content_block_delta", json!({ "index": index, "delta": delta }));
    });
    if key == "thinking" {
        let delta = json!({ "type": "signature_delta", "signature": SEAL });
        events.add("content_block_delta", json!({ "index": index, "delta": delta }));
    }
    events.add("content_block_stop", json!({ "index": index }));
}

/// A part of a reply as a block.
fn block_of(part: &Action) -> Value {
    match part {
        Action::Say(text) => json!({ "type": "text", "text": text }),
        Action::Think(text) => json!({ "type": "thinking", "thinking": text, "signature": SEAL }),
        Action::Call { tool, input } => {
            json!({ "type": "tool_use", "id": new_id("toolu"), "name": tool, "input": input })
        }
    }
}
