//! The real programs, driven by the real binary, with a scripted model. What is here is about Claude
//! Code, or about a `Stand` for any of them.

mod acp;
mod budgets;
mod copilot;
mod demo_model;
mod hostile;
mod lists;
mod login;
mod opencode;
mod opencode_lists;
mod payer;
mod program;
mod restrictions;
mod snake;
mod together;
mod transcripts;
mod trust;
mod turn;
mod waiting;

use std::process::Command;
use std::time::Duration;

use atomic_testing::agents::{CLAUDE, ClaudeHome, CopilotHome, OpenCodeHome};
use atomic_testing::model::{ModelServer, Received, Reply, Script, Turn};
use program::Program;
use serde_json::{Value, json};

use crate::env::{Ran, TestEnv, ran};
use crate::orphans::in_a_terminal;
use crate::process::{Nonce, Running, SOON, nothing_has};

/// Makes a test of each function for the newest and for the oldest Claude Code. `cargo xtask test`
/// plays only a tenth of the tests in a module `older`.
macro_rules! in_both_versions {
    ($($check:ident)*) => {
        mod newer {
            $(
                #[test]
                fn $check() {
                    super::$check(atomic_testing::agents::CLAUDE);
                }
            )*
        }

        mod older {
            $(
                #[test]
                fn $check() {
                    super::$check(atomic_testing::agents::OLDER_CLAUDE);
                }
            )*
        }
    };
}

use in_both_versions;

/// Longer than any turn takes until the model is asked.
const ASKED: Duration = Duration::from_secs(240);

/// A project, homes for programs, and their model.
struct Stand {
    env: TestEnv,
    programs: Vec<Program>,
    claude: ClaudeHome,
    opencode: OpenCodeHome,
    copilot: CopilotHome,
    server: ModelServer,
}

impl Stand {
    /// With Claude Code in a version.
    fn new(version: &'static str, script: Script) -> Self {
        Self::of(&[Program::Claude(version)], script)
    }

    fn of(programs: &[Program], script: Script) -> Self {
        let server = ModelServer::start(script).unwrap();
        let env = TestEnv::new();
        std::fs::create_dir(env.outside("tmp")).unwrap();
        Self {
            env,
            programs: programs.to_owned(),
            claude: ClaudeHome::default(),
            opencode: OpenCodeHome::new(&server.url()),
            copilot: CopilotHome::default(),
            server,
        }
    }

