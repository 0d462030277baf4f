//! Versions of programs.

use std::fmt;

/// A version of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u64, pub(crate) u64, pub(crate) u64);

impl Version {
    /// Reads `2.1.325 (Claude Code)`.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let first = text.split_whitespace().next()?;
        let mut numbers = first.split('.').map(|part| {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        let mut next = || numbers.next().flatten();
        Some(Self(next()?, next()?, next()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::Version;

    #[test]
    fn versions_are_read_and_compared() {
        let read = |text| Version::read(text).map(|version| version.to_string());
        assert_eq!(read("2.1.325 (Claude Code)\n").as_deref(), Some("2.1.325"));
        assert_eq!(read("2.1.9-beta.1 (Claude Code)").as_deref(), Some("2.1.9"));
        assert_eq!(read("claude"), None);
        assert_eq!(read(""), None);
        assert!(Version::read("2.1.1000") > Version::read("2.1.325"));
        assert!(Version::read("2.1.99") < Version::read("2.1.197"));
    }
}
