//! Requests of an agent: permission to use a tool, and answers of the user.

use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{
    CreateElicitationResponse, RequestPermissionOutcome, RequestPermissionResponse,
    SelectedPermissionOutcome,
};
use serde_json::Value;

use super::call::Call;
use super::program::AcpProgram;
use crate::turn::Input;

impl AcpProgram {
    /// Handles a request of the agent.
    pub(super) fn on_request(
        &mut self,
        method: &str,
        params: &Value,
        responder: Responder<Value>,
    ) -> Vec<Input> {
        match method {
            "session/request_permission" => {
                let outcome = self.permission(params);
                respond(responder, &RequestPermissionResponse::new(outcome));
            }
            "elicitation/create" => return self.on_form(params, responder),
            _ => {
                let error = agent_client_protocol::Error::method_not_found();
                let _ = responder.respond_with_error(error);
            }
        }
        vec![]
    }

    /// Decides whether a tool may be used: always, unless the agent is restricted.
    fn permission(&mut self, params: &Value) -> RequestPermissionOutcome {
        if !self.turn.is_open || self.turn.is_interrupted {
            return RequestPermissionOutcome::Cancelled;
        }
        let asked = params.get("toolCall").unwrap_or(&Value::Null);
        let id = asked.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let known = self.decoder.call(id);
        let mut call = known.cloned().unwrap_or_default();
        call.learn(asked);
        let rules = &self.request.tools;
        let refusal = match rules.allow_everything() {
            true => None,
            // Both the call that was announced and the call in the request must be allowed.
            false => [Some(&call), known]
                .into_iter()
                .flatten()
                .find_map(|call: &Call| call.refusal(rules, asked, &self.request.workspace)),
        };
        let kinds = match refusal {
            None => ["allow_once", "allow_always"],
            Some(_) => ["reject_once", "reject_always"],
        };
        self.turn.refusal = refusal.or(self.turn.refusal.take());
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
}

/// Responses to requests of an agent.
pub(super) trait Response: serde::Serialize {}
impl Response for RequestPermissionResponse {}
impl Response for CreateElicitationResponse {}

pub(super) fn respond(responder: Responder<Value>, response: &impl Response) {
    // A program that has ended does not need the response.
    let _ = match serde_json::to_value(response) {
        Ok(response) => responder.respond(response),
        Err(error) => responder.respond_with_error(error.into()),
    };
}
