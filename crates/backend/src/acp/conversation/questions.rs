//! What the agent wants from us: leave to use a tool, and answers of the user.

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CreateElicitationResponse, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome,
};
use atomic_event::{Answer, QuestionId};
use serde_json::Value;

use super::Talk;
use crate::BackendError;
use crate::acp::call::Call;
use crate::acp::form::{Form, declined, withdrawn};
use crate::asking::Asking;

/// A form that is open.
pub(super) struct Open {
    asking: Asking,
    form: Form,
    responder: Responder<Value>,
}

impl Open {
    /// The turn is over before anybody has answered.
    pub(super) fn withdraw(self) {
        respond(self.responder, &withdrawn());
    }
}

impl Talk {
    pub(super) fn asked(&mut self, method: &str, params: &Value, responder: Responder<Value>) {
        match method {
            "session/request_permission" => {
                let outcome = self.permission(params);
                respond(responder, &RequestPermissionResponse::new(outcome));
            }
            "elicitation/create" => self.put(params, responder),
            _ => {
                let error = agent_client_protocol::Error::method_not_found();
                let _ = responder.respond_with_error(error);
            }
        }
    }

    /// Whether a tool may be used: always, unless the agent is restricted.
    fn permission(&mut self, params: &Value) -> RequestPermissionOutcome {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.interrupted.is_none()) else {
            return RequestPermissionOutcome::Cancelled;
        };
        let asked = params.get("toolCall").unwrap_or(&Value::Null);
        let id = asked.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let known = self.decoder.call(id);
        let mut call = known.cloned().unwrap_or_default();
        call.learn(asked);
        let rules = &self.request.tools;
        let refusal = match rules.allow_everything() {
            true => None,
            // What was told before holds as well as what is said now.
            false => [Some(&call), known]
                .into_iter()
                .flatten()
                .find_map(|call: &Call| call.refusal(rules, asked, &self.request.workspace)),
        };
        let kinds = match refusal {
            None => ["allow_once", "allow_always"],
            Some(_) => ["reject_once", "reject_always"],
        };
        turn.refusal = refusal.or(turn.refusal.take());
        let options = params.get("options").and_then(Value::as_array);
        let text =
            |option: &Value, key: &str| option.get(key).and_then(Value::as_str).map(str::to_owned);
        let of_kind = |kind: &&str| {
            let options = options.into_iter().flatten();
            let mut fitting =
                options.filter(|option| text(option, "kind").as_deref() == Some(kind));
            fitting.find_map(|option| text(option, "optionId"))
        };
        match kinds.iter().find_map(of_kind) {
            Some(id) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id)),
            None => RequestPermissionOutcome::Cancelled,
        }
    }

    /// Puts a form to the user.
    fn put(&mut self, params: &Value, responder: Responder<Value>) {
        let form = Form::read(params).filter(|_| self.request.questions);
        let turn = self.turn.as_mut().filter(|turn| turn.interrupted.is_none());
        let (Some(form), Some(turn)) = (form, turn) else {
            return respond(responder, &declined());
        };
        let asking = Asking::new(uuid::Uuid::new_v4().to_string(), form.questions());
        if let Some(outlet) = &mut self.outlet {
            asking.events().for_each(|event| outlet.push(event));
        }
        turn.questions.push(Open { asking, form, responder });
    }

    pub(super) fn answer(&mut self, id: &QuestionId, answer: &Answer) -> Result<(), BackendError> {
        let found = self.turn.as_mut().and_then(|turn| {
            let place =
                turn.questions.iter_mut().position(|open| open.asking.answer(id, answer))?;
            Some((turn, place))
        });
        let Some((turn, place)) = found else {
            return Err(self.misused(&format!("the question {id} is not open")));
        };
        let open = &turn.questions[place];
        let Some(answers) = open.asking.answered() else { return Ok(()) };
        let answers: Vec<&Answer> = answers.into_iter().map(|(_, answer)| answer).collect();
        let filled = open.form.filled(&answers);
        respond(turn.questions.remove(place).responder, &filled);
        Ok(())
    }
}

/// What the protocol knows as an answer.
trait Says: serde::Serialize {}
impl Says for RequestPermissionResponse {}
impl Says for CreateElicitationResponse {}

fn respond(responder: Responder<Value>, answer: &impl Says) {
    let _ = match serde_json::to_value(answer) {
        Ok(answer) => responder.respond(answer),
        Err(error) => responder.respond_with_error(error.into()),
    };
}
