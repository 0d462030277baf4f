//! Questions as forms, and as choices of permissions where a client has no forms.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use agent_client_protocol::v1::schema::{
    ContentBlock, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationContentValue, ElicitationFormMode, ElicitationSchema, ElicitationSessionScope,
    EnumOption, MultiSelectPropertySchema, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId,
    StringPropertySchema, TextContent, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use atomic_event::{Answer, Question};

/// Where the answer is in a form.
const ANSWER: &str = "answer";
/// Where an answer in other words is.
const OTHER: &str = "other";

/// A question as a form.
#[derive(Clone, Copy, Debug)]
pub struct Form<'q>(pub &'q Question);

impl Form<'_> {
    /// What to send.
    pub fn request(self, session: &SessionId) -> CreateElicitationRequest {
        let scope = ElicitationSessionScope::new(session.clone());
        let form = ElicitationFormMode::new(scope, self.schema());
        CreateElicitationRequest::new(form, self.0.question.clone())
    }

    fn schema(self) -> ElicitationSchema {
        let question = self.0;
        let title = Some(question.header.clone()).filter(|header| !header.is_empty());
        let schema = ElicitationSchema::new();
        if question.options.is_empty() {
            let text = StringPropertySchema::new().title(title).min_length(1);
            return schema.property(ANSWER, text, true);
        }
        let options = question.options.iter().map(|option| {
            let about = Some(option.description.clone()).filter(|about| !about.is_empty());
            EnumOption::new(option.label.clone(), option.label.clone()).description(about)
        });
        let options: Vec<EnumOption> = options.collect();
        let schema = if question.multi_select {
            let several = MultiSelectPropertySchema::titled(options).title(title);
            schema.property(ANSWER, several, !question.free_text)
        } else {
            let one = StringPropertySchema::new().title(title).one_of(options);
            schema.property(ANSWER, one, !question.free_text)
        };
        if !question.free_text {
            return schema;
        }
        let other = StringPropertySchema::new().title("Something else".to_owned());
        schema.property(OTHER, other, false)
    }

    /// The answer; none when nobody gave one that fits the question.
    pub fn answer(self, response: &CreateElicitationResponse) -> Option<Answer> {
        let ElicitationAction::Accept(accepted) = &response.action else { return None };
        let content = accepted.content.as_ref()?;
        let mut chosen = given(content, ANSWER);
        let question = self.0;
        let is_label = |text: &String| question.options.iter().any(|o| o.label == *text);
        let in_own_words = question.free_text || question.options.is_empty();
        if !in_own_words && !chosen.iter().all(is_label) {
            return None;
        }
        if question.free_text {
            chosen.extend(given(content, OTHER));
        }
        if !question.multi_select && chosen.len() > 1 {
            // An option and something about it: the whole of it is in the person's own words.
            chosen = if in_own_words { vec![chosen.join(", ")] } else { return None };
        }
        (!chosen.is_empty()).then_some(Answer { chosen })
    }
}

/// The texts in a field of a form.
fn given(content: &BTreeMap<String, ElicitationContentValue>, field: &str) -> Vec<String> {
    let texts = match content.get(field) {
        Some(ElicitationContentValue::String(text)) => vec![text.clone()],
        Some(ElicitationContentValue::StringArray(texts)) => texts.clone(),
        _ => vec![],
    };
    texts.into_iter().filter(|text| !text.trim().is_empty()).collect()
}

/// A question as a choice of permissions.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'q>(&'q Question);

impl<'q> Choices<'q> {
    /// Only what has options, of which one is picked, can be asked in this way.
    pub fn of(question: &'q Question) -> Option<Self> {
        let fits = !question.options.is_empty() && !question.multi_select;
        fits.then_some(Self(question))
    }

    /// What to send. `id` is not used by any other tool call of the session.
    pub fn request(self, session: &SessionId, id: &str) -> RequestPermissionRequest {
        let question = self.0;
        let mut about = question.question.clone();
        for option in question.options.iter().filter(|option| !option.description.is_empty()) {
            let _ = write!(about, "\n- **{}**: {}", option.label, option.description);
        }
        let options = question.options.iter().enumerate().map(|(index, option)| {
            let kind = PermissionOptionKind::AllowOnce;
            PermissionOption::new(index.to_string(), option.label.clone(), kind)
        });
        let text = ContentBlock::Text(TextContent::new(about));
        let fields = ToolCallUpdateFields::new()
            .title(question.question.clone())
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Pending)
            .content(vec![ToolCallContent::from(text)]);
        let call = ToolCallUpdate::new(id.to_owned(), fields);
        RequestPermissionRequest::new(session.clone(), call, options.collect())
    }

    /// The answer; none when nobody gave one.
    pub fn answer(self, response: &RequestPermissionResponse) -> Option<Answer> {
        let RequestPermissionOutcome::Selected(selected) = &response.outcome else { return None };
        let index: usize = selected.option_id.0.parse().ok()?;
        let option = self.0.options.get(index)?;
        Some(Answer { chosen: vec![option.label.clone()] })
    }
}

