//! Questions and answers in the form of the program.

use atomic_event::{Answer, Choice, Question};
use serde_json::{Value, json};

/// Returns the answer to the program's own tool, which has one question.
pub(super) fn chosen(answers: &[(Question, Answer)]) -> Value {
    let is_offered = answers.iter().all(|(question, answer)| {
        let labels = question.options.iter().map(|choice| &choice.label);
        answer.chosen.iter().all(|chosen| labels.clone().any(|label| label == chosen))
    });
    let text: Vec<String> = answers.iter().map(|(_, answer)| answer.text()).collect();
    json!({ "answer": text.join("\n"), "wasFreeform": !is_offered })
}

/// Returns the answers to the tool that Atomic adds.
pub(super) fn in_words(answers: &[(Question, Answer)]) -> String {
    let one = |(question, answer): &(Question, Answer)| {
        format!("{}\nThe user answered: {}", question.question, answer.text())
    };
    answers.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

/// Reads the question of a call of the program's own tool.
pub(super) fn question(params: &Value) -> Question {
    let text = params.get("question").and_then(Value::as_str).unwrap_or_default();
    let choices = params.get("choices").and_then(Value::as_array).into_iter().flatten();
    let choice = |choice: &Value| Choice {
        label: choice.as_str().unwrap_or_default().to_owned(),
        description: String::new(),
    };
    Question {
        question: text.to_owned(),
        header: String::new(),
        options: choices.map(choice).collect(),
        multi_select: false,
        free_text: params.get("allowFreeform").and_then(Value::as_bool).unwrap_or(true),
    }
}
