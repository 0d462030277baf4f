//! What programs say in the same way: questions, lists, tools and what they are used on.

use atomic_event::{Choice, Question, Todo};
use serde::Deserialize as _;
use serde_json::Value;

/// The questions of one call; an answer in other words is always possible.
pub(crate) fn questions(input: &Value) -> Vec<Question> {
    let asked = input.get("questions").and_then(Value::as_array).into_iter().flatten();
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let question = |asked: &Value| Question {
        question: text(asked, "question"),
        header: text(asked, "header"),
        options: list(asked.get("options").unwrap_or(&Value::Null))
            .map(|option| Choice {
                label: text(option, "label"),
                description: text(option, "description"),
            })
            .collect(),
        multi_select: ["multiSelect", "multiple"]
            .iter()
            .any(|key| asked.get(key).and_then(Value::as_bool).unwrap_or(false)),
        free_text: true,
    };
    asked.map(question).collect()
}

/// The entries of an agent's own list.
pub(crate) fn todos(entries: &Value) -> Vec<Todo> {
    #[derive(serde::Deserialize)]
    struct Entry {
        content: String,
        #[serde(default)]
        status: String,
    }
    let entry = |value: &Value| {
        let Entry { content, status } = Entry::deserialize(value).ok()?;
        Some(Todo { content, status })
    };
    list(entries).filter_map(entry).collect()
}

/// Some programs paint what they complain of, whoever reads it.
pub(crate) fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default();
    let painted = pieces.map(|piece| piece.trim_start_matches(|c: char| !c.is_alphabetic()));
    let painted = painted.map(|piece| piece.strip_prefix('m').unwrap_or(piece));
    std::iter::once(first).chain(painted).collect()
}

/// Our name for a tool of the program's.
pub(crate) fn tool_name(name: &str) -> String {
    match name {
        "Bash" | "bash" => "shell".to_owned(),
        "view" => "read".to_owned(),
        "create" => "write".to_owned(),
        "web_fetch" => "webfetch".to_owned(),
        "web_search" => "websearch".to_owned(),
        mcp if mcp.starts_with("mcp__") => mcp.to_owned(),
        other => other.to_lowercase(),
    }
}

/// What a tool is used on, in one short line.
pub(crate) fn summary(input: &Value) -> String {
    const KEYS: [&str; 14] = [
        "command",
        "file_path",
        "filePath",
        "notebook_path",
        "pattern",
        "path",
        "url",
        "query",
        "skill",
        "name",
        "subject",
        "description",
        "prompt",
        "content",
    ];
    let told = KEYS.iter().find_map(|key| input.get(key).and_then(Value::as_str));
    shorten(told.unwrap_or_default())
}

/// The beginning of a text, on one line.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > LONGEST {
            let end = line.floor_char_boundary(LONGEST);
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    line
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::without_colours;

    #[test]
    fn colours_are_left_out_and_nothing_else() {
        for (painted, plain) in [
            ("\u{1b}[91m\u{1b}[1mError: \u{1b}[0mno 3 m", "Error: no 3 m"),
            ("as it is [0m", "as it is [0m"),
            ("\u{1b}[38;5;1mmine", "mine"),
        ] {
            assert_eq!(without_colours(painted), plain);
        }
    }
}
