//! What OpenCode says about its models and its MCP servers.

use std::fs;

use atomic_testing::agents::OpenCodeHome;
use atomic_testing::model::Script;
use serde_json::{Value, json};

use super::Stand;
use super::lists::SERVER;
use super::program::Program::OpenCode;

#[test]
fn models_are_listed_as_they_are_chosen() {
    let stand = Stand::of(&[OpenCode], Script::new());
    // A provider of the project is not listed, also where the project is trusted.
    let theirs = json!({ "npm": "@ai-sdk/anthropic", "options": { "apiKey": "k" },
                         "models": { "plain-1": {} } });
    let project = json!({ "provider": { "theirs": theirs }, "enabled_providers": ["theirs"] });
    fs::write(stand.env.work().join("opencode.json"), project.to_string()).unwrap();
    let listed = stand.run(&["models", "--backend", "opencode", "--trust"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(!listed.stdout.contains("theirs/"), "{listed:?}");
    assert!(listed.stderr.contains("opencode.json: enabled_providers, provider.theirs not used"));
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
    let plugins = stand.env.work().join(".opencode/plugin");
    fs::create_dir_all(&plugins).unwrap();
    fs::write(plugins.join("own.js"), plugin).unwrap();
    let dies = json!({ "type": "local", "command": ["sh", "-c", "exit 3"] });
    let gone = json!({ "type": "local", "command": ["/no/such/program"] });
    let servers = json!({ "mcp": { "good": server("good"), "gone": gone, "dies": dies } });
    fs::write(stand.env.work().join("opencode.json"), servers.to_string()).unwrap();

    let ran_of_project = || ["good", "plugged"].iter().any(|mark| stand.env.outside(mark).exists());
    // The program would run the plugin, whatever it is told.
    let refused = stand.run(&["mcp", "--inherit", "all"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("plugin/own.js"), "{refused:?}");
    fs::rename(&plugins, stand.env.outside("aside")).unwrap();
    let listed = stand.run(&["mcp", "--inherit", "all"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
    assert!(!ran_of_project(), "something was started: {listed:?}");
    assert!(listed.stdout.contains("not trusted"), "{listed:?}");
    fs::rename(stand.env.outside("aside"), &plugins).unwrap();

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
