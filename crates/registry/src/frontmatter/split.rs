//! Where the head of a file begins and ends.

use super::forgiving::key_of;
use super::{Oddity, Unreadable};
use crate::keys;

/// A file in its parts.
pub(super) struct Parts<'t> {
    /// The lines between the fences.
    pub(super) head: Vec<&'t str>,
    /// The line of the first of them, counted from 1.
    pub(super) line: usize,
    /// Text above the head, which is part of the prompt all the same.
    pub(super) above: &'t str,
    pub(super) body: &'t str,
    pub(super) oddities: Vec<Oddity>,
    /// Lines about tools that are in no head, with their keys.
    pub(super) unread_tools: Vec<(usize, String)>,
    /// Where the head begins in the text.
    begin: usize,
}

/// How many lines are looked at to tell a head from a text.
const LOOKED_AT: usize = 20;

/// How many lines may stand above entries that nobody opened.
const FEW: usize = 5;

/// What closes a head.
#[derive(Clone, Copy, PartialEq)]
enum Close {
    /// Dashes, not further in than those that opened it.
    Dashes { indent: usize },
    /// Dashes, or a line that is meant to be dashes, as the one that opened it.
    Meant,
    /// The end of a block of code.
    Code,
    /// Dashes or an empty line: nobody opened it.
    Empty,
}

/// What stands above a head.
#[derive(Default)]
struct Above {
    /// How many lines.
    lines: usize,
    /// How many bytes.
    bytes: usize,
    has_blank: bool,
    has_text: bool,
    has_code: bool,
}

/// A line as dashes that open or close a head, with how far in they are.
fn dashes(line: &str) -> Option<usize> {
    let text = line.trim();
    let is_fence = text.len() >= 3 && text.bytes().all(|byte| byte == b'-');
    is_fence.then(|| line.len() - line.trim_start().len())
}

/// Whether a line opens a head with more than dashes: `---yaml`, or `--- # mine`.
fn is_labelled(line: &str) -> bool {
    let Some(rest) = line.trim().strip_prefix("---") else { return false };
    let label = rest.trim_start_matches('-').trim_start();
    let is_word = label.len() <= 20 && label.chars().all(|c| c.is_ascii_alphanumeric());
    !label.is_empty() && (is_word || label.starts_with('#'))
}

/// Whether a line was meant to be dashes: an editor made other ones of them, there is one too few,
/// or it is what draws a line across the page elsewhere.
fn is_like_dashes(line: &str) -> bool {
    let text = line.trim();
    let is_dash = |c: char| matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    let is_same = |sign: char| text.len() >= 3 && text.chars().all(|c| c == sign);
    let has_other = text == "--" || !text.is_ascii();
    has_other && text.chars().all(is_dash) || ['*', '_', '=', '~'].into_iter().any(is_same)
}

/// Blank lines, comments, a title and the beginning of a block of code.
fn above(text: &str) -> Above {
    let mut above = Above::default();
    let mut in_comment = false;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        if in_comment || words.starts_with("<!--") {
            in_comment = !words.contains("-->");
            above.has_text = true;
        } else if words.is_empty() {
            above.has_blank = true;
        } else if words.starts_with("```") && !above.has_code {
            above.has_code = true;
        } else if words.starts_with("# ") && !above.has_code {
            above.has_text = true;
        } else {
            break;
        }
        above.lines += 1;
        above.bytes += line.len();
    }
    above
}

/// Whether a line is one that only a head has.
fn is_entry(line: Option<&str>) -> bool {
    line.and_then(key_of).is_some_and(|(key, _)| keys::is_known(key))
}

/// Whether lines below dashes are those of a head.
fn begins_head<'t>(lines: impl Iterator<Item = &'t str>) -> bool {
    let mut lines = lines.take(LOOKED_AT).take_while(|line| dashes(line).is_none());
    lines.any(|line| is_entry(Some(line)))
}

