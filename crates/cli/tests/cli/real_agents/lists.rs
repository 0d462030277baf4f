//! What the real program says about its models and its MCP servers.

use std::fs;

use atomic_testing::model::Script;
use serde_json::{Value, json};

use super::{Stand, in_both_versions};
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

in_both_versions! {
    models_are_listed_for_whoever_is_logged_in
    servers_are_listed_where_the_project_is_trusted
}

fn models_are_listed_for_whoever_is_logged_in(version: &'static str) {
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

fn servers_are_listed_where_the_project_is_trusted(version: &'static str) {
    let stand = Stand::new(version, Script::new());
    servers_are_listed(&stand, "ENOENT", "Connection closed");
}

/// Looking at a project that is not trusted starts nothing of it. Says of the servers that do not
/// come up why.
pub(super) fn servers_are_listed(stand: &Stand, gone: &str, dies: &str) {
    let program = stand.programs[0];
    let started = stand.env.outside("started");
    let servers = json!({ "mcpServers": {
        "good": { "command": "sh", "args": ["-c", SERVER, started] },
        "gone": { "command": "/no/such/program" },
        "dies": { "command": "sh", "args": ["-c", "exit 3"] },
    } });
    fs::write(stand.env.work().join(".mcp.json"), servers.to_string()).unwrap();
    for words in [&[][..], &["--inherit", "all"]] {
        let ran = stand.run(&[&["mcp"], words].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{program:?}: {ran:?}");
        let is_told = ran.stdout.contains("not trusted") && ran.stdout.contains("atomic trust .");
        assert!(is_told, "{program:?}: {}", ran.stdout);
    }
    // Nor do servers have a part in what else is asked for.
    stand.run(&["models", "--trust"]);
    assert!(!started.exists(), "{program:?} has started a server");
    for more in [&[][..], &["--inherit", "project"]] {
        let listed = stand.run(&[&["mcp", "--trust"], more].concat());
        assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""), "{listed:?}");
        let mut lines: Vec<&str> = listed.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 3, "{program:?}: {lines:?}");
        for (line, beginning, why) in
            [(lines[0], "dies  failed     ", dies), (lines[1], "gone  failed     ", gone)]
        {
            assert!(line.starts_with(beginning) && line.contains(why), "{program:?}: {line}");
        }
        assert_eq!(lines[2], "good  connected", "{program:?}");
    }
    assert!(started.exists());
    stand.has_no_processes();
}
