//! Filling templates from the state.

use atomic_graph::State;
use atomic_graph::check::nearest;
use serde_json::Value;

/// A template whose key has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the template {{{key}}} cannot be filled: {why}")]
pub struct TemplateError {
    /// The key, with its path.
    pub key: String,
    /// What is missing, and what to do.
    pub why: String,
}

/// A template, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written<'t> {
    /// Its bytes, with the braces.
    pub(crate) length: usize,
    /// The key, with its path.
    pub(crate) key: &'t str,
    /// Whether the value is written to a file, whose path is filled in: `{file:key}`.
    pub(crate) is_file: bool,
    /// Whether a key without a value is filled with nothing: `{key?}`.
    pub(crate) is_optional: bool,
}

/// Reads the template that a text begins with.
pub(crate) fn read(text: &str) -> Option<Written<'_>> {
    // Braces without an end are not followed to the end of the text, each from its own place.
    let is_inside = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'-' | b'.' | b':' | b'?')
            || !byte.is_ascii()
    };
    let close = 1 + text.bytes().skip(1).take_while(is_inside).count();
    let inner = text.get(1..close).filter(|_| text.as_bytes().get(close) == Some(&b'}'))?;
    let key = inner.strip_prefix("file:");
    let (key, is_file) = (key.unwrap_or(inner), key.is_some());
    let required = key.strip_suffix('?');
    let (key, is_optional) = (required.unwrap_or(key), required.is_some());
    let mut parts = key.split('.');
    let first = parts.next()?;
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
    };
    let begins = first.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_template = begins && is_name(first) && parts.all(is_name);
    is_template.then_some(Written { length: close + 1, key, is_file, is_optional })
}

/// Whether braces behind this text belong to another language when nothing sets their key:
/// `${x}`, `{{x}}`, `%{http_code}`, `@{u}`, `#{x}`.
pub(crate) fn is_foreign(before: &str) -> bool {
    before.ends_with(['$', '{', '%', '@', '#'])
}

/// Fills `{key}`, `{item.id}`, `{outputs.node}`. `{key?}` is filled with nothing where there is no
/// value, `\{key}` is the text `{key}`, and braces that are not a template stay.
///
/// # Errors
/// A key has no value.
pub fn render(template: &str, state: &State) -> Result<String, TemplateError> {
    let mut text = String::with_capacity(template.len());
    let mut at = 0;
    while let Some(open) = template[at..].find('{').map(|open| at + open) {
        text.push_str(&template[at..open]);
        let rest = &template[open..];
        let written = read(rest);
        if let Some(written) = written.filter(|_| template[..open].ends_with('\\')) {
            text.pop();
            text.push_str(&rest[..written.length]);
            at = open + written.length;
            continue;
        }
        let filled =
            rest.find('}').and_then(|close| Some((lookup(&rest[1..close], state)?, close + 1)));
        let (filled, length) = match (filled, written) {
            (Some((value, length)), _) => (value, length),
            (None, Some(Written { length, key, is_optional: true, is_file: false })) => {
                (lookup(key, state).unwrap_or_default(), length)
            }
            (None, Some(written)) if !is_foreign(&template[..open]) => {
                return Err(missing(written, state, Braces::InText));
            }
            (None, _) => ("{".to_owned(), 1),
        };
        text.push_str(&filled);
        at = open + length;
    }
    text.push_str(&template[at..]);
    Ok(text)
}

/// Where braces stand that are meant as text, which decides how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Braces {
    InText,
    InCommand,
}

