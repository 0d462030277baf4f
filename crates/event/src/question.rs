//! Questions: one shape, whoever asks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something only the user can decide.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// What is asked.
    pub question: String,
    /// A word or two above it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub header: String,
    /// What can be picked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<Choice>,
    /// Whether several options may be picked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi_select: bool,
    /// Whether an answer in other words is allowed. Always so when there are no options.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub free_text: bool,
}

impl Question {
    /// The option marked as recommended, if there is one.
    pub fn recommended(&self) -> Option<&Choice> {
        self.options.iter().find(|choice| choice.label.ends_with("(Recommended)"))
    }

    /// Checks an answer given as labels or free text; the error says what would be accepted.
    pub fn accept(&self, given: &[String]) -> Result<Answer, String> {
        if given.iter().all(|text| text.trim().is_empty()) {
            return Err("the answer is empty".to_owned());
        }
        let picked: Option<Vec<String>> = given.iter().map(|text| self.label(text)).collect();
        match picked {
            Some(labels) if self.multi_select || labels.len() == 1 => Ok(Answer { chosen: labels }),
            Some(_) => Err("only one option can be chosen".to_owned()),
            None if self.free_text || self.options.is_empty() => {
                Ok(Answer { chosen: vec![given.join(" ")] })
            }
            None => {
                let labels: Vec<_> = self.options.iter().map(|o| o.label.as_str()).collect();
                Err(format!("choose one of: {}", labels.join(" | ")))
            }
        }
    }

    /// The option that `text` names, by label or by number from 1.
    fn label(&self, text: &str) -> Option<String> {
        let text = text.trim();
        let by_label = self.options.iter().find(|o| o.label.eq_ignore_ascii_case(text));
        let by_number = || self.options.get(text.parse::<usize>().ok()?.checked_sub(1)?);
        by_label.or_else(by_number).map(|choice| choice.label.clone())
    }
}

/// One option of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// What is shown and returned.
    pub label: String,
    /// What picking it means.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// What the user decided: labels, or one free text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The labels or the text.
    pub chosen: Vec<String>,
}

impl Answer {
    /// The answer as one line.
    pub fn text(&self) -> String {
        self.chosen.join(", ")
    }
}

/// Who answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person.
    Person,
    /// The policy `recommended`, because nobody was there.
    Policy,
}

#[cfg(test)]
mod tests {
    use super::{Choice, Question};

    fn question(labels: &[&str], multi_select: bool, free_text: bool) -> Question {
        let options =
            labels.iter().map(|l| Choice { label: (*l).into(), ..Choice::default() }).collect();
        Question { options, multi_select, free_text, ..Question::default() }
    }

    #[test]
    fn answers_are_checked_against_the_question() {
        let one = question(&["Red (Recommended)", "Blue"], false, false);
        let table: &[(&Question, &[&str], &str)] = &[
            (&one, &["blue"], "Blue"),
            (&one, &["2"], "Blue"),
            (&one, &["green"], "! choose one of: Red (Recommended) | Blue"),
            (&one, &["Blue", "1"], "! only one option can be chosen"),
            (&one, &[" "], "! the answer is empty"),
            (&question(&["a", "b"], true, false), &["b", "a"], "b, a"),
            (&question(&["a"], false, true), &["something", "else"], "something else"),
            (&question(&[], false, false), &["text"], "text"),
        ];
        for (question, given, expected) in table {
            let given: Vec<String> = given.iter().map(|g| (*g).to_owned()).collect();
            let shown = match question.accept(&given) {
                Ok(answer) => answer.text(),
                Err(problem) => format!("! {problem}"),
            };
            assert_eq!(shown, *expected, "given {given:?}");
        }
        assert_eq!(one.recommended().map(|c| c.label.as_str()), Some("Red (Recommended)"));
    }
}