/// A text without a head. What looks like one in it is told: nobody reads it, so what it forbids
/// would not be forbidden.
fn headless(text: &str) -> Parts<'_> {
    let mut parts = Parts::of_body(text);
    // In a block of code it is an example.
    let lines = text.lines().take(LOOKED_AT).take_while(|line| !line.trim().starts_with("```"));
    let lines: Vec<&str> = lines.collect();
    for (index, line) in lines.iter().enumerate() {
        let is_opened =
            dashes(line).is_some() && lines.get(index + 1).is_some_and(|next| is_entry(Some(next)));
        let message = if is_opened {
            "what begins here looks like a head: move it to the top"
        } else if index < FEW && is_plain_entry(line) {
            "this looks like a head that is not opened by `---`"
        } else {
            continue;
        };
        parts.tell(index + 1, message);
        let below = lines.iter().enumerate().skip(index);
        let tools = below.filter_map(|(index, line)| {
            let (key, _) = key_of(line).filter(|_| is_plain_entry(line))?;
            keys::restricts_tools(key).then(|| (index + 1, key.to_owned()))
        });
        parts.unread_tools = tools.collect();
        break;
    }
    parts
}

/// Whether a line is an entry written as nobody writes who only talks.
fn is_plain_entry(line: &str) -> bool {
    key_of(line).is_some_and(|(key, _)| keys::is_read(key) && *key == *key.to_lowercase())
}

/// Finds the head.
pub(super) fn split(text: &str) -> Result<Parts<'_>, Unreadable> {
    let before = above(text);
    let mut lines = text[before.bytes..].lines().filter(|line| !line.trim().is_empty());
    let opening = lines.next().unwrap_or_default();
    let line = before.lines + 1;
    if opening.trim_end() == "+++" && before.bytes == 0 {
        let message = "it is TOML (between two `+++`), which is not read".to_owned();
        return Err(Unreadable { line, message });
    }
    let opened = dashes(opening);
    let next = lines.clone().next();
    let has_entries = begins_head(lines);
    // What comes after a title may be a line across the page.
    let is_sure = !(before.has_text || before.has_code) || has_entries;
    let (close, has_line) = match opened {
        Some(indent) if is_sure => (Close::Dashes { indent }, true),
        None if has_entries && is_labelled(opening) => (Close::Meant, true),
        None if is_entry(next) && is_like_dashes(opening) => (Close::Meant, true),
        None if before.has_code && is_entry(Some(opening)) => (Close::Code, false),
        None if !before.has_text && !before.has_code && opens_alone(opening) => {
            (Close::Empty, false)
        }
        Some(_) | None => return Ok(headless(text)),
    };
    let mut parts = Parts { line, ..Parts::of_body(text) };
    parts.begin = before.bytes;
    parts.tell_opening(&before, opening, close);
    if has_line {
        let length = text[parts.begin..].split_inclusive('\n').next().map_or(0, str::len);
        parts.begin += length;
        parts.line += 1;
    }
    if before.has_text && !before.has_code {
        parts.above = &text[..before.bytes];
    }
    parts.close(text, close);
    if before.has_code && close != Close::Code {
        parts.body = without_code_fence(parts.body);
    }
    Ok(parts)
}

/// Whether a line begins a head that nobody opened: a file seldom begins with these words.
fn opens_alone(line: &str) -> bool {
    key_of(line).is_some_and(|(key, value)| {
        !value.is_empty() && matches!(key, "name" | "description" | "allowed-tools" | "tools")
    })
}

fn without_code_fence(body: &str) -> &str {
    body.trim_end().strip_suffix("```").unwrap_or(body)
}

impl<'t> Parts<'t> {
    /// A text that has no head.
    fn of_body(body: &'t str) -> Self {
        let (head, oddities) = (vec![], vec![]);
        Self { head, line: 1, above: "", body, oddities, unread_tools: vec![], begin: 0 }
    }

    fn tell(&mut self, line: usize, message: impl Into<String>) {
        self.oddities.push(Oddity { line, message: message.into() });
    }

