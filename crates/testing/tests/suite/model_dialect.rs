//! The APIs of the scripted model from the side of a program, so that one test can try all.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::model_client::{Answer, Client};

/// An API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Messages,
    Completions,
    Responses,
}

pub(crate) const APIS: [Api; 3] = [Api::Messages, Api::Completions, Api::Responses];

/// Every API, streamed and not.
pub(crate) fn ways() -> impl Iterator<Item = (Api, bool)> {
    APIS.into_iter().flat_map(|api| [(api, true), (api, false)])
}

/// A part of a conversation.
pub(crate) enum Said<'a> {
    System(&'a str),
    User(&'a [&'a str]),
    /// A message of the model as it came, not streamed.
    Model(&'a Value),
    /// The result of a tool.
    Result(&'a str),
}

/// A reply, whatever it was written as.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) thought: String,
    pub(crate) said: String,
    /// The calls: id, tool and input.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) stop: Option<String>,
    /// What was read, what of it came from a cache, and what was written.
    pub(crate) cost: Option<[u64; 3]>,
    /// How the texts and inputs came.
    pub(crate) pieces: Vec<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Api {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Completions => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    /// A request with a text of the user and nothing else.
    pub(crate) fn hello(self, text: &str, stream: bool) -> Value {
        self.request(stream, &[], &[Said::User(&[text])])
    }

    pub(crate) fn request(self, stream: bool, tools: &[&str], said: &[Said<'_>]) -> Value {
        let tools: Vec<Value> = tools.iter().map(|name| self.tool(name)).collect();
        let said: Vec<Value> = said.iter().flat_map(|said| self.said(said)).collect();
        let key = if self == Self::Responses { "input" } else { "messages" };
        json!({ "model": "m", "stream": stream, "tools": tools, key: said })
    }

    fn tool(self, name: &str) -> Value {
        match self {
            Self::Messages => json!({ "name": name, "input_schema": {} }),
            Self::Completions => json!({ "type": "function", "function": { "name": name } }),
            Self::Responses => json!({ "type": "function", "name": name }),
        }
    }

    fn said(self, said: &Said<'_>) -> Vec<Value> {
        let kind = if self == Self::Responses { "input_text" } else { "text" };
        match (said, self) {
            (Said::System(text), _) => vec![json!({ "role": "system", "content": text })],
            (Said::User([text]), _) => vec![json!({ "role": "user", "content": text })],
            (Said::User(texts), _) => {
                let part = |text: &&str| json!({ "type": kind, "text": text });
                let parts: Vec<Value> = texts.iter().map(part).collect();
                vec![json!({ "role": "user", "content": parts })]
            }
            (Said::Model(message), Self::Messages) => {
                vec![json!({ "role": "assistant", "content": message["content"] })]
            }
            (Said::Model(message), Self::Completions) => {
                vec![message["choices"][0]["message"].clone()]
            }
            (Said::Model(message), Self::Responses) => list(&message["output"]).to_vec(),
            (Said::Result(text), Self::Messages) => {
                let content = json!([{ "type": "text", "text": text }]);
                let block =
                    json!({ "type": "tool_result", "tool_use_id": "T", "content": content });
                vec![json!({ "role": "user", "content": [block] })]
            }
            (Said::Result(text), Self::Completions) => {
                vec![json!({ "role": "tool", "tool_call_id": "T", "content": text })]
            }
            (Said::Result(text), Self::Responses) => {
                vec![json!({ "type": "function_call_output", "call_id": "T", "output": text })]
            }
        }
    }

    /// Asks over a connection of its own; none when it is closed without an answer.
    pub(crate) fn try_ask(self, address: SocketAddr, body: &Value) -> Option<Answer> {
        let mut client = Client::new(address);
        client.send("POST", self.path(), &body.to_string());
        client.answer()
    }

    pub(crate) fn ask(self, address: SocketAddr, body: &Value) -> Answer {
        self.try_ask(address, body).expect("an answer")
    }

    /// Asks and reads the reply.
    pub(crate) fn hear(self, address: SocketAddr, body: &Value) -> Heard {
        let answer = self.ask(address, body);
        assert!(answer.is_whole && answer.status == 200, "{answer:?}");
        if body["stream"] == true { self.read(&answer.data()) } else { self.whole(&answer.json()) }
    }

    /// Reads a reply that was not streamed.
    pub(crate) fn whole(self, message: &Value) -> Heard {
        match self {
            Self::Messages => {
                let mut heard = Heard { cost: cost_of(&message["usage"]), ..Heard::default() };
                list(&message["content"]).iter().for_each(|block| heard.block(block));
                heard.stop = message["stop_reason"].as_str().map(str::to_owned);
                heard
            }
            Self::Completions => {
                let choice = &message["choices"][0];
                let message_of = &choice["message"];
                let mut heard = Heard { cost: cost_of(&message["usage"]), ..Heard::default() };
                heard.thought = text(&message_of["reasoning_content"]);
                heard.said = text(&message_of["content"]);
                for call in list(&message_of["tool_calls"]) {
                    let function = &call["function"];
                    heard.call(&call["id"], &function["name"], text(&function["arguments"]));
                }
                heard.stop = choice["finish_reason"].as_str().map(str::to_owned);
                heard
            }
            Self::Responses => {
                let mut heard = Heard::default();
                list(&message["output"]).iter().for_each(|item| heard.item(item));
                heard.end_of_response(message);
                heard
            }
        }
    }

    /// Reads a stream.
    fn read(self, events: &[Value]) -> Heard {
        let mut heard = Heard::default();
        for event in events {
            match self {
                Self::Messages => heard.of_messages(event),
                Self::Completions => heard.of_completions(event),
                Self::Responses => heard.of_responses(event),
            }
        }
        heard
    }
}

/// What was read, what of it came from a cache, and what was written.
fn cost_of(usage: &Value) -> Option<[u64; 3]> {
    let usage = usage.as_object()?;
    Some(match usage.get("prompt_tokens") {
        Some(read) => {
            let cached = &usage["prompt_tokens_details"]["cached_tokens"];
            [number(read), number(cached), number(&usage["completion_tokens"])]
        }
        None if usage.contains_key("cache_read_input_tokens") => {
            let cached = number(&usage["cache_read_input_tokens"]);
            let fresh = number(&usage["input_tokens"]);
            let read = fresh + cached + number(&usage["cache_creation_input_tokens"]);
            [read, cached, number(&usage["output_tokens"])]
        }
        None => {
            let cached = &usage["input_tokens_details"]["cached_tokens"];
            [number(&usage["input_tokens"]), number(cached), number(&usage["output_tokens"])]
        }
    })
}

impl Heard {
    fn call(&mut self, id: &Value, tool: &Value, input: String) {
        self.calls.push((text(id), text(tool), input));
    }

    fn more_input(&mut self, piece: &Value) {
        self.calls.last_mut().expect("a call").2.push_str(&text(piece));
        self.pieces.push(text(piece));
    }

    fn more_said(&mut self, piece: &Value) {
        self.said.push_str(&text(piece));
        self.pieces.push(text(piece));
    }

    fn more_thought(&mut self, piece: &Value) {
        self.thought.push_str(&text(piece));
        self.pieces.push(text(piece));
    }

    fn block(&mut self, block: &Value) {
        match text(&block["type"]).as_str() {
            "text" => self.said.push_str(&text(&block["text"])),
            "thinking" => self.thought.push_str(&text(&block["thinking"])),
            _ => self.call(&block["id"], &block["name"], block["input"].to_string()),
        }
    }

    fn item(&mut self, item: &Value) {
        match text(&item["type"]).as_str() {
            "message" => self.said.push_str(&text(&item["content"][0]["text"])),
            "reasoning" => self.thought.push_str(&text(&item["summary"][0]["text"])),
            _ => self.call(&item["call_id"], &item["name"], text(&item["arguments"])),
        }
    }

    fn end_of_response(&mut self, response: &Value) {
        self.stop = match text(&response["status"]).as_str() {
            "in_progress" => None,
            "incomplete" => Some(text(&response["incomplete_details"]["reason"])),
            status => Some(status.to_owned()),
        };
        self.cost = cost_of(&response["usage"]);
    }

    fn of_messages(&mut self, event: &Value) {
        let (delta, block) = (&event["delta"], &event["content_block"]);
        match text(&event["type"]).as_str() {
            "message_start" => self.cost = cost_of(&event["message"]["usage"]),
            "content_block_start" if block["type"] == "tool_use" => {
                self.call(&block["id"], &block["name"], String::new());
            }
            "content_block_delta" => match text(&delta["type"]).as_str() {
                "text_delta" => self.more_said(&delta["text"]),
                "thinking_delta" => self.more_thought(&delta["thinking"]),
                "input_json_delta" => self.more_input(&delta["partial_json"]),
                _ => {}
            },
            "message_delta" => {
                self.stop = Some(text(&delta["stop_reason"]));
                let [_, _, written] = self.cost.as_mut().expect("what it cost");
                *written = number(&event["usage"]["output_tokens"]);
            }
            _ => {}
        }
    }

    fn of_completions(&mut self, event: &Value) {
        self.cost = cost_of(&event["usage"]).or(self.cost);
        let Some(choice) = event["choices"].get(0) else { return };
        let delta = &choice["delta"];
        if delta.get("reasoning_content").is_some() {
            self.more_thought(&delta["reasoning_content"]);
        }
        if delta.get("content").is_some_and(|content| content != "") {
            self.more_said(&delta["content"]);
        }
        for call in list(&delta["tool_calls"]) {
            let function = &call["function"];
            if call.get("id").is_some() {
                assert_eq!(number(&call["index"]) as usize, self.calls.len());
                self.call(&call["id"], &function["name"], text(&function["arguments"]));
            } else {
                assert_eq!(number(&call["index"]) as usize + 1, self.calls.len());
                self.more_input(&function["arguments"]);
            }
        }
        self.stop = choice["finish_reason"].as_str().map(str::to_owned).or(self.stop.take());
    }

    fn of_responses(&mut self, event: &Value) {
        let item = &event["item"];
        match text(&event["type"]).as_str() {
            "response.output_item.added" if item["type"] == "function_call" => {
                self.call(&item["call_id"], &item["name"], text(&item["arguments"]));
            }
            "response.output_text.delta" => self.more_said(&event["delta"]),
            "response.reasoning_summary_text.delta" => self.more_thought(&event["delta"]),
            "response.function_call_arguments.delta" => self.more_input(&event["delta"]),
            "response.completed" | "response.incomplete" => {
                self.end_of_response(&event["response"]);
            }
            _ => {}
        }
    }
}
