//! The program's own messages: JSON-RPC, each message with its length in front. Whatever is not
//! known is passed over: new versions say more.

use serde::Deserialize;
use serde::de::DeserializeOwned;
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

impl RawEvent<'_> {
    /// The event, when it is one that matters. Others are large, and are not read.
    pub(super) fn event(&self) -> Option<Event> {
        let data = self.data;
        let about = match self.r#type {
            "assistant.message" => About::Said(read(data)),
            "assistant.usage" => About::Spent(read(data)),
            "assistant.turn_retry" => About::Retried(read(data)),
            "tool.execution_start" => About::ToolBegan(read(data)),
            "tool.execution_complete" => About::ToolEnded(read(data)),
            "subagent.started" => About::HelperBegan(read(data)),
            "subagent.completed" => About::HelperFinished(read(data)),
            "subagent.failed" => About::HelperFailed(read(data)),
            "session.todos_changed" => About::ListChanged,
            "session.compaction_complete" => About::Summarised(read(data)),
            "session.idle" => About::Idle(read(data)),
            _ if self.agent_id.is_none() => About::Itself(self.itself()?),
            _ => return None,
        };
        Some(Event { agent: self.agent_id.clone(), about })
    }

    fn itself(&self) -> Option<Itself> {
        let data = self.data;
        Some(match self.r#type {
            "assistant.turn_start" => Itself::Began,
            "assistant.message_delta" => Itself::Typed(read(data)),
            "assistant.reasoning_delta" => Itself::Thought(read(data)),
            "model.model_call_failure" => Itself::NotAnswered(read(data)),
            "session.usage_info" => Itself::Room(read(data)),
            "session.warning" => Itself::Warned(read(data)),
            "session.error" => Itself::Failed(read(data)),
            _ => return None,
        })
    }
}

/// What cannot be read is as good as not said.
fn read<T: Default + DeserializeOwned>(data: Option<&RawValue>) -> T {
    data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default()
}

/// An event that matters.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// The helper it is about, when it is not about the agent itself.
    pub(super) agent: Option<String>,
    pub(super) about: About,
}

#[derive(Clone, Debug)]
pub(super) enum About {
    Itself(Itself),
    Said(Said),
    Spent(Tokens),
    Retried(Retried),
    ToolBegan(ToolBegan),
    ToolEnded(ToolEnded),
    HelperBegan(HelperBegan),
    HelperFinished(HelperEnded),
    HelperFailed(HelperEnded),
    ListChanged,
    Summarised(Summarised),
    Idle(Idle),
}

/// What matters only when it is about the agent itself.
#[derive(Clone, Debug)]
pub(super) enum Itself {
    /// The model is being asked.
    Began,
    Typed(Piece),
    Thought(Piece),
    NotAnswered(NotAnswered),
    Room(Room),
    Warned(Warned),
    Failed(Failed),
}

/// A piece of a text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Piece {
    pub(super) delta_content: String,
}

/// A message of the model.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Said {
    pub(super) content: Value,
    pub(super) tool_requests: Vec<Value>,
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

/// The program tries again.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Retried {
    pub(super) reason: String,
}

/// A call of a model failed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NotAnswered {
    pub(super) model_call: ModelCall,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelCall {
    pub(super) status: Option<u16>,
    pub(super) error: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolBegan {
    pub(super) tool_call_id: String,
    pub(super) tool_name: String,
    pub(super) arguments: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolEnded {
    pub(super) tool_call_id: String,
    pub(super) success: bool,
    pub(super) shell_execution: Option<Shell>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Shell {
    pub(super) exit_code: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HelperBegan {
    pub(super) tool_call_id: String,
    pub(super) agent_name: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HelperEnded {
    pub(super) total_tool_calls: u64,
    pub(super) total_tokens: u64,
}

/// How large the model's window is.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Room {
    pub(super) token_limit: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Warned {
    pub(super) warning_type: String,
    pub(super) message: Value,
}

/// The turn is about to fail.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Failed {
    pub(super) error_type: String,
    pub(super) message: Value,
    pub(super) status_code: Option<u16>,
}

/// The conversation was summarised, or was not.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Summarised {
    pub(super) success: bool,
    pub(super) pre_compaction_tokens: Option<u64>,
    pub(super) post_compaction_tokens: Option<u64>,
    pub(super) compaction_tokens_used: Tokens,
}

/// The turn is over.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Idle {
    pub(super) aborted: bool,
}
