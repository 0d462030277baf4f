//! JSON Schemas of what nodes see and return.

use serde_json::Value;

/// The schemas of one node.
#[derive(Debug)]
pub(crate) struct Schemas {
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
}

/// A schema, ready to check values.
#[derive(Debug)]
pub(crate) struct Schema(jsonschema::Validator);

impl Schema {
    /// Reads a schema; the error says what is wrong with it.
    pub(crate) fn read(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Checks a value; the error names the first place that does not fit.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.0.validate(value).map_err(|error| {
            let place = error.instance_path().to_string();
            if place.is_empty() { error.to_string() } else { format!("at `{place}`: {error}") }
        })
    }
}
