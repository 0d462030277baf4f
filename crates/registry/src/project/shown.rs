//! Definitions as a person reads them in the trust question.
//!
//! The question must not hide a command, so every command has a line of its own and no line is cut
//! before [`LONGEST_LINE`] characters.

use std::fmt;

use serde_json::{Map, Value};

use super::Definition;

/// The longest line in a list of one line per definition, in characters.
const LONGEST_SUMMARY: usize = 100;

/// The longest line in the trust question, in characters.
const LONGEST_LINE: usize = 4096;

/// The largest number of lines about one definition.
const MOST_LINES: usize = 500;

/// The longest text that a decision keeps of a definition, in characters.
pub const LONGEST_KEPT: usize = 4096;

impl fmt::Display for Definition {
    /// Writes the definition on one short line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = self.detail.join("; ");
        let detail = match detail.char_indices().nth(LONGEST_SUMMARY) {
            Some((end, _)) => format!("{}…", detail.get(..end).unwrap_or_default()),
            None => detail,
        };
        f.write_str(&self.line_with(&detail))
    }
}

impl Definition {
    /// Returns the definition in full: on one line, or with one line for each of its commands.
    pub fn lines(&self) -> Vec<String> {
        if let [] | [_] = self.detail.as_slice() {
            return vec![self.line_with(&self.detail.concat())];
        }
        let commands = self.detail.iter().take(MOST_LINES);
        let commands = commands.map(|line| format!("  {}", whole_line(line)));
        let mut lines = vec![self.line_with("")];
        lines.extend(commands);
        if self.detail.len() > MOST_LINES {
            lines.push(format!("  and {} more", self.detail.len() - MOST_LINES));
        }
        lines
    }

    fn line_with(&self, detail: &str) -> String {
        let mut line = whole_line(&self.name);
        if !detail.is_empty() && detail != self.name {
            line += &format!(": {}", whole_line(detail));
        }
        let path = self.path.display().to_string();
        if !path.is_empty() && path != self.name {
            line += &format!("  ({})", on_one_line(&path));
        }
        line
    }
}

/// Returns a text as one line of the trust question. The number of characters that are left out of
/// a very long one is shown.
pub fn whole_line(text: &str) -> String {
    match text.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => {
            let (beginning, rest) = text.split_at(end);
            let count = rest.chars().count();
            format!("{}… {count} more characters", on_one_line(beginning))
        }
        None => on_one_line(text),
    }
}

/// Returns a text from a stranger's file for a line of the trust question: no character of it begins
/// another line, and none is invisible. Two definitions that differ look different.
pub fn on_one_line(text: &str) -> String {
    let is_hidden = |c: char| c.is_control() || is_invisible(c);
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

/// Whether a character takes no room, looks like a space or changes the direction of a line: format
/// characters and the fillers of Unicode 16. Joined emoji are lost with them, which does no harm in
/// names and commands.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns lines without repeated blanks, which could push a command out of sight. The end of a line
/// inside of a command is shown: the shell begins another command there.
pub(super) fn plain(lines: Vec<String>) -> Vec<String> {
    let plain = |text: String| {
        let parts = text.lines().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        parts.join(" ⏎ ")
    };
    lines.into_iter().map(plain).filter(|line| !line.is_empty()).collect()
}

/// Returns the part of a text that decisions keep.
pub(super) fn kept(text: &str) -> String {
    text.chars().take(LONGEST_KEPT).collect()
}

/// Returns the value of a setting as lines, one for each entry of a list or an object.
pub fn setting_lines(value: &Value) -> Vec<String> {
    match value {
        Value::Array(all) if all.len() > 1 => all.iter().map(Value::to_string).collect(),
        Value::Object(all) if all.len() > 1 => {
            all.iter().map(|(key, value)| format!("{key}: {value}")).collect()
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => vec![value.to_string()],
    }
}

/// Returns a value as a text of lines, for a person who looks for a difference: each leaf with its
/// key, and texts line by line.
pub(super) fn readable(value: &Value) -> String {
    let mut lines = vec![];
    collect_leaves("", value, &mut lines);
    lines.join("\n")
}

fn collect_leaves(key: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| collect_leaves(key, value, lines));
        }
        Value::Array(all) => all.iter().for_each(|value| collect_leaves(key, value, lines)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let text = word(value);
            lines.push(if key.is_empty() { text } else { format!("{key}: {text}") });
        }
    }
}