/// The error for a template whose key has no value.
pub(crate) fn missing(written: Written<'_>, state: &State, braces: Braces) -> TemplateError {
    let key = written.key;
    let (keys, outputs) = state.shared();
    let mut parts = key.split('.');
    let first = parts.next().unwrap_or(key);
    let why = if written.is_file && braces == Braces::InText {
        let why = "only commands read values from files; write the key without `file:`".to_owned();
        return TemplateError { key: format!("file:{key}"), why };
    } else if key == "outputs" {
        let why = "name a node: {outputs.<node>}".to_owned();
        return TemplateError { key: key.to_owned(), why };
    } else if find(key, state).is_some() {
        "its value is null".to_owned()
    } else if first == "outputs" {
        let node = parts.next().unwrap_or_default();
        let known = outputs.keys().map(|id| id.as_str());
        match outputs.keys().any(|id| id.as_str() == node) {
            true => format!("the output of `{node}` has no such field"),
            false => format!("there is no output of `{node}`{}", meant(node, "outputs.", known)),
        }
    } else if state.get(first).is_some() {
        format!("the value of `{first}` has no such field")
    } else {
        let known = keys.keys().map(|key| key.as_str());
        format!("the state has no key `{first}`{}", meant(first, "", known))
    };
    let text = match braces {
        Braces::InText => format!("\\{{{key}}}"),
        Braces::InCommand => format!("\\{{{key}}} outside of quotes, {{''{key}}} inside"),
    };
    let end = if why.ends_with('?') { "" } else { "." };
    let why = format!(
        "{why}{end} Write {{{key}?}} if it may be missing; for braces that are text, write {text}"
    );
    TemplateError { key: key.to_owned(), why }
}

fn meant<'k>(name: &str, before: &str, known: impl Iterator<Item = &'k str>) -> String {
    nearest(name, known)
        .map_or_else(String::new, |meant| format!("; did you mean {{{before}{meant}}}?"))
}

/// The templates of a text that have to have a value, and those of nodes' outputs.
pub(crate) fn templates_in(template: &str) -> impl Iterator<Item = Written<'_>> {
    let braces = template.match_indices('{');
    braces.filter_map(|(open, _)| {
        let is_text = template[..open].ends_with('\\') || is_foreign(&template[..open]);
        read(&template[open..]).filter(|_| !is_text)
    })
}

/// The text that a key is filled with. A key that was cleared is null, and has no value.
pub(crate) fn lookup(path: &str, state: &State) -> Option<String> {
    match find(path, state)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Some(value.to_string())
        }
    }
}

fn find<'s>(path: &str, state: &'s State) -> Option<&'s Value> {
    let mut parts = path.split('.');
    let first = parts.next()?;
    let root = if first == "outputs" { state.output(parts.next()?)? } else { state.get(first)? };
    parts.try_fold(root.as_ref(), |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use atomic_graph::State;
    use serde_json::json;

    use super::render;

    fn state() -> State {
        let item = json!({"id": "#1", "n": 2, "large": 9_007_199_254_740_992_u64, "gone": null});
        let values = json!({"prompt": "Build {x}", "item": item, "gone": null});
        State::new(serde_json::from_value(values).unwrap())
            .with_outputs([("plan".into(), json!({"steps": 3}))].into())
    }

    #[test]
    fn names_are_filled_and_other_braces_are_left_alone() {
        let table = [
            ("{prompt}: {item.id} {item.n}", "Build {x}: #1 2"),
            ("{outputs.plan.steps} {outputs.plan}", r#"3 {"steps":3}"#),
            (
                r#"{ "json": {} } {"a":1} {a, b} {0} a{3} { x } {"#,
                r#"{ "json": {} } {"a":1} {a, b} {0} a{3} { x } {"#,
            ),
            (
                "${HOME} {{name}} %{http_code} HEAD@{u} #{x}",
                "${HOME} {{name}} %{http_code} HEAD@{u} #{x}",
            ),
            (r"\{prompt} and \{missing}, \n \{ x }", r"{prompt} and {missing}, \n \{ x }"),
            ("[{missing?}][{prompt?}][{item.none?}]", "[][Build {x}][]"),
            ("[{gone?}][{item.gone?}] ${gone} {item.large}", "[][] ${gone} 9007199254740992"),
        ];
        for (text, expected) in table {
            assert_eq!(render(text, &state()).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_key_without_a_value_is_an_error_that_names_it() {
        let shown: Vec<String> = [
            "Do {promt}",
            "{item.titel}",
            "{outputs.pln}",
            "{outputs}",
            "{outputs.plan.none}",
            "{file:prompt}",
            "{nothing}",
            "{gone}",
            "{item.gone}",
        ]
        .map(|text| render(text, &state()).unwrap_err().to_string())
        .to_vec();
        insta::assert_snapshot!(shown.join("\n"));
    }
}