    fn tell_opening(&mut self, before: &Above, opening: &str, close: Close) {
        let line = self.line;
        if before.has_code {
            self.tell(1, "the head is in a block of code: take the line with ``` away");
        } else if before.has_text {
            self.tell(1, "there is text above the head: move it below");
        } else if before.has_blank {
            self.tell(1, "there are empty lines above the head");
        }
        match close {
            Close::Dashes { .. } | Close::Meant if opening.trim_end() != "---" => {
                self.tell(line, format!("`{}` opens the head: write `---`", opening.trim_end()));
            }
            Close::Empty => self.tell(line, "the head is not opened: put `---` above it"),
            Close::Dashes { .. } | Close::Meant | Close::Code => {}
        }
    }

    /// Takes the lines of the head, up to what closes it.
    fn close(&mut self, text: &'t str, close: Close) {
        let mut at = self.begin;
        for (line, number) in text[self.begin..].split_inclusive('\n').zip(self.line..) {
            at += line.len();
            let words = line.trim_end();
            let is_closing = match (close, dashes(line)) {
                (Close::Dashes { indent }, Some(other)) => other <= indent,
                (Close::Empty | Close::Meant, Some(_)) => true,
                (Close::Meant, None) => words == "..." || is_like_dashes(line),
                (Close::Dashes { .. }, None) => words == "...",
                (Close::Code, _) => words.trim_start() == "```",
                (Close::Empty, None) => words.is_empty(),
            };
            if is_closing {
                if !words.is_empty() && !matches!(words, "---" | "```") {
                    self.tell(number, format!("`{words}` closes the head: write `---`"));
                }
                self.body = &text[at..];
                return;
            }
            self.head.push(line.trim_end_matches(['\n', '\r']));
        }
        // Nobody closed it: what looks like a head is one.
        let mut kept = 0;
        let mut is_new = false;
        for (index, line) in self.head.iter().enumerate() {
            let is_blank = line.trim().is_empty();
            let belongs = if is_new { is_entry(Some(line)) } else { looks_like_yaml(line) };
            if !is_blank && !belongs {
                break;
            }
            // Behind an empty line the text may have begun.
            is_new = is_blank;
            if !is_blank {
                kept = index + 1;
            }
        }
        self.end_after(kept, text);
    }

    /// Ends the head after some of its lines, because nobody closed it.
    fn end_after(&mut self, kept: usize, text: &'t str) {
        self.head.truncate(kept);
        let lines = text[self.begin..].split_inclusive('\n').take(kept);
        let length: usize = lines.map(str::len).sum();
        self.body = &text[self.begin + length..];
        let message = "the head is not closed: put `---` on a line of its own below it";
        self.tell(self.line.saturating_sub(1).max(1), message);
    }

    /// Whether the line that closed the head was a line across the page, far below a head that
    /// nobody closed. The head is cut short then.
    pub(super) fn ends_early(&mut self, text: &'t str) -> bool {
        let Some(blank) = self.head.iter().position(|line| line.trim().is_empty()) else {
            return false;
        };
        let (entries, rest) = self.head.split_at(blank);
        let Some(next) = rest.iter().find(|line| !line.trim().is_empty()) else { return false };
        // Examples below a description belong to it.
        let is_prose = !next.starts_with(['<', ' ', '\t']) && key_of(next).is_none();
        let is_head = entries.iter().any(|line| is_entry(Some(line)));
        let has_more = rest.iter().any(|line| is_entry(Some(line)));
        if !(is_prose && is_head) || has_more {
            return false;
        }
        self.end_after(blank, text);
        true
    }
}

/// Whether a line can stand in a head that nobody closed.
fn looks_like_yaml(line: &str) -> bool {
    let is_inside = line.starts_with([' ', '\t']) || line.starts_with("- ");
    !line.trim().is_empty() && (is_inside || key_of(line).is_some())
}
