//! Wrong usage, and sessions that cannot be used: each has its message, and nothing is changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::env::{Ran, TestEnv, ran};
use crate::scene::Scene;

#[test]
fn help_texts() {
    let env = TestEnv::new();
    let verbs: [&[&str]; 24] = [
        &[],
        &["demo"],
        &["run"],
        &["acp"],
        &["resume"],
        &["answer"],
        &["fork"],
        &["check"],
        &["graph"],
        &["migrate"],
        &["doctor"],
        &["list"],
        &["show"],
        &["models"],
        &["mcp"],
        &["sessions"],
        &["sessions", "list"],
        &["sessions", "show"],
        &["init"],
        &["config"],
        &["config", "list"],
        &["config", "get"],
        &["config", "set"],
        &["config", "unset"],
    ];
    for verb in verbs {
        let ran = env.run(verb.iter().chain(&["--help"]));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{verb:?}");
        let name = format!("help {}", verb.join(" ")).trim().replace(' ', "_");
        insta::assert_snapshot!(name, ran.stdout);
    }
}

fn refused(ran: &Ran, code: i32, says: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    for said in says {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_started() {
    let env = TestEnv::new();
    let script = env.script(&Scene::of(&[("#1", &[])]).rest().toml());
    let script = script.to_str().unwrap();
    fs::write(env.work().join("spec.md"), "Build it\n").unwrap();
    let table: &[(&[&str], i32, &[&str])] = &[
        (&["run", "rolf", "Build it"], 2, &["Workflow not found: rolf", "ralph"]),
        (&["run", "ralph"], 2, &["Please provide a prompt for the ralph workflow."]),
        (&["run", "ralph", " "], 2, &["Please provide a prompt for the ralph workflow."]),
        (&["run", "ralph", "\"\""], 2, &["Please provide a prompt for the ralph workflow."]),
        (&["run", "loop"], 2, &["Please provide a prompt for the ralph workflow."]),
        (
            &["run", "second-opinion"],
            2,
            &["Please provide a prompt for the second-opinion workflow."],
        ),
        (&["run", "ralph", "spce.md"], 2, &["there is no file", "did you mean", "spec.md"]),
        (&["run", "ralph", "docs/plan"], 2, &["there is no file", "docs/plan"]),
        (
            &["run", "ralph", "Build it", "--backend", "claud"],
            2,
            &["--backend", "`claud`", "script"],
        ),
        (&["run", "ralph", "Build it", "--workers", "0"], 2, &["--workers"]),
        (&["run", "ralph", "Build it", "--timeout", "soon"], 2, &["`soon` is no length of time"]),
        (&["run", "ralph", "Build it", "--max-cost", "nan"], 2, &["`nan` is no amount of money"]),
        (&["run", "ralph", "Build it", "--max-cost=-1"], 2, &["`-1` is no amount of money"]),
        (&["run", "ralph", "Build it", "--feature-list", "x"], 2, &["--feature-list"]),
        (&["resume", "last"], 1, &["last: no session was started in"]),
        (&["resume", "00000000"], 1, &["there is no session `00000000`"]),
        (&["answer", "last", "yes"], 1, &["last: no session was started in"]),
        (&["sessions", "show", "7"], 1, &["there is no session `7`"]),
        (&["frobnicate"], 2, &["frobnicate"]),
    ];
    for (args, code, says) in table {
        let mut args = args.to_vec();
        if args[0] == "run" {
            args.extend(["--script", script]);
        }
        refused(&env.run(args), *code, says);
    }
    let ran = env.run(["run", "ralph", "--script", script]);
    assert_eq!(ran.stderr, "error: Please provide a prompt for the ralph workflow.\n");
    refused(&env.run(["run", "ralph", "Build it", "--backend", "script"]), 2, &["--script"]);
    assert!(!env.work().join(".ralph").exists(), "nothing was started");
    assert!(!env.outside("home/.atomic").exists(), "nothing was noted");
}

#[test]
fn without_an_agent_program_it_is_said_how_to_get_one() {
    let env = TestEnv::new();
    let bare = |args: &[&str]| {
        let mut command = env.atomic(args);
        // There is nothing in it.
        command.env("PATH", env.outside("home"));
        ran(command)
    };
    let none = ["no agent program is installed", "npm install -g", "atomic demo"];
    refused(&bare(&["run", "ralph", "Build it"]), 1, &none);
    refused(&bare(&["-p", "Hello"]), 1, &none);
    let not_this = ["claude is not installed", "npm install -g @anthropic-ai/claude-code"];
    refused(&bare(&["-p", "Hello", "--backend", "claude"]), 1, &not_this);
    assert!(!env.work().join(".atomic").exists(), "nothing was started");
}

#[test]
fn a_broken_script_is_named_with_the_line() {
    let table = [
        ("[[turn]]\nagent = \"worker\"\nwhen = 1\n", "script.toml:3:1: ", "unknown key `when`"),
        ("[[turn]]\ndo = [{ fail = \"badly\" }]\n", "script.toml:2:", "badly"),
        ("[[turn]\n", "script.toml:1:", ""),
        (
            "[[turn]]\ndo = [\n  { write = { path = \"../x\", text = \"\" } },\n]\n",
            "script.toml:3:",
            "leads out of the workspace",
        ),
    ];
    for (script, place, problem) in table {
        let env = TestEnv::new();
        let ran = env.ralph(script, &[]);
        let path = env.outside(place).display().to_string();
        refused(&ran, 1, &[&path, problem]);
        assert!(!env.work().join(".ralph").exists(), "nothing was started");
    }
}

/// Every file below a folder, with its content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(content(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

fn completed() -> TestEnv {
    let env = TestEnv::new();
    assert_eq!(env.ralph(&Scene::of(&[("#1", &[])]).rest().toml(), &[]).code, Some(0));
    env
}

/// Resuming is refused in these words, and the session's folder is as it was.
fn refused_untouched(env: &TestEnv, says: &[&str]) {
    let before = content(&env.session());
    refused(&env.run(["resume", "last"]), 1, says);
    assert!(content(&env.session()) == before, "something in the session was changed");
}

#[test]
fn of_a_completed_session_the_result_is_shown() {
    let env = completed();
    let id = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    let before = content(&env.session());
    let shown = env.run(["resume", "last"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains("✓ #1 Make part 1"), "{shown:?}");
    let end = format!("Completed Ralph session: {id}\nCompleted, not verified\n");
    assert!(shown.stdout.ends_with(&end), "{shown:?}");
    assert!(shown.stderr.contains(&format!("Works in: {}", env.work().display())), "{shown:?}");
    let json = env.run(["resume", &id, "--json"]);
    assert_eq!(json.code, Some(0), "{json:?}");
    assert!(json.stdout.contains("\"type\":\"run_finished\""), "{json:?}");
    // Nobody would read an instruction.
    refused(&env.run(["resume", &id, "more"]), 2, &[&id, "is completed", "atomic fork"]);
    assert!(content(&env.session()) == before, "something in the session was changed");
    // The program ended before it wrote the files.
    for file in ["session.json", "tasks.json", "progress.txt"] {
        fs::remove_file(env.session().join(file)).unwrap();
    }
    assert_eq!(env.run(["resume", &id]).code, Some(0));
    assert_eq!(env.summary()["status"], "completed");
    assert_eq!(env.tasks(), ["#1 completed"]);
    assert!(env.session().join("progress.txt").exists());
}

#[test]
fn a_foreign_journal_is_not_touched() {
    let env = completed();
    let journal = env.session().join("journal.jsonl");
    fs::write(&journal, "{\"level\":\"info\",\"msg\":\"started\"}\n").unwrap();
    refused_untouched(&env, &[journal.to_str().unwrap(), "is not a journal of Atomic"]);
    fs::remove_file(&journal).unwrap();
    refused_untouched(&env, &["there is a session.json but no journal.jsonl"]);
}

#[test]
fn a_journal_of_a_newer_format_is_refused() {
    let env = completed();
    let journal = env.session().join("journal.jsonl");
    let first = r#"{"seq":1,"at":"2031-01-01T00:00:00Z","type":"session_created","format":99}"#;
    fs::write(&journal, format!("{first}\n")).unwrap();
    let says = [journal.to_str().unwrap(), "newer version of Atomic", "format 99"];
    refused_untouched(&env, &says);
}

#[test]
fn a_flipped_byte_is_named_by_its_place() {
    let env = completed();
    let path = env.session().join("journal.jsonl");
    let good = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = good.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(lines.len() > 9);
    for line in [0, 1, 4, lines.len() - 2] {
        let offset: usize = lines[..line].iter().map(|line| line.len()).sum();
        let mut bad = good.clone();
        // In the middle of the line, and without making another line end of it.
        bad[offset + lines[line].len() / 2] ^= 0x01;
        fs::write(&path, &bad).unwrap();
        refused_untouched(&env, &[path.to_str().unwrap(), &format!("damaged at byte {offset}")]);
    }
}

#[test]
fn the_beginning_of_an_id_must_be_enough() {
    let env = completed();
    let id = env.session().file_name().unwrap().to_str().unwrap().to_owned();
    let shown = env.run(["sessions", "show", &id[..8]]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.contains(&id), "{}", shown.stdout);

    // Another session whose id begins the same way.
    let index = env.outside("home/.atomic/sessions-index.jsonl");
    let line = fs::read_to_string(&index).unwrap();
    let last = if id.ends_with('0') { "1" } else { "0" };
    let other = format!("{}{last}", &id[..id.len() - 1]);
    fs::write(&index, format!("{line}{}", line.replace(&id, &other))).unwrap();
    refused(&env.run(["resume", &id[..8]]), 1, &[&id, &other, "give more of the id"]);
    assert_eq!(env.run(["resume", &id]).code, Some(0));
}
