//! What a model was sent, whatever the API it was sent by.
//!
//! The APIs differ in where they put things, not in what a text is, so that one way to read does
//! for all: `system`, `instructions` or a message of that role; `messages` or `input`; a tool with
//! a name or with a function that has one.
#![expect(clippy::panic, reason = "a check that fails panics")]

use std::sync::Arc;

use serde_json::Value;

use super::Stage;
use crate::model::Received;

/// The first request in which the user's last words contain these.
pub(super) fn sent(stage: &dyn Stage, words: &str) -> Sent {
    let found = Sent::all(&stage.received()).find(|sent| sent.last_words().contains(words));
    found.unwrap_or_else(|| panic!("no model was asked {words:?}"))
}

/// A request to a model.
#[derive(Clone, Debug)]
pub struct Sent(Arc<Value>);

impl Sent {
    /// Reads a request, if a model is asked something by it.
    pub fn read(received: &Received) -> Option<Self> {
        let body = Arc::clone(&received.body);
        ["messages", "input"].iter().any(|key| body[key].is_array()).then_some(Self(body))
    }

    /// Everything that a model was asked among these.
    pub(super) fn all(received: &[Received]) -> impl Iterator<Item = Self> {
        received.iter().filter_map(Self::read)
    }

    /// What the model is told to be.
    pub fn system(&self) -> String {
        let apart = ["system", "instructions"].into_iter().flat_map(|key| texts(&self.0[key]));
        let within = self.messages().filter(|it| is_by(it, &["system", "developer"]));
        apart.chain(within.flat_map(|it| texts(&it["content"]))).collect::<Vec<_>>().join("\n")
    }

    /// The names of the tools on offer.
    pub fn tools(&self) -> Vec<&str> {
        let tools = self.0["tools"].as_array().into_iter().flatten();
        let named =
            tools.filter_map(|tool| tool.get("name").or_else(|| tool.pointer("/function/name")));
        named.filter_map(Value::as_str).collect()
    }

    /// What the user said last, without what the program says in the user's name.
    pub fn last_words(&self) -> String {
        let mut said: Vec<String> = self
            .messages()
            .filter(|message| is_by(message, &["user"]))
            .map(|message| {
                texts(&message["content"]).into_iter().filter(is_own).map(without_time).collect()
            })
            .collect();
        said.retain(|words| !words.is_empty());
        said.pop().unwrap_or_default()
    }

    /// All that was said in the conversation, whoever said it.
    pub fn said(&self) -> String {
        let texts = self.messages().flat_map(|message| texts(&message["content"]));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// All of it, as it was sent.
    pub fn whole(&self) -> String {
        self.0.to_string()
    }

    fn messages(&self) -> impl Iterator<Item = &Value> {
        let lists = ["messages", "input"].into_iter().filter_map(|key| self.0[key].as_array());
        lists.flatten()
    }
}

fn is_by(message: &Value, roles: &[&str]) -> bool {
    message["role"].as_str().is_some_and(|role| roles.contains(&role))
}

fn is_own(text: &&str) -> bool {
    !text.trim_start().starts_with("<system-reminder>")
}

/// A text without the time that a program may put in front of it.
fn without_time(text: &str) -> &str {
    let rest = text.strip_prefix("<current_datetime>");
    let rest = rest.and_then(|rest| rest.split_once("</current_datetime>\n\n"));
    rest.map_or(text, |(_, rest)| rest)
}

/// The texts of what is one text or a list of parts.
fn texts(content: &Value) -> Vec<&str> {
    match content.as_str() {
        Some(text) => vec![text],
        None => {
            let parts = content.as_array().into_iter().flatten();
            parts.filter_map(|part| part["text"].as_str()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::time::Instant;

    use serde_json::{Value, json};

    use super::Sent;
    use crate::model::{Chosen, Received};

    fn received(body: Value) -> Received {
        Received {
            number: 0,
            method: "POST".to_owned(),
            path: "/".to_owned(),
            headers: BTreeMap::new(),
            credentials: vec![],
            body: Arc::new(body),
            chosen: Chosen::Unmatched,
            at: Instant::now(),
        }
    }

    #[test]
    fn every_api_is_read_alike() {
        let anthropic = json!({
            "system": [{ "type": "text", "text": "Be kind." }],
            "tools": [{ "name": "look" }],
            "messages": [
                { "role": "user", "content": "first" },
                { "role": "assistant", "content": [{ "type": "text", "text": "yes" }] },
                { "role": "user", "content": [
                    { "type": "text", "text": "<system-reminder>x</system-reminder>" },
                    { "type": "text", "text": "last" },
                ] },
                { "role": "user", "content": [{ "type": "tool_result", "content": "seen" }] },
            ],
        });
        let chat = json!({
            "tools": [{ "type": "function", "function": { "name": "look" } }],
            "messages": [
                { "role": "system", "content": "Be kind." },
                { "role": "user", "content": "first" },
                { "role": "assistant", "content": "yes" },
                { "role": "user", "content": [{ "type": "text", "text": "last" }] },
                { "role": "tool", "content": "seen" },
            ],
        });
        let responses = json!({
            "instructions": "Be kind.",
            "tools": [{ "type": "function", "name": "look" }],
            "input": [
                { "role": "user", "content": [{ "type": "input_text", "text": "first" }] },
                { "role": "assistant", "content": [{ "type": "output_text", "text": "yes" }] },
                { "role": "user", "content": [{ "type": "input_text", "text": "last" }] },
                { "type": "function_call_output", "output": "seen" },
            ],
        });
        let bodies = [anthropic, chat, responses];
        for body in bodies {
            let sent = Sent::read(&received(body)).unwrap();
            assert_eq!(sent.system(), "Be kind.");
            assert_eq!(sent.tools(), ["look"]);
            assert_eq!(sent.last_words(), "last");
            assert!(["first", "yes", "last"].iter().all(|text| sent.said().contains(text)));
        }
        assert!(Sent::read(&received(json!({ "model": "x" }))).is_none());
    }
}
