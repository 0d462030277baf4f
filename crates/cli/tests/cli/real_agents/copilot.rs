//! The real GitHub Copilot: its questions, its end, and what it says about itself.

use std::fs;
use std::process::Command;

use atomic_testing::agents::COPILOT;
use atomic_testing::model::Script;
use serde_json::json;

use super::lists::{SERVER, servers_are_listed};
use super::program::Program::Copilot;
use super::{Stand, asking};
use crate::env::ran;

#[test]
fn a_question_outlives_its_asker_and_the_answer_is_one_new_message() {
    let stand = Stand::of(&[Copilot], asking(Copilot));
    super::question_outlives_its_asker(&stand, || stand.has_no_processes());
    stand.has_no_processes();
}

#[test]
fn an_answer_that_was_heard_is_not_told_again() {
    super::heard_is_not_told_again(Copilot);
}

#[test]
fn nothing_outlives_us() {
    super::nothing_outlives(Copilot);
}

/// For whoever has neither a login nor a provider of their own.
fn without_login(stand: &Stand, args: &[&str]) -> Command {
    let mut command = stand.atomic(args);
    for (name, _) in stand.copilot.env(&stand.server.url()) {
        if name.starts_with("COPILOT_PROVIDER_") || name == "COPILOT_OFFLINE" {
            command.env_remove(name);
        }
    }
    command
}

#[test]
fn who_is_not_logged_in_is_told_what_to_do() {
    let stand = Stand::of(&[Copilot], Script::new());
    let models = ["models", "--backend", "copilot"];
    // The list is GitHub's, also for those who have a provider of their own.
    let table = [
        stand.atomic(&models),
        without_login(&stand, &models),
        without_login(&stand, &["-p", "Hello", "--backend", "copilot"]),
    ];
    for command in table {
        let words = format!("{:?}", command.get_args().collect::<Vec<_>>());
        let refused = ran(command);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{words}: {refused:?}");
        let says = "copilot needs you to log in; run it once by hand and do so";
        assert!(refused.stderr.contains(says), "{words}: {refused:?}");
        stand.has_no_processes();
    }
    assert_eq!(stand.server.requests().len(), 0, "nobody is asked anything");
}

/// The project's, and the user's own.
#[test]
fn servers_are_listed_where_the_project_is_trusted() {
    let stand = Stand::of(&[Copilot], Script::new());
    servers_are_listed(&stand, "No such file", "exit code 3");
    let started = stand.env.outside("mine");
    let mine = json!({ "type": "local", "command": "sh", "args": ["-c", SERVER, started], "tools": ["*"] });
    let servers = json!({ "mcpServers": { "mine": mine } });
    let folder = stand.copilot.path().join(".copilot");
    fs::write(folder.join("mcp-config.json"), servers.to_string()).unwrap();
    let is_listed = |more: &[&str]| {
        let listed = stand.run(&[&["mcp"], more].concat());
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
        let is_listed = listed.stdout.contains("mine");
        assert_eq!(is_listed, started.exists(), "what is not shown is not started: {listed:?}");
        is_listed
    };
    assert!(!is_listed(&[]));
    assert!(!is_listed(&["--inherit", "all"]));
    assert!(!is_listed(&["--trust", "--inherit", "project"]));
    assert!(is_listed(&["--trust"]));
}

/// It says more than its version, and a full stop behind it.
#[test]
fn the_doctor_knows_its_version() {
    let stand = Stand::of(&[Copilot], Script::new());
    let found = stand.run(&["doctor"]);
    assert_eq!(found.code, Some(0), "{found:?}");
    let program = Copilot.folder().join("copilot");
    let said = format!("ok: copilot {COPILOT}, {}\n", program.display());
    assert!(found.stdout.contains(&said), "{}", found.stdout);
    assert!(found.stdout.contains("ok: copilot would be used"), "{}", found.stdout);
}
