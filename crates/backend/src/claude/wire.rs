//! What the program and we say to each other: one JSON object a line, both ways.
//!
//! Reading is lenient: every field may be missing, and what is not known is passed over. Of a field
//! that has several shapes the value itself is kept.

use serde::Deserialize;
use serde_json::{Value, json};

/// A line from the program.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    /// Everything that is neither talk nor a request.
    System(Box<System>),
    /// A finished block of what the model says.
    Assistant(Spoken),
    /// A tool's result, or a text that was put into the conversation.
    User(Spoken),
    /// A piece of what the model is saying.
    StreamEvent(Streamed),
    /// The end of a turn.
    Result(Box<TurnResult>),
    /// How an account with a subscription stands with its limits.
    RateLimitEvent {
        #[serde(default)]
        rate_limit_info: RateLimitInfo,
    },
    /// The program wants something from us.
    ControlRequest {
        #[serde(default)]
        request_id: String,
        #[serde(default)]
        request: Request,
    },
    /// The program does not want it any more.
    ControlCancelRequest {
        #[serde(default)]
        request_id: String,
    },
    /// The program answers us.
    ControlResponse {
        #[serde(default)]
        response: Response,
    },
    /// Newer than we are, or of no use to us.
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct System {
    pub(super) subtype: String,
    pub(super) session_id: Option<String>,
    /// Of `session_state_changed`.
    pub(super) state: Option<String>,
    /// Of `api_retry`.
    pub(super) attempt: u64,
    pub(super) retry_delay_ms: f64,
    pub(super) error_status: Option<u16>,
    pub(super) error: Value,
    /// Of `compact_boundary`.
    pub(super) compact_metadata: CompactMetadata,
    /// Of the life of helpers.
    #[serde(flatten)]
    pub(super) task: TaskNews,
    /// Of notices; elsewhere it may be anything.
    pub(super) content: Value,
    pub(super) message: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RateLimitInfo {
    pub(super) status: LimitStatus,
    /// In seconds since 1970.
    #[serde(rename = "resetsAt")]
    pub(super) resets_at: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LimitStatus {
    Rejected,
    #[default]
    #[serde(other)]
    Other,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CompactMetadata {
    pub(super) pre_tokens: Option<u64>,
    pub(super) post_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskNews {
    pub(super) task_id: String,
    pub(super) tool_use_id: Option<String>,
    pub(super) task_type: Option<String>,
    pub(super) description: Option<String>,
    pub(super) subagent_type: Option<String>,
    pub(super) status: Option<Value>,
    pub(super) usage: TaskUsage,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TaskUsage {
    pub(super) total_tokens: u64,
    pub(super) tool_uses: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spoken {
    pub(super) message: Message,
    pub(super) parent_tool_use_id: Option<String>,
    /// Set when it is not the model that speaks, but the program about an error.
    pub(super) error: Value,
    /// What a tool returned, beside the text that the model is shown.
    pub(super) tool_use_result: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) content: Value,
    pub(super) usage: Option<TokenCounts>,
}

/// Tokens of one request.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenCounts {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
}

impl TokenCounts {
    /// The larger of the figures: those at the end of an answer leave out what has not changed.
    pub(super) fn or_more(self, later: Self) -> Self {
        let more = |part: fn(&Self) -> u64| part(&self).max(part(&later));
        Self {
            input_tokens: more(|it| it.input_tokens),
            output_tokens: more(|it| it.output_tokens),
            cache_read_input_tokens: more(|it| it.cache_read_input_tokens),
            cache_creation_input_tokens: more(|it| it.cache_creation_input_tokens),
        }
    }

    /// Everything the model has read and said.
    pub(super) fn all(self) -> u64 {
        let read =
            [self.input_tokens, self.cache_read_input_tokens, self.cache_creation_input_tokens];
        read.into_iter().fold(self.output_tokens, u64::saturating_add)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Streamed {
    pub(super) event: StreamedEvent,
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamedEvent {
    pub(super) r#type: String,
    pub(super) delta: StreamedDelta,
    /// Of `message_start`.
    pub(super) message: Message,
    /// Of `message_delta`.
    pub(super) usage: Option<TokenCounts>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamedDelta {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) stop_reason: Option<String>,
}

/// The end of a turn.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TurnResult {
    pub(super) subtype: String,
    pub(super) is_error: bool,
    pub(super) result: Option<Value>,
    pub(super) structured_output: Option<Value>,
    pub(super) errors: Vec<Value>,
    pub(super) api_error_status: Option<u16>,
    pub(super) terminal_reason: Option<String>,
    pub(super) stop_reason: Option<String>,
    pub(super) session_id: Option<String>,
    pub(super) total_cost_usd: Option<f64>,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: Value,
    pub(super) model_usage_since_last_result: Value,
}

impl TurnResult {
    /// Everything it says, in one text.
    pub(super) fn words(&self) -> String {
        let result = self.result.as_ref().and_then(Value::as_str).unwrap_or_default();
        let errors = self.errors.iter().filter_map(Value::as_str);
        // What is in brackets is for the program's own developers.
        let errors = errors.filter(|text| !text.starts_with("[ede_diagnostic]"));
        let all: Vec<&str> =
            std::iter::once(result).chain(errors).filter(|t| !t.is_empty()).collect();
        all.join("; ")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Request {
    pub(super) subtype: String,
    pub(super) tool_name: String,
    pub(super) input: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) subtype: String,
    pub(super) request_id: String,
    pub(super) response: Value,
    pub(super) error: Option<Value>,
}

/// Words for the program, among which it finds commands and files.
pub(super) fn user(text: &str) -> String {
    spoken(&json!(text)).to_string()
}

/// A prompt that is to reach the model as it is; `is_markable` when the program can be told so.
pub(super) fn prompt(text: &str, is_markable: bool) -> String {
    if !is_markable {
        let blocks: Vec<Value> = harmless(text)
            .into_iter()
            .map(|part| json!({ "type": "text", "text": part }))
            .collect();
        return spoken(&json!(blocks)).to_string();
    }
    let mut line = spoken(&json!(text));
    line["client_composed"] = json!(true);
    line.to_string()
}

fn spoken(content: &Value) -> Value {
    json!({
        "type": "user",
        "uuid": uuid::Uuid::new_v4().to_string(),
        "message": { "role": "user", "content": content },
        "parent_tool_use_id": null,
    })
}

/// A text in parts of which the last, the only one that the program looks through, is no command
/// and names no file. To the model, parts without anything between them are one text.
fn harmless(text: &str) -> Vec<&str> {
    let names_file = |(_, rest): &(usize, &str)| {
        rest.chars().nth(1).is_some_and(|next| !next.is_whitespace() && next != '@')
    };
    let at = text.match_indices('@').map(|(place, _)| (place, &text[place..]));
    let file = at.into_iter().rfind(names_file).map(|(place, _)| place);
    let Some(sign) = file.or(text.starts_with('/').then_some(0)) else { return vec![text] };
    let rest = text[sign + 1..].trim_start_matches('/');
    let end = text.len() - rest.len();
    if rest.trim().is_empty() { vec![text] } else { vec![&text[..end], rest] }
}

/// Something we want from the program.
pub(super) fn request(id: &str, request: &Value) -> String {
    json!({ "type": "control_request", "request_id": id, "request": request }).to_string()
}

/// What the program wanted.
pub(super) fn reply(id: &str, response: &Value) -> String {
    let response = json!({ "subtype": "success", "request_id": id, "response": response });
    json!({ "type": "control_response", "response": response }).to_string()
}

/// We cannot do what the program wants.
pub(super) fn refuse(id: &str, why: &str) -> String {
    let response = json!({ "subtype": "error", "request_id": id, "error": why });
    json!({ "type": "control_response", "response": response }).to_string()
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn commands_and_files_are_parted_from_their_signs() {
        let table: [(&str, &[&str]); 10] = [
            ("plain / text", &["plain / text"]),
            ("/help me", &["/", "help me"]),
            ("//twice", &["//", "twice"]),
            ("/", &["/"]),
            ("see @a.txt and @b.txt now", &["see @a.txt and @", "b.txt now"]),
            ("/x @y", &["/x @", "y"]),
            ("@/etc/passwd", &["@/", "etc/passwd"]),
            ("a @ b", &["a @ b"]),
            ("ends with @", &["ends with @"]),
            ("@\u{1f980}", &["@", "\u{1f980}"]),
        ];
        for (text, parts) in table {
            assert_eq!(harmless(text), parts);
        }
    }
}
