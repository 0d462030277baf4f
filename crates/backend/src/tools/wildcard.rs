//! Patterns in which `*` stands for any characters and `?` for one, as OpenCode writes them.

/// Whether a text fits a pattern. A blank and a `*` at its end may be missing: `git *` is `git`, too.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let whole = pattern.strip_suffix(" *").is_some_and(|start| matches(start, text));
    whole || matches(pattern, text)
}

/// Compares without recursion: a `*` that was too short is made one character longer.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((begin, taken)) = star else { return false };
                at = begin + 1;
                place = taken + 1;
                star = Some((begin, place));
            }
        }
    }
    pattern.get(at..).is_some_and(|rest| rest.iter().all(|letter| *letter == '*'))
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_as_opencode_documents_them() {
        for (pattern, text) in [
            ("*", ""),
            ("git *", "git"),
            ("git *", "git status"),
            ("git status*", "git status --short"),
            ("docs/*", "docs/a/b.md"),
            ("*.env", "config/.env"),
            ("a?c", "abc"),
            ("*a*b*", "xxaxxbxx"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("git *", "gitk"), ("a?c", "ac"), ("docs/*", "src/docs/a"), ("", "x"), ("*b", "ba")]
        {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }
}
