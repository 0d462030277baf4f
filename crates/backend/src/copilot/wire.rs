//! The program's own messages: JSON-RPC, each message with its length in front. Whatever is not
//! known is passed over: new versions say more.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A message, as far as it has to be read to know whose it is. Most of the stream is large and of
/// no interest.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(default)]
    pub(super) id: Option<Value>,
    #[serde(default)]
    pub(super) method: Option<&'a str>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) error: Option<RpcError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RpcError {
    pub(super) message: String,
}

/// An event of a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notice<'a> {
    pub(super) session_id: &'a str,
    #[serde(borrow)]
    pub(super) event: RawEvent<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawEvent<'a> {
    pub(super) r#type: &'a str,
    #[serde(default)]
    pub(super) agent_id: Option<String>,
    #[serde(borrow, default)]
    pub(super) data: Option<&'a RawValue>,
}

/// Types of events that are read.
const READ: [&str; 19] = [
    "model.model_call_failure",
    "assistant.turn_start",
    "assistant.message_delta",
    "assistant.reasoning_delta",
    "assistant.message",
    "assistant.usage",
    "assistant.turn_retry",
    "tool.execution_start",
    "tool.execution_complete",
    "subagent.started",
    "subagent.completed",
    "subagent.failed",
    "session.usage_info",
    "session.info",
    "session.warning",
    "session.error",
    "session.idle",
    "session.todos_changed",
    "session.compaction_complete",
];

impl RawEvent<'_> {
    /// The event, when it is one that matters.
    pub(super) fn event(&self) -> Option<Event> {
        let kind = READ.iter().find(|known| **known == self.r#type)?;
        let data = self.data.and_then(|data| serde_json::from_str(data.get()).ok());
        Some(Event { kind, agent: self.agent_id.clone(), about: data.unwrap_or_default() })
    }
}

/// An event that matters.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) kind: &'static str,
    /// The helper it is about, when it is not about the agent itself.
    pub(super) agent: Option<String>,
    pub(super) about: About,
}

/// Everything an event of any of the types can tell.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct About {
    pub(super) delta_content: String,
    pub(super) content: Value,
    pub(super) tool_requests: Vec<Value>,
    pub(super) tool_call_id: String,
    pub(super) tool_name: String,
    pub(super) arguments: Value,
    pub(super) success: bool,
    pub(super) shell_execution: Shell,
    pub(super) agent_name: String,
    pub(super) total_tool_calls: u64,
    pub(super) total_tokens: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_write_tokens: u64,
    pub(super) token_limit: Option<u64>,
    pub(super) current_tokens: Option<u64>,
    pub(super) pre_compaction_tokens: Option<u64>,
    pub(super) post_compaction_tokens: Option<u64>,
    pub(super) compaction_tokens_used: Tokens,
    pub(super) reason: String,
    pub(super) info_type: String,
    pub(super) warning_type: String,
    pub(super) error_type: String,
    pub(super) message: Value,
    pub(super) status_code: Option<u16>,
    pub(super) aborted: bool,
    pub(super) model_call: ModelCall,
}

impl About {
    /// What the call of a model cost that the event is about.
    pub(super) fn used(&self) -> Tokens {
        Tokens {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_write_tokens: self.cache_write_tokens,
        }
    }
}

/// What a call of a model cost.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Tokens {
    /// With what came from the cache.
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_write_tokens: u64,
}

/// A call of a model that failed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelCall {
    pub(super) status: Option<u16>,
    pub(super) error: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Shell {
    pub(super) exit_code: Option<i64>,
}
