//! Hooks in a head that guard tools. No backend runs the hooks of a head, so a tool that a hook
//! guards is denied.

use serde_json::Value;

use crate::entity::Provider;
use crate::keys::spelled;

/// The tools that hooks guard.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Guarded {
    Nothing,
    /// These tools, by the names in the matchers.
    Tools(Vec<String>),
    /// Every tool; the text says why.
    Everything(String),
}

/// Events whose hooks can refuse the use of a tool.
const GUARDS: [&str; 2] = ["pre-tool-use", "permission-request"];

/// The other events of Claude Code 2.1.325 and of Copilot: their hooks refuse no tool.
const OTHERS: &[&str] = &[
    "agent-stop",
    "config-change",
    "cwd-changed",
    "directory-added",
    "elicitation",
    "elicitation-result",
    "error-occurred",
    "file-changed",
    "instructions-loaded",
    "message-display",
    "notification",
    "permission-denied",
    "post-compact",
    "post-model-switch",
    "post-tool-batch",
    "post-tool-use",
    "post-tool-use-failure",
    "pre-compact",
    "pre-model-switch",
    "session-end",
    "session-start",
    "setup",
    "stop",
    "stop-failure",
    "subagent-start",
    "subagent-stop",
    "task-completed",
    "task-created",
    "teammate-idle",
    "user-prompt-expansion",
    "user-prompt-submit",
    "user-prompt-submitted",
    "worktree-create",
    "worktree-remove",
];

/// Reads what stands behind `hooks`. An event or a matcher that is not understood may guard any tool.
pub(super) fn guarded(hooks: &Value, provider: Provider) -> Guarded {
    let events = match hooks {
        Value::Null => return Guarded::Nothing,
        Value::Object(events) => events,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Guarded::Everything("it is not a list of events".to_owned());
        }
    };
    let mut names = vec![];
    for (event, entries) in events {
        let key = spelled(event);
        if OTHERS.contains(&key.as_str()) {
            continue;
        }
        if !GUARDS.contains(&key.as_str()) {
            return Guarded::Everything(format!("`{event}` is not a known event"));
        }
        // VS Code runs a hook for every tool, whatever its matcher says.
        let matchers = match entries.as_array() {
            Some(entries) if entries.is_empty() => continue,
            Some(entries) if provider != Provider::Copilot => entries,
            _ => return Guarded::Everything(format!("`{event}` is about every tool")),
        };
        for entry in matchers {
            match matched(entry.get("matcher")) {
                Ok(tools) => names.extend(tools),
                Err(problem) => return Guarded::Everything(format!("`{event}`: {problem}")),
            }
        }
    }
    match names.is_empty() {
        true => Guarded::Nothing,
        false => Guarded::Tools(names),
    }
}

/// The tools of a matcher: names between `|` or commas. Every other text is a regular expression
/// for Claude Code, of which only `.*` at the end of a server's tool is understood here. The error
/// says why it may be about any tool.
fn matched(matcher: Option<&Value>) -> Result<Vec<String>, String> {
    let text = match matcher {
        None | Some(Value::Null) => return Err("it is about every tool".to_owned()),
        Some(Value::String(text)) => text.trim(),
        Some(other) => return Err(format!("the matcher {other} is not a text")),
    };
    if matches!(text, "" | "*" | ".*") {
        return Err("it is about every tool".to_owned());
    }
    let is_plain = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    let tool = |name: &str| {
        let name = name.trim();
        let of_server = name.strip_suffix(".*").filter(|start| start.starts_with("mcp__"));
        match of_server {
            Some("mcp__") => Ok("mcp__*".to_owned()),
            Some(start) if is_plain(start) => Ok(format!("{start}*")),
            None if is_plain(name) => Ok(name.to_owned()),
            _ => Err(format!("the matcher `{text}` is a regular expression")),
        }
    };
    text.split(['|', ',']).map(tool).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Guarded, guarded};
    use crate::entity::Provider;

    fn of(hooks: &Value) -> String {
        match guarded(hooks, Provider::Claude) {
            Guarded::Nothing => "-".to_owned(),
            Guarded::Tools(names) => names.join(" "),
            Guarded::Everything(why) => format!("* {why}"),
        }
    }

    #[test]
    fn matchers_name_the_tools_that_are_guarded() {
        let every = "* `PreToolUse`: it is about every tool";
        for (matcher, expected) in [
            (json!("Bash"), "Bash"),
            (json!("Edit|Write, MultiEdit"), "Edit Write MultiEdit"),
            (json!("mcp__github__create-issue"), "mcp__github__create-issue"),
            (json!("mcp__github__.*"), "mcp__github__*"),
            (json!("mcp__.*"), "mcp__*"),
            (json!("*"), every),
            (json!(""), every),
            (json!(null), every),
            (json!("Ba(sh)?"), "* `PreToolUse`: the matcher `Ba(sh)?` is a regular expression"),
            (json!("Edit|"), "* `PreToolUse`: the matcher `Edit|` is a regular expression"),
            (json!(7), "* `PreToolUse`: the matcher 7 is not a text"),
        ] {
            let hooks = json!({ "PreToolUse": [{ "matcher": matcher, "hooks": [] }] });
            assert_eq!(of(&hooks), expected);
        }
    }

    #[test]
    fn only_hooks_before_a_use_guard_it() {
        let bash = json!([{ "matcher": "Bash" }]);
        for (hooks, expected) in [
            (json!(null), "-"),
            (json!({}), "-"),
            (json!({ "PostToolUse": bash, "Stop": [] }), "-"),
            (json!({ "preToolUse": bash }), "Bash"),
            (json!({ "pre_tool_use": bash }), "Bash"),
            (json!({ "PermissionRequest": bash }), "Bash"),
            (json!({ "PreToolUse": [] }), "-"),
            (json!({ "PreToolUse": [{}] }), "* `PreToolUse`: it is about every tool"),
            (json!({ "PreToolUse": "x" }), "* `PreToolUse` is about every tool"),
            (json!({ "BeforeTool": bash }), "* `BeforeTool` is not a known event"),
            (json!("./check.sh"), "* it is not a list of events"),
        ] {
            assert_eq!(of(&hooks), expected, "{hooks}");
        }
        let copilots = guarded(&json!({ "PreToolUse": bash }), Provider::Copilot);
        let every = "`PreToolUse` is about every tool".to_owned();
        assert_eq!(copilots, Guarded::Everything(every), "VS Code ignores matchers");
    }
}
