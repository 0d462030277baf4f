//! How the scripted model writes OpenAI's APIs.

use atomic_testing::model::{ModelServer, Script};
use serde_json::{Value, json};

use crate::model_client::Answer;
use crate::model_dialect::Api;

const EVERYTHING: &str = r#"
[[turn]]
[[turn.reply]]
chunk = 3
usage = { input = 7, output = 9, cache_read = 5, cache_write = 1 }
do = [
    { think = "hm" },
    { say = "süß!" },
    { call = { tool = "Bash", input = { a = 1 } } },
]
"#;

fn ask(api: Api, script: &str, body: &Value) -> Answer {
    let script = Script::parse(script).expect("a script");
    let server = ModelServer::start(script).expect("a server");
    let answer = api.ask(server.address(), body);
    assert_eq!(answer.status, 200);
    assert!(answer.headers.iter().any(|line| line.starts_with("x-request-id: req_")));
    answer
}

/// A value whose ids are replaced by what they begin with.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.split_once('_') {
            Some((kind, id)) if id.len() == 32 => json!(kind),
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(entries) => {
            entries.iter().map(|(key, value)| (key.clone(), plain(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn completion_usage() -> Value {
    json!({
        "prompt_tokens": 13, "completion_tokens": 9, "total_tokens": 22,
        "prompt_tokens_details": { "cached_tokens": 5 },
        "completion_tokens_details": { "reasoning_tokens": 0 },
    })
}

#[test]
fn a_completion_in_one_piece() {
    let answer = ask(Api::Completions, EVERYTHING, &Api::Completions.hello("hi", false));
    assert!(answer.headers.contains(&"content-type: application/json".to_owned()));
    let function = json!({ "name": "Bash", "arguments": r#"{"a":1}"# });
    let expected = json!({
        "id": "chatcmpl", "object": "chat.completion", "created": 1_700_000_000, "model": "m",
        "choices": [{
            "index": 0,
            "message": {
                "role": "assistant", "content": "süß!", "reasoning_content": "hm",
                "tool_calls": [{ "id": "call", "type": "function", "function": function }],
            },
            "finish_reason": "tool_calls",
        }],
        "usage": completion_usage(),
    });
    assert_eq!(plain(&answer.json()), expected);
}

#[test]
fn a_completion_as_a_stream() {
    let answer = ask(Api::Completions, EVERYTHING, &Api::Completions.hello("hi", true));
    assert!(answer.headers.contains(&"content-type: text/event-stream; charset=utf-8".to_owned()));
    assert!(answer.body.ends_with("\n\ndata: [DONE]\n\n"), "{answer:?}");
    assert!(!answer.body.contains("event:"), "{answer:?}");
    let mut events: Vec<Value> = answer.data().iter().map(plain).collect();
    for event in &events {
        assert_eq!((&event["id"], &event["model"]), (&json!("chatcmpl"), &json!("m")));
        assert_eq!(event["object"], "chat.completion.chunk");
    }
    let last = events.pop().expect("an event");
    assert_eq!((&last["choices"], &last["usage"]), (&json!([]), &completion_usage()));
    let end = events.pop().expect("an event");
    assert_eq!(end["choices"], json!([{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }]));
    let more =
        |piece| json!({ "tool_calls": [{ "index": 0, "function": { "arguments": piece } }] });
    let deltas: Vec<Value> =
        events.iter().map(|event| event["choices"][0]["delta"].clone()).collect();
    let call = json!({
        "index": 0, "id": "call", "type": "function", "function": { "name": "Bash", "arguments": "" },
    });
    let expected = [
        json!({ "role": "assistant", "content": "" }),
        json!({ "reasoning_content": "hm" }),
        json!({ "content": "süß" }),
        json!({ "content": "!" }),
        json!({ "tool_calls": [call] }),
        more(r#"{"a"#),
        more(r#"":1"#),
        more("}"),
    ];
    assert_eq!(deltas, expected);
    assert!(events.iter().all(|event| event["choices"][0]["finish_reason"].is_null()));
}

#[test]
fn a_completion_without_a_text_has_none() {
    let script = "[[turn]]\n[[turn.reply]]\ndo = [{ call = { tool = 'X' } }]";
    let answer = ask(Api::Completions, script, &Api::Completions.hello("hi", false)).json();
    assert_eq!(answer["choices"][0]["message"].get("content"), Some(&Value::Null));
}

fn response_items() -> Value {
    json!([
        {
            "id": "rs", "type": "reasoning", "encrypted_content": "c2NyaXB0ZWQ=",
            "summary": [{ "type": "summary_text", "text": "hm" }],
        },
        {
            "id": "msg", "type": "message", "role": "assistant", "status": "completed",
            "content": [
                { "type": "output_text", "text": "süß!", "annotations": [], "logprobs": [] },
            ],
        },
        {
            "id": "fc", "type": "function_call", "status": "completed", "call_id": "call",
            "name": "Bash", "arguments": r#"{"a":1}"#,
        },
    ])
}

#[test]
fn a_response_in_one_piece() {
    let response = ask(Api::Responses, EVERYTHING, &Api::Responses.hello("hi", false)).json();
    let response = plain(&response);
    assert_eq!(response["output"], response_items());
    let usage = json!({
        "input_tokens": 13, "output_tokens": 9, "total_tokens": 22,
        "input_tokens_details": { "cached_tokens": 5, "cache_write_tokens": 1 },
        "output_tokens_details": { "reasoning_tokens": 0 },
    });
    for (key, expected) in [
        ("id", json!("resp")),
        ("object", json!("response")),
        ("status", json!("completed")),
        ("model", json!("m")),
        ("error", Value::Null),
        ("incomplete_details", Value::Null),
        ("usage", usage),
    ] {
        assert_eq!(response[key], expected, "{key}");
    }
}

/// An event of a response in one line.
fn shown(event: &Value) -> String {
    let kind = event["type"].as_str().expect("a type").trim_start_matches("response.");
    let index = event["output_index"].as_u64().map_or(String::new(), |index| format!("{index} "));
    let text = ["delta", "text", "arguments"].iter().find_map(|key| event[key].as_str());
    let part = event["part"]["text"].as_str().or(event["item"]["status"].as_str());
    format!("{index}{kind} {}", text.or(part).unwrap_or_default()).trim_end().to_owned()
}

#[test]
fn a_response_as_a_stream() {
    let answer = ask(Api::Responses, EVERYTHING, &Api::Responses.hello("hi", true));
    let events = answer.events();
    let shown: Vec<String> = events.iter().map(shown).collect();
    let expected = [
        "created",
        "in_progress",
        "0 output_item.added",
        "0 reasoning_summary_part.added",
        "0 reasoning_summary_text.delta hm",
        "0 reasoning_summary_text.done hm",
        "0 reasoning_summary_part.done hm",
        "0 output_item.done",
        "1 output_item.added in_progress",
        "1 content_part.added",
        "1 output_text.delta süß",
        "1 output_text.delta !",
        "1 output_text.done süß!",
        "1 content_part.done süß!",
        "1 output_item.done completed",
        "2 output_item.added in_progress",
        r#"2 function_call_arguments.delta {"a"#,
        r#"2 function_call_arguments.delta ":1"#,
        "2 function_call_arguments.delta }",
        r#"2 function_call_arguments.done {"a":1}"#,
        "2 output_item.done completed",
        "completed",
    ];
    assert_eq!(shown, expected);
    let numbers: Vec<_> = events.iter().map(|event| event["sequence_number"].as_u64()).collect();
    assert_eq!(numbers, (0..events.len() as u64).map(Some).collect::<Vec<_>>());
    for event in &events {
        let of_item = event.get("item_id").or(event["item"].get("id"));
        let items = &events[events.len() - 1]["response"]["output"];
        let index = event["output_index"].as_u64().unwrap_or_default() as usize;
        assert!(of_item.is_none_or(|id| *id == items[index]["id"]), "{event}");
    }
    let start = &events[0]["response"];
    assert_eq!((&start["status"], &start["output"]), (&json!("in_progress"), &json!([])));
    assert_eq!(plain(&events[events.len() - 1]["response"]["output"]), response_items());
}

#[test]
fn a_response_that_is_not_complete_ends_so() {
    let script = "[[turn]]\n[[turn.reply]]\nstop = 'length'\ndo = [{ say = 'half a' }]";
    let answer = ask(Api::Responses, script, &Api::Responses.hello("hi", true));
    let last = answer.events().pop().expect("an event");
    assert_eq!(last["type"], "response.incomplete");
    assert_eq!(last["response"]["status"], "incomplete");
    assert_eq!(last["response"]["incomplete_details"], json!({ "reason": "max_output_tokens" }));
}

#[test]
fn instructions_and_developers_are_the_system_and_an_input_can_be_a_text() {
    let script =
        "[[turn]]\nsystem = ['a poet']\nuser = ['go']\n[[turn.reply]]\ndo = [{ say = 'ok' }]";
    let developer = json!({ "role": "developer", "content": "You are a poet." });
    let user = json!({ "role": "user", "content": [{ "type": "input_text", "text": "go" }] });
    for (api, body) in [
        (Api::Responses, json!({ "instructions": "You are a poet.", "input": "go" })),
        (Api::Responses, json!({ "input": [developer, user] })),
        (Api::Completions, json!({ "messages": [developer, { "role": "user", "content": "go" }] })),
    ] {
        let answer = ask(api, script, &body).json();
        assert_eq!(api.whole(&answer).said, "ok", "{body}");
    }
}

#[test]
fn everything_the_model_says_at_once_is_one_step() {
    let script = "[[turn]]\n[[turn.reply]]\nstop = 'x'\n[[turn.reply]]\ndo = [{ say = '{result}' }]\n\
                  [[turn.reply]]\nstop = 'y'";
    let items = json!([
        { "role": "user", "content": "go" },
        { "type": "item_reference", "id": "rs_1" },
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "a" }] },
        { "type": "function_call", "call_id": "1", "name": "X", "arguments": "{}" },
        { "type": "custom_tool_call", "call_id": "2", "name": "Y", "input": "" },
        { "type": "function_call_output", "call_id": "1", "output": "one" },
        {
            "type": "custom_tool_call_output", "call_id": "2",
            "output": [{ "type": "input_text", "text": "two" }],
        },
    ]);
    let answer = ask(Api::Responses, script, &json!({ "input": items })).json();
    assert_eq!(Api::Responses.whole(&answer).said, "one\ntwo");
}
