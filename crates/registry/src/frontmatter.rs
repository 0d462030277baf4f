//! Markdown with a head of YAML, as people really write it.
//!
//! The head is read strictly first. Where that fails, every entry of it is looked at on its own:
//! what is YAML stays as it is, and of what is not, the text is taken as it stands. Whatever had to
//! be done that way is told, so that nobody wonders why another program refuses the file.

use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

/// A file, taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// What stands in the head, in its order.
    pub head: Map<String, Value>,
    /// The text below the head.
    pub body: String,
    /// What was odd about the head.
    pub oddities: Vec<Oddity>,
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

/// The head of a file as text, and where it is.
struct Parts<'t> {
    /// The lines between the fences.
    head: Vec<&'t str>,
    /// The line of the first of them, counted from 1.
    line: usize,
    body: &'t str,
    oddities: Vec<Oddity>,
}

/// Takes a file apart.
pub fn read(text: &str) -> Result<Document, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parts = split(text);
    let body = parts.body.replace("\r\n", "\n");
    let mut oddities = parts.oddities;
    let head = without_tabs(&parts.head, parts.line, &mut oddities);
    let head = match strict(&head.join("\n")) {
        Ok(head) => head,
        Err(problem) => forgiving(&head, parts.line, &problem, &mut oddities)?,
    };
    Ok(Document { head, body, oddities })
}

/// Whether a line opens or closes a head.
fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

fn split(text: &str) -> Parts<'_> {
    let mut oddities = vec![];
    let mut lines = text.split_inclusive('\n');
    let mut at = 0;
    let mut number = 1;
    let mut blank = false;
    for line in lines.by_ref() {
        at += line.len();
        number += 1;
        if !line.trim().is_empty() {
            if !is_fence(line) {
                return Parts { head: vec![], line: 1, body: text, oddities };
            }
            break;
        }
        blank = true;
    }
    if number == 1 || at == text.len() && !is_fence(text.trim_start_matches(['\r', '\n', ' '])) {
        return Parts { head: vec![], line: 1, body: text, oddities };
    }
    if blank {
        let message = "there are empty lines above the head".to_owned();
        oddities.push(Oddity { line: 1, message });
    }
    let (first, begin) = (number, at);
    let mut head = vec![];
    for line in lines {
        at += line.len();
        if is_fence(line) || line.trim_end() == "..." {
            return Parts { head, line: first, body: &text[at..], oddities };
        }
        head.push(line.trim_end_matches(['\n', '\r']));
    }
    // Nobody closed it: what looks like a head is one.
    let kept = head.iter().take_while(|line| looks_like_yaml(line)).count();
    head.truncate(kept);
    let length: usize = text[begin..].split_inclusive('\n').take(kept).map(str::len).sum();
    let message = "the head is not closed: put `---` on a line of its own below it".to_owned();
    oddities.push(Oddity { line: first - 1, message });
    Parts { head, line: first, body: &text[begin + length..], oddities }
}

/// Whether a line can stand in a head that nobody closed.
fn looks_like_yaml(line: &str) -> bool {
    let is_inside = line.starts_with([' ', '\t', '#']) || line.starts_with("- ");
    !line.trim().is_empty() && (is_inside || key_of(line).is_some())
}

/// The key that a line at the left margin begins with.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    let separated = value.is_empty() || value.starts_with([' ', '\t']);
    (separated && !key.is_empty() && key.chars().all(is_word)).then_some((key, value.trim()))
}

/// YAML forbids tabs where it counts; editors put them there all the same.
fn without_tabs(lines: &[&str], first: usize, oddities: &mut Vec<Oddity>) -> Vec<String> {
    let mut told = false;
    let mut replaced = vec![];
    for (line, number) in lines.iter().zip(first..) {
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
        Unreadable { line, message: error.without_snippet().to_string() }
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

/// One entry of a head: its key and all lines that belong to it.
struct Entry<'t> {
    line: usize,
    key: &'t str,
    value: &'t str,
    /// The lines below it, further in.
    below: Vec<&'t str>,
}

impl Entry<'_> {
    fn text(&self) -> String {
        let first = format!("{}: {}", self.key, self.value);
        std::iter::once(first.as_str())
            .chain(self.below.iter().copied())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// What it says, where that is no YAML: the words as they stand.
    fn words(&self) -> Option<String> {
        // Something with a structure of its own cannot be guessed.
        let is_flat = |line: &&str| !line.trim_start().starts_with("- ");
        if self.value.starts_with(['|', '>']) || !self.below.iter().all(is_flat) {
            return None;
        }
        let lines = std::iter::once(self.value).chain(self.below.iter().map(|line| line.trim()));
        let words = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        Some(unquoted(&words).to_owned())
    }
}

/// The text between quotes that were meant to be around it.
fn unquoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        let Some(inner) = text.strip_prefix(quote) else { continue };
        if let Some(inner) = inner.strip_suffix(quote) {
            return inner;
        }
        // One that was never closed means nothing.
        return if inner.contains(quote) { text } else { inner };
    }
    text
}

/// Reads a head entry by entry.
fn forgiving(
    head: &[String],
    first: usize,
    problem: &Unreadable,
    oddities: &mut Vec<Oddity>,
) -> Result<Map<String, Value>, Unreadable> {
    let give_up = || Unreadable {
        line: first + problem.line.saturating_sub(1),
        message: problem.message.clone(),
    };
    let entries = entries(head, first, oddities);
    if entries.is_empty() {
        return Err(give_up());
    }
    let mut read = Map::new();
    for entry in entries {
        let value = match yaml(&entry.text(), DuplicateKeyPolicy::LastWins) {
            Ok(Value::Object(mut one)) if one.len() == 1 => one.remove(entry.key),
            Ok(_) | Err(_) => None,
        };
        let value = match value {
            Some(value) => value,
            None => {
                let words = entry.words().ok_or_else(give_up)?;
                let message = format!("`{}` is no YAML: put quotes around its value", entry.key);
                oddities.push(Oddity { line: entry.line, message });
                Value::String(words)
            }
        };
        if read.insert(entry.key.to_owned(), value).is_some() {
            let message = format!("`{}` is there twice; the last one holds", entry.key);
            oddities.push(Oddity { line: entry.line, message });
        }
    }
    Ok(read)
}

fn entries<'t>(head: &'t [String], first: usize, oddities: &mut Vec<Oddity>) -> Vec<Entry<'t>> {
    let mut entries: Vec<Entry<'t>> = vec![];
    for (line, number) in head.iter().zip(first..) {
        if let Some((key, value)) = key_of(line) {
            entries.push(Entry { line: number, key, value, below: vec![] });
        } else if line.trim().is_empty() || line.starts_with('#') {
            continue;
        } else if let Some(entry) = entries.last_mut() {
            entry.below.push(line);
        } else {
            let message = "this line belongs to no key and is left out".to_owned();
            oddities.push(Oddity { line: number, message });
        }
    }
    entries
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
