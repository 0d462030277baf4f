//! A head that is no YAML, entry by entry.

use serde_json::{Map, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::{Oddity, Unreadable, yaml};
use crate::{keys, tools};

/// Words that begin the lines of a conversation. Descriptions have such examples in them.
const SPEAKERS: [&str; 7] =
    ["assistant", "commentary", "context", "example", "examples", "note", "user"];

/// How many entries are looked at one by one.
const MOST_ENTRIES: usize = 500;

/// One entry of a head: its key and all lines that belong to it.
struct Entry<'t> {
    line: usize,
    key: &'t str,
    value: &'t str,
    /// Whether the key stands behind a dash.
    is_bullet: bool,
    /// Whether the key is further in than the first one.
    is_inside: bool,
    /// The lines below it.
    below: Vec<&'t str>,
    /// Whether one of them is not further in, as it would have to be.
    has_outside: bool,
}

/// Reads a head entry by entry.
pub(super) fn read(
    head: &[String],
    first: usize,
    problem: &Unreadable,
    oddities: &mut Vec<Oddity>,
) -> Result<Map<String, Value>, Unreadable> {
    let give_up = || Unreadable {
        line: first + problem.line.saturating_sub(1),
        message: problem.message.clone(),
    };
    let told = oddities.len();
    let entries = entries(head, first, oddities);
    if entries.is_empty() {
        return Err(give_up());
    }
    if entries.len() > MOST_ENTRIES {
        let message = format!("it has more than {MOST_ENTRIES} entries");
        return Err(Unreadable { message, ..give_up() });
    }
    let mut read = Map::new();
    let mut swallowed = vec![];
    for entry in entries {
        let value = match entry.yaml(&entry.text()) {
            Some(value) => value,
            None => {
                let message = format!("`{}` is no YAML: put quotes around its value", entry.key);
                oddities.push(Oddity { line: entry.line, message });
                swallowed.extend(entry.swallowed());
                entry.guessed().ok_or_else(give_up)?
            }
        };
        if read.insert(entry.key.to_owned(), value).is_some() {
            let message = format!("`{}` is there twice; the last one holds", entry.key);
            oddities.push(Oddity { line: entry.line, message });
        }
    }
    for one in swallowed.into_iter().chain(lost_tools(head, first, oddities)) {
        one.restrict(&mut read, oddities);
    }
    if oddities.len() == told {
        let Unreadable { line, message } = give_up();
        let message = format!("it is no YAML ({message}) and was read line by line");
        oddities.push(Oddity { line, message });
    }
    Ok(read)
}

/// A line about tools that is no entry. Whoever restricts something must not end up with
/// everything, so it counts as one where no other does.
struct Restriction<'t> {
    line: usize,
    key: &'t str,
    /// What stands behind the key, when that is known.
    value: Option<&'t str>,
    /// The entry that it stands in.
    inside: Option<&'t str>,
}

impl Restriction<'_> {
    fn restrict(self, head: &mut Map<String, Value>, oddities: &mut Vec<Oddity>) {
        let denies = |key: &str| keys::spelled(key) == "disallowed-tools";
        let same = |key: &str| match keys::spelled(key).as_str() {
            "allowed-tools" => "tools".to_owned(),
            other => other.to_owned(),
        };
        let is_said = |key: &String| keys::is_about_tools(key) && same(key) == same(self.key);
        if head.keys().any(is_said) {
            return;
        }
        let key = self.key;
        let value = self.value.filter(|value| !value.is_empty());
        let (message, value) = match self.inside {
            Some(text) => (
                format!(
                    "a line of `{text}` looks like the key `{key}`: it counts as one; write \
                     `{key}: …` at the margin"
                ),
                value.map_or(Value::Null, |value| Value::String(value.to_owned())),
            ),
            None => (
                format!("this looks like the key `{key}` and cannot be read, so it may use none"),
                Value::Array(vec![]),
            ),
        };
        oddities.push(Oddity { line: self.line, message });
        // Nobody knows what is denied, so everything is.
        let is_lost = self.inside.is_none() && denies(key);
        head.insert(if is_lost { "tools" } else { key }.to_owned(), value);
    }
}

/// The key and the value of a line that says which tools are meant, with or without a colon.
fn about_tools(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if let Some(begin) = loose_key_of(line) {
        return keys::is_about_tools(begin.key).then_some((begin.key, begin.value));
    }
    let (key, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let names = || rest.split([',', ' ']).filter(|name| !name.is_empty());
    let is_key = key.len() <= 20 && keys::is_about_tools(key);
    // Somebody may talk about tools.
    (is_key && names().all(|name| tools::find(name).is_some())).then_some((key, rest))
}

/// Lines at the margin that begin with a key about tools and have no colon.
fn lost_tools<'t>(head: &'t [String], first: usize, oddities: &[Oddity]) -> Vec<Restriction<'t>> {
    let is_lost = |line: usize| {
        let lost = |oddity: &&Oddity| oddity.message == LOST && oddity.line <= line;
        oddities.iter().any(|oddity| lost(&oddity))
    };
    let lines = head.iter().zip(first..).filter(|(_, number)| is_lost(*number));
    let found = lines.filter_map(|(line, number)| {
        let key = line.split_whitespace().next()?;
        let is_short = key.len() <= 20 && keys::is_about_tools(key);
        is_short.then_some(Restriction { line: number, key, value: None, inside: None })
    });
    found.collect()
}

