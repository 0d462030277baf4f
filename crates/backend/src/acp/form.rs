//! Forms: what an agent asks, as questions; and what is answered, as it wants it. No IO.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::{
    CreateElicitationResponse, ElicitationAcceptAction, ElicitationAction, ElicitationContentValue,
};
use atomic_event::{Answer, Choice, Question};
use serde_json::{Map, Value};

/// What a name of a field ends with that takes other words for the choice before it.
const OTHER: &str = "other";

/// What can be answered where only a yes or a no is wanted.
const YES: &str = "Yes";
const NO: &str = "No";

/// A form that is asked.
#[derive(Debug, PartialEq)]
pub(super) struct Form {
    fields: Vec<Field>,
}

#[derive(Debug, PartialEq)]
struct Field {
    /// Nothing where the whole form is one question of yes or no.
    name: Option<String>,
    kind: Kind,
    /// What stands for each option, by its label.
    values: Vec<(String, String)>,
    /// Where other words than those of the options go.
    other: Option<String>,
    question: Question,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Whole,
    Number,
    Flag,
    Several,
}

impl Form {
    /// Reads what an agent asks; nothing when it is no form.
    pub(super) fn read(params: &Value) -> Option<Self> {
        let is_form = params.get("mode").and_then(Value::as_str).unwrap_or("form") == "form";
        if !is_form {
            return None;
        }
        let message = text(params, "message");
        let schema = params.get("requestedSchema");
        let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
        let required = schema.and_then(|schema| schema.get("required")?.as_array());
        let needs = |name: &str| {
            required.into_iter().flatten().any(|required| required.as_str() == Some(name))
        };
        let mut fields: Vec<Field> = vec![];
        for (name, about) in properties.into_iter().flatten() {
            let field = Field::read(name, about);
            match fields.last_mut() {
                Some(choice) if field.is_for_other_words_than(choice) && !needs(name) => {
                    choice.question.free_text = true;
                    choice.other = Some(name.clone());
                }
                _ => fields.push(field),
            }
        }
        Some(Self { fields: told_with(&message, fields) })
    }

    pub(super) fn questions(&self) -> Vec<Question> {
        self.fields.iter().map(|field| field.question.clone()).collect()
    }

    /// The answers, in the order of the questions, as the agent wants them.
    pub(super) fn filled(&self, answers: &[&Answer]) -> CreateElicitationResponse {
        let mut content = BTreeMap::new();
        for (field, answer) in self.fields.iter().zip(answers) {
            if field.name.is_none() && field.flag(answer) == Some(false) {
                return declined();
            }
            if field.fill(answer, &mut content).is_none() {
                return declined();
            }
        }
        let accepted = ElicitationAcceptAction::new().content(content);
        CreateElicitationResponse::new(ElicitationAction::Accept(accepted))
    }
}

/// Nobody answers.
pub(super) fn declined() -> CreateElicitationResponse {
    CreateElicitationResponse::new(ElicitationAction::Decline)
}

/// The turn is over before anybody has answered.
pub(super) fn withdrawn() -> CreateElicitationResponse {
    CreateElicitationResponse::new(ElicitationAction::Cancel)
}

/// The fields with what the whole form is about: as the question where there is one, and in front
/// of the first where there are several.
fn told_with(message: &str, mut fields: Vec<Field>) -> Vec<Field> {
    match fields.as_mut_slice() {
        [] => vec![Field::confirmation(message)],
        [only] if !message.is_empty() => {
            message.clone_into(&mut only.question.question);
            fields
        }
        [first, ..] => {
            let question = &mut first.question.question;
            if !message.is_empty() && message != question.as_str() {
                *question = format!("{message}\n{question}");
            }
            fields
        }
    }
}

impl Field {
    fn read(name: &str, about: &Value) -> Self {
        let kind = match about.get("type").and_then(Value::as_str) {
            Some("integer") => Kind::Whole,
            Some("number") => Kind::Number,
            Some("boolean") => Kind::Flag,
            Some("array") => Kind::Several,
            _ => Kind::Text,
        };
        let offer = if kind == Kind::Several { about.get("items") } else { Some(about) };
        let mut offered: Vec<(Choice, String)> = offer.map(options).unwrap_or_default();
        if kind == Kind::Flag {
            offered = [YES, NO].map(|label| (plain(label), label.to_owned())).into();
        }
        let (options, values): (Vec<Choice>, Vec<(String, String)>) = offered
            .into_iter()
            .map(|(choice, value)| (choice.clone(), (choice.label, value)))
            .unzip();
        let [title, description] = ["title", "description"].map(|key| text(about, key));
        let header = if title.is_empty() { name.to_owned() } else { title };
        let question = Question {
            question: if description.is_empty() { header.clone() } else { description },
            header,
            free_text: options.is_empty(),
            options,
            multi_select: kind == Kind::Several,
        };
        Self { name: Some(name.to_owned()), kind, values, other: None, question }
    }

