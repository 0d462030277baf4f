//! Lines without what is different each time: ids, times, paths, money.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Map, Value};

/// Lists of what the program has are long, and say nothing after their first entries.
const LONGEST: usize = 2;

/// The lines, each time the same.
pub(crate) fn lines(text: &str, secrets: &[(String, &'static str)]) -> io::Result<Vec<String>> {
    let mut names = Names::default();
    let mut lines = vec![];
    for line in text.lines() {
        let line =
            secrets.iter().fold(line.to_owned(), |line, (secret, name)| line.replace(secret, name));
        let mut value: Value = serde_json::from_str(&line)?;
        let is_list = value["type"] == "control_response" || value["subtype"] == "init";
        names.settle("", &mut value, is_list);
        lines.push(value.to_string());
    }
    Ok(lines)
}

/// What ids are called, in the order in which they came.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn settle(&mut self, key: &str, value: &mut Value, is_list: bool) {
        match value {
            Value::String(text) if is_time(text) => *text = "2026-01-01T00:00:00.000Z".to_owned(),
            // The process has its number in the name of its socket.
            Value::String(text) if key.ends_with("socket_path") => *text = "/socket".to_owned(),
            Value::String(text) if key == "run_id" => *text = "run".to_owned(),
            Value::String(text) => *text = without_duration(&self.rename(text)),
            // Nothing stays nothing.
            Value::Number(number) if number.as_f64() == Some(0.0) => {}
            Value::Number(_) => {
                if let Some(settled) = settled(key) {
                    *value = settled;
                }
            }
            Value::Array(entries) => {
                if is_list && key != "content" {
                    entries.truncate(LONGEST);
                }
                entries.iter_mut().for_each(|entry| self.settle(key, entry, is_list));
            }
            Value::Object(fields) => self.fields(fields, is_list),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn fields(&mut self, fields: &mut Map<String, Value>, is_list: bool) {
        for (key, value) in fields.iter_mut() {
            self.settle(key, value, is_list);
        }
    }

    /// A text with the ids in it called by their names.
    fn rename(&mut self, text: &str) -> String {
        let mut renamed = String::new();
        let mut word = String::new();
        for next in text.chars().chain(std::iter::once('\0')) {
            if next.is_ascii_alphanumeric() || next == '-' || next == '_' {
                word.push(next);
                continue;
            }
            renamed.push_str(&self.name(&word));
            word.clear();
            if next != '\0' {
                renamed.push(next);
            }
        }
        renamed
    }

    fn name(&mut self, word: &str) -> String {
        if !is_id(word) {
            return word.to_owned();
        }
        let next = format!("id-{}", self.0.len() + 1);
        self.0.entry(word.to_owned()).or_insert(next).clone()
    }
}

/// A text in which a helper's report says how long it took, without that.
fn without_duration(text: &str) -> String {
    const LABEL: &str = "duration_ms: ";
    let Some((before, after)) = text.split_once(LABEL) else { return text.to_owned() };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before}{LABEL}10{rest}")
}

/// Long words of digits and letters up to `f`, with a prefix or without.
fn is_id(word: &str) -> bool {
    let tail = word.rsplit('_').next().unwrap_or(word);
    let digits = tail.chars().filter(char::is_ascii_hexdigit).count();
    let others = tail.chars().filter(|c| !c.is_ascii_hexdigit() && *c != '-').count();
    others == 0 && digits >= 15 && tail.contains(|c: char| c.is_ascii_digit())
}

/// `2026-01-01T00:00:00.000Z`
fn is_time(text: &str) -> bool {
    text.len() >= 20 && text.as_bytes()[10] == b'T' && text.starts_with("20") && text.ends_with('Z')
}

/// What a number is each time, if it is another one each time.
fn settled(key: &str) -> Option<Value> {
    let settled = match key {
        "pid" => 1,
        "duration" => 10,
        // Far in the future.
        "resetsAt" => return Some(Value::from(4_000_000_000_u64)),
        "pre_tokens" | "post_tokens" => 1_000,
        "total_cost_usd" | "costUSD" => return Some(Value::from(0.01)),
        _ if key.ends_with("_time") || key.ends_with("_ms") || key.ends_with("Ms") => 10,
        _ => return None,
    };
    Some(Value::from(settled))
}
