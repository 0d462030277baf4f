//! Commands and agents in OpenCode's own settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};

use crate::entity::{Entity, Kind, Origin, Prompt, Provider};
use crate::files;
use crate::finding::Finding;
use crate::parse::{self, Found, Place};
use crate::places::ConfigFile;

/// Adds what is in a file of settings, if there is one.
pub(crate) fn read(config: &ConfigFile, entities: &mut Vec<Entity>, findings: &mut Vec<Finding>) {
    let path = &config.path;
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => {}
        Ok(_) => {
            findings.push(Finding::skipped(path, "this is no file", "remove it"));
            return;
        }
        Err(_) if !files::is_there(path) => return,
        Err(error) => {
            let message = format!("it cannot be read: {error}");
            findings.push(Finding::skipped(path, message, "mend or remove it"));
            return;
        }
    }
    let text = match files::read(path) {
        Ok(text) => {
            findings.extend(text.oddity);
            text.text
        }
        Err(finding) => {
            findings.push(finding);
            return;
        }
    };
    let settings = match parsed(&text) {
        Ok(settings) => settings,
        Err((line, message)) => {
            let remedy = "mend it; comments and trailing commas are fine";
            findings
                .push(Finding::skipped(path, format!("it is no JSON: {message}"), remedy).at(line));
            return;
        }
    };
    let lines = lines_of_keys(&text);
    for (kind, key, prompt) in
        [(Kind::Command, "command", "template"), (Kind::Agent, "agent", "prompt")]
    {
        match settings.get(key) {
            None => {}
            Some(Value::Object(all)) => {
                for (name, fields) in all {
                    let line = lines.get(name.as_str()).copied();
                    let mut told = vec![];
                    entities.extend(entity(config, (kind, prompt), name, fields, &mut told));
                    findings.extend(told.into_iter().map(|finding| Finding { line, ..finding }));
                }
            }
            Some(_) => {
                let message = format!("`{key}` is no object and is left out");
                let finding = Finding::odd(path, message, "write `{\"name\": {…}}`");
                findings.push(Finding { line: lines.get(key).copied(), ..finding });
            }
        }
    }
}

fn parsed(text: &str) -> Result<Map<String, Value>, (usize, String)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = jsonc_parser::parse_to_serde_value(text, &ParseOptions::default())
        .map_err(|error| (error.line_display(), error.kind().to_string()))?;
    match value {
        Value::Object(settings) => Ok(settings),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err((1, "an object was expected".to_owned()))
        }
    }
}

fn entity(
    config: &ConfigFile,
    (kind, prompt): (Kind, &str),
    name: &str,
    fields: &Value,
    findings: &mut Vec<Finding>,
) -> Option<Entity> {
    let path = &config.path;
    let Value::Object(fields) = fields else {
        let message = format!("`{name}` is no object and is left out");
        findings.push(Finding::odd(path, message, "write its fields in braces"));
        return None;
    };
    let mut fields = fields.clone();
    let text = match fields.remove(prompt) {
        Some(Value::String(text)) => text,
        None if kind == Kind::Agent => {
            let message = format!("`{name}` has no `prompt`: it is an agent of OpenCode's own");
            findings.push(Finding::aside(path, message));
            return None;
        }
        None | Some(_) => {
            let message = format!("the {} `{name}` has no `{prompt}` and is left out", kind.word());
            findings.push(Finding::odd(path, message, "write the text it stands for"));
            return None;
        }
    };
    let text = with_files(&text, config, name, findings)?;
    // The key is its name, whatever else is said.
    fields.insert("name".to_owned(), Value::String(name.to_owned()));
    let origin =
        Origin { scope: config.scope, provider: Provider::OpenCode, path: Some(path.clone()) };
    let found = Found {
        kind,
        origin,
        name: name.to_owned(),
        aliases: vec![],
        prompt: Prompt::Text(text.clone()),
    };
    let mut told = vec![];
    let entity = parse::entity(found, fields, Place::Unknown, &text, &mut told);
    findings.extend(told.into_iter().map(|finding| {
        let message = format!("`{name}`: {}", finding.message);
        Finding { message, ..finding }
    }));
    entity
}

/// The first line of every key, to say where something is.
fn lines_of_keys(text: &str) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let parts: Vec<&str> = line.split('"').collect();
        for pair in parts.windows(2) {
            if pair[1].trim_start().starts_with(':') {
                lines.entry(pair[0]).or_insert(number);
            }
        }
    }
    lines
}

/// The text with those of the files in it: `{file:./prompts/x.md}` is beside the settings.
fn with_files(
    text: &str,
    config: &ConfigFile,
    name: &str,
    findings: &mut Vec<Finding>,
) -> Option<String> {
    let path = &config.path;
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("{file:") {
        let Some((file, after)) = behind.split_once('}') else { break };
        let file = located(file.trim(), config);
        whole.push_str(before);
        match files::read(&file) {
            Ok(text) => whole.push_str(text.text.trim_end()),
            Err(finding) => {
                let why = finding.message;
                let file = file.display();
                let message = format!("`{name}` takes its text from {file}, left out: {why}");
                findings.push(Finding::odd(path, message, "mend the path"));
                return None;
            }
        }
        if whole.len() as u64 > files::MOST_BYTES {
            let message = format!("`{name}` is larger than {} KiB", files::MOST_BYTES / 1024);
            findings.push(Finding::odd(path, message, "take shorter files"));
            return None;
        }
        rest = after;
    }
    whole.push_str(rest);
    Some(whole)
}

/// Where a file is that is named in the settings.
fn located(file: &str, config: &ConfigFile) -> PathBuf {
    let at_home = file.strip_prefix("~/").and_then(|rest| Some(config.home.as_ref()?.join(rest)));
    at_home.unwrap_or_else(|| config.path.parent().unwrap_or(Path::new("")).join(file))
}
