//! The program's own messages: JSON-RPC, each message with its length in front. Whatever is not
//! known is passed over: new versions say more.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
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
    /// The event, when it is one that matters. Most are not looked into.
    pub(super) fn event(&self) -> Option<Event> {
        let data = self.data;
        let what = match self.r#type {
            "user.message" => What::Taken,
            "assistant.turn_start" => What::Began,
            "assistant.message_delta" => What::Typed(read(data)),
            "assistant.reasoning_delta" => What::Thought(read(data)),
            "assistant.message" => What::Said(read(data)),
            "assistant.usage" => What::Spent(read(data)),
            "assistant.turn_retry" => What::Retried(read(data)),
            "model.model_call_failure" => What::CallFailed(read(data)),
            "external_tool.requested" => What::OurToolUsed(read(data)),
            "tool.execution_start" => What::ToolBegan(read(data)),
            "tool.execution_complete" => What::ToolEnded(read(data)),
            "subagent.started" => What::HelperBegan(read(data)),
            "subagent.completed" => What::HelperFinished(read(data)),
            "subagent.failed" => What::HelperFailed(read(data)),
            "session.usage_info" => What::Room(read(data)),
            "session.warning" => What::Warned(read(data)),
            "session.error" => What::Failed(read(data)),
            "permission.requested" => What::LeaveWanted(read(data)),
            "session.todos_changed" => What::ListChanged,
            "session.compaction_complete" => What::Compacted(read(data)),
            "session.idle" => What::Idle(read(data)),
            _ => return None,
        };
        Some(Event { agent: self.agent_id.clone(), what })
    }
}

/// What is told in another form than it is known in is as if it were not told.
fn read<T: DeserializeOwned + Default>(data: Option<&RawValue>) -> T {
    data.and_then(|data| serde_json::from_str(data.get()).ok()).unwrap_or_default()
}

/// An event that matters.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// The helper it is about, when it is not about the agent itself.
    pub(super) agent: Option<String>,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// A prompt is taken.
    Taken,
    /// The model is asked.
    Began,
    Typed(Piece),
    Thought(Piece),
    Said(Said),
    Spent(Spent),
    /// The model is asked again.
    Retried(Retried),
    /// The model did not answer.
    CallFailed(CallFailed),
    OurToolUsed(ToolBegan),
    ToolBegan(ToolBegan),
    ToolEnded(ToolEnded),
    HelperBegan(HelperBegan),
    HelperFinished(HelperEnded),
    HelperFailed(HelperEnded),
    Room(Room),
    Warned(Warned),
    Failed(Failed),
    /// A hook wants somebody to be asked.
    LeaveWanted(LeaveWanted),
    ListChanged,
    Compacted(Compacted),
    Idle(Idle),
}

/// A piece of a text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Piece {
    pub(super) delta_content: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LeaveWanted {
    pub(super) request_id: String,
    pub(super) resolved_by_hook: bool,
}

/// A whole message of the agent, or one of the parts that it is told in.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Said {
    pub(super) content: Value,
    pub(super) tool_requests: Vec<IgnoredAny>,
    /// Which of the parts it is, counted from 0, and how many there are.
    pub(super) chunk_index: u64,
    pub(super) chunk_count: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spent {
    pub(super) model: String,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_tokens: u64,
    pub(super) cache_write_tokens: u64,
    /// What GitHub charges; absent with a provider of the user's own.
    pub(super) copilot_usage: Option<CopilotUsage>,
    /// Whether the provider has refused to say it, or to go on.
    pub(super) content_filter_triggered: bool,
}

/// The charge for a call: 1,000,000,000 nano-AIU are one AI credit.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CopilotUsage {
    pub(super) total_nano_aiu: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Retried {
    pub(super) reason: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CallFailed {
    pub(super) model_call: ModelCall,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelCall {
    pub(super) status: Option<u16>,
    pub(super) error: Value,
    /// The provider's own code for the error.
    #[serde(rename = "errorCode")]
    pub(super) code: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolBegan {
    pub(super) tool_call_id: String,
    pub(super) tool_name: String,
    pub(super) arguments: Value,
    /// Of our own tools: what they are answered under.
    pub(super) request_id: String,
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

/// How much there is room for.
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

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Failed {
    pub(super) error_type: String,
    pub(super) message: Value,
    pub(super) status_code: Option<u16>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Compacted {
    pub(super) success: bool,
    pub(super) pre_compaction_tokens: Option<u64>,
    pub(super) post_compaction_tokens: Option<u64>,
    pub(super) compaction_tokens_used: Spent,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Idle {
    pub(super) aborted: bool,
}
