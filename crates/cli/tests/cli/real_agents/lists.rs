//! What the real program says about its models and its MCP servers.

use std::fs;

use atomic_testing::agents::{CLAUDE, OLDER_CLAUDE};
use atomic_testing::model::Script;
use serde_json::{Value, json};

use super::Stand;
use crate::env::ran;

/// A server of MCP without tools, which leaves a trace when it is started.
pub(super) const SERVER: &str = r#"
echo ran >> "$0"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"host","version":"1"}}' ;;
    *'"method":"tools/list"'*) say '{"tools":[]}' ;;
    *'"id":'*) say '{}' ;;
  esac
done
"#;

#[test]
fn models_are_listed_for_whoever_is_logged_in() {
    for version in [CLAUDE, OLDER_CLAUDE] {
        let stand = Stand::new(version, Script::new());
        let listed = stand.run(&["models", "--backend", "claude"]);
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
        for name in ["default ", "sonnet ", "haiku "] {
            let there = listed.stdout.lines().any(|line| line.starts_with(name));
            assert!(there, "{version}: {name}: {}", listed.stdout);
        }
        let as_json = stand.run(&["models", "--json"]);
        let names: Vec<Value> = as_json
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].take())
            .collect();
        assert_eq!(names.len(), listed.stdout.lines().count(), "{version}: {names:?}");
        assert!(names.contains(&json!("sonnet")), "{version}: {names:?}");

        let mut logged_out = stand.atomic(&["models"]);
        logged_out.env_remove("ANTHROPIC_API_KEY");
        let refused = ran(logged_out);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert!(refused.stderr.contains("claude needs you to log in"), "{refused:?}");
    }
}

/// Looking at a project that is not trusted starts nothing of it.
#[test]
fn servers_are_listed_where_the_project_is_trusted() {
    for version in [CLAUDE, OLDER_CLAUDE] {
        let stand = Stand::new(version, Script::new());
        let started = stand.env.outside("started");
        let servers = json!({ "mcpServers": {
            "good": { "command": "sh", "args": ["-c", SERVER, started] },
            "gone": { "command": "/no/such/program" },
            "dies": { "command": "sh", "args": ["-c", "exit 3"] },
        } });
        fs::write(stand.env.work().join(".mcp.json"), servers.to_string()).unwrap();
        for verb in [&["mcp"][..], &["mcp", "--inherit", "all"], &["models", "--trust"]] {
            let ran = stand.run(verb);
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{version}: {ran:?}");
            assert!(!started.exists(), "{version}: {verb:?} has started a server");
            let is_told = ran.stdout.contains("not trusted") && ran.stdout.contains("mcp --trust");
            assert!(is_told || verb[0] == "models", "{version}: {}", ran.stdout);
        }
        for more in [&[][..], &["--inherit", "project"]] {
            let listed = stand.run(&[&["mcp", "--trust"], more].concat());
            assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
            let lines: Vec<&str> = listed.stdout.lines().collect();
            assert_eq!(lines.len(), 3, "{version}: {lines:?}");
            assert_eq!(lines[0], "good  connected", "{version}");
            assert!(lines[1].starts_with("gone  failed     ENOENT"), "{version}: {lines:?}");
            assert!(lines[2].starts_with("dies  failed     "), "{version}: {lines:?}");
            assert!(lines[2].ends_with("Connection closed"), "{version}: {lines:?}");
        }
        assert!(started.exists());
    }
}