    fn confirmation(message: &str) -> Self {
        let question = Question {
            question: message.to_owned(),
            header: String::new(),
            options: [YES, NO].map(plain).into(),
            multi_select: false,
            free_text: false,
        };
        Self { name: None, kind: Kind::Flag, values: vec![], other: None, question }
    }

    /// Whether this is the place for an answer that is none of another field's options.
    fn is_for_other_words_than(&self, choice: &Self) -> bool {
        let is_choice = !choice.values.is_empty() && choice.kind != Kind::Flag;
        let is_plain = self.kind == Kind::Text && self.values.is_empty();
        let name = self.name.as_deref().unwrap_or_default().to_lowercase();
        is_choice && is_plain && choice.other.is_none() && name.ends_with(OTHER)
    }

    fn flag(&self, answer: &Answer) -> Option<bool> {
        let said = answer.text();
        [(YES, true), (NO, false)].iter().find_map(|(word, flag)| (*word == said).then_some(*flag))
    }

    /// Fills in an answer; nothing when it does not fit, because the agent counts on what it gets.
    fn fill(
        &self,
        answer: &Answer,
        content: &mut BTreeMap<String, ElicitationContentValue>,
    ) -> Option<()> {
        let Some(name) = self.name.clone().filter(|_| !answer.chosen.is_empty()) else {
            return Some(());
        };
        let value_of = |label: &String| {
            self.values.iter().find(|(known, _)| known == label).map(|(_, value)| value.clone())
        };
        let known: Vec<String> = answer.chosen.iter().filter_map(value_of).collect();
        let others: Vec<&str> = answer
            .chosen
            .iter()
            .filter(|label| value_of(label).is_none())
            .map(String::as_str)
            .collect();
        if let (Some(other), false) = (&self.other, others.is_empty()) {
            content.insert(other.clone(), ElicitationContentValue::String(others.join(", ")));
            if known.is_empty() {
                return Some(());
            }
        }
        let text = answer.text();
        let number = || text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        let value = match self.kind {
            Kind::Several => ElicitationContentValue::StringArray(known),
            Kind::Flag => ElicitationContentValue::Boolean(self.flag(answer)?),
            Kind::Whole => ElicitationContentValue::Integer(text.trim().parse().ok()?),
            Kind::Number => ElicitationContentValue::Number(number()?),
            Kind::Text => ElicitationContentValue::String(known.first().cloned().unwrap_or(text)),
        };
        content.insert(name, value);
        Some(())
    }
}

/// What is offered, with what stands for it.
fn options(about: &Value) -> Vec<(Choice, String)> {
    let titled = ["oneOf", "anyOf"].iter().find_map(|key| about.get(key)?.as_array());
    if let Some(titled) = titled {
        let option = |about: &Value| {
            let value = about.get("const")?.as_str()?.to_owned();
            let title = text(about, "title");
            let label = if title.is_empty() { value.clone() } else { title };
            Some((Choice { label, description: text(about, "description") }, value))
        };
        return titled.iter().filter_map(option).collect();
    }
    let plainly = about.get("enum").and_then(Value::as_array).into_iter().flatten();
    let names = about.get("enumNames").and_then(Value::as_array);
    let option = |(place, value): (usize, &Value)| {
        let value = value.as_str()?.to_owned();
        let name = names.and_then(|names| names.get(place)?.as_str()).unwrap_or(&value);
        Some((plain(name), value))
    };
    plainly.enumerate().filter_map(option).collect()
}

fn plain(label: &str) -> Choice {
    Choice { label: label.to_owned(), description: String::new() }
}

fn text(value: &Value, key: &str) -> String {
    let empty = Map::new();
    let fields = value.as_object().unwrap_or(&empty);
    fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use atomic_event::Answer;
    use serde_json::{Value, json};

    use super::Form;

    /// What is answered to a form with one field of this type.
    fn answered(kind: &str, said: &str) -> Value {
        let properties = json!({ "field": { "type": kind } });
        let asked = json!({ "message": "?", "requestedSchema": { "properties": properties } });
        let answer = Answer { chosen: vec![said.to_owned()] };
        serde_json::to_value(Form::read(&asked).unwrap().filled(&[&answer])).unwrap()
    }

    #[test]
    fn what_does_not_fit_into_a_form_is_not_filled_in() {
        for (kind, said, value) in [
            ("integer", " 3 ", json!(3)),
            ("number", "2.5", json!(2.5)),
            ("boolean", "No", json!(false)),
            ("string", "many", json!("many")),
        ] {
            let filled = json!({ "action": "accept", "content": { "field": value } });
            assert_eq!(answered(kind, said), filled);
        }
        for (kind, said) in
            [("integer", "many"), ("integer", "2.5"), ("number", "NaN"), ("boolean", "perhaps")]
        {
            assert_eq!(answered(kind, said), json!({ "action": "decline" }), "{kind} {said}");
        }
    }
}
