//! `{env:NAME}` and `{file:path}` in the user's settings, which the program fills in before it
//! parses them.

use std::path::{Path, PathBuf};

use crate::login::{Environment, read_text};

/// Fills a text in, as OpenCode 1.18.33 does. References to files are relative to `folder`; without
/// one they have to be absolute.
pub(super) fn fill(
    text: &str,
    folder: Option<&Path>,
    env: &Environment<'_>,
) -> Result<String, String> {
    let text = replaced(text, "{env:", |name, _| Ok(Some(env.get(name).unwrap_or_default())))?;
    replaced(&text, "{file:", |name, before| {
        // A reference in a comment is left as it is.
        let line = before.rsplit('\n').next().unwrap_or_default();
        if line.trim_start().starts_with("//") {
            return Ok(None);
        }
        let path = match (name.strip_prefix("~/"), folder) {
            (Some(rest), _) => env.home().join(rest),
            (None, Some(folder)) => folder.join(name),
            (None, None) => PathBuf::from(name),
        };
        if !path.is_absolute() {
            return Err(format!("{{file:{name}}}: not an absolute path"));
        }
        let content = read_text(&path)?;
        let content =
            content.ok_or_else(|| format!("{}: the file is not there", path.display()))?;
        let quoted = serde_json::Value::String(content.trim().to_owned()).to_string();
        Ok(Some(quoted[1..quoted.len() - 1].to_owned()))
    })
}

/// Replaces every `<open>name}`. The function gets the name and the text before it, and returns
/// nothing for a place that stays.
fn replaced(
    text: &str,
    open: &str,
    value: impl Fn(&str, &str) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once(open) {
        whole.push_str(before);
        let Some((name, after)) = behind.split_once('}') else {
            whole.push_str(open);
            rest = behind;
            continue;
        };
        match value(name.trim(), &whole)? {
            Some(value) => whole.push_str(&value),
            None => whole.extend([open, name, "}"]),
        }
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::fill;
    use crate::login::Environment;

    #[test]
    fn references_are_filled_in_as_the_program_does() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("key"), "a \"b\"\n").unwrap();
        let home = folder.path().display().to_string();
        let own = [("HOME", home.as_str()), ("URL", "http://x")];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = Environment(&own);
        let filled = |text: &str| fill(text, Some(folder.path()), &env);
        for (text, expected) in [
            (r#"{"u": "{env:URL}/v1"}"#, r#"{"u": "http://x/v1"}"#),
            (r#"{"u": "{env:NOT_SET_HERE}"}"#, r#"{"u": ""}"#),
            (r#"{"k": "{file:key}"}"#, r#"{"k": "a \"b\""}"#),
            (r#"{"k": "{file:~/key}"}"#, r#"{"k": "a \"b\""}"#),
            ("// {file:gone}\n{}", "// {file:gone}\n{}"),
            ("{env:open", "{env:open"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
        assert!(filled("{file:gone}").unwrap_err().contains("is not there"));
        assert!(fill("{file:key}", None, &env).unwrap_err().contains("not an absolute path"));
    }
}
