//! The placeholders in texts and inputs.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::asked::{Asked, Situation};

/// What stands for what.
#[derive(Debug, Default)]
pub(super) struct Filling<'a> {
    workspace: Option<&'a str>,
    user: &'a str,
    result: &'a str,
}

impl<'a> Filling<'a> {
    /// What the placeholders mean in this request.
    pub(super) fn new(asked: &'a Asked<'_>, situation: &'a Situation) -> Self {
        Self { workspace: asked.workspace(), user: &situation.user, result: &situation.result }
    }

    /// A text with its placeholders replaced, in one pass: what comes in is left as it is. A
    /// placeholder that nothing is known for stays.
    pub(super) fn text(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            let known = [
                ("{workspace}", self.workspace),
                ("{user}", Some(self.user)),
                ("{result}", Some(self.result)),
            ];
            let hit = known
                .into_iter()
                .find_map(|(name, value)| Some((value?, from.strip_prefix(name)?)));
            let (value, after) = hit.unwrap_or_else(|| from.split_at(1));
            filled.push_str(value);
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// A value with the placeholders in its texts replaced.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(entries) => {
                entries.iter().map(|(key, value)| (key.clone(), self.value(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// The value of a header in which `{epoch+n}`, `{date+n}` and `{time+n}` are replaced by the time `n`
/// seconds after `now`.
pub(super) fn header(value: &str, now: Timestamp) -> String {
    let Some((before, rest)) = value.split_once('{') else { return value.to_owned() };
    let Some((name, after)) = rest.split_once('}') else { return value.to_owned() };
    let filled = name.split_once('+').and_then(|(form, seconds)| {
        let at = now.checked_add(SignedDuration::from_secs(seconds.parse().ok()?)).ok()?;
        match form {
            "epoch" => Some(at.as_second().to_string()),
            "date" => Some(at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()),
            "time" => Some(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            _ => None,
        }
    });
    filled.map_or_else(|| value.to_owned(), |filled| format!("{before}{filled}{after}"))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{Filling, header};

    #[test]
    fn times_in_headers_count_from_the_moment_of_the_answer() {
        let now = Timestamp::from_second(1_000_000_000).unwrap();
        for (value, expected) in [
            ("{epoch+70}", "1000000070"),
            ("{date+70}", "Sun, 09 Sep 2001 01:47:50 GMT"),
            ("{time+3600}", "2001-09-09T02:46:40Z"),
            ("at {epoch+1}s", "at 1000000001s"),
            ("70", "70"),
            ("{what+70}", "{what+70}"),
            ("{epoch}", "{epoch}"),
        ] {
            assert_eq!(header(value, now), expected, "{value}");
        }
    }
    use serde_json::json;

    #[test]
    fn placeholders_are_replaced_once_and_only_where_something_is_known() {
        let filling = Filling { workspace: Some("/w"), user: "say {result}", result: "42" };
        for (text, expected) in [
            ("{workspace}/a {workspace}", "/w/a /w"),
            ("{user}!", "say {result}!"),
            ("{result}{result}", "4242"),
            ("{ {other} {workspace", "{ {other} {workspace"),
            ("{{user}}", "{say {result}}"),
            ("ä{result}ö", "ä42ö"),
        ] {
            assert_eq!(filling.text(text), expected);
        }
        assert_eq!(Filling::default().text("{workspace}/a"), "{workspace}/a");
        let input = json!({ "{user}": ["{result}", 1, null], "n": { "p": "{workspace}/x" } });
        let expected = json!({ "{user}": ["42", 1, null], "n": { "p": "/w/x" } });
        assert_eq!(filling.value(&input), expected);
    }
}
