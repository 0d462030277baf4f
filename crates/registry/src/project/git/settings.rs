//! The language of git's settings files, read byte by byte as `config.c` of git reads it.
//!
//! A reader that differs from git's lets a file hide a command. What git would refuse is refused
//! here as well, and so is a NUL byte, at which git cuts names off.

/// One setting of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Section and subsection, joined by a dot; the section is in lower case.
    pub(super) section: String,
    /// The key in lower case.
    pub(super) key: String,
    /// The value; `true` for a key without one.
    pub(super) value: String,
}

/// The settings in a file; nothing where git would refuse the file.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<Entry>> {
    if bytes.contains(&0) {
        return None;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = Reader { bytes, at: 0 };
    let (mut section, mut found) = (vec![], vec![]);
    while let Some(byte) = reader.next() {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'#' | b';' => reader.skip_line(),
            b'[' => section = reader.section()?,
            _ if byte.is_ascii_alphabetic() => {
                let (key, value) = reader.setting(byte)?;
                let section = shown(section.clone());
                found.push(Entry { section, key: shown(key), value: shown(value) });
            }
            _ => return None,
        }
    }
    Some(found)
}

/// Bytes as a text; different bytes are different texts.
fn shown(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| error.as_bytes().escape_ascii().to_string())
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte; the end of a line is always `\n`.
    fn next(&mut self) -> Option<u8> {
        if self.bytes.get(self.at..)?.starts_with(b"\r\n") {
            self.at += 1;
        }
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The next byte, where the end of the file ends the line.
    fn in_line(&mut self) -> u8 {
        self.next().unwrap_or(b'\n')
    }

    /// Skips a comment, which a backslash does not continue.
    fn skip_line(&mut self) {
        while self.in_line() != b'\n' {}
    }

    /// The section of a header, behind its `[`.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = vec![];
        loop {
            match self.next()? {
                b']' => return (!name.is_empty()).then_some(name),
                byte if is_space(byte) => return self.subsection(name, byte),
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
    }

    fn subsection(&mut self, mut name: Vec<u8>, mut byte: u8) -> Option<Vec<u8>> {
        while is_space(byte) {
            if byte == b'\n' {
                return None;
            }
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            let byte = match self.next()? {
                b'"' => break,
                b'\\' => self.next()?,
                byte => byte,
            };
            if byte == b'\n' {
                return None;
            }
            name.push(byte);
        }
        (self.next()? == b']').then_some(name)
    }

    /// A key that begins with this letter, and its value.
    fn setting(&mut self, first: u8) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut byte = self.in_line();
        while is_key(byte) {
            key.push(byte.to_ascii_lowercase());
            byte = self.in_line();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.in_line();
        }
        match byte {
            b'\n' => Some((key, b"true".to_vec())),
            b'=' => Some((key, self.value()?)),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut in_quotes) = (vec![], false);
        // Where the value ends, if nothing but space follows.
        let mut end = None;
        loop {
            match self.in_line() {
                b'\n' if in_quotes => return None,
                b'\n' => break,
                byte if is_space(byte) && !in_quotes => {
                    end.get_or_insert(value.len());
                    value.push(byte);
                    continue;
                }
                b'#' | b';' if !in_quotes => {
                    self.skip_line();
                    break;
                }
                b'\\' => match self.in_line() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(b'\x08'),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                b'"' => in_quotes = !in_quotes,
                byte => value.push(byte),
            }
            // Space at the beginning is no part of the value.
            if end == Some(0) {
                value.drain(..value.iter().take_while(|byte| is_space(**byte)).count());
            }
            end = None;
        }
        value.truncate(end.unwrap_or(value.len()));
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::entries;

    fn listed(text: &[u8]) -> Option<Vec<String>> {
        let line = |entry: super::Entry| {
            let dot = if entry.section.is_empty() { "" } else { "." };
            format!("{}{dot}{}={}", entry.section, entry.key, entry.value)
        };
        entries(text).map(|found| found.into_iter().map(line).collect())
    }

    #[test]
    fn settings_of_git_are_read_as_git_reads_them() {
        let table: &[(&str, &[&str])] = &[
            (
                "[core]\n\tbare = false\n[Filter \"a]b\"] Clean = x\n# no\n",
                &["core.bare=false", "filter.a]b.clean=x"],
            ),
            ("[alias]\n s = \\\n !sh\n[a]b=1\n[x]\ny\n", &["alias.s=!sh", "a.b=1", "x.y=true"]),
            ("[core]\n# x \\\nfsmonitor = e\n", &["core.fsmonitor=e"]),
            (
                "[branch \"\\\"]\"]\na = 1 # \\\n[core]\nfsmonitor=e",
                &["branch.\"].a=1", "core.fsmonitor=e"],
            ),
            (
                "[branch \"m\"]\nd = x\\\\\n[core]\nfsmonitor=e",
                &["branch.m.d=x\\", "core.fsmonitor=e"],
            ),
            ("[user] [core] fsmonitor=e", &["core.fsmonitor=e"]),
            ("[a]b = \" x;\" y ; z\r\n[c.D]e\r\n", &["a.b= x; y", "c.d.e=true"]),
        ];
        for (text, wanted) in table {
            assert_eq!(listed(text.as_bytes()).unwrap(), *wanted, "{text:?}");
        }
        let refused = ["[a", "[]", "[a b]", "[a]b=\"", "[a]b=\\x", "[a]b!", "=", "[core\0]a"];
        for text in refused {
            assert_eq!(listed(text.as_bytes()), None, "{text:?}");
        }
    }

    /// What git lists of a file; nothing if it refuses the file.
    fn listed_by_git(path: &std::path::Path) -> Option<Vec<String>> {
        let mut git = Command::new("git");
        let output = git.args(["config", "-lz", "-f"]).arg(path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = |entry: &str| match entry.split_once('\n') {
            Some((name, value)) => format!("{name}={value}"),
            None => format!("{entry}=true"),
        };
        output.status.success().then(|| text.split_terminator('\0').map(line).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

        #[test]
        fn git_lists_the_same(parts in prop::collection::vec(prop::sample::select(&[
            "[core]", "[a.B]", "[a \"", "\"]", "\n", "\n", "\n", "\\", "\"", "#", ";", "=", "= x", " ", "\t",
            "\r", "\r\n", "\\\n", "\\\\", "\\\"", "[", "]", "k", "Key = v", "fsmonitor=e\n", "\u{feff}",
            "\\t", "-", "\u{b}", "é", ".", "[x]\n",
        ][..]), 1..16)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("config");
            // A header in front lets more of the texts be valid.
            for text in [parts.concat(), format!("[s]\n{}", parts.concat())] {
                std::fs::write(&path, &text).unwrap();
                prop_assert_eq!(listed(text.as_bytes()), listed_by_git(&path), "{:?}", text);
            }
        }
    }
}
