//! Parser state for a single word of a command.

/// Stands in a word for text that is known only when the command runs.
pub(in crate::shell) const UNKNOWN: u8 = 0;

/// The part of a word that has been read, without its quotes.
#[derive(Debug, Default)]
pub(in crate::shell) struct Word {
    pub(in crate::shell) text: Vec<u8>,
    pub(in crate::shell) is_quoted: bool,
    /// Whether the word begins with `NAME=`, without quotes before the sign.
    pub(in crate::shell) assigns: bool,
    /// Whether an expansion stands outside of double quotes, where the shell splits its result.
    pub(in crate::shell) splits: bool,
}

impl Word {
    /// How much of a word is kept, which is more than any word that has a meaning has.
    pub(in crate::shell) const LONGEST: usize = 256;

    pub(super) fn push(&mut self, byte: u8) {
        if self.text.len() < Self::LONGEST {
            self.text.push(byte);
        }
    }

    /// Whether the word is only an expansion without quotes, which can become any number of words: `$FLAGS`.
    pub(in crate::shell) fn may_vanish(&self) -> bool {
        let is_name = |byte: &u8| *byte == UNKNOWN || *byte == b'_' || byte.is_ascii_alphanumeric();
        self.splits && self.text.first() == Some(&UNKNOWN) && self.text.iter().all(is_name)
    }
}
