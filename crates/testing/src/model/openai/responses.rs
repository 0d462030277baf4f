//! Responses.

use hyper::Method;
use serde_json::{Value, json};

use super::{CREATED, overloaded, with_id};
use crate::model::answer::Answer;
use crate::model::asked::{Asked, Said, is_streamed, list_at, text_at, texts_of};
use crate::model::dialect::{Dialect, Spoken};
use crate::model::script::{Action, ApiError};
use crate::model::wire::{self, Cost, Events, Format, OVERLOADED, SEAL, Words, new_id};

/// The dialect.
pub(crate) struct Responses;

impl Dialect for Responses {
    fn converses(&self, method: &Method, path: &str) -> bool {
        method == Method::POST && path.ends_with("/responses")
    }

    fn aside(&self, _: &Method, _: &str, _: usize) -> Option<Answer> {
        None
    }

    fn read<'a>(&self, body: &'a Value, size: usize) -> Asked<'a> {
        let mut system = texts_of(body.get("instructions"));
        let mut messages = Vec::new();
        match body.get("input") {
            Some(Value::String(text)) => add(&mut messages, false, vec![text], vec![]),
            _ => list_at(body, "input")
                .iter()
                .for_each(|item| read_item(item, &mut system, &mut messages)),
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
        let response = Response::new(spoken, asked);
        with_id(wire::send(&response, &spoken.reply, asked.stream))
    }

    fn refuse(&self, error: &ApiError) -> Answer {
        super::refuse(error)
    }
}

fn read_item<'a>(item: &'a Value, system: &mut Vec<&'a str>, messages: &mut Vec<Said<'a>>) {
    let texts = || texts_of(item.get("content"));
    match (text_at(item, "type"), text_at(item, "role")) {
        ("" | "message", "system" | "developer") => system.extend(texts()),
        ("" | "message", "user") => add(messages, false, texts(), vec![]),
        ("" | "message", _) => add(messages, true, texts(), vec![]),
        (kind, _) if kind.ends_with("_output") => {
            add(messages, false, vec![], texts_of(item.get("output")));
        }
        // A call, a thought, or a reference to one.
        _ => add(messages, true, vec![], vec![]),
    }
}

/// Adds an item. What the model says at once are several, and one message.
fn add<'a>(
    messages: &mut Vec<Said<'a>>,
    by_model: bool,
    texts: Vec<&'a str>,
    results: Vec<&'a str>,
) {
    match messages.last_mut() {
        Some(last) if by_model && last.by_model => last.texts.extend(texts),
        _ => messages.push(Said { by_model, texts, results }),
    }
}

/// A reply on its way into the format.
struct Response<'a> {
    id: String,
    model: &'a str,
    /// What is in it, with the text that is streamed.
    items: Vec<(Value, String)>,
    stop: String,
    usage: Value,
}

impl<'a> Response<'a> {
    fn new(spoken: &Spoken<'_>, asked: &Asked<'a>) -> Self {
        let cost = Cost::new(spoken, asked);
        let usage = json!({
            "input_tokens": cost.all_input(),
            "input_tokens_details": {
                "cached_tokens": cost.cache_read, "cache_write_tokens": cost.cache_write,
            },
            "output_tokens": cost.output,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": cost.all_input() + cost.output,
        });
        let with_text = |part| (item_of(part), wire::text_of(part).into_owned());
        Self {
            id: new_id("resp"),
            model: asked.model,
            items: spoken.parts.iter().map(with_text).collect(),
            stop: wire::stop(spoken, Words::Responses),
            usage,
        }
    }

    /// The response before there is anything in it.
    fn begun(&self) -> Value {
        json!({
            "id": self.id,
            "object": "response",
            "created_at": CREATED,
            "status": "in_progress",
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": self.model,
            "output": [],
            "parallel_tool_calls": true,
            "previous_response_id": null,
            "store": false,
            "tool_choice": "auto",
            "tools": [],
            "usage": null,
        })
    }

    /// The status: `incomplete` unless the model came to its end.
    fn status(&self) -> &'static str {
        if self.stop == "completed" { "completed" } else { "incomplete" }
    }
}

