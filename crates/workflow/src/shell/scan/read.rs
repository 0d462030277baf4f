//! The text of a template.

/// Reads the template that a text begins with: its length, its key, and whether a file is meant.
pub(super) fn read(text: &str) -> Option<(usize, &str, bool)> {
    // Braces without an end are not followed to the end of the text, each from its own place.
    let is_inside = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b':')
            || !byte.is_ascii()
    };
    let close = 1 + text.bytes().skip(1).take_while(is_inside).count();
    let inner = text.get(1..close).filter(|_| text.as_bytes().get(close) == Some(&b'}'))?;
    let key = inner.strip_prefix("file:");
    let (key, is_file) = (key.unwrap_or(inner), key.is_some());
    let mut parts = key.split('.');
    let first = parts.next()?;
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    let begins = first.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (begins && is_name(first) && parts.all(is_name)).then_some((close + 1, key, is_file))
}

/// Whether a text can be the name of a variable.
pub(in crate::shell) fn is_variable(name: &[u8]) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.first().is_some_and(|first| is_letter(*first))
        && name.iter().all(|byte| is_letter(*byte) || byte.is_ascii_digit())
}