/// Returns the commands in a definition, wherever they stand in it, and every other text beside
/// them: a program may run it.
pub(crate) fn commands(value: &Value) -> Vec<String> {
    let mut found = vec![];
    collect_commands(value, &mut found);
    if found.is_empty() { vec![value.to_string()] } else { found }
}

/// Keys of texts that say when a hook runs, or how a server is reached.
const CONDITIONS: &[&str] = &["type", "matcher"];

fn collect_commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let has_command = fields.iter().any(|(key, value)| is_command(key, value));
            for (key, value) in fields {
                match (key.as_str(), value) {
                    (key, value) if is_command(key, value) => found.push(command(value, fields)),
                    ("args", Value::Array(_)) if has_command => {}
                    ("env" | "environment" | "headers", Value::Object(values)) => {
                        // A variable such as NODE_OPTIONS runs something, too.
                        let pairs = values.iter().map(|(name, it)| format!("{name}={}", word(it)));
                        let pairs: Vec<String> = pairs.collect();
                        if !pairs.is_empty() {
                            found.push(format!("{key} {}", pairs.join(" ")));
                        }
                    }
                    (key, Value::String(_)) if CONDITIONS.contains(&key) => {}
                    (key, Value::String(text)) => found.push(format!("{key}: {text}")),
                    (key, Value::Array(all)) if all.iter().any(Value::is_string) => {
                        found.push(format!("{key}: {}", words(all)));
                    }
                    (_, value) => collect_commands(value, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_commands(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_command(key: &str, value: &Value) -> bool {
    match value {
        Value::String(_) => matches!(key, "command" | "bash" | "powershell" | "url"),
        Value::Array(_) => key == "command",
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// A command with its arguments, which stand beside it or in the same list.
fn command(value: &Value, fields: &Map<String, Value>) -> String {
    let beside = fields.get("args").and_then(Value::as_array);
    let mut line = value.as_array().map_or_else(|| word(value), |all| words(all));
    for argument in beside.into_iter().flatten() {
        line += &format!(" {}", word(argument));
    }
    line
}

fn words(values: &[Value]) -> String {
    values.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{commands, whole_line};
    use crate::project::{Definition, DefinitionKind};

    #[test]
    fn no_command_is_hidden_by_another_one() {
        let hook = json!([{"matcher": "Bash", "hooks": [
            {"type": "command", "command": "./guard.sh"},
            {"type": "command", "command": "true", "powershell": "evil.exe", "timeout": 3},
            {"type": "prompt", "prompt": "Obey."},
            {"command": ["sh", "-c", "x"], "cwd": "/tmp"},
        ]}]);
        let all = ["./guard.sh", "true", "evil.exe", "prompt: Obey.", "sh -c x", "cwd: /tmp"];
        assert_eq!(commands(&hook), all);
        let definition = Definition::new(DefinitionKind::Hook, "a.json", "Stop", "");
        let lines = definition.listing(commands(&hook)).lines();
        assert_eq!(lines[0], "Stop  (a.json)");
        assert_eq!(lines[1..], all.map(|line| format!("  {line}")));
    }

    #[test]
    fn a_long_command_is_shown_and_a_very_long_one_says_how_much_is_missing() {
        let long = format!("{} evil", "a ".repeat(500).trim_end());
        let definition = |text: &str| Definition::new(DefinitionKind::Hook, "f", "Stop", text);
        assert_eq!(definition(&long).lines(), [format!("Stop: {long}  (f)")]);
        assert!(whole_line(&"x".repeat(5000)).ends_with("… 904 more characters"));
        // Blanks do not push anything out of sight, and the end of a line is visible.
        let spaced = definition(&format!("true{}\n\tevil", " ".repeat(5000)));
        assert_eq!(spaced.lines(), ["Stop: true ⏎ evil  (f)"]);
    }
}