/// What is said of lines that belong to nothing.
const LOST: &str = "from here on nothing belongs to a key: it is left out";

/// The key that a line at the left margin begins with.
pub(super) fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = unquoted(key.trim_end());
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    let separated = value.is_empty() || value.starts_with([' ', '\t']);
    let is_key = separated && !key.is_empty() && key.chars().all(is_word);
    (is_key && !line.starts_with([' ', '\t'])).then_some((key, value.trim()))
}

/// A line that begins an entry.
struct Begin<'t> {
    key: &'t str,
    value: &'t str,
    /// Whether the key stands behind a dash.
    is_bullet: bool,
    /// What is wrong about it.
    wrong: Option<String>,
}

/// The key of a line that is written as no YAML has it, where it can be no other: `name:x`,
/// `name=x`, `Allowed Tools: x`, `- name: x`, `**name**: x`, or with the colon of another script.
fn loose_key_of(line: &str) -> Option<Begin<'_>> {
    let text = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    let is_bullet = text.is_some();
    let (written, rest) = text.unwrap_or(line).split_once([':', '：', '='])?;
    let key = unquoted(written.trim().trim_matches('*'));
    let value = rest.trim_start_matches("**").trim();
    // An equals sign stands in many a text.
    let is_key = if line.contains(&format!("{written}=")) { keys::is_read } else { keys::is_known };
    if !is_key(key) {
        return None;
    }
    let is_yaml = !is_bullet && line.starts_with(&format!("{key}: "));
    let wrong = format!("`{key}` is not written as YAML: write `{key}: …`");
    let wrong = (!is_yaml).then_some(wrong);
    Some(Begin { key, value, is_bullet, wrong })
}

fn entries<'t>(head: &'t [String], first: usize, oddities: &mut Vec<Oddity>) -> Vec<Entry<'t>> {
    let mut entries: Vec<Entry<'t>> = vec![];
    let mut margin = None;
    // Whether the line before belongs to nothing: what is said there is no entry either.
    let mut is_lost = false;
    for (line, number) in head.iter().zip(first..) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text.is_empty() || text.starts_with('#') && indent == 0 {
            if let Some(entry) = entries.last_mut().filter(|_| text.is_empty()) {
                entry.below.push("");
            }
            continue;
        }
        let is_inside = indent > *margin.get_or_insert(indent);
        let begin = key_at(text, is_inside, &entries);
        if let Some(begin) = begin.filter(|begin| !is_lost || keys::is_read(begin.key)) {
            is_lost = false;
            let Begin { key, value, is_bullet, wrong } = begin;
            oddities.extend(wrong.map(|message| Oddity { line: number, message }));
            let (below, has_outside) = (vec![], false);
            let line = number;
            entries.push(Entry { line, key, value, is_bullet, is_inside, below, has_outside });
            continue;
        }
        match entries.last_mut() {
            Some(entry) if !is_lost && (is_inside || entry.takes_outside(text)) => {
                entry.has_outside |= !is_inside && !text.starts_with("- ");
                entry.below.push(line);
            }
            Some(_) | None if is_lost => {}
            Some(_) | None => {
                is_lost = true;
                oddities.push(Oddity { line: number, message: LOST.to_owned() });
            }
        }
    }
    entries
}

