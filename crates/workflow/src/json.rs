//! Finding the JSON in what an agent wrote.

use serde_json::Value;

/// The last JSON value in `text` that `fits`: in a fence, bare, or with prose around it.
///
/// The last one, because an agent that explains itself first and then answers is common, and one
/// that answers and then shows another example is not.
pub fn find_json(text: &str, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    let mut found = None;
    let mut from = 0;
    while let Some(start) = text[from..].find(['{', '[']).map(|at| from + at) {
        let mut stream = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) if fits(&value) => {
                from = start + stream.byte_offset();
                found = Some(value);
            }
            // Something inside may still fit.
            Some(Ok(_) | Err(_)) | None => from = start + 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::find_json;

    #[test]
    fn json_is_found_wherever_it_stands() {
        let table = [
            ("[1, 2]", Some(json!([1, 2]))),
            ("Here:\n```json\n[1]\n```\nbye", Some(json!([1]))),
            ("a [link] and {braces} then [3]", Some(json!([3]))),
            ("first [1] then [2]", Some(json!([2]))),
            ("{\"tasks\": [4]}", Some(json!([4]))),
            ("[1, 2", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(find_json(text, Value::is_array), expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,200}") {
            let _ = find_json(&text, |_| true);
        }
    }
}
