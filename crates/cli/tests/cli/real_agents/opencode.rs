//! The real OpenCode: its questions, its end, and what is wrong before it begins.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use atomic_testing::model::Script;
use serde_json::{Value, json};

use super::program::Program::OpenCode;
use super::{Stand, asking};
use crate::env::ran;

/// The folders that servers have to themselves.
pub(super) fn dens(stand: &Stand) -> Vec<String> {
    let entries = fs::read_dir(stand.env.outside("tmp")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("atomic-opencode-")).collect()
}

/// What a run that was killed has left, the next one removes.
#[test]
fn a_question_outlives_its_asker_and_the_answer_is_one_new_message() {
    let stand = Stand::of(&[OpenCode], asking(OpenCode));
    super::question_outlives_its_asker(&stand, || {
        stand.has_no_processes();
        let left = dens(&stand);
        assert_eq!(left.len(), 1, "{left:?}");
    });
    stand.has_no_processes();
    assert_eq!(dens(&stand), [""; 0], "the next run has cleaned up");
}

#[test]
fn an_answer_that_was_heard_is_not_told_again() {
    super::heard_is_not_told_again(OpenCode);
}

#[test]
fn nothing_outlives_us() {
    super::nothing_outlives(OpenCode);
}

/// A program in place of OpenCode, which notes that it was started.
fn double(stand: &Stand, lines: &str) -> PathBuf {
    let folder = stand.env.outside("bin");
    fs::create_dir_all(&folder).unwrap();
    let (program, started) = (folder.join("opencode"), stand.env.outside("started"));
    let text =
        format!("#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$*\" >> {}\n{lines}\n", started.display());
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// What cannot work is told with what to do, before a program is started.
#[test]
fn a_model_that_cannot_be_is_told_before_anything_is_started() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let bin = double(&stand, "exit 1");
    let settings = stand.opencode.path().join(".config/opencode/opencode.json");
    let of_provider = fs::read_to_string(&settings).unwrap();
    let mut without: Value = serde_json::from_str(&of_provider).unwrap();
    without.as_object_mut().unwrap().remove("model");
    let no_slash = "plain-1 is no model of opencode's, they are called PROVIDER/MODEL";
    let none = "opencode has no model to use";
    let remedy = "atomic models --backend opencode";
    let table: [(String, &[&str], &[&str]); 4] = [
        (of_provider, &["--model", "plain-1"], &[no_slash, remedy]),
        (without.to_string(), &[], &[none, remedy]),
        ("{}".to_owned(), &[], &[none, remedy]),
        ("{ \"model\": ".to_owned(), &[], &["opencode/opencode.json: not valid JSON: "]),
    ];
    for (text, more, says) in table {
        fs::write(&settings, text).unwrap();
        let mut command = stand.atomic(&[&["-p", "Hello", "--backend", "opencode"], more].concat());
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let refused = ran(command);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{says:?}: {refused:?}");
        assert!(says.iter().all(|says| refused.stderr.contains(says)), "{says:?}: {refused:?}");
        assert!(!stand.env.outside("started").exists(), "{says:?}: nothing was started");
    }
}

/// What only the program knows it is asked for, and nobody is talked to.
#[test]
fn a_model_that_nobody_has_is_told_before_anybody_is_asked() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let refused = stand.run(&["-p", "Hello", "--backend", "opencode", "--model", "nobody/plain-1"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    for says in [
        "the provider nobody of nobody/plain-1 is not set up in opencode",
        "atomic models --backend opencode lists",
    ] {
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
    }
    assert_eq!(stand.server.requests().len(), 0, "nobody is asked anything");
}

/// The program reads a copy of the user's settings; it is told about as if it were theirs.
#[test]
fn settings_that_the_program_does_not_take_are_told_by_their_own_name() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let settings = stand.opencode.path().join(".config/opencode/opencode.json");
    let wrong = json!({ "model": "a/b", "provider": { "a": { "npm": 3 } } });
    fs::write(&settings, wrong.to_string()).unwrap();
    let refused = stand.run(&["-p", "Hello", "--backend", "opencode"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    let says = format!("Configuration is invalid at {}", settings.display());
    assert!(refused.stderr.contains(&says), "{}", refused.stderr);
    assert!(!refused.stderr.contains('\u{fffd}'), "{}", refused.stderr);
}

/// A server that answers everybody that it is of a version.
fn of_version(version: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let body = json!({ "healthy": true, "version": version }).to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    format!("echo 'opencode server listening on http://{address}'\nexec sleep 1000")
}

#[test]
fn a_program_that_is_missing_too_old_or_broken_is_told_with_what_to_do() {
    let stand = Stand::of(&[], Script::new());
    let hello = ["-p", "Hello", "--backend", "opencode"];
    let run = |lines: Option<&str>| {
        let mut command = stand.atomic(&hello);
        let bin = stand.env.outside("bin");
        if let Some(lines) = lines {
            double(&stand, lines);
        }
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        ran(command)
    };
    let old = of_version("1.2.3");
    let cases: [(Option<&str>, &[&str]); 4] = [
        (None, &["opencode is not installed", "npm install -g opencode-ai"]),
        (Some(&old), &["is version 1.2.3, and 1.18.33 or later is needed; update it"]),
        (
            Some("echo \"\\033[91mError:\\033[0m unheard of\" >&2; exit 3"),
            &["3: Error: unheard of)"],
        ),
        (Some("exit 127"), &["was not found; install it or add it to PATH"]),
    ];
    for (lines, says) in cases {
        let refused = run(lines);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{says:?}: {refused:?}");
        assert!(says.iter().all(|says| refused.stderr.contains(says)), "{says:?}: {refused:?}");
        stand.has_no_processes();
        assert_eq!(dens(&stand), [""; 0], "{says:?}");
    }
}