/// The key that a line begins with, when it begins an entry of its own.
fn key_at<'t>(text: &'t str, is_inside: bool, entries: &[Entry<'_>]) -> Option<Begin<'t>> {
    let last = entries.last();
    if is_inside {
        let last = last?;
        let begin = loose_key_of(text)?;
        // Below an entry that has a value there can be no other one: it is only too far in.
        let is_whole = !last.value.is_empty()
            && !last.value.starts_with(['|', '>', '[', '{'])
            && (!last.is("description") || last.is_inside);
        let wrong = Some(format!("`{}` is too far in: it belongs at the margin", begin.key));
        let is_entry = is_whole && !begin.is_bullet && keys::is_read(begin.key);
        return is_entry.then_some(Begin { wrong, ..begin });
    }
    if let Some((key, value)) = key_of(text) {
        let begin = Begin { key, value, is_bullet: false, wrong: None };
        return (!last.is_some_and(|last| last.says(key))).then_some(begin);
    }
    let begin = loose_key_of(text)?;
    let fits = !begin.is_bullet || last.is_none_or(|last| last.is_bullet);
    fits.then_some(begin)
}

impl<'t> Entry<'t> {
    fn is(&self, key: &str) -> bool {
        // A key may be as long as a file.
        self.key.len() <= key.len() && keys::spelled(self.key) == key
    }

    /// Whether a word with a colon behind it is part of this entry's text.
    fn says(&self, word: &str) -> bool {
        if !self.is("description") {
            return false;
        }
        let is_speaker = SPEAKERS.iter().any(|speaker| word.eq_ignore_ascii_case(speaker));
        let is_block = self.value.starts_with(['|', '>']) && self.below.is_empty();
        let is_open = self.has_outside || is_block || self.has_open_quote();
        is_speaker && (word != "context" || is_open) || is_open && !keys::is_known(word)
    }

    fn has_open_quote(&self) -> bool {
        self.value.starts_with('"') && (self.value.len() == 1 || !self.value.ends_with('"'))
    }

    /// Whether a line at the margin that is no entry belongs to this one.
    fn takes_outside(&self, text: &str) -> bool {
        let is_open = self.value.is_empty() || self.value.starts_with(['[', '{', '|', '>']);
        self.is("description") || is_open || self.has_open_quote() || text.starts_with("- ")
    }

    fn text(&self) -> String {
        let first = format!("{}: {}", self.key, self.value);
        let lines = std::iter::once(first.as_str()).chain(self.below.iter().copied());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What it says, if that is YAML.
    fn yaml(&self, text: &str) -> Option<Value> {
        match yaml(text, DuplicateKeyPolicy::LastWins) {
            Ok(Value::Object(mut one)) if one.len() == 1 => one.remove(self.key),
            Ok(_) | Err(_) => None,
        }
    }

    /// A line of its text that looks like an entry about tools.
    fn swallowed(&self) -> Option<Restriction<'t>> {
        if keys::is_about_tools(self.key) {
            return None;
        }
        let (below, inside) = (self.below.iter().zip(self.line + 1..), Some(self.key));
        below.into_iter().find_map(|(line, number)| {
            let (key, value) = about_tools(line)?;
            Some(Restriction { line: number, key, value: Some(value), inside })
        })
    }

    /// What it says, where that is no YAML. What an agent may use is not guessed from words that
    /// have a structure.
    fn guessed(&self) -> Option<Value> {
        let has_structure = self.value.is_empty() && !self.has_outside;
        if has_structure && let Some(value) = self.yaml(&self.with_quotes()) {
            return Some(value);
        }
        let is_line = self.below.iter().all(|line| line.trim().is_empty());
        if keys::is_about_tools(self.key) && !is_line && self.value.is_empty() {
            return None;
        }
        Some(Value::String(self.words()))
    }

    /// The entry with quotes around whatever stands in the lines below it.
    fn with_quotes(&self) -> String {
        let mut text = format!("{}:", self.key);
        for line in &self.below {
            let words = line.trim();
            let indent = &line[..line.len() - line.trim_start().len()];
            let (dash, words) = match words.strip_prefix("- ") {
                Some(words) => ("- ", words.trim()),
                None => ("", words),
            };
            let pair = words.rsplit_once(": ").filter(|_| dash.is_empty());
            let quoted = match pair {
                _ if words.is_empty() => String::new(),
                Some((key, value)) => format!("{}: {}", with_quotes(key), with_quotes(value)),
                None if dash.is_empty() && words.ends_with(':') => {
                    format!("{}:", with_quotes(words.trim_end_matches(':')))
                }
                None => with_quotes(words),
            };
            text.push_str(&format!("\n{indent}{dash}{quoted}"));
        }
        text
    }

    /// The words as they stand.
    fn words(&self) -> String {
        let (mark, rest) = match self.value.chars().next() {
            Some(mark @ ('|' | '>')) => {
                (Some(mark), self.value[1..].trim_start_matches(['+', '-', '1', '2', '4']).trim())
            }
            Some(_) | None => (None, self.value),
        };
        // Behind the sign of a block there is nothing but a comment.
        let rest = if mark.is_some() && rest.starts_with('#') { "" } else { rest };
        let keeps_lines = mark == Some('|') || mark.is_none() && self.has_outside;
        let lines = std::iter::once(rest).chain(self.below.iter().map(|line| line.trim()));
        let words = if keeps_lines {
            lines.collect::<Vec<_>>().join("\n")
        } else {
            lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
        };
        let words = words.trim();
        if words.starts_with('"') && !words.contains("\\\\") {
            let plain = words.replace("\\\"", "\u{0}").replace("\\n", "\n");
            return unquoted(&plain).replace('\u{0}', "\"");
        }
        unquoted(words).to_owned()
    }
}

/// A value with quotes around it, unless it has some or stands for itself.
fn with_quotes(value: &str) -> String {
    let value = value.trim();
    let stands = matches!(value, "true" | "false" | "null") || value.parse::<f64>().is_ok();
    if stands || value.starts_with(['"', '\'', '[', '{']) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', "''"))
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
