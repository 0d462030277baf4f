//! The text that was typed of an answer, so that an answer that is cut off and said again is not typed
//! twice. Front ends only append, and cannot take a text back.

/// Typed before an answer that starts again and is another one than before.
const STARTS_AGAIN: &str = "\n\n(The answer was cut off and starts again.)\n\n";

/// The answer that is being typed.
#[derive(Debug, Default)]
pub(super) struct Typing {
    /// The text of the answer that was typed.
    shown: String,
    /// The text that came since the program tries again, as long as it is the one that was typed.
    repeated: Option<String>,
}

impl Typing {
    /// Takes in a piece of the answer; returns the text to type for it.
    pub(super) fn add(&mut self, text: &str) -> Option<String> {
        let Some(mut repeated) = self.repeated.take() else {
            self.shown.push_str(text);
            return Some(text.to_owned()).filter(|text| !text.is_empty());
        };
        repeated.push_str(text);
        if let Some(rest) = repeated.strip_prefix(self.shown.as_str()) {
            let rest = Some(rest.to_owned()).filter(|rest| !rest.is_empty());
            self.shown = repeated;
            return rest;
        }
        if self.shown.starts_with(&repeated) {
            self.repeated = Some(repeated);
            return None;
        }
        let again = format!("{STARTS_AGAIN}{repeated}");
        self.shown = repeated;
        Some(again)
    }

    /// The answer was cut off, and the program asks for it again.
    pub(super) fn retry(&mut self) {
        self.repeated = (!self.shown.is_empty()).then(String::new);
    }

    /// The answer is whole. Returns the text to type for it, when it is shorter than the half that was
    /// typed before.
    pub(super) fn end(&mut self) -> Option<String> {
        let Self { repeated, .. } = std::mem::take(self);
        repeated.filter(|text| !text.is_empty()).map(|text| format!("{STARTS_AGAIN}{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Typing;

    /// What is typed for answers of which all but the last are cut off.
    fn typed(answers: &[&[&str]]) -> String {
        let mut typing = Typing::default();
        let mut typed = String::new();
        for (place, answer) in answers.iter().enumerate() {
            if place > 0 {
                typing.retry();
            }
            for piece in *answer {
                typed.push_str(&typing.add(piece).unwrap_or_default());
            }
        }
        typed + &typing.end().unwrap_or_default()
    }

    #[test]
    fn an_answer_that_is_said_again_is_typed_once() {
        let note = "\n\n(The answer was cut off and starts again.)\n\n";
        let table: [(&[&[&str]], String); 8] = [
            (&[&["One ", "two."]], "One two.".to_owned()),
            (&[&["One ", "tw"], &["One ", "two."]], "One two.".to_owned()),
            (&[&["One ", "tw"], &["One two three."]], "One two three.".to_owned()),
            (&[&["One "], &["On"], &["One t"], &["One two."]], "One two.".to_owned()),
            (&[&["One tw"], &["One ", "three."]], format!("One tw{note}One three.")),
            (&[&["One two"], &["One"]], format!("One two{note}One")),
            (&[&["One"], &["Two"], &["Two", "."]], format!("One{note}Two.")),
            // The same text, or none but a call of a tool.
            (&[&["One"], &["One"], &[]], "One".to_owned()),
        ];
        for (answers, expected) in table {
            assert_eq!(typed(answers), expected, "{answers:?}");
        }
    }
}
