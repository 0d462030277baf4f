//! The keys that may stand in a head.

/// Keys that mean something to one of the providers and are kept for it.
pub(crate) const KEPT: &[&str] = &[
    "agent",
    "agents",
    "arguments",
    "author",
    "background",
    "color",
    "compatibility",
    "context",
    "date",
    "disable",
    "disable-model-invocation",
    "effort",
    "globs",
    "handoffs",
    "hooks",
    "icon",
    "infer",
    "initial-prompt",
    "isolation",
    "license",
    "max-steps",
    "max-tokens",
    "max-turns",
    "mcp-servers",
    "memory",
    "metadata",
    "mode",
    "paths",
    "reasoning-effort",
    "shell",
    "skills",
    "steps",
    "subtask",
    "tags",
    "target",
    "temperature",
    "title",
    "top-p",
    "user-invocable",
    "version",
    "when-to-use",
];

/// Keys that are read here.
pub(crate) const READ: &[&str] = &[
    "aliases",
    "allowed-tools",
    "argument-hint",
    "description",
    "disallowed-tools",
    "hidden",
    "model",
    "name",
    "permission",
    "permission-mode",
    "permissions",
    "required-arguments",
    "tools",
];

/// A key in the spelling that counts: `allowedTools` and `allowed_tools` are `allowed-tools`.
pub(crate) fn spelled(key: &str) -> String {
    let mut spelled = String::with_capacity(key.len() + 2);
    let mut after_lower = false;
    for c in key.trim().chars() {
        if c.is_uppercase() && after_lower {
            spelled.push('-');
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        if c == '_' || c == ' ' {
            spelled.push('-');
        } else {
            spelled.extend(c.to_lowercase());
        }
    }
    spelled
}

/// Whether a key means something to anybody.
pub(crate) fn is_known(key: &str) -> bool {
    // None of them is longer, and a line of prose may be.
    if key.len() > 40 {
        return false;
    }
    let key = spelled(key);
    READ.contains(&key.as_str()) || KEPT.contains(&key.as_str())
}

/// Whether a key is read here.
pub(crate) fn is_read(key: &str) -> bool {
    key.len() <= 40 && READ.contains(&spelled(key).as_str())
}

/// Whether a key says what may be used, so that it must not be guessed.
pub(crate) fn is_about_tools(key: &str) -> bool {
    matches!(
        spelled(key).as_str(),
        "tools"
            | "allowed-tools"
            | "disallowed-tools"
            | "permission"
            | "permissions"
            | "permission-mode"
    )
}

/// Whether a key can restrict tools, in words that have another meaning in a text as well.
pub(crate) fn restricts_tools(key: &str) -> bool {
    is_about_tools(key) || spelled(key) == "hooks"
}
