//! The scripted model, as programs see it.

use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use atomic_testing::model::{Break, Chosen, Ending, ModelServer, Reply, Script, Turn};
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
fn why_it_stopped_is_said_as_the_script_wants() {
    let server = start("[[turn]]\n[[turn.reply]]\nstop = 'refusal'");
    let message = ask(server.address(), &hello("hi", false)).json();
    assert_eq!((&message["stop_reason"], &message["content"]), (&json!("refusal"), &json!([])));
    let events = ask(server.address(), &hello("hi", true)).events();
    assert_eq!(events[1]["delta"]["stop_reason"], "refusal");
}

#[test]
fn delays_and_pauses_take_their_time() {
    let server = start(
        "[[turn]]\n[[turn.reply]]\ndelay_ms = 40\nchunk = 1\npause_ms = 20\ndo = [{ say = 'abc' }]",
    );
    let begin = Instant::now();
    let answer = ask(server.address(), &hello("hi", true));
    assert!(begin.elapsed() >= Duration::from_millis(80), "{:?}", begin.elapsed());
    let texts = answer.events();
    let texts = texts.iter().filter_map(|event| event["delta"]["text"].as_str());
    assert_eq!(texts.collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn steps_and_placeholders_follow_the_conversation() {
    let server = start(
        r#"
        [[turn]]
        name = "build"
        system = ["You are the builder", "environment"]
        user = ["build"]
        tools = ["Write"]
        [[turn.reply]]
        do = [{ call = { tool = "Write", input = { path = "{workspace}/{user}" } } }]
        [[turn.reply]]
        do = [{ say = "The tool said: {result}" }]
        "#,
    );
    let mut messages = vec![
        json!({ "role": "user", "content": [
            { "type": "text", "text": "<system-reminder>never build</system-reminder>" },
            { "type": "text", "text": "build" },
        ] }),
        json!({ "role": "system", "content": "The environment:\n - Primary working directory: /w\n" }),
    ];
    let request = |messages: &[Value]| {
        json!({
            "system": [{ "type": "text", "text": "You are the builder." }],
            "tools": [{ "name": "Bash" }, { "name": "Write" }],
            "messages": messages,
        })
    };
    let first = ask(server.address(), &request(&messages)).json();
    assert_eq!(first["content"][0]["input"], json!({ "path": "/w/build" }));
    messages.push(json!({ "role": "assistant", "content": first["content"] }));
    messages.push(json!({ "role": "user", "content": [
        { "type": "tool_result", "tool_use_id": "T", "content": [{ "type": "text", "text": "fine" }] },
        { "type": "text", "text": "<system-reminder>go on</system-reminder>" },
    ] }));
    let second = ask(server.address(), &request(&messages));
    assert_eq!(second.said(), "The tool said: fine");
    let chosen: Vec<_> = server.requests().into_iter().map(|received| received.chosen).collect();
    let step = |step| Chosen::Turn { turn: 0, name: Some("build".to_owned()), step };
    assert_eq!(chosen, [step(0), step(1)]);
    assert_eq!(server.unmatched().len(), 0);
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
fn errors_have_the_words_of_the_provider() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ] {
        let server =
            ModelServer::start(Script::new().with(Turn::default().reply(Reply::error(status))));
        let server = server.expect("a server");
        let answer = ask(server.address(), &hello("hi", true));
        let body = answer.json();
        assert_eq!((answer.status, &body["type"]), (status, &json!("error")));
        assert_eq!(body["error"]["type"], kind);
        assert!(!answer.headers.iter().any(|line| line.starts_with("retry-after")));
    }
    let server = start(
        "[[turn]]\n[[turn.reply]]\n\
         error = { status = 429, retry_after = 3, message = 'slow down', kind = 'own' }",
    );
    let answer = ask(server.address(), &hello("hi", false));
    assert!(answer.headers.contains(&"retry-after: 3".to_owned()), "{answer:?}");
    assert_eq!(answer.json()["error"], json!({ "type": "own", "message": "slow down" }));
}

#[test]
fn broken_answers_are_broken_as_wanted() {
    let text = "A text that is long enough to have a middle.";
    for stream in [true, false] {
        let send = |how| {
            let reply = Reply { ending: Ending::Broken(how), ..Reply::say(text) };
            let server = ModelServer::start(Script::new().with(Turn::default().reply(reply)));
            let server = server.expect("a server");
            let mut client = Client::new(server.address());
            client.send("POST", "/v1/messages", &hello("hi", stream).to_string());
            client.answer()
        };
        assert!(send(Break::Close).is_none());
        let cut = send(Break::Cut).expect("half an answer");
        assert!(!cut.is_whole && !cut.body.is_empty() && !cut.body.contains("end_turn"), "{cut:?}");
        assert_eq!(cut.body.contains("message_start"), stream);
        let garbage = send(Break::Garbage).expect("an answer");
        assert!(garbage.is_whole && !garbage.body.contains("data:"), "{garbage:?}");
        assert!(serde_json::from_str::<Value>(&garbage.body).is_err());
        let bad = send(Break::BadJson).expect("an answer");
        let data = bad.body.split_once("data: ").map_or(bad.body.as_str(), |(_, data)| data);
        assert!(bad.is_whole && serde_json::from_str::<Value>(data).is_err(), "{bad:?}");
        let empty = send(Break::Empty).expect("an answer");
        assert_eq!((empty.status, empty.body.as_str(), empty.is_whole), (200, "", true));
        let html = send(Break::Html).expect("an answer");
        assert!(html.headers.contains(&"content-type: text/html".to_owned()));
        assert!(html.body.starts_with("<!doctype html>") && html.status == 200);
        let event = send(Break::ErrorEvent).expect("an answer");
        assert_eq!(event.status, if stream { 200 } else { 529 });
        let last = if stream { event.events().pop() } else { Some(event.json()) };
        assert_eq!(last.expect("an event")["error"]["type"], "overloaded_error");
    }
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
fn a_hanging_reply_disturbs_nobody_and_ends_with_the_server() {
    let server = start(
        "[[turn]]\nuser = ['wait']\n[[turn.reply]]\nhang = true\ndo = [{ say = 'and then' }]\n\
         [[turn]]\n[[turn.reply]]\ndo = [{ say = 'You are {user}' }]",
    );
    let address = server.address();
    let mut waiting = Client::new(address);
    waiting.send("POST", "/v1/messages", &hello("wait", true).to_string());
    assert_eq!(waiting.head().expect("a head").0, 200);
    let sent = String::from_utf8(waiting.chunk().expect("a chunk")).expect("text");
    assert!(sent.contains("and then") && !sent.contains("message_stop"), "{sent}");
    thread::scope(|scope| {
        for number in 0..32 {
            scope.spawn(move || {
                let name = format!("number {number}");
                let answer = ask(address, &hello(&name, false));
                assert_eq!(answer.said(), format!("You are {name}"));
            });
        }
    });
    assert_eq!(server.requests().len(), 33);
    server.stop();
    assert!(waiting.chunk().is_none());
    assert!(TcpStream::connect(address).is_err());
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
