//! Filling templates from the state.

use atomic_graph::State;
use serde_json::Value;

/// Fills `{key}`, `{item.id}`, `{outputs.node}`. What is not there stays as it is written, so a
/// brace in a prompt is no error.
pub fn render(template: &str, state: &State) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        let filled =
            rest.find('}').and_then(|close| Some((lookup(&rest[1..close], state)?, close)));
        match filled {
            Some((value, close)) => {
                text.push_str(&value);
                rest = &rest[close + 1..];
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

/// The nodes whose outputs a template is filled with.
pub(crate) fn outputs_in(template: &str) -> impl Iterator<Item = &str> {
    let behind = template.split('{').skip(1);
    let names = behind.filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
    names.filter_map(|name| name.strip_prefix("outputs.")?.split('.').next())
}

pub(crate) fn lookup(path: &str, state: &State) -> Option<String> {
    let mut parts = path.split('.');
    let first = parts.next()?;
    let root = if first == "outputs" { state.output(parts.next()?)? } else { state.get(first)? };
    let value = parts.try_fold(root.as_ref(), |value, part| value.get(part))?;
    Some(match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    })
}

#[cfg(test)]
mod tests {
    use atomic_graph::State;
    use serde_json::json;

    use super::render;

    #[test]
    fn names_are_filled_and_other_braces_are_left_alone() {
        let values = json!({"prompt": "Build {x}", "item": {"id": "#1", "n": 2}});
        let state = State::new(serde_json::from_value(values).unwrap());
        let text = "{prompt}: {item.id} {item.n} {missing} { \"json\": {} } {item.none}";
        let expected = "Build {x}: #1 2 {missing} { \"json\": {} } {item.none}";
        assert_eq!(render(text, &state), expected);
    }
}
