//! Sessions that came with a project.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::{Attack, Ground};

/// Leaves a session in the project that ran elsewhere, as far as anybody can tell, and would leave a
/// sign if it went on.
fn brought_along(ground: &Ground) -> PathBuf {
    // The command fails the first time, and not once the file is there.
    let command = format!("test -e go && {}", ground.leaves_sign());
    let workflow = json!({"nodes": [{"type": "tool", "id": "a", "command": command}]});
    ground.outside("flow.json", &workflow.to_string());
    let flow = ground.env.outside("flow.json");
    let mut run = ground.env.atomic(["run", flow.to_str().unwrap(), "Go", "--script"]);
    run.arg(ground.env.outside("script.toml")).env("HOME", ground.env.outside("other-home"));
    let ended = crate::env::ran(run);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ground.project("go", "");
    ground.env.session()
}

#[test]
fn a_session_that_would_go_on() {
    let attack = Attack::new(|ground| {
        brought_along(ground);
    });
    attack.fails_everywhere();
    let ground = attack.planted();
    let folder = ground.env.session();
    let id = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let folder = folder.to_str().unwrap().to_owned();
    for session in [id.as_str(), &id[..8], &folder, "last"] {
        let rows: [&[&str]; 7] = [
            &["resume", session],
            &["resume", session, "--upgrade"],
            &["answer", session, "A", "--resume"],
            &["fork", session, "--run"],
            &["fork", session],
            &["graph", session],
            &["sessions", "show", session],
        ];
        for row in rows {
            let ended = ground.run(row);
            assert!(!ground.sign().exists(), "{row:?}: {ended:?}");
        }
    }
    let ended = ground.run(&["resume", &folder, "--trust"]);
    assert!(ground.sign().exists(), "the control does nothing: {ended:?}");
}

/// The list of sessions is the user's, wherever the project says that it is.
#[test]
fn a_list_of_sessions_in_the_project() {
    let ground = Ground::new();
    let session = brought_along(&ground);
    let index = ground.env.outside("other-home/.atomic/sessions-index.jsonl");
    let listed = fs::read_to_string(&index).unwrap();
    ground.project(".atomic/sessions-index.jsonl", &listed);
    ground.project(".atomic/trust.jsonl", "");
    let id = session.file_name().unwrap().to_str().unwrap().to_owned();
    for row in [&["resume", "last"][..], &["resume", &id], &["fork", &id, "--run"]] {
        let ended = ground.run(row);
        assert!(!ground.sign().exists(), "{row:?}: {ended:?}");
    }
    ground.users(".atomic/sessions-index.jsonl", &listed);
    let ended = ground.run(&["resume", &id]);
    assert!(ground.sign().exists(), "the control does nothing: {ended:?}");
}

/// A decision about trust is the user's.
#[test]
fn a_decision_about_trust_in_the_project() {
    let attack = Attack::new(|ground| {
        ground.project("Makefile", &format!("test:\n\t{}\n", ground.leaves_sign()));
        // What the user's own file would be, had the user trusted the project.
        assert_eq!(ground.run(&["trust", "."]).code, Some(0));
        let decided = ground.env.outside("home/.atomic/trust.jsonl");
        fs::copy(&decided, ground.env.work().join("trust.jsonl")).unwrap();
        fs::create_dir_all(ground.env.work().join(".atomic")).unwrap();
        fs::rename(&decided, ground.env.work().join(".atomic/trust.jsonl")).unwrap();
    });
    attack.works_only_when_trusted(&["run", "ralph", "Build it"]);
}

/// `last` is a session of the user, whatever the project calls its folders and whatever times it
/// claims.
#[test]
fn a_session_called_last() {
    let ground = Ground::new();
    let session = brought_along(&ground);
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([&session, &ground.env.work().join("last")])
        .status();
    assert!(copied.unwrap().success());
    assert_eq!(ground.run(&["-p", "Hello"]).code, Some(0));
    // The session in the project is made the newest.
    let journal = session.join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.replace("\"at\":\"20", "\"at\":\"29")).unwrap();
    let ended = ground.run(&["resume", "last", "--trust"]);
    assert!(!ground.sign().exists(), "{ended:?}");
    // Under its own name: a session is never resumed in a folder with another one.
    fs::remove_dir_all(&session).unwrap();
    fs::rename(ground.env.work().join("last"), &session).unwrap();
    let ended = ground.run(&["resume", session.to_str().unwrap(), "--trust"]);
    assert!(ground.sign().exists(), "the control does nothing: {ended:?}");
}