#[cfg(test)]
mod tests {
    use atomic_event::{Answer, Choice, Question};
    use serde_json::{Value, json};

    use super::{Choices, Form};

    fn question(multi_select: bool, free_text: bool) -> Question {
        let option = |label: &str, about: &str| Choice {
            label: label.to_owned(),
            description: about.to_owned(),
        };
        Question {
            question: "Which colour?".to_owned(),
            header: "Colour".to_owned(),
            options: vec![option("Red", "warm"), option("Blue", "")],
            multi_select,
            free_text,
        }
    }

    fn chosen(answer: Option<Answer>) -> Option<String> {
        answer.map(|answer| answer.chosen.join("|"))
    }

    #[test]
    fn a_question_is_a_form() {
        let schema = |question: &Question| {
            let request = Form(question).request(&"s".to_owned().into());
            let request = serde_json::to_value(request).unwrap();
            assert_eq!(request["message"], question.question);
            request["requestedSchema"].to_string()
        };
        insta::assert_snapshot!(schema(&question(false, false)), @r#"{"type":"object","properties":{"answer":{"type":"string","title":"Colour","oneOf":[{"const":"Red","title":"Red","description":"warm"},{"const":"Blue","title":"Blue"}]}},"required":["answer"]}"#);
        insta::assert_snapshot!(schema(&question(true, true)), @r#"{"type":"object","properties":{"answer":{"type":"array","title":"Colour","items":{"anyOf":[{"const":"Red","title":"Red","description":"warm"},{"const":"Blue","title":"Blue"}]}},"other":{"type":"string","title":"Something else"}}}"#);
        let open = Question { question: "Why?".to_owned(), ..Question::default() };
        insta::assert_snapshot!(schema(&open), @r#"{"type":"object","properties":{"answer":{"type":"string","minLength":1}},"required":["answer"]}"#);
    }

    #[test]
    fn what_is_filled_in_is_the_answer_and_nothing_is_made_up() {
        let answer = |question: &Question, response: Value| {
            chosen(Form(question).answer(&serde_json::from_value(response).unwrap()))
        };
        let accept = |content: Value| json!({"action": "accept", "content": content});
        let (one, several) = (question(false, false), question(true, false));
        let (free, both) = (question(false, true), question(true, true));
        let table = [
            (&one, accept(json!({"answer": "Blue"})), Some("Blue")),
            (&one, accept(json!({"answer": "Pink"})), None),
            (&one, accept(json!({"answer": ["Red", "Blue"]})), None),
            (&one, accept(json!({})), None),
            (&one, json!({"action": "decline"}), None),
            (&one, json!({"action": "cancel"}), None),
            (&one, json!({"action": "_later"}), None),
            (&several, accept(json!({"answer": ["Red", "Blue"]})), Some("Red|Blue")),
            (&several, accept(json!({"answer": []})), None),
            (&free, accept(json!({"other": "Pink"})), Some("Pink")),
            (&free, accept(json!({"answer": "Red", "other": "but dark"})), Some("Red, but dark")),
            (&free, accept(json!({"answer": "Red", "other": " "})), Some("Red")),
            (&both, accept(json!({"answer": ["Red"], "other": "Pink"})), Some("Red|Pink")),
        ];
        for (question, response, expected) in table {
            let told = response.to_string();
            assert_eq!(answer(question, response).as_deref(), expected, "{told}");
        }
        let open = Question { question: "Why?".to_owned(), ..Question::default() };
        let why = answer(&open, accept(json!({"answer": "1"})));
        assert_eq!(why.as_deref(), Some("1"));
    }

    #[test]
    fn without_forms_one_of_several_options_is_a_permission() {
        let asked = question(false, true);
        let choices = Choices::of(&asked).unwrap();
        let request = serde_json::to_value(choices.request(&"s".to_owned().into(), "q1")).unwrap();
        insta::assert_snapshot!(request, @r#"{"sessionId":"s","toolCall":{"toolCallId":"q1","kind":"other","status":"pending","title":"Which colour?","content":[{"type":"content","content":{"type":"text","text":"Which colour?\n- **Red**: warm"}}]},"options":[{"optionId":"0","name":"Red","kind":"allow_once"},{"optionId":"1","name":"Blue","kind":"allow_once"}]}"#);
        let answer = |outcome: Value| {
            let response = serde_json::from_value(json!({"outcome": outcome})).unwrap();
            chosen(choices.answer(&response))
        };
        let selected = |id: &str| answer(json!({"outcome": "selected", "optionId": id}));
        assert_eq!(selected("1").as_deref(), Some("Blue"));
        assert_eq!(selected("7"), None);
        assert_eq!(answer(json!({"outcome": "cancelled"})), None);
        assert!(Choices::of(&question(true, false)).is_none());
        assert!(Choices::of(&Question::default()).is_none());
    }
}
