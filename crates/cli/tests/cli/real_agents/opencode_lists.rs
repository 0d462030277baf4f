//! What OpenCode says about its models and its MCP servers, and `doctor` about it.

use std::fs;

use atomic_testing::agents::{OPENCODE, OpenCodeHome};
use atomic_testing::model::Script;
use serde_json::{Value, json};

use super::Stand;
use super::lists::SERVER;
use super::program::Program::OpenCode;

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
    for verb in [["mcp"].as_slice(), &["mcp", "--inherit", "all"]] {
        let listed = stand.run(verb);
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
        assert!(!ran_of_project(), "{verb:?} has started something");
        assert!(listed.stdout.contains("not trusted"), "{verb:?}: {}", listed.stdout);
    }
    let listed = stand.run(&["mcp", "--trust", "--inherit", "project"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
    let mut lines: Vec<&str> = listed.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("dies  failed     "), "{lines:?}");
    assert!(lines[1].starts_with("gone  failed     "), "{lines:?}");
    assert_eq!(lines[2], "good  connected");
    assert!(ran_of_project() && !stand.env.outside("mine").exists());
    let all = stand.run(&["mcp", "--trust", "--inherit", "all"]);
    assert!(all.stdout.lines().any(|line| line == "mine  connected"), "{all:?}");
    stand.has_no_processes();
}

#[test]
fn doctor_finds_it_and_would_use_it() {
    let stand = Stand::of(&[OpenCode], Script::new());
    let looked = stand.run(&["doctor"]);
    assert_eq!((looked.code, looked.stderr.as_str()), (Some(0), ""), "{looked:?}");
    let program = OpenCode.folder().join("opencode");
    for line in [
        format!("  ok: opencode {OPENCODE}, {}", program.display()),
        "  ok: opencode would be used: the first that is installed".to_owned(),
    ] {
        assert!(looked.stdout.lines().any(|told| told == line), "{line}: {}", looked.stdout);
    }
}