impl Format for Response<'_> {
    fn whole(&self, with_end: bool) -> Value {
        let mut whole = self.begun();
        whole["output"] = self.items.iter().map(|(item, _)| item.clone()).collect();
        if with_end {
            whole["status"] = json!(self.status());
            whole["usage"] = self.usage.clone();
            if self.status() == "incomplete" {
                whole["incomplete_details"] = json!({ "reason": self.stop });
            }
        }
        whole
    }

    fn begin(&self, events: &mut Events) {
        for kind in ["response.created", "response.in_progress"] {
            add_event(events, kind, json!({ "response": self.begun() }));
        }
        for (index, (item, text)) in self.items.iter().enumerate() {
            stream_item(events, index, item, text);
        }
    }

    fn end(&self, events: &mut Events) {
        let kind = format!("response.{}", self.status());
        add_event(events, &kind, json!({ "response": self.whole(true) }));
    }

    fn overloaded(&self, events: &mut Events) {
        let fields = json!({ "code": "server_error", "message": OVERLOADED, "param": null });
        add_event(events, "error", fields);
    }

    fn overloaded_at_once(&self) -> (u16, Value) {
        overloaded()
    }
}

/// A part of a reply as an item.
fn item_of(part: &Action) -> Value {
    match part {
        Action::Say(text) => json!({
            "id": new_id("msg"),
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [output_text(text)],
        }),
        Action::Think(text) => json!({
            "id": new_id("rs"),
            "type": "reasoning",
            "summary": [summary_text(text)],
            "encrypted_content": SEAL,
        }),
        Action::Call { tool, input } => json!({
            "id": new_id("fc"),
            "type": "function_call",
            "status": "completed",
            "call_id": new_id("call"),
            "name": tool,
            "arguments": input.to_string(),
        }),
    }
}

fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary_text(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

/// How the text of an item is streamed.
struct Way {
    /// The item's field for it, and what that is before there is a text.
    field: (&'static str, Value),
    /// The events: the one before the pieces, for a piece, and the two after all of them.
    part: Option<(&'static str, &'static str)>,
    delta: &'static str,
    done: (&'static str, &'static str),
    /// What is the same in all of them.
    place: Value,
    /// A part of the item with a text.
    wrap: fn(&str) -> Value,
}

fn way_of(item: &Value, index: usize) -> Way {
    let id = text_at(item, "id");
    match text_at(item, "type") {
        "message" => Way {
            field: ("content", json!([])),
            part: Some(("response.content_part.added", "response.content_part.done")),
            delta: "response.output_text.delta",
            done: ("response.output_text.done", "text"),
            place: json!({ "item_id": id, "output_index": index, "content_index": 0 }),
            wrap: output_text,
        },
        "reasoning" => Way {
            field: ("summary", json!([])),
            part: Some((
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_part.done",
            )),
            delta: "response.reasoning_summary_text.delta",
            done: ("response.reasoning_summary_text.done", "text"),
            place: json!({ "item_id": id, "output_index": index, "summary_index": 0 }),
            wrap: summary_text,
        },
        _ => Way {
            field: ("arguments", json!("")),
            part: None,
            delta: "response.function_call_arguments.delta",
            done: ("response.function_call_arguments.done", "arguments"),
            place: json!({ "item_id": id, "output_index": index }),
            wrap: |text| json!(text),
        },
    }
}

fn stream_item(events: &mut Events, index: usize, item: &Value, text: &str) {
    let way = way_of(item, index);
    let mut start = item.clone();
    let (field, empty) = way.field;
    start[field] = empty;
    if start.get("status").is_some() {
        start["status"] = json!("in_progress");
    }
    let at_place = |key: &str, value: Value| {
        let mut fields = way.place.clone();
        fields[key] = value;
        fields
    };
    add_event(
        events,
        "response.output_item.added",
        json!({ "output_index": index, "item": start }),
    );
    if let Some((added, _)) = way.part {
        add_event(events, added, at_place("part", (way.wrap)("")));
    }
    events.add_pieces(text, |events, piece| {
        add_event(events, way.delta, at_place("delta", json!(piece)));
    });
    let (done, key) = way.done;
    add_event(events, done, at_place(key, json!(text)));
    if let Some((_, done)) = way.part {
        add_event(events, done, at_place("part", (way.wrap)(text)));
    }
    add_event(events, "response.output_item.done", json!({ "output_index": index, "item": item }));
}

/// Adds an event with its number.
fn add_event(events: &mut Events, kind: &str, mut fields: Value) {
    fields["sequence_number"] = json!(events.len());
    events.add(kind, fields);
}
