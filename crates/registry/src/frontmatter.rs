//! Markdown with a head of YAML, as people really write it.
//!
//! The head is read strictly first. Where that fails, every entry of it is looked at on its own:
//! what is YAML stays as it is, and of what is not, the text is taken as it stands. Whatever had to
//! be done that way is told, so that nobody wonders why another program refuses the file.

mod forgiving;
mod split;
mod written;

use std::borrow::Cow;

use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use crate::keys;

/// A file, taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// What stands in the head, in its order.
    pub head: Map<String, Value>,
    /// Where it stands.
    pub(crate) lines: HeadLines,
    /// The text below the head.
    pub body: String,
    /// What was odd about the head.
    pub oddities: Vec<Oddity>,
    /// Lines outside of any head that look like restrictions of tools, with their keys.
    pub(crate) unread_tools: Vec<(usize, String)>,
}

/// The lines of a head, to say where something in it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HeadLines {
    /// The number of the first one in the file.
    first: usize,
    lines: Vec<String>,
}

impl HeadLines {
    /// The line in the file with this key, whatever its spelling; the last of several holds.
    pub(crate) fn of(&self, key: &str) -> Option<usize> {
        let has_it = |line: &String| {
            let written = forgiving::key_of(line).map(|(written, _)| written);
            written.is_some_and(|written| keys::spelled(written) == key)
        };
        self.lines.iter().rposition(has_it).map(|index| self.first + index)
    }
}

/// Something odd about a head that could be read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oddity {
    /// The line in the file, counted from 1.
    pub line: usize,
    /// What is odd.
    pub message: String,
}

/// A head that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unreadable {
    /// The line in the file, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

/// The largest head, in bytes: reading one that is no YAML takes its time.
const MOST_BYTES: usize = 64 * 1024;

/// Takes a file apart.
pub fn read(text: &str) -> Result<Document, Unreadable> {
    let mut oddities = vec![];
    let text = with_line_ends(text.strip_prefix('\u{feff}').unwrap_or(text), &mut oddities);
    let mut parts = split::split(&text)?;
    if parts.head.iter().map(|line| line.len() + 1).sum::<usize>() > MOST_BYTES {
        let message = format!("it is larger than {} KiB", MOST_BYTES / 1024);
        return Err(Unreadable { line: parts.line, message });
    }
    let mut lines = with_spaces(&parts.head, parts.line, &mut parts.oddities);
    let mut head = strict(&lines.join("\n"));
    if head.is_err() && parts.ends_early(&text) {
        lines.truncate(parts.head.len());
        head = strict(&lines.join("\n"));
    }
    oddities.append(&mut parts.oddities);
    let mut head = match head {
        Ok(head) => head,
        Err(problem) => forgiving::read(&lines, parts.line, &problem, &mut oddities)?,
    };
    written::restore(&mut head, &lines, parts.line, &mut oddities);
    let mut body = [parts.above, parts.body].concat();
    if body.contains("\r\n") {
        body = body.replace("\r\n", "\n");
    }
    let lines = HeadLines { first: parts.line, lines };
    Ok(Document { head, lines, body, oddities, unread_tools: parts.unread_tools })
}

/// The text with line ends that are seen as such: some have a carriage return and nothing else.
fn with_line_ends<'t>(text: &'t str, oddities: &mut Vec<Oddity>) -> Cow<'t, str> {
    if text.contains('\n') || !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let message = "its lines end in a carriage return alone: save it with other line ends";
    oddities.push(Oddity { line: 1, message: message.to_owned() });
    Cow::Owned(text.replace('\r', "\n"))
}

