//! Places in a text, as people count them: lines from 1, columns from 1, in characters.

use std::fmt::Write as _;

/// The line and the column of a byte.
pub(crate) fn place_of(text: &str, offset: usize) -> (u32, u32) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    (clamp(line), clamp(column))
}

/// The byte of a line and a column.
pub(crate) fn offset_of(text: &str, line: u32, column: u32) -> usize {
    let (start, line) = line_at(text, line);
    let skipped = column.saturating_sub(1) as usize;
    start + line.char_indices().nth(skipped).map_or(line.len(), |(at, _)| at)
}

/// The column in characters of one in UTF-16 units from 0, which is how source maps count.
pub(crate) fn column_of_units(text: &str, line: u32, units: u32) -> u32 {
    let (_, line) = line_at(text, line);
    let mut seen = 0;
    let mut column = 1;
    for character in line.chars() {
        if seen >= units {
            break;
        }
        seen += clamp(character.len_utf16());
        column += 1;
    }
    column
}

/// Where a line starts, and the line without its end.
fn line_at(text: &str, number: u32) -> (usize, &str) {
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if clamp(index) + 1 == number {
            return (start, line.trim_end_matches(['\n', '\r']));
        }
        start += line.len();
    }
    (text.len(), "")
}

/// The line that is meant with one above and one below, and a mark under the place.
///
/// `length` is in characters; nothing beyond the end of the line is marked.
pub(crate) fn frame(text: &str, line: u32, column: u32, length: u32) -> String {
    // A line of a bundled file can be a megabyte long; a terminal shows none of it.
    const WIDEST: usize = 160;
    // A place may come from a script, which can say anything.
    let column = column.max(1);
    let lines: Vec<&str> = text.lines().collect();
    let first = line.saturating_sub(1).max(1);
    let last = line.saturating_add(1).min(clamp(lines.len()).max(line));
    let width = last.to_string().len();
    let mut out = String::new();
    for number in first..=last {
        let content = lines.get(number as usize - 1).copied().unwrap_or_default();
        let shown: String = content.chars().take(WIDEST).collect();
        let mark = if number == line { '>' } else { ' ' };
        let _ = writeln!(out, "{}", format!("{mark} {number:>width$} | {shown}").trim_end());
        if number == line && (column as usize) <= WIDEST {
            let here: String = shown
                .chars()
                .take(column as usize - 1)
                .map(|character| if character == '\t' { '\t' } else { ' ' })
                .collect();
            let room = shown.chars().count().saturating_sub(column as usize - 1).max(1);
            let marks = "^".repeat((length.max(1) as usize).min(room));
            let _ = writeln!(out, "  {:>width$} | {here}{marks}", "");
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// How long the word at a place is, for marks under it.
pub(crate) fn word_length(text: &str, line: u32, column: u32) -> u32 {
    let rest = &text[offset_of(text, line, column)..];
    let word = |character: char| character.is_alphanumeric() || "_$".contains(character);
    clamp(rest.chars().take_while(|character| word(*character)).count()).max(1)
}

/// A text that is not too long to be kept: its beginning, and how long it was.
pub(crate) fn cut(mut text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let length = text.chars().count();
    text.truncate(text.floor_char_boundary(most));
    let _ = write!(text, "… ({length} characters)");
    text
}

/// Nothing has four thousand million lines.
pub(crate) fn clamp(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The known name that is most like a wrong one, if one is like it at all.
pub(crate) fn nearest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let allowed = (wrong.chars().count() / 3).max(1);
    let same = |name: &&str| name.eq_ignore_ascii_case(wrong);
    let names: Vec<&str> = known.into_iter().collect();
    if let Some(name) = names.iter().find(|name| same(name)) {
        return Some(name);
    }
    let with_distance = names.into_iter().map(|name| (distance(wrong, name), name));
    with_distance.filter(|(far, _)| *far <= allowed).min().map(|(_, name)| name)
}

/// Levenshtein's distance.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, a) in one.chars().enumerate() {
        let mut diagonal = index;
        row[0] = index + 1;
        for (at, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}
