//! What was typed after a name, put where the prompt wants it.

use crate::entity::{Entity, Kind};

/// Something that must be typed after a name and was not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} needs {}; type: /{name} {usage}", list(.missing))]
pub struct Missing {
    /// The entity.
    pub name: String,
    /// What is missing.
    pub missing: Vec<String>,
    /// What to type.
    pub usage: String,
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" and ")
}

/// Refuses a call without the arguments an entity cannot do without.
pub fn require(entity: &Entity, typed: &str) -> Result<(), Missing> {
    let given = words(typed).len();
    let missing: Vec<String> = entity.arguments.required.iter().skip(given).cloned().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let usual = || entity.arguments.required.iter().map(|name| format!("<{name}>"));
    let usage = entity.arguments.hint.clone();
    let usage = usage.unwrap_or_else(|| usual().collect::<Vec<_>>().join(" "));
    Err(Missing { name: entity.name.clone(), missing, usage })
}

/// The prompt with what was typed: `$ARGUMENTS` is all of it, `$1` to `$9` are its words. Where the
/// prompt has no place for it, it comes at the end.
pub fn filled(kind: Kind, prompt: &str, typed: &str) -> String {
    let typed = typed.trim();
    let all = match (kind, typed) {
        (Kind::Skill, "") => "[no arguments]",
        _ => typed,
    };
    let words = words(typed);
    let (mut filled, mut rest) = (String::with_capacity(prompt.len() + typed.len()), prompt);
    let mut has_place = false;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let number = behind.chars().next().and_then(|c| c.to_digit(10)).unwrap_or(0) as usize;
        let stands_alone = !behind.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        if let Some(after) = behind.strip_prefix("ARGUMENTS") {
            filled.push_str(all);
            rest = after;
            has_place = true;
        } else if number > 0 && stands_alone {
            filled.push_str(words.get(number - 1).map_or("", String::as_str));
            rest = &behind[1..];
            has_place = true;
        } else {
            filled.push('$');
            rest = behind;
        }
    }
    filled.push_str(rest);
    if !has_place && !typed.is_empty() {
        filled.push_str("\n\n");
        filled.push_str(typed);
    }
    filled
}

/// The words of a text; what is in quotes is one of them.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![];
    let (mut quote, mut inside) = (None, false);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') if !inside => {
                quote = Some(c);
                inside = true;
                words.push(String::new());
            }
            (None, _) if c.is_whitespace() => inside = false,
            _ => {
                if !inside {
                    words.push(String::new());
                    inside = true;
                }
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{filled, words};
    use crate::Kind;

    #[test]
    fn what_was_typed_is_put_where_the_prompt_wants_it() {
        for (kind, prompt, typed, expected) in [
            (Kind::Command, "Fix $ARGUMENTS.", "the bug", "Fix the bug."),
            (Kind::Command, "$ARGUMENTS and $ARGUMENTS", "x", "x and x"),
            (Kind::Command, "Fix $ARGUMENTS.", "", "Fix ."),
            (Kind::Skill, "Fix $ARGUMENTS.", " ", "Fix [no arguments]."),
            (Kind::Command, "$2 before $1, not $3", "a \"b c\"", "b c before a, not "),
            (Kind::Command, "costs $10 or $0", "a", "costs $10 or $0\n\na"),
            (Kind::Skill, "Look.", "at it", "Look.\n\nat it"),
            (Kind::Skill, "Look.", "", "Look."),
            (Kind::Command, "Say $ARGUMENTS", "$1 $ARGUMENTS", "Say $1 $ARGUMENTS"),
            (Kind::Command, "100$", "x", "100$\n\nx"),
        ] {
            assert_eq!(filled(kind, prompt, typed), expected, "{prompt} with {typed}");
        }
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words("a  'b c' \"d\" it's"), ["a", "b c", "d", "it's"]);
        assert_eq!(words("\"never closed"), ["never closed"]);
        assert_eq!(words("''"), [""]);
    }
}
