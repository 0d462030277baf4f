//! What OpenCode says about its models and its MCP servers, and `doctor` about it.

use std::fs;

use atomic_testing::agents::{OPENCODE, OpenCodeHome};
use atomic_testing::model::Script;
use serde_json::{Value, json};

use super::Stand;
use super::lists::SERVER;
use super::program::Program::OpenCode;
use crate::env::eventually;
use crate::process::SOON;

#[test]
fn models_are_listed_as_they_are_chosen() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let listed = stand.run(&["models", "--backend", "opencode"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
    for name in OpenCodeHome::MODELS {
        let there = |line: &str| line.starts_with(&format!("scripted/{name} "));
        assert!(listed.stdout.lines().any(there), "{name}: {}", listed.stdout);
    }
    stand.has_no_processes();
}

/// Servers of the user, and of a project that nobody trusts: nothing of it is started.
#[test]
fn servers_are_listed_where_the_project_is_trusted() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let server = |mark: &str| {
        let started = stand.env.outside(mark);
        json!({ "type": "local", "command": ["sh", "-c", SERVER, started] })
    };
    let settings = stand.opencode.path().join(".config/opencode/opencode.json");
    let mut users: Value = serde_json::from_str(&fs::read_to_string(&settings).unwrap()).unwrap();
    users["mcp"] = json!({ "mine": server("mine") });
    fs::write(&settings, users.to_string()).unwrap();

    let plugin = format!("await Bun.write({:?}, 'ran');\n", stand.env.outside("plugged"));
    let plugin = format!("{plugin}export const Own = async () => ({{}});\n");
    fs::create_dir_all(stand.env.work().join(".opencode/plugin")).unwrap();
    fs::write(stand.env.work().join(".opencode/plugin/own.js"), plugin).unwrap();
    let dies = json!({ "type": "local", "command": ["sh", "-c", "exit 3"] });
    let gone = json!({ "type": "local", "command": ["/no/such/program"] });
    let servers = json!({ "mcp": { "good": server("good"), "gone": gone, "dies": dies } });
    fs::write(stand.env.work().join("opencode.json"), servers.to_string()).unwrap();

    let ran_of_project = || ["good", "plugged"].iter().any(|mark| stand.env.outside(mark).exists());
    let listed = stand.run(&["mcp", "--inherit", "all"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
    assert!(!ran_of_project(), "something was started: {listed:?}");
    assert!(listed.stdout.contains("not trusted"), "{listed:?}");

    let listed = stand.run(&["mcp", "--trust", "--inherit", "all"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
    let mut lines: Vec<&str> = listed.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("dies  failed     "), "{lines:?}");
    assert!(lines[1].starts_with("gone  failed     "), "{lines:?}");
    assert_eq!(lines[2..], ["good  connected", "mine  connected"]);
    assert!(ran_of_project());
    stand.has_no_processes();
}

/// It takes its time to say its version; on a busy machine more than `doctor` gives it.
#[test]
fn doctor_finds_it_and_would_use_it() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let program = OpenCode.folder().join("opencode");
    let lines = [
        format!("  ok: opencode {OPENCODE}, {}", program.display()),
        "  ok: opencode would be used: the first that is installed".to_owned(),
    ];
    eventually("doctor finds it", SOON, || {
        let looked = stand.run(&["doctor"]);
        assert_eq!((looked.code, looked.stderr.as_str()), (Some(0), ""), "{looked:?}");
        lines.iter().all(|line| looked.stdout.lines().any(|told| told == line))
    });
}
