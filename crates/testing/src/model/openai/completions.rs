//! Chat completions.

use hyper::Method;
use serde_json::{Map, Value, json};

use super::{CREATED, overloaded, with_id};
use crate::model::answer::Answer;
use crate::model::asked::{Asked, Said, is_streamed, list_at, text_at, texts_of};
use crate::model::dialect::{Dialect, Spoken};
use crate::model::script::{Action, ApiError};
use crate::model::wire::{self, Cost, Events, Format, Words, new_id};

/// The dialect.
pub(crate) struct Completions;

impl Dialect for Completions {
    fn converses(&self, method: &Method, path: &str) -> bool {
        method == Method::POST && path.ends_with("/chat/completions")
    }

    fn aside(&self, _: &Method, _: &str, _: usize) -> Option<Answer> {
        None
    }

    fn read<'a>(&self, body: &'a Value, size: usize) -> Asked<'a> {
        let mut system = Vec::new();
        let mut messages = Vec::new();
        for message in list_at(body, "messages") {
            let texts = texts_of(message.get("content"));
            match text_at(message, "role") {
                "system" | "developer" => system.extend(texts),
                "tool" => messages.push(Said { by_model: false, texts: vec![], results: texts }),
                role => {
                    messages.push(Said { by_model: role == "assistant", texts, results: vec![] });
                }
            }
        }
        let tools = list_at(body, "tools").iter().filter_map(|tool| tool.get("function"));
        Asked {
            model: text_at(body, "model"),
            stream: is_streamed(body),
            system,
            tools: tools.map(|function| text_at(function, "name")).collect(),
            messages,
            size,
        }
    }

    fn write(&self, spoken: &Spoken<'_>, asked: &Asked<'_>) -> Answer {
        let completion = Completion::new(spoken, asked);
        with_id(wire::send(&completion, &spoken.reply, asked.stream))
    }

    fn refuse(&self, error: &ApiError) -> Answer {
        super::refuse(error)
    }
}

/// A reply on its way into the format.
struct Completion<'a> {
    id: String,
    model: &'a str,
    /// Its parts, with the fields a message has for them and their texts.
    parts: Vec<(Part, String)>,
    stop: String,
    usage: Value,
}

/// What a part of a reply is in a message.
enum Part {
    /// A text at a key of the message.
    Text(&'static str),
    /// A call, without its arguments.
    Call(Value),
}

impl<'a> Completion<'a> {
    fn new(spoken: &Spoken<'_>, asked: &Asked<'a>) -> Self {
        let cost = Cost::new(spoken, asked);
        let usage = json!({
            "prompt_tokens": cost.all_input(),
            "completion_tokens": cost.output,
            "total_tokens": cost.all_input() + cost.output,
            "prompt_tokens_details": { "cached_tokens": cost.cache_read },
            "completion_tokens_details": { "reasoning_tokens": 0 },
        });
        let with_text = |part| (part_of(part), wire::text_of(part).into_owned());
        Self {
            id: new_id("chatcmpl"),
            model: asked.model,
            parts: spoken.parts.iter().map(with_text).collect(),
            stop: wire::stop(spoken, Words::Completions),
            usage,
        }
    }

    /// What is around the choices.
    fn around(&self, kind: &str, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": kind,
            "created": CREATED,
            "model": self.model,
            "choices": choices,
        })
    }

    fn add_delta(&self, events: &mut Events, delta: &Value, stop: Option<&str>) {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": stop }]);
        events.add_data(&self.around("chat.completion.chunk", &choices).to_string());
    }

    fn stream_call(&self, events: &mut Events, index: usize, call: &Value, arguments: &str) {
        let mut start = with_arguments(call, "");
        start["index"] = json!(index);
        self.add_delta(events, &json!({ "tool_calls": [start] }), None);
        events.add_pieces(arguments, |events, piece| {
            let more = json!({ "index": index, "function": { "arguments": piece } });
            self.add_delta(events, &json!({ "tool_calls": [more] }), None);
        });
    }

    /// All parts in one message: it has one place for each kind of text.
    fn message(&self) -> Value {
        let mut message = Map::new();
        let mut calls = Vec::new();
        for (part, text) in &self.parts {
            match part {
                Part::Text(key) => {
                    let before = message.get(*key).and_then(Value::as_str).unwrap_or_default();
                    message.insert((*key).to_owned(), json!(format!("{before}{text}")));
                }
                Part::Call(call) => calls.push(with_arguments(call, text)),
            }
        }
        message.entry("content").or_insert(Value::Null);
        message.insert("role".to_owned(), json!("assistant"));
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        Value::Object(message)
    }
}

impl Format for Completion<'_> {
    fn whole(&self, with_end: bool) -> Value {
        let stop = with_end.then_some(&self.stop);
        let choice = json!({ "index": 0, "message": self.message(), "finish_reason": stop });
        let mut whole = self.around("chat.completion", &json!([choice]));
        whole["usage"] = self.usage.clone();
        whole
    }

    fn begin(&self, events: &mut Events) {
        self.add_delta(events, &json!({ "role": "assistant", "content": "" }), None);
        let mut calls = 0;
        for (part, text) in &self.parts {
            match part {
                Part::Text(key) => events.add_pieces(text, |events, piece| {
                    self.add_delta(events, &json!({ *key: piece }), None);
                }),
                Part::Call(call) => {
                    self.stream_call(events, calls, call, text);
                    calls += 1;
                }
            }
        }
    }

    fn end(&self, events: &mut Events) {
        self.add_delta(events, &json!({}), Some(&self.stop));
        // Programs that did not ask for it do not mind.
        let mut last = self.around("chat.completion.chunk", &json!([]));
        last["usage"] = self.usage.clone();
        events.add_data(&last.to_string());
        events.add_data("[DONE]");
    }

    fn overloaded(&self, events: &mut Events) {
        events.add_data(&overloaded().1.to_string());
    }

    fn overloaded_at_once(&self) -> (u16, Value) {
        overloaded()
    }
}

fn part_of(part: &Action) -> Part {
    match part {
        Action::Say(_) => Part::Text("content"),
        // OpenAI keeps its models' thoughts to itself; this is where others tell them.
        Action::Think(_) => Part::Text("reasoning_content"),
        Action::Call { tool, .. } => {
            let id = new_id("call");
            Part::Call(json!({ "id": id, "type": "function", "function": { "name": tool } }))
        }
    }
}

fn with_arguments(call: &Value, arguments: &str) -> Value {
    let mut call = call.clone();
    call["function"]["arguments"] = json!(arguments);
    call
}
