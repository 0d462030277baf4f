//! A command as it is written, in words.

/// Splits a command into words as a shell would: at blanks, outside of quotes. Nothing else of a
/// shell is known: no variables, no patterns, no second command.
///
/// # Errors
/// What is wrong with it, in words for the user.
pub fn split_command(command: &str) -> Result<Vec<String>, String> {
    let mut words = vec![];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = command.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), character) if character == open => quote = None,
            (Some('\''), character) => word.get_or_insert_default().push(character),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (_, '\\') => {
                let next = characters.next().ok_or("it ends with a `\\`")?;
                word.get_or_insert_default().push(next);
            }
            (None, character) if character.is_whitespace() => words.extend(word.take()),
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(open) = quote {
        return Err(format!("a quote ({open}) is not closed"));
    }
    words.extend(word);
    if words.first().is_none_or(String::is_empty) {
        return Err("it names no program".to_owned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split_command;

    #[test]
    fn a_command_is_split_as_in_a_shell() {
        for (command, words) in [
            ("opencode acp", &["opencode", "acp"][..]),
            ("  a   b ", &["a", "b"]),
            ("a 'b c' \"d 'e'\"", &["a", "b c", "d 'e'"]),
            (r#"a b\ c "d\"e" 'f\g' """#, &["a", "b c", "d\"e", "f\\g", ""]),
            ("a --x='y z'", &["a", "--x=y z"]),
            ("a $HOME *; b", &["a", "$HOME", "*;", "b"]),
        ] {
            assert_eq!(split_command(command).unwrap(), words, "{command}");
        }
        for (command, problem) in [
            ("", "it names no program"),
            (" ", "it names no program"),
            ("'' x", "it names no program"),
            ("a 'b", "a quote (') is not closed"),
            ("a\\", "it ends with a `\\`"),
        ] {
            assert_eq!(split_command(command).unwrap_err(), problem, "{command:?}");
        }
    }
}
