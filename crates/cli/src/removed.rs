//! Arguments that earlier versions of `/ralph` had.

/// A removed argument, with what to do instead.
pub(crate) struct RemovedFlag {
    pub(crate) flag: &'static str,
    pub(crate) instead: &'static str,
}

const REMOVED: [RemovedFlag; 4] = [
    RemovedFlag {
        flag: "--yolo",
        instead: "every agent runs with its permissions bypassed already",
    },
    RemovedFlag {
        flag: "--feature-list",
        instead: "for an old list: atomic migrate <feature-list.json> --ralph",
    },
    RemovedFlag {
        flag: "--max-iterations",
        instead: "set it with: atomic config set max_iterations <number>",
    },
    RemovedFlag {
        flag: "--completion-promise",
        instead: "Ralph ends when no task is left, and needs no word for it",
    },
];

/// Returns the removed argument that a word is, also in the form `--flag=value`.
pub(crate) fn flag(word: &str) -> Option<&'static RemovedFlag> {
    let name = word.split('=').next().unwrap_or(word);
    REMOVED.iter().find(|removed| removed.flag == name)
}

/// The words of a text that stand outside of quotes. A quote begins at the start of a word and has
/// an end, so an apostrophe (`don't`) is not one.
pub(crate) fn bare_words(text: &str) -> Vec<&str> {
    let mut words = vec![];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let closed = matches!(first, '"' | '\'').then(|| rest[1..].find(first)).flatten();
        let end = match closed {
            Some(end) => end + 2,
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                words.push(&rest[..end]);
                end
            }
        };
        rest = rest[end..].trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{bare_words, flag};

    #[test]
    fn words_in_quotes_are_left_out() {
        let table: [(&str, &[&str]); 6] = [
            ("Build it --yolo", &["Build", "it", "--yolo"]),
            ("\"Drop --yolo\" --now", &["--now"]),
            ("'Drop --yolo'", &[]),
            ("don't use --yolo, it's bad", &["don't", "use", "--yolo,", "it's", "bad"]),
            ("say \"hi", &["say", "\"hi"]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(bare_words(text), expected, "{text}");
        }
        assert!(flag("--yolo").is_some() && flag("--max-iterations=3").is_some());
        assert!(flag("--yolos").is_none() && flag("yolo").is_none() && flag("`--yolo`").is_none());
    }
}
