//! The real Claude Code, driven by the real binary, with a scripted model.

mod demo_model;
mod lists;

use std::process::Command;
use std::time::Duration;

use atomic_testing::agents::{CLAUDE, ClaudeHome, OLDER_CLAUDE, folder};
use atomic_testing::model::{ModelServer, Received, Reply, Script, Turn};
use serde_json::{Value, json};

use crate::env::{Ran, TestEnv, ran};
use crate::process::{Nonce, Running};

/// Longer than any turn takes until the model is asked.
const ASKED: Duration = Duration::from_secs(60);

/// A project, a home for the program, and its model.
struct Stand {
    env: TestEnv,
    home: ClaudeHome,
    server: ModelServer,
    version: &'static str,
}

impl Stand {
    fn new(version: &'static str, script: Script) -> Self {
        let server = ModelServer::start(script).unwrap();
        Self { env: TestEnv::new(), home: ClaudeHome::default(), server, version }
    }

    /// `atomic` with the program on its path.
    fn atomic(&self, args: &[&str]) -> Command {
        let mut command = self.env.atomic(args);
        let path = std::env::var_os("PATH").unwrap();
        let folders = [folder("claude", self.version)];
        let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path)));
        command.env("PATH", path.unwrap());
        for (name, value) in self.home.env(&self.server.url()) {
            // Sessions are listed in the home of the test.
            if name != "HOME" {
                command.env(name, value);
            }
        }
        command.env("ATOMIC_RETRY_WINDOW", "2s");
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        ran(self.atomic(args))
    }

    /// Waits until the model is asked something in which this text is the last of the user.
    fn asked(&self, text: &str) -> Received {
        let fits = |received: &Received| last_text(&received.body).contains(text);
        self.server.wait_for(fits, ASKED).unwrap_or_else(|| panic!("nobody asked: {text}"))
    }

    fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.env.work()).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// The texts of a message.
fn texts(message: &Value) -> Vec<&str> {
    if let Value::String(text) = &message["content"] {
        return vec![text];
    }
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

fn last_text(body: &Value) -> String {
    let messages = body["messages"].as_array().into_iter().flatten();
    let mut users = messages.filter(|message| message["role"] == "user");
    users.next_back().map(|message| texts(message).join("\n")).unwrap_or_default()
}

/// An agent that asks, and then Ralph.
const GAME: &str = r#"{
  "name": "game",
  "sessionsDir": ".ralph/sessions",
  "nodes": [
    {"type": "agent", "id": "designer", "systemPrompt": "You choose looks.", "prompt": "Paint it: {prompt}"},
    {"type": "subgraph", "id": "build", "workflow": "ralph"}
  ]
}"#;

