//! What the agent and its helpers ask the user.

use atomic_event::{Answer, Choice, Question, QuestionId};
use serde_json::{Value, json};

use super::Talk;
use crate::BackendError;
use crate::asking::Asking;
use crate::copilot::misused;

/// What an agent is told where nobody is.
const NOBODY: &str = "Nobody can be asked here. Decide yourself and say what you decided.";

/// Questions that are open, and what they are answered under.
pub(super) struct Open {
    asking: Asking,
    under: Under,
}

/// The program has a tool for one question, and we give it one for several.
enum Under {
    Call(Value),
    Tool(String),
}

impl Open {
    /// The question of a call of the program's.
    fn call(id: Value, params: &Value) -> Self {
        Self {
            asking: Asking::new(format!("ask-{id}"), vec![question(params)]),
            under: Under::Call(id),
        }
    }

    /// The questions of a use of our tool.
    pub(super) fn tool(request: String, questions: Vec<Question>) -> Self {
        Self { asking: Asking::new(request.clone(), questions), under: Under::Tool(request) }
    }
}

impl Talk {
    /// The program asks for an answer.
    pub(super) fn asked(&mut self, id: Value, params: &Value) {
        self.ask(Open::call(id, params));
    }

    pub(super) fn ask(&mut self, open: Open) {
        let allowed = self.talker.request.questions && !open.asking.questions.is_empty();
        match &mut self.turn {
            Some(turn) if allowed && turn.interrupted.is_none() => {
                if let Some(outlet) = &mut self.outlet {
                    open.asking.events().for_each(|event| outlet.push(event));
                }
                turn.questions.push(open);
            }
            _ => match open.under {
                Under::Call(id) => self.reply(&id, &json!({ "noResponse": true })),
                Under::Tool(request) => self.tool_result(&request, NOBODY),
            },
        }
    }

    pub(super) fn answer(&mut self, id: &QuestionId, answer: &Answer) -> Result<(), BackendError> {
        let turn = self.turn.as_mut();
        let found = turn.and_then(|turn| {
            let place =
                turn.questions.iter_mut().position(|open| open.asking.answer(id, answer))?;
            Some((turn, place))
        });
        let Some((turn, place)) = found else {
            return Err(misused(&format!("the question {id} is not open")));
        };
        let Some(answers) = turn.questions[place].asking.answered() else { return Ok(()) };
        let reply = match &turn.questions[place].under {
            Under::Call(_) => choice(&answers),
            Under::Tool(_) => json!(told(&answers)),
        };
        match (turn.questions.remove(place).under, reply) {
            (Under::Call(id), reply) => self.reply(&id, &reply),
            (Under::Tool(request), reply) => {
                self.tool_result(&request, reply.as_str().unwrap_or_default());
            }
        }
        Ok(())
    }

    fn reply(&self, id: &Value, answer: &Value) {
        if let Some(server) = &self.server {
            server.rpc.reply(id, answer);
        }
    }

    fn tool_result(&self, request: &str, text: &str) {
        let result = json!({ "textResultForLlm": text, "resultType": "success" });
        let params = json!({ "sessionId": self.session, "requestId": request, "result": result });
        self.call("session.tools.handlePendingToolCall", &params, |_, _| {});
    }
}

/// The answer to the program's own tool, which has one question.
fn choice(answers: &[(&Question, &Answer)]) -> Value {
    let is_offered = answers.iter().all(|(question, answer)| {
        let labels = question.options.iter().map(|choice| &choice.label);
        answer.chosen.iter().all(|chosen| labels.clone().any(|label| label == chosen))
    });
    let text: Vec<String> = answers.iter().map(|(_, answer)| answer.text()).collect();
    json!({ "answer": text.join("\n"), "wasFreeform": !is_offered })
}

/// The answers to our tool, in words.
fn told(answers: &[(&Question, &Answer)]) -> String {
    let one = |(question, answer): &(&Question, &Answer)| {
        format!("{}\nThe user answered: {}", question.question, answer.text())
    };
    answers.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

fn question(params: &Value) -> Question {
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
