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

/// The prompt of an entity with what was typed: `$ARGUMENTS` is all of it, `$1` to `$9` are its
/// words, as many as there are or as the entity says it takes. Any other `$5` is a price, or the
/// column of a table. Where the prompt takes nothing of it, it comes at the end.
pub fn filled(entity: &Entity, prompt: &str, typed: &str) -> String {
    let typed = typed.trim();
    let all = match (entity.kind, typed) {
        (Kind::Skill, "") => "[no arguments]",
        _ => typed,
    };
    let words = words(typed);
    let places = words.len().max(taken(entity));
    let (mut filled, mut rest) = (String::with_capacity(prompt.len() + typed.len()), prompt);
    let mut took_something = false;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let number = behind.chars().next().and_then(|c| c.to_digit(10)).unwrap_or(0) as usize;
        let stands_alone = !behind.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        if let Some(after) = behind.strip_prefix("ARGUMENTS") {
            filled.push_str(all);
            rest = after;
            took_something = true;
        } else if (1..=places).contains(&number) && stands_alone {
            let word = words.get(number - 1);
            filled.push_str(word.map_or("", String::as_str));
            rest = &behind[1..];
            took_something |= word.is_some();
        } else {
            filled.push('$');
            rest = behind;
        }
    }
    filled.push_str(rest);
    if !took_something && !typed.is_empty() {
        filled.push_str("\n\n");
        filled.push_str(typed);
    }
    filled
}

/// How many arguments an entity says it takes.
fn taken(entity: &Entity) -> usize {
    let hint = entity.arguments.hint.as_deref().unwrap_or_default();
    let hinted = hint.split_whitespace().filter(|word| word.starts_with(['<', '['])).count();
    entity.arguments.required.len().max(hinted)
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
    use crate::{Arguments, Entity, Kind, Origin, Prompt, Provider, Scope, Tools};

    fn entity(kind: Kind) -> Entity {
        Entity {
            kind,
            name: "x".to_owned(),
            aliases: vec![],
            description: "x".into(),
            tools: Tools::default(),
            model: None,
            arguments: Arguments::default(),
            hidden: false,
            more: serde_json::Map::new(),
            origin: Origin { scope: Scope::BuiltIn, provider: Provider::Atomic, path: None },
            prompt: Prompt::Embedded(""),
        }
    }

    #[test]
    fn what_was_typed_is_put_where_the_prompt_wants_it() {
        for (kind, prompt, typed, expected) in [
            (Kind::Command, "Fix $ARGUMENTS.", "the bug", "Fix the bug."),
            (Kind::Command, "$ARGUMENTS and $ARGUMENTS", "x", "x and x"),
            (Kind::Command, "Fix $ARGUMENTS.", "", "Fix ."),
            (Kind::Skill, "Fix $ARGUMENTS.", " ", "Fix [no arguments]."),
            (Kind::Command, "$2 before $1, not $3", "a \"b c\"", "b c before a, not $3"),
            (Kind::Command, "costs $10 or $0", "a", "costs $10 or $0\n\na"),
            (Kind::Skill, "Look.", "at it", "Look.\n\nat it"),
            (Kind::Skill, "Look.", "", "Look."),
            (Kind::Command, "Say $ARGUMENTS", "$1 $ARGUMENTS", "Say $1 $ARGUMENTS"),
            (Kind::Command, "100$", "x", "100$\n\nx"),
        ] {
            assert_eq!(filled(&entity(kind), prompt, typed), expected, "{prompt} with {typed}");
        }
    }

    #[test]
    fn quotes_hold_words_together() {
        assert_eq!(words("a  'b c' \"d\" it's"), ["a", "b c", "d", "it's"]);
        assert_eq!(words("\"never closed"), ["never closed"]);
        assert_eq!(words("''"), [""]);
    }
}
