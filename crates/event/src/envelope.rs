//! A fact with its place in the journal, and how it is read and written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Event, Moment};

/// Major version of the journal's format. A journal of a newer one is refused.
pub const FORMAT: u32 = 1;

/// A fact with its place in the journal: `{seq, at, type, …}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Position in the journal, from 1, without gaps.
    pub seq: u64,
    /// When it was recorded.
    pub at: Moment,
    /// The fact.
    #[serde(flatten)]
    pub event: Event,
}

/// A line that is JSON but not a fact we can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableFact(pub String);

impl std::fmt::Display for UnreadableFact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnreadableFact {}

impl Envelope {
    /// Reads a fact. One of a type we do not know is kept as [`Event::Unknown`]; one of a type we
    /// know that does not fit is an error, never ignored.
    pub fn parse(line: &[u8]) -> Result<Self, UnreadableFact> {
        let unreadable = |error: serde_json::Error| UnreadableFact(error.to_string());
        let mut envelope: Self = serde_json::from_slice(line).map_err(unreadable)?;
        if let Event::Unknown(fields) = &envelope.event {
            let whole: Value = serde_json::from_slice(line).map_err(unreadable)?;
            let kind = whole.get("type").and_then(Value::as_str);
            match kind {
                None => return Err(UnreadableFact("the fact has no type".to_owned())),
                Some(kind) if KNOWN.contains(&kind) => {
                    let problem = format!("a `{kind}` fact does not have the expected fields");
                    return Err(UnreadableFact(problem));
                }
                Some(_) => {}
            }
            let mut fields = fields.clone();
            if let Value::Object(map) = &mut fields {
                map.remove("crc");
            }
            envelope.event = Event::Unknown(fields);
        }
        Ok(envelope)
    }
}

/// Every type of fact this version knows; a test compares it with the schema.
const KNOWN: &[&str] = &[
    "session_created",
    "session_resumed",
    "step_started",
    "conversation_opened",
    "step_reported",
    "step_finished",
    "step_failed",
    "step_lost",
    "step_cancelled",
    "timer_fired",
    "function_evaluated",
    "branch_chosen",
    "question_asked",
    "question_answered",
    "answer_delivered",
    "instructed",
    "state_patched",
    "launches_certified",
    "session_forked",
    "noted",
    "run_paused",
    "run_waiting",
    "run_finished",
    "provider_waiting",
    "provider_back",
    "payer_found",
];

/// The JSON Schema of one line of a journal.
pub fn journal_schema() -> Value {
    schemars::schema_for!(Envelope).to_value()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Envelope, KNOWN, journal_schema};
    use crate::Event;

    fn parse(value: &serde_json::Value) -> Result<Envelope, String> {
        Envelope::parse(value.to_string().as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_fact_of_a_newer_version_is_kept_and_a_broken_one_is_refused() {
        let base = |kind: &str| json!({"seq": 1, "at": "2026-11-15T10:00:00Z", "type": kind});
        let newer = parse(&base("moon_landed")).unwrap();
        assert_eq!(newer.event, Event::Unknown(json!({"type": "moon_landed"})));
        assert_eq!(
            parse(&base("step_finished")).unwrap_err(),
            "a `step_finished` fact does not have the expected fields"
        );
        assert_eq!(
            parse(&json!({"seq": 1, "at": "2026-11-15T10:00:00Z"})).unwrap_err(),
            "the fact has no type"
        );
    }

    /// Every `{"properties": {"type": {"const": …}}}` of the schema.
    fn collect_types<'s>(schema: &'s serde_json::Value, types: &mut Vec<&'s str>) {
        if let Some(name) = schema.pointer("/properties/type/const").and_then(|c| c.as_str()) {
            types.push(name);
        }
        if let Some(list) = schema.as_array() {
            list.iter().for_each(|inner| collect_types(inner, types));
        }
        if let Some(map) = schema.as_object() {
            map.values().for_each(|inner| collect_types(inner, types));
        }
    }

    #[test]
    fn every_type_in_the_schema_is_known() {
        let schema = journal_schema();
        let mut types = vec![];
        collect_types(&schema, &mut types);
        let mut known = KNOWN.to_vec();
        types.sort_unstable();
        known.sort_unstable();
        assert_eq!(types, known);
    }
}
