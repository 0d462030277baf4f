//! JSON Schemas of what nodes see and return.

use serde_json::Value;

/// The longest value that is shown, in bytes.
const MOST_SHOWN: usize = 200;

/// The schemas of one node.
#[derive(Debug)]
pub(crate) struct Schemas {
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
}

/// A schema, ready to check values.
#[derive(Debug)]
pub struct Schema(jsonschema::Validator);

impl Schema {
    /// Reads a schema; the error says what is wrong with it.
    ///
    /// # Errors
    ///
    /// When it is no JSON Schema.
    pub fn read(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    /// Checks a value; the error names the first place that does not fit.
    ///
    /// # Errors
    ///
    /// When the value does not fit.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.0.validate(value).map_err(|error| {
            let place = error.instance_path().to_string();
            // A whole state would drown what is wrong with it.
            let is_short = error.instance().to_string().len() <= MOST_SHOWN;
            let told =
                if is_short { error.to_string() } else { error.masked_with("it").to_string() };
            if place.is_empty() { told } else { format!("at `{place}`: {told}") }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Schema;

    #[test]
    fn a_long_value_is_not_shown() {
        let schema = Schema::read(&json!({"properties": {"a": {"type": "object"}}})).unwrap();
        let told = |value| schema.check(&json!({"a": value})).unwrap_err();
        assert_eq!(told(json!(7)), "at `/a`: 7 is not of type \"object\"");
        assert_eq!(told(json!("x".repeat(500))), "at `/a`: it is not of type \"object\"");
    }
}
