//! Texts that YAML takes for something else, as they were written.

use serde_json::{Map, Value};

use super::Oddity;
use super::forgiving::key_of;
use crate::keys;

/// Keys whose values are texts, whatever they look like.
const TEXTS: [&str; 4] = ["argument-hint", "description", "model", "name"];

/// Puts texts back: `007` is a name, `[a, b]` a hint, and `Fixes #12` has no comment in it.
pub(super) fn restore(
    head: &mut Map<String, Value>,
    lines: &[String],
    first: usize,
    oddities: &mut Vec<Oddity>,
) {
    // From the end: of two with one key the last one holds, and each is looked at once.
    let mut seen = vec![];
    for (index, line) in lines.iter().enumerate().rev() {
        let Some((key, written)) = key_of(line).filter(|(key, _)| key.len() <= 20) else {
            continue;
        };
        let spelled = keys::spelled(key);
        let goes_on = lines.get(index + 1).is_some_and(|next| next.starts_with([' ', '\t']));
        if goes_on || !TEXTS.contains(&spelled.as_str()) || seen.contains(&key) {
            continue;
        }
        seen.push(key);
        let Some(value) = head.get_mut(key) else { continue };
        let meant = without_comment(written);
        if is_misread(value, &spelled) {
            *value = Value::String(meant.to_owned());
        } else if let Some(lost) = lost(value, written, lines) {
            let message = format!("`{key}` loses `{lost}` in YAML: put quotes around its value");
            oddities.push(Oddity { line: first + index, message });
            *value = Value::String(meant.to_owned());
        }
    }
}

/// Whether a value became something else than a text.
fn is_misread(value: &Value, key: &str) -> bool {
    match value {
        Value::Number(_) | Value::Bool(_) => true,
        Value::Array(_) | Value::Object(_) => key == "argument-hint",
        Value::Null | Value::String(_) => false,
    }
}

/// What a plain text loses: what looks like a comment, an anchor or a tag.
fn lost<'t>(value: &Value, written: &'t str, lines: &[String]) -> Option<&'t str> {
    let is_plain = !written.starts_with(['"', '\'', '|', '>', '[', '{', '*']);
    if !is_plain || !matches!(value, Value::String(_) | Value::Null) {
        return None;
    }
    let word = written.split_whitespace().next()?;
    if let Some(anchor) = word.strip_prefix('&') {
        let alias = format!("*{anchor}");
        let is_used = lines.iter().any(|line| line.contains(&alias));
        return (!is_used && written != word).then_some(word);
    }
    if word.starts_with('!') && !word.starts_with("!!") && written != word {
        return Some(word);
    }
    let cut = value.as_str().unwrap_or_default();
    let rest = written.get(cut.len()..)?.trim_start();
    let is_word = rest.starts_with('#') && rest[1..].starts_with(|c: char| c.is_alphanumeric());
    is_word.then_some(rest)
}

/// The text without what is certainly a comment behind it.
fn without_comment(written: &str) -> &str {
    match written.find(" # ") {
        Some(at) => written[..at].trim_end(),
        None => written,
    }
}
