//! What the program says about itself without a turn: its MCP servers, its models, its account.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::ClaudeConversation;
use crate::{BackendError, ModelOffer, ServerState};

/// How long servers may take to connect. The program itself gives them 30 s, which is longer than
/// anybody wants to look at a list that is not there.
const CONNECTED: Duration = Duration::from_secs(10);

/// How long until the program is asked again: it does not say by itself that one has connected.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    mcp_servers: Vec<Server>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Server {
    name: String,
    status: String,
    error: Option<String>,
}

/// Who pays, as far as the program says it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Account {
    token_source: Option<String>,
    api_key_source: Option<String>,
}

/// The servers, once none is connecting any more, or as they are when that takes too long.
pub(super) async fn settled(
    conversation: &ClaudeConversation,
) -> Result<Vec<ServerState>, BackendError> {
    let deadline = Instant::now() + CONNECTED;
    loop {
        let status = conversation.ask_program(json!({ "subtype": "mcp_status" })).await?;
        let servers = states(&status);
        let is_settled = servers.iter().all(|server| server.status != "pending");
        if is_settled || Instant::now() >= deadline {
            return Ok(servers);
        }
        sleep(AGAIN).await;
    }
}

fn states(status: &Value) -> Vec<ServerState> {
    let Status { mcp_servers } = Status::deserialize(status).unwrap_or_default();
    let state = |Server { name, status, error }| ServerState { name, status, error };
    mcp_servers.into_iter().map(state).collect()
}

/// The models the program says it has when it is ready.
pub(super) fn offers(ready: &Value) -> Vec<ModelOffer> {
    let models = ready.get("models").and_then(Value::as_array).into_iter().flatten();
    let text = |model: &Value, key: &str| {
        model.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let offer = |model: &Value| ModelOffer {
        name: text(model, "value"),
        about: text(model, "description"),
    };
    models.map(offer).filter(|offer| !offer.name.is_empty()).collect()
}

/// Whether the program says that it has neither a key nor a token. It lists models all the same.
pub(super) fn is_logged_out(ready: &Value) -> bool {
    let account = ready.get("account").and_then(|account| Account::deserialize(account).ok());
    account.is_some_and(|Account { token_source, api_key_source }| {
        token_source.as_deref() == Some("none") && api_key_source.is_none()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{is_logged_out, states};

    #[test]
    fn what_is_not_known_about_a_server_is_passed_over() {
        let status = json!({ "mcpServers": [
            { "name": "good", "status": "connected", "tools": [{ "name": "ask" }], "scope": "project" },
            { "name": "bad", "status": "failed", "error": "Connection closed", "config": {} },
        ] });
        let lines: Vec<String> = states(&status)
            .into_iter()
            .map(|one| format!("{} {} {:?}", one.name, one.status, one.error))
            .collect();
        assert_eq!(lines, ["good connected None", "bad failed Some(\"Connection closed\")"]);
        assert_eq!(states(&Value::Null), []);
    }

    /// As both versions say it.
    #[test]
    fn nobody_is_told_to_log_in_who_has() {
        let table = [
            (json!({ "tokenSource": "none", "apiProvider": "firstParty" }), true),
            (json!({ "tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY" }), false),
            (json!({ "tokenSource": "CLAUDE_CODE_OAUTH_TOKEN" }), false),
            (json!({ "subscriptionType": "Claude Max", "apiProvider": "firstParty" }), false),
            (json!({ "apiProvider": "bedrock" }), false),
            (json!(null), false),
        ];
        for (account, expected) in table {
            assert_eq!(is_logged_out(&json!({ "account": account })), expected, "{account}");
        }
        assert!(!is_logged_out(&json!({})));
    }
}
