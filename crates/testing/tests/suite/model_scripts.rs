//! The files of the scripted model, and the program that plays them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use atomic_testing::model::Script;
use serde_json::{Value, json};

use crate::model_client::{LIMIT, ask};
use crate::model_dialect::Api;

const PROGRAM: &str = env!("CARGO_BIN_EXE_model-server");

#[test]
fn mistakes_are_told_with_their_place_and_a_remedy() {
    let reply = |text: &str| format!("[[turn]]\n[[turn.reply]]\n{text}");
    let mut wrong = Vec::new();
    for (text, expected) in [
        (
            "[[turns]]".to_owned(),
            "1:3: there is no key `turns` here; use `default` or `turn`, or remove it",
        ),
        ("[[turn]]\nusr = ['x']\n".to_owned(), "2:1: there is no key `usr` here; use `name`"),
        ("default = 1".to_owned(), "1:11: this is the number 1; write a text in quotes instead"),
        ("[[turn]]\nuser = 'x'".to_owned(), "2:8: this is the text \"x\"; write a list"),
        ("[[turn]]\nno_tools = 'x'".to_owned(), "2:12: this is the text \"x\"; write `true` or"),
        ("\n[[turn]]\nuser = ['x']".to_owned(), "2:1: the key `reply` is missing; add it"),
        ("[[turn]]\nreply = []".to_owned(), "2:9: the turn has no reply; add a `[[turn.reply]]`"),
        ("[[turn]]\nuser = [".to_owned(), "2:9: this is not TOML: unclosed array"),
        ("[[turn]]\nname = 'ü' 'x'".to_owned(), "2:12: this is not TOML: "),
        (reply(""), "2:1: the reply is empty; add `do`"),
        (reply("do = [{ say = 'x', think = 'y' }]"), "3:7: an entry of `do` does several"),
        (reply("do = [\n    { say = 'x' },\n    {},\n]"), "5:5: an entry of `do` is empty; write"),
        (reply("stop = 'x'\n[[turn.reply]]"), "4:1: the reply is empty; add `do`"),
        (reply("do = ['x']"), "3:7: this is the text \"x\"; write a table, `{ … }`, instead"),
        (reply("do = [{}]"), "3:7: an entry of `do` is empty; write `say`, `think` or `call`"),
        (reply("do = [{ shout = 'x' }]"), "3:9: there is no key `shout` here; use `say`"),
        (reply("do = [{ call = { input = {} } }]"), "3:16: the key `tool` is missing; add it"),
        (reply("do = [{ call = { tool = 'X', input = 'x' } }]"), "3:7: the `input` of a call"),
        (reply("error = { status = 200 }"), "3:9: the `status` of an error is not from 400"),
        (reply("error = { status = 429 }\nhang = true"), "2:1: `hang`, `error` and `broken`"),
        (reply("error = { status = 429 }\nstop = 'x'"), "2:1: a reply with `error` says nothing"),
        (reply("broken = 'slow'"), "3:10: `slow` is not known here; use one of `close`, `cut`"),
        (reply("chunk = 0\nstop = 'x'"), "2:1: `chunk` is 0; give the characters of a piece"),
        (reply("delay_ms = -1\nstop = 'x'"), "3:12: this is the number -1; write a whole number"),
        (reply("stop = 'x'\nstop = 'y'"), "4:1: this key is given twice; remove one of them"),
    ] {
        let error = Script::parse(&text).expect_err(&text).to_string();
        if !error.starts_with(expected) || !error.contains(';') {
            wrong.push(format!("{text}\n  said     {error}\n  expected {expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}

#[test]
fn the_example_and_the_documentation_are_scripts() {
    let example = Script::parse(include_str!("../../examples/model/hello.toml"));
    assert_eq!(example.expect("a script").turns.len(), 5);
    let page = include_str!("../../../../docs/model-server.md");
    let scripts = page.split("```toml\n").skip(1).map(|rest| rest.split_once("```"));
    let scripts: Vec<_> = scripts.map(|block| Script::parse(block.expect("an end").0)).collect();
    assert!(!scripts.is_empty());
    for script in scripts {
        script.expect("a script");
    }
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

#[test]
fn the_program_refuses_what_it_cannot_play() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[[turn]]\nusr = ['x']\n").expect("a file");
    let path = file.to_str().expect("text");
    let place = format!("{path}:2:1: there is no key `usr` here; use");
    for (arguments, said) in [
        (&[path][..], place.as_str()),
        (&["/no/such/file"], "/no/such/file: No such file"),
        (&[], "usage: model-server"),
        (&[path, "--port", "x"], "--port wants a number"),
        (&[path, "--loud"], "`--loud` is not understood"),
    ] {
        let output = run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.starts_with(said), "{error}");
    }
}

/// Ends the program with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_program_tells_how_to_use_it_and_what_comes_in() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let text = "[[turn]]\nname = 'greet'\n[[turn.reply]]\ndo = [{ say = 'Hello' }]";
    file.write_all(text.as_bytes()).expect("a script");
    let path: &Path = file.path();
    let command = Command::new(PROGRAM).arg(path).stdout(Stdio::piped()).spawn();
    let mut program = Ended(command.expect("it runs"));
    let out = program.0.stdout.take().expect("its output");
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        lines.map_while(|line| send.send(line).ok()).count()
    });
    let mut lines = std::iter::from_fn(|| receive.recv_timeout(LIMIT).ok());
    let base = lines
        .find_map(|line| line.strip_prefix("export ANTHROPIC_BASE_URL=http://").map(str::to_owned));
    let address: SocketAddr = base.and_then(|base| base.parse().ok()).expect("an address");
    assert!(lines.any(|line| line == "export ANTHROPIC_API_KEY=any"));
    let settings = lines.find_map(|line| {
        let settings = line.strip_prefix("export OPENCODE_CONFIG_CONTENT='")?.strip_suffix('\'')?;
        serde_json::from_str::<Value>(settings).ok()
    });
    let completions = &settings.expect("settings")["provider"]["completions"];
    assert_eq!(completions["options"]["baseURL"], format!("http://{address}/v1"));
    let copilot = format!("export COPILOT_PROVIDER_BASE_URL=http://{address}/v1");
    assert!(lines.any(|line| line == copilot));
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(ask(address, &request).said(), "Hello");
    let line = lines.find(|line| line.starts_with("POST")).expect("a line for the request");
    assert_eq!(line, "POST /v1/messages?beta=true m 1 messages: turn 1 (greet), step 0");
    Api::Responses.ask(address, &Api::Responses.hello("hi", true));
    let line = lines.find(|line| line.starts_with("POST")).expect("a line for the request");
    assert_eq!(line, "POST /v1/responses m 1 messages: turn 1 (greet), step 0");
}
