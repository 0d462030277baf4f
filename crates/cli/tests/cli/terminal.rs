//! What reaches a terminal, and what becomes of output that cannot be written.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::env::{Ran, TestEnv, ran};
use crate::scene::{Scene, ask, gave_up, plan, planner, review, reviewer, say, worker};

/// Clears the screen, as nobody but us may.
const CLEAR: &str = "\u{1b}[2J";

/// Longer than any of this takes.
const LONGEST: Duration = Duration::from_secs(120);

/// The same command on a terminal of its own.
fn on_a_terminal(command: &Command) -> Ran {
    ran(terminal(command))
}

/// A terminal on which the command runs.
fn terminal(command: &Command) -> Command {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''")));
    let line = quoted.collect::<Vec<_>>().join(" ");
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    terminal.env_clear().current_dir(command.get_current_dir().unwrap()).stdin(Stdio::null());
    terminal.env("TERM", "xterm-256color");
    terminal.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    terminal
}

/// The same command on a terminal where somebody types each text once what is before it is seen,
/// and anything else is done that is to be done then.
pub(crate) fn typing(command: &Command, typed: &[(&str, &str, &dyn Fn())]) -> Ran {
    let mut terminal = terminal(command);
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = terminal.spawn().unwrap();
    let (mut keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let seen = Arc::new(Mutex::new(String::new()));
    let reader = std::thread::spawn({
        let seen = Arc::clone(&seen);
        move || {
            let mut bytes = [0; 1024];
            while let Some(length) = out.read(&mut bytes).ok().filter(|length| *length > 0) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..length]));
            }
        }
    });
    let deadline = Instant::now() + LONGEST;
    let mut wait_until = |what: &str, done: &mut dyn FnMut(&mut Child) -> bool| {
        while !done(&mut child) {
            if Instant::now() > deadline {
                child.kill().unwrap();
                panic!("{what} has not come: {:?}", seen.lock().unwrap());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    for (sign, text, then) in typed {
        wait_until(sign, &mut |_| seen.lock().unwrap().contains(sign));
        keys.write_all(text.as_bytes()).unwrap();
        then();
    }
    wait_until("the end", &mut |child| child.try_wait().unwrap().is_some());
    reader.join().unwrap();
    let stdout = seen.lock().unwrap().clone();
    Ran { code: child.wait().unwrap().code(), stdout, stderr: String::new() }
}

const COLOURS: &str = r#"
[[turn]]
do = [
    { say = "Let me think." },
    { run = "until [ -e go ]; do sleep 0.05; done" },
    { ask = { question = "Which?", options = [{ label = "Red" }, { label = "Blue" }] } },
    { say = "As you like it." },
]
"#;

const END_OF_INPUT: &str = "\u{4}";

fn asking(env: &TestEnv) -> Command {
    let script = env.script(COLOURS);
    let mut command = env.atomic(["-p", "Which colour?", "--backend", "script", "--script"]);
    command.arg(script);
    command
}

#[test]
fn the_end_of_the_input_at_a_question_pauses() {
    let env = TestEnv::new();
    fs::write(env.work().join("go"), "").unwrap();
    let ended = typing(&asking(&env), &[("2. Blue", END_OF_INPUT, &|| {})]);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stdout.contains("Paused session"), "{ended:?}");
    let facts = env.facts();
    let told = facts.iter().any(|fact| fact.to_string().contains("the input ended (Ctrl+D)"));
    assert!(told, "{facts:?}");
}

#[test]
fn the_end_of_the_input_without_a_question_is_none() {
    let env = TestEnv::new();
    let go = || fs::write(env.work().join("go"), "").unwrap();
    let typed: [(&str, &str, &dyn Fn()); 3] = [
        ("Let me think.", &format!("{END_OF_INPUT}early\n"), &|| {}),
        ("early", "", &go),
        ("2. Blue", "2\n", &|| {}),
    ];
    let ended = typing(&asking(&env), &typed);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("As you like it."), "{ended:?}");
}

/// A run whose only worker asks before it is done.
fn asks_in_a_run() -> Scene {
    let asks = worker("Task #1:").does([ask("Which?", &["Red", "Blue"]), say(DONE)]);
    Scene::of(&[("#1", &[])]).turn(asks).rest()
}

const DONE: &str = r#"{"status": "completed", "summary": "as you like it"}"#;

