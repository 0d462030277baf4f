//! The scripted model, as programs see it.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use atomic_testing::model::{Chosen, ModelServer, Reply, Script, Turn};
use serde_json::{Value, json};

use crate::model_client::{Client, LIMIT, ask};

fn script(text: &str) -> Script {
    Script::parse(text).expect("a script")
}

fn start(text: &str) -> ModelServer {
    ModelServer::start(script(text)).expect("a server")
}

fn hello(text: &str, stream: bool) -> Value {
    json!({ "model": "m", "stream": stream, "messages": [{ "role": "user", "content": text }] })
}

const EVERYTHING: &str = r#"
[[turn]]
[[turn.reply]]
chunk = 3
usage = { input = 7, output = 9, cache_read = 5 }
do = [
    { think = "hm" },
    { say = "süß!" },
    { call = { tool = "Bash", input = { command = "ls" } } },
]
"#;

#[test]
fn a_message_in_one_piece() {
    let server = start(EVERYTHING);
    let answer = ask(server.address(), &hello("hi", false));
    assert_eq!(answer.status, 200);
    assert!(answer.headers.contains(&"content-type: application/json".to_owned()));
    assert!(answer.headers.iter().any(|line| line.starts_with("request-id: req_")));
    let mut message = answer.json();
    assert!(message["id"].as_str().is_some_and(|id| id.starts_with("msg_")));
    assert!(message["content"][2]["id"].as_str().is_some_and(|id| id.starts_with("toolu_")));
    message["id"] = json!("M");
    message["content"][2]["id"] = json!("T");
    let signature = message["content"][0]["signature"].take();
    assert!(signature.as_str().is_some_and(|text| !text.is_empty()));
    let expected = json!({
        "id": "M", "type": "message", "role": "assistant", "model": "m",
        "content": [
            { "type": "thinking", "thinking": "hm", "signature": null },
            { "type": "text", "text": "süß!" },
            { "type": "tool_use", "id": "T", "name": "Bash", "input": { "command": "ls" } },
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {
            "input_tokens": 7, "output_tokens": 9, "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 0, "service_tier": "standard",
        },
    });
    assert_eq!(message, expected);
}

#[test]
fn a_message_as_a_stream() {
    let server = start(EVERYTHING);
    let answer = ask(server.address(), &hello("hi", true));
    assert_eq!(answer.status, 200);
    assert!(answer.headers.contains(&"content-type: text/event-stream; charset=utf-8".to_owned()));
    let events = answer.events();
    let shown: Vec<String> = events.iter().map(shown).collect();
    let expected = [
        "message_start",
        "0 start thinking",
        "0 thinking_delta hm",
        "0 signature_delta c2NyaXB0ZWQ=",
        "0 stop",
        "1 start text",
        "1 text_delta süß",
        "1 text_delta !",
        "1 stop",
        "2 start tool_use",
        r#"2 input_json_delta {"c"#,
        "2 input_json_delta omm",
        "2 input_json_delta and",
        r#"2 input_json_delta ":""#,
        r#"2 input_json_delta ls""#,
        "2 input_json_delta }",
        "2 stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(shown, expected);
    let thinking = json!({ "type": "thinking", "thinking": "", "signature": "" });
    assert_eq!(events[1]["content_block"], thinking);
    assert_eq!(events[5]["content_block"], json!({ "type": "text", "text": "" }));
    let call = &events[9]["content_block"];
    assert_eq!((&call["name"], &call["input"]), (&json!("Bash"), &json!({})));
    assert!(call["id"].as_str().is_some_and(|id| id.starts_with("toolu_")));
    let start = &events[0]["message"];
    assert_eq!((&start["content"], &start["stop_reason"]), (&json!([]), &Value::Null));
    assert_eq!(start["usage"]["input_tokens"], 7);
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"], json!({ "stop_reason": "tool_use", "stop_sequence": null }));
    assert_eq!(end["usage"], json!({ "output_tokens": 9 }));
}

/// An event in one line.
fn shown(event: &Value) -> String {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let index = &event["index"];
    match text(&event["type"]).as_str() {
        "content_block_start" => format!("{index} start {}", text(&event["content_block"]["type"])),
        "content_block_delta" => {
            let delta = event["delta"].as_object().expect("a delta");
            let (_, piece) = delta.iter().find(|(key, _)| *key != "type").expect("a piece");
            format!("{index} {} {}", text(&delta["type"]), text(piece))
        }
        "content_block_stop" => format!("{index} stop"),
        kind => kind.to_owned(),
    }
}

#[test]
fn what_no_turn_fits_is_answered_and_told() {
    let server = start("[[turn]]\nuser = ['known']\n[[turn.reply]]\nerror = { status = 500 }");
    let answer = ask(server.address(), &hello("something {user}", false));
    assert!(answer.said().contains("something {user}"), "{answer:?}");
    assert_eq!(server.unmatched().len(), 1);
    server.replace(script("default = 'I do not know.'"));
    assert_eq!(ask(server.address(), &hello("known", false)).said(), "I do not know.");
    assert_eq!(server.unmatched().len(), 2);
}

#[test]
fn a_turn_without_more_replies_is_told() {
    let call = Reply::call("Bash", json!({}));
    let script = Script::new().with(Turn::default().reply(call));
    let server = ModelServer::start(script).expect("a server");
    let messages = json!([
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": "I go" },
        { "role": "user", "content": [{ "type": "tool_result", "content": "x" }] },
    ]);
    let answer = ask(server.address(), &json!({ "messages": messages }));
    assert_eq!(answer.said(), "Turn 1 of the script has no reply for step 1.");
    assert_eq!(server.unmatched().len(), 1);
}

#[test]
fn what_programs_want_besides_is_answered() {
    let server = start("");
    let mut client = Client::new(server.address());
    for (method, path, body, status, chosen) in [
        ("POST", "/v1/messages/count_tokens?beta=true", "{\"messages\":[]}", 200, Chosen::Aside),
        ("GET", "/api/hello", "", 200, Chosen::Aside),
        ("GET", "/v1/other", "", 404, Chosen::Refused),
        ("POST", "/v1/messages", "no JSON", 400, Chosen::Refused),
        ("POST", "/v1/messages", "[]", 400, Chosen::Refused),
        ("POST", "/v1/chat/completions", "[]", 400, Chosen::Refused),
        ("POST", "/v1/responses", "no JSON", 400, Chosen::Refused),
        ("GET", "/v1/responses", "", 404, Chosen::Refused),
    ] {
        // All over one connection.
        client.send(method, path, body);
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status, status, "{method} {path}");
        let last = server.requests().pop().expect("a request");
        assert_eq!((last.path.as_str(), last.chosen), (path, chosen));
        if path.contains("count") {
            assert_eq!(answer.json(), json!({ "input_tokens": 3 }));
        }
    }
    client.send("HEAD", "/", "");
    assert_eq!(client.head().expect("a head").0, 200);
}

#[test]
fn requests_are_kept_without_secrets_until_they_are_taken() {
    let server = start("");
    ask(server.address(), &hello("one", false));
    ask(server.address(), &hello("two", false));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let first = &requests[0];
    assert_eq!((first.number, first.method.as_str()), (0, "POST"));
    assert_eq!(first.path, "/v1/messages?beta=true");
    assert_eq!(first.headers.get("x-app").map(String::as_str), Some("test"));
    assert!(!first.headers.contains_key("x-api-key"));
    assert_eq!(first.body["messages"][0]["content"], "one");
    assert!(first.at <= requests[1].at);
    assert_eq!(server.take_requests().len(), 2);
    assert_eq!(server.requests().len(), 0);
    ask(server.address(), &hello("three", false));
    assert_eq!(server.requests()[0].number, 2);
}

#[test]
fn a_request_can_be_waited_for() {
    let server = start("");
    assert!(server.wait_for(|_| true, Duration::from_millis(5)).is_none());
    let (looked, seen) = mpsc::channel();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let fits = |number: usize| {
                looked.send(number).expect("somebody listens");
                number == 1
            };
            server.wait_for(|got| fits(got.number), LIMIT)
        });
        ask(server.address(), &hello("first", false));
        // Whoever waits lets no request in between a look and the wait for the next one.
        assert_eq!(seen.recv(), Ok(0));
        ask(server.address(), &hello("second", false));
        let found = waiting.join().expect("no panic").expect("a request");
        assert_eq!(found.body["messages"][0]["content"], "second");
    });
    assert!(server.wait_for(|got| got.number == 0, Duration::ZERO).is_some());
}

#[test]
fn it_comes_back_where_it_was_and_says_the_same() {
    let play = || script(EVERYTHING);
    let server = ModelServer::start(play()).expect("a server");
    let address = server.address();
    let mut client = Client::new(address);
    let request = hello("hi", false);
    client.send("POST", "/v1/messages", &request.to_string());
    let before = client.answer().expect("an answer").json();
    drop(server);
    let server = ModelServer::start_at(play(), address).expect("the same port");
    assert_eq!(server.url(), format!("http://{address}"));
    let after = ask(address, &request).json();
    assert_eq!(after["content"][1], before["content"][1]);
    assert_eq!(after["usage"], before["usage"]);
    assert!(ModelServer::start_at(play(), address).is_err());
    let everywhere = "0.0.0.0:0".parse().expect("an address");
    assert!(ModelServer::start_at(play(), everywhere).is_err());
}
