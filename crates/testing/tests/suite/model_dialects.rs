//! What the scripted model does alike in every API.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use atomic_testing::model::{
    Action, ApiError, Break, Chosen, Ending, ModelServer, Reply, Script, Turn, Usage,
};
use serde_json::{Value, json};

use crate::model_client::{Answer, Client};
use crate::model_dialect::{APIS, Api, Said, ways};

fn start(text: &str) -> ModelServer {
    ModelServer::start(Script::parse(text).expect("a script")).expect("a server")
}

fn always(reply: Reply) -> ModelServer {
    ModelServer::start(Script::new().with(Turn::default().reply(reply))).expect("a server")
}

/// One of three words, as the API has it.
fn word<T>(api: Api, [messages, completions, responses]: [T; 3]) -> T {
    match api {
        Api::Messages => messages,
        Api::Completions => completions,
        Api::Responses => responses,
    }
}

#[test]
fn everything_a_reply_has_arrives() {
    let reply = Reply::default()
        .and(Action::Think("hm, ".to_owned()))
        .and(Action::Think("well".to_owned()))
        .and(Action::Say("süß!".to_owned()))
        .and(Action::Call { tool: "Bash".to_owned(), input: json!({ "command": "ls" }) })
        .and(Action::Call { tool: "Read".to_owned(), input: json!({}) });
    let usage =
        Usage { input: Some(7), output: Some(9), cache_read: Some(5), cache_write: Some(2) };
    let server = always(Reply { usage, chunk: "3".parse().ok(), ..reply });
    for (api, stream) in ways() {
        let heard = api.hear(server.address(), &api.hello("hi", stream));
        let shown = format!("{api:?} {stream}: {heard:?}");
        assert_eq!((heard.thought.as_str(), heard.said.as_str()), ("hm, well", "süß!"), "{shown}");
        let calls: Vec<_> =
            heard.calls.iter().map(|(_, tool, input)| (&**tool, &**input)).collect();
        assert_eq!(calls, [("Bash", r#"{"command":"ls"}"#), ("Read", "{}")], "{shown}");
        let ids: BTreeSet<_> = heard.calls.iter().map(|(id, _, _)| id).collect();
        assert_eq!(ids.len(), 2, "{shown}");
        assert!(ids.iter().all(|id| id.len() > 20), "{shown}");
        let stop = word(api, ["tool_use", "tool_calls", "completed"]);
        assert_eq!(heard.stop.as_deref(), Some(stop), "{shown}");
        assert_eq!(heard.cost, Some([14, 5, 9]), "{shown}");
        let pieces = [
            "hm,", " ", "wel", "l", "süß", "!", r#"{"c"#, "omm", "and", r#"":""#, r#"ls""#, "}",
            "{}",
        ];
        assert_eq!(heard.pieces, if stream { &pieces[..] } else { &[] }, "{shown}");
    }
}

#[test]
fn what_it_cost_is_estimated() {
    let server = always(Reply::say("twelve bytes"));
    for (api, stream) in ways() {
        let request = api.hello("hi", stream);
        let size = request.to_string().len() as u64;
        let heard = api.hear(server.address(), &request);
        assert_eq!(heard.cost, Some([size / 4, 0, 3]), "{api:?} {stream}");
    }
}

#[test]
fn why_it_stopped_is_said_in_the_words_of_the_api() {
    for (wanted, said) in [
        (None, ["end_turn", "stop", "completed"]),
        (Some("end_turn"), ["end_turn", "stop", "completed"]),
        (Some("tool_calls"), ["tool_use", "tool_calls", "completed"]),
        (Some("max_tokens"), ["max_tokens", "length", "max_output_tokens"]),
        (Some("length"), ["max_tokens", "length", "max_output_tokens"]),
        (Some("max_output_tokens"), ["max_tokens", "length", "max_output_tokens"]),
        (Some("refusal"), ["refusal", "content_filter", "content_filter"]),
        (Some("content_filter"), ["refusal", "content_filter", "content_filter"]),
        (Some("own"), ["own"; 3]),
    ] {
        let server = always(Reply { stop: wanted.map(str::to_owned), ..Reply::default() });
        for (api, stream) in ways() {
            let heard = api.hear(server.address(), &api.hello("hi", stream));
            assert_eq!(heard.stop.as_deref(), Some(word(api, said)), "{api:?} {stream} {wanted:?}");
            assert_eq!((heard.said.as_str(), heard.calls.len()), ("", 0));
        }
    }
}

#[test]
fn delays_and_pauses_take_their_time() {
    let server = start(
        "[[turn]]\n[[turn.reply]]\ndelay_ms = 40\nchunk = 1\npause_ms = 20\ndo = [{ say = 'abc' }]",
    );
    for api in APIS {
        let begin = Instant::now();
        let heard = api.hear(server.address(), &api.hello("hi", true));
        assert!(begin.elapsed() >= Duration::from_millis(80), "{api:?} {:?}", begin.elapsed());
        assert_eq!(heard.pieces, ["a", "b", "c"]);
    }
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
        do = [
            { think = "So I build." },
            { say = "I build." },
            { call = { tool = "Write", input = { path = "{workspace}/{user}" } } },
            { call = { tool = "Write", input = { path = "{workspace}/2" } } },
        ]
        [[turn.reply]]
        do = [{ say = "The tools said: {result}" }]
        "#,
    );
    for api in APIS {
        let mut said = vec![
            Said::System("You are the builder."),
            Said::User(&["<system-reminder>never build</system-reminder>", "build"]),
            Said::System("The environment:\n - Primary working directory: /w\n"),
        ];
        let tools = ["Bash", "Write"];
        let first = api.ask(server.address(), &api.request(false, &tools, &said)).json();
        let paths: Vec<_> = api.whole(&first).calls.into_iter().map(|(.., input)| input).collect();
        assert_eq!(paths, [r#"{"path":"/w/build"}"#, r#"{"path":"/w/2"}"#], "{api:?}");
        said.push(Said::Model(&first));
        said.extend([Said::Result("fine"), Said::Result("good")]);
        said.push(Said::User(&["<system-reminder>go on</system-reminder>"]));
        let heard = api.hear(server.address(), &api.request(true, &tools, &said));
        assert_eq!(heard.said, "The tools said: fine\ngood", "{api:?}");
        let received = server.take_requests().into_iter();
        let chosen: Vec<_> = received.map(|received| received.chosen).collect();
        let step = |step| Chosen::Turn { turn: 0, name: Some("build".to_owned()), step };
        assert_eq!(chosen, [step(0), step(1)], "{api:?}");
    }
}

#[test]
fn errors_have_the_words_of_the_provider() {
    for (status, anthropic, openai, code) in [
        (400, "invalid_request_error", "invalid_request_error", None),
        (401, "authentication_error", "invalid_request_error", Some("invalid_api_key")),
        (403, "permission_error", "request_forbidden", None),
        (404, "not_found_error", "invalid_request_error", Some("model_not_found")),
        (413, "request_too_large", "invalid_request_error", None),
        (429, "rate_limit_error", "requests", Some("rate_limit_exceeded")),
        (500, "api_error", "server_error", None),
        (503, "api_error", "server_error", None),
        (529, "overloaded_error", "server_error", None),
    ] {
        let server = always(Reply::error(status));
        for (api, stream) in ways() {
            let answer = api.ask(server.address(), &api.hello("hi", stream));
            let message = format!("The script answers with {status}.");
            let expected = match api {
                Api::Messages => {
                    json!({ "type": "error", "error": { "type": anthropic, "message": message } })
                }
                Api::Completions | Api::Responses => json!({ "error": {
                    "message": message, "type": openai, "param": null, "code": code,
                } }),
            };
            assert_eq!((answer.status, answer.json()), (status, expected), "{api:?} {stream}");
            assert!(!answer.headers.iter().any(|line| line.starts_with("retry-after")));
        }
    }
}

#[test]
fn errors_say_what_the_script_wants() {
    let error = ApiError {
        status: 429,
        kind: Some("own".to_owned()),
        message: Some("slow down".to_owned()),
        retry_after: Some(3),
    };
    let server = always(Reply { ending: Ending::Error(error), ..Reply::default() });
    for (api, stream) in ways() {
        let answer = api.ask(server.address(), &api.hello("hi", stream));
        assert!(answer.headers.contains(&"retry-after: 3".to_owned()), "{answer:?}");
        let openai = json!({ "type": "own", "code": "own", "message": "slow down", "param": null });
        let anthropic = json!({ "type": "own", "message": "slow down" });
        let expected = if api == Api::Messages { anthropic } else { openai };
        assert_eq!(answer.json()["error"], expected, "{api:?} {stream}");
    }
}

/// What comes of a reply that breaks.
fn break_it(how: Break, api: Api, stream: bool) -> Option<Answer> {
    let text = "A text that is long enough to have a middle.";
    let server = always(Reply { ending: Ending::Broken(how), ..Reply::say(text) });
    api.try_ask(server.address(), &api.hello("hi", stream))
}

#[test]
fn broken_answers_are_broken_as_wanted() {
    for (api, stream) in ways() {
        let shown = format!("{api:?} {stream}");
        let send = |how| break_it(how, api, stream).expect("an answer");
        assert!(break_it(Break::Close, api, stream).is_none(), "{shown}");
        let cut = send(Break::Cut);
        let end = word(api, ["end_turn", r#""stop""#, "output_item.done"]);
        assert!(
            !cut.is_whole && !cut.body.is_empty() && !cut.body.contains(end),
            "{shown} {cut:?}"
        );
        let begin = word(api, ["message_start", "completion.chunk", "response.created"]);
        assert_eq!(cut.body.contains(begin), stream, "{shown}");
        let garbage = send(Break::Garbage);
        assert!(garbage.is_whole && !garbage.body.contains("data:"), "{garbage:?}");
        assert!(serde_json::from_str::<Value>(&garbage.body).is_err(), "{shown}");
        let bad = send(Break::BadJson);
        let data = bad.body.split_once("data: ").map_or(bad.body.as_str(), |(_, data)| data);
        assert!(bad.is_whole && serde_json::from_str::<Value>(data).is_err(), "{bad:?}");
        assert_eq!(data.ends_with("{\n\n"), stream, "{shown} {data}");
        assert!(data.matches('{').count() > 1, "{shown} {data}");
        let empty = send(Break::Empty);
        assert_eq!((empty.status, empty.body.as_str(), empty.is_whole), (200, "", true), "{shown}");
        let html = send(Break::Html);
        assert!(html.headers.contains(&"content-type: text/html".to_owned()), "{shown}");
        assert!(html.body.starts_with("<!doctype html>") && html.status == 200, "{shown}");
    }
}

#[test]
fn a_stream_can_say_that_something_went_wrong() {
    for (api, stream) in ways() {
        let shown = format!("{api:?} {stream}");
        let answer = break_it(Break::ErrorEvent, api, stream).expect("an answer");
        let status = if stream { 200 } else { word(api, [529, 503, 503]) };
        assert_eq!((answer.status, answer.is_whole), (status, true), "{shown}");
        let last = if stream { answer.data().pop() } else { Some(answer.json()) };
        let last = last.expect("an event");
        let error = last.get("error").unwrap_or(&last);
        let kind = if api == Api::Responses && stream { "code" } else { "type" };
        let expected = word(api, ["overloaded_error", "server_error", "server_error"]);
        assert_eq!((&error[kind], stream), (&json!(expected), answer.data().len() > 1), "{shown}");
        assert_eq!(error["message"], "The script says it is overloaded.", "{shown}");
    }
}

#[test]
fn a_reply_can_end_without_a_reason() {
    let server = always(Reply::broken(Break::NoFinish));
    for (api, stream) in ways() {
        let heard = api.hear(server.address(), &api.hello("hi", stream));
        let shown = format!("{api:?} {stream}");
        assert_eq!((heard.said.as_str(), heard.stop), ("This reply is broken.", None), "{shown}");
    }
}

#[test]
fn a_hanging_reply_disturbs_nobody_and_ends_with_the_server() {
    for (api, stream) in ways() {
        let server = start(
            "[[turn]]\nuser = ['wait']\n[[turn.reply]]\nhang = true\ndo = [{ say = 'and then' }]\n\
             [[turn]]\n[[turn.reply]]\ndo = [{ say = 'You are {user}' }]",
        );
        let address = server.address();
        let mut waiting = Client::new(address);
        waiting.send("POST", api.path(), &api.hello("wait", stream).to_string());
        assert_eq!(waiting.head().expect("a head").0, 200);
        let sent = String::from_utf8(waiting.chunk().expect("a chunk")).expect("text");
        let end = word(api, ["message_stop", "[DONE]", "response.completed"]);
        assert!(!sent.contains(end), "{sent}");
        assert!(!stream || sent.contains("and then"), "{sent}");
        thread::scope(|scope| {
            for number in 0..32 {
                scope.spawn(move || {
                    let name = format!("number {number}");
                    let heard = api.hear(address, &api.hello(&name, number % 2 == 0));
                    assert_eq!(heard.said, format!("You are {name}"));
                });
            }
        });
        assert_eq!(server.requests().len(), 33);
        assert!(waiting.is_waiting(), "{api:?} {stream}");
        server.stop();
        assert!(waiting.chunk().is_none());
        assert!(TcpStream::connect(address).is_err());
    }
}