#[test]
fn a_terminal_that_cannot_draw_shows_lines_and_takes_a_typed_answer() {
    let env = TestEnv::new();
    let mut command = env.ralph_command(&asks_in_a_run().toml(), &[]);
    command.env("TERM", "dumb");
    let ended = typing(&command, &[("2. Blue", "2\n", &|| {})]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in ["Started Ralph session", "1. Red", "answer to q1: Blue", "#1 completed"] {
        assert!(ended.stdout.contains(line), "{line}: {ended:?}");
    }
    assert!(!ended.stdout.contains('\u{1b}'), "{:?}", ended.stdout);
}

#[test]
fn a_question_is_seen_and_answered_when_only_the_output_leads_elsewhere() {
    let env = TestEnv::new();
    let command = env.ralph_command(&asks_in_a_run().toml(), &[]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$0\" \"$@\" > shown.txt"]).arg(command.get_program());
    shell.args(command.get_args()).current_dir(env.work());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ended = typing(&shell, &[("2. Blue", "2\n", &|| {})]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shown = fs::read_to_string(env.work().join("shown.txt")).unwrap();
    assert!(shown.contains("1. Red") && shown.contains("answer to q1: Blue"), "{shown}");
}

/// Whatever an agent says, it clears the screen.
fn hostile() -> Scene {
    let plan = plan(&[("#1", &[]), ("#2", &[])]).replace("Make part", "Make \\u001b[2Jpart");
    Scene::default()
        .turn(planner().does([say(&plan)]))
        .turn(worker("Task #1:").does([gave_up(&format!("{CLEAR}it is\u{9b}2J broken"))]))
        .turn(worker("Task #2:").does([ask(&format!("{CLEAR}Which?"), &[&format!("{CLEAR}Red")])]))
        .turn(reviewer().does([review(&[])]))
}

fn is_harmless(text: &str) -> bool {
    !text.contains(CLEAR) && !text.contains("\u{9b}2J")
}

#[test]
fn nothing_that_agents_say_acts_on_the_terminal() {
    let prompt = format!("{CLEAR}Build it");
    let env = TestEnv::new();
    let script = env.script(&hostile().toml());
    let mut command =
        env.atomic(["run", "ralph", &prompt, "--workers", "2", "--max-attempts", "1", "--script"]);
    command.arg(script);
    let piped = ran(command);
    let commands: [&[&str]; 4] = [
        &["sessions"],
        &["sessions", "show", "last"],
        &["resume", "last", "--on-question", "pause"],
        &["answer", "last", "x"],
    ];
    let mut all = vec![piped];
    all.extend(commands.iter().map(|words| env.run(*words)));
    all.extend(commands.iter().map(|words| on_a_terminal(&env.atomic(*words))));
    for (number, ran) in all.iter().enumerate() {
        assert!(is_harmless(&ran.stdout), "{number}: {:?}", ran.stdout);
        assert!(is_harmless(&ran.stderr), "{number}: {:?}", ran.stderr);
    }
    let shown = &all[6].stdout;
    for seen in ["it is", "Which?", "\u{fffd}[2JRed", "\u{1b}[3"] {
        assert!(shown.contains(seen), "{seen:?}: {shown:?}");
    }

    let env = TestEnv::new();
    let live = env.ralph_command(
        &hostile().toml(),
        &["--workers", "2", "--max-attempts", "1", "--on-question", "pause"],
    );
    let live = on_a_terminal(&live);
    assert!(is_harmless(&live.stdout), "{:?}", live.stdout);
    assert!(live.stdout.contains("broken") && live.stdout.contains("Which?"), "{live:?}");
    assert!(live.stdout.contains("\u{1b}[31m✗"), "our own colours stay: {:?}", live.stdout);
}

#[test]
fn a_setting_cannot_act_on_the_terminal_but_stays_what_it_is() {
    let env = TestEnv::new();
    let value = format!("{CLEAR}m");
    let set = env.run(["config", "set", "model", &value]);
    assert_eq!(set.code, Some(0), "{set:?}");
    let unset = env.run(["config", "unset", &value]);
    for ran in [&set, &env.run(["config"]), &unset] {
        assert!(is_harmless(&ran.stdout) && is_harmless(&ran.stderr), "{ran:?}");
    }
    let get = ["config", "get", "model"];
    assert_eq!(env.run(get).stdout, format!("{value}\n"), "a program gets it as it is");
    let seen = on_a_terminal(&env.atomic(get));
    assert_eq!(seen.stdout, "\u{fffd}[2Jm\r\n", "a person sees it");
}

/// Runs it with a disk that is full where its output goes.
fn to_a_full_disk(mut command: Command) -> Ran {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { code: output.status.code(), stdout: String::new(), stderr }
}

#[test]
fn output_that_is_lost_is_no_success() {
    let env = TestEnv::new();
    fs::write(env.work().join("list.json"), r#"[{"description": "one"}]"#).unwrap();
    assert_eq!(env.ralph(&Scene::of(&[("#1", &[])]).rest().toml(), &[]).code, Some(0));
    let table: [&[&str]; 8] = [
        &["migrate", "list.json"],
        &["list"],
        &["show", "ralph"],
        &["doctor", "--json"],
        &["config", "get", "max_attempts"],
        &["config"],
        &["sessions"],
        &["graph", "ralph"],
    ];
    for words in table {
        let ran = to_a_full_disk(env.atomic(words));
        assert_eq!(ran.code, Some(1), "{words:?}: {ran:?}");
        let told = "error: the output cannot be written: No space left on device";
        assert_eq!(ran.stderr.matches(told).count(), 1, "{words:?}: {ran:?}");
    }
    // A run is paused, and says so by its exit code.
    let env = TestEnv::new();
    let ran = to_a_full_disk(env.ralph_command(&Scene::of(&[("#1", &[])]).rest().toml(), &[]));
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.stderr.contains("the output cannot be written"), "{ran:?}");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let env = TestEnv::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = env.atomic(["list"]).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