    /// `atomic` with the programs on its path.
    fn atomic(&self, args: &[&str]) -> Command {
        let mut command = self.env.atomic(args);
        let path = std::env::var_os("PATH").unwrap();
        let folders = self.programs.iter().map(|program| program.folder());
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)));
        command.env("PATH", path.unwrap());
        let url = self.server.url();
        let homes = [self.claude.env(&url), self.opencode.env(), self.copilot.env(&url)];
        for (name, value) in homes.into_iter().flatten() {
            // Sessions are listed in the home of the test.
            if name != "HOME" {
                command.env(name, value);
            }
        }
        command.env("ATOMIC_RETRY_WINDOW", "2s").env("TMPDIR", self.env.outside("tmp"));
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

    /// Of everything that was started here, nothing is left after two seconds.
    fn has_no_processes(&self) {
        nothing_has(&format!("TMPDIR={}", self.env.outside("tmp").display()));
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

/// A model that asks which colour it is to be, and goes on when it is told.
fn asking(program: Program) -> Script {
    Script::new()
        .with(Turn::default().user("The user's answer: Blue").reply(Reply::say("Blue it is.")))
        .with(
            Turn::default()
                .user("Paint it")
                .reply(program.asks(&["Which colour?"]))
                .reply(Reply::say("So: {result}")),
        )
}

/// The program does not ask again when it is resumed, so the answer is a new message.
fn a_question_outlives_its_asker_and_the_answer_is_one_new_message(version: &'static str) {
    let stand = Stand::new(version, asking(Program::Claude(version)));
    question_outlives_its_asker(&stand, || ());
}

in_both_versions! { a_question_outlives_its_asker_and_the_answer_is_one_new_message }

/// Kills `atomic` at a question, sees what is left, and answers.
fn question_outlives_its_asker(stand: &Stand, left: impl FnOnce()) {
    let program = stand.programs[0];
    let mut command = stand.atomic(&["-p", "Paint it", "--json", "--backend", program.name()]);
    command.env("ATOMIC_ON_QUESTION", "pause");
    let running = Running::start(command);
    stand.asked("Paint it");
    let sessions = stand.env.work().join(".atomic/sessions");
    crate::env::eventually("the question is on disk", ASKED, || crate::question::asked(&sessions));
    running.kill();
    left();
    let before = stand.server.requests().len();
    let answered = stand.run(&["answer", "last", "Blue", "--resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.stdout.ends_with("Blue it is.\n"), "{}", answered.stdout);

    let after = stand.server.requests().split_off(before);
    let talks: Vec<&Received> = after.iter().filter(|r| r.body["messages"].is_array()).collect();
    let last = &talks.last().unwrap().body;
    assert_eq!(told(last, "The user's answer: Blue"), 1, "{program:?}: {last:#}");
    let prompts = last.to_string().matches("Paint it").count();
    assert_eq!(prompts, 1, "{program:?}: the prompt is not repeated");
}

/// How many messages of the user have this in them.
fn told(body: &Value, text: &str) -> usize {
    having(body, text, |role| role == "user")
}

/// How many messages that are not the model's own have this in them: some programs hand over the
/// results of tools as the user's.
fn heard(body: &Value, text: &str) -> usize {
    having(body, text, |role| role != "assistant")
}

fn having(body: &Value, text: &str, by: impl Fn(&Value) -> bool) -> usize {
    let messages = body["messages"].as_array().unwrap().iter();
    let theirs = messages.filter(|message| by(&message["role"]));
    theirs.filter(|message| message.to_string().contains(text)).count()
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
    let program = Program::Claude(CLAUDE);
    let both = program.asks(&["Which snake?", "Which food?"]);
    let answered = ["You asked: Which snake?", "The user's answer: Blue", "You asked: Which food?"];
    let told = answered.iter().fold(Turn::default(), |turn, text| turn.user(text));
    let script = Script::new()
        .with(told.reply(Reply::say("Both are known.")))
        .with(Turn::default().user("Paint").reply(both));
    let stand = Stand::of(&[program], script);
    assert_eq!(stand.run(&["-p", "Paint"]).code, Some(3));
    let before = facts(&stand);
    assert_eq!(of_type(&before, "question_asked"), 2, "{before:#?}");
    let spent = || stand.env.summary()["tokens"].as_u64().unwrap();
    let spent_before = spent();
    assert!(spent_before > 0, "a turn that was stopped has cost something: {before:#?}");

    assert_eq!(stand.run(&["answer", "last", "q1", "Blue"]).code, Some(0));
    assert_eq!(stand.run(&["resume", "last"]).code, Some(3), "one is still open");
    let ended = stand.run(&["answer", "last", "q2", "Red", "--resume"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.ends_with("Both are known.\n"), "{}", ended.stdout);
    let after = facts(&stand);
    assert_eq!(of_type(&after, "answer_delivered"), 2);
    assert!(spent() > spent_before, "{after:#?}");
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
    heard_is_not_told_again(Program::Claude(CLAUDE));
}

fn heard_is_not_told_again(program: Program) {
    let script = Script::new()
        .with(Turn::default().user("cut off").reply(Reply::say("I know it already.")))
        .with(
            Turn::default()
                .user("Paint")
                .reply(program.asks(&["Which?"]))
                .reply(program.runs("true"))
                .reply(program.runs("touch heard; sleep 300")),
        );
    let stand = Stand::of(&[program], script);
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
    // The program is ahead of what Atomic has recorded of it.
    let is_recorded = || crate::question::acted_on_answer(&sessions);
    crate::env::eventually("the journal shows it", ASKED, is_recorded);
    running.kill();
    let ended = stand.run(&["resume", "last"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = last_text(&stand.asked("cut off").body);
    assert!(!told.contains("The user's answer"), "{told}");
}

/// What the program's shell has started is gone when we are killed outright.
#[test]
fn nothing_outlives_us() {
    nothing_outlives(Program::Claude(CLAUDE));
}

fn nothing_outlives(program: Program) {
    let nonce = Nonce::new();
    let turn = Turn::default().user("Scatter").reply(program.runs(&nonce.scatter_and_hang()));
    let stand = Stand::of(&[program], Script::new().with(turn));
    let scatter = ["-p", "Scatter", "--backend", program.name()];
    let running = Running::start(stand.atomic(&scatter));
    nonce.sleeps(4);
    running.kill();
    nonce.is_gone();
    stand.has_no_processes();
    for signal in ["INT", "TERM"] {
        let mut running = Running::start(stand.atomic(&scatter));
        nonce.sleeps(4);
        running.signal(signal);
        nonce.is_gone();
        assert_eq!(running.end().code, Some(4), "{signal}");
        stand.has_no_processes();
    }
    // A terminal that is closed sends HUP.
    let code = stand.env.outside("code");
    let mut terminal = in_a_terminal(&stand.atomic(&scatter), &code);
    nonce.sleeps(4);
    terminal.child().kill().unwrap();
    nonce.is_gone();
    let ended = || std::fs::read_to_string(&code).unwrap_or_default();
    crate::env::eventually("atomic ends", SOON, || ended().ends_with('\n'));
    assert_eq!(ended(), "4\n");
    stand.has_no_processes();
}

/// Each kind of trouble has its own words and its exit code, and the session can be resumed.
#[test]
fn trouble_is_told_apart_and_the_session_goes_on() {
    let reply = |reply: Reply| Script::new().with(Turn::default().reply(reply));
    let table = [
        ("limits the rate of requests", Reply::error(429), 4),
        ("overloaded", Reply::error(529), 4),
        ("cannot be reached or is out of order", Reply::error(500), 4),
        ("needs you to log in", Reply::error(401), 1),
    ];
    let stand = Stand::new(CLAUDE, reply(Reply::say("never said")));
    for (says, trouble, code) in table {
        stand.server.replace(reply(trouble));
        let failed = stand.run(&["-p", "Hello"]);
        assert_eq!(failed.code, Some(code), "{says}: {failed:?}");
        assert!(failed.stderr.contains(says), "{says}: {}", failed.stderr);
        stand.server.replace(reply(Reply::say("Back again.")));
        let resumed = stand.run(&["resume", "last", "--now"]);
        assert_eq!(
            (resumed.code, resumed.stdout.as_str()),
            (Some(0), "Back again.\n"),
            "{resumed:?}"
        );
    }
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
