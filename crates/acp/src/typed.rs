//! A text that comes in pieces and then once more as a whole.

/// What was shown of a text that is not finished.
#[derive(Debug, Default)]
pub(crate) struct Typed {
    shown: String,
    /// Whether something was finished before it.
    is_later: bool,
}

impl Typed {
    /// What to show for a piece.
    pub(crate) fn piece(&mut self, text: &str) -> String {
        let gap = self.gap();
        self.shown.push_str(text);
        format!("{gap}{text}")
    }

    /// What to show when the whole is known. Pieces of it may have been passed over.
    pub(crate) fn whole(&mut self, text: &str) -> String {
        let gap = self.gap();
        let shown = std::mem::take(&mut self.shown);
        self.is_later |= !text.is_empty();
        match text.strip_prefix(shown.as_str()) {
            Some(rest) => format!("{gap}{rest}"),
            None => format!("\n\n{text}"),
        }
    }

    /// Two texts are not one.
    fn gap(&self) -> &'static str {
        if self.shown.is_empty() && self.is_later { "\n\n" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::Typed;

    #[test]
    fn a_text_is_shown_once() {
        let table: [(&[&str], &str, &str); 4] = [
            (&["Hel", "lo"], "Hello", "Hello"),
            (&["Hel"], "Hello", "Hello"),
            (&[], "Hello", "Hello"),
            (&["Hexlo"], "Hello", "Hexlo\n\nHello"),
        ];
        for (pieces, whole, expected) in table {
            let mut typed = Typed::default();
            let mut shown: String = pieces.iter().map(|piece| typed.piece(piece)).collect();
            shown.push_str(&typed.whole(whole));
            assert_eq!(shown, expected, "{pieces:?}");
            assert_eq!(typed.piece("More"), "\n\nMore");
            assert_eq!(typed.whole("More."), ".");
        }
    }
}
