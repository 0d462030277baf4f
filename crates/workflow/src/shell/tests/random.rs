//! Commands put together at random.

use proptest::prelude::*;

use super::super::scan::templates;
use super::super::templates_in;
use super::{filled, run, shells, text};

/// Pieces of commands, put together at random: quotes, substitutions and what ends them.
fn soup() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "\"a {x} \"",
        "\"$(printf a){x}${U-b}\"",
        "'a {x}'",
        "\"it's {x}\"",
        "`printf b`",
        "${U-c}",
        "{x}",
        "{x}",
        "{x}",
        "'",
        "'",
        "\"",
        "\"",
        "`",
        "$(",
        ")",
        "${U-",
        "}",
        "$((",
        "))",
        "\\",
        "\n",
        " ",
        " printf %s ",
        "; printf %s ",
        "a",
        "$U",
        "$#",
        "#",
        " # ",
        "$'",
        "\\\n",
        "<<E\n",
        "\nE\n",
        "| cat ",
        "=",
        "v=",
        "\\\"",
        "{",
        "$",
    ]);
    proptest::collection::vec(piece, 1..14)
        .prop_map(|parts| format!("printf %s {}", parts.concat()))
}

/// A word that means nothing in any place, and cannot be part of a name before it.
const WORD: &str = ".QZ.";

/// The command that an author would write who knows the value.
fn with_word(template: &str, word: &str) -> String {
    let mut text = template.to_owned();
    for found in templates(template).into_iter().rev().filter(|found| found.written.key == "x") {
        text.replace_range(found.range, word);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a command looks like: where every template is accepted, a value behaves like a
    /// plain word that the author wrote at its place.
    #[test]
    fn a_value_is_never_more_than_the_word_it_stands_for(template in soup(), text in text()) {
        let used = templates_in(&template);
        // The number of the process differs.
        if template.replace("\\\n", "").contains("$$") || used.is_empty() || used.iter().any(|used| used.refusal.is_some()) {
            return Ok(());
        }
        for shell in shells().take(2) {
            let plain = run(shell, &with_word(&template, WORD), &[]);
            let word = filled(&template, WORD);
            let (ran, printed) = run(shell, &word.text, &word.env);
            prop_assert_eq!((ran, &printed), (plain.0, &plain.1), "{:?}: {} {}", shell, template, word.text);
            let hostile = filled(&template, &text);
            let (ran, hostile_printed) = run(shell, &hostile.text, &hostile.env);
            let expected = String::from_utf8_lossy(&printed).replace(WORD, &text);
            prop_assert_eq!(ran, plain.0, "{:?}: {} {}", shell, template, word.text);
            prop_assert_eq!(String::from_utf8_lossy(&hostile_printed), expected, "{:?}: {}", shell, template);
        }
    }
}