/// YAML forbids tabs where it counts, and knows one kind of space; editors and web pages put others
/// there all the same.
fn with_spaces(lines: &[&str], first: usize, oddities: &mut Vec<Oddity>) -> Vec<String> {
    let (mut told, mut told_space) = (false, false);
    let mut replaced = vec![];
    for (line, number) in lines.iter().zip(first..) {
        let plain = match line.is_ascii() {
            true => Cow::Borrowed(*line),
            false => line.replace('\u{a0}', " ").replace(['\u{200b}', '\u{feff}'], "").into(),
        };
        if plain != *line && !told_space {
            told_space = true;
            let message = "a space that is none: type it anew".to_owned();
            oddities.push(Oddity { line: number, message });
        }
        let line = plain.as_ref();
        let text = line.trim_start_matches([' ', '\t']);
        let indent = &line[..line.len() - text.len()];
        if indent.contains('\t') && !told {
            told = true;
            let message = "a tab at the beginning of a line: YAML wants spaces".to_owned();
            oddities.push(Oddity { line: number, message });
        }
        replaced.push(format!("{}{text}", indent.replace('\t', "  ")));
    }
    replaced
}

fn yaml(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Value, Unreadable> {
    let options = serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        // `no` and `on` are words, not answers.
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_depth: 32,
            max_events: 20_000,
            max_aliases: 64,
            max_anchors: 64,
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line() as usize);
        let message = error.without_snippet().to_string();
        // Its line is counted from the head; the file's is told beside the message.
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        Unreadable { line, message }
    })
}

fn strict(text: &str) -> Result<Map<String, Value>, Unreadable> {
    match yaml(text, DuplicateKeyPolicy::Error)? {
        Value::Object(head) => Ok(head),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let message = "the head is no list of `key: value` lines".to_owned();
            Err(Unreadable { line: 1, message })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::read;

    fn head(text: &str) -> (Value, Vec<String>) {
        let document = read(&format!("---\n{text}\n---\nbody\n")).unwrap();
        assert_eq!(document.body, "body\n");
        let told = |oddity: super::Oddity| format!("{}: {}", oddity.line, oddity.message);
        (document.head.into(), document.oddities.into_iter().map(told).collect())
    }

    #[test]
    fn what_is_yaml_is_read_without_a_word() {
        for (text, expected) in [
            ("name: a\ndescription: b c", json!({"name": "a", "description": "b c"})),
            ("tools: [Read, Bash]", json!({"tools": ["Read", "Bash"]})),
            ("tools:\n- Read\n- Bash", json!({"tools": ["Read", "Bash"]})),
            ("tools:\n  bash: true", json!({"tools": {"bash": true}})),
            ("description: |\n  one\n  two\n", json!({"description": "one\ntwo\n"})),
            ("description: >-\n  one\n  two\n", json!({"description": "one two"})),
            ("on: yes", json!({"on": "yes"})),
            ("temperature: 0.1", json!({"temperature": 0.1})),
            ("", json!({})),
        ] {
            assert_eq!(head(text), (expected, vec![]), "{text}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_taken_as_it_stands() {
        let quotes = |line: u32, key: &str| {
            format!("{line}: `{key}` is no YAML: put quotes around its value")
        };
        let cases = [
            (
                "description: Use when: now",
                json!({"description": "Use when: now"}),
                vec![quotes(2, "description")],
            ),
            (
                "name: x\ndescription: a: b\n  and more",
                json!({"name": "x", "description": "a: b and more"}),
                vec![quotes(3, "description")],
            ),
            ("tools: @all", json!({"tools": "@all"}), vec![quotes(2, "tools")]),
            (
                "argument-hint: [a] | [b]",
                json!({"argument-hint": "[a] | [b]"}),
                vec![quotes(2, "argument-hint")],
            ),
            (
                "description: \"a\" and b",
                json!({"description": "\"a\" and b"}),
                vec![quotes(2, "description")],
            ),
            (
                "a: 1\na: 2",
                json!({"a": 2}),
                vec!["3: `a` is there twice; the last one holds".to_owned()],
            ),
        ];
        for (text, expected, told) in cases {
            assert_eq!(head(text), (expected, told), "{text}");
        }
    }
}
