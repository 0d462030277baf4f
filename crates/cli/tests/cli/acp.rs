//! `atomic acp` on its own pipes: clients that are broken, gone, or killed with us.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::env::{TestEnv, eventually};
use crate::process::{Nonce, Running, SOON};
use crate::scene::{Scene, agent, run, say, worker};

/// A client that says what it likes.
pub(crate) struct Raw {
    pub(crate) process: Running,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) output: BufReader<ChildStdout>,
}

impl Raw {
    pub(crate) fn start(env: &TestEnv, script: &str) -> Self {
        Self::start_with(env, script, &[])
    }

    pub(crate) fn start_with(env: &TestEnv, script: &str, more: &[&str]) -> Self {
        let script = env.script(script);
        let mut command = env.atomic(["acp", "--backend", "script", "--script"]);
        command.arg(script).args(more);
        Self::start_as_it_is(command)
    }

    pub(crate) fn start_as_it_is(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Running::start_as_it_is(command);
        let input = process.child().stdin.take();
        let output = BufReader::new(process.child().stdout.take().unwrap());
        Self { process, input, output }
    }

    pub(crate) fn write(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn send(&mut self, id: u32, method: &str, params: &Value) {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&request.to_string());
    }

    /// The next line that is something. Every line is JSON, or the test fails here.
    pub(crate) fn hear(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the output has ended");
            let heard: Value = serde_json::from_str(&line).unwrap();
            if is_it(&heard) {
                return heard;
            }
        }
    }

    /// The answer to a request.
    pub(crate) fn ask(&mut self, id: u32, method: &str, params: &Value) -> Value {
        self.send(id, method, params);
        self.hear(|heard| heard["id"] == id && heard.get("method").is_none())
    }

    pub(crate) fn initialize(&mut self) {
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
        let answer = self.ask(1, "initialize", &params);
        assert_eq!(answer["result"]["agentInfo"]["name"], "atomic", "{answer}");
    }

    pub(crate) fn open(&mut self, env: &TestEnv) -> String {
        let answer = self.ask(2, "session/new", &json!({"cwd": env.work(), "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn prompt(&mut self, id: u32, session: &str, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(id, "session/prompt", &json!({"sessionId": session, "prompt": prompt}));
    }

    pub(crate) fn close_input(&mut self) {
        drop(self.input.take());
    }
}

#[test]
fn a_broken_client_harms_nothing() {
    let env = TestEnv::new();
    let script = Scene::default().turn(agent("assistant").does([say("Hello.")])).toml();
    let mut raw = Raw::start(&env, &script);
    let early = raw.ask(9, "session/new", &json!({"cwd": env.work(), "mcpServers": []}));
    assert_eq!(early["error"]["code"], -32_600, "{early}");
    raw.initialize();
    for line in ["not JSON", "", "[]", "{}", "\u{0}", "{\"jsonrpc\":\"2.0\",\"id\":77}", "null"] {
        raw.write(line);
    }
    let code = |answer: &Value| answer["error"]["code"].as_i64();
    let unknown = "0b7a4e7e-6f5a-4d7e-9a55-0123456789ab";
    let work = env.work();
    let table = [
        ("session/dance", json!({}), -32_601),
        ("session/new", json!({"cwd": "work", "mcpServers": []}), -32_602),
        ("session/new", json!({"cwd": work.join("nowhere"), "mcpServers": []}), -32_602),
        ("session/new", json!({"mcpServers": []}), -32_602),
        ("session/prompt", json!({"sessionId": unknown, "prompt": []}), -32_602),
        ("session/close", json!({"sessionId": unknown}), -32_602),
        ("session/load", json!({"sessionId": unknown, "cwd": work, "mcpServers": []}), -32_002),
        ("session/load", json!({"sessionId": "../x", "cwd": work, "mcpServers": []}), -32_002),
        ("session/resume", json!({"sessionId": "last", "cwd": work, "mcpServers": []}), -32_002),
    ];
    for (id, (method, params, expected)) in (10..).zip(table) {
        let answer = raw.ask(id, method, &params);
        assert_eq!(code(&answer), Some(expected), "{method} {params}: {answer}");
    }
    raw.write(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nobody"}}"#);
    let session = raw.open(&env);
    let empty = raw.ask(50, "session/prompt", &json!({"sessionId": session, "prompt": []}));
    assert_eq!(code(&empty), Some(-32_602), "{empty}");
    raw.prompt(51, &session, "Hi");
    let answer = raw.hear(|heard| heard["id"] == 51);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    raw.close_input();
    assert_eq!(raw.process.end().code, Some(0));
}

#[test]
fn a_failure_of_the_agent_is_an_error_that_says_why() {
    let env = TestEnv::new();
    let failing = agent("assistant").and("Fail").does([crate::scene::fail("exit")]);
    let login = agent("assistant").and("Login").does([crate::scene::fail("login")]);
    let well = agent("assistant").does([say("Hello.")]);
    let script = Scene::default().turn(failing).turn(login).turn(well).toml();
    let mut raw = Raw::start(&env, &script);
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "Fail");
    let failed = raw.hear(|heard| heard["id"] == 3);
    assert_eq!(failed["error"]["code"], -32_603, "{failed}");
    assert_eq!(failed["error"]["data"]["code"], "exited", "{failed}");
    raw.prompt(4, &session, "Login");
    let failed = raw.hear(|heard| heard["id"] == 4);
    assert_eq!(failed["error"]["code"], -32_000, "{failed}");
    raw.prompt(5, &session, "Hi");
    assert_eq!(raw.hear(|heard| heard["id"] == 5)["result"]["stopReason"], "end_turn");
}

#[test]
fn a_chat_keeps_within_its_ceilings() {
    let env = TestEnv::new();
    let dear = agent("assistant").does([crate::scene::cost(0.6), say("Dear.")]);
    let script = Scene::default().turn(dear).toml();
    let mut raw = Raw::start_with(&env, &script, &["--max-cost", "1"]);
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "One");
    assert_eq!(raw.hear(|heard| heard["id"] == 3)["result"]["stopReason"], "end_turn");
    for id in [4, 5] {
        raw.prompt(id, &session, "More");
        let refused = raw.hear(|heard| heard["id"] == id);
        assert_eq!(refused["error"]["data"]["code"], "ceiling", "{refused}");
    }
}

#[test]
fn when_the_input_ends_workflows_are_paused_and_nothing_is_left() {
    let env = TestEnv::new();
    let (task, chat) = (Nonce::new(), Nonce::new());
    let script = Scene::of(&[("#1", &[])])
        .turn(worker("Task #1").does([run(&task.scatter_and_hang())]))
        .turn(agent("assistant").does([run(&chat.scatter_and_hang())]))
        .toml();
    let mut raw = Raw::start(&env, &script);
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "/ralph Build it");
    // Another session at the same time.
    let other = raw.open(&env);
    raw.prompt(4, &other, "Hi");
    task.sleeps(4);
    chat.sleeps(4);
    raw.close_input();
    assert_eq!(raw.process.end().code, Some(0));
    task.is_gone();
    chat.is_gone();
    assert_eq!(env.summary()["status"], "paused");
}