/// A question, then Ralph plans, works, finds a bug by its own checks, fixes it, reviews, fixes what
/// the review found, is interrupted in the middle and goes on. Every file is written by the real
/// program.
#[test]
fn ralph_builds_the_snake_game() {
    let mut script = demo_model::script();
    script.turns.extend(asking().turns);
    let stand = Stand::new(CLAUDE, script);
    stand.git(&["init", "--quiet", "--initial-branch=main"]);
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "Start"];
    stand.git(&[identity.as_slice(), commit.as_slice()].concat());

    std::fs::write(stand.env.outside("game.json"), GAME).unwrap();
    let game = stand.env.outside("game.json").display().to_string();
    let waiting = stand.run(&["run", &game, "Build a snake game in Rust", "--backend", "claude"]);
    assert_eq!(waiting.code, Some(3), "{waiting:?}");
    assert_eq!(stand.run(&["answer", "last", "Blue"]).code, Some(0));

    let mut running = Running::start(stand.atomic(&["resume", "last"]));
    stand.asked("Task #5:");
    running.signal("INT");
    let paused = running.end();
    assert_eq!(paused.code, Some(4), "{paused:?}");
    assert!(paused.stdout.contains("Resume with: atomic resume "), "{}", paused.stdout);

    let ended = stand.run(&["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let tasks = stand.env.tasks();
    assert_eq!(tasks.len(), 8, "{tasks:?}");
    assert!(tasks.iter().all(|task| task.ends_with(" completed")), "{tasks:?}");
    assert!(tasks.iter().any(|task| task.starts_with("#4-bug-1 ")), "a bug-fix task: {tasks:?}");
    assert!(tasks.iter().any(|task| task.starts_with("#7 ")), "a finding: {tasks:?}");
    assert!(stand.server.unmatched().is_empty(), "{:?}", stand.server.unmatched());
    used_the_tools_of_the_program(&stand);

    let mut test = Command::new("cargo");
    test.args(["test", "--offline", "--quiet"]).current_dir(stand.env.work());
    let tested = test.env_remove("CARGO_TARGET_DIR").output().unwrap();
    assert!(tested.status.success(), "the game's own tests: {tested:?}");
    assert_eq!(stand.git(&["status", "--porcelain"]), "", "everything is committed");
}

/// Nothing was asked before a tool was used, and all kinds of them were.
fn used_the_tools_of_the_program(stand: &Stand) {
    let facts = stand.env.facts();
    let used = |tool: &str| {
        let of_tool =
            |fact: &&Value| fact["report"]["tool"] == tool && fact["report"]["ok"] == true;
        facts.iter().filter(of_tool).count()
    };
    for tool in ["write", "edit", "read", "shell"] {
        assert!(used(tool) > 0, "{tool} was never used");
    }
    let asked = facts.iter().filter(|fact| fact["type"] == "question_asked").count();
    assert_eq!(asked, 1, "only the question of the designer");
    let spent = |fact: &&Value| fact["report"]["kind"] == "spent";
    let cost: f64 =
        facts.iter().filter(spent).filter_map(|f| f["report"]["cost_usd"].as_f64()).sum();
    let told = stand.env.summary()["costUsd"].as_f64().unwrap();
    assert!(cost > 0.0 && (told - cost).abs() < 1e-6, "{told} is not {cost}");
}

/// A model that asks which colour it is to be, and goes on when it is told.
fn asking() -> Script {
    let options = ["Red", "Blue"].map(|label| json!({ "label": label, "description": label }));
    let question = json!({
        "question": "Which colour?", "header": "Colour", "multiSelect": false, "options": options,
    });
    Script::new()
        .with(Turn::default().user("The user's answer: Blue").reply(Reply::say("Blue it is.")))
        .with(
            Turn::default()
                .user("Paint it")
                .reply(Reply::call("AskUserQuestion", json!({ "questions": [question] })))
                .reply(Reply::say("So: {result}")),
        )
}

/// The program does not ask again when it is resumed, so the answer is a new message.
#[test]
fn a_question_outlives_its_asker_and_the_answer_is_one_new_message() {
    for version in [CLAUDE, OLDER_CLAUDE] {
        let stand = Stand::new(version, asking());
        let mut command = stand.atomic(&["-p", "Paint it", "--json"]);
        command.env("ATOMIC_ON_QUESTION", "pause");
        let running = Running::start(command);
        stand.asked("Paint it");
        let sessions = stand.env.work().join(".atomic/sessions");
        crate::env::eventually("the question is on disk", ASKED, || {
            crate::question::asked(&sessions)
        });
        running.kill();
        let before = stand.server.requests().len();
        let answered = stand.run(&["answer", "last", "Blue", "--resume"]);
        assert_eq!(answered.code, Some(0), "{answered:?}");
        assert!(answered.stdout.ends_with("Blue it is.\n"), "{}", answered.stdout);

        let after = stand.server.requests().split_off(before);
        let talks: Vec<&Received> = after
            .iter()
            .filter(|r| r.path.starts_with("/v1/messages") && r.body["messages"].is_array())
            .collect();
        let last = &talks.last().unwrap().body;
        let with_answer = last["messages"].as_array().unwrap().iter().filter(|message| {
            message["role"] == "user" && message.to_string().contains("The user's answer: Blue")
        });
        assert_eq!(with_answer.count(), 1, "{version}: {last:#}");
        let prompts = last.to_string().matches("Paint it").count();
        assert_eq!(prompts, 1, "{version}: the prompt is not repeated");
    }
}

/// The facts of the only session of one turn.
fn facts(stand: &Stand) -> Vec<Value> {
    let sessions = stand.env.work().join(".atomic/sessions");
    let mut found = std::fs::read_dir(sessions).unwrap().map(|entry| entry.unwrap().path());
    let session = found.find(|path| path.is_dir()).unwrap();
    let text = std::fs::read_to_string(session.join("journal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type(facts: &[Value], kind: &str) -> usize {
    facts.iter().filter(|fact| fact["type"] == kind).count()
}

/// Everything one call asks is asked before the program is ended, and told together; what the turn
/// had cost until then counts.
#[test]
fn several_questions_at_once_are_asked_and_answered_together() {
    let question = |text: &str| {
        let options = ["Red", "Blue"].map(|label| json!({ "label": label, "description": label }));
        json!({ "question": text, "header": "Colour", "multiSelect": false, "options": options })
    };
    let both = json!({ "questions": [question("Which snake?"), question("Which food?")] });
    let answered = ["You asked: Which snake?", "The user's answer: Blue", "You asked: Which food?"];
    let told = answered.iter().fold(Turn::default(), |turn, text| turn.user(text));
    let script = Script::new()
        .with(told.reply(Reply::say("Both are known.")))
        .with(Turn::default().user("Paint").reply(Reply::call("AskUserQuestion", both)));
    let stand = Stand::new(CLAUDE, script);
    assert_eq!(stand.run(&["-p", "Paint"]).code, Some(3));
    let before = facts(&stand);
    assert_eq!(of_type(&before, "question_asked"), 2, "{before:#?}");
    let spent = |facts: &[Value]| facts.iter().filter(|f| f["report"]["kind"] == "spent").count();
    assert_eq!(spent(&before), 1, "a turn that was stopped has cost something: {before:#?}");

    assert_eq!(stand.run(&["answer", "last", "q1", "Blue"]).code, Some(0));
    assert_eq!(stand.run(&["resume", "last"]).code, Some(3), "one is still open");
    let ended = stand.run(&["answer", "last", "q2", "Red", "--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.ends_with("Both are known.\n"), "{}", ended.stdout);
    let after = facts(&stand);
    assert_eq!((of_type(&after, "answer_delivered"), spent(&after)), (2, 2));
}

/// A limit is for what comes next: what is done and paid for is kept.
#[test]
fn a_turn_that_crosses_a_limit_is_kept_when_it_is_done() {
    let hello = || Turn::default().reply(Reply::say("Hello."));
    let stand = Stand::new(CLAUDE, Script::new().with(hello()));
    let ended = stand.run(&["-p", "Hello", "--max-tokens", "10"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "Hello.\n"), "{ended:?}");
    let two = json!({ "name": "two", "nodes": [
        { "type": "subagent", "id": "one", "agent": "worker", "task": "One" },
        { "type": "subagent", "id": "two", "agent": "worker", "task": "Two" },
    ] });
    std::fs::write(stand.env.outside("two.json"), two.to_string()).unwrap();
    let two = stand.env.outside("two.json").display().to_string();
    let ended = stand.run(&["run", &two, "Go", "--max-tokens", "10"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    let ended = stand.run(&["resume", "last", "--max-tokens", "10000000"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let asked = |text: &str| {
        let requests = stand.server.requests();
        requests.iter().filter(|received| last_text(&received.body).contains(text)).count()
    };
    assert_eq!((asked("One"), asked("Two")), (1, 1), "nothing is paid for twice");
}

/// A program that does not get ready is not waited for longer than a turn may take.
#[test]
fn a_program_that_never_gets_ready_is_given_up() {
    use std::os::unix::fs::PermissionsExt as _;
    let stand = Stand::new(CLAUDE, Script::new());
    let program = stand.env.outside("claude");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = stand.atomic(&["-p", "Hello", "--turn-timeout", "2s"]);
    let path = format!("{}:/usr/bin:/bin", stand.env.outside("").display());
    let failed = ran({
        command.env("PATH", path);
        command
    });
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("took longer than"), "{}", failed.stderr);
}

/// Whoever has heard an answer is not told it again after a crash.
#[test]
fn an_answer_that_was_heard_is_not_told_again() {
    let options = ["Red", "Blue"].map(|label| json!({ "label": label, "description": label }));
    let question = json!({
        "question": "Which?", "header": "Colour", "multiSelect": false, "options": options,
    });
    let hang = json!({ "command": "touch heard; sleep 300" });
    let script = Script::new()
        .with(Turn::default().user("cut off").reply(Reply::say("I know it already.")))
        .with(
            Turn::default()
                .user("Paint")
                .reply(Reply::call("AskUserQuestion", json!({ "questions": [question] })))
                .reply(Reply::call("Bash", json!({ "command": "true" })))
                .reply(Reply::call("Bash", hang)),
        );
    let stand = Stand::new(CLAUDE, script);
    // Another process stays busy, so that the question is answered while its asker is there.
    let lanes = json!({ "name": "lanes", "nodes": [{ "type": "parallel", "id": "both", "branches": [
        { "type": "agent", "id": "asks", "prompt": "Paint" },
        { "type": "tool", "id": "works", "command": "while [ ! -e heard ]; do sleep 0.1; done" },
    ] }] });
    std::fs::write(stand.env.outside("lanes.json"), lanes.to_string()).unwrap();
    let lanes = stand.env.outside("lanes.json").display().to_string();
    let running = Running::start(stand.atomic(&["run", &lanes, "Go"]));
    let sessions = stand.env.work().join(".atomic/sessions");
    crate::env::eventually("the question is on disk", ASKED, || crate::question::asked(&sessions));
    assert_eq!(stand.run(&["answer", "last", "Blue"]).code, Some(0));
    let heard = stand.env.work().join("heard");
    crate::env::eventually("the answer is heard", ASKED, || heard.exists());
    running.kill();
    let ended = stand.run(&["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = last_text(&stand.asked("cut off").body);
    assert!(!told.contains("The user's answer"), "{told}");
}

/// What the program's shell has started is gone when we are killed outright.
#[test]
fn nothing_outlives_us() {
    let nonce = Nonce::new();
    let turn = Turn::default()
        .user("Scatter")
        .reply(Reply::call("Bash", json!({ "command": nonce.scatter_and_hang() })));
    let stand = Stand::new(CLAUDE, Script::new().with(turn));
    let running = Running::start(stand.atomic(&["-p", "Scatter"]));
    nonce.sleeps(4);
    running.kill();
    nonce.is_gone();
    for signal in ["INT", "TERM", "HUP"] {
        let mut running = Running::start(stand.atomic(&["-p", "Scatter"]));
        nonce.sleeps(4);
        running.signal(signal);
        nonce.is_gone();
        assert_eq!(running.end().code, Some(4), "{signal}");
    }
}

/// Each kind of trouble has its own words and its exit code, and the session can be resumed.
#[test]
fn trouble_is_told_apart_and_the_session_goes_on() {
    let reply = |reply: Reply| Script::new().with(Turn::default().reply(reply));
    let table: Vec<(&str, Reply)> = vec![
        ("limits the rate of requests", Reply::error(429)),
        ("overloaded", Reply::error(529)),
        ("cannot be reached or is out of order", Reply::error(500)),
        ("needs you to log in", Reply::error(401)),
    ];
    let stand = Stand::new(CLAUDE, reply(Reply::say("never said")));
    for (says, trouble) in table {
        stand.server.replace(reply(trouble));
        let failed = stand.run(&["-p", "Hello"]);
        assert_eq!(failed.code, Some(1), "{says}: {failed:?}");
        assert!(failed.stderr.contains(says), "{says}: {}", failed.stderr);
        stand.server.replace(reply(Reply::say("Back again.")));
        let resumed = stand.run(&["resume", "last"]);
        assert_eq!(
            (resumed.code, resumed.stdout.as_str()),
            (Some(0), "Back again.\n"),
            "{resumed:?}"
        );
    }
}

/// What is in the project runs only when the user trusts it.
#[test]
fn hooks_and_servers_of_a_project_run_only_when_it_is_trusted() {
    let script = Script::new().with(Turn::default().reply(Reply::say("Hello.")));
    let stand = Stand::new(CLAUDE, script);
    let work = stand.env.work();
    let hooked = stand.env.outside("hooked");
    let served = stand.env.outside("served");
    let command = format!("echo ran >> {}", hooked.display());
    let hooks =
        json!({ "UserPromptSubmit": [{ "hooks": [{ "type": "command", "command": command }] }] });
    std::fs::create_dir(work.join(".claude")).unwrap();
    std::fs::write(work.join(".claude/settings.json"), json!({ "hooks": hooks }).to_string())
        .unwrap();
    let serve = format!("echo ran >> {}", served.display());
    let servers = json!({ "mcpServers": { "own": { "command": "sh", "args": ["-c", serve] } } });
    std::fs::write(work.join(".mcp.json"), servers.to_string()).unwrap();

    let ran = |args: &[&str]| {
        let ended = stand.run(&[&["-p", "Hello"], args].concat());
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        let there = (hooked.exists(), served.exists());
        let _ = (std::fs::remove_file(&hooked), std::fs::remove_file(&served));
        there
    };
    assert_eq!(ran(&[]), (false, false), "nobody trusts it");
    assert_eq!(ran(&["--inherit", "all"]), (false, false), "to want it is not to trust it");
    assert_eq!(ran(&["--trust", "--inherit", "none"]), (false, false), "trusted, but not wanted");
    assert_eq!(ran(&["--trust", "--inherit", "project"]), (true, true));
    assert_eq!(ran(&["--trust"]), (true, true), "a turn of the user takes over everything");
}

/// An agent's list of tools holds, whatever the model wants.
#[test]
fn an_agent_uses_no_other_tools_than_its_own() {
    let turn = Turn::default()
        .user("Try")
        .reply(Reply::call("Write", json!({ "file_path": "made.txt", "content": "x" })))
        .reply(Reply::call("Bash", json!({ "command": "git --version; touch made.txt" })))
        .reply(Reply::call("Bash", json!({ "command": "git --version" })))
        .reply(Reply::say("{result}"));
    let stand = Stand::new(CLAUDE, Script::new().with(turn));
    let agents = stand.env.work().join(".opencode/agent");
    std::fs::create_dir_all(&agents).unwrap();
    let careful = "---\ndescription: Looks\ntools: [Read, 'shell(git:*)']\n---\nYou only look.\n";
    std::fs::write(agents.join("careful.md"), careful).unwrap();
    let ended = stand.run(&["-p", "Try", "--agent", "careful"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("git version"), "{}", ended.stdout);
    assert!(!stand.env.work().join("made.txt").exists(), "what is not allowed is not done");
    let asked = stand.asked("Try");
    let offered =
        asked.body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    let offered: Vec<&str> = offered.filter(|name| !name.starts_with("Deferred")).collect();
    assert!(
        offered.iter().all(|name| ["Bash", "Read", "AskUserQuestion"].contains(name)),
        "{offered:?}"
    );
    assert!(asked.body["system"].to_string().contains("You only look."));
}

/// The steps of a lane talk in one conversation.
#[test]
fn consecutive_agents_of_a_lane_share_a_conversation() {
    let turns = ["One", "Two"].map(|user| Turn::default().user(user).reply(Reply::say("Done.")));
    let script = turns.into_iter().fold(Script::new(), Script::with);
    let stand = Stand::new(CLAUDE, script);
    let workflow = json!({ "name": "both", "nodes": [
        { "type": "agent", "id": "one", "prompt": "One" },
        { "type": "agent", "id": "two", "prompt": "Two" },
    ] });
    std::fs::write(stand.env.outside("both.json"), workflow.to_string()).unwrap();
    let both = stand.env.outside("both.json").display().to_string();
    let ended = stand.run(&["run", &both, "Go"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let second = stand.asked("Two");
    assert!(second.body["messages"].to_string().contains("One"), "the second knows the first");
    let starts = stand.server.requests();
    let sessions: std::collections::BTreeSet<_> =
        starts.iter().filter_map(|r| r.headers.get("x-claude-code-session-id")).collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
}
