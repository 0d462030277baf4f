//! `atomic -p`: one turn, with the scripted agent.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::Value;

use crate::env::{Ran, TestEnv, ran};

const SCRIPT: &str = r#"
[[turn]]
agent = "debugger"
do = [{ say = "I am the debugger." }]

[[turn]]
prompt = ["Which colour"]
absent = ["The user's answer"]
do = [{ ask = { question = "Which?", options = [{ label = "Red" }, { label = "Blue" }] } }]

[[turn]]
prompt = ["The user's answer: Blue"]
do = [{ say = "Blue it is." }]

[[turn]]
prompt = ["Fail"]
do = [{ say = "I try." }, { fail = "exit" }]

[[turn]]
do = [
    { say = "First I look.\nAnd look." },
    { run = "echo done > made.txt" },
    { say = "Then I am done." },
]
"#;

fn turn(env: &TestEnv, args: &[&str]) -> Ran {
    let script = env.script(SCRIPT);
    let mut command = env.atomic(args);
    command.args(["--backend", "script", "--script"]).arg(script);
    ran(command)
}

#[test]
fn in_a_pipe_there_is_what_the_agent_says_and_nothing_else() {
    let env = TestEnv::new();
    let ended = turn(&env, &["-p", "Do it"]);
    let said = "First I look.\nAnd look.\nThen I am done.\n";
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), said, ""));
    assert_eq!(fs::read_to_string(env.work().join("made.txt")).unwrap(), "done\n");
    let listed = env.run(["sessions"]).stdout;
    assert!(listed.contains("completed") && listed.contains("Do it"), "{listed}");
}

#[test]
fn without_a_session_nothing_is_left() {
    let env = TestEnv::new();
    let ended = turn(&env, &["-p", "Do it", "--no-session"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.stdout.ends_with("Then I am done.\n"), "{}", ended.stdout);
    assert!(!env.work().join(".atomic").exists() && !env.outside("home/.atomic").exists());
    // There would be nothing to come back to with an answer.
    let asked = turn(&env, &["-p", "Which colour", "--no-session"]);
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(!asked.stderr.contains("Resume with"), "{}", asked.stderr);
}

#[test]
fn a_question_waits_for_its_answer() {
    let env = TestEnv::new();
    let asked = turn(&env, &["-p", "Which colour"]);
    assert_eq!((asked.code, asked.stdout.as_str()), (Some(3), ""), "{asked:?}");
    assert!(asked.stderr.contains("1. Red") && asked.stderr.contains("atomic answer"), "{asked:?}");
    let answered = env.run(["answer", "last", "Blue", "--resume"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    assert!(answered.stdout.ends_with("Blue it is.\n"), "{}", answered.stdout);
}

#[test]
fn what_fails_says_why_and_how_to_go_on() {
    let env = TestEnv::new();
    let failed = turn(&env, &["-p", "Fail"]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), "I try.\n"), "{failed:?}");
    assert!(failed.stderr.contains("ended in the middle of a turn"), "{}", failed.stderr);
    assert!(failed.stderr.contains("Resume with: atomic resume "), "{}", failed.stderr);
}

#[test]
fn agents_facts_and_the_prompt_from_a_pipe() {
    let env = TestEnv::new();
    let ended = turn(&env, &["-p", "x", "--agent", "debugger"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "I am the debugger.\n"));
    let facts = turn(&env, &["-p", "x", "--json"]).stdout;
    assert!(facts.lines().all(|line| line.starts_with("{\"seq\":")), "{facts}");
    assert!(facts.contains("\"workflow\":\"prompt\""), "{facts}");

    let script = env.script(SCRIPT);
    let mut command = env.atomic(["-p", "-", "--script"]);
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"Do it\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("Then I am done.\n"));
}

#[test]
fn what_makes_no_sense_starts_nothing() {
    let env = TestEnv::new();
    let table: &[(&[&str], &str)] = &[
        (&["-p", " "], "the prompt is empty"),
        (
            &["-p", "x", "--agent", "debuger"],
            "Agent not found: \"debuger\" (did you mean \"debugger\"?)",
        ),
        (&["--agent", "debugger"], "--prompt"),
        (&["--model", "x"], "give a prompt with -p"),
    ];
    for (args, says) in table {
        let refused = turn(&env, args);
        assert_eq!(refused.code, Some(2), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains(says), "{args:?}: {}", refused.stderr);
    }
    assert!(!env.work().join(".atomic").exists(), "nothing was started");
}

/// What agents took over when the session was last begun or resumed.
fn inherited(env: &TestEnv) -> String {
    let facts = env.facts();
    let newest = facts.iter().rev().find(|fact| fact["settings"].is_object()).unwrap();
    let settings = &newest["settings"];
    // Without trust the wish is kept, and nothing is taken over.
    let inherit =
        if settings["trusted"] == true { &settings["inherit"] } else { &Value::from("none") };
    inherit.as_str().unwrap().to_owned()
}

/// The usual differs between a turn and a workflow, and trust can be said in a file that a resumed
/// session does not read.
#[test]
fn what_is_taken_over_changes_only_when_somebody_says_so() {
    let trusting = |env: &TestEnv, args: &[&str]| {
        let mut command = env.atomic(args);
        command.env("ATOMIC_TRUST", "true");
        if args[0] == "-p" {
            command.args(["--backend", "script", "--script"]).arg(env.script(SCRIPT));
        }
        ran(command);
        inherited(env)
    };
    let env = TestEnv::new();
    assert_eq!(trusting(&env, &["-p", "Which colour"]), "all");
    assert_eq!(trusting(&env, &["resume", "last"]), "all");
    assert_eq!(trusting(&env, &["resume", "last", "--inherit", "none"]), "none");
    assert_eq!(trusting(&env, &["resume", "last"]), "none", "it was said once");

    let env = TestEnv::new();
    assert_eq!(env.run(["config", "set", "--user", "trust", "true"]).code, Some(0));
    turn(&env, &["-p", "Which colour", "--inherit", "project"]);
    let resumed = |args: &[&str]| {
        env.run([&["resume", "last"], args].concat());
        inherited(&env)
    };
    let table: [(&[&str], &str); 6] = [
        (&[], "project"),
        (&["--inherit", "all"], "all"),
        (&[], "all"),
        (&["--trust=false"], "none"),
        // Trust is decided each time: this was said for that time only.
        (&["--inherit", "all"], "all"),
        (&["--trust"], "all"),
    ];
    for (args, expected) in table {
        assert_eq!(resumed(args), expected, "{args:?}");
    }

    let env = TestEnv::new();
    turn(&env, &["-p", "Which colour", "--inherit", "none"]);
    env.run(["resume", "last", "--trust"]);
    assert_eq!(inherited(&env), "none", "what was not wanted is not wanted later");
}