#[test]
fn a_client_that_does_not_read_cannot_keep_us() {
    let env = TestEnv::new();
    let task = Nonce::new();
    // More than a pipe holds.
    let long = "x".repeat(200_000);
    let hangs = agent("assistant").does([say(&long), run(&task.scatter_and_hang())]);
    let mut raw = Raw::start(&env, &Scene::default().turn(hangs).toml());
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "Hi");
    task.sleeps(4);
    raw.close_input();
    assert_eq!(raw.process.end().code, Some(0));
    task.is_gone();
}

#[test]
fn a_signal_pauses_workflows_too() {
    let env = TestEnv::new();
    let task = Nonce::new();
    let hangs = worker("Task #1").does([run(&task.scatter_and_hang())]);
    let script = Scene::of(&[("#1", &[])]).turn(hangs).toml();
    let mut raw = Raw::start(&env, &script);
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "/ralph Build it");
    task.sleeps(4);
    raw.process.signal("TERM");
    assert_eq!(raw.process.end().code, Some(0));
    task.is_gone();
    assert_eq!(env.summary()["status"], "paused");
}

#[test]
fn nothing_outlives_us_when_we_are_killed_and_the_session_goes_on() {
    let env = TestEnv::new();
    let (task, chat) = (Nonce::new(), Nonce::new());
    let script = |hangs: bool| {
        let mut scene = Scene::of(&[("#1", &[])]);
        if hangs {
            scene = scene
                .turn(worker("Task #1").does([run(&task.scatter_and_hang())]))
                .turn(agent("assistant").does([run(&chat.scatter_and_hang())]));
        }
        scene.rest().toml()
    };
    let mut raw = Raw::start(&env, &script(true));
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "/ralph Build it");
    let other = raw.open(&env);
    raw.prompt(4, &other, "Hi");
    task.sleeps(4);
    chat.sleeps(4);
    raw.process.kill();
    task.is_gone();
    chat.is_gone();
    let mut raw = Raw::start(&env, &script(false));
    raw.initialize();
    let load = json!({"sessionId": session, "cwd": env.work(), "mcpServers": []});
    raw.send(3, "session/load", &load);
    let told = raw.hear(|heard| heard.to_string().contains("Your next message continues it"));
    assert!(told.to_string().contains("is interrupted"), "{told}");
    raw.hear(|heard| heard["id"] == 3);
    raw.prompt(4, &session, "Go on");
    let answer = raw.hear(|heard| heard["id"] == 4);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    eventually("it is completed", SOON, || env.summary()["status"] == "completed");
}

#[test]
fn a_completed_session_shows_its_result_in_an_editor() {
    let env = TestEnv::new();
    let script = Scene::of(&[("#1", &[])]).rest().toml();
    let mut raw = Raw::start(&env, &script);
    raw.initialize();
    let session = raw.open(&env);
    raw.prompt(3, &session, "/ralph Build it");
    raw.hear(|heard| heard["id"] == 3);
    let id = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    let completed = format!("Completed Ralph session: {id}");
    let workers = env.ledger();
    for (id, prompt) in [(4, "/resume"), (5, "/resume last"), (6, "/ralph --resume last")] {
        raw.prompt(id, &session, prompt);
        let told = raw.hear(|heard| heard.to_string().contains(&completed));
        assert!(told.to_string().contains("agent_message_chunk"), "{prompt}: {told}");
        raw.hear(|heard| heard.to_string().contains("Completed, not verified"));
        let answer = raw.hear(|heard| heard["id"] == id);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{prompt}: {answer}");
    }
    raw.prompt(7, &session, "/resume last \"and a menu\"");
    raw.hear(|heard| heard.to_string().contains("no agent would read the instruction"));
    raw.hear(|heard| heard["id"] == 7);
    assert_eq!(env.ledger(), workers, "no worker runs again");
}
